/*
 * From probes to armed sites: one program for each set of sites that can share it, its loading and the arming.
 *
 * Sites share a program when the same clauses run there and the arguments lie in the same places.  That is
 * so for the many sites of a provider such as pid, and for what the compiler made of one marker by inlining
 * the same way everywhere; the rest get programs of their own, which cost little.
 *
 * Programs are compiled one after the other; then they are loaded and armed at the same time, if the place can: the
 * kernel takes milliseconds to verify one, and waits some 20 ms before it has put in its first breakpoint.
 */
#include "session/private.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/parallel.h"
#include "base/strbuf.h"
#include "elf/ksyms.h"

static int fill_probe_table(struct session *s, uint32_t first)
{
	struct abi_probe entry;
	uint32_t i;
	int e = 0;

	for (i = first; i < s->nenabled && !e; i++) {
		const struct probe *p = s->enabled[i].probe;

		memset(&entry, 0, sizeof(entry));
		entry.id = p->id;
		entry.epid = s->enabled[i].epid;
		entry.flags = p->pid_suffix ? ABI_PROBE_PID_SUFFIX : 0;
		strncpy(entry.prov, p->prov, sizeof(entry.prov) - 1);
		strncpy(entry.mod, p->mod, sizeof(entry.mod) - 1);
		strncpy(entry.func, p->func, sizeof(entry.func) - 1);
		strncpy(entry.name, p->name, sizeof(entry.name) - 1);
		e = s->place->ops->set_probe(s->place, i, &entry);
	}
	return e;
}

/* Do programs walk stacks themselves? */
static bool walks(const struct session *s)
{
	return s->unit->maps[EBPF_MAP_PYTHONS].type != BPF_MAP_TYPE_UNSPEC ||
	       s->unit->maps[EBPF_MAP_RANGES].type != BPF_MAP_TYPE_UNSPEC;
}

/* --- jobs --------------------------------------------------------------------------------------------- */

/* A program to be loaded, and what is to fire it. */
struct job {
	struct enabled *en;		/* whose clauses run */
	struct ebpf_env env;
	const struct ebpf_prog *prog;
	bool multi;
	int (*arm)(struct session *s, struct job *j, int handle);	/* 0, or a negative errno and why in err */
	struct place_site *sites;	/* for arm_sites() */
	size_t nsites, cap;
	bool ret;
	struct place_marker marker;	/* for arm_marker() */
	int e;				/* how it went */
	struct strbuf err, log;
};

struct jobs {
	struct session *s;
	struct job *v;
	size_t n, cap;
	atomic_size_t failed;		/* the first that has failed; no job after it is begun */
};

static struct job *add_job(struct session *s, struct jobs *jobs, struct enabled *en, const struct ebpf_env *env)
{
	struct job *j;

	jobs->v = arena_grow(s->arena, jobs->v, &jobs->cap, jobs->n, sizeof(*jobs->v));
	j = &jobs->v[jobs->n++];
	memset(j, 0, sizeof(*j));
	j->en = en;
	j->env = *env;
	return j;
}

/* Generate what runs @j's clauses. */
static int compile(struct session *s, struct job *j, struct strbuf *err)
{
	const struct enabled *en = j->en;
	struct ebpf_prog *prog;
	const char *why = NULL;

	if (j->prog)
		return 0;
	prog = ebpf_compile(s->unit, &j->env, en->clauses, en->nclauses, s->errors, s->nerrors, &why);
	if (!prog) {
		strbuf_puts(err, why);
		return -EINVAL;
	}
	if (s->conf.bytecode) {
		strbuf_printf(s->conf.bytecode, "# %s:%s:%s:%s\n", en->probe->prov, en->probe->mod,
			      en->probe->func, en->probe->name);
		ebpf_disasm(prog, s->conf.bytecode);
	}
	j->prog = prog;
	return 0;
}

static void run_job(void *ctx, size_t i)
{
	struct jobs *jobs = ctx;
	struct session *s = jobs->s;
	struct job *j = &jobs->v[i];
	size_t first;
	int handle;

	if (i > jobs->failed)
		return;
	handle = s->place->ops->load(s->place, j->prog, j->multi, &j->err, s->conf.verifier_log ? &j->log : NULL);
	j->e = handle;
	if (handle >= 0)
		j->e = j->arm(s, j, handle);
	if (!j->e)
		return;
	first = jobs->failed;
	while (i < first && !atomic_compare_exchange_weak(&jobs->failed, &first, i))
		;
}

/* Carry out all: 0, or what the first that failed says. */
static int run_jobs(struct session *s, struct jobs *jobs, struct strbuf *err)
{
	size_t i;
	int e = 0;

	for (i = 0; i < jobs->n && !e; i++)
		e = compile(s, &jobs->v[i], err);
	if (e)
		return e;
	jobs->s = s;
	jobs->failed = jobs->n;
	if (s->place->parallel)
		parallel_each(jobs->n, run_job, jobs);
	else
		for (i = 0; i < jobs->n; i++)
			run_job(jobs, i);
	if (jobs->failed < jobs->n) {
		const struct job *j = &jobs->v[jobs->failed];

		e = j->e;
		strbuf_puts(err, strbuf_str(&j->err));
		if (j->log.len)
			strbuf_puts(s->conf.verifier_log, j->log.s);
	}
	for (i = 0; i < jobs->n; i++) {
		strbuf_fini(&jobs->v[i].err);
		strbuf_fini(&jobs->v[i].log);
	}
	return e;
}

/* --- sites -------------------------------------------------------------------------------------------- */

/* What is the same for all programs. */
static struct ebpf_env base_env(const struct session *s, enum ebpf_ctx ctx)
{
	struct ebpf_env env = { .ctx = ctx };

	env.error_probe = s->error_probe;
	if (ctx != EBPF_CTX_RUN)
		env.only_cpu = (uint32_t)(s->opts.v[OPT_cpu] + 1);
	env.sleepable = ctx == EBPF_CTX_UPROBE && s->place->sleepable;
	env.user_space = s->place->in_target;
	env.turns_called = s->place->turns_called;
	env.pid_ns = s->pid_ns && !env.user_space;
	env.ns_dev = s->ns_dev;
	env.ns_ino = s->ns_ino;
	env.task_parent = s->task.real_parent;
	env.task_tgid = s->task.tgid;
	env.task_runtime = s->task.sum_exec_runtime;
	env.task_exec_start = s->task.exec_start;
	env.task_cfs_rq = s->task.cfs_rq;
	env.cfs_rq_rq = s->task.rq;
	env.rq_clock = s->task.clock;
	env.rq_clock_task = s->task.clock_task;
	env.task_mm = s->task.mm;
	env.mm_arg_start = s->task.arg_start;
	env.mm_arg_end = s->task.arg_end;
	env.mm_exe = s->task.exe_file;
	env.file_inode = s->task.f_inode;
	env.inode_number = s->task.i_ino;
	env.inode_super = s->task.i_sb;
	env.super_dev = s->task.s_dev;
	env.mm_start_code = s->task.start_code;
	env.mm_start_stack = s->task.start_stack;
	env.task_tls = s->task.tls;
	env.tasks = &s->task.tasks;
	env.paths = &s->task.paths;
	return env;
}

static bool same_clauses(const struct enabled *a, const struct enabled *b)
{
	return a->nclauses == b->nclauses && !memcmp(a->clauses, b->clauses, a->nclauses * sizeof(*a->clauses));
}

static bool same_operand(const struct ebpf_operand *a, const struct ebpf_operand *b)
{
	return a->loc == b->loc && a->width == b->width && a->sign == b->sign && a->value == b->value &&
	       a->has_base == b->has_base && a->reg_off == b->reg_off && a->has_index == b->has_index &&
	       a->index_off == b->index_off && a->scale == b->scale;
}

static bool same_env(const struct ebpf_env *a, const struct ebpf_env *b)
{
	unsigned int i;

	if (a->nargs != b->nargs || a->skips_caller != b->skips_caller || a->exe_dev != b->exe_dev ||
	    a->exe_ino != b->exe_ino)
		return false;
	for (i = 0; i < a->nargs; i++)
		if (!same_operand(&a->args[i], &b->args[i]))
			return false;
	return true;
}

static int arm_sites(struct session *s, struct job *j, int handle)
{
	return s->place->ops->arm_sites(s->place, handle, j->sites, j->nsites, j->en->probe->pid, &j->err);
}

/* The job that a site with these operands belongs to, made if need be. */
static struct job *job_for(struct session *s, struct jobs *jobs, struct enabled *en, bool ret,
			   const struct ebpf_env *env)
{
	struct job *j;
	size_t i;

	for (i = 0; i < jobs->n; i++) {
		j = &jobs->v[i];
		if (j->arm == arm_sites && j->en->probe->pid == en->probe->pid && j->ret == ret &&
		    same_clauses(j->en, en) && same_env(&j->env, env))
			return j;
	}
	j = add_job(s, jobs, en, env);
	j->arm = arm_sites;
	j->multi = s->place->ops->use_multi(s->place, en->probe->pid);
	j->ret = ret;
	return j;
}

static void enable_sites(struct session *s, struct jobs *jobs, struct enabled *en)
{
	const struct probe *p = en->probe;
	unsigned int i, n;
	struct job *j;

	for (i = 0; i < p->nsites; i++) {
		const struct site *site = p->sites[i];
		struct ebpf_env env = base_env(s, EBPF_CTX_UPROBE);

		/* A multi link filters by process itself; other sites fire in whatever shares the memory. */
		env.only_pid = s->place->ops->use_multi(s->place, p->pid) ? 0 : p->pid;
		env.exe_dev = p->exe_dev;
		env.exe_ino = p->exe_ino;
		env.skips_caller = site->skips_caller;
		env.nargs = site->nargs;
		for (n = 0; n < site->nargs; n++)
			probe_site_arg(site, n, &env.args[n]);
		j = job_for(s, jobs, en, site->ret, &env);
		j->sites = arena_grow(s->arena, j->sites, &j->cap, j->nsites, sizeof(*j->sites));
		j->sites[j->nsites++] = (struct place_site){ site->path, site->off, site->sem_off,
							      (uint32_t)(en - s->enabled), site->ret };
	}
}

static int refuse_place(const struct probe *p, struct strbuf *err)
{
	strbuf_printf(err, "%s:%s:%s:%s cannot fire in the target place, where only Python's markers from dtap's agent do:"
		      " use -x place=kernel", p->prov, p->mod, p->func, p->name);
	return -EINVAL;
}

/* --- tracepoints -------------------------------------------------------------------------------------- */

/* Do these system calls share a program? */
static bool same_tp_group(const struct enabled *a, const struct enabled *b)
{
	return a->probe->kind == PROBE_TP && a->probe->tp->syscalls && a->probe->tp->syscalls == b->probe->tp->syscalls &&
	       same_clauses(a, b);
}

static int arm_tracepoint(struct session *s, struct job *j, int handle)
{
	return s->place->ops->arm_tracepoint(s->place, handle, j->env.tp->name, &j->err);
}

/* Which of the kernel's functions call the program: for the way from the program to who made it run. */
static void find_own(struct session *s, struct ebpf_env *env)
{
	char names[EBPF_TP_OWN][64] = { "bpf_trace_run*" };

	if (!session_uses(s, IR_B_CALLER) && !session_uses(s, IR_B_STACKDEPTH))
		return;
	if (!s->ksyms)
		s->ksyms = ksyms_read();
	snprintf(names[1], sizeof(names[1]), "__traceiter_%s", env->tp->name);
	snprintf(names[2], sizeof(names[2]), "__bpf_trace_%s", env->tp->name);
	for (int i = 0; s->ksyms && i < EBPF_TP_OWN; i++)
		ksyms_range(s->ksyms, names[i], &env->own[i].lo, &env->own[i].hi);
}

/* The program for the tracepoint of @en, unless it is that of an entry of the table before it. */
static int enable_tp(struct session *s, struct jobs *jobs, struct enabled *en, struct strbuf *err)
{
	const struct ebpf_tp *tp = en->probe->tp;
	struct ebpf_env env = base_env(s, EBPF_CTX_TP);
	uint32_t i = (uint32_t)(en - s->enabled), first = 0;
	int e;

	env.only_pid = en->probe->pid;
	if (!s->place->ops->arm_tracepoint)
		return refuse_place(en->probe, err);
	if (!tp->syscalls)
		first = i;
	while (first < i && !same_tp_group(&s->enabled[first], en))
		first++;
	if (tp->syscalls) {
		struct ebpf_syscall call = { first + 1, i };

		e = s->place->ops->set_syscall(s->place, EBPF_SYSCALL_KEY(tp->syscall, tp->syscalls == EBPF_TP_EXIT), &call);
		if (e || first < i)
			return e;
	}
	env.tp = tp;
	find_own(s, &env);
	env.probe = i;
	env.group = first + 1;
	add_job(s, jobs, en, &env)->arm = arm_tracepoint;
	return 0;
}

/* --- in the target ------------------------------------------------------------------------------------ */

/* The arguments that @en's clauses read, bit n for arg n. */
static uint32_t uses_of(const struct enabled *en)
{
	uint32_t uses = 0, c, b, i;

	for (c = 0; c < en->nclauses; c++)
		for (b = 0; b < en->clauses[c]->nblocks; b++)
			for (i = 0; i < en->clauses[c]->blocks[b]->n; i++) {
				const struct ir_insn *insn = &en->clauses[c]->blocks[b]->insns[i];

				if (insn->op == IR_ARG && insn->imm >= 0 && insn->imm < 32)
					uses |= (uint32_t)1 << insn->imm;
			}
	return uses;
}

static int arm_marker(struct session *s, struct job *j, int handle)
{
	return s->place->ops->arm_marker(s->place, handle, &j->marker, &j->err);
}

static int enable_marker(struct session *s, struct jobs *jobs, struct enabled *en, struct strbuf *err)
{
	struct ebpf_env env = base_env(s, EBPF_CTX_TARGET);
	struct place_marker m = { .probe = (uint32_t)(en - s->enabled), .pid = en->probe->pid, .uses = uses_of(en) };
	int marker = probe_marker(en->probe);
	uint32_t arg, map;
	unsigned int classes;
	struct job *j;

	if (en->nclauses == 1 && ebpf_is_count(s->unit, en->clauses[0], &arg, &map, &classes)) {
		m.count_arg = arg + 1;
		m.count_map = map;
		m.count_classes = classes;
	}
	if (marker < 0)
		return refuse_place(en->probe, err);
	m.marker = (uint32_t)marker;
	j = add_job(s, jobs, en, &env);
	j->arm = arm_marker;
	j->marker = m;
	return 0;
}

/* --- what the tracer fires itself, and what the kernel's clock does ------------------------------------- */

static int arm_run(struct session *s, struct job *j, int handle)
{
	(void)s;
	j->en->prog = handle;
	return 0;
}

static int arm_profile(struct session *s, struct job *j, int handle)
{
	return s->place->ops->arm_profile(s->place, handle, j->en->probe->period_ns, (uint32_t)(j->en - s->enabled),
					  &j->err);
}

static int enable_other(struct session *s, struct jobs *jobs, struct enabled *en, struct strbuf *err)
{
	bool profile = en->probe->kind == PROBE_PROFILE;
	struct ebpf_env env = base_env(s, profile ? EBPF_CTX_PERF : EBPF_CTX_RUN);

	if (profile && s->place->in_target)
		return refuse_place(en->probe, err);
	add_job(s, jobs, en, &env)->arm = profile ? arm_profile : arm_run;
	return 0;
}

/* Ask about the processes that start, when more is needed to walk their stacks than the kernel knows. */
static int watch_exec(struct session *s, struct jobs *jobs, struct strbuf *err)
{
	static const struct ebpf_tp tp = { .name = "sched_process_exec" };
	struct ebpf_env env = base_env(s, EBPF_CTX_TP);
	const struct ebpf_prog *prog;
	const char *why = NULL;
	struct job *j;

	if (!walks(s) || !s->place->ops->arm_tracepoint)
		return 0;
	env.tp = &tp;
	prog = ebpf_compile_ask(s->unit, &env, &why);
	if (!prog) {
		strbuf_puts(err, why);
		return -EINVAL;
	}
	j = add_job(s, jobs, NULL, &env);
	j->prog = prog;
	j->arm = arm_tracepoint;
	return 0;
}

/* Asked for each probe: a script may have hundreds, of long programs. */
void session_find_uses(struct session *s)
{
	const struct ir_prog *prog = s->conf.prog;

	_Static_assert(IR_B_MAX <= 64, "a bit for each builtin");
	for (uint32_t i = 0; i < prog->nclauses; i++)
		for (uint32_t b = 0; b < prog->clauses[i]->nblocks; b++) {
			const struct ir_block *k = prog->clauses[i]->blocks[b];

			for (uint32_t j = 0; j < k->n; j++)
				if (k->insns[j].op == IR_BUILTIN)
					s->uses |= 1ull << k->insns[j].bi;
		}
}

bool session_uses(const struct session *s, enum ir_builtin bi)
{
	return s->uses >> bi & 1;
}

static bool calls(const struct session *s, enum ir_fn fn)
{
	const struct ir_prog *prog = s->conf.prog;

	for (uint32_t i = 0; i < prog->nclauses; i++)
		for (uint32_t b = 0; b < prog->clauses[i]->nblocks; b++) {
			const struct ir_block *k = prog->clauses[i]->blocks[b];

			for (uint32_t j = 0; j < k->n; j++)
				if (k->insns[j].op == IR_CALL && k->insns[j].fn == fn)
					return true;
		}
	return false;
}

/* Do programs ask what the kernel knows of tasks and no helper tells? */
static bool asks_of_tasks(const struct session *s)
{
	static const enum ir_builtin builtins[] = { IR_B_PPID, IR_B_VTIMESTAMP, IR_B_EXECARGS, IR_B_CWD, IR_B_ROOT };
	static const enum ir_fn fns[] = { IR_FN_PROGENYOF, IR_FN_SELF, IR_FN_TASK, IR_FN_PATH };
	size_t i;

	for (i = 0; i < s->nenabled; i++) {
		const struct probe *p = s->enabled[i].probe;

		/* uid and gid of another thread than the one that runs; of one program */
		if ((p->kind == PROBE_TP && p->tp->task.kind) || p->exe_ino)
			return true;
	}
	for (i = 0; i < sizeof(builtins) / sizeof(*builtins); i++)
		if (session_uses(s, builtins[i]))
			return true;
	for (i = 0; i < sizeof(fns) / sizeof(*fns); i++)
		if (calls(s, fns[i]))
			return true;
	return walks(s);
}

/* Reading the kernel's type information takes its time: only for scripts that need it. */
static int find_task(struct session *s, struct strbuf *err)
{
	return asks_of_tasks(s) ? btf_task(&s->task, err) : 0;
}

/* Of many sites some may lie on instructions that nothing can be armed on. */
static void say_skipped(struct session *s)
{
	size_t n = s->place->ops->skipped(s->place);
	struct strbuf text = { 0 };

	strbuf_printf(&text, "%s: %zu site%s left out: the kernel cannot put a breakpoint on the instruction%s there\n",
		      s->conf.command, n, n == 1 ? " was" : "s were", n == 1 ? "" : "s");
	s->conf.message(s->conf.message_ctx, strbuf_str(&text));
	strbuf_fini(&text);
}

int session_arm(struct session *s, struct strbuf *err)
{
	struct jobs jobs = { 0 };
	uint32_t i;
	int e;

	e = s->place->in_target ? 0 : find_task(s, err);
	if (e)
		return e;
	e = fill_probe_table(s, 0);
	if (e) {
		strbuf_printf(err, "cannot fill the probe table: %s", strerror(-e));
		return e;
	}
	for (i = 0; i < s->nenabled && !e; i++) {
		struct enabled *en = &s->enabled[i];

		if (en->probe->kind == PROBE_SITES && s->place->in_target)
			e = enable_marker(s, &jobs, en, err);
		else if (en->probe->kind == PROBE_SITES)
			enable_sites(s, &jobs, en);
		else if (en->probe->kind == PROBE_TP)
			e = enable_tp(s, &jobs, en, err);
		else if (en->probe->kind != PROBE_ERROR)	/* its clauses are part of the other programs */
			e = enable_other(s, &jobs, en, err);
	}
	if (!e)
		e = watch_exec(s, &jobs, err);
	if (!e)
		e = run_jobs(s, &jobs, err);
	if (!e && s->place->ops->skipped && s->place->ops->skipped(s->place))
		say_skipped(s);
	if (!e && s->place->ops->ready)
		e = s->place->ops->ready(s->place, err);
	return e;
}

int session_look_again(struct session *s)
{
	uint32_t first = session_match_again(s), i;
	struct strbuf err = { 0 };
	struct jobs jobs = { 0 };
	int e;

	if (first == s->nenabled)
		return 0;
	e = fill_probe_table(s, first);
	for (i = first; i < s->nenabled; i++)
		enable_sites(s, &jobs, &s->enabled[i]);
	if (!e)
		e = run_jobs(s, &jobs, &err);
	if (e)
		session_warn(s, "cannot trace what was loaded later: %s", err.len ? strbuf_str(&err) : strerror(-e));
	strbuf_fini(&err);
	return 0;
}

/*
 * From probes to armed sites: one program for each set of sites that can share it; loading and arming.
 *
 * Sites share a program when they have the same clauses and the same locations of arguments.  That is usual for the
 * many sites of a provider such as pid, and for inlined copies of a marker; other sites get separate programs, which
 * cost little.
 *
 * Programs are compiled one after the other, then loaded and armed in parallel, if the place supports it: the kernel
 * takes milliseconds to verify one, and waits some 20 ms until its first breakpoint is in place.
 */
#include "session/private.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/perf_event.h>

#include "base/arena.h"
#include "base/glob.h"
#include "base/parallel.h"
#include "base/strbuf.h"
#include "elf/ksyms.h"
#include "ir/facts.h"
#include "place/kernel.h"
#include "place/target.h"
#include "session/newcomers.h"

static int fill_probe_table(struct session *s, uint32_t first)
{
	struct abi_probe entry;
	uint32_t i;
	int e = 0;

	for (i = first; i < s->on.n && !e; i++) {
		const struct probe *p = s->on.v[i].probe;

		memset(&entry, 0, sizeof(entry));
		entry.id = p->id;
		entry.epid = s->on.v[i].epid;
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

/* A program to load, and what fires it. */
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
	struct ebpf_section *sections;	/* of system calls, the first with en's clauses */
	size_t nsections, sections_cap;
	uint32_t size;			/* ebpf_section_size() of all */
	bool split;			/* the kernel refused the program: try with fewer sections */
	int e;				/* its result */
	struct strbuf err, log;
};

struct jobs {
	struct session *s;
	struct job *v;
	size_t n, cap;
	atomic_size_t failed;		/* the first job that failed; no later job is started */
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

/* Generate the program that runs @j's clauses. */
static int compile(struct session *s, struct job *j, struct strbuf *err)
{
	const struct enabled *en = j->en;
	struct ebpf_prog *prog;
	const char *why = NULL;

	if (j->prog)
		return 0;
	if (j->nsections)
		prog = ebpf_compile_sections(s->unit, &j->env, j->sections, (unsigned int)j->nsections, s->on.errors,
					     s->on.nerrors, &why);
	else
		prog = ebpf_compile(s->unit, &j->env, en->clauses, en->nclauses, s->on.errors, s->on.nerrors, &why);
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
	bool several;
	int handle;

	if (i > jobs->failed)
		return;
	several = j->nsections > 1;
	handle = s->place->ops->load(s->place, j->prog, j->multi, several ? NULL : &j->err,
				     s->conf.verifier_log && !several ? &j->log : NULL);
	j->e = handle;
	j->split = handle < 0 && several;
	if (handle >= 0)
		j->e = j->arm(s, j, handle);
	if (j->split)
		return;
	if (!j->e)
		return;
	first = jobs->failed;
	while (i < first && !atomic_compare_exchange_weak(&jobs->failed, &first, i))
		;
}

/*
 * The verifier's time grows faster than a program's length, so long clauses have programs of their own.  Measured with
 * all system calls and with their texts in an array (CPU time, Linux 6.18): 1 section 342 and 1836 ms, 4 305 and 948,
 * 8 351 and 966, 48 659 and 3842.
 */
enum { MOST_SECTIONS = 8, MOST_SIZE = 1000 };

/* The job with a section for @en's clauses, and the section; with none, the last job that has room, or NULL. */
static struct job *find_call(const struct jobs *jobs, const struct enabled *en, uint32_t size, size_t *section)
{
	const struct ebpf_tp *tp = en->probe->tp;
	struct job *room = NULL;

	for (size_t i = 0; i < jobs->n; i++) {
		struct job *j = &jobs->v[i];

		if (!j->nsections || j->env.tp->syscalls != tp->syscalls || j->env.only_pid != en->probe->pid)
			continue;
		for (*section = 0; *section < j->nsections; (*section)++) {
			const struct ebpf_section *n = &j->sections[*section];

			if (n->n == en->nclauses && !memcmp(n->clauses, en->clauses, n->n * sizeof(*n->clauses)))
				return j;
		}
		if (j->nsections < MOST_SECTIONS && j->size + size <= MOST_SIZE && !j->env.tp->nargs && !tp->nargs)
			room = j;
	}
	if (room)
		*section = room->nsections;
	return room;
}

/* Tell the programs which section runs for which system call. */
static int name_calls(struct session *s, const struct jobs *jobs)
{
	int e = 0;

	for (uint32_t i = 0; i < s->on.n && !e; i++) {
		const struct probe *p = s->on.v[i].probe;
		struct ebpf_syscall call = { .probe = i };
		const struct job *j;
		size_t section;

		if (p->kind != PROBE_TP || !p->tp->syscalls)
			continue;
		j = find_call(jobs, &s->on.v[i], UINT32_MAX / 2, &section);
		if (!j)
			continue;
		call.group = j->env.group;
		call.section = (uint32_t)section;
		e = s->place->ops->set_syscall(s->place, EBPF_SYSCALL_KEY(p->tp->syscall, p->tp->syscalls == EBPF_TP_EXIT), &call);
	}
	return e;
}

/* Load and arm what has not been. */
static void run_new(struct session *s, struct jobs *jobs, size_t first)
{
	struct jobs some = { s, jobs->v + first, jobs->n - first, 0, jobs->n - first };

	if (s->place->parallel)
		parallel_each(some.n, run_job, &some);
	else
		for (size_t i = 0; i < some.n; i++)
			run_job(&some, i);
	jobs->failed = first + some.failed;
}

/* Instead of each job to split, whose program never runs, two with half of its sections each. */
static int split_jobs(struct session *s, struct jobs *jobs, size_t first, struct strbuf *err)
{
	size_t n = jobs->n;
	int e = 0;

	for (size_t i = first; i < n; i++) {
		if (!jobs->v[i].split)
			continue;
		for (int half = 0; half < 2 && !e; half++) {
			struct job old = jobs->v[i], *j = add_job(s, jobs, old.en, &old.env);

			j->arm = old.arm;
			j->nsections = half ? old.nsections - old.nsections / 2 : old.nsections / 2;
			j->sections = old.sections + (half ? old.nsections / 2 : 0);
			j->env.group = (uint32_t)jobs->n;
			e = compile(s, j, err);
		}
		jobs->v[i].nsections = 0;
	}
	return e;
}

/* Do all jobs.  0, or the error of the first that failed. */
static int run_jobs(struct session *s, struct jobs *jobs, struct strbuf *err)
{
	size_t i, first = 0, n;
	int e = 0;

	for (i = 0; i < jobs->n && !e; i++)
		e = compile(s, &jobs->v[i], err);
	if (e)
		return e;
	do {
		n = jobs->n;
		run_new(s, jobs, first);
		if (jobs->failed < n)
			break;
		e = split_jobs(s, jobs, first, err);
		first = n;
	} while (!e && jobs->n > n);
	if (!e)
		e = name_calls(s, jobs);
	if (!e && jobs->failed < jobs->n) {
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

/* What a firing of @hook takes, if costs are asked for. */
static uint32_t hook_ns(const struct session *s, enum place_hook hook)
{
	bool asked = s->place->ops->hook_ns && s->unit->maps[EBPF_MAP_COSTS].type != BPF_MAP_TYPE_UNSPEC;

	return asked ? s->place->ops->hook_ns(s->place, hook) : 0;
}

/* The part of the environment that is the same for all programs. */
static struct ebpf_env base_env(const struct session *s, enum ebpf_ctx ctx)
{
	static const enum place_hook hooks[] = {
		[EBPF_CTX_UPROBE] = PLACE_SITE, [EBPF_CTX_TP] = PLACE_TRACEPOINT, [EBPF_CTX_PERF] = PLACE_EVENT,
	};
	struct ebpf_env env = { .ctx = ctx };

	if (ctx == EBPF_CTX_UPROBE || ctx == EBPF_CTX_TP || ctx == EBPF_CTX_PERF)
		env.hook_ns = hook_ns(s, hooks[ctx]);
	env.error_probe = s->on.error_probe;
	if (ctx != EBPF_CTX_RUN)
		env.only_cpu = (uint32_t)(s->opts.v[OPT_cpu] + 1);
	env.sleepable = ctx == EBPF_CTX_UPROBE && s->place->sleepable;
	env.user_space = s->place->in_target;
	env.turns_called = s->place->turns_called;
	env.pid_ns = s->kernel.pid_ns && !env.user_space;
	env.ns_dev = s->kernel.ns_dev;
	env.ns_ino = s->kernel.ns_ino;
	env.ns_level = s->kernel.ns_level;
	env.task_parent = s->kernel.task.real_parent;
	env.task_tgid = s->kernel.task.tgid;
	env.task_runtime = s->kernel.task.sum_exec_runtime;
	env.task_exec_start = s->kernel.task.exec_start;
	env.task_switches = s->kernel.task.nvcsw;
	env.task_preempted = s->kernel.task.nivcsw;
	env.task_last_arrival = s->kernel.task.last_arrival;
	env.task_cfs_rq = s->kernel.task.cfs_rq;
	env.cfs_rq_rq = s->kernel.task.rq;
	env.rq_clock = s->kernel.task.clock;
	env.rq_clock_task = s->kernel.task.clock_task;
	env.task_mm = s->kernel.task.mm;
	env.mm_arg_start = s->kernel.task.arg_start;
	env.mm_arg_end = s->kernel.task.arg_end;
	env.mm_exe = s->kernel.task.exe_file;
	env.file_inode = s->kernel.task.f_inode;
	env.inode_number = s->kernel.task.i_ino;
	env.inode_super = s->kernel.task.i_sb;
	env.super_dev = s->kernel.task.s_dev;
	env.mm_start_code = s->kernel.task.start_code;
	env.mm_start_stack = s->kernel.task.start_stack;
	env.task_tls = s->kernel.task.tls;
	env.tasks = &s->kernel.task.tasks;
	env.paths = &s->kernel.task.paths;
	env.returns = &s->kernel.task.returns;
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

	if (a->nargs != b->nargs || a->skips_caller != b->skips_caller || a->gil != b->gil || a->exe_dev != b->exe_dev ||
	    a->exe_ino != b->exe_ino || a->away != b->away || a->named != b->named)
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

/* The job for a site with these operands, created if needed. */
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

/* Arm the sites of @en that are not armed. */
static void enable_sites(struct session *s, struct jobs *jobs, struct enabled *en)
{
	const struct probe *p = en->probe;
	unsigned int i, n;
	struct job *j;

	for (i = en->narmed; i < p->nsites; i++) {
		const struct site *site = p->sites[i];
		struct ebpf_env env = base_env(s, EBPF_CTX_UPROBE);

		/*
		 * A multi link filters by process itself; other sites fire in every process that shares the memory.
		 */
		env.only_pid = s->place->ops->use_multi(s->place, p->pid) ? 0 : p->pid;
		env.exe_dev = p->exe_dev;
		env.exe_ino = p->exe_ino;
		env.skips_caller = site->skips_caller;
		env.gil = site->gil;
		if (p->kind == PROBE_FUNCTION) {
			env.away = target_place_id(s->away);
			env.named = session_is_pattern(p);
			env.wanted = en->wanted;
			env.nwanted = en->nwanted;
		}
		if (site->ret)
			env.hook_ns = hook_ns(s, PLACE_SITE_RETURN);
		env.nargs = site->nargs;
		for (n = 0; n < site->nargs; n++)
			probe_site_arg(site, n, &env.args[n]);
		j = job_for(s, jobs, en, site->ret, &env);
		j->sites = arena_grow(s->arena, j->sites, &j->cap, j->nsites, sizeof(*j->sites));
		j->sites[j->nsites++] = (struct place_site){ site->file, site->off,
							  site->sem_off ? site->sem_off : site->shared_sem_off,
							      (uint32_t)(en - s->on.v), site->ret };
	}
	en->narmed = p->nsites;
}

static int refuse_place(const struct probe *p, struct strbuf *err)
{
	strbuf_printf(err, "%s:%s:%s:%s cannot fire in the target place, where only Python's markers from dtap's agent do:"
		      " use -x place=kernel", p->prov, p->mod, p->func, p->name);
	return -EINVAL;
}

/* --- tracepoints -------------------------------------------------------------------------------------- */

static int arm_tracepoint(struct session *s, struct job *j, int handle)
{
	return s->place->ops->arm_tracepoint(s->place, handle, j->env.tp->name, &j->err);
}

/* Find the kernel's functions between the program and the code that fired it, to skip them in stacks. */
static void find_own(struct session *s, struct ebpf_env *env)
{
	char names[EBPF_TP_OWN][64] = { "bpf_trace_run*" };

	if (!session_uses(s, IR_B_CALLER) && !session_uses(s, IR_B_STACKDEPTH))
		return;
	if (!s->kernel.ksyms)
		s->kernel.ksyms = ksyms_read();
	snprintf(names[1], sizeof(names[1]), "__traceiter_%s", env->tp->name);
	snprintf(names[2], sizeof(names[2]), "__bpf_trace_%s", env->tp->name);
	for (int i = 0; s->kernel.ksyms && i < EBPF_TP_OWN; i++)
		ksyms_range(s->kernel.ksyms, names[i], &env->own[i].lo, &env->own[i].hi);
}

/* Add the program for the tracepoint of @en, unless an earlier one has its clauses, or room for them. */
static int enable_tp(struct session *s, struct jobs *jobs, struct enabled *en, struct strbuf *err)
{
	const struct ebpf_tp *tp = en->probe->tp;
	struct ebpf_section mine = { en->clauses, en->nclauses };
	uint32_t size = tp->syscalls ? ebpf_section_size(&mine) : 0;
	size_t section = 0;
	struct job *j = tp->syscalls ? find_call(jobs, en, size, &section) : NULL;

	if (!s->place->ops->arm_tracepoint)
		return refuse_place(en->probe, err);
	if (j && section < j->nsections)
		return 0;
	if (!j) {
		struct ebpf_env env = base_env(s, EBPF_CTX_TP);

		env.only_pid = en->probe->pid;
		env.tp = tp;
		find_own(s, &env);
		env.probe = (uint32_t)(en - s->on.v);
		j = add_job(s, jobs, en, &env);
		j->env.group = (uint32_t)jobs->n;
		j->arm = arm_tracepoint;
		if (!tp->syscalls)
			return 0;
	}
	j->sections = arena_grow(s->arena, j->sections, &j->sections_cap, j->nsections, sizeof(*j->sections));
	j->sections[j->nsections++] = mine;
	j->size += size;
	return 0;
}

/* --- in the target ------------------------------------------------------------------------------------ */

/* The arguments that @en's clauses read, bit n for arg n. */
static uint32_t uses_of(const struct enabled *en)
{
	struct ir_walk w = ir_walk_clauses(en->clauses, en->nclauses);
	uint32_t uses = 0;

	for (const struct ir_insn *i; (i = ir_next(&w));)
		if (i->op == IR_ARG && i->imm >= 0 && i->imm < 32)
			uses |= (uint32_t)1 << i->imm;
	return uses;
}

static int arm_marker(struct session *s, struct job *j, int handle)
{
	return s->place->ops->arm_marker(s->place, handle, &j->marker, &j->err);
}

static bool has_clause(const struct enabled *en, const struct ir_clause *clause)
{
	for (size_t i = 0; i < en->nclauses; i++)
		if (en->clauses[i] == clause)
			return true;
	return false;
}

/*
 * A pattern such as python* also means the markers of a program that is no Python and calls its provider so.  That it is not
 * served there must not keep it from Pythons: does each clause of @en have a marker of the agent's as well?
 */
static bool is_of_another_program(const struct session *s, const struct enabled *en)
{
	bool others = en->probe->kind == PROBE_SITES && en->probe->pid_suffix;

	for (size_t i = 0; i < en->nclauses && others; i++) {
		others = false;
		for (size_t k = 0; k < s->on.n && !others; k++)
			others = probe_marker_or_twin(s->on.v[k].probe) >= 0 && has_clause(&s->on.v[k], en->clauses[i]);
	}
	return others;
}

/* What the agent must know of @en to fire it. */
static struct place_marker marker_of(const struct session *s, const struct enabled *en)
{
	const struct probe *p = en->probe;
	struct place_marker m = {
		.marker = (uint32_t)probe_marker_or_twin(p), .probe = (uint32_t)(en - s->on.v), .pid = p->pid, .uses = uses_of(en),
	};

	if (p->kind == PROBE_FUNCTION) {
		m.module = p->mod;
		m.function = p->func;
		m.line = p->line;
		m.by_script = p->by_script;
		m.from_first = p->from_first;
		m.file = p->file;
	}
	return m;
}

static int enable_marker(struct session *s, struct jobs *jobs, struct enabled *en, struct strbuf *err)
{
	struct ebpf_env env = base_env(s, EBPF_CTX_TARGET);
	struct place_marker m = marker_of(s, en);
	int marker = probe_marker_or_twin(en->probe);
	uint32_t arg, map;
	unsigned int classes;
	struct job *j;

	if (en->nclauses == 1 && ebpf_is_count(s->unit, en->clauses[0], &arg, &map, &classes)) {
		m.count_arg = arg + 1;
		m.count_map = map;
		m.count_classes = classes;
	} else if (en->nclauses == 1 && ebpf_is_count_by_code(s->unit, en->clauses[0], &map, &classes)) {
		m.count_arg = ABI_COUNT_BY_CODE;
		m.count_map = map;
		m.count_classes = classes;
	}
	if (en->nclauses == 1)
		m.known = ebpf_known(s->unit, en->clauses[0]);
	if (marker < 0)
		return is_of_another_program(s, en) ? 0 : refuse_place(en->probe, err);
	env.settling = probe_settling(en->probe);
	j = add_job(s, jobs, en, &env);
	j->arm = arm_marker;
	j->marker = m;
	return 0;
}

/* --- functions by name, in the kernel ------------------------------------------------------------------- */

bool session_is_pattern(const struct probe *p)
{
	return glob_is(p->mod) || glob_is(p->func);
}

/* The agents find the functions, by what they are told in memory that they share with the tracer. */
static int make_away(struct session *s, struct strbuf *err)
{
	bool some = false;

	for (uint32_t i = 0; i < s->on.n; i++)
		some = some || s->on.v[i].probe->kind == PROBE_FUNCTION;
	return some ? target_place_away(s->unit->asks_values, s->unit->asks_tasks, &s->away, err) : 0;
}

static int enable_away(struct session *s, struct jobs *jobs, struct enabled *en, struct strbuf *err)
{
	struct place_marker m = marker_of(s, en);
	const char *why = NULL;

	en->wanted = ebpf_wanted(s->unit, en->clauses, en->nclauses, &en->nwanted, &why);
	if (!en->wanted) {
		strbuf_puts(err, why);
		return -EINVAL;
	}
	m.wanted = en->wanted;
	m.nwanted = en->nwanted;
	probe_add_agents(s->conf.probes, en->probe);
	enable_sites(s, jobs, en);
	return s->away->ops->arm_marker(s->away, PLACE_AWAY, &m, err);
}

/* --- what the tracer fires itself, and what the kernel's clock does ------------------------------------- */

static int arm_run(struct session *s, struct job *j, int handle)
{
	(void)s;
	j->en->prog = handle;
	return 0;
}

static int arm_event(struct session *s, struct job *j, int handle)
{
	const struct probe *p = j->en->probe;
	const struct ebpf_event clock = {
		.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK, .period = p->period_ns,
		.one_cpu = p->kind == PROBE_TICK, .cpu = s->opts.v[OPT_cpu] > 0 ? (uint32_t)s->opts.v[OPT_cpu] : 0,
	};

	return s->place->ops->arm_event(s->place, handle, p->kind == PROBE_EVENT ? p->event : &clock,
					(uint32_t)(j->en - s->on.v), &j->err);
}

bool session_interrupts(const struct session *s, const struct enabled *en)
{
	struct ir_walk w = ir_walk_clauses(en->clauses, en->nclauses);

	if (s->place->in_target || en->probe->kind != PROBE_TICK || strcmp(en->probe->prov, "profile"))
		return false;
	for (const struct ir_insn *i; (i = ir_next(&w));)
		if (ir_effects(i) & IR_CURRENT)
			return true;
	return false;
}

static int enable_other(struct session *s, struct jobs *jobs, struct enabled *en, struct strbuf *err)
{
	const struct probe *p = en->probe;
	bool event = p->kind == PROBE_PROFILE || p->kind == PROBE_EVENT || session_interrupts(s, en);
	struct ebpf_env env = base_env(s, event ? EBPF_CTX_PERF : EBPF_CTX_RUN);

	if (event && s->place->in_target)
		return refuse_place(p, err);
	if (p->kind == PROBE_EVENT) {
		env.only_pid = p->pid;
		env.exe_dev = p->exe_dev;
		env.exe_ino = p->exe_ino;
	}
	add_job(s, jobs, en, &env)->arm = event ? arm_event : arm_run;
	return 0;
}

/* Arm @prog, a program of dtap's own, at the tracepoint of @env; NULL: it cannot be made, for the reason @why. */
static int add_own(struct session *s, struct jobs *jobs, const struct ebpf_env *env, const struct ebpf_prog *prog,
		   const char *why, struct strbuf *err)
{
	struct job *j;

	if (!prog) {
		strbuf_puts(err, why);
		return -EINVAL;
	}
	j = add_job(s, jobs, NULL, env);
	j->prog = prog;
	j->arm = arm_tracepoint;
	return 0;
}

/* Watch for processes that start, if walking their stacks needs more than the kernel knows. */
static int watch_exec(struct session *s, struct jobs *jobs, struct strbuf *err)
{
	static const struct ebpf_tp tp = { .name = "sched_process_exec" };
	struct ebpf_env env = base_env(s, EBPF_CTX_TP);
	const struct ebpf_prog *prog;
	const char *why = NULL;

	if (!walks(s) || !s->place->ops->arm_tracepoint)
		return 0;
	env.tp = &tp;
	prog = ebpf_compile_ask(s->unit, &env, &why);
	return add_own(s, jobs, &env, prog, why, err);
}

/* Keep the stacks of threads that leave their CPU, if a clause asks for that of the thread that gets it. */
static int keep_stacks(struct session *s, struct jobs *jobs, struct strbuf *err)
{
	static const struct ebpf_tp tp = { .name = "sched_switch" };
	struct ebpf_env env = base_env(s, EBPF_CTX_TP);
	const struct ebpf_prog *prog;
	const char *why = NULL;

	if (s->unit->maps[EBPF_MAP_KEPT].type == BPF_MAP_TYPE_UNSPEC || !s->place->ops->arm_tracepoint)
		return 0;
	env.tp = &tp;
	env.only_cpu = 0;
	find_own(s, &env);
	prog = ebpf_compile_keep(s->unit, &env, &why);
	return add_own(s, jobs, &env, prog, why, err);
}

/* Computed once: it is needed for each probe, and a script may have hundreds with long programs. */
void session_find_uses(struct session *s)
{
	struct ir_walk w = ir_walk_prog(s->conf.prog);

	_Static_assert(IR_B_MAX <= 64, "a bit for each builtin");
	for (const struct ir_insn *i; (i = ir_next(&w));) {
		s->uses.effects |= ir_effects(i);
		if (i->op == IR_BUILTIN)
			s->uses.builtins |= 1ull << i->bi;
	}
}

bool session_uses(const struct session *s, enum ir_builtin bi)
{
	return s->uses.builtins >> bi & 1;
}

/* Do programs need facts from the kernel's struct task_struct that no helper returns? */
static bool asks_of_tasks(const struct session *s)
{
	size_t i;

	for (i = 0; i < s->on.n; i++) {
		const struct probe *p = s->on.v[i].probe;

		/* uid and gid of another thread; a single program */
		if ((p->kind == PROBE_TP && p->tp->task.kind) || p->exe_ino)
			return true;
	}
	return s->uses.effects & IR_TASKS || walks(s);
}

/*
 * Reading the kernel's type information is slow: only for scripts that need it, and in a pid namespace.  There, without it,
 * processes of namespaces within have no numbers.
 */
static int find_task(struct session *s, struct strbuf *err)
{
	bool asks = asks_of_tasks(s);
	int e = asks || s->kernel.pid_ns ? btf_task(&s->kernel.task, err) : 0;

	if (e && !asks) {
		strbuf_clear(err);
		return 0;
	}
	if (!e && s->kernel.pid_ns)
		s->kernel.ns_level = kernel_pid_level(&s->kernel.task.tasks);
	return e;
}

/* Report sites that could not be armed: on instructions that cannot be probed, or in files that have changed. */
static void say_skipped(struct session *s)
{
	size_t changed, n = s->place->ops->skipped(s->place, &changed);
	struct strbuf text = { 0 };

	if (n && !s->opts.v[OPT_quiet])
		strbuf_printf(&text, "%s: %zu site%s left out: the kernel cannot put a breakpoint on the instruction%s there\n",
			      s->conf.command, n, n == 1 ? " was" : "s were", n == 1 ? "" : "s");
	if (changed)
		strbuf_printf(&text, "%s: %zu site%s left out: the file was rewritten after it had been read; start again to trace"
			      " %s\n", s->conf.command, changed, changed == 1 ? " was" : "s were", changed == 1 ? "it" : "them");
	if (text.len)
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
	e = s->place->in_target ? 0 : make_away(s, err);
	for (i = 0; i < s->on.n && !e; i++) {
		struct enabled *en = &s->on.v[i];

		if (s->place->in_target && (en->probe->kind == PROBE_SITES || en->probe->kind == PROBE_FUNCTION))
			e = enable_marker(s, &jobs, en, err);
		else if (en->probe->kind == PROBE_FUNCTION)
			e = enable_away(s, &jobs, en, err);
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
		e = keep_stacks(s, &jobs, err);
	if (!e)
		e = run_jobs(s, &jobs, err);
	if (!e && s->place->ops->skipped)
		say_skipped(s);
	if (!e && s->place->ops->ready)
		e = s->place->ops->ready(s->place, err);
	if (!e && s->away)
		e = s->away->ops->ready(s->away, err);
	return e;
}

/* Look at what was loaded since, or (@pid is not 0) at process @pid, which has started its program since. */
static void look_again(struct session *s, uint32_t pid)
{
	uint32_t first = session_match_again(s, pid);
	struct strbuf err = { 0 };
	struct jobs jobs = { 0 };
	int e = first < s->on.n ? fill_probe_table(s, first) : 0;

	for (uint32_t i = pid ? 0 : first; i < s->on.n; i++)
		if (s->on.v[i].probe->kind == PROBE_SITES && s->on.v[i].narmed < s->on.v[i].probe->nsites)
			enable_sites(s, &jobs, &s->on.v[i]);
	if (!jobs.n)
		return;
	if (!e)
		e = run_jobs(s, &jobs, &err);
	if (e)
		session_warn(s, "cannot trace what was loaded later: %s", err.len ? strbuf_str(&err) : strerror(-e));
	strbuf_fini(&err);
}

int session_look_again(struct session *s)
{
	if (s->on.libraries)
		look_again(s, 0);
	return 0;
}

/* It maps its libraries within milliseconds, and plug-ins later: it is looked at several times. */
static enum newcomer look_at_newcomer(void *session, uint32_t pid, bool last, bool named)
{
	(void)named;
	look_again(session, pid);
	return last ? NEWCOMER_DONE : NEWCOMER_SOON;
}

static void turn_newcomers(void *session)
{
	struct session *s = session;

	newcomers_turn(s->on.newcomers);
}

int session_watch_programs(struct session *s, struct strbuf *err)
{
	const struct newcomers_conf conf = { look_at_newcomer, s };
	int e = s->on.programs && !s->place->in_target ? newcomers_new(&conf, &s->on.newcomers) : 0;

	if (!e && s->on.newcomers)
		e = newcomers_watch(s->on.newcomers);
	if (!e && s->on.newcomers)
		e = session_watch_fd(s, newcomers_fd(s->on.newcomers), turn_newcomers, s);
	if (e)
		strbuf_printf(err, "cannot watch for programs that are started: %s", strerror(-e));
	return e;
}

/*
 * From clauses to armed sites: which probes each clause is for, one program for each set of sites that can
 * share it, and the arming.
 *
 * Sites share a program when the same clauses run there and the arguments lie in the same places.  That is
 * so for the many sites of a provider such as pid, and for what the compiler made of one marker by inlining
 * the same way everywhere; the rest get programs of their own, which cost little.
 */
#include "session/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"

/* Sites to be armed with one program. */
struct group {
	const struct enabled *en;	/* whose clauses run */
	uint32_t pid;			/* where they fire; 0: everywhere */
	bool ret;
	struct ebpf_env env;
	struct place_site *sites;
	size_t nsites, cap;
};

struct groups {
	struct group *v;
	size_t n, cap;
};

/* --- clauses to probes -------------------------------------------------------------------------------- */

/* The table's entry for @probe, made if need be. */
static struct enabled *enabled_for(struct session *s, const struct probe *probe)
{
	struct enabled *en;
	uint32_t i;

	for (i = 0; i < s->nenabled; i++)
		if (s->enabled[i].probe == probe)
			return &s->enabled[i];
	s->enabled = arena_grow(s->arena, s->enabled, &s->enabled_cap, s->nenabled, sizeof(*s->enabled));
	en = &s->enabled[s->nenabled++];
	memset(en, 0, sizeof(*en));
	en->probe = probe;
	en->prog = -1;
	return en;
}

static void add_clause(struct session *s, const struct probe *probe, struct ir_clause *c)
{
	struct enabled *en = enabled_for(s, probe);

	/* Once, even when several of its descriptions match. */
	if (en->nclauses && en->clauses[en->nclauses - 1] == c)
		return;
	en->clauses = arena_grow(s->arena, en->clauses, &en->cap, en->nclauses, sizeof(struct ir_clause *));
	en->clauses[en->nclauses++] = c;
}

/* Does the script name functions of libraries that a process may load later? */
static bool looks_again(const struct session *s)
{
	const struct ir_prog *prog = s->conf.prog;
	uint32_t i, j;

	for (i = 0; s->conf.opts->v[OPT_zdefs] && i < prog->nclauses; i++)
		for (j = 0; j < prog->clauses[i]->ndescs; j++)
			if (probe_wants_libraries(&prog->clauses[i]->descs[j]))
				return true;
	return false;
}

/* Number the clauses of the probes from @first on. */
static void number(struct session *s, uint32_t first)
{
	uint32_t epid = first ? s->enabled[first - 1].epid + s->enabled[first - 1].nclauses : 1, i;

	for (i = first; i < s->nenabled; i++) {
		s->enabled[i].epid = epid;
		epid += s->enabled[i].nclauses;
	}
}

void session_match(struct session *s)
{
	const struct ir_prog *prog = s->conf.prog;
	struct probe_list found = { 0 };
	struct enabled *en;
	uint32_t i, j;
	size_t k;

	for (i = 0; i < prog->nclauses; i++) {
		struct ir_clause *c = prog->clauses[i];

		for (j = 0; j < c->ndescs; j++) {
			found.n = 0;
			probe_find(s->conf.probes, &c->descs[j], PROBE_ENABLE, &found);
			for (k = 0; k < found.n; k++)
				add_clause(s, found.probes[k], c);
		}
	}
	number(s, 0);
	if (looks_again(s)) {
		/* Nothing moves in memory when the session adds to the table later. */
		s->later = LATER_PROBES;
		en = arena_alloc(s->arena, (s->nenabled + LATER_PROBES) * sizeof(*en));
		if (s->nenabled)
			memcpy(en, s->enabled, s->nenabled * sizeof(*en));
		s->enabled = en;
		s->enabled_cap = s->nenabled + LATER_PROBES;
	}
	for (i = 0; i < s->nenabled; i++) {
		en = &s->enabled[i];
		if (en->probe->kind == PROBE_ERROR) {
			s->errors = en->clauses;
			s->nerrors = en->nclauses;
			s->error_probe = i;
		}
	}
}

unsigned int session_matched(const struct session *s, const struct source *src)
{
	unsigned int n = 0;
	uint32_t i, j;

	for (i = 0; i < s->nenabled; i++)
		for (j = 0; j < s->enabled[i].nclauses; j++)
			n += s->enabled[i].clauses[j]->pos.src == src;
	return n;
}

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

/* --- programs ----------------------------------------------------------------------------------------- */

/* Generate and load what runs @en's clauses in @env: a handle, or a negative errno. */
static int load(struct session *s, const struct enabled *en, const struct ebpf_env *env, bool multi,
		struct strbuf *err)
{
	struct ebpf_prog *prog;
	const char *why = NULL;

	prog = ebpf_compile(s->unit, env, en->clauses, en->nclauses, s->errors, s->nerrors, &why);
	if (!prog) {
		strbuf_puts(err, why);
		return -EINVAL;
	}
	if (s->conf.bytecode) {
		strbuf_printf(s->conf.bytecode, "# %s:%s:%s:%s\n", en->probe->prov, en->probe->mod,
			      en->probe->func, en->probe->name);
		ebpf_disasm(prog, s->conf.bytecode);
	}
	return s->place->ops->load(s->place, prog, multi, err, s->conf.verifier_log);
}

/* What is the same for all programs. */
static struct ebpf_env base_env(const struct session *s, enum ebpf_ctx ctx)
{
	struct ebpf_env env = { .ctx = ctx };

	env.error_probe = s->error_probe;
	if (ctx != EBPF_CTX_RUN)
		env.only_cpu = (uint32_t)(s->opts.v[OPT_cpu] + 1);
	env.sleepable = ctx == EBPF_CTX_UPROBE && s->place->sleepable;
	env.user_space = s->place->in_target;
	env.pid_ns = s->pid_ns && !env.user_space;
	env.ns_dev = s->ns_dev;
	env.ns_ino = s->ns_ino;
	env.task_parent = s->task.real_parent;
	env.task_tgid = s->task.tgid;
	env.task_runtime = s->task.sum_exec_runtime;
	env.task_exec_start = s->task.exec_start;
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

/* The group that a site with these operands belongs to, made if need be. */
static struct group *group_for(struct session *s, struct groups *gs, const struct enabled *en, bool ret,
			       const struct ebpf_env *env)
{
	struct group *g;
	size_t i;

	for (i = 0; i < gs->n; i++) {
		g = &gs->v[i];
		if (g->pid == en->probe->pid && g->ret == ret && same_clauses(g->en, en) && same_env(&g->env, env))
			return g;
	}
	gs->v = arena_grow(s->arena, gs->v, &gs->cap, gs->n, sizeof(*gs->v));
	g = &gs->v[gs->n++];
	memset(g, 0, sizeof(*g));
	g->en = en;
	g->pid = en->probe->pid;
	g->ret = ret;
	g->env = *env;
	return g;
}

static void group_sites(struct session *s, struct groups *gs, const struct enabled *en)
{
	const struct probe *p = en->probe;
	unsigned int i, n;
	struct group *g;

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
		g = group_for(s, gs, en, site->ret, &env);
		g->sites = arena_grow(s->arena, g->sites, &g->cap, g->nsites, sizeof(*g->sites));
		g->sites[g->nsites++] = (struct place_site){ site->path, site->off, site->sem_off,
							      (uint32_t)(en - s->enabled), site->ret };
	}
}

static int arm_groups(struct session *s, const struct groups *gs, struct strbuf *err)
{
	size_t i;
	int e = 0, prog;

	for (i = 0; i < gs->n && !e; i++) {
		const struct group *g = &gs->v[i];
		bool multi = s->place->ops->use_multi(s->place, g->pid);

		prog = load(s, g->en, &g->env, multi, err);
		e = prog < 0 ? prog : s->place->ops->arm_sites(s->place, prog, g->sites, g->nsites, g->pid, err);
	}
	return e;
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

/* The program for the tracepoint of @en, which is table entry @i, unless one before it has loaded it already. */
static int enable_tp(struct session *s, struct enabled *en, struct strbuf *err)
{
	const struct ebpf_tp *tp = en->probe->tp;
	struct ebpf_env env = base_env(s, EBPF_CTX_TP);
	uint32_t i = (uint32_t)(en - s->enabled), first = 0;
	int prog, e;

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
	env.probe = i;
	env.group = first + 1;
	prog = load(s, en, &env, false, err);
	return prog < 0 ? prog : s->place->ops->arm_tracepoint(s->place, prog, tp->name, err);
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

static int arm_marker(struct session *s, const struct enabled *en, struct strbuf *err)
{
	struct ebpf_env env = base_env(s, EBPF_CTX_TARGET);
	struct place_marker m = { .probe = (uint32_t)(en - s->enabled), .pid = en->probe->pid, .uses = uses_of(en) };
	int marker = probe_marker(en->probe), prog;
	uint32_t arg, map;
	unsigned int classes;

	if (en->nclauses == 1 && ebpf_is_count(s->unit, en->clauses[0], &arg, &map, &classes)) {
		m.count_arg = arg + 1;
		m.count_map = map;
		m.count_classes = classes;
	}
	if (marker < 0)
		return refuse_place(en->probe, err);
	m.marker = (uint32_t)marker;
	prog = load(s, en, &env, false, err);
	return prog < 0 ? prog : s->place->ops->arm_marker(s->place, prog, &m, err);
}

/* What the tracer fires itself, and what the kernel's clock does. */
static int enable_other(struct session *s, struct enabled *en, struct strbuf *err)
{
	enum probe_kind kind = en->probe->kind;
	struct ebpf_env env = base_env(s, kind == PROBE_PROFILE ? EBPF_CTX_PERF : EBPF_CTX_RUN);

	if (kind == PROBE_PROFILE && s->place->in_target)
		return refuse_place(en->probe, err);
	en->prog = load(s, en, &env, false, err);
	if (en->prog < 0)
		return en->prog;
	if (kind == PROBE_PROFILE)
		return s->place->ops->arm_profile(s->place, en->prog, en->probe->period_ns,
					  (uint32_t)(en - s->enabled), err);
	return 0;
}

/* Ask about the processes that start, when more is needed to walk their stacks than the kernel knows. */
static int watch_exec(struct session *s, struct strbuf *err)
{
	static const struct ebpf_tp tp = { .name = "sched_process_exec" };
	struct ebpf_env env = base_env(s, EBPF_CTX_TP);
	struct ebpf_prog *prog;
	const char *why = NULL;
	int handle;

	if (!walks(s) || !s->place->ops->arm_tracepoint)
		return 0;
	env.tp = &tp;
	prog = ebpf_compile_ask(s->unit, &env, &why);
	if (!prog) {
		strbuf_puts(err, why);
		return -EINVAL;
	}
	handle = s->place->ops->load(s->place, prog, false, err, s->conf.verifier_log);
	return handle < 0 ? handle : s->place->ops->arm_tracepoint(s->place, handle, tp.name, err);
}

static bool clause_uses(const struct ir_clause *c, enum ir_builtin bi)
{
	uint32_t b, i;

	for (b = 0; b < c->nblocks; b++)
		for (i = 0; i < c->blocks[b]->n; i++)
			if (c->blocks[b]->insns[i].op == IR_BUILTIN && c->blocks[b]->insns[i].bi == bi)
				return true;
	return false;
}

static bool clause_calls(const struct ir_clause *c, enum ir_fn fn)
{
	uint32_t b, i;

	for (b = 0; b < c->nblocks; b++)
		for (i = 0; i < c->blocks[b]->n; i++)
			if (c->blocks[b]->insns[i].op == IR_CALL && c->blocks[b]->insns[i].fn == fn)
				return true;
	return false;
}

/* Reading the kernel's type information takes its time: only for scripts that need it. */
static int find_task(struct session *s, struct strbuf *err)
{
	const struct ir_prog *prog = s->conf.prog;
	uint32_t i;

	for (i = 0; i < s->nenabled; i++)	/* uid and gid of another thread than the one that runs */
		if (s->enabled[i].probe->kind == PROBE_TP && s->enabled[i].probe->tp->task.kind)
			return btf_task(&s->task, err);
	if (walks(s))
		return btf_task(&s->task, err);
	for (i = 0; i < prog->nclauses; i++)
		if (clause_uses(prog->clauses[i], IR_B_PPID) || clause_uses(prog->clauses[i], IR_B_VTIMESTAMP) ||
		    clause_uses(prog->clauses[i], IR_B_EXECARGS) ||
		    clause_calls(prog->clauses[i], IR_FN_PROGENYOF) ||
		    clause_calls(prog->clauses[i], IR_FN_SELF) || clause_calls(prog->clauses[i], IR_FN_TASK))
			return btf_task(&s->task, err);
	for (i = 0; i < s->nenabled; i++)
		if (s->enabled[i].probe->exe_ino)
			return btf_task(&s->task, err);
	return 0;
}

/* Of many sites some may lie on instructions that nothing can be armed on. */
static void say_skipped(struct session *s)
{
	struct strbuf text = { 0 };

	strbuf_printf(&text, "%s: %zu sites were left out: the kernel cannot put a breakpoint on the instructions"
		      " there\n", s->conf.command, s->place->ops->skipped(s->place));
	s->conf.message(s->conf.message_ctx, strbuf_str(&text));
	strbuf_fini(&text);
}

int session_arm(struct session *s, struct strbuf *err)
{
	struct groups gs = { 0 };
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
			e = arm_marker(s, en, err);
		else if (en->probe->kind == PROBE_SITES)
			group_sites(s, &gs, en);
		else if (en->probe->kind == PROBE_TP)
			e = enable_tp(s, en, err);
		else if (en->probe->kind != PROBE_ERROR)	/* its clauses are part of the other programs */
			e = enable_other(s, en, err);
	}
	if (!e)
		e = arm_groups(s, &gs, err);
	if (!e)
		e = watch_exec(s, err);
	if (!e && s->place->ops->skipped && s->place->ops->skipped(s->place))
		say_skipped(s);
	if (!e && s->place->ops->ready)
		e = s->place->ops->ready(s->place, err);
	return e;
}

int session_look_again(struct session *s)
{
	const struct ir_prog *prog = s->conf.prog;
	uint32_t first = s->nenabled, i, j;
	struct probe_list found = { 0 };
	struct strbuf err = { 0 };
	struct groups gs = { 0 };
	size_t k;
	int e;

	if (!s->later)
		return 0;
	for (i = 0; i < prog->nclauses; i++) {
		struct ir_clause *c = prog->clauses[i];

		for (j = 0; j < c->ndescs; j++) {
			if (!probe_wants_libraries(&c->descs[j]))
				continue;
			found.n = 0;
			probe_find(s->conf.probes, &c->descs[j], PROBE_ENABLE, &found);
			for (k = 0; k < found.n && s->nenabled < s->enabled_cap; k++)
				if (enabled_for(s, found.probes[k]) >= &s->enabled[first])
					add_clause(s, found.probes[k], c);
		}
	}
	if (first == s->nenabled)
		return 0;
	number(s, first);
	e = fill_probe_table(s, first);
	for (i = first; i < s->nenabled; i++)
		group_sites(s, &gs, &s->enabled[i]);
	if (!e)
		e = arm_groups(s, &gs, &err);
	if (e)
		session_warn(s, "cannot trace what was loaded later: %s", err.len ? strbuf_str(&err) : strerror(-e));
	strbuf_fini(&err);
	return 0;
}

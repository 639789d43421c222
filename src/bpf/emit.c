/*
 * A program: the clauses of a firing in order, and the code that they share.
 *
 *	state, process filter; take a scratch slot; time, probe, task
 *	to the first clause of the section, if there are several (each ends in a jump to the end)
 *	clause 0 ... clause n - 1	each followed by the stubs of its faults, the error record and the ERROR
 *					clauses
 *	after a clause that calls D's exit(): is it over?  (DTrace: probes of other providers than dtrace fire
 *	only while the session is active)
 *	give the scratch slot back
 *	runtime functions
 */
#include <assert.h>
#include <stddef.h>

#include "abi/segment.h"
#include "base/arena.h"
#include "ir/facts.h"
#include "ir/settled.h"
#include "bpf/gen.h"
#include "bpf/link.h"
#include "bpf/lock.h"

static gen_fn *const generators[IR_OP_MAX] = {
#define IR_OP(NAME, TEXT, RESULT, OPERANDS, ATTR, EFFECTS, NEEDS, GEN, WHAT) [IR_##NAME] = gen_##GEN,
#include "ir/ops.def"
#undef IR_OP
};

void gen_refuse(struct gen *g, const char *why)
{
	if (!g->err)
		g->err = why;
}

bool gen_faults_in(struct gen *g)
{
	bool may = g->env->sleepable && g->env->ctx == EBPF_CTX_UPROBE;

	g->faults_in |= may;
	return may;
}

void gen_drop(struct gen *g, enum abi_drop what)
{
	asm_map_value(&g->as, R1, EBPF_MAP_CONTROL, offsetof(struct abi_control, drops) + 8 * (uint32_t)what);
	asm_imm(&g->as, R2, 1);
	asm_atomic(&g->as, BPF_ADD, BPF_DW, R1, 0, R2);
}

uint32_t gen_fault(struct gen *g, enum abi_fault kind, int value_off)
{
	struct stub *s;

	assert(g->plan->needs & NEED_FAULT);	/* ir/ops.def says that it may fault */
	if (g->in_error)
		return g->end;
	g->stubs = arena_grow(g->prog->arena, g->stubs, &g->stubs_cap, g->nstubs, sizeof(*g->stubs));
	s = &g->stubs[g->nstubs++];
	*s = (struct stub){ asm_label(&g->as), g->as.n, g->region, g->insn->act, kind, value_off };
	return s->label;
}

/* --- clauses ----------------------------------------------------------------------------------------- */

/* Is there code for @i where the program runs?  Else the program is refused. */
static bool has_code(struct gen *g, const struct ir_insn *i)
{
	const bool here[] = {
		[IR_ANY] = true, [IR_KERNEL] = !g->env->user_space, [IR_TARGET] = g->env->user_space,
		[IR_STOPPED] = g->env->ctx == EBPF_CTX_UPROBE && !g->in_error,
	};
	struct ir_place p = ir_place(i);

	if (p.where == IR_TARGET && gen_is_given(g, i))
		return true;
	if (!here[p.where])
		gen_refuse(g, p.why);
	return here[p.where];
}

static void gen_clause(struct gen *g, const struct ir_clause *c, unsigned int number, bool in_error)
{
	const struct plan *plan = g->priv->plans[c->id];

	g->clause = c;
	g->plan = plan;
	g->number = number;
	g->in_error = in_error;
	g->nstubs = 0;
	g->uncopied = ASM_UNSET;
	g->answered = ASM_UNSET;
	g->labels = arena_alloc(g->prog->arena, c->nblocks * sizeof(*g->labels));
	for (uint32_t b = 0; b < plan->nblocks; b++)
		g->labels[plan->blocks[b]->id] = asm_label(&g->as);
	gen_flow_begin(g);
	gen_match_begin(g);
	g->settled = g->settles ? ir_settled(c, g->env->settling, g->prog->arena) : NULL;
	for (uint32_t b = 0; b < plan->nblocks; b++) {
		const struct ir_block *k = plan->blocks[b];

		g->block = k;
		g->region = plan->regions ? plan->regions[k->id] : NULL;
		g->next = b + 1 < plan->nblocks ? plan->blocks[b + 1] : NULL;
		asm_bind(&g->as, g->labels[k->id]);
		gen_procedure(g, k);
		for (uint32_t j = 0; j < k->n; j++) {
			const struct ir_insn *i = &k->insns[j];
			uint32_t from = g->as.n;

			if (!has_code(g, i) || (i->dst != IR_NO_REG && plan->late[i->dst] == i))
				continue;
			g->insn = i;
			asm_line(&g->as, c->id, i->pos);
			generators[i->op](g, i);
			if (j + 1 < k->n)
				gen_tidy(g, from);
		}
	}
	gen_flow_returns(g);
}

/* The fault stubs of the clause just generated: store ERROR's arguments, jump to @faulted. */
static void gen_stubs(struct gen *g, uint32_t faulted)
{
	struct assembler *as = &g->as;

	for (uint32_t k = 0; k < g->nstubs; k++) {
		const struct stub *s = &g->stubs[k];

		asm_bind(as, s->label);
		if (s->value_off == NO_VALUE)
			asm_imm(as, R1, 0);
		else
			asm_ld(as, BPF_DW, R1, R10, s->value_off);
		if (gen_catchable(g, s))
			continue;
		asm_st(as, BPF_DW, R10, FRAME_FAULT + 8 * FAULT_VALUE, R1);
		asm_sti(as, BPF_DW, R10, FRAME_FAULT + 8 * FAULT_KIND, s->kind);
		asm_sti(as, BPF_DW, R10, FRAME_FAULT + 8 * FAULT_OFF, (int32_t)s->at);
		asm_ja(as, faulted);
	}
	gen_flow_catches(g, faulted);
}

/* --- faults ------------------------------------------------------------------------------------------ */

static void gen_error_record(struct gen *g)
{
	struct assembler *as = &g->as;
	uint32_t none = asm_label(as);
	int size = (int)sizeof(struct abi_record) + 8 * ABI_ERROR_SLOTS;

	_Static_assert(sizeof(struct abi_record) + 8 * ABI_ERROR_SLOTS <= FRAME_KEY_SIZE, "room for the record");
	gen_prologue_values(g, (NEED_TIME | NEED_PROBE | NEED_TASK) & ~g->needs);
	g->in_error = false;
	gen_probe_entry(g, none);
	asm_ld(as, BPF_W, R0, R0, offsetof(struct abi_probe, id));
	asm_bind(as, none);
	asm_st(as, BPF_DW, R10, FRAME_FAULT + 8 * FAULT_PROBE, R0);
	asm_sti(as, BPF_DW, R10, FRAME_FAULT + 8 * FAULT_CLAUSE, (int32_t)g->clause->id);
	gen_header(g, R10, FRAME_KEY, ABI_REC_ERROR);
	asm_sti(as, BPF_W, R10, FRAME_KEY + (int)offsetof(struct abi_record, size), size);
	for (int k = 0; k < ABI_ERROR_SLOTS; k++) {
		asm_ld(as, BPF_DW, R1, R10, FRAME_FAULT + 8 * k);
		asm_st(as, BPF_DW, R10, FRAME_KEY + (int)sizeof(struct abi_record) + 8 * k, R1);
	}
	gen_output(g, R10, FRAME_KEY, (uint32_t)size);
}

/*
 * Follows the clause that was just generated.  Each clause has its own copy: with one shared copy, the jumps back to
 * the ends of clauses would look like loops to checkers that look at jumps alone.
 */
static void gen_faulted(struct gen *g, struct ir_clause *const *errors, unsigned int nerrors)
{
	struct assembler *as = &g->as;

	gen_error_record(g);
	for (unsigned int k = 0; k < nerrors; k++) {
		g->end = asm_label(as);
		gen_clause(g, errors[k], k, true);
		asm_bind(as, g->end);
	}
}

/* Clause number @k of the program, with the code for its faults. */
static void gen_one(struct gen *g, const struct ir_clause *c, unsigned int k, struct ir_clause *const *errors,
		    unsigned int nerrors)
{
	uint32_t end = asm_label(&g->as), faulted = asm_label(&g->as);

	g->end = end;
	gen_clause(g, c, k, false);
	gen_stubs(g, faulted);
	if (asm_wanted(&g->as, faulted)) {
		asm_bind(&g->as, faulted);
		gen_faulted(g, errors, nerrors);
	}
	asm_bind(&g->as, end);
}

/* --- before the clauses ------------------------------------------------------------------------------- */

/* Uprobes are of a file, which other containers can have, too: their processes are not there for this tracer. */
static bool leaves_out_others(const struct gen *g)
{
	return g->env->ctx == EBPF_CTX_UPROBE && g->env->pid_ns && gen_knows_numbers(g) && !g->env->only_pid;
}

static void gen_filter(struct gen *g, uint32_t out)
{
	struct assembler *as = &g->as;

	asm_st(as, BPF_DW, R10, FRAME_CTX, R1);
	if (gen_charges(g))
		gen_prologue_values(g, NEED_TIME);
	asm_map_value(as, R2, EBPF_MAP_CONTROL, offsetof(struct abi_control, state));
	asm_ld(as, BPF_W, R2, R2, 0);
	if (g->env->ctx == EBPF_CTX_RUN)
		asm_ji(as, BPF_JEQ, R2, ABI_STATE_OFF, out);
	else
		asm_ji(as, BPF_JNE, R2, ABI_STATE_ACTIVE, out);
	if (g->env->only_cpu) {
		asm_helper(as, BPF_FUNC_get_smp_processor_id);
		asm_ji(as, BPF_JNE, R0, (int32_t)(g->env->only_cpu - 1), out);
	}
	if (g->env->ctx == EBPF_CTX_TP)
		gen_tp_filter(g, out);
	if (g->needs & NEED_TASK)
		gen_prologue_values(g, NEED_TASK);
	if (g->env->only_pid) {
		asm_ld(as, BPF_W, R1, R10, FRAME_TASK + 4);
		asm_j32i(as, BPF_JNE, R1, (int32_t)g->env->only_pid, out);
	}
	if (leaves_out_others(g)) {
		asm_ld(as, BPF_W, R1, R10, FRAME_TASK + 4);
		asm_j32i(as, BPF_JEQ, R1, 0, out);
	}
	if (g->env->exe_ino)
		gen_exe_filter(g, out);
	if (g->env->gil)
		gen_gil_filter(g, out);
	if (g->env->away)
		gen_away_filter(g, out);
}

/*
 * R9 = a scratch slot for this program alone.  Programs on one CPU start the search at the same slot, so they find
 * different slots only when one preempts the other, or sleeps.
 */
static void gen_take_scratch(struct gen *g, uint32_t busy)
{
	struct assembler *as = &g->as;
	uint32_t got = asm_label(as);

	if (g->env->user_space) {
		asm_helper(as, ABI_HELPER_SCRATCH);
		asm_ji(as, BPF_JEQ, R0, 0, busy);
		asm_mov(as, R9, R0);
		return;
	}
	asm_helper(as, BPF_FUNC_get_smp_processor_id);
	asm_mov(as, R6, R0);
	asm_alui(as, BPF_LSH, R6, 1);
	for (int k = 0; k < SCRATCH_TRIES; k++) {
		asm_mov(as, R1, R6);
		if (k)
			asm_alui(as, BPF_ADD, R1, k);
		asm_alui(as, BPF_AND, R1, (int32_t)g->priv->scratch_slots - 1);
		asm_st(as, BPF_W, R10, FRAME_TMP, R1);
		asm_lookup(as, EBPF_MAP_SCRATCH, FRAME_TMP);
		asm_ji(as, BPF_JEQ, R0, 0, busy);
		asm_mov(as, R9, R0);
		asm_imm(as, R1, 1);
		asm_atomic(as, BPF_XCHG, BPF_W, R9, SCRATCH_BUSY, R1);
		asm_ji(as, BPF_JEQ, R1, 0, got);
	}
	asm_ja(as, busy);
	asm_bind(as, got);
}

static void gen_clear_clause_vars(struct gen *g)
{
	for (uint32_t k = 0; k < g->prog->nvars; k++) {
		if (g->prog->vars[k]->cls != IR_CLAUSE)
			continue;
		gen_scratch(g, R1, g->priv->var_off[k]);
		asm_sti(&g->as, BPF_DW, R1, 0, 0);
	}
}

/* --- the whole --------------------------------------------------------------------------------------- */

static uint32_t needs_of(const struct gen *g, struct ir_clause *const *clauses, unsigned int n)
{
	uint32_t needs = 0;

	for (unsigned int k = 0; k < n; k++)
		needs |= g->priv->plans[clauses[k]->id]->needs |
			 (g->env->user_space ? 0 : g->priv->plans[clauses[k]->id]->kernel_needs);
	return needs;
}

/* Can @c, or an ERROR clause for its fault, end the firing? */
static bool may_exit(const struct gen *g, struct ir_clause *c, struct ir_clause *const *errors, unsigned int nerrors)
{
	uint32_t needs = needs_of(g, &c, 1);

	return (needs | (needs & NEED_FAULT ? needs_of(g, errors, nerrors) : 0)) & NEED_GATE;
}

/* Can it be that no clause does anything, and that it is settled?  Clauses that are called have other frames. */
static bool can_settle(const struct gen *g, struct ir_clause *const *clauses, unsigned int nclauses)
{
	for (unsigned int k = 0; k < nclauses; k++)
		if (!g->env->settling || gen_turns_called(g, g->priv->plans[clauses[k]->id]) ||
		    !ir_settled(clauses[k], g->env->settling, g->prog->arena))
			return false;
	return true;
}

/* Jump to the code of the section that the system call names; if it names none, to @over. */
static void gen_choose_section(struct gen *g, uint32_t starts, unsigned int nsections, uint32_t over)
{
	asm_ld(&g->as, BPF_DW, R1, R10, FRAME_SECTION);
	for (unsigned int k = 0; k < nsections; k++)
		asm_ji(&g->as, BPF_JEQ, R1, (int32_t)k, starts + k);
	asm_ja(&g->as, over);
}

/* A label for each of @n things, the first is returned. */
static uint32_t labels(struct assembler *as, unsigned int n)
{
	uint32_t first = asm_label(as);

	while (n-- > 1)
		asm_label(as);
	return first;
}

/* @clauses: those of all sections. */
static void gen_program(struct gen *g, const struct ebpf_section *sections, unsigned int nsections,
			struct ir_clause *const *clauses, unsigned int nclauses, struct ir_clause *const *errors,
			unsigned int nerrors)
{
	struct assembler *as = &g->as;
	uint32_t out = asm_label(as), busy = asm_label(as), over = asm_label(as), settled = asm_label(as), called, starts;
	unsigned int section = 0, first = 0;
	bool names;

	g->needs = needs_of(g, clauses, nclauses);
	if (g->needs & NEED_FAULT)
		g->needs |= needs_of(g, errors, nerrors);
	if (g->env->only_pid || leaves_out_others(g) || gen_tp_other_task(g))
		g->needs |= NEED_TASK;
	if (gen_hides_time(g) || gen_charges(g))
		g->needs |= NEED_TIME;
	if (g->env->gil)
		g->needs |= NEED_SCRATCH | GIL_NEEDS;
	names = g->env->named && g->needs & (NEED_PROBE | NEED_FAULT);
	if (g->env->away)
		g->needs |= NEED_PROBE | (names || g->env->nwanted ? NEED_SCRATCH : 0);
	g->settles = can_settle(g, clauses, nclauses);
	gen_filter(g, out);
	if (g->needs & NEED_SCRATCH)
		gen_take_scratch(g, busy);
	if (g->env->gil)
		gen_gil_keep(g);
	if (g->env->away)
		gen_away_keep(g, names);
	gen_prologue_values(g, g->needs & ~(uint32_t)(NEED_TASK | (g->env->gil ? GIL_NEEDS : 0) | (g->env->away ? NEED_PROBE : 0) | (gen_charges(g) ? NEED_TIME : 0)));
	if (gen_hides_time(g))
		gen_hide_begin(g);
	if (g->needs & NEED_CLAUSE_VARS)
		gen_clear_clause_vars(g);
	if (g->settles)
		asm_sti(as, BPF_DW, R10, FRAME_SETTLED, -(int32_t)nclauses - 1);
	called = labels(as, nclauses);
	starts = labels(as, nsections);
	if (nsections > 1)
		gen_choose_section(g, starts, nsections, over);
	for (unsigned int k = 0; k < nclauses; k++) {
		const struct plan *plan = g->priv->plans[clauses[k]->id];
		uint32_t skipped = asm_label(as);
		bool last = k + 1 == first + sections[section].n;

		if (k == first)
			asm_bind(as, starts + section);
		gen_lock(g, clauses[k], skipped);
		gen_iters_begin(g, plan);
		if (gen_turns_called(g, plan))
			gen_call_turns(g, called + k);
		else
			gen_one(g, clauses[k], k - first, errors, nerrors);
		gen_iters_end(g, plan);
		gen_unlock(g, clauses[k]);
		asm_bind(as, skipped);
		if (!last && may_exit(g, clauses[k], errors, nerrors))
			gen_exit_check(g, over);
		if (!last)
			continue;
		if (k + 1 < nclauses)
			asm_ja(as, over);
		first = k + 1;
		section++;
	}
	asm_bind(as, over);
	if ((g->needs & NEED_SCRATCH) && !g->env->user_space)
		asm_sti(as, BPF_W, R9, SCRATCH_BUSY, 0);
	if (gen_hides_time(g))
		gen_hide_end(g);
	if (g->settles) {
		asm_ld(as, BPF_DW, R1, R10, FRAME_SETTLED);
		asm_imm(as, R0, ABI_RUN_SETTLED);
		asm_ji(as, BPF_JEQ, R1, -1, settled);
	}
	asm_bind(as, out);
	if (gen_charges(g))
		gen_charge(g);
	asm_imm(as, R0, 0);
	asm_bind(as, settled);
	asm_exit(as);
	if (g->needs & NEED_SCRATCH) {
		asm_bind(as, busy);
		gen_drop(g, ABI_DROP_BUSY);
		gen_own_stack(g);
		asm_ja(as, out);
	}
	section = first = 0;
	for (unsigned int k = 0; k < nclauses; k++) {
		const struct plan *plan = g->priv->plans[clauses[k]->id];

		if (k == first + sections[section].n)
			first += sections[section++].n;
		if (!gen_turns_called(g, plan))
			continue;
		asm_bind(as, called + k);
		gen_turns_begin(g);
		gen_one(g, clauses[k], k - first, errors, nerrors);
		gen_turns_end(g, plan);
	}
}

/* The finished program of @g, or NULL with a message. */
static struct ebpf_prog *finish(struct gen *g, const char **err)
{
	static const enum bpf_prog_type types[] = {
		[EBPF_CTX_UPROBE] = BPF_PROG_TYPE_KPROBE,
		[EBPF_CTX_PERF] = BPF_PROG_TYPE_PERF_EVENT,
		[EBPF_CTX_RUN] = BPF_PROG_TYPE_RAW_TRACEPOINT,
		[EBPF_CTX_TP] = BPF_PROG_TYPE_RAW_TRACEPOINT,
		[EBPF_CTX_TARGET] = BPF_PROG_TYPE_RAW_TRACEPOINT,	/* never loaded into the kernel */
	};
	const struct ebpf_env *env = g->env;
	struct ebpf_prog *p;

	if (g->err) {
		*err = g->err;
		return NULL;
	}
	asm_finish(&g->as);
	p = arena_new_of(g->prog->arena, struct ebpf_prog);
	link_runtime(&g->as, g->unit, p);
	p->type = types[env->ctx];
	p->sleepable = g->faults_in;
	p->insns = g->as.insns;
	p->ninsns = g->as.n;
	p->relocs = g->as.relocs;
	p->nrelocs = g->as.nrelocs;
	p->lines = g->as.lines;
	p->nlines = g->as.nlines;
	*err = NULL;
	return p;
}

static bool knows_machine(struct gen *g, const char **err)
{
	const struct arch *arch = arch_host();

	if (arch)
		g->kept = &arch->kept;
	else
		*err = "where this machine keeps registers is not known";
	return arch;
}

struct ebpf_prog *ebpf_compile(const struct ebpf_unit *u, const struct ebpf_env *env,
			       struct ir_clause *const *clauses, unsigned int nclauses,
			       struct ir_clause *const *errors, unsigned int nerrors, const char **err)
{
	struct ebpf_section all = { clauses, nclauses };

	return ebpf_compile_sections(u, env, &all, 1, errors, nerrors, err);
}

struct ebpf_prog *ebpf_compile_sections(const struct ebpf_unit *u, const struct ebpf_env *env,
					const struct ebpf_section *sections, unsigned int nsections,
					struct ir_clause *const *errors, unsigned int nerrors, const char **err)
{
	struct gen g = { .as.arena = u->prog->arena, .unit = u, .priv = u->priv, .prog = u->prog, .env = env };
	struct ir_clause **clauses;
	unsigned int n = 0;

	if (!knows_machine(&g, err))
		return NULL;
	for (unsigned int k = 0; k < nsections; k++)
		n += sections[k].n;
	clauses = arena_alloc(u->prog->arena, (n + 1) * sizeof(*clauses));
	n = 0;
	for (unsigned int k = 0; k < nsections; k++)
		for (unsigned int i = 0; i < sections[k].n; i++)
			clauses[n++] = sections[k].clauses[i];
	gen_program(&g, sections, nsections, clauses, n, errors, nerrors);
	return finish(&g, err);
}

uint32_t ebpf_section_size(const struct ebpf_section *s)
{
	uint32_t n = 0;

	for (unsigned int k = 0; k < s->n; k++)
		for (uint32_t b = 0; b < s->clauses[k]->nblocks; b++)
			n += s->clauses[k]->blocks[b]->n;
	return n;
}

/* A program that is no clause's: @fn's instructions, for a process that is traced; @filter, or NULL, may jump to @out. */
static struct ebpf_prog *compile_own(const struct ebpf_unit *u, const struct ebpf_env *env,
				     void (*filter)(struct gen *g, uint32_t out), void (*fn)(struct gen *g), const char **err)
{
	struct gen g = { .as.arena = u->prog->arena, .unit = u, .priv = u->priv, .prog = u->prog, .env = env };
	struct assembler *as = &g.as;
	uint32_t out = asm_label(as);

	if (!knows_machine(&g, err))
		return NULL;
	g.needs = NEED_SCRATCH | NEED_TIME | NEED_PROBE | NEED_TASK;
	gen_filter(&g, out);
	if (filter)
		filter(&g, out);
	gen_take_scratch(&g, out);
	gen_prologue_values(&g, g.needs & ~(uint32_t)NEED_TASK);
	fn(&g);
	asm_sti(as, BPF_W, R9, SCRATCH_BUSY, 0);
	asm_bind(as, out);
	if (gen_charges(&g))
		gen_charge(&g);
	asm_imm(as, R0, 0);
	asm_exit(as);
	return finish(&g, err);
}

struct ebpf_prog *ebpf_compile_ask(const struct ebpf_unit *u, const struct ebpf_env *env, const char **err)
{
	return compile_own(u, env, NULL, gen_ask, err);
}

struct ebpf_prog *ebpf_compile_keep(const struct ebpf_unit *u, const struct ebpf_env *env, const char **err)
{
	return compile_own(u, env, gen_keep_filter, gen_keep, err);
}

const struct ebpf_line *ebpf_line_find(const struct ebpf_prog *p, uint32_t insn)
{
	uint32_t low = 0, high = p->nlines;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (p->lines[mid].insn <= insn)
			low = mid + 1;
		else
			high = mid;
	}
	return low ? &p->lines[low - 1] : NULL;
}

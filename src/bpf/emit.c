/*
 * A program: the clauses of a firing in order, and around them what they share.
 *
 *	state, process filter; take a scratch slot; time, probe, task
 *	clause 0 ... clause n - 1	each with the stubs of its faults behind it, the error record and the ERROR
 *					clauses
 *	behind a clause that calls D's exit(): is it over?  (DTrace: what is not of the provider dtrace runs
 *	only while the session is active)
 *	give the scratch slot back
 *	runtime functions
 */
#include <stddef.h>

#include "abi/segment.h"
#include "base/arena.h"
#include "bpf/gen.h"
#include "bpf/link.h"
#include "bpf/lock.h"

static gen_fn *const generators[IR_OP_MAX] = {
	[IR_CONST] = gen_const,	    [IR_STRC] = gen_strc,     [IR_MOV] = gen_mov,	[IR_ADD] = gen_alu,
	[IR_SUB] = gen_alu,	    [IR_MUL] = gen_alu,	      [IR_SDIV] = gen_divide,	[IR_UDIV] = gen_divide,
	[IR_SMOD] = gen_divide,	    [IR_UMOD] = gen_divide,   [IR_AND] = gen_alu,	[IR_OR] = gen_alu,
	[IR_XOR] = gen_alu,	    [IR_SHL] = gen_alu,	      [IR_SHR] = gen_alu,	[IR_SAR] = gen_alu,
	[IR_NEG] = gen_unary,	    [IR_NOT] = gen_unary,     [IR_EXT] = gen_ext,	[IR_EQ] = gen_compare,
	[IR_NE] = gen_compare,	    [IR_SLT] = gen_compare,   [IR_SLE] = gen_compare,	[IR_ULT] = gen_compare,
	[IR_ULE] = gen_compare,	    [IR_STRCMP] = gen_strcmp, [IR_JMP] = gen_jmp,	[IR_BR] = gen_br,
	[IR_RET] = gen_ret,	    [IR_FAULT] = gen_raise,   [IR_BUILTIN] = gen_builtin, [IR_ARG] = gen_arg,
	[IR_CALL] = gen_call,	    [IR_LOAD] = gen_load_mem, [IR_ULOAD] = gen_load_mem, [IR_UPEEK] = gen_load_mem, [IR_VLD] = gen_vld,
	[IR_VST] = gen_vst,	    [IR_VADD] = gen_vadd,     [IR_MLD] = gen_mld,	[IR_MST] = gen_mst,
	[IR_MADD] = gen_madd,	    [IR_MHAS] = gen_mhas,     [IR_MDEL] = gen_mdel,	[IR_AGG] = gen_agg,
	[IR_EMIT] = gen_emit,	    [IR_EXITING] = gen_exiting, [IR_GATE] = gen_gate, [IR_TURN] = gen_turn,	[IR_BUDGET] = gen_budget,
	[IR_SPEND] = gen_spend,	    [IR_PASS] = gen_pass,     [IR_ENTER] = gen_enter,	[IR_LEAVE] = gen_leave,
	[IR_TRY] = gen_try,	    [IR_ENDTRY] = gen_endtry, [IR_RAISE] = gen_raise_text, [IR_CAUGHT] = gen_caught,
	[IR_CAUGHTSTR] = gen_caughtstr, [IR_FAILED] = gen_failed, [IR_MCLEAR] = gen_mclear, [IR_STAT] = gen_stat,
	[IR_SCOUNT] = gen_extract,  [IR_SSUM] = gen_extract,  [IR_SMIN] = gen_extract,	[IR_SMAX] = gen_extract,
	[IR_ITER] = gen_iter,	    [IR_INEXT] = gen_inext,   [IR_IKEY] = gen_ikey,	[IR_IVALUE] = gen_ivalue,
	[IR_IDONE] = gen_idone,	    [IR_SPRINTF] = gen_sprintf, [IR_MATCH] = gen_match,
	[IR_SAVG] = gen_extract,    [IR_SVARIANCE] = gen_extract, [IR_SBUCKET] = gen_sbucket,
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

	if (g->in_error)
		return g->end;
	g->stubs = arena_grow(g->prog->arena, g->stubs, &g->stubs_cap, g->nstubs, sizeof(*g->stubs));
	s = &g->stubs[g->nstubs++];
	*s = (struct stub){ asm_label(&g->as), g->as.n, g->region, g->insn->act, kind, value_off };
	return s->label;
}

/* --- clauses ----------------------------------------------------------------------------------------- */

static void gen_clause(struct gen *g, const struct ir_clause *c, unsigned int number, bool in_error)
{
	const struct plan *plan = g->priv->plans[c->id];

	g->clause = c;
	g->plan = plan;
	g->number = number;
	g->in_error = in_error;
	g->nstubs = 0;
	g->uncopied = ASM_UNSET;
	g->labels = arena_alloc(g->prog->arena, c->nblocks * sizeof(*g->labels));
	for (uint32_t b = 0; b < plan->nblocks; b++)
		g->labels[plan->blocks[b]->id] = asm_label(&g->as);
	gen_flow_begin(g);
	gen_match_begin(g);
	for (uint32_t b = 0; b < plan->nblocks; b++) {
		const struct ir_block *k = plan->blocks[b];

		g->block = k;
		g->region = plan->regions ? plan->regions[k->id] : NULL;
		g->next = b + 1 < plan->nblocks ? plan->blocks[b + 1] : NULL;
		asm_place(&g->as, g->labels[k->id]);
		gen_procedure(g, k);
		for (uint32_t j = 0; j < k->n; j++) {
			const struct ir_insn *i = &k->insns[j];
			uint32_t from = g->as.n;

			if (i->dst != IR_NO_REG && plan->late[i->dst] == i)
				continue;
			g->insn = i;
			asm_line(&g->as, c->id, i->pos);
			if (generators[i->op])
				generators[i->op](g, i);
			else
				gen_refuse(g, arena_printf(g->prog->arena, "no code for %s", ir_op_text(i->op)));
			if (j + 1 < k->n)
				gen_tidy(g, from);
		}
	}
	gen_flow_returns(g);
}

/* The stubs of the clause just generated: what ERROR's arguments will be, then to @faulted. */
static void gen_stubs(struct gen *g, uint32_t faulted)
{
	struct assembler *as = &g->as;

	for (uint32_t k = 0; k < g->nstubs; k++) {
		const struct stub *s = &g->stubs[k];

		asm_place(as, s->label);
		if (s->value_off == NO_VALUE)
			asm_imm(as, R1, 0);
		else
			asm_ld(as, BPF_DW, R1, R10, s->value_off);
		if (gen_catchable(g, s))
			continue;
		asm_st(as, BPF_DW, R10, FRAME_FAULT + 8 * FAULT_VALUE, R1);
		asm_sti(as, BPF_DW, R10, FRAME_FAULT + 8 * FAULT_KIND, s->kind);
		asm_sti(as, BPF_DW, R10, FRAME_FAULT + 8 * FAULT_OFF, (int32_t)(s->at * sizeof(struct bpf_insn)));
		asm_sti(as, BPF_DW, R10, FRAME_FAULT + 8 * FAULT_ACT, (int32_t)s->act);
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
	asm_ld(as, BPF_W, R0, R0, offsetof(struct abi_probe, epid));
	asm_alui(as, BPF_ADD, R0, (int32_t)g->number);
	asm_place(as, none);
	asm_st(as, BPF_DW, R10, FRAME_FAULT + 8 * FAULT_EPID, R0);
	gen_header(g, R10, FRAME_KEY, ABI_REC_ERROR);
	asm_sti(as, BPF_W, R10, FRAME_KEY + (int)offsetof(struct abi_record, size), size);
	for (int k = 0; k < ABI_ERROR_SLOTS; k++) {
		asm_ld(as, BPF_DW, R1, R10, FRAME_FAULT + 8 * k);
		asm_st(as, BPF_DW, R10, FRAME_KEY + (int)sizeof(struct abi_record) + 8 * k, R1);
	}
	gen_output(g, R10, FRAME_KEY, (uint32_t)size);
}

/*
 * Behind the clause that was just generated.  Each has this anew: what came back from one place to behind any clause
 * would be a loop to those who look at jumps alone.
 */
static void gen_faulted(struct gen *g, struct ir_clause *const *errors, unsigned int nerrors)
{
	struct assembler *as = &g->as;

	gen_error_record(g);
	for (unsigned int k = 0; k < nerrors; k++) {
		g->end = asm_label(as);
		gen_clause(g, errors[k], k, true);
		asm_place(as, g->end);
	}
}

/* Clause number @k of the program, with all that its faults lead to. */
static void gen_one(struct gen *g, const struct ir_clause *c, unsigned int k, struct ir_clause *const *errors,
		    unsigned int nerrors)
{
	uint32_t end = asm_label(&g->as), faulted = asm_label(&g->as);

	g->end = end;
	gen_clause(g, c, k, false);
	gen_stubs(g, faulted);
	if (asm_wanted(&g->as, faulted)) {
		asm_place(&g->as, faulted);
		gen_faulted(g, errors, nerrors);
	}
	asm_place(&g->as, end);
}

/* --- before the clauses ------------------------------------------------------------------------------- */

static void gen_filter(struct gen *g, uint32_t out)
{
	struct assembler *as = &g->as;

	asm_st(as, BPF_DW, R10, FRAME_CTX, R1);
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
	if (g->env->exe_ino)
		gen_exe_filter(g, out);
}

/*
 * R9 = a scratch slot of our own.  Programs on one CPU start looking at one place, so they find different
 * slots only when one preempts the other, or sleeps.
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
	asm_place(as, got);
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
		needs |= g->priv->plans[clauses[k]->id]->needs;
	return needs;
}

/* May @c, or an ERROR clause for its fault, have ended the firing? */
static bool may_exit(const struct gen *g, struct ir_clause *c, struct ir_clause *const *errors, unsigned int nerrors)
{
	uint32_t needs = needs_of(g, &c, 1);

	return (needs | (needs & NEED_FAULT ? needs_of(g, errors, nerrors) : 0)) & NEED_GATE;
}

static void gen_program(struct gen *g, struct ir_clause *const *clauses, unsigned int nclauses,
			struct ir_clause *const *errors, unsigned int nerrors)
{
	struct assembler *as = &g->as;
	uint32_t out = asm_label(as), busy = asm_label(as), over = asm_label(as), called;

	g->needs = needs_of(g, clauses, nclauses);
	if (g->needs & NEED_FAULT)
		g->needs |= needs_of(g, errors, nerrors);
	if (g->env->only_pid || gen_tp_other_task(g))
		g->needs |= NEED_TASK;
	gen_filter(g, out);
	if (g->needs & NEED_SCRATCH)
		gen_take_scratch(g, busy);
	gen_prologue_values(g, g->needs & ~(uint32_t)NEED_TASK);
	if (g->needs & NEED_CLAUSE_VARS)
		gen_clear_clause_vars(g);
	called = asm_label(as);
	for (unsigned int k = 1; k < nclauses; k++)
		asm_label(as);
	for (unsigned int k = 0; k < nclauses; k++) {
		const struct plan *plan = g->priv->plans[clauses[k]->id];
		uint32_t skipped = asm_label(as);

		gen_lock(g, clauses[k], skipped);
		gen_iters_begin(g, plan);
		if (gen_turns_called(g, plan))
			gen_call_turns(g, called + k);
		else
			gen_one(g, clauses[k], k, errors, nerrors);
		gen_iters_end(g, plan);
		gen_unlock(g, clauses[k]);
		asm_place(as, skipped);
		if (k + 1 < nclauses && may_exit(g, clauses[k], errors, nerrors))
			gen_exit_check(g, over);
	}
	asm_place(as, over);
	if ((g->needs & NEED_SCRATCH) && !g->env->user_space)
		asm_sti(as, BPF_W, R9, SCRATCH_BUSY, 0);
	asm_place(as, out);
	asm_imm(as, R0, 0);
	asm_exit(as);
	if (g->needs & NEED_SCRATCH) {
		asm_place(as, busy);
		gen_drop(g, ABI_DROP_BUSY);
		gen_own_stack(g);
		asm_ja(as, out);
	}
	for (unsigned int k = 0; k < nclauses; k++) {
		const struct plan *plan = g->priv->plans[clauses[k]->id];

		if (!gen_turns_called(g, plan))
			continue;
		asm_place(as, called + k);
		gen_turns_begin(g);
		gen_one(g, clauses[k], k, errors, nerrors);
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
		[EBPF_CTX_TARGET] = BPF_PROG_TYPE_RAW_TRACEPOINT,	/* never the kernel's */
	};
	const struct ebpf_env *env = g->env;
	struct ebpf_prog *p;

	if (!g->err)
		g->err = asm_finish(&g->as);
	if (g->err) {
		*err = g->err;
		return NULL;
	}
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

struct ebpf_prog *ebpf_compile(const struct ebpf_unit *u, const struct ebpf_env *env,
			       struct ir_clause *const *clauses, unsigned int nclauses,
			       struct ir_clause *const *errors, unsigned int nerrors, const char **err)
{
	struct gen g = { .as.arena = u->prog->arena, .unit = u, .priv = u->priv, .prog = u->prog, .env = env };

	gen_program(&g, clauses, nclauses, errors, nerrors);
	return finish(&g, err);
}

struct ebpf_prog *ebpf_compile_ask(const struct ebpf_unit *u, const struct ebpf_env *env, const char **err)
{
	struct gen g = { .as.arena = u->prog->arena, .unit = u, .priv = u->priv, .prog = u->prog, .env = env };
	struct assembler *as = &g.as;
	uint32_t out = asm_label(as);

	g.needs = NEED_SCRATCH | NEED_TIME | NEED_PROBE | NEED_TASK;
	gen_filter(&g, out);
	gen_take_scratch(&g, out);
	gen_prologue_values(&g, g.needs & ~(uint32_t)NEED_TASK);
	gen_ask(&g);
	asm_sti(as, BPF_W, R9, SCRATCH_BUSY, 0);
	asm_place(as, out);
	asm_imm(as, R0, 0);
	asm_exit(as);
	return finish(&g, err);
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

/*
 * Loops, procedures, caught faults: all that makes a clause more than a straight line.
 *
 * The kernel verifies loops of unknown length when may_goto is in them (6.9): it looks at a loop's body until what
 * it knows of registers and stack changes no more.  So whatever a clause keeps is in scratch memory, of whose
 * content the verifier knows nothing: the number of calls, the way back from each, the TRYs.  Registers hold nothing
 * there (ir_check).  At run time may_goto ends loops after 8 million turns or a quarter of a second, which is the
 * fault that using up the budget is.
 *
 * State, at unit.h's state_off: the words below, then the TRYs: depth << 32 | number of the TRY.
 * A frame is the number of the ENTER it was made by, then the IR_FRAME variables.
 */
#include "bpf/gen.h"

#include <stddef.h>

#include "base/arena.h"

static int state(const struct gen *g, int word)
{
	return (int)g->priv->state_off + 8 * word;
}

/*
 * Nothing in registers or in the frame's changing words is of use from here on.  The verifier compares it all the
 * same with what it saw here before, as long as the loop is not done; made equal, it is done much sooner.
 */
static void forget(struct gen *g)
{
	for (int r = R6; r <= R8; r++)
		asm_imm(&g->as, r, 0);
	for (int off = FRAME_POS; off >= FRAME_WALK; off -= 8)
		if (off != FRAME_LATE)
			asm_sti(&g->as, BPF_DW, R10, off, 0);
}

void gen_turn(struct gen *g, const struct ir_insn *i)
{
	(void)i;
	forget(g);
	asm_may_goto(&g->as, gen_fault(g, ABI_FAULT_ACTIONS, NO_VALUE));
}

/*
 * From 6.15 on the kernel measures the time that may_goto allows with the help of a word on the stack; when it gives
 * the program a stack of its own (6.13), it looks for that word on the other one (x86-64, seen on 6.18), and the
 * loops end after 65535 turns.  A program that has a tail call gets no stack of its own: this one is never made.
 * Programs that the tracer runs have the long loops; of the others' kinds one map could serve only one.
 */
void gen_own_stack(struct gen *g)
{
	struct assembler *as = &g->as;

	if (!(g->needs & NEED_LOOPS) || g->env->ctx != EBPF_CTX_RUN || g->env->user_space)
		return;
	asm_ld(as, BPF_DW, R1, R10, FRAME_CTX);
	asm_map(as, R2, EBPF_MAP_CALLS);
	asm_imm(as, R3, 0);
	asm_helper(as, BPF_FUNC_tail_call);
}

/* --- budget ------------------------------------------------------------------------------------------- */

void gen_budget(struct gen *g, const struct ir_insn *i)
{
	asm_sti(&g->as, BPF_DW, R9, state(g, STATE_ACTIONS), (int32_t)i->imm);
}

void gen_spend(struct gen *g, const struct ir_insn *i)
{
	struct assembler *as = &g->as;

	asm_ld(as, BPF_DW, R1, R9, state(g, STATE_ACTIONS));
	asm_alui(as, BPF_SUB, R1, (int32_t)i->imm);
	asm_st(as, BPF_DW, R9, state(g, STATE_ACTIONS), R1);
	asm_ji(as, BPF_JSLT, R1, 0, gen_fault(g, ABI_FAULT_ACTIONS, NO_VALUE));
}

/* --- procedures --------------------------------------------------------------------------------------- */

/* FRAME_LOCALS = the frame of call number R1 (0: of the clause itself), which is in range.  Uses R2. */
static void set_frame(struct gen *g)
{
	struct assembler *as = &g->as;

	gen_scratch(g, R2, g->priv->frames_off);
	asm_alui(as, BPF_MUL, R1, (int32_t)g->priv->frame_size);
	asm_alu(as, BPF_ADD, R2, R1);
	asm_st(as, BPF_DW, R10, FRAME_LOCALS, R2);
}

void gen_frame_var(struct gen *g, int reg, const struct ir_var *v, bool next)
{
	uint32_t off = g->priv->var_off[v->id] + (next ? g->priv->frame_size : 0);

	if (g->plan->needs & NEED_CALLS) {
		asm_ld(&g->as, BPF_DW, reg, R10, FRAME_LOCALS);
		asm_alui(&g->as, BPF_ADD, reg, (int32_t)off);
	} else {
		gen_scratch(g, reg, g->priv->frames_off + off);
	}
}

void gen_enter(struct gen *g, const struct ir_insn *i)
{
	struct assembler *as = &g->as;
	int32_t number = 0;

	while (g->enters[number] != i)
		number++;
	asm_ld(as, BPF_DW, R1, R9, state(g, STATE_DEPTH));
	asm_ji(as, BPF_JGE, R1, (int32_t)g->prog->nesting, gen_fault(g, ABI_FAULT_NESTING, NO_VALUE));
	asm_alui(as, BPF_ADD, R1, 1);
	asm_st(as, BPF_DW, R9, state(g, STATE_DEPTH), R1);
	set_frame(g);
	asm_sti(as, BPF_DW, R2, 0, number);
	forget(g);
	asm_may_goto(as, gen_fault(g, ABI_FAULT_ACTIONS, NO_VALUE));
	asm_ja(as, g->labels[i->target[0]->id]);
}

void gen_leave(struct gen *g, const struct ir_insn *i)
{
	(void)i;
	asm_ja(&g->as, g->leave);
}

static void returns(struct gen *g)
{
	struct assembler *as = &g->as;

	asm_place(as, g->leave);
	asm_ld(as, BPF_DW, R1, R10, FRAME_LOCALS);
	asm_ld(as, BPF_DW, R3, R1, 0);
	asm_ld(as, BPF_DW, R1, R9, state(g, STATE_DEPTH));
	asm_alui(as, BPF_SUB, R1, 1);
	/* No ENTER led here. */
	asm_ji(as, BPF_JGE, R1, (int32_t)g->prog->nesting, g->end);
	asm_st(as, BPF_DW, R9, state(g, STATE_DEPTH), R1);
	set_frame(g);
	forget(g);
	/* Returns of one procedure to itself make a loop. */
	asm_may_goto(as, gen_fault(g, ABI_FAULT_ACTIONS, NO_VALUE));
	for (uint32_t k = 0; k + 1 < g->nenters; k++)
		asm_ji(as, BPF_JEQ, R3, (int32_t)k, g->labels[g->enters[k]->target[1]->id]);
	asm_ja(as, g->labels[g->enters[g->nenters - 1]->target[1]->id]);
}

/* --- faults ------------------------------------------------------------------------------------------- */

void gen_try(struct gen *g, const struct ir_insn *i)
{
	struct assembler *as = &g->as;
	int32_t number = 0;

	while (g->tries[number] != i)
		number++;
	asm_ld(as, BPF_DW, R1, R9, state(g, STATE_NTRIES));
	asm_ji(as, BPF_JGE, R1, IR_MAX_TRIES, gen_fault(g, ABI_FAULT_NESTING, NO_VALUE));
	asm_ld(as, BPF_DW, R2, R9, state(g, STATE_DEPTH));
	asm_alui(as, BPF_LSH, R2, 32);
	asm_alui(as, BPF_OR, R2, number);
	asm_mov(as, R3, R1);
	asm_alui(as, BPF_LSH, R3, 3);
	asm_alu(as, BPF_ADD, R3, R9);
	asm_st(as, BPF_DW, R3, state(g, STATE_TRIES), R2);
	asm_alui(as, BPF_ADD, R1, 1);
	asm_st(as, BPF_DW, R9, state(g, STATE_NTRIES), R1);
	if (i->target[1] != g->next)
		asm_ja(as, g->labels[i->target[1]->id]);
}

void gen_endtry(struct gen *g, const struct ir_insn *i)
{
	struct assembler *as = &g->as;

	(void)i;
	asm_ld(as, BPF_DW, R1, R9, state(g, STATE_NTRIES));
	asm_alui(as, BPF_SUB, R1, 1);
	asm_st(as, BPF_DW, R9, state(g, STATE_NTRIES), R1);
}

void gen_catchable(struct gen *g, const struct stub *s)
{
	struct assembler *as = &g->as;

	asm_st(as, BPF_DW, R9, state(g, STATE_FAULT + IR_CAUGHT_VALUE), R1);
	asm_sti(as, BPF_DW, R9, state(g, STATE_FAULT + IR_CAUGHT_KIND), s->kind);
	asm_sti(as, BPF_DW, R9, state(g, STATE_FAULT + IR_CAUGHT_ACT), (int32_t)s->act);
	asm_ja(as, g->catch);
}

/* From g->catch to where the innermost TRY says; without one the fault is as good as not catchable. */
static void catches(struct gen *g, uint32_t faulted)
{
	struct assembler *as = &g->as;
	uint32_t none = asm_label(as), late = asm_label(as), pop = asm_label(as);

	asm_place(as, g->catch);
	forget(g);
	/* A fault where a fault is caught makes a loop. */
	asm_may_goto(as, late);
	asm_ld(as, BPF_DW, R1, R9, state(g, STATE_NTRIES));
	asm_ji(as, BPF_JEQ, R1, 0, none);
	asm_ja(as, pop);
	/*
	 * Time is up, and this is the last time that something is caught: by the outermost TRY.  User space refuses ways
	 * round that have no may_goto left, whatever the data.
	 */
	asm_place(as, late);
	if (g->env->user_space)
		asm_last_goto(as, none);
	asm_ld(as, BPF_DW, R1, R10, FRAME_LATE);
	asm_ji(as, BPF_JNE, R1, 0, g->end);
	asm_sti(as, BPF_DW, R10, FRAME_LATE, 1);
	asm_ld(as, BPF_DW, R1, R9, state(g, STATE_NTRIES));
	asm_ji(as, BPF_JEQ, R1, 0, none);
	asm_imm(as, R1, 1);
	asm_place(as, pop);
	asm_alui(as, BPF_SUB, R1, 1);
	asm_ji(as, BPF_JGE, R1, IR_MAX_TRIES, none);	/* more ENDTRYs than TRYs */
	asm_st(as, BPF_DW, R9, state(g, STATE_NTRIES), R1);
	asm_alui(as, BPF_LSH, R1, 3);
	asm_alu(as, BPF_ADD, R1, R9);
	asm_ld(as, BPF_W, R3, R1, state(g, STATE_TRIES));
	if (g->plan->needs & NEED_CALLS) {
		asm_ld(as, BPF_W, R1, R1, state(g, STATE_TRIES) + 4);
		asm_ji(as, BPF_JGT, R1, (int32_t)g->prog->nesting, none);
		asm_st(as, BPF_DW, R9, state(g, STATE_DEPTH), R1);
		set_frame(g);
	}
	for (uint32_t k = 0; k + 1 < g->ntries; k++)
		asm_ji(as, BPF_JEQ, R3, (int32_t)k, g->labels[g->tries[k]->target[0]->id]);
	asm_ja(as, g->labels[g->tries[g->ntries - 1]->target[0]->id]);

	asm_place(as, none);
	for (int k = 0; k < 3; k++) {
		static const int to[3] = { [IR_CAUGHT_KIND] = FAULT_KIND, [IR_CAUGHT_VALUE] = FAULT_VALUE,
					   [IR_CAUGHT_ACT] = FAULT_ACT };

		asm_ld(as, BPF_DW, R1, R9, state(g, STATE_FAULT + k));
		asm_st(as, BPF_DW, R10, FRAME_FAULT + 8 * to[k], R1);
	}
	asm_sti(as, BPF_DW, R10, FRAME_FAULT + 8 * FAULT_OFF, 0);
	asm_ja(as, faulted);
}

void gen_caught(struct gen *g, const struct ir_insn *i)
{
	asm_ld(&g->as, BPF_DW, R1, R9, state(g, STATE_FAULT + (int)i->imm));
	gen_put(g, i, R1);
}

void gen_raise_text(struct gen *g, const struct ir_insn *i)
{
	gen_str_to(g, i->args[0], (struct place){ g->priv->raise_off, false });
	asm_ja(&g->as, gen_fault(g, ABI_FAULT_ERROR, NO_VALUE));
}

void gen_caughtstr(struct gen *g, const struct ir_insn *i)
{
	gen_scratch(g, R3, g->priv->raise_off);
	gen_place(g, R1, gen_str_dst(g, i));
	gen_copy_str(g, false);
}

void gen_failed(struct gen *g, const struct ir_insn *i)
{
	struct assembler *as = &g->as;

	asm_map_value(as, R2, EBPF_MAP_CONTROL, offsetof(struct abi_control, errors));
	asm_imm(as, R1, 1);
	asm_atomic(as, BPF_ADD | BPF_FETCH, BPF_DW, R2, 0, R1);
	gen_put(g, i, R1);
}

/* --- around a clause ---------------------------------------------------------------------------------- */

/* The clause's instructions @op: an array of them. */
static const struct ir_insn **find(struct gen *g, enum ir_op op, uint32_t *n)
{
	const struct ir_insn **v = NULL;
	size_t cap = 0;

	*n = 0;
	for (uint32_t b = 0; b < g->plan->nblocks; b++) {
		const struct ir_block *k = g->plan->blocks[b];
		const struct ir_insn *end = &k->insns[k->n - 1];

		if (end->op != op)
			continue;
		v = arena_grow(g->prog->arena, v, &cap, *n, sizeof(*v));
		v[(*n)++] = end;
	}
	return v;
}

void gen_flow_begin(struct gen *g)
{
	struct assembler *as = &g->as;

	g->enters = find(g, IR_ENTER, &g->nenters);
	g->tries = find(g, IR_TRY, &g->ntries);
	g->catch = g->leave = 0;
	if (!(g->plan->needs & NEED_STATE))
		return;
	asm_sti(as, BPF_DW, R9, state(g, STATE_DEPTH), 0);
	asm_sti(as, BPF_DW, R9, state(g, STATE_NTRIES), 0);
	if (g->plan->needs & NEED_CALLS) {
		asm_imm(as, R1, 0);
		set_frame(g);
		g->leave = asm_label(as);
	}
	if (g->ntries) {
		asm_sti(as, BPF_DW, R10, FRAME_LATE, 0);
		g->catch = asm_label(as);
	}
}

void gen_flow_returns(struct gen *g)
{
	if (!(g->plan->needs & NEED_CALLS))
		return;
	if (g->nenters && asm_wanted(&g->as, g->leave))
		returns(g);
	else
		asm_place(&g->as, g->leave);
}

void gen_flow_catches(struct gen *g, uint32_t faulted)
{
	if (g->ntries)
		catches(g, faulted);
}

/*
 * Control flow: loops, procedures, caught faults.
 *
 * A clause with loops keeps everything in scratch memory, whose content the verifier does not track: the number of
 * calls, the return address of each, the TRYs, all integers (plan.h).
 *
 * When the verifier comes to an instruction again, it compares the whole stack, also words that are no longer used,
 * with the states that it has seen there.  So an instruction leaves the words of the frame that it used as zeros
 * (gen_tidy): every path to an instruction then has the same stack.  A turn (gen_turn.c) begins where paths from all
 * over the clause meet: at the head of a loop, at the start of a procedure, where it returns, and where faults are
 * caught.  Only there does the verifier prune a path in a state that it has seen while earlier paths are unfinished.
 *
 * If the TRYs around each block are known when the program is generated (tries.c), faults jump to their handlers.
 * Otherwise the TRYs are recorded at run time:
 *
 * State, at unit.h's state_off: the words below, then the TRYs: depth << 32 | number of the TRY.
 * A frame is the number of the ENTER it was made by, then the IR_FRAME variables.
 */
#include "bpf/gen.h"

#include <stddef.h>

#include "base/arena.h"

/* --- the frame ---------------------------------------------------------------------------------------- */

/* Is it one of ERROR's arguments? */
static bool is_fault(int off)
{
	return off >= FRAME_FAULT && off < FRAME_FAULT + 40;
}

/* The bit of a frame word from FRAME_TMP down to FRAME_WALK that instructions use temporarily; -1: another word. */
static int word_of(int off)
{
	int bit = (FRAME_TMP - off) / 8;

	_Static_assert((FRAME_TMP - FRAME_WALK) / 8 < 32, "a bit for each");
	return off > FRAME_TMP || off < FRAME_WALK || off == FRAME_LATE || is_fault(off) ? -1 : bit;
}

/* The frame words that @i, which follows @before, writes, or whose address it takes. */
static uint32_t stores(const struct bpf_insn *before, const struct bpf_insn *i)
{
	bool address = i->code == (BPF_ALU64 | BPF_ADD | BPF_K) && before->code == (BPF_ALU64 | BPF_MOV | BPF_X) &&
		       before->src_reg == R10 && before->dst_reg == i->dst_reg;
	int cls = BPF_CLASS(i->code), bit;

	if (address)
		bit = word_of(i->imm);
	else if ((cls == BPF_ST || cls == BPF_STX) && i->dst_reg == R10)
		bit = word_of(i->off);
	else
		return 0;
	if (bit < 0)
		return 0;
	/* A function with the address of FRAME_KEY may write to all of that area. */
	if (address && i->imm == FRAME_KEY)
		return (uint32_t)(((1u << FRAME_KEY_SIZE / 8) - 1) << word_of(FRAME_THREAD - 8));
	return 1u << bit;
}

static void clear(struct gen *g, uint32_t words)
{
	for (int bit = 0; bit < 32; bit++)
		if (words >> bit & 1)
			asm_sti(&g->as, BPF_DW, R10, FRAME_TMP - 8 * bit, 0);
}

void gen_tidy(struct gen *g, uint32_t from)
{
	uint32_t words = 0;

	if (!(g->plan->needs & NEED_LOOPS))
		return;
	for (uint32_t k = from + 1; k < g->as.n; k++)
		words |= stores(&g->as.insns[k - 1], &g->as.insns[k]);
	if (from < g->as.n)
		words |= stores(&g->as.insns[from], &g->as.insns[from]);
	g->dirty |= words;
	clear(g, words);
}

void gen_clear_frame(struct gen *g)
{
	for (int r = R6; r <= R8; r++)
		asm_imm(&g->as, r, 0);
	for (int off = FRAME_TMP; off >= FRAME_WALK; off -= 8)
		if (!is_fault(off))
			asm_sti(&g->as, BPF_DW, R10, off, 0);
	g->dirty = 0;
}

/* --- budget ------------------------------------------------------------------------------------------- */

void gen_budget(struct gen *g, const struct ir_insn *i)
{
	asm_sti(&g->as, BPF_DW, R9, gen_state(g, STATE_ACTIONS), (int32_t)i->imm);
}

/* The first one in a block spends for all of the block. */
void gen_spend(struct gen *g, const struct ir_insn *i)
{
	const struct ir_insn *end = g->block->insns + g->block->n, *k;
	struct assembler *as = &g->as;
	int64_t n = 0;

	for (k = g->block->insns; k < i; k++)
		if (k->op == IR_SPEND)
			return;
	for (k = i; k < end; k++)
		if (k->op == IR_SPEND)
			n += k->imm;
	asm_ld(as, BPF_DW, R1, R9, gen_state(g, STATE_ACTIONS));
	asm_alui(as, BPF_SUB, R1, (int32_t)n);
	asm_st(as, BPF_DW, R9, gen_state(g, STATE_ACTIONS), R1);
	asm_ji(as, BPF_JSLT, R1, 0, gen_fault(g, ABI_FAULT_ACTIONS, NO_VALUE));
}

/* --- procedures --------------------------------------------------------------------------------------- */

void gen_set_frame(struct gen *g)
{
	struct assembler *as = &g->as;

	gen_scratch(g, R8, g->priv->frames_off);
	asm_alui(as, BPF_MUL, R1, (int32_t)g->priv->frame_size);
	asm_alu(as, BPF_ADD, R8, R1);
}

void gen_frame_var(struct gen *g, int reg, const struct ir_var *v, bool next)
{
	uint32_t off = g->priv->var_off[v->id] + (next ? g->priv->frame_size : 0);

	if (g->plan->needs & NEED_CALLS) {
		asm_mov(&g->as, reg, R8);
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
	asm_ld(as, BPF_DW, R1, R9, gen_state(g, STATE_DEPTH));
	asm_ji(as, BPF_JGE, R1, (int32_t)g->prog->nesting, gen_fault(g, ABI_FAULT_NESTING, NO_VALUE));
	asm_alui(as, BPF_ADD, R1, 1);
	asm_st(as, BPF_DW, R9, gen_state(g, STATE_DEPTH), R1);
	gen_set_frame(g);
	asm_sti(as, BPF_DW, R8, 0, number);
	asm_ja(as, g->labels[i->target[0]->id]);
}

void gen_procedure(struct gen *g, const struct ir_block *b)
{
	for (uint32_t k = 0; k < g->nenters; k++) {
		if (g->enters[k]->target[0] == b) {
			g->insn = &b->insns[0];
			gen_turn_point(g, gen_fault(g, ABI_FAULT_TIME, NO_VALUE));
			return;
		}
	}
}

void gen_leave(struct gen *g, const struct ir_insn *i)
{
	(void)i;
	asm_ja(&g->as, g->leave);
}

static void returns(struct gen *g)
{
	struct assembler *as = &g->as;

	asm_bind(as, g->leave);
	/* Returns of a recursive procedure form a loop. */
	gen_turn_point(g, gen_fault(g, ABI_FAULT_TIME, NO_VALUE));
	asm_ld(as, BPF_DW, R3, R8, 0);
	asm_ld(as, BPF_DW, R1, R9, gen_state(g, STATE_DEPTH));
	asm_alui(as, BPF_SUB, R1, 1);
	/* There was no ENTER. */
	asm_ji(as, BPF_JGE, R1, (int32_t)g->prog->nesting, g->end);
	asm_st(as, BPF_DW, R9, gen_state(g, STATE_DEPTH), R1);
	gen_set_frame(g);
	for (uint32_t k = 0; k + 1 < g->nenters; k++)
		asm_ji(as, BPF_JEQ, R3, (int32_t)k, g->labels[g->enters[k]->target[1]->id]);
	asm_ja(as, g->labels[g->enters[g->nenters - 1]->target[1]->id]);
}

/* --- faults ------------------------------------------------------------------------------------------- */

void gen_try(struct gen *g, const struct ir_insn *i)
{
	struct assembler *as = &g->as;
	int32_t number = 0;

	if (g->plan->regions) {
		/*
		 * Never taken.  It makes the handler reachable: the kernel refuses unreachable code, and perhaps
		 * nothing in the region can fault.
		 */
		asm_ji(as, BPF_JEQ, R9, 0, g->caught[g->plan->regions[i->target[1]->id]->number]);
		if (i->target[1] != g->next)
			asm_ja(as, g->labels[i->target[1]->id]);
		return;
	}
	while (g->tries[number] != i)
		number++;
	asm_ld(as, BPF_DW, R1, R9, gen_state(g, STATE_NTRIES));
	asm_ji(as, BPF_JGE, R1, IR_MAX_TRIES, gen_fault(g, ABI_FAULT_NESTING, NO_VALUE));
	asm_ld(as, BPF_DW, R2, R9, gen_state(g, STATE_DEPTH));
	asm_alui(as, BPF_LSH, R2, 32);
	asm_alui(as, BPF_OR, R2, number);
	asm_mov(as, R3, R1);
	asm_alui(as, BPF_LSH, R3, 3);
	asm_alu(as, BPF_ADD, R3, R9);
	asm_st(as, BPF_DW, R3, gen_state(g, STATE_TRIES), R2);
	asm_alui(as, BPF_ADD, R1, 1);
	asm_st(as, BPF_DW, R9, gen_state(g, STATE_NTRIES), R1);
	if (i->target[1] != g->next)
		asm_ja(as, g->labels[i->target[1]->id]);
}

void gen_endtry(struct gen *g, const struct ir_insn *i)
{
	struct assembler *as = &g->as;

	(void)i;
	if (g->plan->regions) {
		g->region = g->region->outer;
		return;
	}
	asm_ld(as, BPF_DW, R1, R9, gen_state(g, STATE_NTRIES));
	asm_alui(as, BPF_SUB, R1, 1);
	asm_st(as, BPF_DW, R9, gen_state(g, STATE_NTRIES), R1);
}

bool gen_catchable(struct gen *g, const struct stub *s)
{
	struct assembler *as = &g->as;

	if (!s->region && !g->ntries)
		return false;
	asm_st(as, BPF_DW, R9, gen_state(g, STATE_FAULT + IR_CAUGHT_VALUE), R1);
	asm_sti(as, BPF_DW, R9, gen_state(g, STATE_FAULT + IR_CAUGHT_KIND), s->kind);
	asm_sti(as, BPF_DW, R9, gen_state(g, STATE_FAULT + IR_CAUGHT_ACT), (int32_t)s->act);
	asm_ja(as, s->region ? g->caught[s->region->number] : g->catch);
	return true;
}

/* From each region's label to its TRY's handler. */
static void regions(struct gen *g)
{
	struct assembler *as = &g->as;

	for (uint32_t b = 0; b < g->plan->nblocks; b++) {
		const struct ir_insn *end = &g->plan->blocks[b]->insns[g->plan->blocks[b]->n - 1];

		if (end->op != IR_TRY)
			continue;
		asm_bind(as, g->caught[g->plan->regions[end->target[1]->id]->number]);
		clear(g, g->dirty);
		asm_ja(as, g->labels[end->target[0]->id]);
	}
}

/*
 * Time is up, and this is the last fault that is caught: by the outermost TRY, if there is one.  The load-time check
 * (vm/) refuses loops without a may_goto, whatever the data.
 */
static void last_catch(struct gen *g, uint32_t none)
{
	struct assembler *as = &g->as;

	if (gen_last_turns(g, none))
		return;
	if (g->env->user_space)
		asm_last_goto(as, none);
	asm_ld(as, BPF_DW, R1, R10, FRAME_LATE);
	asm_ji(as, BPF_JNE, R1, 0, g->end);
	asm_sti(as, BPF_DW, R10, FRAME_LATE, 1);
	asm_ld(as, BPF_DW, R1, R9, gen_state(g, STATE_NTRIES));
	asm_ji(as, BPF_JEQ, R1, 0, none);
	asm_imm(as, R1, 1);
}

/* From g->catch to the innermost TRY's handler; without a TRY the fault is treated as not catchable. */
static void catches(struct gen *g, uint32_t faulted)
{
	struct assembler *as = &g->as;
	uint32_t none = asm_label(as), late = asm_label(as), pop = asm_label(as);

	asm_bind(as, g->catch);
	clear(g, g->dirty);
	/* A fault in a handler forms a loop. */
	gen_turn_point(g, late);
	asm_ld(as, BPF_DW, R1, R9, gen_state(g, STATE_NTRIES));
	asm_ji(as, BPF_JEQ, R1, 0, none);
	asm_ja(as, pop);
	asm_bind(as, late);
	last_catch(g, none);
	asm_bind(as, pop);
	asm_alui(as, BPF_SUB, R1, 1);
	asm_ji(as, BPF_JGE, R1, IR_MAX_TRIES, none);	/* more ENDTRYs than TRYs */
	asm_st(as, BPF_DW, R9, gen_state(g, STATE_NTRIES), R1);
	asm_alui(as, BPF_LSH, R1, 3);
	asm_alu(as, BPF_ADD, R1, R9);
	asm_ld(as, BPF_W, R3, R1, gen_state(g, STATE_TRIES));
	if (g->plan->needs & NEED_CALLS) {
		asm_ld(as, BPF_W, R1, R1, gen_state(g, STATE_TRIES) + 4);
		asm_ji(as, BPF_JGT, R1, (int32_t)g->prog->nesting, none);
		asm_st(as, BPF_DW, R9, gen_state(g, STATE_DEPTH), R1);
		gen_set_frame(g);
	}
	for (uint32_t k = 0; k + 1 < g->ntries; k++)
		asm_ji(as, BPF_JEQ, R3, (int32_t)k, g->labels[g->tries[k]->target[0]->id]);
	asm_ja(as, g->labels[g->tries[g->ntries - 1]->target[0]->id]);

	asm_bind(as, none);
	asm_ld(as, BPF_DW, R1, R9, gen_state(g, STATE_FAULT + IR_CAUGHT_KIND));
	asm_st(as, BPF_DW, R10, FRAME_FAULT + 8 * FAULT_KIND, R1);
	asm_ld(as, BPF_DW, R1, R9, gen_state(g, STATE_FAULT + IR_CAUGHT_VALUE));
	asm_st(as, BPF_DW, R10, FRAME_FAULT + 8 * FAULT_VALUE, R1);
	asm_sti(as, BPF_DW, R10, FRAME_FAULT + 8 * FAULT_OFF, 0);
	asm_ja(as, faulted);
}

void gen_caught(struct gen *g, const struct ir_insn *i)
{
	asm_ld(&g->as, BPF_DW, R1, R9, gen_state(g, STATE_FAULT + (int)i->imm));
	gen_put(g, i, R1);
}

void gen_raise_text(struct gen *g, const struct ir_insn *i)
{
	gen_str_to(g, i->args[0], (struct dest){ g->priv->raise_off, false });
	asm_ja(&g->as, gen_fault(g, ABI_FAULT_ERROR, NO_VALUE));
}

void gen_caughtstr(struct gen *g, const struct ir_insn *i)
{
	gen_scratch(g, R3, g->priv->raise_off);
	gen_dest(g, R1, gen_str_dst(g, i));
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

/* An array of the clause's instructions @op, which end blocks. */
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
	g->tries = NULL;
	g->ntries = 0;
	g->caught = NULL;
	if (!g->plan->regions)
		g->tries = find(g, IR_TRY, &g->ntries);
	else if (g->plan->nregions)
		g->caught = arena_alloc(g->prog->arena, g->plan->nregions * sizeof(*g->caught));
	for (uint32_t k = 0; k < g->plan->nregions; k++)
		g->caught[k] = asm_label(as);
	g->catch = g->leave = 0;
	/* Other clauses may have left values in the frame. */
	if (g->plan->needs & NEED_LOOPS)
		gen_clear_frame(g);
	if (!(g->plan->needs & NEED_STATE))
		return;
	if (g->plan->needs & NEED_CALLS || g->ntries) {
		asm_sti(as, BPF_DW, R9, gen_state(g, STATE_DEPTH), 0);
		asm_sti(as, BPF_DW, R9, gen_state(g, STATE_NTRIES), 0);
	}
	if (g->plan->needs & NEED_CALLS) {
		asm_imm(as, R1, 0);
		gen_set_frame(g);
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
		asm_bind(&g->as, g->leave);
}

void gen_flow_catches(struct gen *g, uint32_t faulted)
{
	if (g->ntries)
		catches(g, faulted);
	else if (g->caught)
		regions(g);
}

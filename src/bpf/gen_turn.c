/*
 * Turns: the iterations of loops.
 *
 * The kernel accepts loops of unknown length if they contain may_goto (6.9): it checks a loop's body until its
 * knowledge of registers and stack no longer changes.  At run time may_goto ends loops after 8 million turns or a
 * quarter of a second, which is the fault ABI_FAULT_TIME.
 *
 * An older kernel has bpf_loop (5.17), which calls a function repeatedly.  There a clause with loops is such a
 * function.  At the end of a turn it stores where the next one begins, and returns; when it is called again, it jumps
 * there.  Nothing is lost, since the clause keeps everything in scratch memory.  The program's values (frame.h) are
 * copied from the program's frame at each call.
 */
#include "bpf/gen.h"

#include "base/arena.h"

enum {
	TURNS_ALL = 1 << 23,		/* the limit of bpf_loop */
	TURNS_LAST = 1 << 16,		/* of these, reserved for the handler of the fault ABI_FAULT_TIME */
	FRAME_SCRATCH = FRAME_TMP,	/* in the program's frame, while turns are called: R9 */
};

static bool calls(const struct gen *g)
{
	return g->env->turns_called && !g->env->user_space;
}

bool gen_turns_called(const struct gen *g, const struct plan *plan)
{
	return calls(g) && plan->needs & NEED_LOOPS;
}

/* End the turn; the next one begins at turn point @n. */
static void end_turn(struct gen *g, uint32_t n)
{
	struct assembler *as = &g->as;

	asm_sti(as, BPF_DW, R9, gen_state(g, STATE_AT), (int32_t)n);
	asm_imm(as, R0, 0);
	asm_exit(as);
}

void gen_turn_point(struct gen *g, uint32_t over)
{
	struct assembler *as = &g->as;

	if (!calls(g)) {
		asm_may_goto(as, over);
		return;
	}
	g->turns = arena_grow(g->prog->arena, g->turns, &g->turns_cap, g->nturns, sizeof(*g->turns));
	g->turns[g->nturns++] = asm_label(as);
	asm_ld(as, BPF_DW, R1, R9, gen_state(g, STATE_TURNS));
	asm_alui(as, BPF_SUB, R1, 1);
	asm_st(as, BPF_DW, R9, gen_state(g, STATE_TURNS), R1);
	asm_ji(as, BPF_JSLE, R1, 0, over);
	end_turn(g, g->nturns);
	asm_bind(as, g->turns[g->nturns - 1]);
}

bool gen_last_turns(struct gen *g, uint32_t none)
{
	struct assembler *as = &g->as;

	if (!calls(g))
		return false;
	asm_ld(as, BPF_DW, R1, R9, gen_state(g, STATE_LATE));
	asm_ji(as, BPF_JNE, R1, 0, g->end);
	asm_ld(as, BPF_DW, R1, R9, gen_state(g, STATE_NTRIES));
	asm_ji(as, BPF_JEQ, R1, 0, none);
	asm_sti(as, BPF_DW, R9, gen_state(g, STATE_NTRIES), 1);
	asm_sti(as, BPF_DW, R9, gen_state(g, STATE_LATE), 1);
	asm_sti(as, BPF_DW, R9, gen_state(g, STATE_TURNS), TURNS_LAST);
	end_turn(g, g->nturns);
	return true;
}

void gen_turn(struct gen *g, const struct ir_insn *i)
{
	(void)i;
	gen_turn_point(g, gen_fault(g, ABI_FAULT_TIME, NO_VALUE));
}

/*
 * From 6.15 on the kernel measures the time that may_goto allows with the help of a word on the stack; when it gives
 * the program a stack of its own (6.13), it looks for that word on the other one (x86-64, seen on 6.18), and the loops
 * end after 65535 turns.  A program that has a tail call gets no stack of its own; this call always fails, since its
 * map is empty.  Each program has its own map, since a map serves programs of one kind only.  Sleepable programs cannot
 * have it, and keep the limit of 65535 turns.
 */
void gen_own_stack(struct gen *g)
{
	struct assembler *as = &g->as;

	if (!(g->needs & NEED_LOOPS) || g->env->user_space || g->faults_in || calls(g))
		return;
	asm_ld(as, BPF_DW, R1, R10, FRAME_CTX);
	asm_map(as, R2, EBPF_MAP_CALLS);
	asm_imm(as, R3, 0);
	asm_helper(as, BPF_FUNC_tail_call);
}

/* --- turns as calls ------------------------------------------------------------------------------------ */

void gen_call_turns(struct gen *g, uint32_t label)
{
	struct assembler *as = &g->as;

	asm_sti(as, BPF_DW, R9, gen_state(g, STATE_AT), 0);
	asm_sti(as, BPF_DW, R9, gen_state(g, STATE_TURNS), TURNS_ALL - TURNS_LAST - 1);
	asm_sti(as, BPF_DW, R9, gen_state(g, STATE_LATE), 0);
	asm_st(as, BPF_DW, R10, FRAME_SCRATCH, R9);
	asm_imm(as, R1, TURNS_ALL);
	asm_label_addr(as, R2, label);
	asm_mov(as, R3, R10);
	asm_imm(as, R4, 0);
	asm_helper(as, BPF_FUNC_loop);
}

/* The function begins: R2 is the address of the program's frame. */
void gen_turns_begin(struct gen *g)
{
	static const struct {
		uint32_t need;
		int off;
	} values[] = {
		{ 0, FRAME_CTX }, { NEED_TIME, FRAME_TIME }, { NEED_PROBE, FRAME_PROBE }, { NEED_TASK, FRAME_TASK },
	};
	struct assembler *as = &g->as;
	uint32_t start = asm_label(as);

	g->nturns = 0;
	asm_ld(as, BPF_DW, R9, R2, FRAME_SCRATCH);
	for (unsigned int k = 0; k < sizeof(values) / sizeof(values[0]); k++) {
		if ((g->needs & values[k].need) != values[k].need)
			continue;
		asm_ld(as, BPF_DW, R1, R2, values[k].off);
		asm_st(as, BPF_DW, R10, values[k].off, R1);
	}
	gen_clear_frame(g);
	asm_ld(as, BPF_DW, R1, R9, gen_state(g, STATE_AT));
	asm_ji(as, BPF_JEQ, R1, 0, start);
	g->resume = asm_label(as);
	asm_ja(as, g->resume);
	asm_bind(as, start);
}

void gen_turns_end(struct gen *g, const struct plan *plan)
{
	struct assembler *as = &g->as;

	asm_imm(as, R0, 1);
	asm_exit(as);
	asm_bind(as, g->resume);
	if (plan->needs & NEED_CALLS) {
		asm_ld(as, BPF_DW, R1, R9, gen_state(g, STATE_DEPTH));
		asm_ji(as, BPF_JGT, R1, (int32_t)g->prog->nesting, g->end);
		gen_set_frame(g);
	}
	asm_ld(as, BPF_DW, R1, R9, gen_state(g, STATE_AT));
	for (uint32_t k = 0; k < g->nturns; k++)
		asm_ji(as, BPF_JEQ, R1, (int32_t)k + 1, g->turns[k]);
	asm_ja(as, g->end);
}

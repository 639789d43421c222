/*
 * What a firing in the kernel costs the process in which it happens: the time from the program's first instruction to its
 * last, and what the hook takes, which the tracer has measured (ebpf_env.hook_ns).  Summed up by process, for the tracer
 * to read and remove; with nothing there yet, two CPUs at once may lose a firing.
 *
 * That takes as long as a tracepoint itself, so of those one in eight is summed up, by chance, for eight.
 */
#include "bpf/gen.h"

#include <stddef.h>

enum {
	ONE_IN = 8,
	/* What is not between the two readings of the clock, measured: all of it, or with its part of what one in eight does. */
	CHARGE_NS = 130, CHARGE_PART_NS = 50,
};

bool gen_charges(const struct gen *g)
{
	return g->env->hook_ns;
}

void gen_charge(struct gen *g)
{
	struct assembler *as = &g->as;
	uint32_t is_new = asm_label(as), done = asm_label(as);
	bool some = g->env->ctx == EBPF_CTX_TP;
	int weight = some ? ONE_IN : 1;

	if (some) {
		asm_helper(as, BPF_FUNC_get_prandom_u32);
		asm_alui(as, BPF_AND, R0, ONE_IN - 1);
		asm_ji(as, BPF_JNE, R0, 0, done);
	}
	asm_helper(as, BPF_FUNC_ktime_get_ns);
	asm_ld(as, BPF_DW, R1, R10, FRAME_TIME);
	asm_alu(as, BPF_SUB, R0, R1);
	asm_alui(as, BPF_ADD, R0, (int32_t)g->env->hook_ns + (some ? CHARGE_PART_NS : CHARGE_NS));
	asm_alui(as, BPF_MUL, R0, weight);
	asm_st(as, BPF_DW, R10, FRAME_COST + (int)offsetof(struct ebpf_cost, spent_ns), R0);
	gen_thread_numbers(g);	/* a tracepoint may be about another one */
	asm_lookup(as, EBPF_MAP_COSTS, FRAME_TASK + 4);
	asm_ji(as, BPF_JEQ, R0, 0, is_new);
	asm_imm(as, R1, weight);
	asm_atomic(as, BPF_ADD, BPF_DW, R0, (int)offsetof(struct ebpf_cost, events), R1);
	asm_ld(as, BPF_DW, R1, R10, FRAME_COST + (int)offsetof(struct ebpf_cost, spent_ns));
	asm_atomic(as, BPF_ADD, BPF_DW, R0, (int)offsetof(struct ebpf_cost, spent_ns), R1);
	asm_ja(as, done);
	asm_bind(as, is_new);
	asm_sti(as, BPF_DW, R10, FRAME_COST + (int)offsetof(struct ebpf_cost, events), weight);
	asm_map(as, R1, EBPF_MAP_COSTS);
	asm_mov(as, R2, R10);
	asm_alui(as, BPF_ADD, R2, FRAME_TASK + 4);
	asm_mov(as, R3, R10);
	asm_alui(as, BPF_ADD, R3, FRAME_COST);
	asm_imm(as, R4, BPF_NOEXIST);
	asm_helper(as, BPF_FUNC_map_update_elem);
	asm_bind(as, done);
}

/*
 * Probes of CPython's lock (rt/gil.c): their filter and their arguments.
 *
 * The arguments are computed once, before the clauses, and kept in the scratch slot.
 */
#include "bpf/gen.h"

#include <stddef.h>

#include "bpf/rt/gil.h"

#define EVENT(field) (FRAME_EARLY + (int)offsetof(struct gil_event, field))

void gen_gil_filter(struct gen *g, uint32_t out)
{
	static const int what[] = { [EBPF_GIL_WAIT] = GIL_WAIT, [EBPF_GIL_TAKE] = GIL_TAKE, [EBPF_GIL_DROP] = GIL_DROP };
	struct assembler *as = &g->as;

	gen_prologue_values(g, GIL_NEEDS);
	asm_helper(as, BPF_FUNC_get_current_pid_tgid);
	asm_st(as, BPF_DW, R10, EVENT(thread), R0);
	asm_ld(as, BPF_DW, R1, R10, FRAME_PROBE);
	asm_st(as, BPF_DW, R10, EVENT(probe), R1);
	asm_sti(as, BPF_DW, R10, EVENT(ns), 0);
	asm_sti(as, BPF_DW, R10, EVENT(lock), 0);
	asm_sti(as, BPF_W, R10, EVENT(what), what[g->env->gil]);
	asm_sti(as, BPF_W, R10, EVENT(mutex_size), g->kept->mutex_size);
	asm_map(as, R1, EBPF_MAP_GILS);
	asm_mov(as, R2, R10);
	asm_alui(as, BPF_ADD, R2, FRAME_EARLY);
	asm_ld(as, BPF_DW, R3, R10, FRAME_CTX);
	asm_ld(as, BPF_DW, R3, R3, g->env->args[0].reg_off);
	asm_ld(as, BPF_DW, R4, R10, FRAME_TIME);
	asm_rt(as, RT_GIL);
	asm_ji(as, BPF_JEQ, R0, 0, out);
}

void gen_gil_keep(struct gen *g)
{
	struct assembler *as = &g->as;

	asm_ld(as, BPF_DW, R1, R10, g->env->gil == EBPF_GIL_WAIT ? EVENT(lock) : EVENT(ns));
	asm_st(as, BPF_DW, R9, SCRATCH_GIL, R1);
	asm_ld(as, BPF_DW, R1, R10, EVENT(lock));
	asm_st(as, BPF_DW, R9, SCRATCH_GIL + 8, R1);
}

void gen_gil_arg(struct gen *g, int64_t n)
{
	asm_ld(&g->as, BPF_DW, R1, R9, SCRATCH_GIL + 8 * (int)n);
}

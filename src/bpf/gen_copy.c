/*
 * A clause's own memory, in the scratch slot: copyin() copies to it, alloca() allocates in it, and bcopy(), copyinto()
 * and stores through pointers write to it.  Each call of copyin() and alloca() in the program has a fixed place, with
 * room for its largest size.  Also the registers of the traced thread.
 */
#include "bpf/gen.h"

enum { ALLOCA_INLINE = 64 };	/* bytes that are cleared by one store per word */

static const struct copyin *room(const struct gen *g, const struct ir_insn *i)
{
	const struct copyin *c = g->plan->copyins;

	while (c->insn != i)
		c++;
	return c;
}

/* @reg = the address of byte @off of the scratch slot, stored and loaded: that makes it a number for the verifier,
 * so scripts can calculate with it.  Uses R0. */
static void number_of(struct gen *g, int reg, uint32_t off)
{
	gen_scratch(g, reg, off);
	gen_scratch(g, R0, g->priv->work_off);
	asm_st(&g->as, BPF_DW, R0, 0, reg);
	asm_ld(&g->as, BPF_DW, reg, R0, 0);
}

void gen_copyin(struct gen *g, const struct ir_insn *i)
{
	struct assembler *as = &g->as;
	const struct copyin *c = room(g, i);
	uint32_t off = g->priv->copyin_off + c->off, ok;

	gen_load(g, R3, i->args[0]);
	gen_load(g, R2, i->args[1]);
	asm_st(as, BPF_DW, R10, FRAME_TMP2, R3);
	asm_st(as, BPF_DW, R10, FRAME_TMP, R2);
	asm_ji(as, BPF_JGT, R2, (int32_t)c->size, gen_fault(g, ABI_FAULT_NOSCRATCH, FRAME_TMP));
	asm_st(as, BPF_DW, R10, FRAME_TMP, R2);
	gen_scratch(g, R1, off);
	asm_helper(as, BPF_FUNC_probe_read_user);
	if (gen_faults_in(g)) {
		ok = asm_label(as);
		asm_ji(as, BPF_JEQ, R0, 0, ok);
		gen_scratch(g, R1, off);
		asm_ld(as, BPF_DW, R2, R10, FRAME_TMP);
		asm_ld(as, BPF_DW, R3, R10, FRAME_TMP2);
		asm_helper(as, BPF_FUNC_copy_from_user);
		asm_bind(as, ok);
	}
	asm_ji(as, BPF_JNE, R0, 0, gen_fault(g, ABI_FAULT_BADADDR, FRAME_TMP2));
	number_of(g, R1, off);
	gen_put(g, i, R1);
}

void gen_check_own(struct gen *g)
{
	/* A script may read some bytes beyond the last piece: a cast takes it out of an array's bounds. */
	uint32_t lo = g->priv->copyin_off - g->priv->copyin_guard, used = g->plan->copyin_used;
	uint32_t size = g->priv->copyin_guard + used + (used ? g->priv->copyin_guard : 0);
	uint32_t all = g->priv->copyin_guard + g->priv->copyin_size + g->priv->copyin_guard, own = asm_label(&g->as);
	struct assembler *as = &g->as;

	if (!g->priv->copyin_guard)
		return;
	number_of(g, R1, lo);
	asm_mov(as, R2, R3);
	asm_alu(as, BPF_SUB, R2, R1);
	asm_ji(as, BPF_JGE, R2, (int32_t)all, own);
	asm_ji(as, BPF_JLT, R2, (int32_t)g->priv->copyin_guard, gen_fault(g, ABI_FAULT_BADADDR, FRAME_TMP2));
	asm_ji(as, BPF_JGE, R2, (int32_t)size, gen_fault(g, ABI_FAULT_BADADDR, FRAME_TMP2));
	asm_bind(as, own);
}

/* Cleared, since it holds what an earlier run of the clause wrote. */
void gen_alloca(struct gen *g, const struct ir_insn *i)
{
	uint32_t off = g->priv->copyin_off + room(g, i)->off, size = room(g, i)->size;
	struct assembler *as = &g->as;
	int64_t bytes;

	gen_load(g, R2, i->args[0]);
	asm_st(as, BPF_DW, R10, FRAME_TMP, R2);
	asm_ji(as, BPF_JGT, R2, (int32_t)size, gen_fault(g, ABI_FAULT_NOSCRATCH, FRAME_TMP));
	gen_scratch(g, R1, off);
	if (gen_is_const(g, i->args[0], &bytes) && size <= ALLOCA_INLINE) {
		for (uint32_t at = 0; at < size; at += 8)
			asm_sti(as, BPF_DW, R1, (int)at, 0);
	} else {
		asm_map_value(as, R3, EBPF_MAP_RODATA, g->priv->zeros_off);
		asm_helper(as, BPF_FUNC_probe_read_kernel);
	}
	number_of(g, R1, off);
	gen_put(g, i, R1);
}

/*
 * Copy b bytes from a to c.  Start and end of the destination are checked to lie in the clause's memory; the verifier
 * does not see the check of the end, so unit.c leaves room after that memory.
 */
void gen_copy_into(struct gen *g, const struct ir_insn *i)
{
	bool user = i->fn == IR_FN_COPYINTO;
	int32_t all = (int32_t)g->priv->copyin_size;
	struct assembler *as = &g->as;
	uint32_t bad;

	gen_load(g, R3, i->args[0]);
	asm_st(as, BPF_DW, R10, FRAME_TMP2, R3);
	gen_load(g, R2, i->args[2]);
	asm_st(as, BPF_DW, R10, FRAME_TMP, R2);
	if (user && gen_faults_in(g)) {
		asm_mov(as, R1, R3);
		gen_load(g, R2, i->args[1]);
		asm_rt(as, RT_TOUCH);
		asm_ld(as, BPF_DW, R2, R10, FRAME_TMP);
	}
	bad = gen_fault(g, ABI_FAULT_BADADDR, FRAME_TMP);
	number_of(g, R1, g->priv->copyin_off);
	asm_alu(as, BPF_SUB, R2, R1);
	asm_mov(as, R1, R2);
	gen_load(g, R2, i->args[1]);
	asm_ji(as, BPF_JGT, R1, all, bad);
	asm_ji(as, BPF_JGT, R2, all, bad);
	asm_mov(as, R3, R1);
	asm_alu(as, BPF_ADD, R3, R2);
	asm_ji(as, BPF_JGT, R3, all, bad);
	gen_scratch(g, R0, g->priv->copyin_off);
	asm_alu(as, BPF_ADD, R0, R1);
	asm_mov(as, R1, R0);
	asm_ld(as, BPF_DW, R3, R10, FRAME_TMP2);
	asm_helper(as, user ? BPF_FUNC_probe_read_user : BPF_FUNC_probe_read_kernel);
	asm_ji(as, BPF_JNE, R0, 0, gen_fault(g, ABI_FAULT_BADADDR, FRAME_TMP2));
	gen_put(g, i, R0);
}

/* R2 = the offset of @addr in the clause's memory; a fault unless @bytes from there on lie in it.  Uses R0 and R1. */
static void inside(struct gen *g, ir_reg addr, int64_t bytes)
{
	struct assembler *as = &g->as;

	gen_load(g, R2, addr);
	asm_st(as, BPF_DW, R10, FRAME_TMP, R2);
	number_of(g, R1, g->priv->copyin_off);
	asm_alu(as, BPF_SUB, R2, R1);
	asm_ji(as, BPF_JGT, R2, (int32_t)(g->priv->copyin_size - bytes), gen_fault(g, ABI_FAULT_BADADDR, FRAME_TMP));
}

/* A store as in DTrace (DIF_OP_STB to DIF_OP_STX): only to scratch memory, at a multiple of its width. */
void gen_poke(struct gen *g, const struct ir_insn *i)
{
	struct assembler *as = &g->as;
	int64_t width = gen_constant(g, i->args[2]);

	gen_load(g, R3, i->args[1]);
	inside(g, i->args[0], width);
	if (width > 1)
		asm_ji(as, BPF_JSET, R2, (int32_t)width - 1, gen_fault(g, ABI_FAULT_BADALIGN, FRAME_TMP));
	gen_scratch(g, R0, g->priv->copyin_off);
	asm_alu(as, BPF_ADD, R0, R2);
	asm_st(as, width == 8 ? BPF_DW : width == 4 ? BPF_W : width == 2 ? BPF_H : BPF_B, R0, 0, R3);
	asm_imm(as, R0, 0);
	gen_put(g, i, R0);
}

void gen_poke_string(struct gen *g, const struct ir_insn *i)
{
	struct assembler *as = &g->as;

	gen_str(g, R3, i->args[1]);
	inside(g, i->args[0], g->prog->strsize);
	gen_scratch(g, R1, g->priv->copyin_off);
	asm_alu(as, BPF_ADD, R1, R2);
	gen_copy_str(g, false);
	asm_imm(as, R0, 0);
	gen_put(g, i, R0);
}

/*
 * Of a probe that stops the process at one of its instructions the context is its registers.  Elsewhere the kernel has
 * kept them when it was entered; the tracer's, for BEGIN and END.
 */
void gen_user_reg(struct gen *g, const struct ir_insn *i)
{
	struct assembler *as = &g->as;
	int64_t off = gen_constant(g, i->args[0]);

	if (g->env->ctx == EBPF_CTX_UPROBE) {
		asm_ld(as, BPF_DW, R1, R10, FRAME_CTX);
		asm_ld(as, BPF_DW, R1, R1, (int)off);
		gen_put(g, i, R1);
		return;
	}
	asm_helper(as, BPF_FUNC_get_current_task_btf);
	asm_mov(as, R1, R0);
	asm_helper(as, BPF_FUNC_task_pt_regs);
	asm_mov(as, R3, R0);
	asm_alui(as, BPF_ADD, R3, (int32_t)off);
	asm_mov(as, R1, R10);
	asm_alui(as, BPF_ADD, R1, FRAME_TMP);
	asm_imm(as, R2, 8);
	asm_helper(as, BPF_FUNC_probe_read_kernel);
	asm_ld(as, BPF_DW, R1, R10, FRAME_TMP);
	gen_put(g, i, R1);
}

/*
 * The file that the process executes, and execargs: its arguments, which are in its memory one after the other, each
 * with its NUL.
 */
#include <sys/sysmacros.h>

#include "bpf/gen.h"

void gen_follow(struct gen *g, uint32_t off)
{
	struct assembler *as = &g->as;

	asm_mov(as, R3, R1);
	asm_alui(as, BPF_ADD, R3, (int32_t)off);
	asm_sti(as, BPF_DW, R10, FRAME_TMP, 0);
	asm_mov(as, R1, R10);
	asm_alui(as, BPF_ADD, R1, FRAME_TMP);
	asm_imm(as, R2, 8);
	asm_helper(as, BPF_FUNC_probe_read_kernel);
	asm_ld(as, BPF_DW, R1, R10, FRAME_TMP);
}

/* R1 = the process's struct mm_struct. */
static void get_memory(struct gen *g)
{
	asm_helper(&g->as, BPF_FUNC_get_current_task);
	asm_mov(&g->as, R1, R0);
	gen_follow(g, g->env->task_mm);
}

/* Jump to @out if the file that the process executes has another device than @dev or another inode than @ino. */
static void gen_is_program(struct gen *g, uint64_t dev, uint64_t ino, uint32_t out)
{
	const struct ebpf_env *e = g->env;
	struct assembler *as = &g->as;

	get_memory(g);
	gen_follow(g, e->mm_exe);
	gen_follow(g, e->file_inode);
	asm_st(as, BPF_DW, R10, FRAME_TMP2, R1);
	gen_follow(g, e->inode_number);
	asm_imm(as, R2, (int64_t)ino);
	asm_j(as, BPF_JNE, R1, R2, out);
	asm_ld(as, BPF_DW, R1, R10, FRAME_TMP2);
	gen_follow(g, e->inode_super);
	gen_follow(g, e->super_dev);
	/* A dev_t is 32 bits, 20 of them the minor number (include/linux/kdev_t.h). */
	asm_j32i(as, BPF_JNE, R1, (int32_t)(major(dev) << 20 | minor(dev)), out);
}

void gen_exe_filter(struct gen *g, uint32_t out)
{
	gen_is_program(g, g->env->exe_dev, g->env->exe_ino, out);
}

void gen_bias(struct gen *g, const struct ir_insn *i)
{
	struct assembler *as = &g->as;
	int64_t dev = gen_constant(g, i->args[0]), ino = gen_constant(g, i->args[1]), start = gen_constant(g, i->args[2]);

	if (!g->env->mm_exe || !g->env->mm_start_code) {
		gen_refuse(g, "@var: the kernel does not say where it keeps a process's program");
		return;
	}
	gen_is_program(g, (uint64_t)dev, (uint64_t)ino, gen_fault(g, ABI_FAULT_BADADDR, NO_VALUE));
	get_memory(g);
	gen_follow(g, g->env->mm_start_code);
	asm_imm(as, R2, start);
	asm_alu(as, BPF_SUB, R1, R2);
	gen_put(g, i, R1);
}

void gen_execargs(struct gen *g, struct dest to, uint32_t none)
{
	struct assembler *as = &g->as;
	const struct ebpf_env *e = g->env;
	uint32_t fits = asm_label(as);

	if (!e->user_space && !e->task_mm) {
		gen_refuse(g, "execargs: the kernel does not say where it keeps a process's arguments");
		return;
	}
	if (gen_tp_other_task(g)) {	/* its memory cannot be read from here */
		asm_ja(as, none);
		return;
	}
	if (e->user_space) {
		asm_imm(as, R1, ABI_TASK_ARG_END);
		asm_helper(as, ABI_HELPER_SELF);
		asm_st(as, BPF_DW, R10, FRAME_TMP2, R0);
		asm_imm(as, R1, ABI_TASK_ARG_START);
		asm_helper(as, ABI_HELPER_SELF);
		asm_mov(as, R1, R0);
	} else {
		asm_helper(as, BPF_FUNC_get_current_task);
		asm_mov(as, R1, R0);
		gen_follow(g, e->task_mm);
		asm_st(as, BPF_DW, R10, FRAME_TMP2, R1);
		gen_follow(g, e->mm_arg_end);
		asm_ld(as, BPF_DW, R2, R10, FRAME_TMP2);
		asm_st(as, BPF_DW, R10, FRAME_TMP2, R1);
		asm_mov(as, R1, R2);
		gen_follow(g, e->mm_arg_start);
	}
	asm_mov(as, R3, R1);
	asm_ld(as, BPF_DW, R2, R10, FRAME_TMP2);
	asm_alu(as, BPF_SUB, R2, R1);
	asm_ji(as, BPF_JSLE, R2, 1, none);
	asm_ji(as, BPF_JLE, R2, (int32_t)g->prog->strsize, fits);
	asm_imm(as, R2, g->prog->strsize);
	asm_bind(as, fits);
	asm_st(as, BPF_DW, R10, FRAME_TMP2, R2);
	gen_dest(g, R1, to);
	asm_helper(as, BPF_FUNC_probe_read_user);
	asm_ji(as, BPF_JNE, R0, 0, none);
	gen_dest(g, R1, to);
	asm_imm(as, R2, g->prog->strsize);
	asm_ld(as, BPF_DW, R3, R10, FRAME_TMP2);
	asm_rt(as, RT_BLANKS);
	/* The last NUL, or the place where the string is cut. */
	gen_dest(g, R1, to);
	asm_ld(as, BPF_DW, R0, R10, FRAME_TMP2);
	asm_alu(as, BPF_ADD, R1, R0);
	asm_sti(as, BPF_B, R1, -1, 0);
}

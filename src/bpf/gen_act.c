/*
 * Functions that act on the traced process, rand() and progenyof(): short sequences of kernel helpers.
 */
#include "bpf/gen.h"

#include "abi/segment.h"

void gen_rand(struct gen *g, const struct ir_insn *i)
{
	asm_helper(&g->as, BPF_FUNC_get_prandom_u32);
	asm_alui(&g->as, BPF_AND, R0, 0x7fffffff);
	gen_put(g, i, R0);
}

void gen_signal(struct gen *g, const struct ir_insn *i)
{
	gen_load(g, R1, i->args[0]);
	asm_helper(&g->as, BPF_FUNC_send_signal);
	gen_put(g, i, R0);
}

/*
 * Write R3 bytes, 1 or more, from R2 on to the user address in FRAME_TMP2.  Only in the target place: the kernel lets
 * programs write to processes only if it is not locked down, and logs a warning.
 */
static void write_user(struct gen *g)
{
	struct assembler *as = &g->as;

	asm_ld(as, BPF_DW, R1, R10, FRAME_TMP2);
	asm_helper(as, BPF_FUNC_probe_write_user);
	asm_ji(as, BPF_JNE, R0, 0, gen_fault(g, ABI_FAULT_BADADDR, FRAME_TMP2));
}

static void put_zero(struct gen *g, const struct ir_insn *i)
{
	asm_imm(&g->as, R0, 0);
	gen_put(g, i, R0);
}

/* The bytes are copied to the work area first: the bounds of memory that the helper reads must be known. */
void gen_copyout(struct gen *g, const struct ir_insn *i)
{
	struct assembler *as = &g->as;
	uint32_t none = asm_label(as);

	gen_load(g, R3, i->args[0]);
	gen_load(g, R2, i->args[2]);
	asm_st(as, BPF_DW, R10, FRAME_TMP2, R3);
	asm_st(as, BPF_DW, R10, FRAME_TMP, R2);
	asm_ji(as, BPF_JEQ, R2, 0, none);
	asm_ji(as, BPF_JGT, R2, PLAN_COPYOUT, gen_fault(g, ABI_FAULT_NOSCRATCH, FRAME_TMP));
	asm_st(as, BPF_DW, R10, FRAME_TMP, R2);
	gen_scratch(g, R1, g->priv->work_off);
	asm_helper(as, BPF_FUNC_probe_read_kernel);
	asm_ji(as, BPF_JNE, R0, 0, gen_fault(g, ABI_FAULT_BADADDR, FRAME_TMP2));
	gen_load(g, R1, i->args[1]);
	asm_st(as, BPF_DW, R10, FRAME_TMP2, R1);
	gen_scratch(g, R2, g->priv->work_off);
	asm_ld(as, BPF_DW, R3, R10, FRAME_TMP);
	write_user(g);
	asm_bind(as, none);
	put_zero(g, i);
}

void gen_copyoutstr(struct gen *g, const struct ir_insn *i)
{
	struct assembler *as = &g->as;
	uint32_t shorter = asm_label(as), none = asm_label(as);

	gen_load(g, R1, i->args[1]);
	asm_st(as, BPF_DW, R10, FRAME_TMP2, R1);
	gen_str(g, R1, i->args[0]);
	asm_imm(as, R2, g->prog->strsize);
	asm_rt(as, RT_STRLEN);
	asm_mov(as, R3, R0);
	asm_alui(as, BPF_ADD, R3, 1);
	gen_load(g, R1, i->args[2]);
	asm_j(as, BPF_JLE, R3, R1, shorter);
	asm_mov(as, R3, R1);
	asm_bind(as, shorter);
	asm_ji(as, BPF_JEQ, R3, 0, none);
	asm_ji(as, BPF_JGT, R3, (int32_t)g->prog->strsize, none);	/* never: for the verifier */
	gen_str(g, R2, i->args[0]);
	write_user(g);
	asm_bind(as, none);
	put_zero(g, i);
}

void gen_poke_user(struct gen *g, const struct ir_insn *i)
{
	struct assembler *as = &g->as;
	int64_t width = gen_constant(g, i->args[2]);

	gen_load(g, R3, i->args[0]);
	asm_st(as, BPF_DW, R10, FRAME_TMP2, R3);
	gen_load(g, R3, i->args[1]);
	asm_st(as, BPF_DW, R10, FRAME_TMP, R3);
	asm_mov(as, R2, R10);
	asm_alui(as, BPF_ADD, R2, FRAME_TMP);
	asm_imm(as, R3, width);
	write_user(g);
	put_zero(g, i);
}

enum { GENERATIONS = 24 };

/* R1 = @size bytes at offset @off of the task at FRAME_TMP2. */
static void read_task(struct gen *g, uint32_t off, int size)
{
	struct assembler *as = &g->as;

	asm_ld(as, BPF_DW, R3, R10, FRAME_TMP2);
	asm_alui(as, BPF_ADD, R3, (int32_t)off);
	asm_sti(as, BPF_DW, R10, FRAME_TMP, 0);
	asm_mov(as, R1, R10);
	asm_alui(as, BPF_ADD, R1, FRAME_TMP);
	asm_imm(as, R2, size);
	asm_helper(as, BPF_FUNC_probe_read_kernel);
	asm_ld(as, BPF_DW, R1, R10, FRAME_TMP);
}

/* Compare the process of the task at FRAME_TMP2, and go on to its parent. */
static void generation(struct gen *g, const struct ir_insn *i, uint32_t yes, uint32_t no)
{
	struct assembler *as = &g->as;

	read_task(g, g->env->task_tgid, 4);
	asm_ji(as, BPF_JEQ, R1, 0, no);
	asm_mov(as, R0, R1);
	gen_load(g, R2, i->args[0]);
	asm_j(as, BPF_JEQ, R0, R2, yes);
	read_task(g, g->env->task_parent, 8);
	asm_st(as, BPF_DW, R10, FRAME_TMP2, R1);
}

/* The same for the task at FRAME_KEY + 8, by numbers in the tracer's pid namespace. */
static void generation_in_ns(struct gen *g, const struct ir_insn *i, uint32_t yes, uint32_t no)
{
	struct assembler *as = &g->as;

	asm_ld(as, BPF_DW, R3, R10, FRAME_KEY + 8);
	gen_number_there(g, ABI_TASK_PID);
	asm_ji(as, BPF_JEQ, R3, 0, no);
	asm_mov(as, R0, R3);
	gen_load(g, R2, i->args[0]);
	asm_j(as, BPF_JEQ, R0, R2, yes);
	asm_ld(as, BPF_DW, R3, R10, FRAME_KEY + 8);
	gen_process_parent(g);
	asm_st(as, BPF_DW, R10, FRAME_KEY + 8, R3);
}

/* From parent to parent; the kernel's own first process has number 0. */
void gen_progenyof(struct gen *g, const struct ir_insn *i)
{
	struct assembler *as = &g->as;
	const struct ebpf_env *e = g->env;
	uint32_t yes = asm_label(as), no = asm_label(as), done = asm_label(as);

	if (e->user_space) {
		gen_load(g, R1, i->args[0]);
		asm_helper(as, ABI_HELPER_PROGENYOF);
		asm_st(as, BPF_DW, R10, FRAME_TMP2, R0);
		asm_ji(as, BPF_JSLT, R0, 0, gen_fault(g, ABI_FAULT_ILLOP, FRAME_TMP2));
		gen_put(g, i, R0);
		return;
	}
	if (!e->task_parent || !e->task_tgid || (e->pid_ns && !gen_knows_numbers(g))) {
		gen_refuse(g, e->pid_ns ? "progenyof(): the kernel does not say how it numbers processes in a pid namespace" :
					  "progenyof(): the kernel does not say where it keeps a process's parent");
		return;
	}
	gen_current_task(g);
	asm_st(as, BPF_DW, R10, e->pid_ns ? FRAME_KEY + 8 : FRAME_TMP2, R0);
	for (int k = 0; k < GENERATIONS; k++)
		(e->pid_ns ? generation_in_ns : generation)(g, i, yes, no);
	asm_bind(as, no);
	asm_imm(as, R1, 0);
	asm_ja(as, done);
	asm_bind(as, yes);
	asm_imm(as, R1, 1);
	asm_bind(as, done);
	gen_put(g, i, R1);
}

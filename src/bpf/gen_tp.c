/*
 * Raw tracepoints: which events count, their values, and the thread that they are about.
 *
 * All system calls fire two tracepoints, so many probes share one program: it looks up the call's number in
 * EBPF_MAP_SYSCALLS and continues if the entry names its group, with the probe that the entry names.  Calls of 32-bit
 * programs have numbers of their own and are ignored.
 */
#include "bpf/gen.h"

#include <signal.h>
#include <stddef.h>

enum { MAX_ERRNO = 4095 };

/* Read @size bytes of kernel memory at R3 to the frame's @off; zeros when it cannot be read. */
static void read_kernel(struct gen *g, int off, int32_t size)
{
	struct assembler *as = &g->as;

	asm_mov(as, R1, R10);
	asm_alui(as, BPF_ADD, R1, off);
	asm_imm(as, R2, size);
	asm_helper(as, BPF_FUNC_probe_read_kernel);
}

/* R1 = argument @word of the tracepoint. */
static void load_word(struct gen *g, unsigned int word)
{
	asm_ld(&g->as, BPF_DW, R2, R10, FRAME_CTX);
	asm_ld(&g->as, BPF_DW, R1, R2, 8 * (int)word);
}

/* R1 = -R1 if that is an error number, else 0. */
static void to_errno(struct gen *g)
{
	struct assembler *as = &g->as;
	uint32_t done = asm_label(as);

	asm_neg(as, R1);
	asm_mov(as, R2, R1);
	asm_alui(as, BPF_SUB, R2, 1);
	asm_ji(as, BPF_JLT, R2, MAX_ERRNO, done);
	asm_imm(as, R1, 0);
	asm_bind(as, done);
}

/* R1 = CLD_EXITED (1), CLD_KILLED (2) or CLD_DUMPED (3) of the exit code R1. */
static void to_reason(struct gen *g)
{
	struct assembler *as = &g->as;
	uint32_t done = asm_label(as);

	asm_mov(as, R2, R1);
	asm_imm(as, R1, 1);
	asm_mov(as, R3, R2);
	asm_alui(as, BPF_AND, R3, 0x7f);
	asm_ji(as, BPF_JEQ, R3, 0, done);
	asm_imm(as, R1, 2);
	asm_alui(as, BPF_AND, R2, 0x80);
	asm_ji(as, BPF_JEQ, R2, 0, done);
	asm_imm(as, R1, 3);
	asm_bind(as, done);
}

/* R1 = the signal in argument @word; where that is SIGKILL, the one in the exit code R1, if there is one. */
static void to_signal(struct gen *g, unsigned int word)
{
	struct assembler *as = &g->as;
	uint32_t done = asm_label(as);

	asm_alui(as, BPF_AND, R1, 0x7f);
	asm_st(as, BPF_DW, R10, FRAME_TMP, R1);
	load_word(g, word);
	asm_ji(as, BPF_JNE, R1, SIGKILL, done);
	asm_ld(as, BPF_DW, R2, R10, FRAME_TMP);
	asm_ji(as, BPF_JEQ, R2, 0, done);
	asm_mov(as, R1, R2);
	asm_bind(as, done);
}

/* R4 = the first offset of @v in the system call that begins, whose number is argument 1 of sys_enter. */
static void choose_offset(struct gen *g, const struct ebpf_tp_value *v)
{
	struct assembler *as = &g->as;
	uint32_t done = asm_label(as);

	load_word(g, 1);
	asm_imm(as, R4, v->off[0]);
	asm_ji(as, BPF_JNE, R1, (int32_t)v->other_call, done);
	asm_imm(as, R4, v->other_off);
	asm_bind(as, done);
}

/* R1 = @v. */
static void value(struct gen *g, const struct ebpf_tp_value *v)
{
	struct assembler *as = &g->as;

	if (v->kind == EBPF_TP_NONE || v->kind == EBPF_TP_CONST) {
		asm_imm(as, R1, v->kind == EBPF_TP_CONST ? v->off[0] : 0);
		return;
	}
	if (v->kind == EBPF_TP_CURRENT || v->kind == EBPF_TP_SIGNAL) {
		asm_helper(as, BPF_FUNC_get_current_task);
		asm_mov(as, R1, R0);
	} else {
		if (v->other_off)
			choose_offset(g, v);
		load_word(g, v->word);
	}
	for (unsigned int k = 0; k < v->derefs; k++) {
		bool last = k + 1 == v->derefs;

		asm_mov(as, R3, R1);
		if (last && v->number && g->env->pid_ns && gen_knows_numbers(g)) {
			gen_number_there(g, v->number == EBPF_TP_THREAD_NUMBER ? ABI_TASK_TID : ABI_TASK_PID);
			asm_mov(as, R1, R3);
			break;
		}
		if (!k && v->other_off)
			asm_alu(as, BPF_ADD, R3, R4);
		else
			asm_alui(as, BPF_ADD, R3, (int32_t)v->off[k]);
		asm_sti(as, BPF_DW, R10, FRAME_TMP, 0);
		read_kernel(g, FRAME_TMP, last ? v->width : 8);
		asm_ld(as, BPF_DW, R1, R10, FRAME_TMP);
	}
	if (v->width < 8)
		gen_extend(g, R1, v->width, v->sign);
	if (v->kind == EBPF_TP_ERRNO)
		to_errno(g);
	if (v->kind == EBPF_TP_EXIT_REASON)
		to_reason(g);
	if (v->kind == EBPF_TP_SIGNAL)
		to_signal(g, v->word);
}

/* --- system calls ------------------------------------------------------------------------------------- */

static void syscall_filter(struct gen *g, uint32_t out)
{
	struct assembler *as = &g->as;
	const struct arch_kept *k = g->kept;
	bool is_exit = g->env->tp->syscalls == EBPF_TP_EXIT;

	load_word(g, 0);
	asm_mov(as, R3, R1);
	asm_alui(as, BPF_ADD, R3, k->syscall);
	read_kernel(g, FRAME_EARLY, k->mode ? k->mode + 8 - k->syscall : k->syscall_bytes);
	asm_ji(as, BPF_JNE, R0, 0, out);
	if (k->mode) {
		asm_ld(as, BPF_DW, R1, R10, FRAME_EARLY + k->mode - k->syscall);
		asm_ji(as, BPF_JEQ, R1, k->mode_32, out);
	}
	asm_ld(as, k->syscall_bytes == 8 ? BPF_DW : BPF_W, R1, R10, FRAME_EARLY);
	asm_ji(as, BPF_JGE, R1, EBPF_SYSCALLS, out);
	if (is_exit)
		asm_alui(as, BPF_ADD, R1, EBPF_SYSCALLS);
	asm_st(as, BPF_W, R10, FRAME_TMP, R1);
	asm_lookup(as, EBPF_MAP_SYSCALLS, FRAME_TMP);
	asm_ji(as, BPF_JEQ, R0, 0, out);
	asm_ld(as, BPF_W, R1, R0, offsetof(struct ebpf_syscall, group));
	asm_ji(as, BPF_JNE, R1, (int32_t)g->env->group, out);
	asm_ld(as, BPF_W, R1, R0, offsetof(struct ebpf_syscall, probe));
	asm_st(as, BPF_DW, R10, FRAME_PROBE, R1);
	asm_ld(as, BPF_W, R1, R0, offsetof(struct ebpf_syscall, section));
	asm_st(as, BPF_DW, R10, FRAME_SECTION, R1);
}

/* R1 = the system call's result; -1 for an error, as from the C library, with the error in errno. */
static void syscall_result(struct gen *g)
{
	struct assembler *as = &g->as;
	uint32_t done = asm_label(as);

	load_word(g, 1);
	asm_mov(as, R2, R1);
	asm_alui(as, BPF_ADD, R2, MAX_ERRNO);
	asm_ji(as, BPF_JGE, R2, MAX_ERRNO, done);
	asm_imm(as, R1, -1);
	asm_bind(as, done);
}

static void syscall_arg(struct gen *g, int64_t n)
{
	struct assembler *as = &g->as;

	if (n >= (int64_t)(sizeof(g->kept->syscall_args) / sizeof(g->kept->syscall_args[0]))) {
		asm_imm(as, R1, 0);
		return;
	}
	load_word(g, 0);
	asm_mov(as, R3, R1);
	asm_alui(as, BPF_ADD, R3, g->kept->syscall_args[n]);
	asm_sti(as, BPF_DW, R10, FRAME_TMP, 0);
	read_kernel(g, FRAME_TMP, 8);
	asm_ld(as, BPF_DW, R1, R10, FRAME_TMP);
}

static void syscall_number(struct gen *g)
{
	struct assembler *as = &g->as;

	load_word(g, 0);
	asm_mov(as, R3, R1);
	asm_alui(as, BPF_ADD, R3, g->kept->syscall);
	asm_sti(as, BPF_DW, R10, FRAME_TMP, 0);
	read_kernel(g, FRAME_TMP, g->kept->syscall_bytes);
	asm_ld(as, BPF_DW, R1, R10, FRAME_TMP);
}

/* --- for the rest of the generator -------------------------------------------------------------------- */

void gen_tp_filter(struct gen *g, uint32_t out)
{
	const struct ebpf_tp *tp = g->env->tp;

	if (tp->syscalls)
		syscall_filter(g, out);
	for (unsigned int k = 0; k < tp->nfilters; k++) {
		uint32_t good = asm_label(&g->as);

		value(g, &tp->filters[k].value);
		if (tp->filters[k].mask)
			asm_alui(&g->as, BPF_AND, R1, (int32_t)tp->filters[k].mask);
		if (tp->filters[k].has_or)
			asm_ji(&g->as, BPF_JEQ, R1, (int32_t)tp->filters[k].or_want, good);
		asm_ji(&g->as, tp->filters[k].differs ? BPF_JEQ : BPF_JNE, R1, (int32_t)tp->filters[k].want, out);
		asm_bind(&g->as, good);
	}
}

void gen_tp_arg(struct gen *g, int64_t n)
{
	const struct ebpf_tp *tp = g->env->tp;

	if (n < (int64_t)tp->nargs)
		value(g, &tp->args[n]);
	else if (tp->nargs || !tp->syscalls)
		asm_imm(&g->as, R1, 0);
	else if (n == (tp->syscalls == EBPF_TP_ENTER ? EBPF_TP_ENTRY_NUMBER : EBPF_TP_EXIT_NUMBER))
		syscall_number(g);
	else if (tp->syscalls == EBPF_TP_ENTER)
		syscall_arg(g, n);
	else if (n < 2)
		syscall_result(g);
	else if (n == 2)
		load_word(g, 1);
	else
		asm_imm(&g->as, R1, 0);
}

void gen_tp_errno(struct gen *g)
{
	if (g->env->ctx != EBPF_CTX_TP || g->env->tp->syscalls != EBPF_TP_EXIT) {
		asm_imm(&g->as, R1, 0);
		return;
	}
	load_word(g, 1);
	to_errno(g);
}

bool gen_tp_other_task(const struct gen *g)
{
	return g->env->ctx == EBPF_CTX_TP && g->env->tp->task.kind;
}

/* Read the @size bytes at @off of the task to the frame's @to. */
static void read_task(struct gen *g, uint32_t off, int to, int32_t size)
{
	value(g, &g->env->tp->task);
	asm_mov(&g->as, R3, R1);
	asm_alui(&g->as, BPF_ADD, R3, (int32_t)off);
	read_kernel(g, to, size);
}

void gen_tp_task_addr(struct gen *g)
{
	value(g, &g->env->tp->task);
}

void gen_tp_task_at(struct gen *g, int to)
{
	asm_sti(&g->as, BPF_DW, R10, to, 0);
	read_task(g, g->env->tp->task_pid, to, 4);
	read_task(g, g->env->tp->task_tgid, to + 4, 4);
}

void gen_tp_comm(struct gen *g)
{
	asm_sti(&g->as, BPF_DW, R10, FRAME_KEY, 0);
	asm_sti(&g->as, BPF_DW, R10, FRAME_KEY + 8, 0);
	read_task(g, g->env->tp->task_comm, FRAME_KEY, 16);
}

/*
 * Stacks of the thread that gets the CPU (sched:::on-cpu, proc:::start ...).
 *
 * Such a probe fires while the thread before it still runs, so its memory cannot be read.  But a thread's stack is the
 * same as when it left its CPU: a program at sched_switch keeps the numbers of its stacks then, in EBPF_MAP_KEPT by its
 * struct task_struct.  That costs a walk for each switch, so it is done only for processes that a clause has asked about
 * (EBPF_MAP_KEEPS).  What is not known, a first stack of each thread, is counted (ABI_DROP_STACK), and the stack is empty.
 *
 * An element is a stamp and the numbers, one for each kind of stack (struct kept_form).  The kernel runs no program at a
 * tracepoint inside another program: the stamp says at which switch of which thread the stacks were kept.
 */
#include "bpf/gen.h"

#include <stddef.h>

enum { TASK = FRAME_KEY, SUM = FRAME_KEY + 8, PROCESS = FRAME_KEY + 8 };

/*
 * R1 = the number of the thread in the lower half, how often it was switched out in the upper.  Its struct task_struct is
 * in the frame's TASK.
 */
static void stamp(struct gen *g, bool other)
{
	struct assembler *as = &g->as;

	asm_ld(as, BPF_DW, R1, R10, TASK);
	gen_follow(g, g->env->task_switches);
	asm_st(as, BPF_DW, R10, SUM, R1);
	asm_ld(as, BPF_DW, R1, R10, TASK);
	gen_follow(g, g->env->task_preempted);
	asm_ld(as, BPF_DW, R2, R10, SUM);
	asm_alu(as, BPF_ADD, R1, R2);
	asm_st(as, BPF_DW, R10, SUM, R1);
	if (other) {
		asm_ld(as, BPF_W, R1, R10, gen_other_numbers(g));
	} else {
		asm_helper(as, BPF_FUNC_get_current_pid_tgid);
		asm_mov(as, R1, R0);
		asm_alui(as, BPF_LSH, R1, 32);
		asm_alui(as, BPF_RSH, R1, 32);
	}
	asm_ld(as, BPF_DW, R2, R10, SUM);
	asm_alui(as, BPF_LSH, R2, 32);
	asm_alu(as, BPF_OR, R1, R2);
}

/* --- keeping ----------------------------------------------------------------------------------------- */

/* R6 = the running thread's element, created if needed; jump to @none if there is no room. */
static void get_element(struct gen *g, uint32_t none)
{
	struct assembler *as = &g->as;
	uint32_t got = asm_label(as);

	asm_lookup(as, EBPF_MAP_KEPT, TASK);
	asm_ji(as, BPF_JNE, R0, 0, got);
	asm_map(as, R1, EBPF_MAP_KEPT);
	asm_mov(as, R2, R10);
	asm_alui(as, BPF_ADD, R2, TASK);
	asm_map_value(as, R3, EBPF_MAP_RODATA, g->priv->zeros_off);
	asm_imm(as, R4, BPF_NOEXIST);
	asm_helper(as, BPF_FUNC_map_update_elem);
	asm_lookup(as, EBPF_MAP_KEPT, TASK);
	asm_ji(as, BPF_JEQ, R0, 0, none);
	asm_bind(as, got);
	asm_mov(as, R6, R0);
}

void gen_keep_filter(struct gen *g, uint32_t out)
{
	struct assembler *as = &g->as;

	if (!g->env->task_switches || !g->env->task_preempted) {
		gen_refuse(g, "stacks of the thread that gets the CPU: the kernel does not say where it counts switches");
		return;
	}
	asm_helper(as, BPF_FUNC_get_current_pid_tgid);
	asm_alui(as, BPF_RSH, R0, 32);
	asm_st(as, BPF_DW, R10, FRAME_TMP, R0);
	asm_lookup(as, EBPF_MAP_KEEPS, FRAME_TMP);
	asm_ji(as, BPF_JEQ, R0, 0, out);
}

void gen_keep(struct gen *g)
{
	struct assembler *as = &g->as;
	uint32_t none = asm_label(as);

	asm_helper(as, BPF_FUNC_get_current_task);
	asm_st(as, BPF_DW, R10, TASK, R0);
	get_element(g, none);
	stamp(g, false);
	asm_mov(as, R7, R1);
	asm_sti(as, BPF_DW, R6, 0, 0);
	for (uint32_t k = 0; k < g->priv->nkept; k++) {
		gen_make_stack(g, g->priv->kept[k].whose, g->priv->kept[k].frames);
		asm_ld(as, BPF_DW, R1, R10, FRAME_TMP2);
		asm_st(as, BPF_DW, R6, 8 + 8 * (int)k, R1);
	}
	asm_st(as, BPF_DW, R6, 0, R7);
	asm_bind(as, none);
}

/* --- asking ------------------------------------------------------------------------------------------ */

static uint32_t number_of(const struct gen *g, enum ir_stack whose, uint32_t frames)
{
	uint32_t k = 0;

	while (k < g->priv->nkept && (g->priv->kept[k].whose != whose || g->priv->kept[k].frames != frames))
		k++;
	return k;
}

/* Have the process's stacks kept from now on. */
static void keep_process(struct gen *g)
{
	struct assembler *as = &g->as;

	asm_ld(as, BPF_W, R1, R10, gen_other_numbers(g) + 4);
	asm_st(as, BPF_DW, R10, PROCESS, R1);
	asm_map(as, R1, EBPF_MAP_KEEPS);
	asm_mov(as, R2, R10);
	asm_alui(as, BPF_ADD, R2, PROCESS);
	asm_map_value(as, R3, EBPF_MAP_RODATA, g->priv->zeros_off);
	asm_imm(as, R4, BPF_ANY);
	asm_helper(as, BPF_FUNC_map_update_elem);
}

void gen_kept_stack(struct gen *g, enum ir_stack whose, uint32_t frames, uint32_t done)
{
	struct assembler *as = &g->as;
	uint32_t unknown = asm_label(as), none = asm_label(as), k = number_of(g, whose, frames);

	if (k == g->priv->nkept) {
		gen_refuse(g, "a stack of the thread that gets the CPU: its kind or its number of frames is not a constant");
		return;
	}
	gen_current_task(g);
	asm_st(as, BPF_DW, R10, TASK, R0);
	stamp(g, true);
	asm_st(as, BPF_DW, R10, FRAME_TMP2, R1);
	asm_lookup(as, EBPF_MAP_KEPT, TASK);
	asm_ji(as, BPF_JEQ, R0, 0, unknown);
	asm_ld(as, BPF_DW, R1, R0, 0);
	asm_ld(as, BPF_DW, R2, R10, FRAME_TMP2);
	asm_j(as, BPF_JNE, R1, R2, unknown);
	asm_ld(as, BPF_DW, R1, R0, 8 + 8 * (int)k);
	asm_st(as, BPF_DW, R10, FRAME_TMP2, R1);
	asm_ja(as, done);
	asm_bind(as, unknown);
	if (whose != IR_STACK_KERNEL) {		/* a thread of the kernel has no other */
		asm_ld(as, BPF_DW, R1, R10, TASK);
		gen_follow(g, g->env->task_mm);
		asm_ji(as, BPF_JEQ, R1, 0, none);
	}
	keep_process(g);
	gen_drop(g, ABI_DROP_STACK);
	asm_bind(as, none);
}

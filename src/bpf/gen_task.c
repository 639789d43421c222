/*
 * Facts of processes (abi/task.def): in the kernel from struct task_struct, in user space from the process itself.
 */
#include "bpf/gen.h"

#include "abi/segment.h"
#include "base/arena.h"
#include "ir/facts.h"

static const char *const names[ABI_TASK_MAX] = {
#define ABI_TASK(NAME, path, ...) path,
#include "abi/task.def"
#undef ABI_TASK
};

#define PROCESS(x) true
#define NONE false
static const bool in_user_space[ABI_TASK_MAX] = {
#define ABI_TASK(NAME, path, kind, own) own,
#include "abi/task.def"
#undef ABI_TASK
};

/* R3 = @size bytes of kernel memory at R3 + @off; if they cannot be read, 0 or a fault. */
static void follow(struct gen *g, uint32_t off, uint32_t size, bool faults)
{
	struct assembler *as = &g->as;

	asm_alui(as, BPF_ADD, R3, (int32_t)off);
	asm_st(as, BPF_DW, R10, FRAME_TMP2, R3);
	asm_sti(as, BPF_DW, R10, FRAME_TMP, 0);
	asm_mov(as, R1, R10);
	asm_alui(as, BPF_ADD, R1, FRAME_TMP);
	asm_imm(as, R2, size);
	asm_helper(as, BPF_FUNC_probe_read_kernel);
	if (faults)
		asm_ji(as, BPF_JNE, R0, 0, gen_fault(g, ABI_FAULT_BADADDR, FRAME_TMP2));
	asm_ld(as, BPF_DW, R3, R10, FRAME_TMP);
}

void gen_current_task(struct gen *g)
{
	if (gen_tp_other_task(g)) {
		gen_tp_task_addr(g);
		asm_mov(&g->as, R0, R1);
	} else {
		asm_helper(&g->as, BPF_FUNC_get_current_task);
	}
}

void gen_task_id(struct gen *g, enum abi_task what)
{
	const struct ebpf_task_path *p = g->env->tasks ? &g->env->tasks->facts[what] : NULL;

	if (!p || !p->n) {
		gen_refuse(g, arena_printf(g->prog->arena, "this kernel's struct task_struct has no %s", names[what]));
		return;
	}
	gen_current_task(g);
	asm_mov(&g->as, R3, R0);
	for (unsigned int k = 0; k + 1 < p->n; k++)
		follow(g, p->off[k], 8, false);
	follow(g, p->off[p->n - 1], p->kind, false);
	asm_mov(&g->as, R1, R3);
}

/* R3 = the number of the struct pid at R3 in the tracer's pid namespace; 0: it has none there. */
static void number_in_ns(struct gen *g, bool faults)
{
	const struct ebpf_tasks *t = g->env->tasks;
	uint32_t at = t->pid_numbers + g->env->ns_level * t->number_size;
	struct assembler *as = &g->as;
	uint32_t none = asm_label(as), done = asm_label(as);

	asm_ji(as, BPF_JEQ, R3, 0, none);	/* of a thread that has ended */
	asm_st(as, BPF_DW, R10, FRAME_KEY, R3);
	follow(g, t->pid_level, 4, faults);
	asm_ji(as, BPF_JLT, R3, (int32_t)g->env->ns_level, none);
	asm_ld(as, BPF_DW, R3, R10, FRAME_KEY);
	follow(g, at + t->number_ns, 8, faults);
	follow(g, t->ns_inum, 4, faults);
	asm_imm(as, R1, (int64_t)g->env->ns_ino);
	asm_j(as, BPF_JNE, R3, R1, none);
	asm_ld(as, BPF_DW, R3, R10, FRAME_KEY);
	follow(g, at, 4, faults);
	asm_ja(as, done);
	asm_bind(as, none);
	asm_imm(as, R3, 0);
	asm_bind(as, done);
}

/* R3 = the number of the struct pid at R3. */
static void number(struct gen *g, bool faults)
{
	const struct ebpf_tasks *t = g->env->tasks;
	struct assembler *as = &g->as;

	if (g->env->pid_ns && g->env->ns_level) {
		number_in_ns(g, faults);
		return;
	}
	if (g->env->pid_ns) {
		/* The number in its innermost pid namespace, which is the tracer's if they share it. */
		asm_st(as, BPF_DW, R10, FRAME_KEY, R3);
		follow(g, t->pid_level, 4, faults);
		asm_alui(as, BPF_MUL, R3, (int32_t)t->number_size);
		asm_ld(as, BPF_DW, R1, R10, FRAME_KEY);
		asm_alu(as, BPF_ADD, R3, R1);
	}
	follow(g, t->pid_numbers, 4, faults);
}

bool gen_knows_numbers(const struct gen *g)
{
	return g->env->tasks && g->env->tasks->facts[ABI_TASK_PID].n && g->env->ns_level;
}

void gen_number_there(struct gen *g, enum abi_task what)
{
	const struct ebpf_task_path *p = &g->env->tasks->facts[what];

	for (unsigned int k = 0; k < p->n; k++)
		follow(g, p->off[k], 8, false);
	number_in_ns(g, false);
}

void gen_current_numbers(struct gen *g)
{
	static const enum abi_task of[2] = { ABI_TASK_TID, ABI_TASK_PID };

	for (int i = 0; i < 2; i++) {
		gen_current_task(g);
		asm_mov(&g->as, R3, R0);
		gen_number_there(g, of[i]);
		asm_st(&g->as, BPF_W, R10, (int16_t)(FRAME_TASK + 4 * i), R3);
	}
}

void gen_process_parent(struct gen *g)
{
	follow(g, g->env->task_parent, 8, false);
}

void gen_task(struct gen *g, const struct ir_insn *i)
{
	const struct ebpf_task_path *p;
	struct assembler *as = &g->as;
	bool self = i->fn == IR_FN_SELF;
	int64_t what = gen_constant(g, i->args[self ? 0 : 1]);

	if (g->env->user_space) {
		if (!in_user_space[what]) {
			gen_refuse(g, ir_fn_place(IR_FN_TASK).why);
			return;
		}
		asm_imm(as, R1, what);
		asm_helper(as, ABI_HELPER_SELF);
		gen_put(g, i, R0);
		return;
	}
	p = g->env->tasks ? &g->env->tasks->facts[what] : NULL;
	if (!p || !p->n) {
		gen_refuse(g, arena_printf(g->prog->arena, "this kernel's struct task_struct has no %s", names[what]));
		return;
	}
	if (self) {
		gen_current_task(g);
		asm_mov(as, R3, R0);
	} else {
		gen_load(g, R3, i->args[0]);
	}
	for (unsigned int k = 0; k + 1 < p->n; k++)
		follow(g, p->off[k], 8, !self);
	if (p->kind == EBPF_TASK_ADDR)
		asm_alui(as, BPF_ADD, R3, (int32_t)p->off[p->n - 1]);
	else
		follow(g, p->off[p->n - 1], p->kind == EBPF_TASK_NR ? 8 : p->kind, !self);
	if (p->kind == EBPF_TASK_NR)
		number(g, !self);
	gen_put(g, i, R3);
}

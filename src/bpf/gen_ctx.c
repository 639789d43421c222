/*
 * Values from the program's context: arguments, builtins, the probe.
 */
#include "bpf/gen.h"

#include <stddef.h>

#include "abi/segment.h"

static const uint8_t sizes[9] = { [1] = BPF_B, [2] = BPF_H, [4] = BPF_W, [8] = BPF_DW };

/* --- once per firing ---------------------------------------------------------------------------------- */

void gen_thread_numbers(struct gen *g)
{
	struct assembler *as = &g->as;
	uint32_t ok;

	if (!g->env->pid_ns) {
		asm_helper(as, BPF_FUNC_get_current_pid_tgid);
		asm_st(as, BPF_DW, R10, FRAME_TASK, R0);
		return;
	}
	ok = asm_label(as);
	asm_imm(as, R1, (int64_t)g->env->ns_dev);
	asm_imm(as, R2, (int64_t)g->env->ns_ino);
	asm_mov(as, R3, R10);
	asm_alui(as, BPF_ADD, R3, FRAME_TASK);
	asm_imm(as, R4, 8);
	asm_helper(as, BPF_FUNC_get_ns_current_pid_tgid);
	asm_ji(as, BPF_JEQ, R0, 0, ok);
	asm_sti(as, BPF_DW, R10, FRAME_TASK, 0);
	/* The helper knows the tasks of that very namespace alone, and not those of namespaces in it. */
	if (gen_knows_numbers(g))
		gen_current_numbers(g);
	asm_bind(as, ok);
}

void gen_prologue_values(struct gen *g, uint32_t needs)
{
	struct assembler *as = &g->as;

	if (needs & NEED_TIME) {
		asm_helper(as, BPF_FUNC_ktime_get_ns);
		asm_st(as, BPF_DW, R10, FRAME_TIME, R0);
	}
	if (needs & NEED_PROBE) {
		asm_ld(as, BPF_DW, R1, R10, FRAME_CTX);
		if (g->env->user_space)
			asm_helper(as, ABI_HELPER_CTX);
		if (gen_ctx_is_words(g))
			asm_ld(as, BPF_DW, R0, g->env->user_space ? R0 : R1, 0);
		else if (g->env->ctx == EBPF_CTX_TP && g->env->tp->syscalls)
			asm_ld(as, BPF_DW, R0, R10, FRAME_PROBE);
		else if (g->env->ctx == EBPF_CTX_TP)
			asm_imm(as, R0, g->env->probe);
		else
			asm_helper(as, BPF_FUNC_get_attach_cookie);
		asm_st(as, BPF_DW, R10, FRAME_PROBE, R0);
	}
	if (needs & NEED_TASK) {
		if (gen_tp_other_task(g) && g->env->pid_ns) {
			/* Where its numbers are not known, it is nobody. */
			asm_sti(as, BPF_DW, R10, FRAME_TASK, 0);
			if (gen_knows_numbers(g))
				gen_current_numbers(g);
		} else if (gen_tp_other_task(g)) {
			gen_tp_task_at(g, FRAME_TASK);
		} else {
			gen_thread_numbers(g);
		}
	}
}

/* --- arguments --------------------------------------------------------------------------------------- */

/* R1 = argument @n of an ERROR clause. */
static void error_arg(struct gen *g, int64_t n)
{
	if (n >= 1 && n <= ABI_ERROR_SLOTS)
		asm_ld(&g->as, BPF_DW, R1, R10, FRAME_FAULT + 8 * (int)(n - 1));
	else
		asm_imm(&g->as, R1, 0);
}

/* R1 = the kernel's (@n 0) or the user's (1) program counter, or 0 when the other was running. */
static void perf_arg(struct gen *g, int64_t n)
{
	struct assembler *as = &g->as;
	uint32_t done = asm_label(as);

	if (n > 1) {
		asm_imm(as, R1, 0);
		return;
	}
	asm_ld(as, BPF_DW, R2, R10, FRAME_CTX);
	asm_ld(as, BPF_DW, R1, R2, g->kept->pc);
	/* Kernel addresses have the sign bit. */
	asm_ji(as, n == 0 ? BPF_JSLT : BPF_JSGE, R1, 0, done);
	asm_imm(as, R1, 0);
	asm_bind(as, done);
}

/* Read @width bytes of user memory at R3 to FRAME_TMP; the address stays in FRAME_TMP2.  R0: 0, or it failed. */
static void try_user(struct gen *g, unsigned int width)
{
	struct assembler *as = &g->as;

	asm_st(as, BPF_DW, R10, FRAME_TMP2, R3);
	asm_sti(as, BPF_DW, R10, FRAME_TMP, 0);
	asm_mov(as, R1, R10);
	asm_alui(as, BPF_ADD, R1, FRAME_TMP);
	asm_imm(as, R2, width);
	asm_helper(as, BPF_FUNC_probe_read_user);
	if (gen_faults_in(g)) {
		uint32_t ok = asm_label(as);

		asm_ji(as, BPF_JEQ, R0, 0, ok);
		asm_mov(as, R1, R10);
		asm_alui(as, BPF_ADD, R1, FRAME_TMP);
		asm_imm(as, R2, width);
		asm_ld(as, BPF_DW, R3, R10, FRAME_TMP2);
		asm_helper(as, BPF_FUNC_copy_from_user);
		asm_bind(as, ok);
	}
}

/* The same; jump to @unread if it cannot be read, which is a fault if @unread is NULL. */
static void read_user(struct gen *g, unsigned int width, const uint32_t *unread)
{
	try_user(g, width);
	asm_ji(&g->as, BPF_JNE, R0, 0, unread ? *unread : gen_fault(g, ABI_FAULT_BADADDR, FRAME_TMP2));
}

void gen_operand_value(struct gen *g, const struct ebpf_operand *o, const uint32_t *unread)
{
	struct assembler *as = &g->as;

	switch (o->loc) {
	case EBPF_LOC_CONST:
		asm_imm(as, R1, o->value);
		return;
	case EBPF_LOC_REG:
		asm_ld(as, BPF_DW, R2, R10, FRAME_CTX);
		asm_ld(as, sizes[o->width], R1, R2, o->reg_off);
		break;
	case EBPF_LOC_MEM:
		asm_imm(as, R3, o->value);
		asm_ld(as, BPF_DW, R2, R10, FRAME_CTX);
		if (o->has_base) {
			asm_ld(as, BPF_DW, R1, R2, o->reg_off);
			asm_alu(as, BPF_ADD, R3, R1);
		}
		if (o->has_index) {
			asm_ld(as, BPF_DW, R1, R2, o->index_off);
			asm_alui(as, BPF_MUL, R1, o->scale ? o->scale : 1);
			asm_alu(as, BPF_ADD, R3, R1);
		}
		read_user(g, o->width, unread);
		asm_ld(as, sizes[o->width], R1, R10, FRAME_TMP);
		break;
	default:
		asm_imm(as, R1, 0);
		return;
	}
	if (o->sign)
		gen_extend(g, R1, o->width, true);
}

void gen_arg(struct gen *g, const struct ir_insn *i)
{
	if (g->in_error) {
		error_arg(g, i->imm);
	} else if (g->env->ctx == EBPF_CTX_TP) {
		gen_tp_arg(g, i->imm);
	} else if (g->env->ctx == EBPF_CTX_PERF) {
		perf_arg(g, i->imm);
	} else if (gen_ctx_is_words(g)) {
		if (i->imm < 10) {
			/* The load-time check (vm/) does not track an address that was stored. */
			if (g->env->user_space)
				asm_helper(&g->as, ABI_HELPER_CTX);
			else
				asm_ld(&g->as, BPF_DW, R0, R10, FRAME_CTX);
			asm_ld(&g->as, BPF_DW, R1, R0, 8 + 8 * (int)i->imm);
		} else {
			asm_imm(&g->as, R1, 0);
		}
	} else if (i->imm < g->env->nargs && g->env->gil) {
		gen_gil_arg(g, i->imm);
	} else if (i->imm < g->env->nargs) {
		gen_operand_value(g, &g->env->args[i->imm], NULL);
	} else {
		asm_imm(&g->as, R1, 0);
	}
	gen_put(g, i, R1);
}

void gen_register(struct gen *g, const struct ir_insn *i)
{
	int64_t off = gen_constant(g, i->args[0]), width = gen_constant(g, i->args[1]);

	asm_ld(&g->as, BPF_DW, R2, R10, FRAME_CTX);
	asm_ld(&g->as, sizes[width], R1, R2, (int)off);
	gen_put(g, i, R1);
}

/* --- memory ------------------------------------------------------------------------------------------ */

void gen_load_mem(struct gen *g, const struct ir_insn *i)
{
	struct assembler *as = &g->as;

	gen_load(g, R3, i->args[0]);
	if (i->op == IR_ULOAD) {
		read_user(g, i->width, NULL);
	} else if (i->op == IR_UPEEK) {
		uint32_t ok = asm_label(as);

		try_user(g, i->width);
		asm_ji(as, BPF_JEQ, R0, 0, ok);
		asm_sti(as, BPF_DW, R10, FRAME_TMP, 0);
		asm_bind(as, ok);
	} else {
		asm_st(as, BPF_DW, R10, FRAME_TMP2, R3);
		gen_check_own(g);
		asm_sti(as, BPF_DW, R10, FRAME_TMP, 0);
		asm_mov(as, R1, R10);
		asm_alui(as, BPF_ADD, R1, FRAME_TMP);
		asm_imm(as, R2, i->width);
		asm_helper(as, BPF_FUNC_probe_read_kernel);
		asm_ji(as, BPF_JNE, R0, 0, gen_fault(g, ABI_FAULT_BADADDR, FRAME_TMP2));
	}
	asm_ld(as, sizes[i->width], R1, R10, FRAME_TMP);
	if (i->sign)
		gen_extend(g, R1, i->width, true);
	gen_put(g, i, R1);
}

/* --- the probe --------------------------------------------------------------------------------------- */

void gen_probe_entry(struct gen *g, uint32_t none)
{
	struct assembler *as = &g->as;

	if (g->in_error)
		asm_imm(as, R1, g->env->error_probe);
	else
		asm_ld(as, BPF_DW, R1, R10, FRAME_PROBE);
	asm_st(as, BPF_W, R10, FRAME_TMP, R1);
	asm_lookup(as, EBPF_MAP_PROBES, FRAME_TMP);
	asm_ji(as, BPF_JEQ, R0, 0, none);
}

/* --- integer builtins --------------------------------------------------------------------------------- */

/* R1 = the word of @size at offset @off of the kernel structure at R3; 0 when it cannot be read. */
static void peek(struct gen *g, int size, uint32_t off)
{
	struct assembler *as = &g->as;

	asm_alui(as, BPF_ADD, R3, (int32_t)off);
	asm_sti(as, BPF_DW, R10, FRAME_TMP, 0);
	asm_mov(as, R1, R10);
	asm_alui(as, BPF_ADD, R1, FRAME_TMP);
	asm_imm(as, R2, size == BPF_W ? 4 : 8);
	asm_helper(as, BPF_FUNC_probe_read_kernel);
	asm_ld(as, size, R1, R10, FRAME_TMP);
}

static void need_task(struct gen *g, const char *builtin, bool known)
{
	if (!known)
		gen_refuse(g, builtin);
}

/* An element of EBPF_MAP_VTIMES. */
enum { VTIME_LAST = 0, VTIME_HIDDEN = 8, VTIME_WHO = 16 };

/* The element of a thread that has none: the time at FRAME_TMP2, nothing hidden, the thread's numbers, which are in FRAME_KEY. */
static void vtime_new(struct gen *g)
{
	struct assembler *as = &g->as;

	asm_ld(as, BPF_DW, R1, R10, FRAME_TMP2);
	asm_st(as, BPF_DW, R10, FRAME_KEY + VTIME_LAST, R1);
	asm_sti(as, BPF_DW, R10, FRAME_KEY + VTIME_HIDDEN, 0);
	asm_map(as, R1, EBPF_MAP_VTIMES);
	asm_mov(as, R2, R10);
	asm_alui(as, BPF_ADD, R2, FRAME_THREAD);
	asm_mov(as, R3, R10);
	asm_alui(as, BPF_ADD, R3, FRAME_KEY);
	asm_imm(as, R4, BPF_ANY);
	asm_helper(as, BPF_FUNC_map_update_elem);
	asm_ld(as, BPF_DW, R1, R10, FRAME_TMP2);
}

/*
 * R1 = the time in R1 without that of programs, or this thread's last vtimestamp if that is later.  A thread with other numbers than
 * the element's has got the address of one that has ended.
 */
static void virtual_time(struct gen *g)
{
	struct assembler *as = &g->as;
	uint32_t known = asm_label(as), same = asm_label(as), later = asm_label(as), done = asm_label(as);

	asm_st(as, BPF_DW, R10, FRAME_TMP2, R1);
	gen_current_task(g);
	asm_st(as, BPF_DW, R10, FRAME_THREAD, R0);
	asm_helper(as, BPF_FUNC_get_current_pid_tgid);
	asm_st(as, BPF_DW, R10, FRAME_KEY + VTIME_WHO, R0);
	asm_lookup(as, EBPF_MAP_VTIMES, FRAME_THREAD);
	asm_ji(as, BPF_JNE, R0, 0, known);
	vtime_new(g);
	asm_ja(as, done);
	asm_bind(as, known);
	asm_ld(as, BPF_DW, R1, R10, FRAME_KEY + VTIME_WHO);
	asm_ld(as, BPF_DW, R2, R0, VTIME_WHO);
	asm_j(as, BPF_JEQ, R1, R2, same);
	asm_st(as, BPF_DW, R0, VTIME_WHO, R1);
	asm_sti(as, BPF_DW, R0, VTIME_LAST, 0);
	asm_sti(as, BPF_DW, R0, VTIME_HIDDEN, 0);
	asm_bind(as, same);
	asm_ld(as, BPF_DW, R1, R10, FRAME_TMP2);
	asm_ld(as, BPF_DW, R2, R0, VTIME_HIDDEN);
	asm_alu(as, BPF_SUB, R1, R2);
	asm_ld(as, BPF_DW, R2, R0, VTIME_LAST);
	asm_j(as, BPF_JSGT, R2, R1, later);
	asm_st(as, BPF_DW, R0, VTIME_LAST, R1);
	asm_ja(as, done);
	asm_bind(as, later);
	asm_mov(as, R1, R2);
	asm_bind(as, done);
}

bool gen_hides_time(const struct gen *g)
{
	return !g->env->user_space && g->env->ctx != EBPF_CTX_RUN && g->env->task_runtime && !gen_tp_other_task(g) &&
	       g->unit->maps[EBPF_MAP_VTIMES].type != BPF_MAP_TYPE_UNSPEC;
}

/* R1 = the word at @off of the thread's struct task_struct. */
static void thread_word(struct gen *g, uint32_t off)
{
	gen_current_task(g);
	asm_mov(&g->as, R3, R0);
	peek(g, BPF_DW, off);
}

/* R1 = the word at @off of its CPU's run queue, whose address is at FRAME_KEY. */
static void queue_word(struct gen *g, uint32_t off)
{
	asm_ld(&g->as, BPF_DW, R3, R10, FRAME_KEY);
	peek(g, BPF_DW, off);
}

static void find_queue(struct gen *g)
{
	gen_current_task(g);
	asm_mov(&g->as, R1, R0);
	gen_follow(g, g->env->task_cfs_rq);
	gen_follow(g, g->env->cfs_rq_rq);
	asm_st(&g->as, BPF_DW, R10, FRAME_KEY, R1);
}

/*
 * R1 = by how much the task clock of the CPU is behind its clock: what a hypervisor, and perhaps interrupts, have taken so far.
 * Should the scheduler add up between the two reads, it is too much where a program @begins and too little where it ends: by
 * their difference then nothing has been taken.
 */
static void lost_time(struct gen *g, bool begins)
{
	const struct ebpf_env *e = g->env;
	struct assembler *as = &g->as;

	find_queue(g);
	queue_word(g, begins ? e->rq_clock_task : e->rq_clock);
	asm_st(as, BPF_DW, R10, FRAME_TMP2, R1);
	queue_word(g, begins ? e->rq_clock : e->rq_clock_task);
	asm_ld(as, BPF_DW, R2, R10, FRAME_TMP2);
	asm_alu(as, BPF_SUB, R1, R2);
	if (!begins)
		asm_neg(as, R1);
}

/* Where the program begins, behind FRAME_TIME. */
void gen_hide_begin(struct gen *g)
{
	if (!g->env->task_cfs_rq)
		return;
	lost_time(g, true);
	asm_st(&g->as, BPF_DW, R10, FRAME_LOST, R1);
}

/*
 * A program that took longer than HIDE_LONG_NS may have been preempted, or have slept, or a hypervisor may have kept its
 * processor.  Where it is not known for how long, nothing is hidden from HIDE_MOST_NS on, which hardly a program takes itself.
 */
enum { HIDE_LONG_NS = 20000, HIDE_MOST_NS = 5000000 };

/* R7 -= what was taken from the thread since the program began; jump to @none if that is all of it. */
static void without_lost(struct gen *g, uint32_t none)
{
	struct assembler *as = &g->as;
	uint32_t nothing = asm_label(as);

	lost_time(g, false);
	asm_ld(as, BPF_DW, R2, R10, FRAME_LOST);
	asm_alu(as, BPF_SUB, R1, R2);
	asm_ji(as, BPF_JSLE, R1, 0, nothing);
	asm_j(as, BPF_JGE, R1, R7, none);
	asm_alu(as, BPF_SUB, R7, R1);
	asm_bind(as, nothing);
}

/* If the thread got its CPU after the program began: R7 = the time since then, and jump to @lately.  R8 = now, and is lost. */
static void since_arrival(struct gen *g, uint32_t lately)
{
	struct assembler *as = &g->as;
	uint32_t before = asm_label(as);

	thread_word(g, g->env->task_last_arrival);
	asm_alu(as, BPF_SUB, R8, R1);
	asm_map_value(as, R1, EBPF_MAP_CONTROL, offsetof(struct abi_control, sched_off_ns));
	asm_ld(as, BPF_DW, R1, R1, 0);
	asm_alu(as, BPF_ADD, R8, R1);
	asm_j(as, BPF_JGE, R8, R7, before);
	asm_mov(as, R7, R8);
	asm_ja(as, lately);
	asm_bind(as, before);
}

/*
 * Add the time since the program began to what is hidden from its thread's vtimestamp, if that has been asked for.  If
 * the thread has lost its CPU meanwhile, only the time since it got it back.  When another thread waits for the CPU until the
 * program is over, the scheduler charges that one for the wait (rq_clock_skip_update()), and so much is hidden too much.
 */
void gen_hide_end(struct gen *g)
{
	struct assembler *as = &g->as;
	uint32_t none = asm_label(as), add = asm_label(as), unsure = asm_label(as);

	gen_current_task(g);
	asm_st(as, BPF_DW, R10, FRAME_TMP2, R0);
	asm_lookup(as, EBPF_MAP_VTIMES, FRAME_TMP2);
	asm_ji(as, BPF_JEQ, R0, 0, none);
	asm_mov(as, R6, R0);
	asm_helper(as, BPF_FUNC_ktime_get_ns);
	asm_mov(as, R7, R0);
	asm_mov(as, R8, R0);
	asm_ld(as, BPF_DW, R1, R10, FRAME_TIME);
	asm_alu(as, BPF_SUB, R7, R1);
	asm_ji(as, BPF_JLT, R7, HIDE_LONG_NS, add);
	if (g->env->task_last_arrival) {
		since_arrival(g, unsure);
		if (g->env->task_cfs_rq) {
			without_lost(g, none);
			asm_ja(as, add);
		}
		asm_bind(as, unsure);
		asm_ji(as, BPF_JGE, R7, HIDE_MOST_NS, none);
	} else {
		asm_ja(as, none);
	}
	asm_bind(as, add);
	asm_atomic(as, BPF_ADD, BPF_DW, R6, VTIME_HIDDEN, R7);
	asm_bind(as, none);
}

/* FRAME_TMP2 += or -= R1. */
static void sum_up(struct gen *g, int op)
{
	asm_ld(&g->as, BPF_DW, R2, R10, FRAME_TMP2);
	asm_alu(&g->as, op, R2, R1);
	asm_st(&g->as, BPF_DW, R10, FRAME_TMP2, R2);
}

/* R1 = the word that the scheduler changes first when it adds up the times. */
static void sched_version(struct gen *g)
{
	if (g->env->task_cfs_rq)
		queue_word(g, g->env->rq_clock);
	else
		thread_word(g, g->env->task_exec_start);
}

/*
 * A thread's CPU time is the sum that the scheduler stored last plus the time since then, on the task clock of the
 * CPU.  That is the scheduler's clock without the time taken by interrupts and a hypervisor, so it differs from CPU to
 * CPU.  The time taken since its last update is unknown: a thread that changes CPUs could see its time go back
 * (virtual_time).  If the scheduler adds up during these reads, they are repeated.
 */
static void vtimestamp(struct gen *g)
{
	const struct ebpf_env *e = g->env;
	struct assembler *as = &g->as;
	uint32_t done = asm_label(as);

	if (e->user_space) {
		asm_helper(as, ABI_HELPER_THREAD_TIME);
		asm_mov(as, R1, R0);
		return;
	}
	need_task(g, "vtimestamp: the kernel does not say where it keeps a thread's time",
		  e->task_runtime && e->task_exec_start);
	if (e->task_cfs_rq)
		find_queue(g);
	for (int tries = 2; tries; tries--) {
		sched_version(g);
		asm_st(as, BPF_DW, R10, FRAME_THREAD, R1);
		asm_map_value(as, R1, EBPF_MAP_CONTROL, offsetof(struct abi_control, sched_off_ns));
		asm_ld(as, BPF_DW, R1, R1, 0);
		asm_ld(as, BPF_DW, R2, R10, FRAME_TIME);
		asm_alu(as, BPF_ADD, R1, R2);
		asm_st(as, BPF_DW, R10, FRAME_TMP2, R1);
		if (e->task_cfs_rq) {
			queue_word(g, e->rq_clock_task);
			sum_up(g, BPF_ADD);
			asm_ld(as, BPF_DW, R1, R10, FRAME_THREAD);
			sum_up(g, BPF_SUB);
		}
		thread_word(g, e->task_exec_start);
		sum_up(g, BPF_SUB);
		thread_word(g, e->task_runtime);
		sum_up(g, BPF_ADD);
		if (tries == 1)
			break;
		sched_version(g);
		asm_ld(as, BPF_DW, R2, R10, FRAME_THREAD);
		asm_j(as, BPF_JEQ, R1, R2, done);
	}
	asm_bind(as, done);
	asm_ld(as, BPF_DW, R1, R10, FRAME_TMP2);
	virtual_time(g);
}

/* R1 = the value of an integer builtin. */
typedef void builtin_fn(struct gen *g);

static void timestamp(struct gen *g)
{
	asm_ld(&g->as, BPF_DW, R1, R10, FRAME_TIME);
}

static void now(struct gen *g)
{
	asm_helper(&g->as, BPF_FUNC_ktime_get_ns);
	asm_mov(&g->as, R1, R0);
}

static void walltimestamp(struct gen *g)
{
	struct assembler *as = &g->as;

	timestamp(g);
	asm_map_value(as, R2, EBPF_MAP_CONTROL, offsetof(struct abi_control, walltime_off_ns));
	asm_ld(as, BPF_DW, R2, R2, 0);
	asm_alu(as, BPF_ADD, R1, R2);
}

static void pid(struct gen *g)
{
	asm_ld(&g->as, BPF_W, R1, R10, FRAME_TASK + 4);
}

static void tid(struct gen *g)
{
	asm_ld(&g->as, BPF_W, R1, R10, FRAME_TASK);
}

static void ppid(struct gen *g)
{
	struct assembler *as = &g->as;

	if (g->env->user_space) {
		asm_helper(as, ABI_HELPER_PARENT);
		asm_mov(as, R1, R0);
		return;
	}
	need_task(g, "ppid: the kernel does not say where it keeps a process's parent",
		  g->env->task_parent && g->env->task_tgid);
	gen_current_task(g);
	asm_mov(as, R3, R0);
	if (g->env->pid_ns && gen_knows_numbers(g)) {
		gen_process_parent(g);
		gen_number_there(g, ABI_TASK_PID);
		asm_mov(as, R1, R3);
		return;
	}
	peek(g, BPF_DW, g->env->task_parent);
	asm_mov(as, R3, R1);
	peek(g, BPF_W, g->env->task_tgid);
}

static void uid(struct gen *g)
{
	if (gen_tp_other_task(g)) {
		gen_task_id(g, ABI_TASK_UID);
		return;
	}
	asm_helper(&g->as, BPF_FUNC_get_current_uid_gid);
	asm_mov(&g->as, R1, R0);
	gen_extend(g, R1, 4, false);
}

static void gid(struct gen *g)
{
	if (gen_tp_other_task(g)) {
		gen_task_id(g, ABI_TASK_GID);
		return;
	}
	asm_helper(&g->as, BPF_FUNC_get_current_uid_gid);
	asm_mov(&g->as, R1, R0);
	asm_alui(&g->as, BPF_RSH, R1, 32);
}

static void cpu(struct gen *g)
{
	asm_helper(&g->as, BPF_FUNC_get_smp_processor_id);
	asm_mov(&g->as, R1, R0);
}

static void caller(struct gen *g)
{
	gen_stack_builtin(g, IR_B_CALLER);
}

static void ucaller(struct gen *g)
{
	gen_stack_builtin(g, IR_B_UCALLER);
}

static void stackdepth(struct gen *g)
{
	gen_stack_builtin(g, IR_B_STACKDEPTH);
}

static void ustackdepth(struct gen *g)
{
	gen_stack_builtin(g, IR_B_USTACKDEPTH);
}

static void curthread(struct gen *g)
{
	gen_current_task(g);
	asm_mov(&g->as, R1, R0);
}

static void epid(struct gen *g)
{
	struct assembler *as = &g->as;
	uint32_t none = asm_label(as);

	gen_probe_entry(g, none);
	asm_ld(as, BPF_W, R0, R0, offsetof(struct abi_probe, epid));
	asm_alui(as, BPF_ADD, R0, (int32_t)g->number);
	asm_bind(as, none);
	asm_mov(as, R1, R0);
}

static void id(struct gen *g)
{
	struct assembler *as = &g->as;
	uint32_t none = asm_label(as);

	gen_probe_entry(g, none);
	asm_ld(as, BPF_W, R0, R0, offsetof(struct abi_probe, id));
	asm_bind(as, none);
	asm_mov(as, R1, R0);
}

static builtin_fn *const integers[IR_B_MAX] = {
	[IR_B_TIMESTAMP] = timestamp,
	[IR_B_NOW] = now,
	[IR_B_WALLTIMESTAMP] = walltimestamp,
	[IR_B_VTIMESTAMP] = vtimestamp,
	[IR_B_PID] = pid,
	[IR_B_TID] = tid,
	[IR_B_PPID] = ppid,
	[IR_B_UID] = uid,
	[IR_B_GID] = gid,
	[IR_B_CPU] = cpu,
	[IR_B_CALLER] = caller,
	[IR_B_UCALLER] = ucaller,
	[IR_B_STACKDEPTH] = stackdepth,
	[IR_B_USTACKDEPTH] = ustackdepth,
	[IR_B_CURTHREAD] = curthread,
	[IR_B_ERRNO] = gen_tp_errno,
	[IR_B_EPID] = epid,
	[IR_B_ID] = id,
};

/* --- string builtins ---------------------------------------------------------------------------------- */

/* R3 = the address of the text at @off in the probe's entry, or of an empty string. */
static void probe_text(struct gen *g, uint32_t off)
{
	struct assembler *as = &g->as;
	uint32_t none = asm_label(as), done = asm_label(as);

	gen_probe_entry(g, none);
	asm_mov(as, R3, R0);
	asm_alui(as, BPF_ADD, R3, (int32_t)off);
	asm_ja(as, done);
	asm_bind(as, none);
	asm_map_value(as, R3, EBPF_MAP_RODATA, g->priv->zeros_off);
	asm_bind(as, done);
}

/* Append the pid to the provider's name if the table has only a base name. */
static void add_pid(struct gen *g, struct dest to)
{
	struct assembler *as = &g->as;
	uint32_t done = asm_label(as);
	int room = (int)g->prog->strsize - 24;

	if (room < 1)
		return;
	asm_st(as, BPF_DW, R10, FRAME_TMP2, R0);
	gen_probe_entry(g, done);
	asm_ld(as, BPF_W, R1, R0, offsetof(struct abi_probe, flags));
	asm_ld(as, BPF_DW, R0, R10, FRAME_TMP2);
	asm_alui(as, BPF_AND, R1, ABI_PROBE_PID_SUFFIX);
	asm_ji(as, BPF_JEQ, R1, 0, done);
	asm_ji(as, BPF_JGT, R0, room, done);
	gen_dest(g, R1, to);
	asm_ld(as, BPF_DW, R2, R10, FRAME_TMP2);
	asm_alui(as, BPF_SUB, R2, 1);
	asm_ji(as, BPF_JGT, R2, room, done);
	asm_alu(as, BPF_ADD, R1, R2);
	asm_ld(as, BPF_W, R2, R10, FRAME_TASK + 4);
	asm_rt(as, RT_DECIMAL);
	asm_ji(as, BPF_JGT, R0, 24, done);
	asm_ld(as, BPF_DW, R1, R10, FRAME_TMP2);
	asm_alu(as, BPF_ADD, R0, R1);
	asm_alui(as, BPF_SUB, R0, 1);
	asm_st(as, BPF_DW, R10, FRAME_TMP2, R0);
	asm_bind(as, done);
	asm_ld(as, BPF_DW, R0, R10, FRAME_TMP2);
}

void gen_make_builtin_str(struct gen *g, const struct ir_insn *i, struct dest to)
{
	static const uint32_t texts[IR_B_MAX] = {
		[IR_B_PROBEPROV] = offsetof(struct abi_probe, prov),
		[IR_B_PROBEMOD] = offsetof(struct abi_probe, mod),
		[IR_B_PROBEFUNC] = offsetof(struct abi_probe, func),
		[IR_B_PROBENAME] = offsetof(struct abi_probe, name),
	};
	struct assembler *as = &g->as;
	uint32_t none = asm_label(as), done = asm_label(as);

	if (i->bi == IR_B_CWD || i->bi == IR_B_ROOT) {
		gen_directory(g, i->bi == IR_B_ROOT, to);
		return;
	}
	if (i->bi == IR_B_EXECARGS) {
		gen_execargs(g, to, none);
		asm_ja(as, done);
	}
	asm_bind(as, none);
	if (i->bi == IR_B_EXECNAME || i->bi == IR_B_EXECARGS) {
		asm_mov(as, R1, R10);
		asm_alui(as, BPF_ADD, R1, FRAME_KEY);
		asm_imm(as, R2, 16);
		if (gen_tp_other_task(g))
			gen_tp_comm(g);
		else
			asm_helper(as, BPF_FUNC_get_current_comm);
		asm_mov(as, R3, R10);
		asm_alui(as, BPF_ADD, R3, FRAME_KEY);
	} else {
		probe_text(g, texts[i->bi]);
	}
	gen_dest(g, R1, to);
	gen_copy_str(g, false);
	if (i->bi == IR_B_PROBEPROV)
		add_pid(g, to);
	asm_bind(as, done);
}

void gen_builtin(struct gen *g, const struct ir_insn *i)
{
	if (ir_builtin_type(i->bi) == IR_STR) {
		gen_make_builtin_str(g, i, gen_str_dst(g, i));
		return;
	}
	if (!integers[i->bi]) {
		gen_refuse(g, "a builtin of an unknown kind");
		return;
	}
	integers[i->bi](g);
	gen_put(g, i, R1);
}

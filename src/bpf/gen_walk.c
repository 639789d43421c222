/*
 * Stack walks by the runtime functions (rt/unwind.c, rt/python.c): this file identifies the process and passes the
 * functions what they need.
 *
 * The tracer is asked about an unknown process, once.  Until it has answered, native frames are found by frame
 * pointers, and there are no Python frames.
 */
#include "bpf/gen.h"

#include <stddef.h>

#include "bpf/rt/stack.h"

enum { KEY = FRAME_KEY, WALK = FRAME_KEY + (int)sizeof(struct abi_process_key) };
_Static_assert(sizeof(struct abi_process_key) + sizeof(struct stack_walk) <= FRAME_KEY_SIZE, "room for key and walk");

/* Since 5.15 in linux/bpf.h, later than some headers: enum bpf_func_id. */
enum { GET_CURRENT_TASK_BTF = 158, TASK_PT_REGS = 175 };

/* The offset of the work area's @FIELD in the scratch slot. */
#define WORK(FIELD) ((int)g->priv->work_off + (int)offsetof(struct stack_work, FIELD))
/* The offset of @FIELD from field @OF. */
#define FROM(OF, FIELD) ((int)offsetof(struct stack_work, FIELD) - (int)offsetof(struct stack_work, OF))

/* R2 = the address of the key. */
static void key_addr(struct gen *g)
{
	asm_mov(&g->as, R2, R10);
	asm_alui(&g->as, BPF_ADD, R2, KEY);
}

/* The process's key, and what pthread_self() returns in the thread. */
static void identify(struct gen *g)
{
	const struct ebpf_env *e = g->env;
	struct assembler *as = &g->as;

	asm_helper(as, BPF_FUNC_get_current_task);
	asm_mov(as, R1, R0);
	asm_st(as, BPF_DW, R10, WALK, R1);
	gen_follow(g, e->task_mm);
	asm_st(as, BPF_DW, R10, WALK + 8, R1);
	gen_follow(g, e->mm_start_code);
	asm_st(as, BPF_DW, R10, KEY, R1);
	asm_ld(as, BPF_DW, R1, R10, WALK + 8);
	gen_follow(g, e->mm_start_stack);
	asm_st(as, BPF_DW, R10, KEY + 8, R1);
	if (!e->task_tls)
		return;
	asm_ld(as, BPF_DW, R1, R10, WALK);
	gen_follow(g, e->task_tls);
	gen_scratch(g, R5, (uint32_t)WORK(self));
	asm_st(as, BPF_DW, R5, 0, R1);
	/* In C libraries for x86-64 the thread pointer is pthread_self(), in those for aarch64 it is that structure's end. */
	asm_sti(as, BPF_DW, R5, FROM(self, self_room), g->kept->links ? 4096 : 1);
}

/* R0 = the process's entry in @map, or NULL. */
static void find_process(struct gen *g, uint32_t map)
{
	asm_map(&g->as, R1, map);
	key_addr(g);
	asm_helper(&g->as, BPF_FUNC_map_lookup_elem);
}

/* Ask the tracer about the process.  The record is built after the addresses, which are kept. */
static void ask(struct gen *g, bool starts)
{
	struct assembler *as = &g->as;

	gen_scratch(g, R0, (uint32_t)WORK(code));
	asm_st(as, BPF_DW, R10, WALK, R0);
	gen_header(g, R9, (int)g->priv->work_off, ABI_REC_PROCESS);
	asm_sti(as, BPF_W, R9, WORK(hdr.size), sizeof(struct abi_ask));
	asm_ld(as, BPF_DW, R5, R10, WALK);
	for (int k = 0; k < (int)sizeof(struct abi_record); k += 8) {
		asm_ld(as, BPF_DW, R1, R9, WORK(hdr) + k);
		asm_st(as, BPF_DW, R5, k, R1);
	}
	for (int k = 0; k < (int)sizeof(struct abi_process_key); k += 8) {
		asm_ld(as, BPF_DW, R1, R10, KEY + k);
		asm_st(as, BPF_DW, R5, (int)offsetof(struct abi_ask, key) + k, R1);
	}
	asm_sti(as, BPF_DW, R5, offsetof(struct abi_ask, starts), starts);
	asm_map(as, R1, EBPF_MAP_OUT);
	asm_mov(as, R2, R5);
	asm_imm(as, R3, sizeof(struct abi_ask));
	asm_imm(as, R4, BPF_RB_FORCE_WAKEUP);
	asm_helper(as, BPF_FUNC_ringbuf_output);
}

/* Remember in @map that it was asked. */
static void note_asked(struct gen *g, uint32_t map)
{
	struct assembler *as = &g->as;

	asm_map(as, R1, map);
	key_addr(g);
	asm_map_value(as, R3, EBPF_MAP_RODATA, g->priv->zeros_off);
	asm_imm(as, R4, BPF_NOEXIST);
	asm_helper(as, BPF_FUNC_map_update_elem);
}

/* R0 = the process's entry in @map; if there is none, ask the tracer and jump to @missing. */
static void find_or_ask(struct gen *g, uint32_t map, uint32_t missing)
{
	struct assembler *as = &g->as;
	uint32_t known = asm_label(as);

	identify(g);
	find_process(g, map);
	asm_ji(as, BPF_JNE, R0, 0, known);
	note_asked(g, map);
	ask(g, false);
	asm_ja(as, missing);
	asm_bind(as, known);
}

void gen_ask(struct gen *g)
{
	if (!g->env->task_mm) {
		gen_refuse(g, "the kernel does not say where it keeps a process's addresses");
		return;
	}
	identify(g);
	if (g->priv->python)
		note_asked(g, EBPF_MAP_PYTHONS);
	if (g->priv->unwinds)
		note_asked(g, EBPF_MAP_RANGES);
	ask(g, true);
}

/* Call @fn with the process's entry, at R0, and @map. */
static void call_walk(struct gen *g, enum rt_fn fn, uint32_t map)
{
	struct assembler *as = &g->as;

	asm_st(as, BPF_DW, R10, WALK + (int)offsetof(struct stack_walk, known), R0);
	gen_scratch(g, R1, g->priv->work_off);
	asm_st(as, BPF_DW, R10, WALK + (int)offsetof(struct stack_walk, work), R1);
	if (map == EBPF_MAP_UNWIND)
		asm_map_value(as, R1, map, 0);
	else
		asm_map(as, R1, map);
	asm_st(as, BPF_DW, R10, WALK + (int)offsetof(struct stack_walk, map), R1);
	asm_map(as, R1, EBPF_MAP_OUT);
	asm_st(as, BPF_DW, R10, WALK + (int)offsetof(struct stack_walk, out), R1);
	asm_mov(as, R1, R10);
	asm_alui(as, BPF_ADD, R1, WALK);
	asm_rt(as, fn);
}

/* --- native frames ------------------------------------------------------------------------------------- */

/* Copy the process's registers at the probe to the work area, from WORK(ip) on. */
static void load_registers(struct gen *g)
{
	struct assembler *as = &g->as;

	if (g->env->ctx == EBPF_CTX_UPROBE) {
		asm_ld(as, BPF_DW, R0, R10, FRAME_CTX);
	} else {
		asm_helper(as, GET_CURRENT_TASK_BTF);
		asm_mov(as, R1, R0);
		asm_helper(as, TASK_PT_REGS);
	}
	gen_scratch(g, R5, (uint32_t)WORK(ip));
	asm_ld(as, BPF_DW, R1, R0, g->kept->pc);
	asm_st(as, BPF_DW, R5, 0, R1);
	asm_ld(as, BPF_DW, R1, R0, g->kept->sp);
	asm_st(as, BPF_DW, R5, FROM(ip, sp), R1);
	asm_ld(as, BPF_DW, R1, R0, g->kept->fp);
	asm_st(as, BPF_DW, R5, FROM(ip, bp), R1);
	if (g->kept->links) {
		asm_ld(as, BPF_DW, R1, R0, g->kept->link);
		asm_st(as, BPF_DW, R5, FROM(ip, link), R1);
	}
	asm_sti(as, BPF_DW, R5, FROM(ip, links), g->kept->links);
	asm_sti(as, BPF_DW, R5, FROM(ip, loose), 0);
}

/* The innermost call that a return probe waits for, and the offsets in the kernel's struct return_instance. */
static void load_calls(struct gen *g)
{
	const struct ebpf_returns *r = g->env->returns;
	struct assembler *as = &g->as;

	asm_imm(as, R1, 0);
	if (r && r->first) {
		asm_helper(as, BPF_FUNC_get_current_task);
		asm_mov(as, R1, R0);
		gen_follow(g, r->utask);
		gen_follow(g, r->first);
	}
	gen_scratch(g, R5, (uint32_t)WORK(call));
	asm_st(as, BPF_DW, R5, 0, R1);
	asm_sti(as, BPF_W, R5, FROM(call, call_next), r ? (int32_t)r->next : 0);
	asm_sti(as, BPF_W, R5, FROM(call, call_at), r ? (int32_t)r->slot : 0);
	asm_sti(as, BPF_W, R5, FROM(call, call_address), r ? (int32_t)r->address : 0);
}

void gen_unwind(struct gen *g, uint32_t frames, uint32_t done)
{
	struct assembler *as = &g->as;
	uint32_t complete = asm_label(as), unknown = asm_label(as);

	gen_scratch(g, R5, (uint32_t)WORK(unwound));
	asm_sti(as, BPF_DW, R5, 0, 0);
	find_or_ask(g, EBPF_MAP_RANGES, unknown);
	asm_ld(as, BPF_W, R1, R0, offsetof(struct abi_ranges, n));
	asm_ji(as, BPF_JEQ, R1, 0, unknown);
	asm_st(as, BPF_DW, R10, WALK, R0);
	gen_scratch(g, R5, (uint32_t)WORK(most));
	asm_sti(as, BPF_DW, R5, 0, (int32_t)frames);
	load_registers(g);
	load_calls(g);
	asm_ld(as, BPF_DW, R0, R10, WALK);
	asm_st(as, BPF_DW, R10, FRAME_TMP, R0);
	call_walk(g, RT_UNWIND, EBPF_MAP_UNWIND);
	gen_scratch(g, R5, (uint32_t)WORK(unwound));
	asm_sti(as, BPF_DW, R5, 0, 1);
	/* Unknown code was met: ask again, unless that was done since the last answer. */
	gen_scratch(g, R5, (uint32_t)WORK(pos));
	asm_ld(as, BPF_DW, R1, R5, FROM(pos, missing));
	asm_ji(as, BPF_JEQ, R1, 0, complete);
	asm_ld(as, BPF_DW, R2, R10, FRAME_TMP);
	asm_ld(as, BPF_W, R1, R2, offsetof(struct abi_ranges, asked));
	asm_ji(as, BPF_JNE, R1, 0, complete);
	asm_sti(as, BPF_W, R2, offsetof(struct abi_ranges, asked), 1);
	ask(g, false);
	asm_bind(as, complete);
	gen_scratch(g, R5, (uint32_t)WORK(pos));
	asm_ld(as, BPF_DW, R0, R5, 0);
	asm_ji(as, BPF_JGT, R0, STACK_ADDRS, unknown);
	asm_alui(as, BPF_LSH, R0, 3);
	asm_ji(as, BPF_JNE, R0, 0, done);
	asm_bind(as, unknown);
}

/* --- Python's ------------------------------------------------------------------------------------------ */

void gen_python(struct gen *g, uint32_t frames, bool lines)
{
	struct assembler *as = &g->as;
	uint32_t none = asm_label(as);

	if (!g->env->task_tls || !g->env->task_mm) {
		gen_refuse(g, "frames of Python: the kernel does not say where it keeps the base of a thread's storage");
		return;
	}
	asm_ld(as, BPF_DW, R1, R10, FRAME_POS);
	asm_alui(as, BPF_RSH, R1, 3);
	gen_scratch(g, R5, (uint32_t)WORK(pos));
	asm_st(as, BPF_DW, R5, 0, R1);
	asm_st(as, BPF_DW, R5, FROM(pos, addrs), R1);
	asm_sti(as, BPF_DW, R5, FROM(pos, most), (int32_t)frames);
	asm_sti(as, BPF_DW, R5, FROM(pos, lines), lines);
	if (!g->priv->unwinds)
		asm_sti(as, BPF_DW, R5, FROM(pos, unwound), 0);
	find_or_ask(g, EBPF_MAP_PYTHONS, none);
	asm_ld(as, BPF_DW, R1, R0, offsetof(struct abi_python, runtime));
	asm_ji(as, BPF_JEQ, R1, 0, none);
	asm_st(as, BPF_DW, R10, FRAME_TMP, R0);
	gen_header(g, R9, (int)g->priv->work_off, ABI_REC_STACK);
	asm_ld(as, BPF_DW, R0, R10, FRAME_TMP);
	call_walk(g, RT_PYTHON, EBPF_MAP_CODES);
	/* Add the frames to the stack's number, and their bytes to the record's. */
	gen_scratch(g, R5, (uint32_t)WORK(pos));
	asm_ld(as, BPF_DW, R1, R5, 0);
	asm_ji(as, BPF_JGT, R1, STACK_WORDS, none);
	asm_alui(as, BPF_LSH, R1, 3);
	asm_st(as, BPF_DW, R10, FRAME_POS, R1);
	asm_ld(as, BPF_DW, R1, R5, FROM(pos, hash));
	asm_ld(as, BPF_DW, R2, R10, FRAME_TMP2);
	asm_imm(as, R3, (int64_t)0x9e3779b97f4a7c15);
	asm_alu(as, BPF_XOR, R1, R2);
	asm_alu(as, BPF_MUL, R1, R3);
	asm_st(as, BPF_DW, R10, FRAME_TMP2, R1);
	asm_bind(as, none);
}

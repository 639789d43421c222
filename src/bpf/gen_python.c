/*
 * Frames of Python on a stack: who the process is, and what the runtime function that walks them (rt/python.c) needs.
 *
 * A process that nothing is known of is asked about, once; it has no such frames until the tracer has answered.
 */
#include "bpf/gen.h"

#include <stddef.h>

#include "bpf/rt/python.h"

enum { KEY = FRAME_KEY, WALK = FRAME_KEY + (int)sizeof(struct abi_python_key) };
_Static_assert(sizeof(struct abi_python_key) + sizeof(struct py_walk) <= FRAME_KEY_SIZE, "room for key and walk");

/* Where a field of the work area is in the scratch slot. */
#define WORK(FIELD) ((int)g->priv->work_off + (int)offsetof(struct py_work, FIELD))

/* R2 = the key. */
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
	asm_ld(as, BPF_DW, R1, R10, WALK);
	gen_follow(g, e->task_tls);
	gen_scratch(g, R5, (uint32_t)WORK(self));
	asm_st(as, BPF_DW, R5, 0, R1);
}

/* Ask the tracer. */
static void ask(struct gen *g)
{
	struct assembler *as = &g->as;
	int base = (int)g->priv->work_off, size = (int)sizeof(struct abi_record) + (int)sizeof(struct abi_python_key);

	gen_header(g, R9, base, ABI_REC_PYTHON);
	asm_sti(as, BPF_W, R9, base + (int)offsetof(struct abi_record, size), size);
	for (int k = 0; k < (int)sizeof(struct abi_python_key); k += 8) {
		asm_ld(as, BPF_DW, R1, R10, KEY + k);
		asm_st(as, BPF_DW, R9, base + (int)sizeof(struct abi_record) + k, R1);
	}
	asm_map(as, R1, EBPF_MAP_PYTHONS);
	key_addr(g);
	asm_map_value(as, R3, EBPF_MAP_RODATA, g->priv->zeros_off);
	asm_imm(as, R4, BPF_NOEXIST);
	asm_helper(as, BPF_FUNC_map_update_elem);
	asm_map(as, R1, EBPF_MAP_OUT);
	gen_scratch(g, R2, (uint32_t)base);
	asm_imm(as, R3, size);
	asm_imm(as, R4, BPF_RB_FORCE_WAKEUP);
	asm_helper(as, BPF_FUNC_ringbuf_output);
}

void gen_python_ask(struct gen *g)
{
	if (!g->env->task_mm) {
		gen_refuse(g, "the kernel does not say where it keeps a process's addresses");
		return;
	}
	identify(g);
	ask(g);
}

void gen_python(struct gen *g, uint32_t frames)
{
	struct assembler *as = &g->as;
	uint32_t known = asm_label(as), none = asm_label(as);

	if (!g->env->task_tls || !g->env->task_mm) {
		gen_refuse(g, "frames of Python: the kernel does not say where it keeps the base of a thread's storage");
		return;
	}
	asm_ld(as, BPF_DW, R1, R10, FRAME_POS);
	asm_alui(as, BPF_RSH, R1, 3);
	gen_scratch(g, R5, (uint32_t)WORK(pos));
	asm_st(as, BPF_DW, R5, 0, R1);
	asm_st(as, BPF_DW, R5, (int)offsetof(struct py_work, addrs) - (int)offsetof(struct py_work, pos), R1);
	asm_sti(as, BPF_DW, R5, (int)offsetof(struct py_work, most) - (int)offsetof(struct py_work, pos), (int32_t)frames);
	identify(g);
	asm_map(as, R1, EBPF_MAP_PYTHONS);
	key_addr(g);
	asm_helper(as, BPF_FUNC_map_lookup_elem);
	asm_ji(as, BPF_JNE, R0, 0, known);
	ask(g);
	asm_ja(as, none);
	asm_place(as, known);
	asm_ld(as, BPF_DW, R1, R0, offsetof(struct abi_python, runtime));
	asm_ji(as, BPF_JEQ, R1, 0, none);
	asm_st(as, BPF_DW, R10, WALK + (int)offsetof(struct py_walk, py), R0);
	gen_scratch(g, R1, g->priv->work_off);
	asm_st(as, BPF_DW, R10, WALK + (int)offsetof(struct py_walk, work), R1);
	asm_map(as, R1, EBPF_MAP_CODES);
	asm_st(as, BPF_DW, R10, WALK + (int)offsetof(struct py_walk, codes), R1);
	asm_map(as, R1, EBPF_MAP_OUT);
	asm_st(as, BPF_DW, R10, WALK + (int)offsetof(struct py_walk, out), R1);
	gen_header(g, R9, (int)g->priv->work_off, ABI_REC_STACK);
	asm_mov(as, R1, R10);
	asm_alui(as, BPF_ADD, R1, WALK);
	asm_rt(as, RT_PYTHON);
	/* The frames go into the number, and the bytes of the record. */
	gen_scratch(g, R5, (uint32_t)WORK(pos));
	asm_ld(as, BPF_DW, R1, R5, 0);
	asm_ji(as, BPF_JGT, R1, PY_WORDS, none);
	asm_alui(as, BPF_LSH, R1, 3);
	asm_st(as, BPF_DW, R10, FRAME_POS, R1);
	asm_ld(as, BPF_DW, R1, R5, (int)offsetof(struct py_work, hash) - (int)offsetof(struct py_work, pos));
	asm_ld(as, BPF_DW, R2, R10, FRAME_TMP2);
	asm_imm(as, R3, (int64_t)0x9e3779b97f4a7c15);
	asm_alu(as, BPF_XOR, R1, R2);
	asm_alu(as, BPF_MUL, R1, R3);
	asm_st(as, BPF_DW, R10, FRAME_TMP2, R1);
	asm_place(as, none);
}

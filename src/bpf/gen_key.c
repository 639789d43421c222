/*
 * Keys: built on the stack when they are a few integers, else in the work area; looked up in the map of their size
 * class (ir/layout.h).
 */
#include "bpf/gen.h"

/* R0 = the thread */
static void thread(struct gen *g)
{
	if (gen_tp_other_task(g))
		asm_ld(&g->as, BPF_DW, R0, R10, FRAME_TASK);
	else
		asm_helper(&g->as, BPF_FUNC_get_current_pid_tgid);
}

void gen_thread_key(struct gen *g)
{
	thread(g);
	asm_st(&g->as, BPF_DW, R10, FRAME_THREAD, R0);
}

static bool on_stack(const struct keyed_use *k)
{
	return !k->keyed->strs && k->keyed->sizes[0] <= FRAME_KEY_SIZE;
}

static void store(struct gen *g, const struct keyed_use *k, uint32_t off, int reg)
{
	if (on_stack(k))
		asm_st(&g->as, BPF_DW, R10, FRAME_KEY + (int)off, reg);
	else
		asm_st(&g->as, BPF_DW, R9, (int)(g->priv->work_off + off), reg);
}

static void build_integers(struct gen *g, const struct keyed_use *k)
{
	uint32_t off = 0;

	if (k->thread) {
		thread(g);
		store(g, k, off, R0);
		off += 8;
	}
	for (uint32_t x = 0; x < k->n; x++) {
		if (k->parts[x].type == IR_STR)
			continue;
		store(g, k, off, gen_use(g, k->keys[x], R1));
		off += 8;
	}
	if (!k->keyed->ints && !k->keyed->strs) {
		asm_imm(&g->as, R1, 0);
		store(g, k, 0, R1);
	}
}

/* The strings, packed behind the integers; the rest of the smallest class is zero before them, so that a key
 * of that class is ready then.  FRAME_POS: the key's bytes. */
static void build_strings(struct gen *g, const struct keyed_use *k)
{
	struct assembler *as = &g->as;
	uint32_t ints = k->keyed->ints * 8;

	if (!k->keyed->strs)
		return;
	for (uint32_t off = ints; off < k->keyed->sizes[0]; off += 8)
		asm_sti(as, BPF_DW, R9, (int)(g->priv->work_off + off), 0);
	asm_imm(as, R1, ints);
	asm_st(as, BPF_DW, R10, FRAME_POS, R1);
	for (uint32_t x = 0; x < k->n; x++) {
		if (k->parts[x].type != IR_STR)
			continue;
		gen_str_to(g, k->keys[x], (struct place){ g->priv->work_off, true });
		asm_ld(as, BPF_DW, R1, R10, FRAME_POS);
		asm_alu(as, BPF_ADD, R1, R0);
		asm_st(as, BPF_DW, R10, FRAME_POS, R1);
	}
}

enum { STORE_ZEROS_MAX = 256 };

/* The key has R1 bytes, more than class @cls - 1 and at most class @cls: make the rest of the class zero.  What lies
 * behind the class may become zero, too; the work area has room for that. */
static void zero_tail(struct gen *g, const struct keyed_use *k, unsigned int cls)
{
	struct assembler *as = &g->as;
	uint32_t n = k->keyed->sizes[cls] - k->keyed->sizes[cls - 1];

	gen_scratch(g, R2, g->priv->work_off);
	asm_alu(as, BPF_ADD, R2, R1);
	if (n <= STORE_ZEROS_MAX) {
		for (uint32_t off = 0; off < n; off += 8)
			asm_sti(as, BPF_DW, R2, (int)off, 0);
	} else {
		asm_mov(as, R1, R2);
		asm_imm(as, R2, n);
		asm_map_value(as, R3, EBPF_MAP_RODATA, g->priv->zeros_off);
		asm_helper(as, BPF_FUNC_probe_read_kernel);
	}
}

void gen_keyed(struct gen *g, const struct keyed_use *k)
{
	struct assembler *as = &g->as;
	uint32_t done = asm_label(as);

	if (!on_stack(k) && g->priv->work_off + k->keyed->ints * 8 + IR_MAX_KEYS * 32 > INT16_MAX)
		gen_refuse(g, "a clause has too many values at a time");
	build_integers(g, k);
	build_strings(g, k);
	for (unsigned int cls = 0; cls < k->keyed->n; cls++) {
		uint32_t larger = asm_label(as);
		bool last = cls + 1 == k->keyed->n;

		if (k->keyed->n > 1) {
			asm_ld(as, BPF_DW, R1, R10, FRAME_POS);
			asm_ji(as, BPF_JGT, R1, (int32_t)k->keyed->sizes[cls], last ? k->other : larger);
			if (cls)
				zero_tail(g, k, cls);
		}
		k->each(g, k, k->keyed->first + cls);
		if (!last)
			asm_ja(as, done);
		asm_place(as, larger);
	}
	asm_place(as, done);
}

void gen_key_addr(struct gen *g, const struct keyed_use *k)
{
	if (on_stack(k)) {
		asm_mov(&g->as, R2, R10);
		asm_alui(&g->as, BPF_ADD, R2, FRAME_KEY);
	} else {
		gen_scratch(g, R2, g->priv->work_off);
	}
}

static void lookup(struct gen *g, const struct keyed_use *k, uint32_t map)
{
	asm_map(&g->as, R1, map);
	gen_key_addr(g, k);
	asm_helper(&g->as, BPF_FUNC_map_lookup_elem);
}

void gen_key_find(struct gen *g, const struct keyed_use *k, uint32_t map)
{
	lookup(g, k, map);
	asm_ji(&g->as, BPF_JEQ, R0, 0, k->other);
}

void gen_key_get(struct gen *g, const struct keyed_use *k, uint32_t map)
{
	struct assembler *as = &g->as;
	uint32_t found = asm_label(as);

	if (g->unit->maps[map].type == BPF_MAP_TYPE_PERCPU_ARRAY) {
		gen_key_find(g, k, map);
		return;
	}
	lookup(g, k, map);
	asm_ji(as, BPF_JNE, R0, 0, found);
	asm_map(as, R1, map);
	gen_key_addr(g, k);
	asm_map_value(as, R3, EBPF_MAP_RODATA, g->priv->zeros_off);
	asm_imm(as, R4, BPF_NOEXIST);
	asm_helper(as, BPF_FUNC_map_update_elem);
	lookup(g, k, map);
	asm_ji(as, BPF_JNE, R0, 0, found);
	gen_drop(g, k->drop);
	asm_ja(as, k->other);
	asm_place(as, found);
}

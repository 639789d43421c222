/*
 * Keys: built on the stack when they are a few integers, else in the work area; looked up in the map of their size
 * class (ir/layout.h).
 */
#include "bpf/gen.h"

#include <errno.h>

int gen_other_numbers(struct gen *g)
{
	if (!g->env->pid_ns)
		return FRAME_TASK;
	gen_tp_task_at(g, FRAME_THREAD);
	return FRAME_THREAD;
}

/* R0 = the thread, by its numbers in the machine's own pid namespace, which each thread has */
static void thread(struct gen *g)
{
	if (gen_tp_other_task(g))
		asm_ld(&g->as, BPF_DW, R0, R10, gen_other_numbers(g));
	else
		asm_helper(&g->as, BPF_FUNC_get_current_pid_tgid);
}

void gen_thread_key(struct gen *g)
{
	thread(g);
	asm_st(&g->as, BPF_DW, R10, FRAME_THREAD, R0);
}

/* Not in clauses with loops: gen_flow.c. */
static bool on_stack(const struct gen *g, const struct keyed_use *k)
{
	return !(g->plan->needs & NEED_LOOPS) && !k->keyed->strs && k->keyed->sizes[0] <= FRAME_KEY_SIZE;
}

static void store(struct gen *g, const struct keyed_use *k, uint32_t off, int reg)
{
	if (on_stack(g, k))
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

/* The strings, packed after the integers.  The rest of the smallest class is zeroed first, so that a key of that
 * class is complete then.  FRAME_POS: the key's bytes. */
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
		gen_str_to(g, k->keys[x], (struct dest){ g->priv->work_off, true });
		asm_ld(as, BPF_DW, R1, R10, FRAME_POS);
		asm_alu(as, BPF_ADD, R1, R0);
		asm_st(as, BPF_DW, R10, FRAME_POS, R1);
	}
}

enum { STORE_ZEROS_MAX = 256 };

/* The key has R1 bytes, more than class @cls - 1 and at most class @cls: zero the rest of the class.  Bytes after
 * the class may be zeroed, too; the work area has room for that. */
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

	if (!on_stack(g, k) && g->priv->work_off + k->keyed->ints * 8 + IR_MAX_KEYS * 32 > INT16_MAX)
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
		asm_bind(as, larger);
	}
	asm_bind(as, done);
}

void gen_key_addr(struct gen *g, const struct keyed_use *k)
{
	if (on_stack(g, k)) {
		asm_mov(&g->as, R2, R10);
		asm_alui(&g->as, BPF_ADD, R2, FRAME_KEY);
	} else {
		gen_scratch(g, R2, g->priv->work_off);
	}
}

void gen_key_map(struct gen *g, const struct keyed_use *k, uint32_t map)
{
	const struct map_place *at = &g->priv->places[map];
	struct assembler *as = &g->as;

	if (!at->outer || g->env->user_space) {
		asm_map(as, R1, map);
		return;
	}
	asm_map(as, R1, at->outer);
	asm_map_value(as, R2, EBPF_MAP_RODATA, g->priv->index_off + 4 * at->index);
	asm_helper(as, BPF_FUNC_map_lookup_elem);
	asm_ji(as, BPF_JEQ, R0, 0, k->other);
	asm_mov(as, R1, R0);
}

static void lookup(struct gen *g, const struct keyed_use *k, uint32_t map)
{
	gen_key_map(g, k, map);
	gen_key_addr(g, k);
	asm_helper(&g->as, BPF_FUNC_map_lookup_elem);
}

void gen_key_find(struct gen *g, const struct keyed_use *k, uint32_t map)
{
	lookup(g, k, map);
	asm_ji(&g->as, BPF_JEQ, R0, 0, k->other);
}

/*
 * @reg = the address of word @word of ordered map @m in EBPF_MAP_ORDER: 0 the number of elements, 1 that of the newest.
 */
static void gen_order(struct gen *g, int reg, const struct ir_map *m, int word)
{
	asm_map_value(&g->as, reg, EBPF_MAP_ORDER, 16 * m->id + 8 * (uint32_t)word);
}

/* Add @n to the number of elements. Uses R1 and R2. */
static void count_elements(struct gen *g, const struct ir_map *m, int n)
{
	gen_order(g, R1, m, 0);
	asm_imm(&g->as, R2, n);
	asm_atomic(&g->as, BPF_ADD, BPF_DW, R1, 0, R2);
}

/* Remove the oldest element: the first walk finds it in all maps of the array, the second removes it. */
static void evict(struct gen *g, const struct keyed_use *k)
{
	struct assembler *as = &g->as;
	enum rt_fn walks[2] = { RT_OLDEST, RT_EVICT };

	asm_imm(as, R1, -1);
	asm_st(as, BPF_DW, R10, FRAME_WALK, R1);	/* the number of the oldest */
	asm_sti(as, BPF_DW, R10, FRAME_WALK + 8, 0);	/* how many were removed */
	for (int w = 0; w < 2; w++) {
		for (unsigned int cls = 0; cls < k->keyed->n; cls++)
			gen_walk(g, k->keyed->first + cls, walks[w], FRAME_WALK);
	}
	asm_ld(as, BPF_DW, R2, R10, FRAME_WALK + 8);
	gen_order(g, R1, k->map, 0);
	asm_neg(as, R2);
	asm_atomic(as, BPF_ADD, BPF_DW, R1, 0, R2);
}

/*
 * R0 = the element of an ordered map, created if there was none.  A program counts an element before it creates it, so
 * there are never more than allowed; iterations see it when it has its number, which it gets afterwards.
 */
static void make_ordered(struct gen *g, const struct keyed_use *k, uint32_t map)
{
	const struct ir_map *m = k->map;
	struct assembler *as = &g->as;
	uint32_t found = asm_label(as), full = asm_label(as), made = asm_label(as), room = asm_label(as);

	lookup(g, k, map);
	asm_ji(as, BPF_JNE, R0, 0, found);
	gen_order(g, R1, m, 0);
	asm_imm(as, R2, 1);
	asm_atomic(as, BPF_ADD | BPF_FETCH, BPF_DW, R1, 0, R2);
	asm_ji(as, BPF_JLT, R2, (int32_t)m->max_entries, room);
	if (m->wraps) {
		/* Two programs that evict at the same time may choose the same element; the next makes up for it. */
		asm_st(as, BPF_DW, R10, FRAME_TMP, R2);
		evict(g, k);
		asm_ld(as, BPF_DW, R2, R10, FRAME_TMP);
		asm_ji(as, BPF_JLE, R2, (int32_t)m->max_entries, room);
		evict(g, k);
		asm_ja(as, room);
	} else {
		count_elements(g, m, -1);
	}
	asm_bind(as, full);
	asm_imm(as, R1, m->max_entries);
	asm_st(as, BPF_DW, R10, FRAME_TMP, R1);
	asm_ja(as, gen_fault(g, ABI_FAULT_OVERFLOW, FRAME_TMP));

	asm_bind(as, room);
	asm_map(as, R1, map);
	gen_key_addr(g, k);
	asm_map_value(as, R3, EBPF_MAP_RODATA, g->priv->zeros_off);
	asm_imm(as, R4, BPF_NOEXIST);
	asm_helper(as, BPF_FUNC_map_update_elem);
	asm_ji(as, BPF_JEQ, R0, 0, made);
	/* Another program was faster, or the kernel is out of memory. */
	asm_st(as, BPF_DW, R10, FRAME_TMP, R0);
	count_elements(g, m, -1);
	asm_ld(as, BPF_DW, R1, R10, FRAME_TMP);
	asm_ji(as, BPF_JNE, R1, -EEXIST, full);
	lookup(g, k, map);
	asm_ji(as, BPF_JEQ, R0, 0, k->other);
	asm_ja(as, found);
	asm_bind(as, made);
	lookup(g, k, map);
	asm_ji(as, BPF_JEQ, R0, 0, k->other);	/* already removed again */
	gen_order(g, R1, m, 1);
	asm_imm(as, R2, 1);
	asm_atomic(as, BPF_ADD | BPF_FETCH, BPF_DW, R1, 0, R2);
	asm_alui(as, BPF_ADD, R2, 1);
	asm_st(as, BPF_DW, R0, 0, R2);
	asm_bind(as, found);
}

void gen_key_get(struct gen *g, const struct keyed_use *k, uint32_t map)
{
	struct assembler *as = &g->as;
	uint32_t found = asm_label(as);

	if (k->map) {
		make_ordered(g, k, map);
		return;
	}
	if (g->unit->maps[map].type == BPF_MAP_TYPE_PERCPU_ARRAY) {
		gen_key_find(g, k, map);
		return;
	}
	lookup(g, k, map);
	asm_ji(as, BPF_JNE, R0, 0, found);
	gen_key_map(g, k, map);
	gen_key_addr(g, k);
	asm_map_value(as, R3, EBPF_MAP_RODATA, g->priv->zeros_off);
	asm_imm(as, R4, BPF_NOEXIST);
	asm_helper(as, BPF_FUNC_map_update_elem);
	lookup(g, k, map);
	asm_ji(as, BPF_JNE, R0, 0, found);
	gen_drop(g, k->drop);
	asm_ja(as, k->other);
	asm_bind(as, found);
}

void gen_key_delete(struct gen *g, const struct keyed_use *k, uint32_t map)
{
	struct assembler *as = &g->as;

	gen_key_map(g, k, map);
	gen_key_addr(g, k);
	asm_helper(as, BPF_FUNC_map_delete_elem);
	if (k->map) {
		asm_ji(as, BPF_JNE, R0, 0, k->other);
		count_elements(g, k->map, -1);
	}
}

void gen_walk(struct gen *g, uint32_t map, enum rt_fn fn, int ctx)
{
	struct assembler *as = &g->as;

	asm_map(as, R1, map);
	asm_rt_addr(as, R2, fn);
	asm_mov(as, R3, R10);
	asm_alui(as, BPF_ADD, R3, ctx);
	asm_imm(as, R4, 0);
	asm_helper(as, BPF_FUNC_for_each_map_elem);
}

/* Elements that are added meanwhile may stay. */
void gen_mclear(struct gen *g, const struct ir_insn *i)
{
	const struct keyed *k = &g->priv->maps[i->map->id];
	struct assembler *as = &g->as;

	asm_sti(as, BPF_DW, R10, FRAME_WALK + 8, 0);
	for (unsigned int cls = 0; cls < k->n; cls++)
		gen_walk(g, k->first + cls, RT_CLEAR, FRAME_WALK);
	asm_ld(as, BPF_DW, R2, R10, FRAME_WALK + 8);
	gen_order(g, R1, i->map, 0);
	asm_neg(as, R2);
	asm_atomic(as, BPF_ADD, BPF_DW, R1, 0, R2);
}

/*
 * Iterations: a buffer is taken, filled with the map's elements, sorted, and read element by element.
 *
 * Other programs may change the map meanwhile, and the kernel reuses a removed element's memory at once.  So the key is
 * looked up when key and value have been copied: they are valid if the element found has the number in the buffer's
 * entry.
 *
 * State, at unit.h's iters[].off: the words below, the given key parts, the key and the value.
 */
#include "bpf/gen.h"

#include "abi/stat.h"
#include "bpf/rt/iter.h"
#include "ir/facts.h"

static const struct iter_layout *layout_of(const struct gen *g, const struct ir_iter *it)
{
	return &g->priv->iters[it->id];
}

/* Load or store a word of the state, which may lie far from R9. Uses R5. */
static void ld(struct gen *g, int reg, const struct ir_iter *it, int word)
{
	gen_scratch(g, R5, layout_of(g, it)->off);
	asm_ld(&g->as, BPF_DW, reg, R5, 8 * word);
}

static void st(struct gen *g, const struct ir_iter *it, int word, int reg)
{
	gen_scratch(g, R5, layout_of(g, it)->off);
	asm_st(&g->as, BPF_DW, R5, 8 * word, reg);
}

static void sti(struct gen *g, const struct ir_iter *it, int word, int32_t v)
{
	gen_scratch(g, R5, layout_of(g, it)->off);
	asm_sti(&g->as, BPF_DW, R5, 8 * word, v);
}

/* R0 = buffer number FRAME_TMP; jump to @none if it does not exist. */
static void find_buffer(struct gen *g, uint32_t none)
{
	struct assembler *as = &g->as;

	asm_lookup(as, EBPF_MAP_ITERS, FRAME_TMP);
	asm_ji(as, BPF_JEQ, R0, 0, none);
}

/* R0 = the buffer of @it; jump to @none if it has none. */
static void own_buffer(struct gen *g, const struct ir_iter *it, uint32_t none)
{
	struct assembler *as = &g->as;

	ld(g, R1, it, ITER_BUF);
	asm_ji(as, BPF_JEQ, R1, 0, none);
	asm_alui(as, BPF_SUB, R1, 1);
	asm_st(as, BPF_DW, R10, FRAME_TMP, R1);
	find_buffer(g, none);
}

static void release(struct gen *g, const struct ir_iter *it)
{
	uint32_t none = asm_label(&g->as);

	own_buffer(g, it, none);
	asm_sti(&g->as, BPF_W, R0, 0, 0);
	sti(g, it, ITER_BUF, 0);
	asm_bind(&g->as, none);
}

void gen_idone(struct gen *g, const struct ir_insn *i)
{
	release(g, i->iter);
}

/* --- around a clause ----------------------------------------------------------------------------------- */

static void each(struct gen *g, const struct plan *plan, void (*fn)(struct gen *g, const struct ir_iter *it))
{
	struct ir_walk w = ir_walk_blocks(plan->blocks, plan->nblocks);

	if (!(plan->needs & NEED_ITERS))
		return;
	for (const struct ir_insn *i; (i = ir_next(&w));) {
		if (i->op == IR_ITER)
			fn(g, i->iter);
	}
}

static void reset(struct gen *g, const struct ir_iter *it)
{
	sti(g, it, ITER_BUF, 0);
}

void gen_iters_begin(struct gen *g, const struct plan *plan)
{
	each(g, plan, reset);
}

void gen_iters_end(struct gen *g, const struct plan *plan)
{
	each(g, plan, release);
}

/* --- parts of keys ------------------------------------------------------------------------------------- */

/* How many parts of the same type come before part @part of the key. */
static uint32_t parts_before(const struct ir_map *m, uint32_t part)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < part; k++)
		n += m->keys[k].type == m->keys[part].type;
	return n;
}

/* Copy part @part of the element's key, a string, to @to. */
static void key_string(struct gen *g, const struct ir_iter *it, uint32_t part, struct dest to)
{
	struct assembler *as = &g->as;
	uint32_t before = parts_before(it->map, part);

	asm_imm(as, R1, g->priv->maps[it->map->id].ints * 8);
	asm_st(as, BPF_DW, R10, FRAME_POS, R1);
	for (uint32_t k = 0; k <= before; k++) {
		gen_scratch(g, R3, layout_of(g, it)->key);
		asm_ld(as, BPF_DW, R1, R10, FRAME_POS);
		asm_alu(as, BPF_ADD, R3, R1);
		gen_dest(g, R1, to);
		gen_copy_str(g, false);
		asm_ld(as, BPF_DW, R1, R10, FRAME_POS);
		asm_alu(as, BPF_ADD, R1, R0);
		asm_st(as, BPF_DW, R10, FRAME_POS, R1);
	}
}

/* R1 = part @part of the element's key, an integer. */
static void key_integer(struct gen *g, const struct ir_iter *it, uint32_t part)
{
	const struct ir_slot *s = &it->map->keys[part];

	gen_scratch(g, R1, layout_of(g, it)->key + 8 * parts_before(it->map, part));
	asm_ld(&g->as, BPF_DW, R1, R1, 0);
	gen_extend(g, R1, s->width, s->sign);
}

void gen_ikey(struct gen *g, const struct ir_insn *i)
{
	if (i->iter->map->keys[i->part].type == IR_STR) {
		key_string(g, i->iter, i->part, gen_str_dst(g, i));
	} else {
		key_integer(g, i->iter, i->part);
		gen_put(g, i, R1);
	}
}

void gen_ivalue(struct gen *g, const struct ir_insn *i)
{
	const struct ir_slot *s = &i->iter->map->value;
	uint32_t off = layout_of(g, i->iter)->value;

	if (s->type == IR_STR) {
		gen_scratch(g, R3, off);
		gen_dest(g, R1, gen_str_dst(g, i));
		gen_copy_str(g, false);
	} else {
		gen_scratch(g, R1, off);
		asm_ld(&g->as, BPF_DW, R1, R1, 0);
		gen_extend(g, R1, s->width, s->sign);
		gen_put(g, i, R1);
	}
}

/* --- beginning ----------------------------------------------------------------------------------------- */

/* Call @fn for each given part, with its operand's number and the place where it is kept. */
static void each_given(struct gen *g, const struct ir_insn *insn, const struct ir_iter *it,
		       void (*fn)(struct gen *g, const struct ir_insn *insn, const struct ir_iter *it, uint32_t part,
				  uint32_t operand, uint32_t off))
{
	uint32_t off = layout_of(g, it)->off + 8 * ITER_WORDS, operand = 1;

	for (uint32_t k = 0; k < it->map->nkeys; k++) {
		if (!(it->given >> k & 1))
			continue;
		fn(g, insn, it, k, operand++, off);
		off += it->map->keys[k].type == IR_STR ? g->priv->str_buf : 8;
	}
}

static void keep_given(struct gen *g, const struct ir_insn *insn, const struct ir_iter *it, uint32_t part,
		       uint32_t operand, uint32_t off)
{
	if (it->map->keys[part].type == IR_STR) {
		gen_str_to(g, insn->args[operand], (struct dest){ off, false });
	} else {
		gen_scratch(g, R5, off);
		asm_st(&g->as, BPF_DW, R5, 0, gen_use(g, insn->args[operand], R1));
	}
}

/* The callback that collects the elements, *@off and *@nth for its context, *@how for rt_sort. */
static enum rt_fn collector(const struct gen *g, const struct ir_iter *it, int32_t *off, int32_t *nth, int32_t *how)
{
	static const int stat_words[IR_SORT_NR] = {
		[IR_SORT_COUNT] = ABI_STAT_COUNT, [IR_SORT_SUM] = ABI_STAT_SUM, [IR_SORT_MIN] = ABI_STAT_MIN,
		[IR_SORT_MAX] = ABI_STAT_MAX,
	};
	const struct ir_map *m = it->map;

	*off = *nth = 0;
	*how = it->down && it->sort != IR_SORT_NONE ? SORT_DOWN : 0;
	switch (it->sort) {
	case IR_SORT_NONE:
		return RT_COLLECT;
	case IR_SORT_KEY:
		*nth = (int32_t)parts_before(m, it->column);
		*off = 8 * *nth;
		if (m->keys[it->column].type != IR_STR)
			return RT_COLLECT_KEY;
		*off = (int32_t)(8 * g->priv->maps[m->id].ints);
		*how |= SORT_STRINGS;
		return RT_COLLECT_KEYSTR;
	case IR_SORT_VALUE:
		*off = ABI_ELEMENT_VALUE;
		if (m->value.type != IR_STR)
			return RT_COLLECT_WORD;
		*how |= SORT_STRINGS;
		return RT_COLLECT_STR;
	case IR_SORT_AVG:
		return RT_COLLECT_AVG;
	case IR_SORT_VARIANCE:
		return RT_COLLECT_VAR;
	default:
		*off = ABI_ELEMENT_VALUE + 8 * stat_words[it->sort];
		return RT_COLLECT_WORD;
	}
}

/* Fill the buffer at R0, and sort it. */
static void fill(struct gen *g, const struct ir_iter *it)
{
	const struct keyed *k = &g->priv->maps[it->map->id];
	struct assembler *as = &g->as;
	int32_t off, nth, how;
	enum rt_fn fn = collector(g, it, &off, &nth, &how);

	_Static_assert(8 * COLLECT_WORDS <= FRAME_KEY_SIZE, "room for what a walk carries");
	asm_st(as, BPF_DW, R10, FRAME_KEY + 8 * COLLECT_BUF, R0);
	asm_sti(as, BPF_DW, R0, ITER_COUNT, 0);
	asm_imm(as, R1, g->priv->iter_max);
	asm_st(as, BPF_DW, R10, FRAME_KEY + 8 * COLLECT_MAX, R1);
	asm_imm(as, R1, off);
	asm_st(as, BPF_DW, R10, FRAME_KEY + 8 * COLLECT_OFF, R1);
	asm_imm(as, R1, nth);
	asm_st(as, BPF_DW, R10, FRAME_KEY + 8 * COLLECT_NTH, R1);
	asm_imm(as, R1, g->prog->strsize);
	asm_st(as, BPF_DW, R10, FRAME_KEY + 8 * COLLECT_STRSIZE, R1);
	gen_scratch(g, R1, g->priv->work_off);
	asm_st(as, BPF_DW, R10, FRAME_KEY + 8 * COLLECT_WORK, R1);
	for (unsigned int cls = 0; cls < k->n; cls++) {
		asm_imm(as, R1, cls);
		asm_st(as, BPF_DW, R10, FRAME_KEY + 8 * COLLECT_CLASS, R1);
		gen_walk(g, k->first + cls, fn, FRAME_KEY);
	}
	asm_ld(as, BPF_DW, R1, R10, FRAME_KEY + 8 * COLLECT_BUF);
	asm_ld(as, BPF_DW, R2, R1, ITER_COUNT);
	st(g, it, ITER_N, R2);
	asm_imm(as, R2, g->priv->iter_max);
	asm_imm(as, R3, how);
	gen_scratch(g, R4, g->priv->work_off);
	asm_imm(as, R5, g->prog->strsize);
	asm_rt(as, RT_SORT);
}

void gen_iter(struct gen *g, const struct ir_insn *i)
{
	const struct ir_iter *it = i->iter;
	struct assembler *as = &g->as;
	uint32_t none = asm_label(as), got = asm_label(as), done = asm_label(as);

	release(g, it);
	st(g, it, ITER_LEFT, gen_use(g, i->args[0], R1));
	each_given(g, i, it, keep_given);
	sti(g, it, ITER_POS, 0);
	for (uint32_t k = 0; k < g->priv->iter_buffers; k++) {
		asm_sti(as, BPF_DW, R10, FRAME_TMP, (int32_t)k);
		find_buffer(g, none);
		sti(g, it, ITER_BUF, (int32_t)k + 1);
		asm_imm(as, R1, 1);
		asm_atomic(as, BPF_XCHG, BPF_W, R0, 0, R1);
		asm_ji(as, BPF_JEQ, R1, 0, got);
	}
	asm_bind(as, none);
	sti(g, it, ITER_BUF, 0);
	gen_drop(g, ABI_DROP_ITER);
	asm_imm(as, R1, 0);
	asm_ja(as, done);
	asm_bind(as, got);
	fill(g, it);
	asm_imm(as, R1, 1);
	asm_bind(as, done);
	gen_put(g, i, R1);
}

/* --- the next element ---------------------------------------------------------------------------------- */

/* Copy @bytes of kernel memory at R3 to @off of the scratch slot; jump to @gone if they cannot be read. */
static void copy(struct gen *g, uint32_t off, uint32_t bytes, uint32_t gone)
{
	gen_scratch(g, R1, off);
	asm_imm(&g->as, R2, bytes);
	asm_helper(&g->as, BPF_FUNC_probe_read_kernel);
	asm_ji(&g->as, BPF_JNE, R0, 0, gone);
}

/* Copy key and value; jump to @gone if the element was removed meanwhile. */
static void copy_element(struct gen *g, const struct ir_iter *it, uint32_t gone)
{
	const struct keyed *k = &g->priv->maps[it->map->id];
	struct assembler *as = &g->as;
	uint32_t done = asm_label(as);

	if (!it->map->stat) {
		ld(g, R3, it, ITER_VALUE);
		asm_alui(as, BPF_ADD, R3, ABI_ELEMENT_VALUE);
		copy(g, layout_of(g, it)->value, it->map->value.type == IR_STR ? ir_str_room(g->prog) : 8, gone);
	}

	for (unsigned int cls = 0; cls < k->n; cls++) {
		uint32_t other = asm_label(as);

		if (cls + 1 < k->n) {
			ld(g, R1, it, ITER_NUMBER);
			asm_alui(as, BPF_AND, R1, 3);
			asm_ji(as, BPF_JNE, R1, (int32_t)cls, other);
		}
		ld(g, R3, it, ITER_KEY);
		copy(g, layout_of(g, it)->key, k->sizes[cls], gone);
		asm_map(as, R1, k->first + cls);
		gen_scratch(g, R2, layout_of(g, it)->key);
		asm_helper(as, BPF_FUNC_map_lookup_elem);
		asm_ji(as, BPF_JEQ, R0, 0, gone);
		asm_ld(as, BPF_DW, R1, R0, 0);
		ld(g, R2, it, ITER_NUMBER);
		asm_alui(as, BPF_RSH, R2, 2);
		asm_j(as, BPF_JNE, R1, R2, gone);
		if (cls + 1 < k->n)
			asm_ja(as, done);
		asm_bind(as, other);
	}
	asm_bind(as, done);
}

/* Jump to the next element if the part is not the given one. */
static void check_given(struct gen *g, const struct ir_insn *insn, const struct ir_iter *it, uint32_t part,
			uint32_t operand, uint32_t off)
{
	struct assembler *as = &g->as;

	(void)insn;
	(void)operand;
	if (it->map->keys[part].type == IR_STR) {
		key_string(g, it, part, (struct dest){ g->priv->work_off, false });
		gen_scratch(g, R1, g->priv->work_off);
		gen_scratch(g, R2, off);
		asm_imm(as, R3, g->prog->strsize);
		asm_rt(as, RT_STRCMP);
		asm_ji(as, BPF_JNE, R0, 0, g->iter_next);
	} else {
		key_integer(g, it, part);
		gen_scratch(g, R2, off);
		asm_ld(as, BPF_DW, R2, R2, 0);
		asm_j(as, BPF_JNE, R1, R2, g->iter_next);
	}
}

void gen_inext(struct gen *g, const struct ir_insn *i)
{
	const struct ir_iter *it = i->iter;
	struct assembler *as = &g->as;
	uint32_t over = asm_label(as), done = asm_label(as), next = asm_label(as);

	g->iter_next = next;
	asm_bind(as, next);
	/* As gen_tidy leaves the frame: elements that do not match jump here. */
	asm_sti(as, BPF_DW, R10, FRAME_POS, 0);
	asm_sti(as, BPF_DW, R10, FRAME_TMP, 0);
	gen_turn_point(g, over);
	own_buffer(g, it, over);
	ld(g, R1, it, ITER_POS);
	ld(g, R2, it, ITER_N);
	asm_j(as, BPF_JGE, R1, R2, over);
	asm_ji(as, BPF_JGE, R1, (int32_t)g->priv->iter_max, over);
	ld(g, R3, it, ITER_LEFT);
	asm_ji(as, BPF_JSLE, R3, 0, over);
	asm_mov(as, R2, R1);
	asm_alui(as, BPF_ADD, R2, 1);
	st(g, it, ITER_POS, R2);
	asm_alui(as, BPF_LSH, R1, ITER_ENTRY_SHIFT);
	asm_alu(as, BPF_ADD, R0, R1);
	asm_ld(as, BPF_DW, R1, R0, ITER_HEADER + 8 * ENTRY_NUMBER);
	st(g, it, ITER_NUMBER, R1);
	asm_ld(as, BPF_DW, R1, R0, ITER_HEADER + 8 * ENTRY_KEY);
	st(g, it, ITER_KEY, R1);
	asm_ld(as, BPF_DW, R1, R0, ITER_HEADER + 8 * ENTRY_VALUE);
	st(g, it, ITER_VALUE, R1);
	copy_element(g, it, next);
	each_given(g, i, it, check_given);
	ld(g, R1, it, ITER_LEFT);
	asm_alui(as, BPF_SUB, R1, 1);
	st(g, it, ITER_LEFT, R1);
	asm_imm(as, R1, 1);
	asm_ja(as, done);
	asm_bind(as, over);
	release(g, it);
	asm_imm(as, R1, 0);
	asm_bind(as, done);
	gen_put(g, i, R1);
}

/*
 * Variables and associative arrays.
 *
 * An integer takes 8 bytes in memory, whatever its width: its low bytes count, and reading extends them.  So all
 * integers can be added to atomically.
 */
#include "bpf/gen.h"

#include "abi/segment.h"
#include "abi/stat.h"

/*
 * Are variables whose values are all zero kept until there is no room (ABI_UPDATE_ZERO_IS_NONE), so that setting and resetting
 * them at each event costs little?  Bytes after the end of a string would not be zero.
 */
static bool keeps_zeros(const struct gen *g)
{
	for (uint32_t k = 0; k < g->prog->nvars; k++)
		if (g->prog->vars[k]->cls == IR_THREAD && g->prog->vars[k]->slot.type == IR_STR)
			return false;
	return g->env->user_space;
}

/* R0 = this thread's variables; jump to @none if it has none. */
static void find_thread(struct gen *g, uint32_t none)
{
	struct assembler *as = &g->as;

	gen_thread_key(g);
	asm_lookup(as, EBPF_MAP_THREADS, FRAME_THREAD);
	asm_ji(as, BPF_JEQ, R0, 0, none);
}

/* The same, created with zeros if there was none; jump to @lost if there is no room. */
static void get_thread(struct gen *g, uint32_t lost)
{
	struct assembler *as = &g->as;
	uint32_t none = asm_label(as), full = asm_label(as), found = asm_label(as);

	find_thread(g, none);
	asm_ja(as, found);
	asm_bind(as, none);
	asm_map(as, R1, EBPF_MAP_THREADS);
	asm_mov(as, R2, R10);
	asm_alui(as, BPF_ADD, R2, FRAME_THREAD);
	asm_map_value(as, R3, EBPF_MAP_RODATA, g->priv->zeros_off);
	asm_imm(as, R4, BPF_NOEXIST | (keeps_zeros(g) ? ABI_UPDATE_ZERO_IS_NONE : 0));
	asm_helper(as, BPF_FUNC_map_update_elem);
	find_thread(g, full);
	asm_ja(as, found);
	asm_bind(as, full);
	gen_drop(g, ABI_DROP_DYNVAR);
	asm_ja(as, lost);
	asm_bind(as, found);
}

/* R0 = the address of @v, which is not thread-local. */
static void var_addr(struct gen *g, const struct ir_var *v)
{
	if (v->cls == IR_GLOBAL)
		asm_map_value(&g->as, R0, EBPF_MAP_GLOBALS, g->priv->var_off[v->id]);
	else if (v->cls == IR_FRAME)
		gen_frame_var(g, R0, v, false);
	else
		gen_scratch(g, R0, g->priv->var_off[v->id]);
}

/* R0 = the address of @v for reading; jump to @none if the thread has no variables. */
static void find_var(struct gen *g, const struct ir_var *v, uint32_t none)
{
	if (v->cls != IR_THREAD) {
		var_addr(g, v);
		return;
	}
	find_thread(g, none);
	if (g->priv->var_off[v->id])
		asm_alui(&g->as, BPF_ADD, R0, (int32_t)g->priv->var_off[v->id]);
}

/* --- reading ----------------------------------------------------------------------------------------- */

void gen_make_var_str(struct gen *g, const struct ir_insn *i, struct dest to)
{
	struct assembler *as = &g->as;
	uint32_t none = asm_label(as), found = asm_label(as);

	find_var(g, i->var, none);
	asm_mov(as, R3, R0);
	if (i->var->cls == IR_THREAD) {
		asm_ja(as, found);
		asm_bind(as, none);
		asm_map_value(as, R3, EBPF_MAP_RODATA, g->priv->zeros_off);
		asm_bind(as, found);
	}
	gen_dest(g, R1, to);
	gen_copy_str(g, false);
}

void gen_vld(struct gen *g, const struct ir_insn *i)
{
	const struct ir_slot *s = &i->var->slot;
	struct assembler *as = &g->as;
	uint32_t none;

	if (s->type == IR_STR) {
		gen_make_var_str(g, i, gen_str_dst(g, i));
		return;
	}
	none = asm_label(as);
	asm_imm(as, R1, 0);
	if (i->var->cls == IR_THREAD) {
		uint32_t done = asm_label(as);

		find_var(g, i->var, none);
		asm_ld(as, BPF_DW, R1, R0, 0);
		asm_ja(as, done);
		asm_bind(as, none);
		asm_imm(as, R1, 0);
		asm_bind(as, done);
	} else {
		find_var(g, i->var, none);
		asm_ld(as, BPF_DW, R1, R0, 0);
	}
	gen_extend(g, R1, s->width, s->sign);
	gen_put(g, i, R1);
}

/* --- writing ----------------------------------------------------------------------------------------- */

/* Copy the string @r to R0. */
static void store_string(struct gen *g, ir_reg r)
{
	asm_mov(&g->as, R1, R0);
	gen_str(g, R3, r);
	gen_copy_str(g, false);
}

/* Remove the thread's variables, which are at R0, when all of them are zero. */
static void free_thread(struct gen *g, uint32_t done)
{
	struct assembler *as = &g->as;

	for (uint32_t k = 0; k < g->prog->nvars; k++) {
		const struct ir_var *v = g->prog->vars[k];

		if (v->cls != IR_THREAD)
			continue;
		asm_mov(as, R2, R0);
		asm_alui(as, BPF_ADD, R2, (int32_t)g->priv->var_off[k]);
		asm_ld(as, v->slot.type == IR_STR ? BPF_B : BPF_DW, R1, R2, 0);
		asm_ji(as, BPF_JNE, R1, 0, done);
	}
	asm_map(as, R1, EBPF_MAP_THREADS);
	asm_mov(as, R2, R10);
	asm_alui(as, BPF_ADD, R2, FRAME_THREAD);
	asm_helper(as, BPF_FUNC_map_delete_elem);
}

/* Jump to @zero if the value @r is 0 or "". */
static void jump_if_zero(struct gen *g, ir_reg r, uint32_t zero)
{
	struct assembler *as = &g->as;

	if (g->clause->regs[r] == IR_STR) {
		gen_str(g, R1, r);
		asm_ld(as, BPF_B, R1, R1, 0);
		asm_ji(as, BPF_JEQ, R1, 0, zero);
	} else {
		asm_ji(as, BPF_JEQ, gen_use(g, r, R1), 0, zero);
	}
}

/* The value to store: extended, so that all 8 bytes of a 0 are zero. */
static int narrowed(struct gen *g, ir_reg r, const struct ir_slot *s)
{
	if (s->width >= 8 || s->width == 0)
		return gen_use(g, r, R1);
	gen_load(g, R1, r);
	gen_extend(g, R1, s->width, s->sign);
	return R1;
}

static void store_thread(struct gen *g, const struct ir_insn *i)
{
	const struct ir_var *v = i->var;
	struct assembler *as = &g->as;
	uint32_t zero = asm_label(as), done = asm_label(as);

	jump_if_zero(g, i->args[0], zero);
	get_thread(g, done);
	asm_alui(as, BPF_ADD, R0, (int32_t)g->priv->var_off[v->id]);
	if (v->slot.type == IR_STR)
		store_string(g, i->args[0]);
	else
		asm_st(as, BPF_DW, R0, 0, narrowed(g, i->args[0], &v->slot));
	asm_ja(as, done);

	asm_bind(as, zero);
	find_thread(g, done);
	asm_mov(as, R2, R0);
	asm_alui(as, BPF_ADD, R2, (int32_t)g->priv->var_off[v->id]);
	asm_sti(as, v->slot.type == IR_STR ? BPF_B : BPF_DW, R2, 0, 0);
	if (!keeps_zeros(g))
		free_thread(g, done);
	asm_bind(as, done);
}

void gen_vst(struct gen *g, const struct ir_insn *i)
{
	if (i->var->cls == IR_THREAD) {
		store_thread(g, i);
		return;
	}
	var_addr(g, i->var);
	if (i->var->slot.type == IR_STR)
		store_string(g, i->args[0]);
	else
		asm_st(&g->as, BPF_DW, R0, 0, narrowed(g, i->args[0], &i->var->slot));
}

void gen_pass(struct gen *g, const struct ir_insn *i)
{
	gen_frame_var(g, R0, i->var, true);
	if (i->var->slot.type == IR_STR)
		store_string(g, i->args[0]);
	else
		asm_st(&g->as, BPF_DW, R0, 0, narrowed(g, i->args[0], &i->var->slot));
}

/* R1 = the integer at R0 before the integer @r is added to it. */
static void add(struct gen *g, ir_reg r, const struct ir_slot *s)
{
	gen_load(g, R1, r);
	asm_atomic(&g->as, BPF_ADD | BPF_FETCH, BPF_DW, R0, 0, R1);
	gen_extend(g, R1, s->width ? s->width : 8, s->sign);
}

void gen_vadd(struct gen *g, const struct ir_insn *i)
{
	struct assembler *as = &g->as;
	uint32_t lost = asm_label(as), done = asm_label(as);

	if (i->var->cls == IR_THREAD) {
		get_thread(g, lost);
		if (g->priv->var_off[i->var->id])
			asm_alui(as, BPF_ADD, R0, (int32_t)g->priv->var_off[i->var->id]);
	} else {
		var_addr(g, i->var);
	}
	add(g, i->args[0], &i->var->slot);
	if (i->var->cls == IR_THREAD) {
		asm_ja(as, done);
		asm_bind(as, lost);
		asm_imm(as, R1, 0);
		asm_bind(as, done);
	}
	gen_put(g, i, R1);
}

/* --- associative arrays ------------------------------------------------------------------------------ */

/* An operation on an array; its keys are the operands from @first on. */
static struct keyed_use keyed(struct gen *g, const struct ir_insn *i, uint32_t first,
			      void (*each)(struct gen *g, const struct keyed_use *k, uint32_t map))
{
	return (struct keyed_use){
		.keyed = &g->priv->maps[i->map->id],
		.parts = i->map->keys,
		.keys = i->args ? i->args + first : NULL,
		.n = i->map->nkeys,
		.thread = i->map->cls == IR_THREAD,
		.value = &i->map->value,
		.map = i->map->ordered ? i->map : NULL,
		.drop = ABI_DROP_DYNVAR,
		.other = asm_label(&g->as),
		.each = each,
	};
}

void gen_mld(struct gen *g, const struct ir_insn *i)
{
	struct keyed_use k = keyed(g, i, 0, gen_key_find);
	const struct ir_slot *s = &i->map->value;
	struct assembler *as = &g->as;
	uint32_t done = asm_label(as);

	gen_keyed(g, &k);
	if (s->type == IR_STR) {
		asm_mov(as, R3, R0);
		if (i->map->ordered)
			asm_alui(as, BPF_ADD, R3, ABI_ELEMENT_VALUE);
		asm_ja(as, done);
		asm_bind(as, k.other);
		asm_map_value(as, R3, EBPF_MAP_RODATA, g->priv->zeros_off);
		asm_bind(as, done);
		gen_dest(g, R1, gen_str_dst(g, i));
		gen_copy_str(g, false);
		return;
	}
	asm_ld(as, BPF_DW, R1, R0, i->map->ordered ? ABI_ELEMENT_VALUE : 0);
	gen_extend(g, R1, s->width ? s->width : 8, s->sign);
	asm_ja(as, done);
	asm_bind(as, k.other);
	asm_imm(as, R1, 0);
	asm_bind(as, done);
	gen_put(g, i, R1);
}

/* An existing element is written in place: updating would make the kernel allocate another. */
static void store_element(struct gen *g, const struct keyed_use *k, uint32_t map)
{
	struct assembler *as = &g->as;
	uint32_t none = asm_label(as), found = asm_label(as);
	ir_reg value = k->keys[-1];
	struct keyed_use here = *k;

	if (k->map) {
		gen_key_get(g, k, map);
		return;
	}
	here.other = none;
	gen_key_find(g, &here, map);
	asm_ja(as, found);
	asm_bind(as, none);
	if (g->clause->regs[value] != IR_STR)
		asm_st(as, BPF_DW, R10, FRAME_TMP, narrowed(g, value, k->value));
	gen_key_map(g, k, map);
	if (g->clause->regs[value] == IR_STR) {
		gen_str(g, R3, value);
	} else {
		asm_mov(as, R3, R10);
		asm_alui(as, BPF_ADD, R3, FRAME_TMP);
	}
	gen_key_addr(g, k);
	asm_imm(as, R4, BPF_ANY);
	asm_helper(as, BPF_FUNC_map_update_elem);
	asm_ji(as, BPF_JEQ, R0, 0, k->other);
	gen_drop(g, k->drop);
	asm_ja(as, k->other);
	asm_bind(as, found);
}

void gen_mst(struct gen *g, const struct ir_insn *i)
{
	struct keyed_use k = keyed(g, i, 1, store_element);
	struct assembler *as = &g->as;
	uint32_t zero = asm_label(as);

	if (i->map->zero_frees)
		jump_if_zero(g, i->args[0], zero);
	gen_keyed(g, &k);
	if (i->map->ordered)
		asm_alui(as, BPF_ADD, R0, ABI_ELEMENT_VALUE);
	if (i->map->value.type == IR_STR)
		store_string(g, i->args[0]);
	else
		asm_st(as, BPF_DW, R0, 0, narrowed(g, i->args[0], &i->map->value));
	asm_ja(as, k.other);
	if (i->map->zero_frees) {
		struct keyed_use del = keyed(g, i, 1, gen_key_delete);

		asm_bind(as, zero);
		gen_keyed(g, &del);
		asm_bind(as, del.other);
	}
	asm_bind(as, k.other);
}

void gen_madd(struct gen *g, const struct ir_insn *i)
{
	struct keyed_use k = keyed(g, i, 1, gen_key_get);
	struct assembler *as = &g->as;
	uint32_t done = asm_label(as);

	gen_keyed(g, &k);
	if (i->map->ordered)
		asm_alui(as, BPF_ADD, R0, ABI_ELEMENT_VALUE);
	add(g, i->args[0], &i->map->value);
	if (asm_wanted(as, k.other)) {
		asm_ja(as, done);
		asm_bind(as, k.other);
		asm_imm(as, R1, 0);
		asm_bind(as, done);
	}
	gen_put(g, i, R1);
}

void gen_mhas(struct gen *g, const struct ir_insn *i)
{
	struct keyed_use k = keyed(g, i, 0, gen_key_find);
	struct assembler *as = &g->as;
	uint32_t done = asm_label(as);

	gen_keyed(g, &k);
	asm_imm(as, R1, 1);
	asm_ja(as, done);
	asm_bind(as, k.other);
	asm_imm(as, R1, 0);
	asm_bind(as, done);
	gen_put(g, i, R1);
}

void gen_mdel(struct gen *g, const struct ir_insn *i)
{
	struct keyed_use k = keyed(g, i, 0, gen_key_delete);

	gen_keyed(g, &k);
	asm_bind(&g->as, k.other);
}

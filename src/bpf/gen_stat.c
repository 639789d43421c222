/*
 * Statistics: elements of ordered maps to which values are added, and the results read from them (abi/stat.h).
 *
 * Every word is changed atomically: one element serves all CPUs, so that a program can read it.
 */
#include "bpf/gen.h"

#include "abi/stat.h"

/* Byte offset of a word in the element. */
static int word(int n)
{
	return ABI_ELEMENT_VALUE + 8 * n;
}

static struct keyed_use use(struct gen *g, const struct ir_map *m, const ir_reg *keys,
			    void (*each)(struct gen *g, const struct keyed_use *k, uint32_t map))
{
	return (struct keyed_use){
		.keyed = &g->priv->maps[m->id],
		.parts = m->keys,
		.keys = keys,
		.n = m->nkeys,
		.map = m,
		.other = asm_label(&g->as),
		.each = each,
	};
}

/* @reg = the address of word @n of the element at FRAME_ELEM. */
static void element(struct gen *g, int reg, int n)
{
	asm_ld(&g->as, BPF_DW, reg, R10, FRAME_ELEM);
	asm_alui(&g->as, BPF_ADD, reg, word(n));
}

static void take_into(struct gen *g, const struct ir_insn *i, int n, enum rt_fn fn)
{
	element(g, R1, n);
	gen_load(g, R2, i->args[0]);
	asm_rt(&g->as, fn);
}

static void take_bucket(struct gen *g, const struct ir_insn *i)
{
	const struct ir_map *m = i->map;
	struct assembler *as = &g->as;
	uint32_t buckets = ir_stat_words(m) - ABI_STAT_BUCKETS, none = asm_label(as);

	gen_load(g, R1, i->args[0]);
	if (m->stat == IR_STAT_LOG) {
		asm_rt(as, RT_LOGBUCKET);
	} else {
		asm_imm(as, R2, m->linear[0]);
		asm_imm(as, R3, m->linear[2]);
		asm_imm(as, R4, buckets);
		asm_rt(as, RT_LINBUCKET);
	}
	asm_ji(as, BPF_JGE, R0, (int32_t)buckets, none);
	asm_alui(as, BPF_LSH, R0, 3);
	element(g, R1, ABI_STAT_BUCKETS);
	asm_alu(as, BPF_ADD, R1, R0);
	asm_imm(as, R2, 1);
	asm_atomic(as, BPF_ADD, BPF_DW, R1, 0, R2);
	asm_bind(as, none);
}

void gen_stat(struct gen *g, const struct ir_insn *i)
{
	struct keyed_use k = use(g, i->map, i->args + 1, gen_key_get);
	struct assembler *as = &g->as;

	gen_keyed(g, &k);
	asm_st(as, BPF_DW, R10, FRAME_ELEM, R0);
	asm_imm(as, R1, 1);
	asm_atomic(as, BPF_ADD, BPF_DW, R0, word(ABI_STAT_COUNT), R1);
	asm_atomic(as, BPF_ADD, BPF_DW, R0, word(ABI_STAT_SUM), gen_use(g, i->args[0], R1));
	if (i->map->extremes) {
		take_into(g, i, ABI_STAT_MIN, RT_MIN);
		take_into(g, i, ABI_STAT_MAX, RT_MAX);
	}
	if (i->map->squares) {
		element(g, R1, ABI_STAT_SHIFT);
		asm_imm(as, R2, i->map->shift);
		asm_st(as, BPF_DW, R1, 0, R2);
		element(g, R1, ABI_STAT_COUNT);
		asm_ld(as, BPF_DW, R3, R1, 0);
		asm_imm(as, R4, i->map->shift);
		take_into(g, i, ABI_STAT_SQUARES, RT_SQUARE);
	}
	if (i->map->stat != IR_STAT_PLAIN)
		take_bucket(g, i);
	asm_bind(as, k.other);
}

/* R0 = the result of @op for the element at R0; jump to @empty if it has no value. */
static void extract(struct gen *g, enum ir_op op, uint32_t empty)
{
	struct assembler *as = &g->as;
	int flag = op == IR_SMIN ? ABI_STAT_MIN + 1 : op == IR_SMAX ? ABI_STAT_MAX + 1 : ABI_STAT_COUNT;

	if (op != IR_SCOUNT && op != IR_SSUM) {
		asm_ld(as, BPF_DW, R1, R0, word(flag));
		asm_ji(as, BPF_JEQ, R1, 0, empty);
	}
	switch (op) {
	case IR_SAVG:
	case IR_SVARIANCE:
		asm_mov(as, R1, R0);
		asm_alui(as, BPF_ADD, R1, word(0));
		asm_rt(as, op == IR_SAVG ? RT_AVG : RT_VARIANCE);
		break;
	case IR_SCOUNT:
		asm_ld(as, BPF_DW, R0, R0, word(ABI_STAT_COUNT));
		break;
	case IR_SSUM:
		asm_ld(as, BPF_DW, R0, R0, word(ABI_STAT_SUM));
		break;
	default:
		asm_ld(as, BPF_DW, R0, R0, word(flag - 1));
		break;
	}
}

void gen_extract(struct gen *g, const struct ir_insn *i)
{
	struct keyed_use k = use(g, i->map, i->args, gen_key_find);
	struct assembler *as = &g->as;
	uint32_t done = asm_label(as);

	gen_keyed(g, &k);
	extract(g, i->op, k.other);
	asm_ja(as, done);
	asm_bind(as, k.other);
	if (i->op == IR_SCOUNT || i->op == IR_SSUM)
		asm_imm(as, R0, 0);
	else
		asm_ja(as, gen_fault(g, ABI_FAULT_EMPTY, NO_VALUE));
	asm_bind(as, done);
	gen_put(g, i, R0);
}

void gen_sbucket(struct gen *g, const struct ir_insn *i)
{
	struct keyed_use k = use(g, i->map, i->args + 1, gen_key_find);
	struct assembler *as = &g->as;
	uint32_t none = asm_label(as), done = asm_label(as);

	gen_keyed(g, &k);
	gen_load(g, R1, i->args[0]);
	asm_ji(as, BPF_JGE, R1, (int32_t)(ir_stat_words(i->map) - ABI_STAT_BUCKETS), none);
	asm_alui(as, BPF_LSH, R1, 3);
	asm_alu(as, BPF_ADD, R0, R1);
	asm_ld(as, BPF_DW, R0, R0, word(ABI_STAT_BUCKETS));
	asm_ja(as, done);
	asm_bind(as, k.other);
	asm_ja(as, gen_fault(g, ABI_FAULT_EMPTY, NO_VALUE));
	asm_bind(as, none);
	asm_imm(as, R0, 0);
	asm_bind(as, done);
	gen_put(g, i, R0);
}

void gen_find_stat(struct gen *g, const struct ir_map *m, const ir_reg *keys)
{
	struct keyed_use k = use(g, m, keys, gen_key_find);
	struct assembler *as = &g->as;
	uint32_t found = asm_label(as);

	gen_keyed(g, &k);
	asm_ld(as, BPF_DW, R1, R0, word(ABI_STAT_COUNT));
	asm_ji(as, BPF_JNE, R1, 0, found);
	asm_bind(as, k.other);
	asm_ja(as, gen_fault(g, ABI_FAULT_EMPTY, NO_VALUE));
	asm_bind(as, found);
	asm_st(as, BPF_DW, R10, FRAME_ELEM, R0);
}

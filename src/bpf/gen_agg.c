/*
 * Aggregations: each value is added to an element of a per-CPU map.
 *
 * A program can be preempted by another on its CPU, so every change is an atomic one.
 */
#include "bpf/gen.h"

#include <errno.h>

#include "abi/segment.h"
#include "ir/facts.h"

/* --- buckets ----------------------------------------------------------------------------------------- */
/* R2 = the number of the bucket of the value in R2.  They use R1, R3, R4 and R5, not R0, and hardly branch: each path
 * would be one more for the verifier to follow through the rest of the program. */

/* 63 plus or minus the number of bits of the value's magnitude. */
static void quantize(struct gen *g, const struct ir_agg *agg)
{
	struct assembler *as = &g->as;
	uint32_t positive = asm_label(as), done = asm_label(as), fits = asm_label(as), up = asm_label(as);

	(void)agg;
	asm_mov(as, R4, R2);
	asm_ji(as, BPF_JSGE, R2, 0, positive);
	asm_neg(as, R2);
	asm_bind(as, positive);
	/* Set all bits below the highest, then count the bits. */
	for (int k = 1; k < 64; k *= 2) {
		asm_mov(as, R1, R2);
		asm_alui(as, BPF_RSH, R1, k);
		asm_alu(as, BPF_OR, R2, R1);
	}
	asm_mov(as, R1, R2);
	asm_alui(as, BPF_RSH, R1, 1);
	asm_imm(as, R3, 0x5555555555555555);
	asm_alu(as, BPF_AND, R1, R3);
	asm_alu(as, BPF_SUB, R2, R1);
	asm_imm(as, R3, 0x3333333333333333);
	asm_mov(as, R1, R2);
	asm_alui(as, BPF_RSH, R1, 2);
	asm_alu(as, BPF_AND, R1, R3);
	asm_alu(as, BPF_AND, R2, R3);
	asm_alu(as, BPF_ADD, R2, R1);
	asm_mov(as, R1, R2);
	asm_alui(as, BPF_RSH, R1, 4);
	asm_alu(as, BPF_ADD, R2, R1);
	asm_imm(as, R3, 0x0f0f0f0f0f0f0f0f);
	asm_alu(as, BPF_AND, R2, R3);
	asm_imm(as, R3, 0x0101010101010101);
	asm_alu(as, BPF_MUL, R2, R3);
	asm_alui(as, BPF_RSH, R2, 56);
	asm_ji(as, BPF_JLE, R2, 63, fits);	/* 64 bits: INT64_MIN, which shares the last bucket */
	asm_imm(as, R2, 63);
	asm_bind(as, fits);
	asm_ji(as, BPF_JSGE, R4, 0, up);
	asm_neg(as, R2);
	asm_bind(as, up);
	asm_alui(as, BPF_ADD, R2, 63);
	asm_bind(as, done);
}

/* Jump to @label unless R2 < @bound, signed. */
static void unless_below(struct gen *g, int64_t bound, uint32_t label)
{
	if (asm_fits(bound)) {
		asm_ji(&g->as, BPF_JSGE, R2, (int32_t)bound, label);
	} else {
		asm_imm(&g->as, R1, bound);
		asm_j(&g->as, BPF_JSGE, R2, R1, label);
	}
}

/* R2 = (R2 - @from) / @width + @first, for a value not below @from. */
static void linear(struct gen *g, int64_t from, int64_t width, uint32_t first)
{
	struct assembler *as = &g->as;

	asm_imm(as, R1, from);
	asm_alu(as, BPF_SUB, R2, R1);
	if (width != 1) {
		asm_imm(as, R1, width);
		asm_alu(as, BPF_DIV, R2, R1);
	}
	asm_alui(as, BPF_ADD, R2, (int32_t)first);
}

static void lquantize(struct gen *g, const struct ir_agg *agg)
{
	int64_t base = agg->param[0], step = agg->param[2];
	uint32_t words = ir_agg_words(agg);
	struct assembler *as = &g->as;
	uint32_t not_below = asm_label(as), above = asm_label(as), done = asm_label(as);

	unless_below(g, base, not_below);
	asm_imm(as, R2, 0);
	asm_ja(as, done);
	asm_bind(as, not_below);
	unless_below(g, base + (int64_t)(words - 2) * step, above);
	linear(g, base, step, 1);
	asm_ja(as, done);
	asm_bind(as, above);
	asm_imm(as, R2, words - 1);
	asm_bind(as, done);
}

/* Runs of buckets of one width, from the lowest up. */
static void llquantize(struct gen *g, const struct ir_agg *agg)
{
	uint32_t words = ir_agg_words(agg), n;
	struct assembler *as = &g->as;
	uint32_t next = asm_label(as), done = asm_label(as);

	unless_below(g, ir_llquantize_bound(agg, 1), next);
	asm_imm(as, R2, 0);
	asm_ja(as, done);
	for (uint32_t k = 1; k < words - 1; k += n) {
		int64_t from = ir_llquantize_bound(agg, k), width = ir_llquantize_bound(agg, k + 1) - from;

		for (n = 1; k + n < words - 1; n++) {
			if (ir_llquantize_bound(agg, k + n + 1) - ir_llquantize_bound(agg, k + n) != width)
				break;
		}
		asm_bind(as, next);
		next = asm_label(as);
		unless_below(g, ir_llquantize_bound(agg, k + n), next);
		linear(g, from, width, k);
		asm_ja(as, done);
	}
	asm_bind(as, next);
	asm_imm(as, R2, words - 1);
	asm_bind(as, done);
}

/* --- adding a value to the element at R0 -------------------------------------------------------------- */

/* Add R1 to word @word.  A lane has one writer, so it needs no atomic operation. */
static void add_r1(struct gen *g, int word)
{
	if (g->env->user_space) {
		asm_ld(&g->as, BPF_DW, R2, R0, 8 * word);
		asm_alu(&g->as, BPF_ADD, R2, R1);
		asm_st(&g->as, BPF_DW, R0, 8 * word, R2);
	} else {
		asm_atomic(&g->as, BPF_ADD, BPF_DW, R0, 8 * word, R1);
	}
}

static void add_word(struct gen *g, int word, ir_reg r)
{
	gen_load(g, R1, r);
	add_r1(g, word);
}

static void add_one(struct gen *g)
{
	asm_imm(&g->as, R1, 1);
	add_r1(g, 0);
}

static void take_count(struct gen *g, const struct ir_insn *i)
{
	(void)i;
	add_one(g);
}

static void take_sum(struct gen *g, const struct ir_insn *i)
{
	add_word(g, 0, i->args[0]);
}

static void take_avg(struct gen *g, const struct ir_insn *i)
{
	add_one(g);
	add_word(g, 1, i->args[0]);
}

static void call_with_value(struct gen *g, const struct ir_insn *i, enum rt_fn fn)
{
	asm_mov(&g->as, R1, R0);
	gen_load(g, R2, i->args[0]);
	asm_rt(&g->as, fn);
}

static void take_min(struct gen *g, const struct ir_insn *i)
{
	call_with_value(g, i, i->agg->sign ? RT_MIN : RT_UMIN);
}

static void take_max(struct gen *g, const struct ir_insn *i)
{
	call_with_value(g, i, i->agg->sign ? RT_MAX : RT_UMAX);
}

static void take_stddev(struct gen *g, const struct ir_insn *i)
{
	call_with_value(g, i, RT_SQUARES);
}

/* In user space a helper counts the bits: before the element is looked up, since it keeps no register. */
static bool is_helped(const struct gen *g, const struct ir_insn *i)
{
	return g->env->user_space && i->agg->fn == IR_A_QUANTIZE;
}

/* R0 = the number of the bucket */
static void ask_bucket(struct gen *g, const struct ir_insn *i)
{
	gen_load(g, R1, i->args[0]);
	asm_helper(&g->as, ABI_HELPER_QUANTIZE);
}

static void take_bucket(struct gen *g, const struct ir_insn *i,
			void (*bucket)(struct gen *g, const struct ir_agg *agg))
{
	struct assembler *as = &g->as;
	uint32_t done = asm_label(as);

	if (is_helped(g, i)) {
		asm_ld(as, BPF_DW, R2, R10, FRAME_ELEM);
	} else {
		gen_load(g, R2, i->args[0]);
		bucket(g, i->agg);
	}
	asm_ji(as, BPF_JGE, R2, (int32_t)ir_agg_words(i->agg), done);
	asm_alui(as, BPF_LSH, R2, 3);
	asm_alu(as, BPF_ADD, R0, R2);
	add_word(g, 0, i->args[1]);
	asm_bind(as, done);
}

static void take_quantize(struct gen *g, const struct ir_insn *i)
{
	take_bucket(g, i, quantize);
}

static void take_lquantize(struct gen *g, const struct ir_insn *i)
{
	take_bucket(g, i, lquantize);
}

static void take_llquantize(struct gen *g, const struct ir_insn *i)
{
	take_bucket(g, i, llquantize);
}

static gen_fn *const takes[IR_A_NR] = {
	[IR_A_COUNT] = take_count,
	[IR_A_SUM] = take_sum,
	[IR_A_MIN] = take_min,
	[IR_A_MAX] = take_max,
	[IR_A_AVG] = take_avg,
	[IR_A_STDDEV] = take_stddev,
	[IR_A_QUANTIZE] = take_quantize,
	[IR_A_LQUANTIZE] = take_lquantize,
	[IR_A_LLQUANTIZE] = take_llquantize,
};

/* --- adding with one helper call ----------------------------------------------------------------------- */

/* Does ABI_HELPER_ADD_BY_STRING cut strings where copyinstr() does?  It cuts them only where their room ends. */
static bool cuts_right(const struct ir_prog *prog)
{
	return prog->strsize == ir_str_room(prog) && prog->strsize <= ABI_ADD_STRING_MAX;
}

/*
 * The copyinstr() of @i's key if ABI_HELPER_ADD_BY_STRING can do @i, else NULL: there is one key, a string of the
 * process that is copied whole, and one word changes.
 */
static const struct ir_insn *string_key(const struct gen *g, const struct ir_insn *i)
{
	const struct ir_insn *copy;
	int64_t size;

	if (!g->env->user_space || i->agg->nkeys != 1 || i->agg->keys[0].type != IR_STR ||
	    !cuts_right(g->prog))
		return NULL;
	copy = g->plan->late[i->args[ir_agg_operands(i->agg->fn)]];
	if (!copy || copy->op != IR_CALL || copy->fn != IR_FN_COPYINSTR || !gen_is_const(g, copy->args[1], &size) ||
	    (size >= 0 && size < g->prog->strsize))
		return NULL;
	return copy;
}

bool ebpf_is_count(const struct ebpf_unit *u, const struct ir_clause *c, uint32_t *arg, uint32_t *map,
		   unsigned int *classes)
{
	const struct ir_insn *i = c->blocks[0]->insns;

	if (c->nblocks != 1 || c->blocks[0]->n != 5 || i[0].op != IR_ARG || i[1].op != IR_CONST || i[2].op != IR_CALL ||
	    i[2].fn != IR_FN_COPYINSTR || i[2].args[0] != i[0].dst || i[2].args[1] != i[1].dst ||
	    (i[1].imm >= 0 && i[1].imm < u->prog->strsize) || !cuts_right(u->prog) ||
	    i[3].op != IR_AGG || i[3].agg->fn != IR_A_COUNT || i[3].agg->nkeys != 1 || i[3].args[0] != i[2].dst ||
	    i[4].op != IR_RET)
		return false;
	*arg = (uint32_t)i[0].imm;
	*classes = ebpf_agg_maps(u, i[3].agg, map);
	return true;
}

static const struct ir_insn *made_by(const struct ir_block *b, ir_reg reg)
{
	for (uint32_t k = 0; k < b->n; k++)
		if (b->insns[k].dst == reg)
			return &b->insns[k];
	return NULL;
}

/* Does what @i, of @b, results in follow from the process, from arguments 0 and 1 and from its operands? */
static bool is_by_code(const struct ir_block *b, const struct ir_insn *i)
{
	const struct ir_insn *from = i->op == IR_CALL && i->fn == IR_FN_COPYINSTR ? made_by(b, i->args[0]) : NULL;

	if (i->op == IR_ARG)
		return i->imm == 0 || i->imm == 1;
	if (i->op == IR_BUILTIN)
		return i->bi == IR_B_PID;
	if (from)	/* other texts of the process can change */
		return from->op == IR_ARG;
	if (i->op == IR_CALL)
		return ir_fn_is_pure(i->fn);
	return !ir_effects(i);
}

bool ebpf_is_count_by_code(const struct ebpf_unit *u, const struct ir_clause *c, uint32_t *map, unsigned int *classes)
{
	const struct ir_block *b = c->blocks[0];
	const struct ir_insn *agg = b->n >= 2 ? &b->insns[b->n - 2] : NULL;

	if (c->nblocks != 1 || !agg || agg->op != IR_AGG || agg->agg->fn != IR_A_COUNT || ir_agg_tells_use(agg->agg) ||
	    b->insns[b->n - 1].op != IR_RET)
		return false;
	for (uint32_t k = 0; k < b->n - 2; k++)
		if (!is_by_code(b, &b->insns[k]))
			return false;
	*classes = ebpf_agg_maps(u, agg->agg, map);
	return true;
}

/* R4 = the number of the word, R5 = what is added to it; jump to @done if there is no such bucket. */
static void one_word(struct gen *g, const struct ir_insn *i, uint32_t done)
{
	struct assembler *as = &g->as;
	void (*bucket)(struct gen *g, const struct ir_agg *agg) = i->agg->fn == IR_A_QUANTIZE ? quantize :
		i->agg->fn == IR_A_LQUANTIZE ? lquantize : i->agg->fn == IR_A_LLQUANTIZE ? llquantize : NULL;

	if (bucket) {
		if (is_helped(g, i)) {
			ask_bucket(g, i);
			asm_mov(as, R2, R0);
		} else {
			gen_load(g, R2, i->args[0]);
			bucket(g, i->agg);
		}
		asm_ji(as, BPF_JGE, R2, (int32_t)ir_agg_words(i->agg), done);
		asm_mov(as, R4, R2);
		gen_load(g, R5, i->args[1]);
	} else {
		asm_imm(as, R4, 0);
		if (i->agg->fn == IR_A_COUNT)
			asm_imm(as, R5, 1);
		else
			gen_load(g, R5, i->args[0]);
	}
}

static bool is_one_word(enum ir_agg_fn fn)
{
	return fn == IR_A_COUNT || fn == IR_A_SUM || fn == IR_A_QUANTIZE || fn == IR_A_LQUANTIZE ||
	       fn == IR_A_LLQUANTIZE;
}

static void add_by_string(struct gen *g, const struct ir_insn *i, const struct ir_insn *copy)
{
	const struct keyed *k = &g->priv->aggs[i->agg->id];
	struct assembler *as = &g->as;
	uint32_t done = asm_label(as);

	one_word(g, i, done);
	gen_load(g, R2, copy->args[0]);
	asm_st(as, BPF_DW, R10, FRAME_TMP2, R2);
	asm_map(as, R1, k->first);
	asm_imm(as, R3, k->n);
	asm_helper(as, ABI_HELPER_ADD_BY_STRING);
	asm_ji(as, BPF_JEQ, R0, 0, done);
	g->insn = copy;		/* a fault belongs to copyinstr() */
	asm_ji(as, BPF_JEQ, R0, -EFAULT, gen_fault(g, ABI_FAULT_BADADDR, FRAME_TMP2));
	g->insn = i;
	gen_drop(g, ABI_DROP_AGG);
	asm_bind(as, done);
}

void gen_agg(struct gen *g, const struct ir_insn *i)
{
	const struct ir_insn *copy = is_one_word(i->agg->fn) ? string_key(g, i) : NULL;
	struct keyed_use k = {
		.keyed = &g->priv->aggs[i->agg->id],
		.parts = i->agg->keys,
		.keys = i->args ? i->args + ir_agg_operands(i->agg->fn) : NULL,
		.n = i->agg->nkeys,
		.drop = ABI_DROP_AGG,
		.other = asm_label(&g->as),
		.each = gen_key_get,
	};

	if (copy) {
		add_by_string(g, i, copy);
		return;
	}
	if (is_helped(g, i)) {
		ask_bucket(g, i);
		asm_st(&g->as, BPF_DW, R10, FRAME_ELEM, R0);
	}
	gen_keyed(g, &k);
	if (ir_agg_tells_use(i->agg)) {
		asm_imm(&g->as, R1, 1);
		asm_st(&g->as, BPF_DW, R0, (int)(8 * ir_agg_words(i->agg)), R1);
	}
	takes[i->agg->fn](g, i);
	asm_bind(&g->as, k.other);
}

/*
 * The tables of the IR, read as tables of facts.
 */
#include "ir/ir.h"

#include <string.h>

#include "abi/stat.h"
#include "ir/facts.h"
#include "lang/format.h"

static const struct ir_op_fact ops[IR_OP_MAX] = {
#define IR_OP(NAME, TEXT, RESULT, OPERANDS, ATTR, WHAT)                                                       \
	[IR_##NAME] = { TEXT, RESULT[0], OPERANDS, IR_ATTR_##ATTR,                                             \
			IR_##NAME == IR_JMP || IR_##NAME == IR_BR || IR_##NAME == IR_RET ||                    \
				IR_##NAME == IR_FAULT || IR_##NAME == IR_ENTER || IR_##NAME == IR_LEAVE ||     \
				IR_##NAME == IR_TRY || IR_##NAME == IR_RAISE },
#include "ir/ops.def"
#undef IR_OP
};

static const struct {
	const char *text;
	enum ir_type type;
} builtins[IR_B_MAX] = {
#define IR_BUILTIN(NAME, TEXT, TYPE, WHAT) [IR_B_##NAME] = { TEXT, TYPE },
#include "ir/builtins.def"
#undef IR_BUILTIN
};

static const struct {
	const char *text;
	enum ir_type result;
	const char *operands;
} fns[IR_FN_MAX] = {
#define IR_FN(NAME, TEXT, RESULT, OPERANDS, ATTR, WHAT) [IR_FN_##NAME] = { TEXT, RESULT, OPERANDS },
#include "ir/funcs.def"
#undef IR_FN
};

static const struct {
	const char *text;
	uint32_t words;
	unsigned int operands;
} aggs[IR_A_NR] = {
#define IR_AGG(NAME, TEXT, WORDS, OPERANDS, WHAT) [IR_A_##NAME] = { TEXT, WORDS, OPERANDS },
#include "ir/aggs.def"
#undef IR_AGG
};

static const char *const acts[IR_ACT_MAX] = {
#define IR_ACT(NAME, TEXT, WHAT) [IR_ACT_##NAME] = TEXT,
#include "ir/actions.def"
#undef IR_ACT
};

const char *ir_sort_text(enum ir_sort sort)
{
	static const char *const texts[IR_SORT_NR] = { "none", "key", "value", "count", "sum", "min", "max",
						       "avg", "variance" };

	return texts[sort];
}

const struct ir_op_fact *ir_op_fact(enum ir_op op)
{
	return &ops[op];
}

const char *ir_op_text(enum ir_op op)
{
	return ops[op].text;
}

const char *ir_builtin_text(enum ir_builtin bi)
{
	return builtins[bi].text;
}

enum ir_type ir_builtin_type(enum ir_builtin bi)
{
	return builtins[bi].type;
}

const char *ir_fn_text(enum ir_fn fn)
{
	return fns[fn].text;
}

enum ir_type ir_fn_result(enum ir_fn fn)
{
	return fns[fn].result;
}

const char *ir_agg_text(enum ir_agg_fn fn)
{
	return aggs[fn].text;
}

unsigned int ir_agg_operands(enum ir_agg_fn fn)
{
	return aggs[fn].operands;
}

const char *ir_act_text(enum ir_act_kind kind)
{
	return acts[kind];
}

/* --- operand types ----------------------------------------------------------------------------------- */

static uint32_t add_slots(enum ir_type *types, uint32_t n, const struct ir_slot *slots, uint32_t nslots)
{
	for (uint32_t k = 0; k < nslots; k++)
		types[n++] = slots[k].type;
	return n;
}

static uint32_t add_conversions(enum ir_type *types, uint32_t n, const struct fmt *f)
{
	for (size_t k = 0; k < f->n; k++) {
		const struct fmt_conv *c = &f->convs[k];

		if (c->kind == FMT_NONE)
			continue;
		if (c->dyn_width)
			types[n++] = IR_INT;
		if (c->dyn_prec)
			types[n++] = IR_INT;
		types[n++] = c->kind == FMT_STRING ? IR_STR : IR_INT;
	}
	return n;
}

void ir_insn_types(const struct ir_insn *i, enum ir_type *types, uint32_t *n, enum ir_type *result)
{
	const struct ir_op_fact *f = &ops[i->op];
	const char *operand;
	uint32_t k = 0;

	*result = f->result == 'i' ? IR_INT : f->result == 's' ? IR_STR : IR_VOID;
	for (operand = f->operands; *operand && *operand != '*'; operand++)
		types[k++] = (enum ir_type)*operand;
	switch (i->op) {
	case IR_MOV:
		types[k++] = IR_VOID;
		break;
	case IR_BUILTIN:
		*result = builtins[i->bi].type;
		break;
	case IR_CALL:
		for (const char *p = fns[i->fn].operands; *p; p++)
			types[k++] = (enum ir_type)*p;
		*result = fns[i->fn].result;
		break;
	case IR_VLD:
		*result = i->var->slot.type;
		break;
	case IR_VST:
	case IR_PASS:
		types[k++] = i->var->slot.type;
		break;
	case IR_MLD:
		*result = i->map->value.type;
		break;
	case IR_MST:
		types[k++] = i->map->value.type;
		break;
	case IR_ITER:
		for (uint32_t j = 0; j < i->iter->map->nkeys; j++) {
			if (i->iter->given >> j & 1)
				types[k++] = i->iter->map->keys[j].type;
		}
		break;
	case IR_IKEY:
		*result = i->iter->map->keys[i->part].type;
		break;
	case IR_IVALUE:
		*result = i->iter->map->value.type;
		break;
	case IR_SPRINTF:
		k = add_conversions(types, k, i->fmt);
		break;
	case IR_AGG:
		for (unsigned int j = 0; j < aggs[i->agg->fn].operands; j++)
			types[k++] = IR_INT;
		k = add_slots(types, k, i->agg->keys, i->agg->nkeys);
		break;
	case IR_EMIT:
		k = add_slots(types, k, i->rec->fields, i->rec->nfields);
		if (i->rec->stat)
			k = add_slots(types, k, i->rec->stat->keys, i->rec->stat->nkeys);
		break;
	default:
		break;
	}
	if (f->attr == IR_ATTR_MAP && *operand == '*')
		k = add_slots(types, k, i->map->keys, i->map->nkeys);
	*n = k;
}

/* --- maps ---------------------------------------------------------------------------------------------- */

struct ir_map *ir_insn_map(const struct ir_insn *i)
{
	switch (i->op) {
	case IR_ITER:
	case IR_INEXT:
		return i->iter->map;
	case IR_EMIT:
		return i->rec->stat;
	default:
		return ops[i->op].attr == IR_ATTR_MAP ? i->map : NULL;
	}
}

/* --- control flow ------------------------------------------------------------------------------------ */

unsigned int ir_successors(const struct ir_block *b, struct ir_block *out[2])
{
	const struct ir_insn *end = &b->insns[b->n - 1];

	switch (end->op) {
	case IR_JMP:
		out[0] = end->target[0];
		return 1;
	case IR_BR:
	case IR_ENTER:
	case IR_TRY:
		out[0] = end->target[0];
		out[1] = end->target[1];
		return 2;
	default:
		return 0;
	}
}

unsigned int ir_forgets(const struct ir_block *b, struct ir_block *const out[2], unsigned int n)
{
	enum ir_op end = b->insns[b->n - 1].op;
	unsigned int which = end == IR_ENTER ? 3 : end == IR_TRY ? 1 : 0;

	for (unsigned int k = 0; k < n; k++) {
		if (out[k]->n && out[k]->insns[0].op == IR_TURN)
			which |= 1u << k;
	}
	return which;
}

/* --- aggregated values ------------------------------------------------------------------------------- */

enum { MAX_BUCKETS = 4096 };

/*
 * llquantize's buckets (DTrace guide, "Aggregating functions"): bucket 0 is below factor^low; then each
 * magnitude [factor^m, factor^(m+1)), m from low to high, is cut into equal parts, @steps of them counted from
 * zero, so that steps - steps / factor lie within the magnitude; the last bucket is what is above.  A magnitude
 * that has fewer integers than steps has one bucket for each.
 */
struct ll_part {
	int64_t from, to;	/* the magnitude's values: from <= v < to */
	int64_t width;		/* of a bucket */
	uint32_t n;		/* buckets */
};

/* Magnitude @m of @g; false when it is beyond 64 bits. */
static bool ll_part(const struct ir_agg *g, int64_t m, struct ll_part *part)
{
	int64_t factor = g->param[0], steps = g->param[3];
	int64_t from = 1, to;

	for (int64_t k = 0; k < m; k++) {
		if (__builtin_mul_overflow(from, factor, &from))
			return false;
	}
	if (__builtin_mul_overflow(from, factor, &to))
		return false;
	part->from = from;
	part->to = to;
	part->width = to > steps ? to / steps : 1;
	part->n = (uint32_t)((to - from) / part->width);
	return true;
}

static uint32_t llquantize_words(const struct ir_agg *g)
{
	int64_t factor = g->param[0], low = g->param[1], high = g->param[2], steps = g->param[3];
	uint32_t n = 2;

	if (factor < 2 || low < 0 || high < low || high > 63 || steps < factor || steps % factor ||
	    steps > MAX_BUCKETS)
		return 0;
	for (int64_t m = low; m <= high; m++) {
		struct ll_part part;

		if (!ll_part(g, m, &part))
			return 0;
		n += part.n;
		if (n > MAX_BUCKETS)
			return 0;
	}
	return n;
}

static uint32_t lquantize_words(const struct ir_agg *g)
{
	int64_t base = g->param[0], limit = g->param[1], step = g->param[2];
	uint64_t levels;

	if (step <= 0 || limit <= base)
		return 0;
	levels = ((uint64_t)limit - (uint64_t)base) / (uint64_t)step;
	return levels < 1 || levels > MAX_BUCKETS - 2 ? 0 : (uint32_t)levels + 2;
}

uint32_t ir_agg_words(const struct ir_agg *g)
{
	if (g->fn == IR_A_LQUANTIZE)
		return lquantize_words(g);
	if (g->fn == IR_A_LLQUANTIZE)
		return llquantize_words(g);
	return aggs[g->fn].words;
}

uint32_t ir_llquantize_bucket(const struct ir_agg *g, int64_t v)
{
	uint32_t first = 1;
	struct ll_part part;

	if (!ll_part(g, g->param[1], &part) || v < part.from)
		return 0;
	for (int64_t m = g->param[1]; m <= g->param[2] && ll_part(g, m, &part); m++) {
		if (v < part.to)
			return first + (uint32_t)((v - part.from) / part.width);
		first += part.n;
	}
	return first;
}

int64_t ir_llquantize_bound(const struct ir_agg *g, uint32_t i)
{
	uint32_t first = 1;
	struct ll_part part = { 0 };

	if (i == 0)
		return INT64_MIN;
	for (int64_t m = g->param[1]; m <= g->param[2] && ll_part(g, m, &part); m++) {
		if (i < first + part.n)
			return part.from + (int64_t)(i - first) * part.width;
		first += part.n;
	}
	return part.to;
}

/* --- statistics ---------------------------------------------------------------------------------------- */

uint32_t ir_stat_words(const struct ir_map *m)
{
	uint64_t span;

	switch (m->stat) {
	case IR_STAT_PLAIN:
		return ABI_STAT_BUCKETS;
	case IR_STAT_LOG:
		return ABI_STAT_BUCKETS + ABI_STAT_LOG_BUCKETS;
	case IR_STAT_LINEAR:
		if (m->linear[2] <= 0 || m->linear[1] <= m->linear[0])
			return 0;
		/* Below low, the buckets from low to that of high, above. */
		span = ((uint64_t)m->linear[1] - (uint64_t)m->linear[0]) / (uint64_t)m->linear[2];
		return span > MAX_BUCKETS ? 0 : ABI_STAT_BUCKETS + (uint32_t)span + 3;
	default:
		return 0;
	}
}

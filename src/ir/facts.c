/*
 * Access to the IR's tables.
 */
#include "ir/ir.h"

#include <string.h>

#include "abi/stat.h"
#include "ir/facts.h"
#include "lang/format.h"

/* Effects by their names in the tables. */
enum {
	FAULTS = IR_FAULTS, FILLS = IR_FILLS, STEADY = IR_STEADY, R_VAR = IR_R_VAR, W_VAR = IR_W_VAR, R_MAP = IR_R_MAP,
	W_MAP = IR_W_MAP, R_SCRATCH = IR_R_SCRATCH, W_SCRATCH = IR_W_SCRATCH, R_USER = IR_R_USER, W_USER = IR_W_USER,
	R_STATE = IR_R_STATE, W_STATE = IR_W_STATE, ACTS = IR_ACTS, ENDS = IR_ENDS, LONG = IR_LONG, TASKS = IR_TASKS,
	MAKES = IR_MAKES, TAKES = IR_TAKES, TAKES_KEYS = IR_TAKES_KEYS, CURRENT = IR_CURRENT,
};

/* Needs and places, likewise. */
enum {
	TIME = IR_N_TIME, PROBE = IR_N_PROBE, IDS = IR_N_IDS, FLOW = IR_N_FLOW, LOOPS = IR_N_LOOPS,
	ITERATION = IR_N_ITERATION | IR_N_FLOW | IR_N_LOOPS | IR_N_TEXT,
	PROCEDURES = IR_N_PROCEDURES | IR_N_FLOW | IR_N_LOOPS,
	KEY = IR_N_KEY, RECORD = IR_N_RECORD, TEXT = IR_N_TEXT, GROUPS = IR_N_GROUPS, FRAMES = IR_N_FRAMES,
	COMPONENTS = IR_N_COMPONENTS, BLOCK = IR_N_BLOCK, BUFFER = IR_N_BUFFER,
};

enum {
#define IR_WHY(NAME, TEXT) WHY_##NAME,
#include "ir/where.def"
#undef IR_WHY
};

static const char *const whys[] = {
#define IR_WHY(NAME, TEXT) [WHY_##NAME] = TEXT,
#include "ir/where.def"
#undef IR_WHY
};

struct where {
	enum ir_where where;
	int why;
};

#define ANY { IR_ANY, 0 }
#define KERNEL(WHY) { IR_KERNEL, WHY_##WHY }
#define TARGET(WHY) { IR_TARGET, WHY_##WHY }
#define STOPPED(WHY) { IR_STOPPED, WHY_##WHY }

static const struct ir_op_fact ops[IR_OP_MAX] = {
#define IR_OP(NAME, TEXT, RESULT, OPERANDS, ATTR, EFFECTS, NEEDS, ...)							\
	[IR_##NAME] = { TEXT, RESULT[0], OPERANDS, IR_ATTR_##ATTR, EFFECTS, NEEDS },
#include "ir/ops.def"
#undef IR_OP
};

static const struct {
	const char *text;
	enum ir_type type;
	uint32_t effects, needs;
	struct where where;
} builtins[IR_B_MAX] = {
#define IR_BUILTIN(NAME, TEXT, TYPE, EFFECTS, NEEDS, WHERE, WHAT) [IR_B_##NAME] = { TEXT, TYPE, EFFECTS, NEEDS, WHERE },
#include "ir/builtins.def"
#undef IR_BUILTIN
};

static const struct {
	const char *text;
	enum ir_type result;
	const char *operands;
	uint32_t effects, needs;
	struct where where;
	bool in_library;
} fns[IR_FN_MAX] = {
#define RT(...) true
#define BY(...) false
#define IR_FN(NAME, TEXT, RESULT, OPERANDS, EFFECTS, NEEDS, WHERE, CODE, WHAT)						\
	[IR_FN_##NAME] = { TEXT, RESULT, OPERANDS, EFFECTS, NEEDS, WHERE, CODE },
#include "ir/funcs.def"
#undef IR_FN
#undef BY
#undef RT
};
#undef ANY
#undef KERNEL
#undef TARGET
#undef STOPPED

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
#define IR_ACT(NAME, TEXT, WHOSE, WHAT) [IR_ACT_##NAME] = TEXT,
#include "ir/actions.def"
#undef IR_ACT
};

static const bool own_acts[IR_ACT_MAX] = {
#define ANY false
#define OWN true
#define IR_ACT(NAME, TEXT, WHOSE, WHAT) [IR_ACT_##NAME] = WHOSE,
#include "ir/actions.def"
#undef IR_ACT
#undef OWN
#undef ANY
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

bool ir_act_is_own(enum ir_act_kind kind)
{
	return own_acts[kind];
}

/* --- effects --------------------------------------------------------------------------------------------- */

uint32_t ir_fn_effects(enum ir_fn fn)
{
	return fns[fn].effects;
}

uint32_t ir_builtin_effects(enum ir_builtin bi)
{
	return builtins[bi].effects;
}

/* The runtime library computes from what it is given. */
bool ir_fn_is_pure(enum ir_fn fn)
{
	return fns[fn].in_library && !fns[fn].effects && !fns[fn].needs;
}

uint32_t ir_effects(const struct ir_insn *i)
{
	if (i->op == IR_CALL)
		return fns[i->fn].effects;
	if (i->op == IR_BUILTIN)
		return builtins[i->bi].effects;
	return ops[i->op].effects | (i->op == IR_EMIT && i->rec->stat ? IR_FAULTS : 0);
}

uint32_t ir_needs(const struct ir_insn *i)
{
	uint32_t needs = ops[i->op].needs;

	if (i->op == IR_CALL)
		needs |= fns[i->fn].needs;
	return i->op == IR_BUILTIN ? needs | builtins[i->bi].needs : needs;
}

static struct ir_place place_of(struct where w)
{
	return (struct ir_place){ w.where, w.where == IR_ANY ? NULL : whys[w.why] };
}

struct ir_place ir_fn_place(enum ir_fn fn)
{
	return place_of(fns[fn].where);
}

struct ir_place ir_place(const struct ir_insn *i)
{
	if (i->op == IR_CALL)
		return ir_fn_place(i->fn);
	return place_of(i->op == IR_BUILTIN ? builtins[i->bi].where : (struct where){ IR_ANY, 0 });
}

bool ir_may_fault(const struct ir_insn *i)
{
	uint32_t effects = ir_effects(i);

	return effects & IR_FAULTS || (effects & IR_FILLS && i->map->nkeys && !i->map->wraps);
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
 * llquantize's buckets, as in DTrace for Linux: each magnitude [factor^m, factor^(m+1)), m from low to high, is divided
 * at the multiples of factor^(m+1) / steps; if that is less than 1, each integer has a bucket.  Negative values have
 * the same buckets, mirrored.  Between both is one bucket for values nearer to zero; at either end is an open one.
 *
 *	0		1 ... P		P + 1		P + 2 ... 2 P + 1	2 P + 2
 *	v <= -end	negative	|v| < begin	positive		v >= end
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
	part->n = (uint32_t)((to - 1) / part->width - from / part->width + 1);
	return true;
}

static uint32_t llquantize_words(const struct ir_agg *g)
{
	int64_t factor = g->param[0], low = g->param[1], high = g->param[2], steps = g->param[3];
	uint32_t n = 3;

	if (factor < 2 || low < 0 || high < low || high > 63 || steps < 1 || steps > UINT16_MAX)
		return 0;
	for (int64_t m = low; m <= high; m++) {
		struct ll_part part;

		if (!ll_part(g, m, &part) || part.n > MAX_BUCKETS)
			return 0;
		n += 2 * part.n;
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

bool ir_agg_tells_use(const struct ir_agg *g)
{
	/* With MAX_BUCKETS buckets, an element of a per-CPU map has no room for it. */
	return !g->nkeys && ir_agg_words(g) < MAX_BUCKETS &&
	       (g->fn == IR_A_SUM || g->fn == IR_A_QUANTIZE || g->fn == IR_A_LQUANTIZE || g->fn == IR_A_LLQUANTIZE);
}

/* The number, from 0, of the positive bucket of @v; the open one's if @v is above all others. */
static uint32_t ll_above(const struct ir_agg *g, int64_t v)
{
	uint32_t first = 0;
	struct ll_part part;

	for (int64_t m = g->param[1]; m <= g->param[2] && ll_part(g, m, &part); m++) {
		if (v < part.to)
			return first + (uint32_t)(v / part.width - part.from / part.width);
		first += part.n;
	}
	return first;
}

uint32_t ir_llquantize_bucket(const struct ir_agg *g, int64_t v)
{
	uint32_t zero = ir_agg_words(g) / 2;
	int64_t size = v < 0 ? (v == INT64_MIN ? INT64_MAX : -v) : v;
	struct ll_part part;

	if (!ll_part(g, g->param[1], &part) || size < part.from)
		return zero;
	return v < 0 ? zero - 1 - ll_above(g, size) : zero + 1 + ll_above(g, size);
}

/* The lowest value in positive bucket @n, from 0. */
static int64_t ll_edge(const struct ir_agg *g, uint32_t n)
{
	uint32_t first = 0;
	struct ll_part part = { 0 };

	for (int64_t m = g->param[1]; m <= g->param[2] && ll_part(g, m, &part); m++) {
		if (n == first)
			return part.from;
		if (n < first + part.n)
			return (part.from / part.width + (int64_t)(n - first)) * part.width;
		first += part.n;
	}
	return part.to;
}

int64_t ir_llquantize_label(const struct ir_agg *g, uint32_t i)
{
	uint32_t zero = ir_agg_words(g) / 2;

	return i == zero ? 0 : i > zero ? ll_edge(g, i - zero - 1) : -ll_edge(g, zero - 1 - i);
}

int64_t ir_llquantize_bound(const struct ir_agg *g, uint32_t i)
{
	uint32_t zero = ir_agg_words(g) / 2;

	if (i == 0)
		return INT64_MIN;
	return i > zero ? ll_edge(g, i - zero - 1) : 1 - ll_edge(g, zero - i);
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
		if (m->linear[2] <= 0 || m->linear[1] < m->linear[0])
			return 0;
		/* One bucket below low, those from low to high inclusive, one above. */
		span = ((uint64_t)m->linear[1] - (uint64_t)m->linear[0]) / (uint64_t)m->linear[2];
		return span > MAX_BUCKETS ? 0 : ABI_STAT_BUCKETS + (uint32_t)span + 3;
	default:
		return 0;
	}
}

/*
 * Aggregations: @name[keys] = function(value, parameters).
 *
 * An aggregation keeps the function, the keys' types and the parameters of its first use; every other use
 * must agree.  Guide: "Aggregations".
 */
#include "d/check.h"

#include <string.h>

#include "base/arena.h"
#include "d/parse.h"

bool check_is_agg_ref(const struct d_node *n)
{
	while (n->kind == D_INDEX)
		n = n->base;
	return n->kind == D_AGG;
}

const struct d_node *check_agg_name(struct check *c, const struct d_node *n)
{
	const struct d_node *name = n->kind == D_AGG ? n : n->base;

	if (name->kind == D_AGG)
		return name;
	while (name->kind == D_INDEX)
		name = name->base;
	check_error(c, n->pos, "D_AGG_MDIM", "improper attempt to reference @%s as a multi-dimensional array",
		    name->name);
	diag_hint(c->diag, "separate the keys by commas: @%s[a, b]", name->name);
	return NULL;
}

/* The value of the constant @n, argument @arg.  False: reported under @tag. */
static bool constant(struct check *c, const char *func, const struct d_node *n, int arg, const char *what,
		     const char *tag, int64_t *ret)
{
	if (node_is_int(n) && d_const(c->prog, n, ret))
		return true;
	check_error(c, n->pos, tag, "%s( ) argument #%d%s must be an integer constant", func, arg, what);
	return false;
}

/* lquantize(value, base, limit, [step, [weight]]).  The arguments are counted without the value. */
static bool lquantize_params(struct check *c, struct d_node *call, int64_t p[4])
{
	const struct d_node *base = call->args[1], *limit = call->args[2];
	const struct d_node *step = call->nargs > 3 ? call->args[3] : NULL;
	int64_t levels;

	p[2] = 1;
	p[3] = 0;
	if (!constant(c, "lquantize", base, 1, "", "D_LQUANT_BASETYPE", &p[0]))
		return false;
	if (p[0] < INT32_MIN || p[0] > INT32_MAX) {
		check_error(c, base->pos, "D_LQUANT_BASEVAL", "lquantize( ) argument #1 must be a 32-bit quantity");
		return false;
	}
	if (!constant(c, "lquantize", limit, 2, "", "D_LQUANT_LIMTYPE", &p[1]))
		return false;
	if (p[1] < INT32_MIN || p[1] > INT32_MAX) {
		check_error(c, limit->pos, "D_LQUANT_LIMVAL", "lquantize( ) argument #2 must be a 32-bit quantity");
		return false;
	}
	if (p[1] < p[0]) {
		check_error(c, call->pos, "D_LQUANT_MISMATCH", "lquantize( ) base (argument #1) must be less than "
			    "limit (argument #2)");
		return false;
	}
	if (step) {
		if (!node_is_int(step) || !d_const(c->prog, step, &p[2]) || p[2] <= 0) {
			check_error(c, step->pos, "D_LQUANT_STEPTYPE", "lquantize( ) argument #3 must be a non-zero "
				    "positive integer constant");
			return false;
		}
		if (p[2] > UINT16_MAX) {
			check_error(c, step->pos, "D_LQUANT_STEPVAL", "lquantize( ) argument #3 must be a 16-bit "
				    "quantity");
			return false;
		}
	}
	levels = (p[1] - p[0]) / p[2];
	if (levels == 0) {
		check_error(c, call->pos, "D_LQUANT_STEPLARGE", "lquantize( ) step (argument #3) too large: must have "
			    "at least one quantization level");
		return false;
	}
	if (levels > UINT16_MAX) {
		check_error(c, call->pos, "D_LQUANT_STEPSMALL", "lquantize( ) step (argument #3) too small: number of "
			    "quantization levels must be a 16-bit quantity");
		return false;
	}
	p[1] = p[0] + levels * p[2];
	return true;
}

static const struct llparam {
	const char *what, *type_tag, *val_tag, *match_tag;
} llparams[4] = {
	{ "factor", "D_LLQUANT_FACTORTYPE", "D_LLQUANT_FACTORVAL", "D_LLQUANT_MATCHFACTOR" },
	{ "low magnitude", "D_LLQUANT_LMAGTYPE", "D_LLQUANT_LMAGVAL", "D_LLQUANT_MATCHLMAG" },
	{ "high magnitude", "D_LLQUANT_HMAGTYPE", "D_LLQUANT_HMAGVAL", "D_LLQUANT_MATCHHMAG" },
	{ "linear steps per magnitude", "D_LLQUANT_STEPTYPE", "D_LLQUANT_STEPVAL", "D_LLQUANT_MATCHSTEPS" },
};

/* llquantize(value, factor, low, high, steps, [weight]) */
static bool llquantize_params(struct check *c, struct d_node *call, int64_t p[4])
{
	uint64_t order = 1, first = 0;	/* ends of the lowest magnitude, and of that of the factor alone */

	for (int i = 0; i < 4; i++) {
		const struct d_node *n = call->args[i + 1];
		const char *what = arena_printf(c->arena, " (%s)", llparams[i].what);

		if (!constant(c, "llquantize", n, i + 1, what, llparams[i].type_tag, &p[i]))
			return false;
		if (p[i] < 0 || p[i] > UINT16_MAX) {
			check_error(c, n->pos, i == 3 && p[i] < 0 ? llparams[i].type_tag : llparams[i].val_tag, "llquantize( ) argument #%d%s must be an unsigned "
				    "16-bit quantity", i + 1, what);
			return false;
		}
	}
	if (p[0] < 2) {
		check_error(c, call->pos, "D_LLQUANT_FACTORVAL", "llquantize( ) factor (argument #1) must be two or "
			    "more");
		return false;
	}
	if (p[1] > p[2]) {
		check_error(c, call->pos, "D_LLQUANT_HMAGVAL", "llquantize( ) high magnitude (argument #3) must not be "
			    "less than low magnitude (argument #2)");
		return false;
	}
	if (!p[3]) {
		check_error(c, call->args[4]->pos, "D_LLQUANT_STEPTYPE", "llquantize( ) linear steps per magnitude "
			    "(argument #4) must not be zero");
		return false;
	}
	for (int64_t i = 0; i <= p[2]; i++) {
		if (i == (p[1] ? p[1] + 1 : 2))
			first = order;
		if (!__builtin_mul_overflow(order, (uint64_t)p[0], &order) && order <= INT64_MAX)
			continue;
		check_error(c, call->pos, "D_LLQUANT_HMAGVAL", "llquantize( ) factor (%d) raised to power of high "
			    "magnitude (%d) and one more overflows 64-bits", (int)p[0], (int)p[2]);
		return false;
	}
	if (!first)
		for (first = order; first % (uint64_t)p[3] && first < (uint64_t)p[3] * (uint64_t)p[0];)
			first *= (uint64_t)p[0];
	if (p[3] < p[0] ? p[0] % p[3] : p[3] % p[0] || first % (uint64_t)p[3]) {
		check_error(c, call->pos, "D_LLQUANT_STEPVAL", "llquantize( ) number of steps per magnitude (argument #4) "
			    "must divide the factor (argument #1), or be a multiple of it that divides the lowest "
			    "magnitude's end");
		return false;
	}
	return true;
}

/* Are the parameters those of the first use?  A difference is reported. */
static bool same_params(struct check *c, const struct d_ident *id, const struct d_node *call, const int64_t p[4])
{
	static const struct {
		const char *what, *tag;
	} lq[3] = {
		{ "base", "D_LQUANT_MATCHBASE" }, { "limit", "D_LQUANT_MATCHLIM" }, { "step", "D_LQUANT_MATCHSTEP" },
	};

	for (unsigned int i = 0; i < id->fn->nparams; i++) {
		if (p[i] == id->param[i])
			continue;
		if (id->fn->fn == IR_A_LQUANTIZE)
			check_error(c, call->pos, lq[i].tag, "lquantize( ) %s (argument #%u) doesn't match previous "
				    "declaration: expected %lld, found %lld", lq[i].what, i + 1,
				    (long long)id->param[i], (long long)p[i]);
		else
			check_error(c, call->pos, llparams[i].match_tag, "llquantize( ) %s (argument #%u) doesn't match "
				    "previous declaration: expected %lld, found %lld", llparams[i].what, i + 1,
				    (long long)id->param[i], (long long)p[i]);
		return false;
	}
	return true;
}

static uint32_t bucket_count(const struct aggfunc *f, const int64_t p[4])
{
	struct ir_agg g = { .fn = f->fn };

	memcpy(g.param, p, sizeof(g.param));
	return ir_agg_words(&g);
}

/* Check the value, the parameters and the weight of @call. */
static bool check_aggfunc(struct check *c, struct d_ident *id, struct d_node *call, bool first)
{
	const struct aggfunc *f = id->fn;
	unsigned int most = 1 + f->nparams + f->weight;
	const struct d_node *weight;
	int64_t p[4] = { 0 };

	if (call->nargs > most) {
		check_error(c, call->pos, "D_PROTO_LEN", "%s( ) prototype mismatch: %zu args passed, at most %u expected",
			    f->name, call->nargs, most);
		return false;
	}
	if (call->nargs && !node_is_scalar(call->args[0])) {
		check_error(c, call->pos, "D_AGG_SCALAR", "%s( ) argument #1 must be of scalar type", f->name);
		return false;
	}
	if ((f->fn == IR_A_LQUANTIZE && !lquantize_params(c, call, p)) ||
	    (f->fn == IR_A_LLQUANTIZE && !llquantize_params(c, call, p)))
		return false;
	if (f->nparams && !bucket_count(f, p)) {
		check_unsupported(c, call->pos, "a distribution of more than 4096 buckets", "use larger or fewer steps");
		return false;
	}
	if (call->nargs == most && f->weight) {
		weight = call->args[most - 1];
		if (!node_is_scalar(weight)) {
			check_error(c, weight->pos, "D_PROTO_ARG", "%s( ) increment value (argument #%u) must be of "
				    "scalar type", f->name, most);
			return false;
		}
	}
	if (!first)
		return same_params(c, id, call, p);
	memcpy(id->param, p, sizeof(p));
	id->sign = call->nargs && type_is_signed(call->args[0]->type);
	return true;
}

bool check_agg_assign(struct check *c, struct d_node *n)
{
	struct d_node *l = n->lhs, *call = n->rhs;
	const struct d_node *name = check_agg_name(c, l);
	const struct aggfunc *f;
	struct d_ident *id;
	bool first;

	if (!name)
		return false;
	if (n->op != D_OP_NONE || call->kind != D_CALL) {
		check_error(c, n->pos, "D_AGG_FUNC", "@%s must be assigned the result of an aggregating function",
			    name->name);
		return false;
	}
	if (!check_call(c, call, false))
		return false;
	if (call->ident->kind != ID_AGGFUNC) {
		check_error(c, n->pos, "D_AGG_FUNC", "@%s must be assigned the result of an aggregating function",
			    name->name);
		return false;
	}
	f = call->ident->aggfunc;
	id = ident_find(c, SPACE_AGG, name->name);
	first = !id || !id->fn;
	if (!id)
		id = ident_new(c, ID_AGG, SPACE_AGG, name->name, name->pos);
	l->ident = id;
	l->type = &check_agg_type;
	if (!first && id->fn != f) {
		check_error(c, n->pos, "D_AGG_REDEF", "aggregation redefined: @%s\n\t current: @%s = %s( )\n"
			    "\tprevious: @%s = %s( ) : line %u", name->name, name->name, f->name, name->name,
			    id->fn->name, id->pos.line);
		return false;
	}
	id->fn = f;
	if (!check_aggfunc(c, id, call, first))
		return false;
	if (l->kind == D_INDEX)
		return check_keys(c, id, l);
	if (id->keyed && id->nkeys) {
		check_error(c, l->pos, "D_PROTO_LEN", "@%s[ ] prototype mismatch: 0 keys passed, %zu expected",
			    name->name, id->nkeys);
		return false;
	}
	id->keyed = true;
	return true;
}

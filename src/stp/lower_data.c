/*
 * Variables, and assignments to them and to elements of arrays.
 *
 * A global of several handlers is changed atomically where the IR can (adding to a number); other changes can be lost
 * when handlers on two CPUs make them at the same time.
 */
#include "stp/lower.h"

#include "abi/stat.h"
#include "base/arena.h"
#include "lang/diag.h"
#include "stp/point.h"

/* --- what there is ----------------------------------------------------------------------------------- */

static enum ir_class local_class(const struct lower *l)
{
	return l->call && l->call->procedure ? IR_FRAME : IR_LOCAL;
}

struct ir_var *stp_lower_var(struct lower *l, struct stp_var *v)
{
	if (!v->ir)
		v->ir = ir_var_new(l->prog, v->name, v->is_global ? IR_GLOBAL : local_class(l), stp_lower_slot(v->type));
	return v->ir;
}

struct ir_var *stp_lower_temp(struct lower *l, enum stp_type type)
{
	return ir_var_new(l->prog, "", local_class(l), stp_lower_slot(type));
}

/* Of a linear histogram, without those below and above: STP_MAX_BUCKETS, 128, includes both and one more. */
enum { MAX_BUCKETS = 126 };

static void set_statistic(struct lower *l, struct ir_map *m, const struct stp_var *v)
{
	m->stat = IR_STAT_PLAIN;
	if (v->stats & 1u << STP_HIST_LOG)
		m->stat = IR_STAT_LOG;
	if (v->stats & 1u << STP_HIST_LINEAR)
		m->stat = IR_STAT_LINEAR;
	for (int i = 0; i < 3; i++)
		m->linear[i] = v->hist[i];
	m->extremes = v->stats & (1u << STP_STAT_MIN | 1u << STP_STAT_MAX);
	m->shift = (uint8_t)v->shift;
	m->squares = v->stats & 1u << STP_STAT_VARIANCE;
	if (!ir_stat_words(m) || (m->stat == IR_STAT_LINEAR && ir_stat_words(m) - ABI_STAT_BUCKETS > MAX_BUCKETS + 2)) {
		diag_warn(l->diag, v->pos, "S_HIST", "histogram: Number of buckets must be between 1 and %d\n"
			  "Number_of_buckets = (stop - start) / interval.\n"
			  "Please adjust your start, stop, and interval values.", MAX_BUCKETS);
		diag_error(l->diag, v->pos, "S_HIST", "semantic error: histogram of '%s' has impossible bounds or too many "
			   "buckets: identifier '%s'", v->name, v->name);
		diag_hint(l->diag, "@hist_linear takes the lowest value, the highest one, and the width of a bucket");
		m->stat = IR_STAT_PLAIN;
	}
}

struct ir_map *stp_lower_map(struct lower *l, struct stp_var *v)
{
	struct ir_map *m = v->map;

	if (m)
		return m;
	m = v->map = ir_map_new(l->prog, v->name, IR_GLOBAL);
	m->nkeys = v->arity > 0 ? (uint32_t)v->arity : 0;
	for (uint32_t i = 0; i < m->nkeys; i++)
		m->keys[i] = stp_lower_slot(v->index_types[i]);
	if (v->type == STP_STATS)
		set_statistic(l, m, v);
	else
		m->value = stp_lower_slot(v->type);
	m->ordered = true;
	m->wraps = v->wrap;
	m->max_entries = !m->nkeys ? 1 : (uint32_t)(v->max_size ? v->max_size :
						    stp_get_limit(l->stp, STP_MAXMAPENTRIES));
	return m;
}

/* A store into the array @n may exceed its size: the message names it. */
static void near_array(struct lower *l, const struct stp_node *n)
{
	const struct stp_var *v = n->var;

	stp_lower_near(l, n->what, n->pos);
	if (v->max_size)
		l->code->nears[l->b.act].text = arena_printf(l->arena, "Array overflow, check size limit (%lld)",
							     (long long)v->max_size);
}

/* --- several values at once -------------------------------------------------------------------------- */

/* Note if registers are not preserved over @n, because it contains a loop or calls a procedure. */
static void find_parting(void *ctx, struct stp_node **child)
{
	const struct stp_node *n = *child;
	bool *found = ctx;

	*found |= n->kind == STP_CALL && (n->func || (n->builtin && n->builtin->parts));
	*found |= n->kind == STP_NAME && n->var && n->var->late;
	*found |= n->source && n->source->kind == STP_SRC_FORMAT;
	stp_each_node(*child, find_parting, ctx);
}

static bool parts(struct stp_node *n)
{
	bool found = false;

	find_parting(&found, &n);
	return found;
}

void stp_lower_values(struct lower *l, struct stp_node *const *v, size_t n, ir_reg *vals)
{
	struct ir_var **kept = arena_alloc(l->arena, (n + 1) * sizeof(*kept));
	size_t last = 0;		/* behind the last one that does not preserve registers */

	for (size_t i = 0; i < n; i++)
		if (v[i] && parts(v[i]))
			last = i + 1;
	for (size_t i = 0; i < n; i++) {
		if (!v[i])
			continue;
		vals[i] = stp_lower_expr(l, v[i]);
		if (i + 1 < last && vals[i] != IR_NO_REG && v[i]->kind != STP_NUM && v[i]->kind != STP_STR) {
			kept[i] = stp_lower_temp(l, v[i]->type);
			ir_vst(&l->b, kept[i], vals[i]);
		}
	}
	for (size_t i = 0; i < last; i++) {
		if (kept[i])
			vals[i] = ir_vld(&l->b, kept[i]);
		else if (v[i] && i + 1 < last && v[i]->kind == STP_NUM)
			vals[i] = stp_lower_const(l, v[i]->value);
		else if (v[i] && i + 1 < last && v[i]->kind == STP_STR)
			vals[i] = stp_lower_str(l, v[i]->str);
	}
}

/* --- lvalues ------------------------------------------------------------------------------------------ */

void stp_lower_lvalue(struct lower *l, struct stp_node *n, struct stp_lvalue *p, struct stp_node *r, ir_reg *val)
{
	struct stp_node *v[STP_MAX_INDEXES + 1] = {0};
	ir_reg vals[STP_MAX_INDEXES + 1];
	size_t nkeys = n->kind == STP_INDEX ? n->nargs : 0;

	p->var = NULL;
	p->map = NULL;
	for (size_t i = 0; i < nkeys; i++)
		v[i] = n->args[i];
	if (r)
		v[nkeys] = r;
	stp_lower_values(l, v, nkeys + (r != NULL), vals);
	for (size_t i = 0; i < nkeys; i++)
		p->keys[i] = vals[i];
	if (r)
		*val = vals[nkeys];
	if (n->kind == STP_INDEX) {
		p->map = stp_lower_map(l, n->l->var);
		near_array(l, n->l);
	} else if (n->var->type == STP_STATS) {
		p->map = stp_lower_map(l, n->var);
	} else {
		p->var = stp_lower_var(l, n->var);
	}
}

ir_reg stp_lower_get(struct lower *l, const struct stp_lvalue *p)
{
	return p->var ? ir_vld(&l->b, p->var) : ir_mld(&l->b, p->map, p->keys);
}

void stp_lower_put(struct lower *l, const struct stp_lvalue *p, ir_reg val)
{
	if (p->var)
		ir_vst(&l->b, p->var, val);
	else
		ir_mst(&l->b, p->map, val, p->keys);
}

void stp_lower_store(struct lower *l, struct stp_node *n, ir_reg val)
{
	ir_vst(&l->b, stp_lower_var(l, n->var), val);
}

static bool is_variable(const struct stp_node *n)
{
	return n->kind == STP_NAME || (n->kind == STP_INDEX && n->l->kind == STP_NAME);
}

static bool is_bucket(struct lower *l, const struct stp_node *n)
{
	if (n->kind == STP_INDEX && !is_variable(n))
		stp_lower_refuse(l, n, NULL, "cannot assign to histogram buckets");
	return n->kind == STP_INDEX && !is_variable(n);
}

/* Add @by to @p.  Returns the value before. */
static ir_reg add_to(struct lower *l, const struct stp_lvalue *p, ir_reg by)
{
	ir_reg old;

	if (p->map)
		return ir_madd(&l->b, p->map, by, p->keys);
	if (p->var->cls == IR_GLOBAL)
		return ir_vadd(&l->b, p->var, by);
	old = ir_vld(&l->b, p->var);
	ir_vst(&l->b, p->var, ir_op2(&l->b, IR_ADD, old, by));
	return old;
}

ir_reg stp_lower_assign(struct lower *l, struct stp_node *n, bool used)
{
	struct stp_lvalue p;
	ir_reg val, old;

	if (is_bucket(l, n->l))
		return stp_lower_dummy(l, n->type);
	if (!is_variable(n->l))
		return stp_lower_write(l, n->l, n->r);
	if (!used && stp_lower_keep_late(l, n))
		return stp_lower_dummy(l, n->type);
	stp_lower_lvalue(l, n->l, &p, n->r, &val);
	switch (n->op) {
	case STP_OP_NONE:
		stp_lower_put(l, &p, val);
		if (n->l->kind == STP_NAME)
			n->l->var->settled = n->l->var->assigned == n && !l->loop && !l->call;
		return val;
	case STP_ADDEND:
		ir_stat(&l->b, p.map, val, p.keys);
		return val;
	case STP_ADD:
	case STP_SUB:
		if (n->op == STP_SUB)
			val = ir_op1(&l->b, IR_NEG, val);
		old = add_to(l, &p, val);
		return used ? ir_op2(&l->b, IR_ADD, old, val) : old;
	default:
		val = stp_lower_op(l, n->op, n, stp_lower_get(l, &p), val);
		if (p.map)
			near_array(l, n->l->l);
		stp_lower_put(l, &p, val);
		return val;
	}
}

ir_reg stp_lower_crement(struct lower *l, struct stp_node *n, bool used)
{
	struct stp_lvalue p;
	ir_reg by, old;

	if (is_bucket(l, n->l))
		return stp_lower_dummy(l, n->type);
	stp_lower_lvalue(l, n->l, &p, NULL, NULL);
	by = stp_lower_const(l, n->op == STP_ADD ? 1 : -1);
	old = add_to(l, &p, by);
	return n->kind == STP_PRE && used ? ir_op2(&l->b, IR_ADD, old, by) : old;
}

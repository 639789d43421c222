/*
 * Variables, and what is assigned to them and to elements of arrays.
 *
 * A global of several handlers is changed in one step where the IR can (adding to a number); else two handlers
 * on two CPUs may change it between each other's reading and writing.
 */
#include "stp/lower.h"

#include "base/arena.h"
#include "lang/diag.h"
#include "stp/point.h"

/* --- what there is ----------------------------------------------------------------------------------- */

static enum ir_class local_class(const struct low *l)
{
	return l->call && l->call->procedure ? IR_FRAME : IR_LOCAL;
}

struct ir_var *low_var(struct low *l, struct stp_var *v)
{
	if (!v->ir)
		v->ir = ir_var_new(l->prog, v->name, v->is_global ? IR_GLOBAL : local_class(l), low_slot(v->type));
	return v->ir;
}

struct ir_var *low_temp(struct low *l, enum stp_type type)
{
	return ir_var_new(l->prog, "", local_class(l), low_slot(type));
}

static void set_statistic(struct low *l, struct ir_map *m, const struct stp_var *v)
{
	m->stat = IR_STAT_PLAIN;
	if (v->stats & 1u << STP_HIST_LOG)
		m->stat = IR_STAT_LOG;
	if (v->stats & 1u << STP_HIST_LINEAR)
		m->stat = IR_STAT_LINEAR;
	for (int i = 0; i < 3; i++)
		m->linear[i] = v->hist[i];
	m->extremes = v->stats & (1u << STP_STAT_MIN | 1u << STP_STAT_MAX);
	m->squares = v->stats & 1u << STP_STAT_VARIANCE;
	if (!ir_stat_words(m)) {
		diag_error(l->diag, v->pos, "S_HIST", "semantic error: histogram of '%s' has impossible bounds or too many "
			   "buckets: identifier '%s'", v->name, v->name);
		diag_hint(l->diag, "@hist_linear takes the lowest value, a larger highest one, and the width of a bucket");
		m->stat = IR_STAT_PLAIN;
	}
}

struct ir_map *low_map(struct low *l, struct stp_var *v)
{
	struct ir_map *m = v->map;

	if (m)
		return m;
	m = v->map = ir_map_new(l->prog, v->name, IR_GLOBAL);
	m->nkeys = v->arity > 0 ? (uint32_t)v->arity : 0;
	for (uint32_t i = 0; i < m->nkeys; i++)
		m->keys[i] = low_slot(v->index_types[i]);
	if (v->type == STP_STATS)
		set_statistic(l, m, v);
	else
		m->value = low_slot(v->type);
	m->ordered = true;
	m->wraps = v->wrap;
	m->max_entries = !m->nkeys ? 1 : (uint32_t)(v->max_size ? v->max_size :
						    stp_get_limit(l->stp, STP_MAXMAPENTRIES));
	return m;
}

/* What is stored into the array @n may be one element too many. */
static void near_array(struct low *l, const struct stp_node *n)
{
	const struct stp_var *v = n->var;

	low_near(l, n->what, n->pos);
	if (v->max_size)
		l->code->nears[l->b.act].text = arena_printf(l->arena, "Array overflow, check size limit (%lld)",
							     (long long)v->max_size);
}

/* --- several values at once -------------------------------------------------------------------------- */

/* Registers that are alive do not outlive @n: control comes back from a loop or a procedure. */
static void find_parting(void *ctx, struct stp_node **child)
{
	const struct stp_node *n = *child;
	bool *found = ctx;

	*found |= n->kind == STP_CALL && (n->func || (n->builtin && n->builtin->parts));
	*found |= n->source && n->source->kind == STP_SRC_FORMAT;
	stp_each_node(*child, find_parting, ctx);
}

static bool parts(struct stp_node *n)
{
	bool found = false;

	find_parting(&found, &n);
	return found;
}

void low_values(struct low *l, struct stp_node *const *v, size_t n, ir_reg *vals)
{
	struct ir_var **kept = arena_alloc(l->arena, (n + 1) * sizeof(*kept));
	size_t last = 0;		/* behind the last one that parts */

	for (size_t i = 0; i < n; i++)
		if (v[i] && parts(v[i]))
			last = i + 1;
	for (size_t i = 0; i < n; i++) {
		if (!v[i])
			continue;
		vals[i] = low_expr(l, v[i]);
		if (i + 1 < last && vals[i] != IR_NO_REG && v[i]->kind != STP_NUM && v[i]->kind != STP_STR) {
			kept[i] = low_temp(l, v[i]->type);
			ir_vst(&l->b, kept[i], vals[i]);
		}
	}
	for (size_t i = 0; i < last; i++) {
		if (kept[i])
			vals[i] = ir_vld(&l->b, kept[i]);
		else if (v[i] && i + 1 < last && v[i]->kind == STP_NUM)
			vals[i] = low_const(l, v[i]->value);
		else if (v[i] && i + 1 < last && v[i]->kind == STP_STR)
			vals[i] = low_str(l, v[i]->str);
	}
}

/* --- places ------------------------------------------------------------------------------------------ */

void low_place(struct low *l, struct stp_node *n, struct low_place *p, struct stp_node *r, ir_reg *val)
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
	low_values(l, v, nkeys + (r != NULL), vals);
	for (size_t i = 0; i < nkeys; i++)
		p->keys[i] = vals[i];
	if (r)
		*val = vals[nkeys];
	if (n->kind == STP_INDEX) {
		p->map = low_map(l, n->l->var);
		near_array(l, n->l);
	} else if (n->var->type == STP_STATS) {
		p->map = low_map(l, n->var);
	} else {
		p->var = low_var(l, n->var);
	}
}

ir_reg low_get(struct low *l, const struct low_place *p)
{
	return p->var ? ir_vld(&l->b, p->var) : ir_mld(&l->b, p->map, p->keys);
}

void low_put(struct low *l, const struct low_place *p, ir_reg val)
{
	if (p->var)
		ir_vst(&l->b, p->var, val);
	else
		ir_mst(&l->b, p->map, val, p->keys);
}

void low_store(struct low *l, struct stp_node *n, ir_reg val)
{
	ir_vst(&l->b, low_var(l, n->var), val);
}

static bool is_variable(const struct stp_node *n)
{
	return n->kind == STP_NAME || (n->kind == STP_INDEX && n->l->kind == STP_NAME);
}

static bool is_bucket(struct low *l, const struct stp_node *n)
{
	if (n->kind == STP_INDEX && !is_variable(n))
		low_refuse(l, n, NULL, "cannot assign to histogram buckets");
	return n->kind == STP_INDEX && !is_variable(n);
}

/* Add @by to @p: the value before. */
static ir_reg add_to(struct low *l, const struct low_place *p, ir_reg by)
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

ir_reg low_assign(struct low *l, struct stp_node *n, bool used)
{
	struct low_place p;
	ir_reg val, old;

	if (is_bucket(l, n->l))
		return low_dummy(l, n->type);
	if (!is_variable(n->l))
		return low_write(l, n->l, n->r);
	low_place(l, n->l, &p, n->r, &val);
	switch (n->op) {
	case STP_OP_NONE:
		low_put(l, &p, val);
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
		val = low_op(l, n->op, n, low_get(l, &p), val);
		if (p.map)
			near_array(l, n->l->l);
		low_put(l, &p, val);
		return val;
	}
}

ir_reg low_crement(struct low *l, struct stp_node *n, bool used)
{
	struct low_place p;
	ir_reg by, old;

	if (is_bucket(l, n->l))
		return low_dummy(l, n->type);
	low_place(l, n->l, &p, NULL, NULL);
	by = low_const(l, n->op == STP_ADD ? 1 : -1);
	old = add_to(l, &p, by);
	return n->kind == STP_PRE && used ? ir_op2(&l->b, IR_ADD, old, by) : old;
}

/*
 * Operations on arrays and statistics: elements, extractors, buckets, membership, deletion, foreach.
 */
#include "stp/lower.h"

#include "abi/record.h"
#include "abi/stat.h"
#include "lang/diag.h"

/* --- histograms as arrays ---------------------------------------------------------------------------- */

static int64_t buckets(const struct ir_map *m)
{
	return (int64_t)ir_stat_words(m) - ABI_STAT_BUCKETS;
}

/* Does bucket @i exist? */
static ir_reg has_bucket(struct lower *l, const struct ir_map *m, ir_reg i)
{
	return ir_op2(&l->b, IR_ULT, i, stp_lower_const(l, buckets(m)));
}

static ir_reg lower_bucket(struct lower *l, struct stp_node *n)
{
	struct ir_block *some = ir_block_new(&l->b), *none = ir_block_new(&l->b);
	struct ir_block *in = ir_block_new(&l->b), *out = ir_block_new(&l->b);
	struct stp_node *stat = n->l->l;
	struct stp_lvalue p;
	ir_reg i;

	stp_lower_lvalue(l, stat, &p, n->args[0], &i);
	stp_lower_near(l, n->what, n->pos);
	ir_br(&l->b, ir_extract(&l->b, IR_SCOUNT, p.map, p.keys), some, none);
	ir_at(&l->b, none);
	ir_fault(&l->b, ABI_FAULT_EMPTY, stp_lower_const(l, 0));
	ir_at(&l->b, some);
	ir_br(&l->b, has_bucket(l, p.map, i), in, out);
	ir_at(&l->b, out);
	ir_raise(&l->b, stp_lower_str(l, "histogram index out of range"));
	ir_at(&l->b, in);
	return ir_bucket(&l->b, p.map, i, p.keys);
}

/* --- reading ----------------------------------------------------------------------------------------- */

ir_reg stp_lower_index(struct lower *l, struct stp_node *n)
{
	struct stp_lvalue p;

	if (n->kind == STP_INDEX && n->l->kind == STP_HIST)
		return lower_bucket(l, n);
	if (n->kind == STP_NAME && n->var && n->var->late)
		return stp_lower_late_text(l, n->var->late);
	stp_lower_lvalue(l, n, &p, NULL, NULL);
	if (p.map && p.map->stat) {
		stp_lower_refuse(l, n, "ask for @count, @sum, @min, @max, @avg or @variance of it",
				 "a statistic has no value of its own");
		return stp_lower_dummy(l, n->type);
	}
	return stp_lower_get(l, &p);
}

ir_reg stp_lower_extract(struct lower *l, struct stp_node *n)
{
	static const enum ir_op ops[] = {
		[STP_STAT_COUNT] = IR_SCOUNT, [STP_STAT_SUM] = IR_SSUM, [STP_STAT_MIN] = IR_SMIN,
		[STP_STAT_MAX] = IR_SMAX, [STP_STAT_AVG] = IR_SAVG, [STP_STAT_VARIANCE] = IR_SVARIANCE,
	};
	struct stp_lvalue p;

	stp_lower_lvalue(l, n->l, &p, NULL, NULL);
	stp_lower_near(l, n->what, n->pos);
	return ir_extract(&l->b, ops[n->stat], p.map, p.keys);
}

/* An iteration over the elements of @m whose key parts match @slice; NULL parts match all. */
static struct ir_iter *new_iter(struct lower *l, struct ir_map *m, struct stp_node *const *slice, size_t n)
{
	struct ir_iter *it = ir_iter_new(l->prog, m);

	for (size_t i = 0; i < n; i++)
		if (slice[i])
			it->given |= 1u << i;
	return it;
}

/* Begin @it, limited to @limit elements (NULL: @most).  1 if it could begin. */
static ir_reg begin_iter(struct lower *l, struct ir_iter *it, struct stp_node *limit, int64_t most,
			 struct stp_node *const *slice, size_t n)
{
	struct stp_node *v[STP_MAX_INDEXES + 1] = { limit };
	ir_reg vals[STP_MAX_INDEXES + 1];
	size_t k = 1;

	for (size_t i = 0; i < n; i++)
		if (slice[i])
			v[k++] = slice[i];
	stp_lower_values(l, v, k, vals);
	if (!limit)
		vals[0] = stp_lower_const(l, most);
	return ir_iter(&l->b, it, vals[0], vals + 1);
}

ir_reg stp_lower_in(struct lower *l, struct stp_node *n)
{
	struct ir_block *begun, *found, *end;
	struct stp_lvalue p;
	struct ir_iter *it;
	ir_reg r, more;
	bool wild = false;

	if (n->l->kind == STP_HIST) {
		stp_lower_lvalue(l, n->l->l, &p, n->args[0], &r);
		return has_bucket(l, p.map, r);
	}
	for (size_t i = 0; i < n->nargs; i++)
		wild |= !n->args[i];
	p.map = stp_lower_map(l, n->l->var);
	if (!wild) {
		stp_lower_values(l, n->args, n->nargs, p.keys);
		return ir_mhas(&l->b, p.map, p.keys);
	}
	begun = ir_block_new(&l->b);
	found = ir_block_new(&l->b);
	end = ir_block_new(&l->b);
	r = ir_reg_new(&l->b, IR_INT);
	it = new_iter(l, p.map, n->args, n->nargs);
	more = begin_iter(l, it, NULL, 1, n->args, n->nargs);
	ir_mov(&l->b, r, stp_lower_const(l, 0));
	ir_br(&l->b, more, begun, end);
	ir_at(&l->b, begun);
	ir_mov(&l->b, r, ir_inext(&l->b, it));
	ir_br(&l->b, r, found, end);
	ir_at(&l->b, found);
	ir_idone(&l->b, it);
	ir_jmp(&l->b, end);
	ir_at(&l->b, end);
	return r;
}

/* --- delete ------------------------------------------------------------------------------------------ */

/* delete a[x, *]: delete all matching elements. */
static void delete_wild(struct lower *l, struct stp_node *n, struct ir_map *m)
{
	struct ir_block *begun = ir_block_new(&l->b), *head = ir_block_new(&l->b);
	struct ir_block *body = ir_block_new(&l->b), *out = ir_block_new(&l->b);
	struct ir_iter *it = new_iter(l, m, n->args, n->nargs);
	ir_reg keys[STP_MAX_INDEXES];

	ir_br(&l->b, begin_iter(l, it, NULL, INT64_MAX, n->args, n->nargs), begun, out);
	ir_at(&l->b, begun);
	ir_jmp(&l->b, head);
	ir_at(&l->b, head);
	stp_lower_near(l, n->what, n->pos);
	ir_turn(&l->b);
	ir_br(&l->b, ir_inext(&l->b, it), body, out);
	ir_at(&l->b, body);
	for (unsigned int i = 0; i < m->nkeys; i++)
		keys[i] = ir_ikey(&l->b, it, i);
	ir_mdel(&l->b, m, keys);
	ir_jmp(&l->b, head);
	ir_at(&l->b, out);
}

void stp_lower_delete(struct lower *l, struct stp_stmt *s)
{
	struct stp_node *n = s->expr;
	struct stp_lvalue p = {0};
	bool wild = false;

	if (n->kind == STP_NAME && n->var->arity > 0) {
		ir_mclear(&l->b, stp_lower_map(l, n->var));
		return;
	}
	for (size_t i = 0; i < n->nargs; i++)
		wild |= !n->args[i];
	if (wild) {
		delete_wild(l, n, stp_lower_map(l, n->l->var));
		return;
	}
	stp_lower_lvalue(l, n, &p, NULL, NULL);
	if (p.map)
		ir_mdel(&l->b, p.map, p.keys);
	else
		stp_lower_put(l, &p, stp_lower_dummy(l, n->var->type));
}

/* --- foreach ----------------------------------------------------------------------------------------- */

static void set_sort(const struct stp_stmt *s, struct ir_iter *it)
{
	static const enum ir_sort sorts[] = {
		[STP_STAT_COUNT] = IR_SORT_COUNT, [STP_STAT_SUM] = IR_SORT_SUM, [STP_STAT_MIN] = IR_SORT_MIN,
		[STP_STAT_MAX] = IR_SORT_MAX, [STP_STAT_AVG] = IR_SORT_AVG, [STP_STAT_VARIANCE] = IR_SORT_VARIANCE,
	};

	if (!s->sort_dir)
		return;
	it->down = s->sort_dir < 0;
	if (s->sort_column) {
		it->sort = IR_SORT_KEY;
		it->column = s->sort_column - 1;
	} else if (s->sort_by_stat) {
		it->sort = sorts[s->sort_stat];
	} else {
		it->sort = it->map->stat ? IR_SORT_COUNT : IR_SORT_VALUE;
	}
}

/* The body of @loop, and the jump back to its head. */
static void lower_body(struct lower *l, struct stp_stmt *s, struct stp_lower_loop *loop)
{
	l->loop = loop;
	stp_lower_stmt(l, s->yes);
	stp_lower_count(l, 0, s->yes->what, s->yes->pos, true);
	l->loop = loop->outer;
	ir_jmp(&l->b, loop->again);
	ir_at(&l->b, loop->out);
	l->statements = 0;
}

/* foreach (i in @hist_log(x)): iterate over the numbers of the buckets. */
static void foreach_bucket(struct lower *l, struct stp_stmt *s)
{
	struct ir_block *head = ir_block_new(&l->b), *body = ir_block_new(&l->b);
	struct ir_block *again = ir_block_new(&l->b), *out = ir_block_new(&l->b);
	struct stp_lower_loop loop = { .again = again, .out = out, .tries = l->tries, .outer = l->loop };
	struct ir_var *i = stp_lower_temp(l, STP_LONG), *left = stp_lower_temp(l, STP_LONG), *kept[STP_MAX_INDEXES];
	struct stp_lvalue p;
	ir_reg n;

	ir_vst(&l->b, left, s->expr ? stp_lower_expr(l, s->expr) : stp_lower_const(l, INT64_MAX));
	stp_lower_lvalue(l, s->array->l, &p, NULL, NULL);
	for (uint32_t k = 0; k < p.map->nkeys; k++) {
		kept[k] = ir_var_new(l->prog, "", i->cls, p.map->keys[k]);
		ir_vst(&l->b, kept[k], p.keys[k]);
	}
	ir_vst(&l->b, i, stp_lower_const(l, 0));
	stp_lower_count(l, 1, s->what, s->pos, true);
	ir_jmp(&l->b, head);
	ir_at(&l->b, head);
	stp_lower_near(l, s->what, s->pos);
	ir_turn(&l->b);
	stp_lower_count(l, 1, s->what, s->pos, true);
	n = ir_vld(&l->b, i);
	n = ir_op2(&l->b, IR_AND, has_bucket(l, p.map, n), ir_op2(&l->b, IR_SLT, n, ir_vld(&l->b, left)));
	ir_br(&l->b, n, body, out);
	ir_at(&l->b, again);
	ir_vst(&l->b, i, ir_op2(&l->b, IR_ADD, ir_vld(&l->b, i), stp_lower_const(l, 1)));
	ir_jmp(&l->b, head);
	ir_at(&l->b, body);
	n = ir_vld(&l->b, i);
	stp_lower_store(l, s->keys[0], n);
	if (s->value) {
		for (uint32_t k = 0; k < p.map->nkeys; k++)
			p.keys[k] = ir_vld(&l->b, kept[k]);
		stp_lower_store(l, s->value, ir_bucket(&l->b, p.map, n, p.keys));
	}
	lower_body(l, s, &loop);
}

static void find_recursion_stmt(void *ctx, struct stp_stmt **child);

static void find_recursion(void *ctx, struct stp_node **child)
{
	const struct stp_node **found = ctx;
	const struct stp_node *n = *child;

	if (n->kind == STP_CALL && n->func && n->func->recursive)
		*found = n;
	stp_each_node(*child, find_recursion, ctx);
}

static void find_recursion_stmt(void *ctx, struct stp_stmt **child)
{
	stp_each_expr(*child, find_recursion, ctx);
	stp_each_stmt(*child, find_recursion_stmt, ctx);
}

/* An iteration belongs to the clause, not to a call: refuse a recursive call during it. */
static void check_recursion(struct lower *l, struct stp_stmt *s)
{
	const struct stp_node *found = NULL;

	if (!l->call || !l->call->procedure)
		return;
	find_recursion_stmt(&found, &s->yes);
	if (found)
		stp_lower_refuse(l, found, "call it behind the loop", "a function cannot call itself out of its foreach");
}

void stp_lower_foreach(struct lower *l, struct stp_stmt *s)
{
	struct stp_lower_loop loop = { .tries = l->tries, .outer = l->loop };
	struct ir_block *begun, *head, *body, *out;
	ir_reg more;

	if (s->array->kind == STP_HIST) {
		foreach_bucket(l, s);
		return;
	}
	check_recursion(l, s);
	begun = ir_block_new(&l->b);
	loop.again = head = ir_block_new(&l->b);
	body = ir_block_new(&l->b);
	loop.out = out = ir_block_new(&l->b);
	loop.iter = new_iter(l, stp_lower_map(l, s->array->var), s->slice, s->nslice);
	set_sort(s, loop.iter);
	more = begin_iter(l, loop.iter, s->expr, INT64_MAX, s->slice, s->nslice);
	stp_lower_count(l, 1, s->what, s->pos, true);
	ir_br(&l->b, more, begun, out);
	ir_at(&l->b, begun);
	ir_jmp(&l->b, head);
	ir_at(&l->b, head);
	stp_lower_near(l, s->what, s->pos);
	ir_turn(&l->b);
	stp_lower_count(l, 1, s->what, s->pos, false);
	ir_br(&l->b, ir_inext(&l->b, loop.iter), body, out);
	ir_at(&l->b, body);
	for (size_t i = 0; i < s->nkeys; i++)
		stp_lower_store(l, s->keys[i], ir_ikey(&l->b, loop.iter, (unsigned int)i));
	if (s->value)
		stp_lower_store(l, s->value, ir_ivalue(&l->b, loop.iter));
	lower_body(l, s, &loop);
}

/*
 * Elimination of code without effect, repeated until nothing more is found: branches excluded by a constant
 * condition, assignments to locals that are never read, expressions whose value is unused, functions that are never
 * called, empty handlers.
 */
#include "stp/sem.h"

#include <string.h>

#include "base/arena.h"
#include "lang/diag.h"

/* --- effects ----------------------------------------------------------------------------------------- */

struct effects {
	bool any;
};

static void find_effects(void *ctx, struct stp_node **child);
static bool is_pure(const struct stp_func *f);

static void find_effects_stmt(void *ctx, struct stp_stmt **child)
{
	struct effects *e = ctx;
	struct stp_stmt *st = *child;

	if (st->kind == STP_S_DELETE)
		e->any = true;
	stp_each_expr(st, find_effects, e);
	stp_each_stmt(st, find_effects_stmt, e);
}

/* An assignment to a function's own variable is no effect that its caller can see. */
static bool is_own_local(const struct stp_node *n)
{
	return n->kind == STP_NAME && n->var && !n->var->is_global;
}

static void find_effects(void *ctx, struct stp_node **child)
{
	const struct stp_node *n = *child;
	struct effects *e = ctx;

	switch (n->kind) {
	case STP_ASSIGN:
	case STP_PRE:
	case STP_POST:
		e->any |= !is_own_local(n->l);
		break;
	case STP_PRINT:
		e->any |= !n->print->to_string;
		break;
	case STP_CALL:
		if (n->func)
			e->any |= !is_pure(n->func);
		else
			e->any |= !n->builtin || !n->builtin->pure;
		break;
	default:
		break;
	}
	stp_each_node(*child, find_effects, e);
}

static bool is_pure(const struct stp_func *f)
{
	while (f && f->pure)
		f = f->overload;
	return !f;
}

/* Assume that all functions are pure, then find those that have an effect or call one that has. */
static void find_pure_funcs(struct sem *s)
{
	bool again;

	for (struct stp_func *f = s->prog->funcs; f; f = f->next)
		f->pure = true;
	do {
		again = false;
		for (struct stp_func *f = s->prog->funcs; f; f = f->next) {
			struct effects e = {0};

			if (!f->pure)
				continue;
			find_effects_stmt(&e, &f->body);
			f->pure = !e.any;
			again |= e.any;
		}
	} while (again);
}

static void find_effects_here(void *ctx, struct stp_node **child)
{
	struct effects *e = ctx;
	const struct stp_node *n = *child;

	if ((n->kind == STP_ASSIGN || n->kind == STP_PRE || n->kind == STP_POST) &&
	    (n->l->kind == STP_NAME || n->l->kind == STP_INDEX || n->l->kind == STP_TARGET || n->l->kind == STP_CAST ||
	     n->l->kind == STP_DEREF)) {
		e->any = true;
		return;
	}
	if (n->kind == STP_PRINT || n->kind == STP_CALL) {
		struct effects own = {0};
		struct stp_node alone = *n, *p = &alone;

		alone.nargs = 0;
		find_effects(&own, &p);
		e->any |= own.any;
	}
	stp_each_node(*child, find_effects_here, e);
}

static bool has_effect(struct stp_node *n)
{
	struct effects e = {0};

	find_effects_here(&e, &n);
	return e.any;
}

/* --- constant conditions ----------------------------------------------------------------------------- */

static bool is_const(const struct stp_node *n, bool *truth)
{
	if (n->kind != STP_NUM)
		return false;
	*truth = n->value != 0;
	return true;
}

static void become_truth(struct stp_node *n, bool truth)
{
	n->kind = STP_NUM;
	n->value = truth;
	n->l = n->r = NULL;
}

static void fold(void *ctx, struct stp_node **child)
{
	struct sem *s = ctx;
	struct stp_node *n = *child;
	bool truth, other;

	stp_each_node(n, fold, ctx);
	if (n->kind == STP_COND && is_const(n->cond, &truth)) {
		/* A value whose type depends on the condition is a mistake even if the condition is constant. */
		if ((n->l->kind == STP_NUM && n->r->kind == STP_STR) || (n->l->kind == STP_STR && n->r->kind == STP_NUM))
			return;
		*child = truth ? n->l : n->r;
		s->news++;
	} else if (n->kind == STP_LOGIC && is_const(n->l, &truth)) {
		if (truth == (n->op == STP_LOR))
			become_truth(n, truth);
		else if (is_const(n->r, &other))
			become_truth(n, other);
		else
			return;
		s->news++;
	} else if (n->kind == STP_UNARY && n->op == STP_LNOT && is_const(n->l, &truth)) {
		become_truth(n, !truth);
		s->news++;
	}
}

/* --- statements -------------------------------------------------------------------------------------- */

static void make_null(struct sem *s, struct stp_stmt *st)
{
	st->kind = STP_S_NULL;
	st->expr = st->init = st->incr = st->value = st->array = NULL;
	st->yes = st->no = NULL;
	st->n = st->nkeys = st->nslice = 0;
	s->news++;
}

/* Replace x = e by e if x is never read. */
static void drop_assignments(void *ctx, struct stp_node **child)
{
	struct sem *s = ctx;
	struct stp_node *n = *child;

	stp_each_node(n, drop_assignments, ctx);
	if (n->kind != STP_ASSIGN || n->l->kind != STP_NAME || !n->l->var || n->l->var->is_global || n->l->var->reads)
		return;
	diag_warn(s->diag, n->pos, "S_ELIDED", "Eliding assignment to '%s': %s", n->l->name, n->what);
	*child = n->r;
	s->news++;
}

static bool is_empty(const struct stp_stmt *st)
{
	return !st || st->kind == STP_S_NULL || (st->kind == STP_S_BLOCK && !st->n);
}

static void elide_if(struct sem *s, struct stp_stmt *st)
{
	bool truth;

	if (is_const(st->expr, &truth)) {
		struct stp_stmt *taken = truth ? st->yes : st->no;

		s->news++;
		if (!taken) {
			make_null(s, st);
			return;
		}
		/*
		 * A block, so that a jump in it does not make the following code unreachable: SystemTap checks that
		 * code's types.
		 */
		st->kind = STP_S_BLOCK;
		st->stmts = arena_alloc(s->arena, sizeof(*st->stmts));
		st->stmts[0] = taken;
		st->n = st->cap = 1;
		st->expr = NULL;
		st->yes = st->no = NULL;
		return;
	}
	if (st->no && is_empty(st->no)) {
		st->no = NULL;
		s->news++;
	}
	if (st->no || !is_empty(st->yes))
		return;
	st->kind = STP_S_EXPR;
	st->yes = NULL;
	s->news++;
}

/* Does nobody see that the loop has run? */
static bool is_idle(const struct stp_stmt *loop)
{
	return is_empty(loop->yes) && !(loop->init && has_effect(loop->init)) &&
	       !(loop->expr && has_effect(loop->expr)) && !(loop->incr && has_effect(loop->incr));
}

static bool leaves(const struct stp_stmt *st)
{
	return st->kind == STP_S_NEXT || st->kind == STP_S_RETURN || st->kind == STP_S_BREAK ||
	       st->kind == STP_S_CONTINUE;
}

static void elide_block(struct sem *s, struct stp_stmt *st)
{
	size_t n = 0;

	for (size_t i = 0; i < st->n; i++) {
		if (is_empty(st->stmts[i]))
			continue;
		st->stmts[n++] = st->stmts[i];
		if (leaves(st->stmts[i]))
			break;		/* the rest is unreachable */
	}
	s->news += n != st->n;
	st->n = n;
}

static void elide_stmt(void *ctx, struct stp_stmt **stmt)
{
	struct sem *s = ctx;
	struct stp_stmt *st = *stmt;
	bool truth;

	stp_each_expr(st, fold, s);
	stp_each_expr(st, drop_assignments, s);
	stp_each_stmt(st, elide_stmt, s);
	switch (st->kind) {
	case STP_S_EXPR:
		if (has_effect(st->expr))
			break;
		diag_warn(s->diag, st->pos, "S_ELIDED", "Eliding side-effect-free expression : %s", st->what);
		make_null(s, st);
		break;
	case STP_S_IF:
		elide_if(s, st);
		break;
	case STP_S_FOR:
		if (is_idle(st)) {
			diag_warn(s->diag, st->pos, "S_ELIDED", "Eliding side-effect-free 'for' statement: %s", st->what);
			make_null(s, st);
			break;
		}
		if (!st->expr || !is_const(st->expr, &truth) || truth)
			break;
		st->expr = st->init;
		st->init = st->incr = NULL;
		st->yes = NULL;
		if (st->expr)
			st->kind = STP_S_EXPR;
		else
			make_null(s, st);
		s->news++;
		break;
	case STP_S_FOREACH:
		if (is_empty(st->yes))
			make_null(s, st);
		break;
	case STP_S_TRY:
		if (is_empty(st->yes))
			make_null(s, st);
		break;
	case STP_S_BLOCK:
		elide_block(s, st);
		break;
	default:
		break;
	}
}

/* --- what is read and called, anew in each round ------------------------------------------------------ */

static void count_node(void *ctx, struct stp_node **child);

static void count_stmt(void *ctx, struct stp_stmt **child)
{
	struct stp_stmt *st = *child;

	/* The variables for keys, values and caught messages are assigned here, not read. */
	stp_each_expr(st, count_node, ctx);
	for (size_t i = 0; i < st->nkeys; i++)
		if (st->keys[i]->var)
			st->keys[i]->var->reads--;
	if (st->value && st->value->var)
		st->value->var->reads--;
	stp_each_stmt(st, count_stmt, ctx);
}

static void count_func(struct sem *s, struct stp_func *f)
{
	for (; f; f = f->overload) {
		if (f->needed)
			continue;
		f->needed = true;
		s->news++;
		count_stmt(s, &f->body);
	}
}

static void count_node(void *ctx, struct stp_node **child)
{
	struct stp_node *n = *child;
	struct sem *s = ctx;

	if (n->kind == STP_NAME && n->var)
		n->var->reads++;
	if (n->kind == STP_CALL && n->func)
		count_func(s, n->func);
	stp_each_node(n, count_node, ctx);
	if (n->kind == STP_ASSIGN && n->l->kind == STP_NAME && n->l->var)
		n->l->var->reads--;
}

static void forget_reads(struct stp_vars *vars)
{
	for (struct stp_var *v = vars->first; v; v = v->next)
		v->reads = 0;
}

static void count_all(struct sem *s)
{
	unsigned int news = s->news;

	forget_reads(&s->prog->globals);
	for (struct stp_func *f = s->prog->funcs; f; f = f->next) {
		f->needed = false;
		forget_reads(&f->params);
		forget_reads(&f->locals);
	}
	for (struct stp_handler *h = s->prog->handlers; h; h = h->next) {
		forget_reads(&h->locals);
		for (size_t i = 0; i < h->nconds; i++)
			count_node(s, &h->conds[i]);
		for (size_t i = 0; i < h->nblocks; i++)
			count_stmt(s, &h->blocks[i]);
	}
	s->news = news;
}

/* --- the whole --------------------------------------------------------------------------------------- */

static void elide_handlers(struct sem *s)
{
	struct stp_handler **at = &s->prog->handlers, *h;

	while ((h = *at)) {
		bool empty = true;

		for (size_t i = 0; i < h->nblocks; i++) {
			elide_stmt(s, &h->blocks[i]);
			empty &= is_empty(h->blocks[i]);
		}
		if (!empty) {
			at = &h->next;
			continue;
		}
		diag_warn(s->diag, h->pos, "S_ELIDED", "Probe '%s' has been elided: keyword", h->point->comps[0].name);
		*at = h->next;
		s->news++;
	}
	s->prog->handlers_tail = at;
}

static void elide_funcs(struct sem *s)
{
	struct stp_func **at = &s->prog->funcs, *f;

	while ((f = *at)) {
		if (f->needed) {
			elide_stmt(s, &f->body);
			at = &f->next;
			continue;
		}
		*at = f->next;
		s->news++;
	}
	s->prog->funcs_tail = at;
}

bool sem_elide(struct sem *s)
{
	do {
		s->news = 0;
		count_all(s);
		find_pure_funcs(s);
		elide_handlers(s);
		elide_funcs(s);
	} while (s->news);
	if (s->prog->handlers)
		return true;
	diag_error(s->diag, (struct src_pos){0}, "S_NO_PROBES", "semantic error: no probes found");
	return false;
}

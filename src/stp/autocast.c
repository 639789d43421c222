/*
 * p->member and p[i] where p is no context variable: the type that p points to is derived from the origin of its
 * value, through variables, arrays, functions and their parameters.
 *
 * That type is the resolver's (struct stp_source, target), and is compared by address.  A variable that gets pointers
 * to different types has none.  The pass is repeated until nothing new is found.
 *
 * Language reference: "Typecasting", autocast.
 */
#include "stp/sem.h"

#include "base/arena.h"
#include "lang/diag.h"

static void visit(void *ctx, struct stp_node **child);

/* Merge the type @have, which one more value points to, into *target, the variable's. */
static void meet(struct sem *s, const void **target, bool *targets, const void *have)
{
	if (!have || *targets || *target == have)
		return;
	*targets = *target != NULL;
	*target = *targets ? NULL : have;
	s->news++;
}

/* The variable or array of @n, the target of an assignment; or NULL. */
static struct stp_var *assigned(const struct stp_node *n)
{
	if (n->kind == STP_INDEX)
		n = n->l;
	return n->kind == STP_NAME ? n->var : NULL;
}

static const void *of_call(struct sem *s, const struct stp_node *n)
{
	for (struct stp_func *f = n->func; f; f = f->overload) {
		struct stp_var *p = f->params.first;

		for (size_t i = 0; i < n->nargs; i++, p = p->next)
			meet(s, &p->target, &p->targets, n->args[i]->target);
	}
	return n->func ? n->func->target : NULL;
}

static void deref(struct sem *s, struct stp_node *n)
{
	struct stp_source *source;

	if (n->source || !n->l->target || !s->resolver || !s->resolver->cast)
		return;
	source = arena_new_of(s->arena, struct stp_source);
	if (s->resolver->cast(s->resolver->ctx, s->handler ? s->handler->point : NULL, n, source, &n->why)) {
		n->source = source;
		s->news++;
	}
}

static const void *of(struct sem *s, struct stp_node *n)
{
	const struct stp_var *v;

	switch (n->kind) {
	case STP_NAME:
	case STP_INDEX:
		v = assigned(n);
		return v ? v->target : n->kind == STP_NAME && n->func ? n->func->target : NULL;
	case STP_CALL:
		return of_call(s, n);
	case STP_ASSIGN:
		return n->op == STP_OP_NONE ? n->r->target : NULL;
	case STP_COND:
		return n->l->target == n->r->target || !n->r->target ? n->l->target : n->l->target ? NULL : n->r->target;
	case STP_ENTRY:
		return n->l->target;
	case STP_DEREF:
		deref(s, n);
		return n->source ? n->source->target : NULL;
	case STP_TARGET:
	case STP_CAST:
		return n->source ? n->source->target : NULL;
	default:
		return NULL;
	}
}

static void visit(void *ctx, struct stp_node **child)
{
	struct stp_node *n = *child;
	struct sem *s = ctx;
	struct stp_var *v;

	stp_each_node(n, visit, ctx);
	n->target = of(s, n);
	if (n->kind == STP_ASSIGN && n->op == STP_OP_NONE) {
		v = assigned(n->l);
		if (v)
			meet(s, &v->target, &v->targets, n->r->target);
	}
	if (n->kind == STP_DEREF && !(n->source && n->l->target) && (n->l->kind != STP_DEREF || n->l->source) && s->final) {
		sem_error(s, n, "S_DEREF", "unknown type in dereference");
		if (n->why)
			diag_hint(s->diag, "%s", n->why);
		else
			diag_hint(s->diag, "write @cast(p, \"struct x\", \"/path/of/program\")->member");
	}
}

static void visit_stmt(void *ctx, struct stp_stmt **child)
{
	struct stp_stmt *st = *child;
	struct sem *s = ctx;
	struct stp_var *v;

	stp_each_expr(st, visit, ctx);
	if (st->kind == STP_S_RETURN && st->expr && s->func)
		meet(s, &s->func->target, &s->func->targets, st->expr->target);
	if (st->kind == STP_S_FOREACH && st->value && st->array->var) {
		v = assigned(st->value);
		if (v)
			meet(s, &v->target, &v->targets, st->array->var->target);
	}
	stp_each_stmt(st, visit_stmt, ctx);
}

static void round_of(struct sem *s)
{
	for (struct stp_handler *h = s->prog->handlers; h; h = h->next) {
		s->handler = h;
		s->func = NULL;
		for (size_t i = 0; i < h->nconds; i++)
			visit(s, &h->conds[i]);
		for (size_t i = 0; i < h->nblocks; i++)
			visit_stmt(s, &h->blocks[i]);
	}
	for (struct stp_func *f = s->prog->funcs; f; f = f->next) {
		s->handler = NULL;
		s->func = f;
		visit_stmt(s, &f->body);
	}
}

bool sem_autocast(struct sem *s)
{
	unsigned int errors = s->diag->errors;

	s->final = false;
	do {
		s->news = 0;
		round_of(s);
	} while (s->news);
	s->final = true;
	round_of(s);
	return s->diag->errors == errors;
}

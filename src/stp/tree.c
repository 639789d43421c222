/*
 * Helpers for the tree: variables, iteration, copying.
 */
#include "stp/ast.h"

#include <string.h>

#include "base/arena.h"

struct stp_prog *stp_prog_new(struct arena *a)
{
	struct stp_prog *p = arena_new_of(a, struct stp_prog);

	p->arena = a;
	p->globals.tail = &p->globals.first;
	p->probes_tail = &p->probes;
	p->funcs_tail = &p->funcs;
	p->handlers_tail = &p->handlers;
	return p;
}

struct stp_var *stp_var_add(struct arena *a, struct stp_vars *vars, const char *name, struct src_pos pos)
{
	struct stp_var *v = arena_new_of(a, struct stp_var);

	v->name = name;
	v->pos = pos;
	v->arity = STP_ARITY_UNKNOWN;
	*vars->tail = v;
	vars->tail = &v->next;
	return v;
}

struct stp_var *stp_var_find(const struct stp_vars *vars, const char *name)
{
	struct stp_var *v;

	for (v = vars->first; v && strcmp(v->name, name); v = v->next)
		;
	return v;
}

static void each(struct stp_node **v, size_t n, void (*f)(void *ctx, struct stp_node **child), void *ctx)
{
	for (size_t i = 0; i < n; i++)
		if (v[i])
			f(ctx, &v[i]);
}

void stp_each_node(struct stp_node *n, void (*f)(void *ctx, struct stp_node **child), void *ctx)
{
	if (n->cond)
		f(ctx, &n->cond);
	if (n->l)
		f(ctx, &n->l);
	if (n->r)
		f(ctx, &n->r);
	each(n->args, n->nargs, f, ctx);
	for (size_t i = 0; i < n->nparts; i++)
		if (n->parts[i].index)
			f(ctx, &n->parts[i].index);
}

void stp_each_expr(struct stp_stmt *s, void (*f)(void *ctx, struct stp_node **child), void *ctx)
{
	struct stp_node **first[] = { &s->init, &s->value };
	struct stp_node **last[] = { &s->array, &s->expr, &s->incr };

	for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++)
		each(first[i], 1, f, ctx);
	each(s->keys, s->nkeys, f, ctx);
	each(s->slice, s->nslice, f, ctx);
	for (size_t i = 0; i < sizeof(last) / sizeof(last[0]); i++)
		each(last[i], 1, f, ctx);
}

void stp_each_stmt(struct stp_stmt *s, void (*f)(void *ctx, struct stp_stmt **child), void *ctx)
{
	for (size_t i = 0; i < s->n; i++)
		f(ctx, &s->stmts[i]);
	if (s->yes)
		f(ctx, &s->yes);
	if (s->no)
		f(ctx, &s->no);
}

static void copy_child(void *ctx, struct stp_node **child)
{
	*child = stp_copy_node(ctx, *child);
}

static void copy_child_stmt(void *ctx, struct stp_stmt **child)
{
	*child = stp_copy_stmt(ctx, *child);
}

static void *copy_array(struct arena *a, const void *v, size_t n, size_t size)
{
	void *copy;

	if (!n)
		return NULL;
	copy = arena_alloc(a, n * size);
	memcpy(copy, v, n * size);
	return copy;
}

struct stp_node *stp_copy_node(struct arena *a, const struct stp_node *n)
{
	struct stp_node *c = copy_array(a, n, 1, sizeof(*n));

	c->args = copy_array(a, n->args, n->nargs, sizeof(*n->args));
	c->args_cap = n->nargs;
	c->parts = copy_array(a, n->parts, n->nparts, sizeof(*n->parts));
	c->parts_cap = n->nparts;
	stp_each_node(c, copy_child, a);
	return c;
}

struct stp_stmt *stp_copy_stmt(struct arena *a, const struct stp_stmt *s)
{
	struct stp_stmt *c = copy_array(a, s, 1, sizeof(*s));

	c->stmts = copy_array(a, s->stmts, s->n, sizeof(*s->stmts));
	c->cap = s->n;
	c->keys = copy_array(a, s->keys, s->nkeys, sizeof(*s->keys));
	c->keys_cap = s->nkeys;
	c->slice = copy_array(a, s->slice, s->nslice, sizeof(*s->slice));
	c->slice_cap = s->nslice;
	stp_each_expr(c, copy_child, a);
	stp_each_stmt(c, copy_child_stmt, a);
	return c;
}

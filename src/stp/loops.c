/*
 * Checks of loops: break and continue occur only in loops; foreach must not change the array that it iterates over.
 */
#include "stp/sem.h"

#include "base/arena.h"
#include "lang/diag.h"

/* The state of a walk: the loops around the current statement, and the arrays of their foreach. */
struct walk {
	struct sem *sem;
	unsigned int loops;
	const struct stp_var *array;
	const struct walk *outer;
};

struct search {
	const struct stp_var *var;
	unsigned int number;
	bool found;
};

static void find_change_stmt(void *ctx, struct stp_stmt **child);

static const struct stp_var *changed(const struct stp_node *n)
{
	if (n->kind != STP_ASSIGN && n->kind != STP_PRE && n->kind != STP_POST)
		return NULL;
	return n->l->kind == STP_INDEX ? n->l->l->var : n->l->var;
}

static void find_change(void *ctx, struct stp_node **child)
{
	struct search *f = ctx;

	f->found |= changed(*child) == f->var;
	stp_each_node(*child, find_change, ctx);
	if ((*child)->kind != STP_CALL || f->found)
		return;
	for (struct stp_func *g = (*child)->func; g; g = g->overload) {
		if (g->mark == f->number)
			continue;
		g->mark = f->number;
		find_change_stmt(f, &g->body);
	}
}

/* The array from which delete removes an element; NULL if it deletes a whole array, which SystemTap permits. */
static const struct stp_node *deleted(const struct stp_stmt *s)
{
	return s->kind == STP_S_DELETE && s->expr->kind == STP_INDEX ? s->expr->l : NULL;
}

static void find_change_stmt(void *ctx, struct stp_stmt **child)
{
	const struct stp_node *gone = deleted(*child);
	struct search *f = ctx;

	f->found |= gone && gone->var == f->var;
	stp_each_expr(*child, find_change, ctx);
	stp_each_stmt(*child, find_change_stmt, ctx);
}

static void change_error(const struct walk *w, const struct stp_node *n)
{
	sem_error(w->sem, n, "S_FOREACH_CHANGE", "variable '%s' modified during 'foreach' iteration", n->var->name);
}

static void check_node(void *ctx, struct stp_node **child)
{
	const struct walk *w = ctx;
	struct stp_node *n = *child;

	for (const struct walk *v = w; v; v = v->outer) {
		struct search f = { .var = v->array, .number = w->sem->searches + 1 };

		if (!v->array)
			continue;
		if (changed(n) == v->array) {
			change_error(w, n->l->kind == STP_INDEX ? n->l->l : n->l);
			continue;
		}
		if (n->kind != STP_CALL || !n->func)
			continue;
		w->sem->searches++;
		find_change(&f, &n);
		if (f.found)
			sem_error(w->sem, n, "S_FOREACH_CHANGE",
				  "function call modifies var '%s' during 'foreach' iteration", v->array->name);
	}
	stp_each_node(n, check_node, ctx);
}

static void check_delete(const struct walk *w, const struct stp_node *gone)
{
	for (const struct walk *v = w; gone && v; v = v->outer)
		if (v->array && v->array == gone->var)
			change_error(w, gone);
}

static void check_stmt(void *ctx, struct stp_stmt **child)
{
	const struct walk *outer = ctx;
	struct walk w = { .sem = outer->sem, .loops = outer->loops, .outer = outer };
	struct stp_stmt *st = *child;

	if ((st->kind == STP_S_BREAK || st->kind == STP_S_CONTINUE) && !w.loops)
		diag_error(w.sem->diag, st->pos, "S_LOOP", "semantic error: cannot '%s' outside loop: %s",
			   st->kind == STP_S_BREAK ? "break" : "continue", st->what);
	stp_each_expr(st, check_node, &w);
	check_delete(&w, deleted(st));
	w.loops += st->kind == STP_S_FOR || st->kind == STP_S_FOREACH;
	if (st->kind == STP_S_FOREACH)
		w.array = st->array->var;
	stp_each_stmt(st, check_stmt, &w);
}

bool sem_loops(struct sem *s)
{
	unsigned int errors = s->diag->errors;
	struct walk w = { .sem = s };

	for (struct stp_handler *h = s->prog->handlers; h; h = h->next)
		for (size_t i = 0; i < h->nblocks; i++)
			check_stmt(&w, &h->blocks[i]);
	for (struct stp_func *f = s->prog->funcs; f; f = f->next)
		check_stmt(&w, &f->body);
	return s->diag->errors == errors;
}

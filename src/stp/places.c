/*
 * Stacks and names of addresses as values.
 *
 * A program knows their numbers alone; the tracer makes the text when it is printed (out/printf_stp.c).  So as a value
 * such a text is a mark with the number, IR_MARK (ir/ir.h), in a string.  It can be kept, joined to other texts and
 * printed, and a stack can be a key and be compared with another one; what would look at the text itself is a mistake,
 * and so is a key or a comparison of names, since different addresses have the same name.
 *
 * Which variables and functions have marks is found by following assignments, until nothing new is found.
 */
#include "stp/sem.h"

#include <string.h>

#include "lang/diag.h"
#include "lang/format.h"
#include "stp/lower_func.h"

struct places {
	struct sem *sem;
	struct stp_func *func;		/* the function at hand, or NULL */
	bool changed;
	bool report;			/* the last round */
};

static enum stp_mark value(struct places *p, struct stp_node *n);

static void refuse(struct places *p, const struct stp_node *n, const char *instead)
{
	if (!p->report)
		return;
	sem_error(p->sem, n, "S_PLACE_VALUE", "names of addresses are known only where they are printed");
	diag_hint(p->sem->diag, "%s", instead);
}

static void add(struct places *p, enum stp_mark *to, enum stp_mark mark)
{
	if (mark <= *to)
		return;
	*to = mark;
	p->changed = true;
}

static enum stp_mark most(enum stp_mark a, enum stp_mark b)
{
	return a > b ? a : b;
}

/* A value that is looked at. */
static void plain(struct places *p, struct stp_node *n)
{
	if (n && value(p, n))
		refuse(p, n, "make it an argument of print, printf or another print, or keep it in a variable");
}

static void plain_child(void *ctx, struct stp_node **child)
{
	plain(ctx, *child);
}

static void keys(struct places *p, struct stp_node **v, size_t n, struct stp_var *array)
{
	for (size_t i = 0; i < n; i++) {
		enum stp_mark mark = v[i] ? value(p, v[i]) : STP_MARK_NONE;

		if (mark == STP_MARK_NAME)
			refuse(p, v[i], "several addresses have one name, so it is no key: use the address, or a stack");
		else if (array)
			add(p, &array->key_mark, mark);
	}
}

static struct stp_var *array_of(const struct stp_node *n)
{
	return n && n->kind == STP_NAME ? n->var : NULL;
}

static void assign(struct places *p, struct stp_node *to, enum stp_mark mark)
{
	struct stp_var *v = to->kind == STP_INDEX ? array_of(to->l) : array_of(to);

	if (to->kind == STP_INDEX)
		keys(p, to->args, to->nargs, v);
	if (v)
		add(p, &v->mark, mark);
	else if (mark)
		refuse(p, to, "keep it in a variable of the script");
}

static void add_param(struct places *p, struct stp_func *f, size_t i, enum stp_mark mark)
{
	struct stp_var *v = f->params.first;

	for (; v && i; i--)
		v = v->next;
	if (v)
		add(p, &v->mark, mark);
}

static enum stp_mark call(struct places *p, struct stp_node *n)
{
	enum stp_mark mark = STP_MARK_NONE;

	if (n->builtin && n->builtin->how == STP_BY_SHOW) {
		mark = n->builtin->number < IR_SHOW_FUNC ? STP_MARK_STACK : STP_MARK_NAME;
		for (size_t i = 0; i < n->nargs; i++) {
			if (n->args[i]->type != STP_STRINGS)
				plain(p, n->args[i]);
			else if (value(p, n->args[i]) != STP_MARK_STACK)
				refuse(p, n, "write sprint_usyms(ubacktrace()), or keep ubacktrace() in a variable");
		}
		return mark;
	}
	if (n->builtin && n->builtin->lower == stp_func_print_usyms) {
		if (value(p, n->args[0]) != STP_MARK_STACK)
			refuse(p, n, "write print_usyms(ubacktrace()), or keep ubacktrace() in a variable");
		return STP_MARK_NONE;
	}
	if (n->builtin) {
		stp_each_node(n, plain_child, p);
		return STP_MARK_NONE;
	}
	/* Each argument once, however many functions have the name: calls are arguments of calls. */
	for (size_t i = 0; i < n->nargs; i++) {
		enum stp_mark arg = value(p, n->args[i]);

		for (struct stp_func *f = n->func; f; f = f->overload)
			add_param(p, f, i, arg);
	}
	for (struct stp_func *f = n->func; f; f = f->overload)
		mark = most(mark, f->mark_of_result);
	return mark;
}

/* A text that the program makes: a mark is longer or shorter than what it stands for. */
static bool is_cut(const struct stp_node *n)
{
	for (size_t i = 0; n->fmt && i < n->fmt->n; i++)
		if (n->fmt->convs[i].kind == FMT_STRING && (n->fmt->convs[i].has_width || n->fmt->convs[i].has_prec))
			return true;
	return false;
}

static enum stp_mark print(struct places *p, struct stp_node *n)
{
	enum stp_mark mark = STP_MARK_NONE;

	for (size_t i = 0; i < n->nargs; i++)
		if (n->args[i]->kind != STP_HIST)
			mark = most(mark, value(p, n->args[i]));
	if (mark && n->print->to_string && is_cut(n))
		refuse(p, n, "a text with a width or precision has to be printed at once");
	return n->print->to_string ? mark : STP_MARK_NONE;
}

static bool is_empty(const struct stp_node *n)
{
	return n->kind == STP_STR && !n->str_len;
}

static enum stp_mark binary(struct places *p, struct stp_node *n)
{
	enum stp_mark l, r;

	if (n->op == STP_CONCAT) {
		l = value(p, n->l);
		return most(l, value(p, n->r));
	}
	if (n->op != STP_EQ && n->op != STP_NE) {
		stp_each_node(n, plain_child, p);
		return STP_MARK_NONE;
	}
	l = value(p, n->l);
	r = value(p, n->r);
	if ((l || r) && !((l == STP_MARK_STACK || is_empty(n->l)) && (r == STP_MARK_STACK || is_empty(n->r))))
		refuse(p, l ? n->l : n->r, "only stacks can be compared, with each other and with \"\"");
	return STP_MARK_NONE;
}

/* What of marks the value of @n has. */
static enum stp_mark value(struct places *p, struct stp_node *n)
{
	enum stp_mark mark;

	switch (n->kind) {
	case STP_NAME:
		if (n->builtin || n->func)
			return call(p, n);
		return n->var ? n->var->mark : STP_MARK_NONE;
	case STP_INDEX:
		keys(p, n->args, n->nargs, array_of(n->l));
		return array_of(n->l) ? array_of(n->l)->mark : STP_MARK_NONE;
	case STP_IN:
		keys(p, n->args, n->nargs, array_of(n->l));
		return STP_MARK_NONE;
	case STP_CALL:
		return call(p, n);
	case STP_COND:
		plain(p, n->cond);
		mark = value(p, n->l);
		return most(mark, value(p, n->r));
	case STP_ASSIGN:
		mark = value(p, n->r);
		assign(p, n->l, mark);
		return mark;
	case STP_PRE: case STP_POST:
		value(p, n->l);
		return STP_MARK_NONE;
	case STP_BINARY:
		return binary(p, n);
	case STP_ENTRY:
		mark = value(p, n->l);
		if (mark)
			refuse(p, n->l, "keep it in an array at the entry");
		return STP_MARK_NONE;
	case STP_EXTRACT: case STP_HIST:
		if (n->l)
			value(p, n->l);
		return STP_MARK_NONE;
	case STP_PRINT:
		return print(p, n);
	default:
		stp_each_node(n, plain_child, p);
		return STP_MARK_NONE;
	}
}

static void foreach_loop(struct places *p, struct stp_stmt *s)
{
	struct stp_var *array = array_of(s->array);

	for (size_t i = 0; array && i < s->nkeys; i++)
		if (s->keys[i]->var && s->keys[i]->type == STP_STRINGS)
			add(p, &s->keys[i]->var->mark, array->key_mark);
	if (array && s->value && s->value->var)
		add(p, &s->value->var->mark, array->mark);
	keys(p, s->slice, s->nslice, array);
	if (s->expr)
		plain(p, s->expr);
}

static void each_expr(void *ctx, struct stp_node **child)
{
	value(ctx, *child);
}

static void stmt(void *ctx, struct stp_stmt **child)
{
	struct places *p = ctx;
	struct stp_stmt *s = *child;

	switch (s->kind) {
	case STP_S_FOREACH:
		foreach_loop(p, s);
		break;
	case STP_S_RETURN:
		if (s->expr && p->func)
			add(p, &p->func->mark_of_result, value(p, s->expr));
		break;
	case STP_S_IF: case STP_S_FOR:
		if (s->init)
			value(p, s->init);
		plain(p, s->expr);
		if (s->incr)
			value(p, s->incr);
		break;
	default:
		stp_each_expr(s, each_expr, p);
		break;
	}
	stp_each_stmt(s, stmt, p);
}

static void one_round(struct places *p)
{
	p->changed = false;
	for (struct stp_func *f = p->sem->prog->funcs; f; f = f->next) {
		p->func = f;
		if (f->needed && f->body)
			stmt(p, &f->body);
	}
	p->func = NULL;
	for (struct stp_handler *h = p->sem->prog->handlers; h; h = h->next) {
		for (size_t i = 0; i < h->nconds; i++)
			plain(p, h->conds[i]);
		for (size_t i = 0; i < h->nblocks; i++)
			stmt(p, &h->blocks[i]);
	}
}

bool sem_places(struct sem *s)
{
	struct places p = { .sem = s };
	unsigned int before = s->diag->errors;

	do
		one_round(&p);
	while (p.changed);
	p.report = true;
	one_round(&p);
	return s->diag->errors == before;
}

/*
 * Types, over the whole program.
 *
 * Each round visits every expression with the type that its context requires, if any.  A type found for a variable,
 * an array's index, a parameter or a function's result is used by later visits; the rounds end when one finds nothing
 * new.  A final round reports what is still unknown.
 */
#include "stp/sem.h"

#include <string.h>

#include "base/arena.h"
#include "lang/diag.h"
#include "lang/format.h"

static enum stp_type infer(struct sem *s, struct stp_node *n, enum stp_type want);
static void infer_stmt(void *ctx, struct stp_stmt **child);

/* --- findings ---------------------------------------------------------------------------------------- */

static void mismatch(struct sem *s, const struct stp_node *n, enum stp_type want, enum stp_type have)
{
	sem_error(s, n, "S_TYPE", "type mismatch: expected %s but found %s", stp_type_text(want), stp_type_text(have));
}

/* Reconcile the type @have of @n with the type @want that its context requires. */
static enum stp_type expect(struct sem *s, struct stp_node *n, enum stp_type want, enum stp_type have)
{
	if (want != STP_UNKNOWN && have != STP_UNKNOWN && want != have)
		mismatch(s, n, want, have);
	if (n->type == STP_UNKNOWN && have != STP_UNKNOWN) {
		n->type = have;
		s->news++;
	}
	return have;
}

static void unresolved(struct sem *s, const struct stp_node *n)
{
	if (s->final)
		diag_error(s->diag, n->pos, "S_UNRESOLVED", "semantic error: unresolved type : %s", n->what);
}

/* Reconcile the declared or found type of a variable, an index or a result with @have, the type of its use @n. */
static enum stp_type meet(struct sem *s, struct stp_node *n, const char *what, enum stp_type *type,
			  struct src_pos *pos, const char **where, enum stp_type have)
{
	if (*type == STP_UNKNOWN && have != STP_UNKNOWN) {
		*type = have;
		*pos = n->pos;
		*where = n->what;
		s->news++;
	} else if (have != STP_UNKNOWN && *type != have) {
		sem_error(s, n, "S_TYPE", "%s%stype mismatch (%s)", what, *what ? " " : "", stp_type_text(have));
		diag_hint(s->diag, "type%s%s was first inferred here (%s): %s", *what ? " of " : "", what,
			  stp_type_text(*type), sem_position(s, *where, *pos));
	}
	return *type;
}

static enum stp_type meet_var(struct sem *s, struct stp_node *n, struct stp_var *v, enum stp_type have)
{
	return meet(s, n, "", &v->type, &v->type_pos, &v->type_what, have);
}

/* What messages of meet() call an index or argument. */
static const char *const nth_index[STP_MAX_INDEXES + 1] = {
	"index 0", "index 1", "index 2", "index 3", "index 4", "index 5", "index 6", "index 7", "index 8", "index",
};

static bool meet_arity(struct sem *s, struct stp_node *n, size_t arity)
{
	struct stp_var *v = n->var;

	if (v->arity == STP_ARITY_UNKNOWN) {
		v->arity = (int)arity;
		v->arity_pos = n->pos;
		v->arity_what = n->what;
		v->index_types = arena_alloc(s->arena, (arity + 1) * sizeof(*v->index_types));
		v->index_pos = arena_alloc(s->arena, (arity + 1) * sizeof(*v->index_pos));
		v->index_what = arena_alloc(s->arena, (arity + 1) * sizeof(*v->index_what));
		s->news++;
		if (!arity && (v->max_size || v->wrap))
			sem_error(s, n, "S_ARITY", "inconsistent arity (array with a size used as a scalar)");
		if (arity > STP_MAX_INDEXES)
			sem_error(s, n, "S_ARITY", "more than %d indexes", STP_MAX_INDEXES);
		return true;
	}
	if (v->arity == (int)arity)
		return true;
	sem_error(s, n, "S_ARITY", "inconsistent arity (%d vs %zu)", v->arity, arity);
	diag_hint(s->diag, "arity %d first inferred here: %s", v->arity, sem_position(s, v->arity_what, v->arity_pos));
	return false;
}

/* --- arrays ------------------------------------------------------------------------------------------ */

static void infer_indexes(struct sem *s, struct stp_node *array, struct stp_node **v, size_t n)
{
	if (array->kind == STP_HIST) {
		infer(s, array, STP_UNKNOWN);
		for (size_t i = 0; i < n; i++)
			if (v[i])
				infer(s, v[i], STP_LONG);
		return;
	}
	if (!array->var || !meet_arity(s, array, n))
		return;
	for (size_t i = 0; i < n; i++) {
		struct stp_var *a = array->var;
		enum stp_type t;

		if (!v[i])
			continue;
		t = infer(s, v[i], a->index_types[i] == STP_UNKNOWN ? STP_UNKNOWN : v[i]->kind == STP_NAME ?
			  a->index_types[i] : STP_UNKNOWN);
		meet(s, v[i], nth_index[i < STP_MAX_INDEXES ? i : STP_MAX_INDEXES], &a->index_types[i], &a->index_pos[i],
		     &a->index_what[i], t);
		if (s->final && a->index_types[i] == STP_UNKNOWN)
			unresolved(s, v[i]);
	}
}

static enum stp_type infer_index(struct sem *s, struct stp_node *n, enum stp_type want)
{
	enum stp_type t;

	infer_indexes(s, n->l, n->args, n->nargs);
	if (n->l->kind == STP_HIST)
		return expect(s, n, want, STP_LONG);
	if (!n->l->var)
		return STP_UNKNOWN;
	t = meet_var(s, n->l, n->l->var, want);
	if (t == STP_UNKNOWN)
		unresolved(s, n->l);
	n->type = t;
	return t;
}

/* --- names and calls --------------------------------------------------------------------------------- */

static enum stp_type infer_name(struct sem *s, struct stp_node *n, enum stp_type want)
{
	enum stp_type t;

	if (!n->var || (n->var->is_global && !meet_arity(s, n, 0)))
		return STP_UNKNOWN;
	t = meet_var(s, n, n->var, want);
	if (t == STP_UNKNOWN)
		unresolved(s, n);
	n->type = t;
	return t;
}

static struct stp_var *param(const struct stp_func *f, size_t i)
{
	struct stp_var *v = f->params.first;

	while (i--)
		v = v->next;
	return v;
}

static enum stp_type infer_call(struct sem *s, struct stp_node *n, enum stp_type want)
{
	enum stp_type t = STP_UNKNOWN;

	if (n->builtin) {
		for (size_t i = 0; i < n->nargs; i++)
			infer(s, n->args[i], n->builtin->params[i]);
		/* A function without a result fits any type. */
		return expect(s, n, want, n->builtin->result != STP_UNKNOWN ? n->builtin->result : want);
	}
	if (!n->func)
		return STP_UNKNOWN;
	for (size_t i = 0; i < n->nargs; i++) {
		struct stp_node *arg = n->args[i];
		enum stp_type have = infer(s, arg, arg->kind == STP_NAME ? param(n->func, i)->type : STP_UNKNOWN);

		for (struct stp_func *f = n->func; f; f = f->overload) {
			struct stp_var *p = param(f, i);

			meet(s, arg, nth_index[i < STP_MAX_INDEXES ? i : STP_MAX_INDEXES], &p->type, &p->type_pos,
			     &p->type_what, have);
		}
	}
	for (struct stp_func *f = n->func; f; f = f->overload)
		t = meet(s, n, "", &f->type, &f->type_pos, &f->type_what, want);
	n->type = t;
	return t;
}

/* --- operators --------------------------------------------------------------------------------------- */

/* The type of @n as far as it is known without its context. */
static enum stp_type known(const struct stp_node *n)
{
	return n->kind == STP_NUM ? STP_LONG : n->kind == STP_STR ? STP_STRINGS : n->type;
}

/* Both sides have the same type, which may be known from either: @first is visited with the known type of @second. */
static enum stp_type infer_same(struct sem *s, struct stp_node *first, struct stp_node *second, enum stp_type want)
{
	enum stp_type t = want != STP_UNKNOWN ? want : known(second), other;

	other = infer(s, first, t);
	if (t == STP_UNKNOWN)
		t = other;
	other = infer(s, second, t);
	return t == STP_UNKNOWN ? other : t;
}

static enum stp_type infer_binary(struct sem *s, struct stp_node *n, enum stp_type want)
{
	switch (n->op) {
	case STP_CONCAT:
		infer(s, n->l, STP_STRINGS);
		infer(s, n->r, STP_STRINGS);
		return expect(s, n, want, STP_STRINGS);
	case STP_EQ:
	case STP_NE:
	case STP_LT:
	case STP_LE:
	case STP_GT:
	case STP_GE:
		if (infer_same(s, n->l, n->r, STP_UNKNOWN) == STP_STATS)
			sem_error(s, n, "S_TYPE", "statistics cannot be compared");
		return expect(s, n, want, STP_LONG);
	default:
		infer(s, n->l, STP_LONG);
		infer(s, n->r, STP_LONG);
		return expect(s, n, want, STP_LONG);
	}
}

/* SystemTap's message when @n is written to without -g; or NULL. */
static const char *guru_only(const struct stp_node *n)
{
	if (n->kind == STP_DEREF)
		return "write not permitted; need stap -g";
	if (n->kind == STP_CAST)
		return "write to @cast context variable not permitted; need stap -g";
	return n->is_var ? "write to @var variable not permitted; need stap -g" :
			   "write to target variable not permitted; need stap -g";
}

/* Why @n, if it is data of the traced program, cannot be written to with "op="; or NULL. */
static const char *unwritable(const struct sem *s, const struct stp_node *n)
{
	if (n->kind != STP_TARGET && n->kind != STP_CAST && n->kind != STP_DEREF)
		return NULL;
	if (!s->guru)
		return guru_only(n);
	if (n->pretty)
		return "cannot write to pretty-printed variable";
	if (n->addressed)
		return "cannot write to member address";
	if (n->source && n->source->readonly)
		return n->source->readonly;
	return n->kind == STP_TARGET && !strncmp(n->name, "$$", 2) ? "cannot write to context variable" : NULL;
}

/* Check whether @at may change @n by the operator @op. */
static bool may_write(struct sem *s, const struct stp_node *at, enum stp_op op, const struct stp_node *n)
{
	const char *why = unwritable(s, n);
	bool traced = n->kind == STP_TARGET || n->kind == STP_CAST || n->kind == STP_DEREF;

	if (traced && op != STP_OP_NONE)
		sem_error(s, at, "S_WRITE", "Only the following assign operator is implemented on target variables:  =");
	else if (why)
		sem_error(s, n, "S_WRITE", "%s", why);
	return !why && (!traced || op == STP_OP_NONE);
}

static enum stp_type infer_assign(struct sem *s, struct stp_node *n, enum stp_type want)
{
	enum stp_type t;

	if (!may_write(s, n, n->op, n->l))
		return STP_UNKNOWN;
	switch (n->op) {
	case STP_OP_NONE:
		t = infer_same(s, n->l, n->r, want);
		if (t == STP_STATS)
			sem_error(s, n->r, "S_TYPE", "invalid type %s", stp_type_text(t));
		return expect(s, n, want, t);
	case STP_ADDEND:
		infer(s, n->l, STP_STATS);
		infer(s, n->r, STP_LONG);
		return expect(s, n, want, STP_LONG);
	case STP_CONCAT:
		infer(s, n->l, STP_STRINGS);
		infer(s, n->r, STP_STRINGS);
		return expect(s, n, want, STP_STRINGS);
	default:
		infer(s, n->l, STP_LONG);
		infer(s, n->r, STP_LONG);
		return expect(s, n, want, STP_LONG);
	}
}

/* @count(x) and other extractors: x must be a statistic. */
static enum stp_type infer_stat(struct sem *s, struct stp_node *n, enum stp_type want)
{
	infer(s, n->l, STP_STATS);
	if (n->l->kind == STP_NAME && n->l->var && !n->l->var->is_global && s->final)
		sem_error(s, n->l, "S_STAT_LOCAL", "stat locals not supported, missing global declaration?");
	return n->kind == STP_HIST ? STP_UNKNOWN : expect(s, n, want, STP_LONG);
}

static enum stp_type infer_target(struct sem *s, struct stp_node *n, enum stp_type want)
{
	for (size_t i = 0; i < n->nparts; i++)
		if (n->parts[i].index)
			infer(s, n->parts[i].index, n->source && n->source->kind == STP_SRC_PYTHON ? STP_UNKNOWN : STP_LONG);
	if (n->kind == STP_TARGET && !n->source && s->final) {
		sem_error(s, n, "S_TARGET", "unresolved target-symbol expression");
		if (n->why)
			diag_hint(s->diag, "%s", n->why);
	}
	if (n->kind == STP_CAST && !n->source && n->why && s->final)
		sem_error(s, n, "S_CAST", "%s", n->why);
	if (n->kind != STP_TARGET)
		infer(s, n->l, STP_LONG);
	return expect(s, n, want, n->pretty || n->type == STP_STRINGS ? STP_STRINGS : STP_LONG);
}

/* --- print ------------------------------------------------------------------------------------------- */

static enum stp_type wanted_by(const struct fmt_conv *c)
{
	if (c->kind == FMT_STRING)
		return STP_STRINGS;
	return c->kind == FMT_ANY ? STP_UNKNOWN : STP_LONG;
}

static void infer_formatted(struct sem *s, struct stp_node *n)
{
	size_t arg = 0;

	if (fmt_nargs(n->fmt) != n->nargs) {
		if (s->final)
			sem_error(s, n, "S_PRINT_ARGS", "Wrong number of args to formatted print operator");
		return;
	}
	for (size_t i = 0; i < n->fmt->n; i++) {
		const struct fmt_conv *c = &n->fmt->convs[i];

		if (c->kind == FMT_NONE)
			continue;
		if (c->dyn_width)
			infer(s, n->args[arg++], STP_LONG);
		if (c->dyn_prec)
			infer(s, n->args[arg++], STP_LONG);
		infer(s, n->args[arg++], wanted_by(c));
	}
}

static enum stp_type infer_print(struct sem *s, struct stp_node *n, enum stp_type want)
{
	if (n->fmt)
		infer_formatted(s, n);
	for (size_t i = 0; !n->fmt && i < n->nargs; i++) {
		enum stp_type t = infer(s, n->args[i], STP_UNKNOWN);

		if (t == STP_UNKNOWN && n->args[i]->kind != STP_HIST && n->args[i]->kind != STP_NAME &&
		    n->args[i]->kind != STP_INDEX)
			unresolved(s, n->args[i]);
	}
	if (n->print->to_string)
		return expect(s, n, want, STP_STRINGS);
	return expect(s, n, want, STP_LONG);
}

/* --- expressions ------------------------------------------------------------------------------------- */

static enum stp_type infer(struct sem *s, struct stp_node *n, enum stp_type want)
{
	switch (n->kind) {
	case STP_NUM:
		return expect(s, n, want, STP_LONG);
	case STP_STR:
	case STP_CONST:
		return expect(s, n, want, n->kind == STP_STR ? STP_STRINGS : STP_LONG);
	case STP_NAME:
		return infer_name(s, n, want);
	case STP_INDEX:
		return infer_index(s, n, want);
	case STP_CALL:
		return infer_call(s, n, want);
	case STP_BINARY:
		return infer_binary(s, n, want);
	case STP_ASSIGN:
		return infer_assign(s, n, want);
	case STP_COND:
		infer(s, n->cond, STP_LONG);
		return expect(s, n, want, infer_same(s, n->r, n->l, want));
	case STP_IN:
		infer_indexes(s, n->l, n->args, n->nargs);
		if (n->l->var && n->l->var->type == STP_UNKNOWN)
			unresolved(s, n->l);
		return expect(s, n, want, STP_LONG);
	case STP_MATCH:
		infer(s, n->l, STP_STRINGS);
		return expect(s, n, want, STP_LONG);
	case STP_TARGET:
	case STP_CAST:
	case STP_DEREF:
		return infer_target(s, n, want);
	case STP_ENTRY:		/* entry.c has taken those in probes of returns */
		if (s->final)
			sem_error(s, n, "S_ENTRY", "@entry is only valid in .return probes");
		return expect(s, n, want, infer(s, n->l, want));
	case STP_WRITTEN:	/* alias.c has taken those of aliases */
		if (s->final)
			sem_error(s, n, "S_WRITTEN", "unexpected @probewrite");
		return expect(s, n, want, STP_LONG);
	case STP_EXTRACT:
	case STP_HIST:
		return infer_stat(s, n, want);
	case STP_PRINT:
		return infer_print(s, n, want);
	case STP_ADDRESS:
		sem_error(s, n, "S_DEREF", "unknown type in dereference");
		return STP_UNKNOWN;
	case STP_PRE:
	case STP_POST:
		if (!may_write(s, n, n->op, n->l))
			return STP_UNKNOWN;
		/* fall through */
	default:		/* of numbers, a number */
		if (n->l)
			infer(s, n->l, STP_LONG);
		if (n->r)
			infer(s, n->r, STP_LONG);
		return expect(s, n, want, STP_LONG);
	}
}

/* --- statements -------------------------------------------------------------------------------------- */

static void infer_foreach(struct sem *s, struct stp_stmt *st)
{
	struct stp_var *a = st->array->var;

	infer_indexes(s, st->array, st->keys, st->nkeys);
	if (st->nslice == st->nkeys)
		infer_indexes(s, st->array, st->slice, st->nslice);
	if (!a) {
		for (size_t i = 0; i < st->nkeys; i++)
			infer(s, st->keys[i], STP_LONG);
		if (st->value)
			infer(s, st->value, STP_LONG);
	} else {
		if (a->type == STP_UNKNOWN)
			unresolved(s, st->array);
		if (st->sort_by_stat && a->type != STP_UNKNOWN && a->type != STP_STATS)
			sem_error(s, st->array, "S_TYPE", "invalid type %s", stp_type_text(a->type));
		if (st->value && a->type == STP_STATS)
			sem_error(s, st->value, "S_STAT_LOCAL",
				  "stat locals not supported, missing global declaration?");
		else if (st->value)
			meet_var(s, st->array, a, infer(s, st->value, a->type));
	}
	if (st->expr)
		infer(s, st->expr, STP_LONG);
}

static void infer_return(struct sem *s, struct stp_stmt *st)
{
	struct stp_func *f = s->func;
	enum stp_type t;

	if (!st->expr || !f)
		return;
	t = infer(s, st->expr, st->expr->kind == STP_NAME ? f->type : STP_UNKNOWN);
	meet(s, st->expr, "", &f->type, &f->type_pos, &f->type_what, t);
}

static void infer_delete(struct sem *s, struct stp_stmt *st)
{
	if (st->expr->kind == STP_INDEX)
		infer_indexes(s, st->expr->l, st->expr->args, st->expr->nargs);
	else if (st->expr->var && !st->expr->var->is_global)
		infer(s, st->expr, STP_UNKNOWN);
}

static void infer_stmt(void *ctx, struct stp_stmt **child)
{
	struct stp_stmt *st = *child;
	struct sem *s = ctx;

	switch (st->kind) {
	case STP_S_EXPR:
		infer(s, st->expr, STP_UNKNOWN);
		break;
	case STP_S_IF:
		infer(s, st->expr, STP_LONG);
		break;
	case STP_S_FOR:
		if (st->init)
			infer(s, st->init, STP_UNKNOWN);
		if (st->expr)
			infer(s, st->expr, STP_LONG);
		if (st->incr)
			infer(s, st->incr, STP_UNKNOWN);
		break;
	case STP_S_FOREACH:
		infer_foreach(s, st);
		break;
	case STP_S_RETURN:
		infer_return(s, st);
		break;
	case STP_S_DELETE:
		infer_delete(s, st);
		break;
	case STP_S_TRY:
		if (st->value)
			infer(s, st->value, STP_STRINGS);
		break;
	default:
		break;
	}
	stp_each_stmt(st, infer_stmt, s);
}

static void infer_round(struct sem *s)
{
	for (struct stp_handler *h = s->prog->handlers; h; h = h->next) {
		s->handler = h;
		s->func = NULL;
		for (size_t i = 0; i < h->nconds; i++)
			infer(s, h->conds[i], STP_LONG);
		for (size_t i = 0; i < h->nblocks; i++)
			infer_stmt(s, &h->blocks[i]);
	}
	for (struct stp_func *f = s->prog->funcs; f; f = f->next) {
		s->handler = NULL;
		s->func = f;
		infer_stmt(s, &f->body);
	}
}

bool sem_infer(struct sem *s)
{
	unsigned int errors = s->diag->errors;

	s->final = false;
	do {
		s->news = 0;
		infer_round(s);
	} while (s->news && s->diag->errors == errors);
	if (s->diag->errors != errors)
		return false;
	s->final = true;
	infer_round(s);
	return s->diag->errors == errors;
}

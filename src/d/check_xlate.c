/*
 * Translators: "translator out < in name > { member = expression; ... };", and their uses: xlate, inlines that are an
 * xlate, and args[] that the provider translates.
 *
 * Each member of a translator is handled like an inline with one parameter, the input: it has such an identifier, and
 * the D_MEMBER that names it has that identifier and the input as its argument.
 *
 * A translator whose first use has an address in the traced process as input is one for such addresses.
 *
 * Guide: "Translators".
 */
#include "d/check.h"

#include <string.h>

#include "base/arena.h"

struct d_xstate {
	const struct d_xlator *x;
	struct d_ident *in;		/* the parameter */
	struct d_ident **members;
	bool used, user;		/* used at all; used with addresses of the traced process */
	struct d_xstate *next;
};

static struct d_ident *member_ident(struct check *c, struct d_xstate *st, const struct d_xlator_member *m,
				    const struct type *type)
{
	struct d_ident *id = arena_new_of(c->arena, struct d_ident);
	struct d_inline *inl = arena_new_of(c->arena, struct d_inline);

	inl->pos = m->pos;
	inl->name = m->name;
	inl->type = type;
	inl->assoc = true;
	inl->params.n = 1;
	inl->expr = m->expr;
	id->kind = ID_INLINE;
	id->space = SPACE_GLOBAL;
	id->name = m->name;
	id->pos = m->pos;
	id->type = type;
	id->inl = inl;
	id->params = &st->in;
	return id;
}

static bool check_one(struct check *c, struct d_xstate *st, size_t i)
{
	const struct d_xlator_member *m = &st->x->members[i];
	struct d_ident *params = c->params;
	const struct type_member *tm;
	const struct type *t;
	uint64_t off;

	tm = type_find_member(st->x->out, m->name, &off);
	c->params = st->in;
	t = tm ? check_expr(c, m->expr) : NULL;
	c->params = params;
	if (!t)
		return false;
	if (!type_takes(c, tm->type, m->expr->user, m->expr) &&
	    !(type_is_char_array(tm->type) && type_is_str_like(m->expr->type))) {
		check_error(c, m->pos, "D_XLATE_INCOMPAT", "translator member %s definition uses incompatible types: "
			    "\"%s\" = \"%s\"", m->name, type_text(c->arena, tm->type), check_text(c, m->expr));
		return false;
	}
	st->members[i] = member_ident(c, st, m, type_is_char_array(tm->type) ? c->t_string : tm->type);
	return true;
}

static bool check_members(struct check *c, struct d_xstate *st)
{
	const struct d_xlator *x = st->x;
	bool ok = true;

	for (size_t i = 0; i < x->nmembers; i++)
		ok = check_one(c, st, i) && ok;
	return ok;
}

static struct d_xstate *find(struct check *c, const struct type *out, const struct type *in)
{
	for (struct d_xstate *st = c->xlators; st; st = st->next)
		if (type_same(st->x->out, out) && (!in || type_same(st->x->in, in)))
			return st;
	return NULL;
}

void check_xlator(struct check *c, const struct d_xlator *x)
{
	struct d_xstate *st = find(c, x->out, x->in);

	if (st) {
		check_error(c, x->pos, "D_XLATE_REDECL", "translator from %s to %s has already been declared",
			    type_text(c->arena, x->in), type_text(c->arena, x->out));
		return;
	}
	st = arena_new_of(c->arena, struct d_xstate);
	st->x = x;
	st->in = arena_new_of(c->arena, struct d_ident);
	st->in->kind = ID_PARAM;
	st->in->name = x->param;
	st->in->type = x->in;
	st->in->user = type_is_user(x->in);
	st->used = st->user = st->in->user;
	st->members = arena_alloc(c->arena, (x->nmembers + 1) * sizeof(*st->members));
	if (!x->lazy && !check_members(c, st))
		return;
	st->next = c->xlators;
	c->xlators = st;
}

/* The translator to @out for the checked input @n. */
static struct d_xstate *find_for(struct check *c, const struct type *out, const struct d_node *n)
{
	struct d_xstate *st = find(c, out, n->type);

	for (struct d_xstate *s = c->xlators; !st && s; s = s->next)
		if (type_same(s->x->out, out) && !node_is_agg(n) && type_takes(c, s->x->in, n->user, n))
			st = s;
	return st;
}

const struct type *check_xlate(struct check *c, struct d_node *n)
{
	const struct type *out = n->ctype;
	struct d_xstate *st;

	if (type_is_ptr(out))
		out = type_target(out);
	if (!type_is_sou(out)) {
		check_error(c, n->pos, "D_XLATE_SOU", "operator xlate requires a struct or union, or a pointer to one: %s",
			    type_text(c->arena, n->ctype));
		return NULL;
	}
	if (!check_expr(c, n->base))
		return NULL;
	if (!check_not_xlated(c, n->base, "xlate"))
		return NULL;
	st = find_for(c, out, n->base);
	if (!st) {
		check_error(c, n->pos, "D_XLATE_NONE", "cannot translate from \"%s\" to \"%s\"", check_text(c, n->base),
			    type_text(c->arena, n->ctype));
		return NULL;
	}
	if (st->used && st->user != n->base->user) {
		check_error(c, n->pos, "D_XLATE_NONE", "the translator from \"%s\" to \"%s\" is used for addresses of the "
			    "kernel and of the traced process", type_text(c->arena, st->x->in), type_text(c->arena, out));
		return NULL;
	}
	if (!st->used && n->base->user) {
		st->in->user = true;
		if (!st->x->lazy && !check_members(c, st))
			return NULL;
	}
	st->used = true;
	st->user = n->base->user;
	n->aux = st;
	return n->ctype;
}

bool check_not_xlated(struct check *c, struct d_node *n, const char *what)
{
	struct xlated x = { 0 };

	if (!check_xlated(n, &x))
		return true;
	check_error(c, n->pos, "D_OP_DYN", "%s may not be applied to what is translated: it has members, and no value", what);
	return false;
}

bool check_xlated(struct d_node *n, struct xlated *ret)
{
	if (!n->type)
		return false;
	switch (n->kind) {
	case D_XLATE:
		ret->state = n->aux;
		ret->input = n->base;
		return n->aux;
	case D_NAME:
	case D_INDEX:
		if (n->kind == D_INDEX && n->aux) {		/* args[n] */
			ret->outer = NULL;
			return check_xlated(n->aux, ret);
		}
		if (!n->ident || n->ident->kind != ID_INLINE || !check_xlated(n->ident->inl->expr, ret))
			return false;
		if (n->kind == D_INDEX)
			ret->outer = n;
		return true;
	case D_UNARY:
		return n->op == D_OP_DEREF && check_xlated(n->base, ret);
	default:
		return false;
	}
}

struct d_node *check_xlated_node(struct check *c, const struct xlated *x, const char *name, struct src_pos pos)
{
	const struct d_xlator *t = x->state->x;
	struct d_node *n;

	for (size_t i = 0; name && i < t->nmembers; i++) {
		if (strcmp(t->members[i].name, name) != 0)
			continue;
		if (!x->state->members[i] && !check_one(c, x->state, i))
			return NULL;
		n = arena_new_of(c->arena, struct d_node);
		n->kind = D_MEMBER;
		n->pos = pos;
		n->name = name;
		n->ident = x->state->members[i];
		n->args = arena_alloc(c->arena, sizeof(*n->args));
		n->args[0] = x->input;
		n->nargs = 1;
		n->aux = x->outer;
		n->type = n->ident->type;
		n->user = t->members[i].expr->user && type_is_ptr(n->type);
		return n;
	}
	return NULL;
}

const struct type *check_xlated_member(struct check *c, struct d_node *n)
{
	unsigned int errors = c->diag->errors;
	struct xlated x = { 0 };
	struct d_node *m;

	if (!check_xlated(n->base, &x))
		return NULL;
	m = check_xlated_node(c, &x, n->name, n->pos);
	if (!m) {
		if (errors == c->diag->errors)
			check_error(c, n->pos, "D_XLATE_NOCONV", "translator for %s does not define conversion for member: %s",
				    type_text(c->arena, x.state->x->out), n->name);
		return NULL;
	}
	n->ident = m->ident;
	n->args = m->args;
	n->nargs = 1;
	n->aux = m->aux;
	n->user = m->user;
	return m->type;
}

/*
 * Functions: subroutines, actions and aggregating functions, all by the tables' prototypes; and inlines with
 * parameters, which are written as arrays but are functions too.
 */
#include "d/check.h"

#include <string.h>

#include "base/arena.h"
#include "d/lower.h"
#include "d/parse.h"

#define FN_NONE (-1)
#define FN(f) IR_FN_##f
#define FN_LOWERED SUBR_LOWERED

static const struct subr subrs[] = {
#define IR_FN_LOWERED FN_LOWERED
#define STRSIZE SUBR_STRSIZE
#define D_SUBR(NAME, PROTO, FUNCTION, LEFT_OUT) { #NAME, PROTO, FN(FUNCTION), LEFT_OUT, NULL },
#define D_SUBR_NONE(NAME, PROTO, INSTEAD) { #NAME, PROTO, FN_NONE, 0, INSTEAD },
#include "d/subrs.def"
#undef D_SUBR
#undef STRSIZE
#undef IR_FN_LOWERED
};

#define check_none NULL
#define lower_none NULL
static const struct action actions[] = {
#define D_ACTION(NAME, PROTO, HANDLER, INSTEAD) { #NAME, PROTO, check_##HANDLER, lower_##HANDLER, INSTEAD },
#include "d/actions.def"
#undef D_ACTION
};
#undef check_none
#undef lower_none

static const struct aggfunc aggfuncs[] = {
#define D_AGGFUNC(NAME, PROTO, FUNCTION, NPARAMS, WEIGHT) { #NAME, PROTO, IR_A_##FUNCTION, NPARAMS, WEIGHT },
#include "d/aggfuncs.def"
#undef D_AGGFUNC
};

/* --- prototypes -------------------------------------------------------------------------------------- */

/* The prototype in @text: "string(uintptr_t, [size_t])".  @ stands for any type. */
static const struct proto *proto_parse(struct check *c, const char *text)
{
	struct proto *p = arena_new_of(c->arena, struct proto);
	const char *s = strchr(text, '(') + 1, *end;

	p->result = d_parse_type(c->prog, arena_strndup(c->arena, text, (size_t)(s - 1 - text)));
	for (; *s != ')'; s = *end == ',' ? end + 1 : end) {
		bool optional;

		s += strspn(s, " ");
		end = s + strcspn(s, ",)");
		if (strncmp(s, "...", 3) == 0) {
			p->varargs = true;
			continue;
		}
		optional = *s == '[';
		if (*s != '@')
			p->args[p->nargs] = d_parse_type(c->prog, arena_strndup(c->arena, s + optional,
								(size_t)(end - s) - 2 * optional));
		p->nargs++;
		if (!optional)
			p->required = p->nargs;
	}
	return p;
}

/* Check the arguments of @n, one by one and against @id's prototype. */
static bool check_proto(struct check *c, const struct d_ident *id, struct d_node *n)
{
	const struct proto *p = id->proto;
	bool ok = true;

	for (size_t i = 0; i < n->nargs; i++)
		ok = check_expr(c, n->args[i]) && ok;
	if (n->nargs < p->required || (!p->varargs && n->nargs > p->nargs)) {
		bool exact = !p->varargs && p->required == p->nargs, few = n->nargs < p->required;

		check_error(c, n->pos, "D_PROTO_LEN", "%s( ) prototype mismatch: %zu arg%spassed, %s%u expected",
			    id->name, n->nargs, n->nargs == 1 ? " " : "s ", exact ? "" : few ? "at least " : "at most ",
			    few ? p->required : p->nargs);
		return false;
	}
	if (!ok)
		return false;
	for (size_t i = 0; i < n->nargs && i < p->nargs; i++) {
		const struct d_node *a = n->args[i];

		if (!p->args[i] || type_takes(c, p->args[i], a->user, a) ||
		    (type_is_char_ptr(p->args[i]) && type_is_str_like(a->type)))
			continue;
		/* An address is what copyin() and its like are for, whatever its type. */
		if (type_is_integer(p->args[i]) && type_size(p->args[i]) == 8 && !type_is_signed(p->args[i]) &&
		    type_is_ptr(a->type))
			continue;
		check_error(c, a->pos, "D_PROTO_ARG", "%s( ) argument #%zu is incompatible with prototype:\n"
			    "\tprototype: %s\n\t argument: %s", id->name, i + 1, type_text(c->arena, p->args[i]),
			    check_text(c, a));
		if (type_is_str_like(p->args[i]) && node_is_int(a))
			diag_hint(c->diag, "copyinstr() reads the string at an address");
		ok = false;
	}
	return ok;
}

/* --- calls ------------------------------------------------------------------------------------------- */

struct d_ident *check_func_find(struct check *c, const char *name)
{
	struct d_ident *id = ident_find(c, SPACE_FUNC, name);
	enum d_ident_kind kind = ID_SUBR;
	const char *proto = NULL;
	const struct subr *subr = NULL;
	const struct action *action = NULL;
	const struct aggfunc *aggfunc = NULL;

	if (id)
		return id;
	for (size_t i = 0; i < sizeof(subrs) / sizeof(subrs[0]); i++)
		if (strcmp(subrs[i].name, name) == 0)
			proto = (subr = &subrs[i])->proto;
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]) && !proto; i++) {
		if (strcmp(actions[i].name, name) == 0) {
			proto = (action = &actions[i])->proto;
			kind = ID_ACTION;
		}
	}
	for (size_t i = 0; i < sizeof(aggfuncs) / sizeof(aggfuncs[0]) && !proto; i++) {
		if (strcmp(aggfuncs[i].name, name) == 0) {
			proto = (aggfunc = &aggfuncs[i])->proto;
			kind = ID_AGGFUNC;
		}
	}
	if (!proto)
		return NULL;
	id = ident_new(c, kind, SPACE_FUNC, name, (struct src_pos){ 0 });
	id->subr = subr;
	id->action = action;
	id->aggfunc = aggfunc;
	id->proto = proto_parse(c, proto);
	id->type = id->proto->result;
	return id;
}

static struct d_ident *check_func(struct check *c, struct d_node *n)
{
	const struct d_node *b = n->base;
	struct d_ident *id;

	if (b->kind != D_NAME || b->scope != D_GLOBAL_SCOPE || b->mod) {
		check_error(c, n->pos, "D_FUNC_IDENT", "function designator is not of function type");
		return NULL;
	}
	id = check_func_find(c, b->name);
	if (id)
		return id;
	id = ident_find(c, SPACE_GLOBAL, b->name);
	if (id)
		check_error(c, b->pos, "D_FUNC_IDKIND", "%s '%s' may not be referenced as function",
			    ident_kind_text(id->kind), b->name);
	else
		check_error(c, b->pos, "D_FUNC_UNDEF", "undefined function name: %s", b->name);
	return NULL;
}

/* DTrace guide, "Destructive Actions". */
static bool is_destructive(const struct d_ident *id)
{
	static const char *const names[] = { "copyout", "copyoutstr", "raise", "stop", "system" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], id->name) == 0)
			return true;
	return false;
}

const struct type *check_call(struct check *c, struct d_node *n, bool statement)
{
	struct d_ident *id = check_func(c, n);

	if (!id)
		return NULL;
	n->ident = id;
	if ((id->kind == ID_SUBR && id->subr->fn == FN_NONE) || (id->kind == ID_ACTION && !id->action->check)) {
		check_unsupported(c, n->pos, arena_printf(c->arena, "%s( )", id->name),
				  id->kind == ID_ACTION ? id->action->instead : id->subr->instead);
		return NULL;
	}
	if (is_destructive(id) && !c->opts->destructive) {
		check_error(c, n->pos, "D_DESTRUCTIVE", "%s( ): destructive actions are not allowed", id->name);
		diag_hint(c->diag, "-w, or #pragma D option destructive, allows them");
		return NULL;
	}
	if (!check_proto(c, id, n))
		return NULL;
	if (statement && id->kind == ID_AGGFUNC) {
		check_error(c, n->pos, "D_CG_EXPR", "%s( ) may not be called from a D expression (D program context "
			    "required)", id->name);
		diag_hint(c->diag, "assign it to an aggregation: @name = %s(...)", id->name);
		return NULL;
	}
	if (id->kind == ID_ACTION && !statement && !c->in_agg_key && !type_is_void(id->type)) {
		check_error(c, n->pos, "D_CG_EXPR", "%s( ) may not be called from a D expression (D program context "
			    "required)", id->name);
		diag_hint(c->diag, "it is a statement of its own, or a key of an aggregation");
		return NULL;
	}
	if (id->kind == ID_ACTION && !id->action->check(c, n))
		return NULL;
	return n->type = id->type;
}

const struct type *check_inline_call(struct check *c, struct d_node *n)
{
	struct d_ident *id = n->ident;
	const struct d_params *params = &id->inl->params;
	bool ok = true;

	for (size_t i = 0; i < n->nargs; i++)
		ok = check_expr(c, n->args[i]) && ok;
	if (n->nargs != params->n) {
		check_error(c, n->pos, "D_PROTO_LEN", "%s[ ] prototype mismatch: %zu key%spassed, %zu expected",
			    id->name, n->nargs, n->nargs == 1 ? " " : "s ", params->n);
		return NULL;
	}
	for (size_t i = 0; ok && i < n->nargs; i++) {
		if (!check_not_xlated(c, n->args[i], "an inline"))
			return NULL;
		if (type_takes(c, params->v[i].type, n->args[i]->user, n->args[i]))
			continue;
		check_error(c, n->args[i]->pos, "D_PROTO_ARG", "%s[ ] key #%zu is incompatible with prototype:\n"
			    "\tprototype: %s\n\t      key: %s", id->name, i + 1,
			    type_text(c->arena, params->v[i].type), check_text(c, n->args[i]));
		ok = false;
	}
	return ok ? n->type = id->type : NULL;
}

/*
 * Calls of functions: of subroutines, actions and aggregating functions, all checked against the tables' prototypes;
 * and of inlines with parameters, which look like arrays.
 */
#include "d/check.h"

#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "d/lower.h"
#include "d/parse.h"
#include "ir/facts.h"
#include "lang/similar.h"

#define FN_NONE (-1)
#define FN(f) IR_FN_##f
#define FN_LOWERED SUBR_LOWERED

static const struct subr subrs[] = {
#define IR_FN_LOWERED FN_LOWERED
#define STRSIZE SUBR_STRSIZE
#define FINDS SUBR_FINDS
#define D_SUBR(NAME, PROTO, FUNCTION, LEFT_OUT) { #NAME, PROTO, FN(FUNCTION), LEFT_OUT, NULL },
#define D_SUBR_NONE(NAME, PROTO, INSTEAD) { #NAME, PROTO, FN_NONE, 0, INSTEAD },
#include "d/subrs.def"
#undef D_SUBR
#undef FINDS
#undef STRSIZE
#undef IR_FN_LOWERED
};

enum { RECORDS = ACTION_RECORDS, DESTROYS = ACTION_DESTROYS, NOW = ACTION_NOW, SPECULATES = ACTION_SPECULATES,
       COMMITS = ACTION_COMMITS, EXITS = ACTION_EXITS };

static const struct action actions[] = {
#define D_ACTION(NAME, PROTO, HANDLER, WHAT, EFFECTS) \
	{ #NAME, PROTO, check_##HANDLER, lower_##HANDLER, WHAT, EFFECTS, NULL },
#define D_ACTION_NONE(NAME, PROTO, INSTEAD) { #NAME, PROTO, NULL, NULL, 0, 0, INSTEAD },
#include "d/actions.def"
#undef D_ACTION_NONE
#undef D_ACTION
};

static const struct aggfunc aggfuncs[] = {
#define D_AGGFUNC(NAME, PROTO, FUNCTION, NPARAMS, WEIGHT) { #NAME, PROTO, IR_A_##FUNCTION, NPARAMS, WEIGHT },
#include "d/aggfuncs.def"
#undef D_AGGFUNC
};

/* --- prototypes -------------------------------------------------------------------------------------- */

/* Parse the type of @p's next argument, or "one | other". */
static void proto_parse_type(struct check *c, struct proto *p, const char *text, size_t n)
{
	const char *other = memchr(text, '|', n);

	p->args[p->nargs] = d_parse_type(c->prog, arena_strndup(c->arena, text, other ? (size_t)(other - text) : n));
	if (other)
		p->others[p->nargs] = d_parse_type(c->prog, arena_strndup(c->arena, other + 1,
									  n - (size_t)(other + 1 - text)));
}

/* Parse the prototype @text: "string(uintptr_t, [size_t])".  @ is any type. */
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
			proto_parse_type(c, p, s + optional, (size_t)(end - s) - 2 * optional);
		p->nargs++;
		if (!optional)
			p->required = p->nargs;
	}
	return p;
}

/* Report argument @k of @n if it is an action without a value.  The message depends on the function called. */
static bool check_no_action(struct check *c, const struct d_node *n, size_t k)
{
	const struct d_node *a = n->args[k];
	const struct d_ident *id = a->kind == D_CALL && a->base->kind == D_NAME ? check_func_find(c, a->base->name) : NULL;
	const char *name = n->base->name;

	if (!id || id->kind != ID_ACTION || !type_is_void(id->type))
		return true;
	check_error(c, a->pos, !strcmp(name, "printf") ? "D_PRINTF_ARG_TYPE" : !strcmp(name, "trace") ? "D_TRACE_VOID" :
		    "D_PROTO_ARG", "%s( ) argument #%zu is incompatible with prototype: %s( ) gives no value", name, k + 1,
		    id->name);
	return false;
}

/* Is @a of type @want? */
static bool fits(struct check *c, const struct type *want, const struct d_node *a)
{
	if (type_takes(c, want, a->user, a) || (type_is_char_ptr(want) && type_is_str_like(a->type)))
		return true;
	/* copyin() and similar functions take any address, whatever its type. */
	return type_is_integer(want) && type_size(want) == 8 && !type_is_signed(want) && type_is_ptr(a->type);
}

/* Check the arguments of @n, one by one and against @id's prototype. */
static bool check_proto(struct check *c, const struct d_ident *id, struct d_node *n)
{
	const struct proto *p = id->proto;
	bool ok = true;

	for (size_t i = 0; i < n->nargs; i++)
		ok = check_no_action(c, n, i) && check_expr(c, n->args[i]) && ok;
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

		if (!p->args[i] || fits(c, p->args[i], a) || (p->others[i] && fits(c, p->others[i], a)))
			continue;
		check_error(c, a->pos, "D_PROTO_ARG", "%s( ) argument #%zu is incompatible with prototype:\n"
			    "\tprototype: %s%s%s\n\t argument: %s", id->name, i + 1, type_text(c->arena, p->args[i]),
			    p->others[i] ? " or " : "", p->others[i] ? type_text(c->arena, p->others[i]) : "",
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

/* Report an unknown function, with what replaces a function of another language, or the most similar names. */
static void check_undefined(struct check *c, const struct d_node *b)
{
	static const struct {
		const char *name, *instead;
	} foreign[] = {
#define D_FOREIGN(name, instead) { #name, instead },
#include "d/foreign.def"
#undef D_FOREIGN
	};
	struct similar near = similar_to(b->name);
	struct strbuf names = { 0 };

	check_error(c, b->pos, "D_FUNC_UNDEF", "undefined function name: %s", b->name);
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
		if (!strcmp(foreign[i].name, b->name)) {
			diag_hint(c->diag, "%s", foreign[i].instead);
			return;
		}
	}
	for (size_t i = 0; i < sizeof(subrs) / sizeof(subrs[0]); i++)
		similar_add(&near, subrs[i].name);
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
		similar_add(&near, actions[i].name);
	for (size_t i = 0; i < sizeof(aggfuncs) / sizeof(aggfuncs[0]); i++)
		similar_add(&near, aggfuncs[i].name);
	if (near.n) {
		similar_print(&near, &names);
		diag_hint(c->diag, "similar names are: %s", strbuf_str(&names));
	}
	strbuf_fini(&names);
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
		check_undefined(c, b);
	return NULL;
}

/* DTrace guide, "Destructive Actions". */
static bool is_destructive(const struct d_ident *id)
{
	if (id->kind == ID_ACTION)
		return id->action->effects & ACTION_DESTROYS;
	return id->kind == ID_SUBR && id->subr->fn >= 0 && ir_fn_effects((enum ir_fn)id->subr->fn) & IR_W_USER;
}

/* A stack is a value; what names an address is one only as a key. */
static bool is_stack(const struct d_ident *id)
{
	return type_slot(id->type).show == IR_SHOW_STACK;
}

const struct type *check_call(struct check *c, struct d_node *n, bool statement)
{
	struct d_ident *id = check_func(c, n);

	if (!id)
		return NULL;
	n->ident = id;
	if (!check_proto(c, id, n))
		return NULL;
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
	if (statement && id->kind == ID_AGGFUNC) {
		check_error(c, n->pos, "D_CG_EXPR", "%s( ) may not be called from a D expression (D program context "
			    "required)", id->name);
		diag_hint(c->diag, "assign it to an aggregation: @name = %s(...)", id->name);
		return NULL;
	}
	if (id->kind == ID_ACTION && !statement && !c->in_agg_key && !type_is_void(id->type) && !is_stack(id)) {
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

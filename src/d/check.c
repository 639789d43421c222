#include "d/check.h"

#include <stdarg.h>
#include <string.h>

#include "base/arena.h"
#include "d/parse.h"

void check_error(struct check *c, struct src_pos pos, const char *tag, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	diag_verror(c->diag, pos, tag, fmt, ap);
	va_end(ap);
}

void check_unsupported(struct check *c, struct src_pos pos, const char *what, const char *instead)
{
	check_error(c, pos, "D_UNKNOWN", "%s is not supported yet", what);
	if (instead)
		diag_hint(c->diag, "%s", instead);
}

const char *check_text(struct check *c, const struct d_node *n)
{
	const char *t = n->type == &check_agg_type ? check_agg_type.name : type_text(c->arena, n->type);

	return n->user && type_is_ptr(n->type) && !type_is_user(n->type) ? arena_printf(c->arena, "userland %s", t) : t;
}

void check_init(struct check *c, struct d_prog *prog, struct diag *diag, const struct resolver *resolver,
		const struct d_opts *opts)
{
	memset(c, 0, sizeof(*c));
	c->arena = prog->arena;
	c->diag = diag;
	c->prog = prog;
	c->types = prog->types;
	c->resolver = resolver;
	c->opts = opts;
	c->t_void = type_basic(c->types, TYPE_B_VOID);
	c->t_int = type_basic(c->types, TYPE_B_INT);
	c->t_int64 = type_find_typedef(c->types, "int64_t");
	c->t_uint64 = type_find_typedef(c->types, "uint64_t");
	c->t_size = type_find_typedef(c->types, "size_t");
	c->t_string = type_basic(c->types, TYPE_B_STRING);
}

/* --- declarations ------------------------------------------------------------------------------------ */

static bool same_keys(const struct d_ident *id, const struct d_params *keys)
{
	if (id->nkeys != keys->n)
		return false;
	for (size_t i = 0; i < keys->n; i++)
		if (!type_same(id->keys[i], keys->v[i].type))
			return false;
	return true;
}

/* Strings in variables are stored separately, so other members of a union cannot show their bytes. */
static bool is_string_in_union(const struct type *t)
{
	t = type_strip(t);
	if (t->kind == TYPE_ARRAY)
		return is_string_in_union(t->to);
	if (t->kind != TYPE_STRUCT && t->kind != TYPE_UNION)
		return false;
	type_load(t);
	for (size_t i = 0; i < t->nmembers; i++)
		if (t->kind == TYPE_UNION ? type_has_string(t->members[i].type) : is_string_in_union(t->members[i].type))
			return true;
	return false;
}

bool check_storage(struct check *c, struct src_pos pos, enum ident_space space, const struct type *t)
{
	if (is_string_in_union(t)) {
		check_unsupported(c, pos, "a variable that holds a union with a string", "give the union an array of char");
		return false;
	}
	if (space != SPACE_THIS || type_size(t) <= STORAGE_THIS_MAX)
		return true;
	check_unsupported(c, pos, arena_printf(c->arena, "a clause-local variable of more than %d bytes", STORAGE_THIS_MAX),
			  "make it thread-local: self->");
	return false;
}

static void check_decl(struct check *c, const struct d_decl *d)
{
	enum ident_space space = d->scope == D_SELF ? SPACE_SELF : d->scope == D_THIS ? SPACE_THIS : SPACE_GLOBAL;
	enum d_ident_kind kind = d->assoc ? ID_ARRAY : ID_SCALAR;
	struct d_ident *id = ident_known(c, space, d->name);

	if (d->is_extern || type_strip(d->type)->kind == TYPE_FUNC)
		return;		/* declares something of the kernel or a program, not a variable of the script */
	if (id && id->kind == ID_BUILTIN) {
		check_error(c, d->pos, "D_DECL_IDRED", "built-in identifier redeclared: %s", d->name);
		return;
	}
	if (space == SPACE_GLOBAL && type_find_enumerator(c->types, d->name)) {
		check_error(c, d->pos, "D_DECL_IDRED", "identifier redeclared: %s is an enumerator", d->name);
		return;
	}
	if (d->assoc && space == SPACE_THIS) {
		check_error(c, d->pos, "D_DECL_LOCASSC", "associative arrays may not be declared as local variables: %s",
			    d->name);
		return;
	}
	if (type_is_void(d->type)) {
		check_error(c, d->pos, "D_DECL_VOIDOBJ", "cannot declare void object: %s", d->name);
		return;
	}
	if (!type_is_complete(d->type)) {
		check_error(c, d->pos, "D_DECL_INCOMPLETE", "incomplete struct/union/enum %s: %s",
			    type_text(c->arena, d->type), d->name);
		return;
	}
	if (type_is_array(d->type) || type_is_sou(d->type) || type_is_float(d->type)) {
		if (!check_storage(c, d->pos, space, d->type))
			return;
	} else if (!type_is_storable(d->type)) {
		check_unsupported(c, d->pos, "a variable of this type", NULL);
		return;
	}
	if (id && (id->kind != kind || !type_same(id->type, d->type) || (d->assoc && !same_keys(id, &d->keys)))) {
		check_error(c, d->pos, "D_DECL_IDRED", "identifier redeclared: %s\n\t current: %s %s\n\tprevious: %s %s",
			    d->name, ident_kind_text(kind), type_text(c->arena, d->type), ident_kind_text(id->kind),
			    type_text(c->arena, id->type));
		return;
	}
	if (id)
		return;
	id = ident_new(c, kind, space, d->name, d->pos);
	id->type = d->type;
	id->user = type_is_user(d->type);
	id->declared = true;
	if (!d->assoc)
		return;
	if (d->keys.n >= IR_MAX_KEYS) {
		check_error(c, d->pos, "D_KEY_TYPE", "%s[ ] has %zu keys, at most %d are possible", d->name, d->keys.n,
			    IR_MAX_KEYS);
		return;
	}
	id->keyed = true;
	id->nkeys = d->keys.n;
	id->keys = arena_alloc(c->arena, d->keys.n * sizeof(*id->keys));
	for (size_t i = 0; i < d->keys.n; i++) {
		id->keys[i] = d->keys.v[i].type;
		if (!type_is_storable(id->keys[i]) && !check_is_bytes(id->keys[i]))
			check_unsupported(c, d->keys.v[i].pos, "a key of this type",
					  "use integers, pointers and strings");
	}
}

static void check_inline(struct check *c, struct d_inline *inl)
{
	struct d_ident *id = ident_known(c, SPACE_GLOBAL, inl->name);
	const struct type *t;

	if (id) {
		check_error(c, inl->pos, "D_DECL_IDRED", "identifier redefined: %s\n\t current: inline definition\n"
			    "\tprevious: %s%s", inl->name, ident_kind_text(id->kind),
			    id->kind == ID_INLINE ? " inline" : "");
		return;
	}
	if (type_is_void(inl->type)) {
		check_error(c, inl->pos, "D_DECL_VOIDOBJ", "cannot declare void inline: %s", inl->name);
		return;
	}
	if (!type_is_storable(inl->type) && !type_is_sou(inl->type)) {
		check_unsupported(c, inl->pos, "an inline of this type", "use integers, pointers, strings and structs");
		return;
	}
	/* The inline is not known in its own definition: the recursion would never end. */
	id = arena_new_of(c->arena, struct d_ident);
	id->params = arena_alloc(c->arena, (inl->params.n + 1) * sizeof(*id->params));
	for (size_t i = 0; i < inl->params.n; i++) {
		struct d_ident *p = arena_new_of(c->arena, struct d_ident);

		p->kind = ID_PARAM;
		p->name = inl->params.v[i].name ? inl->params.v[i].name : "";
		p->type = inl->params.v[i].type;
		p->user = type_is_user(p->type);
		p->next = c->params;
		c->params = id->params[i] = p;
		if (!type_is_storable(p->type))
			check_unsupported(c, inl->params.v[i].pos, "a parameter of this type",
					  "use integers, pointers and strings");
	}
	t = check_expr(c, inl->expr);
	c->params = NULL;
	if (!t)
		return;
	if (!type_takes(c, inl->type, inl->expr->user || type_is_user(inl->type), inl->expr)) {
		check_error(c, inl->pos, "D_OP_INCOMPAT", "inline %s definition uses incompatible types: \"%s\" = \"%s\"",
			    inl->name, type_text(c->arena, inl->type), check_text(c, inl->expr));
		return;
	}
	id->kind = ID_INLINE;
	id->space = SPACE_GLOBAL;
	id->name = inl->name;
	id->pos = inl->pos;
	id->type = inl->type;
	id->inl = inl;
	id->next = c->idents[SPACE_GLOBAL];
	c->idents[SPACE_GLOBAL] = id;
}

/* --- clauses ----------------------------------------------------------------------------------------- */

/* Check the condition @n; @what: what a message calls it. */
static void check_cond(struct check *c, struct d_node *n, const char *what)
{
	c->stmt = NULL;
	if (!check_expr(c, n) || node_is_scalar(n))
		return;
	check_error(c, n->pos, "D_PRED_SCALAR", "%s must be of scalar type", what);
	if (node_is_string(n))
		diag_hint(c->diag, "compare the string: s != \"\"");
}

static void check_block(struct check *c, const struct d_block *b);

static void check_stmt(struct check *c, struct d_stmt *s)
{
	struct d_node *n = s->expr;

	if (s->kind == D_STMT_IF) {
		check_cond(c, n, "condition of if");
		check_block(c, s->yes);
		check_block(c, s->no);
		return;
	}
	c->stmt = n;
	if (n->kind == D_CALL) {
		n->type = NULL;
		n->ident = NULL;
		check_call(c, n, true);
		return;
	}
	if (n->kind == D_AGG || (n->kind == D_INDEX && n->base->kind == D_AGG)) {
		check_error(c, n->pos, "D_AGG_NULL", "expression has null effect: @%s",
			    n->kind == D_AGG ? n->name : n->base->name);
		return;
	}
	check_expr(c, n);
}

static void check_block(struct check *c, const struct d_block *b)
{
	for (size_t i = 0; b && i < b->n; i++)
		check_stmt(c, b->stmts[i]);
}

static void check_pred(struct check *c, const struct d_clause *cl)
{
	if (cl->pred)
		check_cond(c, cl->pred, "predicate result");
}

static bool is_hex(const char *s)
{
	return *s && !s[strspn(s, "0123456789abcdefABCDEF")];
}

/* Does @d match any probe with @func and @name in place of its own? */
static bool matches_with(const struct check *c, const struct probe_desc *d, const char *func, const char *name)
{
	struct probe_desc other = *d;

	other.func = func;
	other.name = name;
	return c->resolver->match(c->resolver->ctx, &other, NULL, NULL);
}

/*
 * Explain why a description of the pid provider matches nothing: DTrace guide, "pid Provider".  NULL: the general
 * message does.
 */
static const char *pid_mistake(struct check *c, const struct probe_desc *d, const char **tag)
{
	bool is_name = !strcmp(d->name, "entry") || !strcmp(d->name, "return"), offset = is_hex(d->name);
	const char *pid = d->prov + 3;
	size_t digits = strncmp(d->prov, "pid", 3) ? 0 : strspn(pid, "0123456789");

	if (!digits)
		return NULL;
	if (pid[digits] && !desc_is_glob(pid)) {
		*tag = "D_PROC_BADPID";
		return arena_printf(c->arena, "provider %s does not end in the number of a process", d->prov);
	}
	if (!strcmp(d->func, "-") ? !offset : *d->name && !is_name && !offset && !desc_is_glob(d->name)) {
		*tag = "D_PROC_NAME";
		return arena_printf(c->arena, "probe name %s:%s is %s", d->func, d->name, !strcmp(d->func, "-") ?
				    "no offset, and - stands for no function" : "neither entry, return nor an offset");
	}
	if (!strcmp(d->func, "-") && strcmp(d->mod, "a.out") != 0) {
		*tag = "D_PROC_LIB";
		return arena_printf(c->arena, "only a.out can stand before the function -, not %s", d->mod);
	}
	if (offset && matches_with(c, d, d->func, "entry")) {
		*tag = "D_PROC_OFF";
		return arena_printf(c->arena, "offset 0x%s is outside of function %s, or no instruction starts there", d->name,
				    d->func);
	}
	if (*d->func && !desc_is_glob(d->func) && matches_with(c, d, "", "entry")) {
		*tag = "D_PROC_FUNC";
		return arena_printf(c->arena, "no function %s in %s", d->func, *d->mod ? d->mod : "the process");
	}
	return NULL;
}

static void check_descs(struct check *c, const struct d_clause *cl)
{
	for (size_t i = 0; i < cl->ndescs; i++) {
		const struct probe_desc *d = &cl->descs[i];
		const char *hint, *mistake, *tag = NULL;

		if (!c->resolver || c->opts->zdefs || c->resolver->match(c->resolver->ctx, d, NULL, NULL))
			continue;
		hint = c->resolver->hint ? c->resolver->hint(c->resolver->ctx, d, c->arena) : NULL;
		if (d->id)
			check_error(c, d->pos, "D_PDESC_INVAL", "invalid probe identifier: %u", d->id);
		else if ((mistake = pid_mistake(c, d, &tag)))
			check_error(c, d->pos, tag, "failed to create probes of %s: %s", d->prov, mistake);
		else
			check_error(c, d->pos, "D_PDESC_ZERO", "probe description %s:%s:%s:%s does not match any probes",
				    d->prov, d->mod, d->func, d->name);
		if (hint)
			diag_hint(c->diag, "%s", hint);
	}
}

/*
 * A predicate may read what the body assigns, and the other way round ("/n++/ { trace(n); }").  So the body is
 * checked first; if it has unknown names, it is checked again after the predicate.
 */
static void check_clause(struct check *c, struct d_clause *cl)
{
	struct diag before;

	check_descs(c, cl);
	c->clause = cl;
	c->args_state = ARGS_UNKNOWN;
	c->unknown = 0;
	before = *c->diag;
	check_block(c, cl->body);
	if (c->unknown && cl->pred) {
		*c->diag = before;
		check_pred(c, cl);
		check_block(c, cl->body);
	} else {
		check_pred(c, cl);
	}
	check_spec_rules(c, cl);
	c->clause = NULL;
}

static void check_item(struct check *c, struct d_item *it)
{
	it->checked = true;
	switch (it->kind) {
	case D_ITEM_CLAUSE:
		check_clause(c, it->clause);
		break;
	case D_ITEM_DECL:
		check_decl(c, it->decl);
		break;
	case D_ITEM_INLINE:
		check_inline(c, it->inl);
		break;
	case D_ITEM_XLATOR:
		check_xlator(c, it->xlator);
		break;
	case D_ITEM_PROVIDER:	/* describes probes to a linker; scripts see what the marker notes say */
	case D_ITEM_PRAGMA:
		break;
	}
}

void check_new_items(struct check *c, size_t first)
{
	struct d_ident *params = c->params;
	const struct d_clause *clause = c->clause;
	const struct d_node *stmt = c->stmt;
	bool in_agg_key = c->in_agg_key;

	c->params = NULL;
	c->clause = NULL;
	c->in_agg_key = false;
	for (size_t i = first; i < c->prog->nitems; i++)
		if (!c->prog->items[i].checked && c->prog->items[i].kind != D_ITEM_CLAUSE)
			check_item(c, &c->prog->items[i]);
	c->params = params;
	c->clause = clause;
	c->stmt = stmt;
	c->in_agg_key = in_agg_key;
}

/* #pragma D attributes or binding: of a variable or inline of the script, before or behind the pragma. */
static void check_pragma(struct check *c, const struct d_pragma *pr)
{
	const char *what = pr->kind == D_PRAGMA_BINDING ? "binding" : "attributes";
	struct d_ident *id;

	if (pr->of_lib || (pr->kind != D_PRAGMA_BINDING && pr->kind != D_PRAGMA_ATTRIBUTES) || strchr(pr->value, ' '))
		return;
	id = ident_known(c, SPACE_GLOBAL, pr->value);
	if (!id)
		id = check_func_find(c, pr->value);
	if (!id && !type_find_enumerator(c->types, pr->value))
		check_error(c, pr->pos, "D_PRAGMA_UNUSED", "unused #pragma %s: the script has no variable or inline %s", what,
			    pr->value);
	else if (id && id->kind != ID_SCALAR && id->kind != ID_ARRAY && id->kind != ID_INLINE)
		check_error(c, pr->pos, "D_PRAGMA_SCOPE", "#pragma %s cannot modify entity defined outside program scope: %s",
			    what, pr->value);
}

bool check_prog(struct check *c)
{
	unsigned int errors = c->diag->errors;

	for (size_t i = 0; i < c->prog->nitems; i++)
		if (!c->prog->items[i].checked)
			check_item(c, &c->prog->items[i]);
	if (c->diag->errors != errors)
		return false;
	for (size_t i = 0; i < c->prog->nitems; i++)
		if (c->prog->items[i].kind == D_ITEM_PRAGMA)
			check_pragma(c, c->prog->items[i].pragma);
	return c->diag->errors == errors;
}

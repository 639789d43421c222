#include "d/check.h"

#include <string.h>

#include "arch/arch.h"
#include "base/arena.h"
#include "d/lib.h"
#include "d/parse.h"

static const struct builtin builtins[] = {
#define D_GLOBAL(NAME, TYPE, SOURCE, NUMBER) { #NAME, TYPE, BUILTIN_##SOURCE, NUMBER, NULL },
#define D_GLOBAL_NONE(NAME, TYPE, INSTEAD) { #NAME, TYPE, BUILTIN_NONE, 0, INSTEAD },
#include "d/globals.def"
#undef D_GLOBAL_NONE
#undef D_GLOBAL
};

static struct d_ident *find_builtin(struct check *c, const char *name);

struct d_ident *ident_known(struct check *c, enum ident_space space, const char *name)
{
	struct d_ident *id;

	if (space == SPACE_GLOBAL)
		for (id = c->params; id; id = id->next)
			if (strcmp(id->name, name) == 0)
				return id;
	for (id = c->idents[space]; id; id = id->next)
		if (strcmp(id->name, name) == 0)
			return id;
	return space == SPACE_GLOBAL ? find_builtin(c, name) : NULL;
}

struct d_ident *ident_find(struct check *c, enum ident_space space, const char *name)
{
	struct d_ident *id = ident_known(c, space, name);
	size_t items = c->prog->nitems;

	if (id || space != SPACE_GLOBAL || !d_libs_need(c->prog, name, D_LIB_VALUE))
		return id;
	check_new_items(c, items);
	return ident_known(c, space, name);
}

static const struct builtin *builtin_named(const char *name)
{
	for (size_t i = 0; i < sizeof(builtins) / sizeof(builtins[0]); i++)
		if (strcmp(builtins[i].name, name) == 0)
			return &builtins[i];
	return NULL;
}

bool d_is_builtin(const char *name)
{
	return builtin_named(name) != NULL;
}

static struct d_ident *find_builtin(struct check *c, const char *name)
{
	const struct builtin *b = builtin_named(name);
	struct d_ident *id;

	if (!b)
		return NULL;
	id = ident_new(c, ID_BUILTIN, SPACE_GLOBAL, name, (struct src_pos){ 0 });
	id->builtin = b;
	id->type = d_parse_type(c->prog, b->type);
	return id;
}

struct d_ident *ident_new(struct check *c, enum d_ident_kind kind, enum ident_space space, const char *name,
			  struct src_pos pos)
{
	struct d_ident *id = arena_new_of(c->arena, struct d_ident);

	id->kind = kind;
	id->space = space;
	id->name = name;
	id->pos = pos;
	id->next = c->idents[space];
	c->idents[space] = id;
	return id;
}

const char *ident_kind_text(enum d_ident_kind kind)
{
	switch (kind) {
	case ID_ARRAY:
		return "associative array";
	case ID_AGG:
		return "aggregation";
	case ID_SUBR:
	case ID_ACTION:
	case ID_AGGFUNC:
		return "function";
	default:
		return "scalar";
	}
}

static enum ident_space space_of(const struct d_node *n)
{
	static const enum ident_space spaces[] = {
		[D_GLOBAL_SCOPE] = SPACE_GLOBAL, [D_SELF] = SPACE_SELF, [D_THIS] = SPACE_THIS,
	};

	return spaces[n->scope];
}

static const char *const prefixes[SPACE_MAX] = {
	[SPACE_GLOBAL] = "", [SPACE_SELF] = "self->", [SPACE_THIS] = "this->",
};

/* DTrace's messages distinguish unknown names from variables that are never assigned. */
static void undefined(struct check *c, const struct d_node *n, bool variable)
{
	enum ident_space space = space_of(n);

	c->unknown++;
	if (variable || space != SPACE_GLOBAL)
		check_error(c, n->pos, "D_VAR_UNDEF", "%s%s has not yet been declared or assigned", prefixes[space],
			    n->name);
	else
		check_error(c, n->pos, "D_IDENT_UNDEF", "failed to resolve %s: Unknown variable name", n->name);
	diag_hint(c->diag, "a variable is assigned, or declared, before the text that reads it: %sint %s;",
		  space == SPACE_SELF ? "self " : space == SPACE_THIS ? "this " : "", n->name);
}

const struct type *check_become_int(struct d_node *n, const struct type *t, int64_t v)
{
	n->kind = D_INT;
	n->value = (uint64_t)v;
	return n->type = t;
}

static const struct type *check_builtin(struct check *c, struct d_node *n, struct d_ident *id)
{
	const struct builtin *b = id->builtin;

	if (b->source == BUILTIN_NONE) {
		check_unsupported(c, n->pos, arena_printf(c->arena, "the variable %s", b->name), b->instead);
		return NULL;
	}
	if (b->source == BUILTIN_ARGS || b->source == BUILTIN_UREGS) {
		check_error(c, n->pos, "D_IDENT_BADREF", "associative array '%s' may not be referenced as scalar",
			    b->name);
		return NULL;
	}
	return n->type = id->type;
}

const struct type *check_name(struct check *c, struct d_node *n, enum use use)
{
	enum ident_space space = space_of(n);
	const struct type_enumerator *en;
	struct d_ident *id;

	if (n->mod) {
		check_error(c, n->pos, "D_IDENT_UNDEF", "failed to resolve %s`%s: variables of the kernel and of programs are "
			    "not read", n->mod, n->name);
		diag_hint(c->diag, "use probe arguments, curthread and copyin()");
		return NULL;
	}
	id = ident_known(c, space, n->name);
	if (!id && !type_find_enumerator(c->types, n->name))
		id = ident_find(c, space, n->name);
	if (!id && space == SPACE_GLOBAL) {
		if (strcmp(n->name, "NULL") == 0)
			return check_become_int(n, type_basic(c->types, TYPE_B_LONG), 0);
		en = type_find_enumerator(c->types, n->name);
		if (en)
			return check_become_int(n, en->type, en->value);
		id = check_func_find(c, n->name);
	}
	if (!id) {
		if (use != USE_ASSIGN) {
			undefined(c, n, use == USE_MODIFY);
			return NULL;
		}
		id = ident_new(c, ID_SCALAR, space, n->name, n->pos);
	}
	n->ident = id;
	switch (id->kind) {
	case ID_BUILTIN:
		return check_builtin(c, n, id);
	case ID_SCALAR:
		break;
	case ID_INLINE:
		n->user = id->inl->expr->user && type_is_ptr(id->type);
		if (!id->inl->assoc)
			return n->type = id->type;
		/* fall through */
	default:
		if (id->kind == ID_PARAM) {
			n->user = id->user;
			return n->type = id->type;
		}
		check_error(c, n->pos, "D_IDENT_BADREF", "%s '%s' may not be referenced as scalar",
			    ident_kind_text(id->kind == ID_INLINE ? ID_ARRAY : id->kind), id->name);
		return NULL;
	}
	if (!id->type) {
		if (use != USE_ASSIGN)
			undefined(c, n, use == USE_MODIFY);
		return NULL;		/* the assignment will set the type */
	}
	n->user = id->user;
	return n->type = id->type;
}

/* --- associative arrays ------------------------------------------------------------------------------ */

bool check_is_args(struct check *c, const struct d_node *n)
{
	struct d_ident *id;

	if (n->kind != D_INDEX || n->base->kind != D_NAME || n->base->scope != D_GLOBAL_SCOPE || n->base->mod)
		return false;
	id = ident_find(c, SPACE_GLOBAL, n->base->name);
	return id && id->kind == ID_BUILTIN && id->builtin->source == BUILTIN_ARGS;
}

bool check_is_uregs(struct check *c, const struct d_node *n)
{
	struct d_ident *id;

	if (n->kind != D_INDEX || n->base->kind != D_NAME || n->base->scope != D_GLOBAL_SCOPE || n->base->mod)
		return false;
	id = ident_find(c, SPACE_GLOBAL, n->base->name);
	return id && id->kind == ID_BUILTIN && id->builtin->source == BUILTIN_UREGS;
}

/* Their numbers follow struct pt_regs, like the values of the register names in DTrace for Linux. */
enum { UREGS = 21 };

const struct type *check_uregs(struct check *c, struct d_node *n)
{
	const struct arch *arch = arch_host();
	const struct arch_ureg *regs = arch ? arch->kept.uregs : NULL;
	struct d_node *r = n->args[0];
	int64_t v;

	n->ident = ident_find(c, SPACE_GLOBAL, n->base->name);
	for (size_t i = 0; regs && n->nargs == 1 && r->kind == D_NAME && regs[i].name; i++) {
		if (strcmp(regs[i].name, r->name) != 0)
			continue;
		n->value = regs[i].off;
		return n->type = c->t_uint64;
	}
	if (n->nargs != 1) {
		check_error(c, n->pos, "D_PROTO_LEN", "uregs[ ] prototype mismatch: %zu args passed, 1 expected", n->nargs);
		return NULL;
	}
	if (!check_expr(c, r))
		return NULL;
	if (!d_const(c->prog, r, &v)) {
		check_error(c, r->pos, "D_PROTO_ARG", "uregs[ ] takes the name or the number of a register of this machine: "
			    "R_PC, R_SP, R_R0 and others");
		return NULL;
	}
	if (v < 0 || v >= UREGS) {
		check_error(c, r->pos, v < 0 ? "D_REGS_IDX" : "D_UNKNOWN",
			    "uregs[ ] has no register %lld: the numbers are 0 to %d", (long long)v, UREGS - 1);
		return NULL;
	}
	n->value = (uint64_t)v * 8;
	return n->type = c->t_uint64;
}

bool check_is_array_ref(struct check *c, struct d_node *n)
{
	struct d_ident *id;

	if (n->kind != D_INDEX || n->base->kind != D_NAME || n->base->mod)
		return false;
	id = ident_find(c, space_of(n->base), n->base->name);
	if (!id)	/* x[...] of an unknown x: a new array, or an undefined one */
		return space_of(n->base) != SPACE_GLOBAL || !check_func_find(c, n->base->name);
	return id->kind == ID_ARRAY || (id->kind == ID_INLINE && id->inl->assoc) ||
	       (id->kind == ID_SCALAR && !id->type);
}

bool check_is_bytes(const struct type *t)
{
	const struct type *base = type_strip(t);

	if (!type_is_sou(t) || !type_is_complete(t) || type_size(t) > 8 * (IR_MAX_KEYS - 1))
		return false;
	type_load(base);
	for (size_t i = 0; i < base->nmembers; i++) {
		const struct type *m = base->members[i].type;

		while (type_is_array(m) && !type_is_string(m))
			m = type_target(m);
		if (type_is_string(m) || (type_is_sou(m) && !check_is_bytes(m)))
			return false;
	}
	return true;
}

/* Is @n a struct or union that can be a key, and not translated? */
static bool is_bytes(struct d_node *n)
{
	struct xlated x;

	return check_is_bytes(n->type) && !check_xlated(n, &x);
}

bool check_keys(struct check *c, struct d_ident *id, struct d_node *n)
{
	const char *at = id->kind == ID_AGG ? "@" : prefixes[id->space];
	uint64_t words = 0;
	bool ok = true;

	for (size_t i = 0; i < n->nargs; i++) {
		bool ok_type;

		c->in_agg_key = id->kind == ID_AGG && n->args[i]->kind == D_CALL;
		ok_type = check_expr(c, n->args[i]) != NULL;
		c->in_agg_key = false;
		if (!ok_type) {
			ok = false;
		} else if (type_is_void(n->args[i]->type)) {
			check_error(c, n->args[i]->pos, "D_KEY_TYPE",
				    "%s expression may not be used as %s index: key #%zu", check_text(c, n->args[i]),
				    ident_kind_text(id->kind), i + 1);
			ok = false;
		} else if (type_is_array(n->args[i]->type) && !type_is_char_array(n->args[i]->type) && check_root(n->args[i])) {
			check_unsupported(c, n->args[i]->pos, "an array that is a variable as key", "use its elements as keys");
			ok = false;
		} else if (!type_is_storable(n->args[i]->type) && !type_is_array(n->args[i]->type) &&
			   !(id->kind == ID_ARRAY && is_bytes(n->args[i]))) {
			check_unsupported(c, n->args[i]->pos, type_is_float(n->args[i]->type) ? "a floating-point number as key" :
					  "a struct or union as key", "use its members as keys");
			ok = false;
		} else {
			words += type_is_sou(n->args[i]->type) ? (type_size(n->args[i]->type) + 7) / 8 : 1;
		}
	}
	if (n->nargs > IR_MAX_KEYS) {
		check_error(c, n->pos, "D_KEY_TYPE", "%s%s[ ] has %zu keys, at most %d are possible", at, id->name,
			    n->nargs, IR_MAX_KEYS);
		return false;
	}
	if (words > n->nargs && words >= IR_MAX_KEYS) {
		check_error(c, n->pos, "D_KEY_TYPE", "%s%s[ ] has keys of %d words, at most %d are possible", at, id->name,
			    (int)words, IR_MAX_KEYS - 1);
		return false;
	}
	if (!ok)
		return false;
	if (!id->keyed) {
		id->keyed = true;
		id->nkeys = n->nargs;
		id->keys = arena_alloc(c->arena, n->nargs * sizeof(*id->keys));
		for (size_t i = 0; i < n->nargs; i++) {
			const struct type *t = n->args[i]->type;

			id->keys[i] = type_is_char_array(t) ? c->t_string :
				      type_is_array(t) ? type_ptr(c->types, type_target(t)) : t;
		}
		return true;
	}
	if (n->nargs != id->nkeys) {
		check_error(c, n->pos, "D_PROTO_LEN", "%s%s[ ] prototype mismatch: %zu key%spassed, %zu expected", at,
			    id->name, n->nargs, n->nargs == 1 ? " " : "s ", id->nkeys);
		return false;
	}
	for (size_t i = 0; i < n->nargs; i++) {
		if (type_takes(c, id->keys[i], n->args[i]->user, n->args[i]))
			continue;
		check_error(c, n->args[i]->pos, "D_PROTO_ARG",
			    "%s%s[ ] key #%zu is incompatible with prototype:\n\tprototype: %s\n\t      key: %s", at,
			    id->name, i + 1, type_text(c->arena, id->keys[i]), check_text(c, n->args[i]));
		ok = false;
	}
	return ok;
}

const struct type *check_array(struct check *c, struct d_node *n, enum use use)
{
	struct d_node *base = n->base;
	enum ident_space space = space_of(base);
	struct d_ident *id = ident_find(c, space, base->name);
	bool known = id && id->type;

	if (id && id->kind == ID_INLINE) {
		n->ident = id;
		return check_inline_call(c, n);
	}
	if (!known && use != USE_ASSIGN) {
		undefined(c, base, true);
		return NULL;
	}
	if (!known && space == SPACE_THIS) {
		check_error(c, n->pos, "D_ARR_LOCAL", "local variables may not be used as associative arrays: %s",
			    base->name);
		diag_hint(c->diag, "use self->%s[] or %s[]", base->name, base->name);
		return NULL;
	}
	if (!id)
		id = ident_new(c, ID_ARRAY, space, base->name, base->pos);
	if (id->kind == ID_SCALAR)
		id->kind = ID_ARRAY;
	n->ident = id;
	if (!check_keys(c, id, n))
		return NULL;
	if (!id->type)
		return NULL;		/* the assignment will set the type */
	n->user = id->user;
	return n->type = id->type;
}

/* --- args[] ------------------------------------------------------------------------------------------ */

static bool same_sig(const struct probe_sig *a, const struct probe_sig *b)
{
	if (a->nargs != b->nargs)
		return false;
	for (unsigned int i = 0; i < a->nargs; i++) {
		const struct probe_arg *x = &a->args[i], *y = &b->args[i];

		if (!probe_arg_same(x, y))
			return false;
	}
	return true;
}

/* Ask the resolver once per clause. */
static void find_args(struct check *c)
{
	const struct d_clause *cl = c->clause;

	c->args_state = ARGS_NONE;
	for (size_t i = 0; i < cl->ndescs; i++) {
		struct probe_sig sig = { 0 };
		bool same = false;

		if (!c->resolver || !c->resolver->match(c->resolver->ctx, &cl->descs[i], &sig, &same))
			continue;
		if (!same || (c->args_state == ARGS_SAME && !same_sig(&sig, &c->sig))) {
			c->args_state = ARGS_DIFFER;
			return;
		}
		c->sig = sig;
		c->args_state = ARGS_SAME;
	}
}

/* Parse a type, and check the libraries that this loads. */
static const struct type *check_parse_type(struct check *c, const char *text)
{
	size_t items = c->prog->nitems;
	const struct type *t = d_parse_type(c->prog, text);

	check_new_items(c, items);
	return t;
}

static const struct type *arg_type(struct check *c, struct d_node *n, const struct probe_arg *arg)
{
	const struct type *t;
	size_t len;

	if (arg->is_float)
		return type_basic(c->types, arg->size == 4 ? TYPE_B_FLOAT : TYPE_B_DOUBLE);
	if (!arg->type)
		return type_int(c->types, arg->size, arg->sign);
	t = check_parse_type(c, arg->type);
	if (t && type_is_array(t))
		t = type_ptr(c->types, type_target(t));
	if (t && type_is_storable(t) && (!type_is_string(t) || arg->raw))	/* a program's own type may be called string */
		return t;
	if (!t && arg->kernel)
		return type_int(c->types, arg->size, arg->sign);
	len = strlen(arg->type);
	if (!t && len && arg->type[len - 1] == '*')	/* a pointer to a type that the script did not declare */
		return type_ptr(c->types, c->t_void);
	check_error(c, n->pos, "D_ARGS_TYPE", "failed to resolve native type for args[%llu]: %s",
		    (unsigned long long)n->args[0]->value, arg->type);
	diag_hint(c->diag, "arg%llu is the argument as an integer", (unsigned long long)n->args[0]->value);
	return NULL;
}

/* args[n] where the provider translates it: n->aux is the xlate of the argument that is translated. */
static const struct type *translated(struct check *c, struct d_node *n, const struct probe_arg *arg)
{
	struct d_node *raw = arena_new_of(c->arena, struct d_node), *cast = arena_new_of(c->arena, struct d_node);
	struct d_node *x = arena_new_of(c->arena, struct d_node);

	raw->kind = D_NAME;
	raw->name = arena_printf(c->arena, "arg%llu", (unsigned long long)n->value);
	cast->kind = D_CAST;
	cast->base = raw;
	cast->ctype = check_parse_type(c, arg->type);
	x->kind = D_XLATE;
	x->base = cast;
	x->ctype = check_parse_type(c, arg->xlate);
	raw->pos = cast->pos = x->pos = n->pos;
	if (!cast->ctype || !x->ctype) {
		check_error(c, n->pos, "D_ARGS_TYPE", "failed to resolve native type for args[%llu]: %s",
			    (unsigned long long)n->args[0]->value, cast->ctype ? arg->xlate : arg->type);
		diag_hint(c->diag, "%s", cast->ctype ? "the library procfs.d has it: -x nolibs leaves it out" :
			  "the kernel's type information has it (/sys/kernel/btf/vmlinux)");
		return NULL;
	}
	n->aux = x;
	return check_expr(c, x);
}

const struct type *check_args(struct check *c, struct d_node *n)
{
	const struct probe_desc *d;
	int64_t i;

	n->ident = ident_find(c, SPACE_GLOBAL, n->base->name);
	if (n->nargs != 1) {
		check_error(c, n->pos, "D_PROTO_LEN", "args[ ] prototype mismatch: %zu args passed, 1 expected",
			    n->nargs);
		return NULL;
	}
	if (!check_expr(c, n->args[0]))
		return NULL;
	if (!node_is_int(n->args[0]) || !d_const(c->prog, n->args[0], &i)) {
		check_error(c, n->args[0]->pos, "D_PROTO_ARG", "args[ ] argument #1 is incompatible with prototype:\n"
			    "\tprototype: integer constant\n\t argument: %s", check_text(c, n->args[0]));
		return NULL;
	}
	if (!c->clause) {
		check_error(c, n->pos, "D_ARGS_NONE", "args[ ] may not be referenced outside of a probe clause");
		return NULL;
	}
	if (c->args_state == ARGS_UNKNOWN)
		find_args(c);
	d = &c->clause->descs[0];
	if (c->args_state == ARGS_DIFFER) {
		check_error(c, n->pos, "D_ARGS_MULTI", "args[ ] may not be referenced because probe description "
			    "%s:%s:%s:%s matches an unstable set of probes", d->prov, d->mod, d->func, d->name);
		diag_hint(c->diag, "arg0 ... arg9 are the arguments as integers, whatever the probe");
		return NULL;
	}
	if (i < 0 || c->args_state == ARGS_NONE || i >= (int64_t)c->sig.nargs) {
		check_error(c, n->pos, "D_ARGS_IDX", "index %lld is out of range for %s:%s:%s:%s args[ ]",
			    (long long)i, d->prov, d->mod, d->func, d->name);
		return NULL;
	}
	n->value = c->sig.args[i].raw ? c->sig.args[i].raw - 1u : (uint64_t)i;
	n->aux = NULL;
	n->type = c->sig.args[i].xlate ? translated(c, n, &c->sig.args[i]) : arg_type(c, n, &c->sig.args[i]);
	n->user = n->type && type_is_ptr(n->type) && !c->sig.args[i].kernel;
	return n->type;
}

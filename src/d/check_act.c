/*
 * Actions: their arguments, and the formats of printf() and printa().
 *
 * Guide: "Actions and Subroutines", "Output Formatting".
 */
#include "d/check.h"

#include <string.h>

#include "base/arena.h"
#include "lang/format.h"

/* --- formats ----------------------------------------------------------------------------------------- */

/* A value for a format: an argument of printf, a key of an aggregation, or an aggregation's value. */
struct value {
	const struct type *type;
	const char *text;		/* its type for messages */
	struct src_pos pos;
};

/* What @k requires, as messages name it; NULL: @v fits. */
static const char *conv_wants(const struct fmt_conv *k, const struct value *v)
{
	const struct type *t = v->type;
	bool is_stack = type_slot(t).show == IR_SHOW_STACK, is_int = type_is_integer(t) && !is_stack;
	bool is_ptr = (type_is_ptr(t) || type_is_array(t)) && !is_stack;

	switch (k->kind) {
	case FMT_INT:
		return is_int ? NULL : "char, short, int, long, or long long";
	case FMT_STRING:
		return type_is_string(t) || type_is_char_array(t) ? NULL : "char [] or string (or use stringof)";
	case FMT_ANY:
		return is_int || type_is_string(t) ? NULL : "integer or string";
	case FMT_TIME:
		return is_int && type_size(t) == 8 ? NULL : "int64_t";
	case FMT_ADDR:
		return is_int || is_ptr ? NULL : "pointer or integer";
	case FMT_STACK:
		return is_stack ? NULL : "stack";
	case FMT_FLOAT:
		return type_is_float(t) && type_size(t) <= 8 ? NULL : "float or double";
	default:
		return "none";
	}
}

static const char *conv_name(struct check *c, const struct fmt_conv *k)
{
	const char *size = k->size == 1 ? "hh" : k->size == 2 ? "h" : k->size == 8 ? "l" : "";

	return arena_printf(c->arena, "%s%c", size, k->letter);
}

static struct fmt *parse_format(struct check *c, const struct d_node *call)
{
	const struct d_node *s = call->args[0];
	const char *func = call->base->name, *err;
	struct fmt *f;
	size_t off;

	if (!s->str_len && strcmp(func, "freopen") != 0) {	/* freopen(""): back to the former output */
		check_error(c, call->pos, "D_PRINTF_FMT_EMPTY", "%s( ) format string is empty", func);
		return NULL;
	}
	f = fmt_parse(c->arena, FMT_D, s->str, s->str_len, &err, &off);
	if (!f)
		check_error(c, s->pos, "D_SYNTAX", "%s", err);
	return f;
}

/* A dynamic width or precision takes an integer argument. */
static bool check_dynamic(struct check *c, const struct d_node *call, const struct fmt_conv *k, size_t conv,
			  const char *dyn, const struct value *v, size_t n, size_t *used)
{
	const char *func = call->base->name, *name = conv_name(c, k);

	if (*used == n) {
		check_error(c, call->pos, "D_PRINTF_DYN_PROTO", "%s( ) prototype mismatch: conversion #%zu (%%%s) is "
			    "missing a corresponding \"%s\" argument", func, conv, name, dyn);
		return false;
	}
	if (!type_is_integer(v[*used].type)) {
		check_error(c, v[*used].pos, "D_PRINTF_DYN_TYPE", "%s( ) argument #%zu is incompatible with conversion "
			    "#%zu prototype:\n\tconversion: %% %s %s\n\t prototype: int\n\t  argument: %s", func,
			    *used + 2, conv, dyn, name, v[*used].text);
		return false;
	}
	++*used;
	return true;
}

/*
 * Compare the conversions of @f with the @n values @v; @agg is what %@ takes, or NULL in a printf.  All
 * values must be used when @exact.
 */
static bool check_format(struct check *c, const struct d_node *call, const struct fmt *f, const struct value *v,
			 size_t n, const struct value *agg, bool exact)
{
	const char *func = call->base->name, *wants, *name;
	size_t used = 0;

	for (size_t i = 0; i < f->n; i++) {
		const struct fmt_conv *k = &f->convs[i];
		const struct value *val;

		if (k->kind == FMT_NONE)
			continue;
		name = conv_name(c, k);
		if (k->kind == FMT_UNSUP) {
			check_unsupported(c, call->args[0]->pos, arena_printf(c->arena, "format conversion #%zu (%%%s)",
									      i + 1, name), NULL);
			return false;
		}
		if ((k->dyn_width && !check_dynamic(c, call, k, i + 1, "*", v, n, &used)) ||
		    (k->dyn_prec && !check_dynamic(c, call, k, i + 1, ".*", v, n, &used)))
			return false;
		if (k->flags & FMT_AGG) {
			if (!agg) {
				check_error(c, call->args[0]->pos, "D_PRINTF_AGG_CONV", "%%@ conversion requires an "
					    "aggregation and is not for use with %s( )", func);
				return false;
			}
			val = agg;
		} else if (used == n) {
			check_error(c, call->pos, "D_PRINTF_ARG_PROTO", "%s( ) prototype mismatch: conversion #%zu "
				    "(%%%s) is missing a corresponding value argument", func, i + 1, name);
			return false;
		} else {
			val = &v[used++];
		}
		wants = conv_wants(k, val);
		if (!wants)
			continue;
		check_error(c, val->pos, "D_PRINTF_ARG_TYPE", "%s( ) %s is incompatible with conversion #%zu "
			    "prototype:\n\tconversion: %%%s\n\t prototype: %s\n\t  argument: %s", func,
			    val == agg ? "aggregating action" : arena_printf(c->arena, "argument #%zu", used + 1), i + 1,
			    name, wants, val->text);
		if (k->kind == FMT_STRING && type_is_integer(val->type))
			diag_hint(c->diag, "copyinstr() reads the string at an address; %%d prints an integer");
		else if (k->kind == FMT_STRING && type_is_char_ptr(val->type))
			diag_hint(c->diag, "stringof() reads the string that a pointer points to");
		return false;
	}
	if (exact && used != n) {
		check_error(c, call->pos, "D_PRINTF_ARG_EXTRA", "%s( ) prototype mismatch: only %zu arguments required "
			    "by this format string", func, used);
		return false;
	}
	return true;
}

static void set_format(struct check *c, struct d_node *call, const struct fmt *f)
{
	struct printed *p = arena_new_of(c->arena, struct printed);

	p->fmt = f;
	call->aux = p;
}

/*
 * Is the floating-point number @n in memory, a variable, an argument, or the result of a subroutine?  Nothing else
 * has such values.
 */
static bool is_composite(struct check *c, const struct d_node *n)
{
	if (n->kind == D_UNARY || n->kind == D_NAME || n->kind == D_INDEX || (n->kind == D_MEMBER && !n->ident) ||
	    n->kind == D_CALL)
		return true;
	check_unsupported(c, n->pos, "a floating-point number that is not in memory", NULL);
	return false;
}

/* Can the value of @n be recorded?  A mistake is reported. */
static bool recordable(struct check *c, const struct d_node *n)
{
	if (type_is_array(n->type) && !type_is_char_array(n->type) && check_root((struct d_node *)(uintptr_t)n)) {
		check_unsupported(c, n->pos, "recording an array that is a variable", "print() shows all of it, tracemem() its bytes");
		return false;
	}
	if (type_is_storable(n->type) || type_is_array(n->type))
		return true;
	if (type_is_float(n->type))
		return is_composite(c, n);
	check_unsupported(c, n->pos, "recording a struct or union", "record its members, or print() all of it");
	return false;
}

bool check_printf(struct check *c, struct d_node *call)
{
	const struct d_node *s = call->args[0];
	size_t n = call->nargs - 1;
	struct value *v;
	struct fmt *f;

	if (s->kind != D_STR) {
		check_error(c, call->pos, "D_PRINTF_ARG_FMT", "%s( ) argument #1 is incompatible with prototype:\n"
			    "\tprototype: string constant\n\t argument: %s", call->base->name, check_text(c, s));
		return false;
	}
	f = parse_format(c, call);
	if (!f)
		return false;
	if (n > IR_MAX_FIELDS) {
		check_unsupported(c, call->pos, "a printf( ) of more than 1024 values", "use several of them");
		return false;
	}
	v = arena_alloc(c->arena, (n + 1) * sizeof(*v));
	for (size_t i = 0; i < n; i++) {
		v[i].type = call->args[i + 1]->type;
		v[i].text = check_text(c, call->args[i + 1]);
		v[i].pos = call->args[i + 1]->pos;
	}
	if (!check_format(c, call, f, v, n, NULL, true))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!recordable(c, call->args[i + 1]))
			return false;
	set_format(c, call, f);
	return true;
}

bool check_traced_as_bytes(struct d_node *n)
{
	struct xlated x;

	return !check_xlated(n, &x) && (type_is_sou(n->type) || (type_is_array(n->type) && !type_is_char_array(n->type)));
}

bool check_trace(struct check *c, struct d_node *call)
{
	struct d_node *n = call->args[0];

	if (node_is_agg(n)) {
		check_error(c, n->pos, "D_TRACE_DYN", "trace( ) may not be applied to an aggregation");
		diag_hint(c->diag, "printa() prints aggregations");
		return false;
	}
	if (type_is_void(n->type)) {
		check_error(c, n->pos, "D_TRACE_VOID", "trace( ) may not be applied to a void expression");
		return false;
	}
	if (type_is_float(n->type)) {
		check_unsupported(c, n->pos, "tracing a floating-point number", "printf()'s %g prints it");
		return false;
	}
	if (check_traced_as_bytes(n) && type_size(n->type) <= TRACED_MAX && !type_has_string(n->type))
		return true;
	return recordable(c, n);
}

/*
 * print() of a pointer to a complete type, not translated: the object that it points to becomes the second argument.
 * (DTrace for Linux guide, "print".)
 */
static bool add_object(struct check *c, struct d_node *call)
{
	struct d_node *ptr = call->args[0], *object = arena_new_of(c->arena, struct d_node);
	struct d_node **args = arena_alloc(c->arena, 2 * sizeof(*args));
	const struct type *to;
	struct xlated x;

	if (!node_is_ptr(ptr) || type_is_array(ptr->type) || check_xlated(ptr, &x))
		return true;
	to = type_target(ptr->type);
	if (type_is_string(to))
		return true;
	if (type_is_void(to) || type_strip(to)->kind == TYPE_FUNC || !type_is_complete(to) || !type_size(to)) {
		check_error(c, ptr->pos, "D_PRINT_SIZE", "print( ) argument #1 reference has type '%s' with size 0; cannot "
			    "print( ) it", type_text(c->arena, to));
		return false;
	}
	*object = (struct d_node){ .kind = D_UNARY, .op = D_OP_DEREF, .pos = ptr->pos, .base = ptr, .type = to,
				   .user = ptr->user, .depth = ptr->depth };
	args[0] = ptr;
	args[1] = object;
	call->args = args;
	call->nargs = 2;
	return true;
}

bool check_print(struct check *c, struct d_node *call)
{
	const struct d_node *n = call->args[0];

	if (node_is_agg(n)) {
		check_error(c, n->pos, "D_PRINT_AGG", "print( ) may not be applied to an aggregation");
		diag_hint(c->diag, "printa() prints aggregations");
		return false;
	}
	if (type_is_void(n->type)) {
		check_error(c, n->pos, "D_PRINT_VOID", "print( ) may not be applied to a void expression");
		return false;
	}
	return add_object(c, call) && (!type_is_float(n->type) || is_composite(c, n));
}

/* tracemem(address, bytes, [bytes to show]) */
bool check_tracemem(struct check *c, struct d_node *call)
{
	const int64_t most = 8 * (IR_MAX_FIELDS - 8);
	const struct d_node *n = call->args[0];
	int64_t bytes;

	if (!node_is_int(n) && !type_is_ptr(n->type) && !type_is_array(n->type)) {
		check_error(c, n->pos, "D_TRACEMEM_ADDR", "tracemem( ) argument #1 is incompatible with prototype:\n"
			    "\tprototype: pointer or integer\n\t argument: %s", check_text(c, n));
		return false;
	}
	if (!node_is_int(call->args[1]) || !d_const(c->prog, call->args[1], &bytes) || bytes < 1) {
		check_error(c, call->args[1]->pos, "D_TRACEMEM_SIZE", "tracemem( ) argument #2 must be a non-zero positive "
			    "integral constant expression");
		return false;
	}
	if (bytes > most) {
		check_unsupported(c, call->args[1]->pos, arena_printf(c->arena, "tracemem( ) of more than %lld bytes",
				  (long long)most), "use several of them, in several clauses");
		return false;
	}
	return true;
}

/* system(format, ...), freopen(format, ...), ftruncate() */
bool check_command(struct check *c, struct d_node *call)
{
	if (!call->nargs)
		return true;
	if (call->ident->action->what == IR_ACT_FREOPEN && call->args[0]->kind == D_STR && !strcmp(call->args[0]->str, ".")) {
		check_error(c, call->args[0]->pos, "D_FREOPEN_INVALID", "freopen( ) argument #1 cannot be \".\"");
		diag_hint(c->diag, "\"\" is standard output");
		return false;
	}
	return check_printf(c, call);
}

bool check_signal(struct check *c, struct d_node *call)
{
	(void)c;
	(void)call;
	return true;
}

bool check_setopt(struct check *c, struct d_node *call)
{
	for (size_t i = 0; i < call->nargs; i++) {
		if (call->args[i]->kind == D_STR)
			continue;
		check_error(c, call->args[i]->pos, i ? "D_SETOPT_VALUE" : "D_SETOPT_NAME", "setopt( ) argument #%zu must be a "
			    "string constant", i + 1);
		return false;
	}
	return true;
}

bool check_exit(struct check *c, struct d_node *call)
{
	(void)c;
	(void)call;
	return true;
}

/* --- stacks and addresses ---------------------------------------------------------------------------- */

/* What the frames of pystack() are to tell: its second argument. */
static bool check_detail(struct check *c, const struct d_node *n)
{
	if (n->kind == D_STR && check_pystack_detail(n->str) >= 0)
		return true;
	check_error(c, n->pos, "D_PYSTACK_DETAIL", "pystack( ) argument #2 must be \"line\", for the line that each frame is "
		    "at, or \"instruction\", for that, too, or \"function\", for the function alone, or \"async\", for those behind the "
		    "running task, or \"async\" and one of them");
	return false;
}

int check_pystack_detail(const char *text)
{
	static const struct { const char *text; int details; } words[] = {
		{ "line", PYSTACK_LINE }, { "function", PYSTACK_FUNCTION }, { "instruction", PYSTACK_INSTRUCTION },
		{ "async", PYSTACK_ASYNC }, { "async line", PYSTACK_ASYNC | PYSTACK_LINE },
		{ "async function", PYSTACK_ASYNC | PYSTACK_FUNCTION }, { "async instruction", PYSTACK_ASYNC | PYSTACK_INSTRUCTION },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(text, words[i].text))
			return words[i].details;
	return -1;
}

/* stack([frames]), ustack([frames, [string size]]), jstack(), pystack([frames, [detail]]) */
bool check_stack(struct check *c, struct d_node *call)
{
	const char *func = call->base->name;
	int whose = call->ident->action->what;
	bool user = whose != STACK_KERNEL;
	int64_t v;

	for (size_t i = 0; i < call->nargs; i++) {
		const struct d_node *n = call->args[i];

		if (i && whose == STACK_PYTHON)
			return check_detail(c, n);
		if (node_is_int(n) && d_const(c->prog, n, &v) && v >= (i ? 0 : 1) && v <= INT32_MAX)
			continue;
		check_error(c, n->pos, !user ? "D_STACK_SIZE" : i ? "D_USTACK_STRSIZE" : "D_USTACK_FRAMES", "%s( ) argument #%zu "
			    "must be a %s integer constant", func, i + 1, i ? "positive or zero" : "non-zero positive");
		return false;
	}
	return true;
}

int64_t check_stack_frames(struct check *c, const struct d_node *call)
{
	const struct d_opts *o = c->opts;
	const struct {
		uint32_t option;
		int64_t frames;		/* without it */
	} most[] = {
		[STACK_KERNEL] = { o->stackframes, 20 }, [STACK_USER] = { o->ustackframes, 100 },
		[STACK_JAVA] = { o->jstackframes, 50 }, [STACK_PYTHON] = { o->ustackframes, 100 },
	}, *m = &most[call->ident->action->what];
	int64_t frames = m->option ? m->option : m->frames;

	if (call->nargs)
		d_const(c->prog, call->args[0], &frames);
	return frames;
}

/*
 * ustack(5).depth and others.  A stack is kept under a number, which does not say what it was asked for with: the members
 * are those of a call.
 */
const struct type *check_stack_member(struct check *c, struct d_node *n)
{
	enum { DEPTH, IS_USER, PID, STRSZ, NMEMBERS };
	static const char *const members[NMEMBERS] = { "depth", "is_user", "pid", "strsz" };
	struct d_node *call = n->base;
	bool is_user;
	int64_t v = 0;
	int m = 0;

	while (m < NMEMBERS && strcmp(n->name, members[m]))
		m++;
	if (m == NMEMBERS) {
		check_error(c, n->pos, "D_TYPE_MEMBER", "%s is not a member of a stack", n->name);
		diag_hint(c->diag, "its members are depth, is_user, pid and strsz");
		return NULL;
	}
	if (call->kind != D_CALL) {
		check_unsupported(c, n->pos, arena_printf(c->arena, "%s of a stack in a variable", n->name),
				  "write it behind the call, as in ustack(5).depth");
		return NULL;
	}
	is_user = call->ident->action->what != STACK_KERNEL;
	if (m == PID && is_user) {
		n->kind = D_NAME;	/* whose stack it is: the process at hand */
		n->scope = D_GLOBAL_SCOPE;
		n->mod = NULL;
		return check_expr(c, n);
	}
	if (m == DEPTH)
		v = check_stack_frames(c, call);
	else if (m == IS_USER)
		v = is_user;
	else if (m == STRSZ && call->nargs > 1 && call->args[1]->kind != D_STR)
		d_const(c->prog, call->args[1], &v);
	return check_become_int(n, type_basic(c->types, TYPE_B_UINT), v);
}

bool check_symbol(struct check *c, struct d_node *call)
{
	(void)c;
	(void)call;
	return true;
}

/* --- aggregations ------------------------------------------------------------------------------------ */

/* Argument @i must be an aggregation. */
static bool check_agg_arg(struct check *c, const struct d_node *call, size_t i, const char *tag, const char *unknown)
{
	const struct d_node *n = call->args[i];

	if (n->kind == D_AGG && n->ident->fn)
		return true;
	if (n->kind == D_AGG) {
		c->unknown++;
		check_error(c, n->pos, unknown, "undefined aggregation: @%s", n->name);
		diag_hint(c->diag, "an aggregation must be assigned before the text that uses it");
		return false;
	}
	check_error(c, n->pos, tag, "%s( ) argument #%zu is incompatible with prototype:\n"
		    "\tprototype: aggregation\n\t argument: %s", call->base->name, i + 1, check_text(c, n));
	if (node_is_agg(n))
		diag_hint(c->diag, "the aggregation is named without keys: @%s", n->ident->name);
	return false;
}

/*
 * clear(@a), trunc(@a, [n]), normalize(@a, n), denormalize(@a).  One row each, with the tags for what is no aggregation and
 * for one that nothing was assigned to.
 */
static const struct aggact {
	enum ir_act_kind kind;
	const char *tag, *unknown;
} aggacts[] = {
	{ IR_ACT_CLEAR, "D_CLEAR_AGGARG", "D_CLEAR_AGGBAD" },
	{ IR_ACT_DENORMALIZE, "D_NORMALIZE_AGGARG", "D_NORMALIZE_AGGBAD" },
	{ IR_ACT_NORMALIZE, "D_NORMALIZE_AGGARG", "D_NORMALIZE_AGGBAD" },
	{ IR_ACT_TRUNC, "D_TRUNC_AGGARG", "D_TRUNC_AGGBAD" },
};

bool check_aggact(struct check *c, struct d_node *call)
{
	const struct aggact *a = aggacts;

	while ((int)a->kind != call->ident->action->what)
		a++;
	return check_agg_arg(c, call, 0, a->tag, a->unknown);
}

/* Aggregations printed together have keys of the same types. */
static bool same_keys(struct check *c, const struct d_node *na, const struct d_node *nb)
{
	const struct d_ident *a = na->ident, *b = nb->ident;

	if (a->nkeys != b->nkeys) {
		check_error(c, nb->pos, "D_PRINTA_AGGKEY", "printa( ): @%s and @%s do not have matching key signatures: "
			    "@%s has %zu key%s, @%s has %zu key%s", a->name, b->name, a->name, a->nkeys,
			    a->nkeys == 1 ? "" : "s", b->name, b->nkeys, b->nkeys == 1 ? "" : "s");
		return false;
	}
	for (size_t i = 0; i < a->nkeys; i++) {
		const struct d_node key = { .kind = D_NAME, .type = b->keys[i] };

		if (type_takes(c, a->keys[i], false, &key))
			continue;
		check_error(c, nb->pos, "D_PRINTA_AGGPROTO", "printa( ): @%s[ ] key #%zu is incompatible with @%s:\n"
			    "%9s key #%zu: %s\n%9s key #%zu: %s", b->name, i + 1, a->name, a->name, i + 1,
			    type_text(c->arena, a->keys[i]), b->name, i + 1, type_text(c->arena, b->keys[i]));
		return false;
	}
	return true;
}

bool check_printa(struct check *c, struct d_node *call)
{
	bool has_fmt = call->args[0]->kind == D_STR;
	size_t first = has_fmt ? 1 : 0;
	struct fmt *f = NULL;
	const struct d_ident *id;
	struct value *v, agg;

	if (call->nargs <= first) {
		check_error(c, call->pos, "D_PRINTA_PROTO", "printa( ) prototype mismatch: %zu args passed, %d expected",
			    call->nargs, has_fmt ? 2 : 1);
		return false;
	}
	for (size_t i = first; i < call->nargs; i++)
		if (!check_agg_arg(c, call, i, "D_PRINTA_AGGARG", "D_PRINTA_AGGBAD") ||
		    (i > first && !same_keys(c, call->args[first], call->args[i])))
			return false;
	if (has_fmt) {
		id = call->args[first]->ident;
		f = parse_format(c, call);
		if (!f)
			return false;
		v = arena_alloc(c->arena, (id->nkeys + 1) * sizeof(*v));
		for (size_t i = 0; i < id->nkeys; i++)
			v[i] = (struct value){ id->keys[i], type_text(c->arena, id->keys[i]), call->args[0]->pos };
		agg.type = id->fn->fn == IR_A_COUNT ? c->t_uint64 : c->t_int64;
		agg.text = type_text(c->arena, agg.type);
		agg.pos = call->args[0]->pos;
		if (!check_format(c, call, f, v, id->nkeys, &agg, false))
			return false;
	}
	set_format(c, call, f);
	return true;
}

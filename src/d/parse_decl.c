/*
 * D's declarations: C's, with self and this as storage classes and associative arrays as declarators.
 *
 * A declarator is written inside out.  Reading it yields a list of its parts, nearest to the name first ("int
 * *(*f[4])(void)": array of 4, pointer, function, pointer); applying the list backwards to the specifiers' type
 * yields the name's type.
 *
 * Guide: "Variables", "Types, Operators, and Expressions", "Structs and Unions", "Type and Constant
 * Definitions".
 */
#include "d/parser.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/arena.h"
#include "d/lib.h"

/* --- specifiers -------------------------------------------------------------------------------------- */

/* The specifiers before a declarator. */
struct specs {
	struct src_pos pos;
	enum d_tok class;		/* KEY_SELF ... KEY_TYPEDEF; TOK_EOF: none */
	struct src_pos class_pos;
	unsigned int quals;
	unsigned int nlong, nshort, nsigned, nunsigned;
	enum d_tok word;		/* KEY_VOID KEY_CHAR KEY_INT KEY_FLOAT KEY_DOUBLE; TOK_EOF: none */
	const struct type *named;	/* string, typedef, struct, union, enum */
	bool tagged;			/* named is a struct, union or enum defined here */
	const struct type *type;	/* the result */
};

enum { ALLOW_CLASS = 1 };

static bool is_shadowed(const struct parser *p, const char *name)
{
	const struct d_state *s = p->prog->state;
	size_t i;

	for (i = 0; i < s->nshadows; i++)
		if (!strcmp(s->shadows[i], name))
			return true;
	return false;
}

/* Note that a variable of that name is known from here on. */
static void declare_name(struct parser *p, const char *name)
{
	struct d_state *s = p->prog->state;

	if (!type_find_typedef(p->types, name) || is_shadowed(p, name))
		return;
	s->shadows = arena_grow(p->arena, s->shadows, &s->shadows_cap, s->nshadows, sizeof(*s->shadows));
	s->shadows[s->nshadows++] = name;
}

static bool is_class(enum d_tok kind)
{
	return kind == KEY_AUTO || kind == KEY_REGISTER || kind == KEY_STATIC || kind == KEY_EXTERN ||
	       kind == KEY_TYPEDEF || kind == KEY_SELF || kind == KEY_THIS;
}

/*
 * Can the unknown identifier @t be the name of a type of the kernel or a program?  Looking it up is expensive, so it
 * must look like a type: a`b, foo_t where a declaration or a cast can be, (foo *).
 */
static bool looks_like_type(const struct parser *p, const struct d_token *t)
{
	const char *s = t->end, *end = p->lex.end;
	bool stars = false;

	if (strchr(t->str, '`'))
		return true;
	for (; s < end && (*s == ' ' || *s == '\t' || *s == '*'); s++)
		stars |= *s == '*';
	if (s < end && *s == ')' && stars)
		return true;
	return t->len > 2 && !strcmp(t->str + t->len - 2, "_t") && s < end &&
	       (stars || *s == ')' || *s == '>' || *s == '_' || isalpha((unsigned char)*s));
}

/* After the identifier @t: the NAME of a.out`NAME; NULL: @t is another identifier. */
static const char *program_type(struct parser *p, const struct d_token *t)
{
	static const char scope[] = ".out`";
	const char *s = t->end + sizeof(scope) - 1, *end = p->lex.end;
	size_t n = 0;

	if (strcmp(t->str, "a") || s > end || strncmp(t->end, scope, sizeof(scope) - 1))
		return NULL;
	while (s + n < end && (isalnum((unsigned char)s[n]) || s[n] == '_'))
		n++;
	return n ? arena_strndup(p->arena, s, n) : NULL;
}

/* The type that the identifier @t names, or NULL. */
static const struct type *named_type(struct parser *p, const struct d_token *t)
{
	const char *tick = strrchr(t->str, '`'), *own = program_type(p, t);
	const struct type *type = type_find_typedef(p->types, t->str);

	if (own)
		return type_import(p->types, "a.out", TYPE_TYPEDEF, own);
	if (is_shadowed(p, t->str))
		return NULL;
	if (!type && !tick && d_libs_need(p->prog, t->str, D_LIB_TYPE))
		type = type_find_typedef(p->types, t->str);
	if (type || !looks_like_type(p, t))
		return type;
	if (!tick)
		return type_import(p->types, NULL, TYPE_TYPEDEF, t->str);
	if (!strncmp(t->str, "D`", 2) || !strncmp(t->str, "C`", 2))
		return type_find_typedef(p->types, tick + 1);
	return type_import(p->types, arena_strndup(p->arena, t->str, (size_t)(tick - t->str)), TYPE_TYPEDEF, tick + 1);
}

bool at_type(struct parser *p)
{
	switch (peek(p)) {
	case KEY_VOID:
	case KEY_CHAR:
	case KEY_SHORT:
	case KEY_INT:
	case KEY_LONG:
	case KEY_FLOAT:
	case KEY_DOUBLE:
	case KEY_SIGNED:
	case KEY_UNSIGNED:
	case KEY_STRING:
	case KEY_STRUCT:
	case KEY_UNION:
	case KEY_ENUM:
	case KEY_CONST:
	case KEY_VOLATILE:
	case KEY_RESTRICT:
	case KEY_USERLAND:
		return true;
	case TOK_IDENT:
		return named_type(p, &p->tok) != NULL;
	default:
		return false;
	}
}

static const struct type *parse_sou(struct parser *p, bool *defined);
static const struct type *parse_enum(struct parser *p, bool *defined);

static void add_class(struct parser *p, struct specs *s)
{
	struct d_token t = next(p);

	if (s->class != TOK_EOF)
		parse_error(p, t.pos, "D_DECL_CLASS", "only one storage class allowed in a declaration");
	s->class = t.kind;
	s->class_pos = t.pos;
}

/* Report a second type in one declaration. */
static bool has_type(struct parser *p, const struct specs *s)
{
	if (s->word == TOK_EOF && !s->named)
		return false;
	parse_error(p, here(p), "D_DECL_COMBO", "invalid type combination");
	return true;
}

/* The type that the specifiers mean together. */
static const struct type *combine(struct parser *p, const struct specs *s)
{
	static const enum type_basic ints[][2] = { { TYPE_B_SHORT, TYPE_B_USHORT }, { TYPE_B_INT, TYPE_B_UINT },
						   { TYPE_B_LONG, TYPE_B_ULONG }, { TYPE_B_LLONG, TYPE_B_ULLONG } };
	bool sign = s->nsigned || s->nunsigned, size = s->nlong || s->nshort;
	enum type_basic b = TYPE_B_INT;
	const char *tag = NULL, *text = NULL;

	if (s->word == KEY_CHAR && size) {
		tag = "D_DECL_CHARATTR";
		text = "invalid type declaration: short and long may not be used with char type";
	} else if (s->word == KEY_VOID && (size || sign)) {
		tag = "D_DECL_VOIDATTR";
		text = "invalid type declaration: attributes may not be used with void type";
	} else if (sign && (s->named || s->word == KEY_FLOAT || s->word == KEY_DOUBLE)) {
		tag = "D_DECL_SIGNINT";
		text = "invalid type declaration: signed and unsigned may only be used with integer type";
	} else if (size && s->named) {
		tag = "D_DECL_LONGINT";
		text = "invalid type declaration: long and long long may only be used with integer or "
		       "floating-point type";
	} else if ((s->nsigned && s->nunsigned) || (s->nlong && s->nshort) || s->nlong > 2 || s->nshort > 1 ||
		   s->nsigned > 1 || s->nunsigned > 1 || (s->word == KEY_FLOAT && size) ||
		   (s->word == KEY_DOUBLE && (s->nshort || s->nlong > 1))) {
		tag = "D_UNKNOWN";
		text = "invalid type combination";
	}
	if (text)
		parse_error(p, s->pos, tag, "%s", text);
	if (s->named)
		return s->named;
	switch (s->word) {
	case KEY_VOID:
		b = TYPE_B_VOID;
		break;
	case KEY_CHAR:
		b = s->nunsigned ? TYPE_B_UCHAR : s->nsigned ? TYPE_B_SCHAR : TYPE_B_CHAR;
		break;
	case KEY_FLOAT:
		b = TYPE_B_FLOAT;
		break;
	case KEY_DOUBLE:
		b = s->nlong ? TYPE_B_LDOUBLE : TYPE_B_DOUBLE;
		break;
	default:
		b = ints[s->nshort ? 0 : 1 + (s->nlong > 2 ? 2 : s->nlong)][s->nunsigned > 0];
		break;
	}
	return type_basic(p->types, b);
}

/*
 * specifiers = (class | qualifier | "userland" | "void" | "char" | "short" | "int" | "long" | "float" | "double" | "signed"
 *	| "unsigned" | "string" | typedef-name | struct | enum)+
 */
static void parse_specs(struct parser *p, struct specs *s, int allow)
{
	const struct type *named;

	memset(s, 0, sizeof(*s));
	s->class = s->word = TOK_EOF;
	s->pos = here(p);
	for (;;) {
		enum d_tok kind = peek(p);

		if (is_class(kind) && (allow & ALLOW_CLASS)) {
			add_class(p, s);
			continue;
		}
		switch (kind) {
		case KEY_CONST:
			s->quals |= TYPE_CONST;
			break;
		case KEY_VOLATILE:
			s->quals |= TYPE_VOLATILE;
			break;
		case KEY_RESTRICT:
			s->quals |= TYPE_RESTRICT;
			break;
		case KEY_USERLAND:	/* of illumos and FreeBSD: pointers to the type point into the process */
			s->quals |= TYPE_USER;
			break;
		case KEY_SHORT:
			s->nshort++;
			break;
		case KEY_LONG:
			s->nlong++;
			break;
		case KEY_SIGNED:
			s->nsigned++;
			break;
		case KEY_UNSIGNED:
			s->nunsigned++;
			break;
		case KEY_VOID:
		case KEY_CHAR:
		case KEY_INT:
		case KEY_FLOAT:
		case KEY_DOUBLE:
			if (!has_type(p, s))
				s->word = kind;
			break;
		case KEY_STRING:
			if (!has_type(p, s))
				s->named = type_basic(p->types, TYPE_B_STRING);
			break;
		case KEY_STRUCT:
		case KEY_UNION:
		case KEY_ENUM:
			if (!has_type(p, s))
				s->tagged = true;
			named = kind == KEY_ENUM ? parse_enum(p, &s->tagged) : parse_sou(p, &s->tagged);
			s->named = s->named ? s->named : named;
			continue;
		case TOK_IDENT:	/* a type's name comes first: "int uint" declares uint */
			if (s->named || s->word != TOK_EOF || s->nshort || s->nlong || s->nsigned || s->nunsigned ||
			    !at_type(p)) {
				s->type = combine(p, s);
				goto done;
			}
			s->named = named_type(p, &p->tok);
			if (program_type(p, &p->tok)) {		/* a . out`name */
				next(p);
				next(p);
			}
			break;
		default:
			s->type = combine(p, s);
			goto done;
		}
		next(p);
	}
done:
	if (s->quals)
		s->type = type_qualify(p->types, s->type, s->quals);
}

/* --- declarators ------------------------------------------------------------------------------------- */

enum part_kind { PART_PTR, PART_ARRAY, PART_ASSOC, PART_FUNC };

struct part {
	enum part_kind kind;
	struct src_pos pos;
	unsigned int quals;	/* PTR */
	uint64_t count;		/* ARRAY */
	bool counted;
	struct d_params params;	/* ASSOC, FUNC */
};

struct declarator {
	struct src_pos pos;	/* of the name, or where it would be */
	const char *name;	/* NULL: abstract */
	struct part *parts;	/* nearest to the name first */
	size_t nparts, cap;
};

static struct part *add_part(struct parser *p, struct declarator *d, enum part_kind kind)
{
	struct part *part;

	d->parts = arena_grow(p->arena, d->parts, &d->cap, d->nparts, sizeof(*d->parts));
	part = &d->parts[d->nparts++];
	memset(part, 0, sizeof(*part));
	part->kind = kind;
	part->pos = here(p);
	return part;
}

/*
 * Apply the parts of @d to @base, the outermost first.  The first part, if it is an associative array's, is left out.
 */
static const struct type *apply(struct parser *p, const struct declarator *d, const struct type *base)
{
	const struct type **params;
	size_t i, j;

	for (i = d->nparts; i-- > 0;) {
		const struct part *part = &d->parts[i];

		if (base->depth >= TYPE_MAX_DEPTH) {
			parse_error(p, d->pos, "D_SYNTAX", "the type is too deep: more than %d levels", TYPE_MAX_DEPTH);
			return base;
		}
		switch (part->kind) {
		case PART_PTR:
			base = type_ptr(p->types, base);
			if (part->quals)
				base = type_qualify(p->types, base, part->quals);
			break;
		case PART_ARRAY:
			if (type_is_void(base))
				parse_error(p, part->pos, "D_DECL_VOIDOBJ", "cannot declare array of void");
			else if (type_strip(base)->kind == TYPE_FUNC)
				parse_error(p, part->pos, "D_DECL_COMBO", "cannot declare array of functions");
			else if (!type_is_complete(base))
				parse_error(p, part->pos, "D_DECL_INCOMPLETE", "array of incomplete type %s",
					    type_text(p->arena, base));
			base = type_array(p->types, base, part->count, part->counted);
			if (part->counted && base->size > (uint64_t)1 << 40)
				parse_error(p, part->pos, "D_DECL_ARRBIG", "array dimension too big");
			break;
		case PART_ASSOC:
			if (i)
				parse_error(p, part->pos, "D_DECL_DYNOBJ", "an associative array cannot be part of "
					    "another type");
			break;
		case PART_FUNC:
			if (type_is_array(base) || type_strip(base)->kind == TYPE_FUNC)
				parse_error(p, part->pos, "D_DECL_COMBO", "a function cannot return %s",
					    type_is_array(base) ? "an array" : "a function");
			params = arena_alloc(p->arena, (part->params.n + 1) * sizeof(*params));
			for (j = 0; j < part->params.n; j++)
				params[j] = part->params.v[j].type;
			base = type_func(p->types, base, params, part->params.n, part->params.varargs);
			break;
		}
	}
	return base;
}

static bool is_assoc(const struct declarator *d)
{
	return d->nparts && d->parts[0].kind == PART_ASSOC;
}

/* --- parameters -------------------------------------------------------------------------------------- */

/* What a list of parameters may contain (DTrace's rules for each kind of list). */
enum params_flags { PARAMS_VARARGS = 1, PARAMS_VOID = 2, PARAMS_ANON = 4 };

static void parse_declarator(struct parser *p, struct declarator *d);

static const char *param_name(const struct d_param *param)
{
	return param->name ? param->name : "(anonymous)";
}

static bool has_param(const struct d_params *ps, size_t n, const char *name)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (ps->v[i].name && !strcmp(ps->v[i].name, name))
			return true;
	return false;
}

static void check_param(struct parser *p, struct d_params *ps, const struct d_params *formals, const char *kind,
			int flags)
{
	const struct d_param *param = &ps->v[ps->n - 1];
	bool is_void = type_is_void(param->type);

	if (is_void && !(flags & PARAMS_VOID))
		parse_error(p, param->pos, "D_DECL_PROTO_TYPE",
			    "%s prototype may not use parameter of type void: %s, parameter #%zu", kind,
			    param_name(param), ps->n);
	if (is_void && param->name)
		parse_error(p, param->pos, "D_DECL_PROTO_NAME", "void parameter may not have a name: %s", param->name);
	if (param->name && !formals && has_param(ps, ps->n - 1, param->name))
		parse_error(p, param->pos, "D_DECL_PROTO_FORM", "parameter is already declared in %s prototype: %s, "
			    "parameter #%zu", kind, param->name, ps->n);
	/* A name that is not an input's refers to the input at its position: probe x(int a) : (char *b). */
	if (param->name && formals && !has_param(formals, formals->n, param->name) && ps->n > formals->n)
		parse_error(p, param->pos, "D_DECL_PROTO_FORM", "parameter is not declared in %s prototype: %s, "
			    "parameter #%zu", kind, param->name, ps->n);
	if (!param->name && !is_void && !(flags & PARAMS_ANON))
		parse_error(p, param->pos, "D_DECL_PROTO_NAME", "parameter declaration requires a name: parameter #%zu",
			    ps->n);
}

/* parameter = specifiers (declarator | abstract-declarator)? */
static void parse_param(struct parser *p, struct d_params *ps)
{
	struct declarator d = { 0 };
	struct d_param *param;
	struct specs s;

	if (!at_type(p) && !is_class(peek(p))) {
		syntax(p, "a type");
		return;
	}
	parse_specs(p, &s, ALLOW_CLASS);
	if (s.class != TOK_EOF && s.class != KEY_REGISTER)
		parse_error(p, s.class_pos, "D_DECL_PARMCLASS",
			    "inappropriate storage class for function or associative array parameter");
	parse_declarator(p, &d);
	ps->v = arena_grow(p->arena, ps->v, &ps->cap, ps->n, sizeof(*ps->v));
	param = &ps->v[ps->n++];
	param->name = d.name;
	param->pos = s.pos;
	if (is_assoc(&d))
		parse_error(p, d.pos, "D_DECL_PROTO_TYPE", "a parameter cannot be an associative array");
	param->type = apply(p, &d, s.type);
}

void parse_one_param(struct parser *p, struct d_param *param)
{
	struct d_params ps = { 0 };

	memset(param, 0, sizeof(*param));
	param->type = type_basic(p->types, TYPE_B_INT);
	parse_param(p, &ps);
	if (ps.n)
		*param = ps.v[0];
}

/* parameters = (parameter ("," parameter)* ("," "...")? | "...")?, up to @close, which is consumed */
static void parse_params(struct parser *p, struct d_params *ps, const struct d_params *formals, const char *kind,
			 int flags, enum d_tok close)
{
	size_t i;

	if (!enter(p))
		return;
	while (peek(p) != close) {
		if (peek(p) == TOK_ELLIPSIS) {
			if (!(flags & PARAMS_VARARGS))
				parse_error(p, here(p), "D_DECL_PROTO_VARARGS",
					    "%s prototype may not use a variable-length argument list", kind);
			next(p);
			ps->varargs = true;
			break;
		}
		parse_param(p, ps);
		if (p->failed)
			break;
		check_param(p, ps, formals, kind, flags);
		if (!accept(p, TOK_COMMA))
			break;
		if (peek(p) == close)
			syntax(p, "a type");
	}
	expect(p, close);
	leave(p);
	for (i = 0; i < ps->n; i++)
		if (type_is_void(ps->v[i].type) && ps->n > 1 && (flags & PARAMS_VOID)) {
			parse_error(p, ps->v[i].pos, "D_DECL_PROTO_VOID", "void must be sole parameter");
			break;
		}
	if (ps->n == 1 && type_is_void(ps->v[0].type))
		ps->n = 0;
}

void parse_probe_params(struct parser *p, struct d_params *ps, const struct d_params *formals)
{
	if (expect(p, TOK_LPAR))
		parse_params(p, ps, formals, formals ? "probe output" : "probe input",
			     PARAMS_VOID | (formals ? 0 : PARAMS_ANON), TOK_RPAR);
}

/* --- declarators, continued -------------------------------------------------------------------------- */

/* array = "[" (constant | parameters)?  "]"; the bracket is consumed */
static void parse_array(struct parser *p, struct declarator *d)
{
	struct part *part = add_part(p, d, PART_ARRAY);
	size_t which = d->nparts - 1;	/* the list may move */
	const struct type *type;
	struct d_node *n;
	uint64_t count;

	if (accept(p, TOK_RBRACKET))
		return;
	if (at_type(p) || is_class(peek(p)) || peek(p) == TOK_ELLIPSIS) {
		struct d_params ps = { 0 };

		parse_params(p, &ps, NULL, "array", PARAMS_ANON, TOK_RBRACKET);
		part = &d->parts[which];
		part->kind = PART_ASSOC;
		part->params = ps;
		return;
	}
	part->counted = true;
	n = parse_cond(p);
	expect(p, TOK_RBRACKET);
	if (p->failed)
		return;
	part = &d->parts[which];
	part->count = 1;
	if (!const_value(p->prog, n, &count, &type) || (type_is_signed(type) && (int64_t)count < 0) || !count)
		parse_error(p, n->pos, "D_DECL_ARRSUB", "positive integral constant expression or tuple signature "
			    "expected as array declaration subscript");
	else if (count > UINT_MAX)
		parse_error(p, n->pos, "D_DECL_ARRBIG", "array dimension too big");
	else
		part->count = count;
}

/* suffixes = (array | "(" parameters ")")* */
static void parse_suffixes(struct parser *p, struct declarator *d)
{
	for (;;) {
		if (d->nparts >= TYPE_MAX_DEPTH) {
			parse_fail(p, here(p), "D_SYNTAX", "the type is too deep: more than %d levels", TYPE_MAX_DEPTH);
			return;
		}
		if (accept(p, TOK_LBRACKET)) {
			parse_array(p, d);
		} else if (accept(p, TOK_LPAR)) {
			struct d_params ps = { 0 };

			ps.varargs = peek(p) == TOK_RPAR;	/* no prototype */
			parse_params(p, &ps, NULL, "function", PARAMS_VARARGS | PARAMS_VOID | PARAMS_ANON, TOK_RPAR);
			add_part(p, d, PART_FUNC)->params = ps;
		} else {
			return;
		}
	}
}

/*
 * declarator = ("*" qualifier*)* direct
 * direct = (identifier | "(" declarator ")")? suffixes
 *
 * An abstract one has no identifier; a '(' then opens parameters when a type or ')' follows.
 */
static void parse_declarator(struct parser *p, struct declarator *d)
{
	unsigned int *quals = NULL, *v;
	struct src_pos pos = here(p);
	size_t n = 0, cap = 0;
	struct d_token t;

	if (!enter(p))
		return;
	while (accept(p, TOK_MUL)) {
		if (n >= TYPE_MAX_DEPTH) {
			parse_fail(p, pos, "D_SYNTAX", "the type is too deep: more than %d levels", TYPE_MAX_DEPTH);
			break;
		}
		quals = arena_grow(p->arena, quals, &cap, n, sizeof(*quals));
		v = &quals[n++];
		for (*v = 0;; next(p)) {
			if (peek(p) == KEY_CONST)
				*v |= TYPE_CONST;
			else if (peek(p) == KEY_VOLATILE)
				*v |= TYPE_VOLATILE;
			else if (peek(p) == KEY_RESTRICT)
				*v |= TYPE_RESTRICT;
			else
				break;
		}
	}
	d->pos = here(p);
	if (peek(p) == TOK_IDENT) {
		t = next(p);
		d->name = t.str;
		if (strchr(d->name, '`'))
			parse_error(p, t.pos, "D_DECL_SCOPE", "D scoping operator may not be used in a declaration "
				    "name (%s)", d->name);
	} else if (peek(p) == TOK_LPAR) {
		next(p);
		if (at_type(p) || is_class(peek(p)) || peek(p) == TOK_RPAR || peek(p) == TOK_ELLIPSIS) {
			struct d_params ps = { 0 };

			ps.varargs = peek(p) == TOK_RPAR;
			parse_params(p, &ps, NULL, "function", PARAMS_VARARGS | PARAMS_VOID | PARAMS_ANON, TOK_RPAR);
			add_part(p, d, PART_FUNC)->params = ps;
		} else {
			parse_declarator(p, d);
			expect(p, TOK_RPAR);
		}
	}
	parse_suffixes(p, d);
	while (n-- > 0)		/* the star nearest to the name is the last one */
		add_part(p, d, PART_PTR)->quals = quals[n];
	leave(p);
}

const struct type *parse_type_name(struct parser *p)
{
	struct declarator d = { 0 };
	struct specs s;

	if (!at_type(p)) {
		if (peek(p) == TOK_IDENT)
			parse_fail(p, here(p), "D_SYNTAX", "syntax error: %s is not the name of a type", p->tok.str);
		else
			syntax(p, "a type");
		return type_basic(p->types, TYPE_B_INT);
	}
	parse_specs(p, &s, 0);
	parse_declarator(p, &d);
	if (d.name)
		parse_fail(p, d.pos, "D_SYNTAX", "syntax error near \"%s\": a type without a name expected", d.name);
	else if (is_assoc(&d))
		parse_error(p, d.pos, "D_DECL_DYNOBJ", "an associative array cannot be part of another type");
	return apply(p, &d, s.type);
}

/* --- structs, unions, enums -------------------------------------------------------------------------- */

/*
 * The name of a type with its scope: module`name, `name of any module, or a.out`name of the traced program; *module
 * is NULL without a '`'.  The parser is behind the identifier @t.
 */
static const char *parse_scope(struct parser *p, struct d_token t, const char **module)
{
	const char *tick;

	*module = NULL;
	if (!strcmp(t.str, "a") && peek(p) == TOK_DOT) {
		next(p);
		if (peek(p) != TOK_IDENT || strncmp(p->tok.str, "out`", 4)) {
			syntax(p, "out` behind a.");
			return t.str;
		}
		*module = "a.out";
		return next(p).str + 4;
	}
	tick = strrchr(t.str, '`');
	if (!tick)
		return t.str;
	*module = arena_strndup(p->arena, t.str, (size_t)(tick - t.str));
	if (!tick[1])
		parse_fail(p, t.pos, "D_SYNTAX", "syntax error: a name expected behind `");
	return tick + 1;
}

/* The tag after struct, union or enum, or NULL. */
static const char *parse_tag(struct parser *p, const char **module)
{
	struct d_token t;

	*module = NULL;
	if (peek(p) != TOK_IDENT)
		return NULL;
	t = next(p);
	return parse_scope(p, t, module);
}

/* Is @module one of the guide's names for the script's own types? */
static bool is_own_scope(const char *module)
{
	return !module || !strcmp(module, "D") || !strcmp(module, "C");
}

/*
 * The type of "struct tag", "union tag" or "enum tag", complete or not.  @define: its members follow.  Never NULL,
 * also after a report.
 */
static struct type *tagged_type(struct parser *p, enum type_kind kind, const char *word, const char *module,
				const char *tag, struct src_pos pos, bool define)
{
	struct type *t = tag && is_own_scope(module) ? type_find_tag(p->types, kind, tag) : NULL;

	if (module && define) {
		parse_error(p, pos, "D_DECL_SCOPE", "D scoping operator may not be used in a type name");
		module = tag = NULL;
	}
	if (!t && tag && !define && !module && d_libs_need(p->prog, tag, D_LIB_TYPE))
		t = type_find_tag(p->types, kind, tag);
	if (!t && tag && !define && (!module || !is_own_scope(module))) {
		t = (struct type *)(uintptr_t)type_import(p->types, module, kind, tag);
		if (t)
			return t;
	}
	if (module && !t) {
		parse_error(p, pos, "D_DECL_SCOPE", "failed to resolve type %s %s`%s: no such type", word, module, tag);
		tag = NULL;
	}
	if (t && define && (t->complete || t->open)) {
		parse_error(p, pos, "D_DECL_TYPERED", "type redeclared: %s %s", word, tag);
		t = NULL;
		tag = NULL;
	}
	if (!t)
		t = type_new_tagged(p->types, kind, tag);
	t->open = define;
	return t;
}

static void add_member(struct parser *p, struct type *sou, const struct declarator *d, const struct type *type,
		       struct src_pos pos, const struct d_node *width)
{
	const char *name = d->name ? d->name : "(anon)";
	const struct type *wtype;
	uint64_t bits = 0;

	if (is_assoc(d)) {
		parse_error(p, pos, "D_DECL_DYNOBJ", "cannot have dynamic member: %s", name);
		return;
	}
	if (width) {
		bool ok = const_value(p->prog, width, &bits, &wtype);

		if (!ok || (type_is_signed(wtype) && (int64_t)bits < 0) || (!bits && d->name)) {
			parse_error(p, width->pos, "D_DECL_BFCONST",
				    "positive integral constant expression expected as bit-field size");
			return;
		}
		if (type_strip(type)->kind != TYPE_INT) {
			parse_error(p, pos, "D_DECL_BFTYPE", "invalid type for bit-field: %s", name);
			return;
		}
		if (bits > type_size(type) * 8) {
			parse_error(p, width->pos, "D_DECL_BFSIZE", "bit-field too big for type: %s", name);
			return;
		}
		if (!bits) {
			type_break_bits(sou, type);
			return;
		}
	}
	switch (type_add_member(p->types, sou, d->name, type, (unsigned int)bits)) {
	case -EEXIST:
		parse_error(p, pos, "D_UNKNOWN", "member redeclared: %s", name);
		break;
	case -EINVAL:
		if (type_is_void(type) || type_strip(type)->kind == TYPE_FUNC)
			parse_error(p, pos, "D_DECL_VOIDOBJ", "cannot have %s member: %s",
				    type_is_void(type) ? "void" : "function", name);
		else
			parse_error(p, pos, "D_DECL_INCOMPLETE", "incomplete struct/union/enum %s: %s",
				    type_text(p->arena, type), name);
		break;
	case -E2BIG:
		parse_error(p, pos, "D_DECL_ARRBIG", "the type is too big: %s", name);
		break;
	}
}

/*
 * member = specifiers member-declarator ("," member-declarator)* ";"
 * member-declarator = declarator (":" constant)? | ":" constant
 */
static void parse_member(struct parser *p, struct type *sou)
{
	struct specs s;

	if (!at_type(p)) {
		if (peek(p) == TOK_IDENT)
			parse_fail(p, here(p), "D_SYNTAX", "syntax error: %s is not the name of a type", p->tok.str);
		else
			syntax(p, "a member's type or }");
		return;
	}
	parse_specs(p, &s, 0);
	if (peek(p) == TOK_SEMICOLON && s.tagged && !s.named->name && type_is_sou(s.named)) {
		struct declarator none = { 0 };

		add_member(p, sou, &none, s.type, s.pos, NULL);	/* anonymous: its members belong to the outer type */
		next(p);
		return;
	}
	do {
		struct declarator d = { 0 };
		struct d_node *width = NULL;

		if (peek(p) != TOK_COLON) {
			parse_declarator(p, &d);
			if (!d.name && !p->failed) {
				parse_error(p, d.pos, "D_DECL_MNAME", "member declaration requires a name");
				continue;
			}
		} else {
			d.pos = here(p);
		}
		if (accept(p, TOK_COLON))
			width = parse_cond(p);
		if (!p->failed)
			add_member(p, sou, &d, apply(p, &d, s.type), d.pos, width);
	} while (accept(p, TOK_COMMA));
	expect(p, TOK_SEMICOLON);
}

/* struct = ("struct" | "union") tag? "{" member+ "}" | ("struct" | "union") tag */
static const struct type *parse_sou(struct parser *p, bool *defined)
{
	struct d_token word = next(p);
	enum type_kind kind = word.kind == KEY_STRUCT ? TYPE_STRUCT : TYPE_UNION;
	const char *text = tok_text(word.kind);
	struct src_pos pos = here(p);
	const char *module;
	const char *tag = parse_tag(p, &module);
	unsigned int nest;
	struct type *t;

	*defined = false;
	if (peek(p) != TOK_LBRACE) {
		if (!tag)
			syntax(p, "a tag or {");
		return tagged_type(p, kind, text, module, tag, pos, false);
	}
	t = tagged_type(p, kind, text, module, tag, pos, true);
	*defined = true;
	if (!enter(p))
		return t;
	nest = p->nest;
	next(p);
	do {
		parse_member(p, t);
		if (p->failed) {
			recover(p, UNTIL_STMT);
			p->nest = nest;
		}
	} while (peek(p) != TOK_RBRACE && peek(p) != TOK_EOF);
	expect(p, TOK_RBRACE);
	leave(p);
	type_finish(t);
	return t;
}

/* enumerator = identifier ("=" constant)? */
static void parse_enumerator(struct parser *p, struct type *en, int64_t *value)
{
	const struct type *type = NULL;
	struct d_node *n = NULL;
	struct d_token t;
	uint64_t v;

	if (peek(p) != TOK_IDENT) {
		syntax(p, "an enumerator's name");
		return;
	}
	t = next(p);
	if (strchr(t.str, '`'))
		parse_error(p, t.pos, "D_DECL_SCOPE", "D scoping operator may not be used in an enumerator name (%s)",
			    t.str);
	if (accept(p, TOK_ASSIGN)) {
		n = parse_cond(p);
		if (p->failed)
			return;
		if (!const_value(p->prog, n, &v, &type)) {
			parse_error(p, n->pos, "D_DECL_ENCONST",
				    "enumerator '%s' must be assigned to an integral constant expression", t.str);
			v = 0;
		}
		*value = (int64_t)v;
	}
	if (*value > INT_MAX || *value < INT_MIN || (type && !type_is_signed(type) && (uint64_t)*value > INT_MAX)) {
		parse_error(p, t.pos, "D_DECL_ENOFLOW", "enumerator '%s' value overflows INT_MAX (%d)", t.str, INT_MAX);
		*value = 0;
	}
	if (type_add_enumerator(p->types, en, t.str, *value))
		parse_error(p, t.pos, "D_DECL_IDRED", "identifier redeclared: %s", t.str);
	++*value;
}

/* enum = "enum" tag? "{" enumerator ("," enumerator)* ","? "}" | "enum" tag */
static const struct type *parse_enum(struct parser *p, bool *defined)
{
	int64_t value = 0;
	struct src_pos pos;
	const char *tag, *module;
	struct type *t;

	next(p);
	pos = here(p);
	tag = parse_tag(p, &module);
	*defined = false;
	if (peek(p) != TOK_LBRACE) {
		if (!tag)
			syntax(p, "a tag or {");
		return tagged_type(p, TYPE_ENUM, "enum", module, tag, pos, false);
	}
	t = tagged_type(p, TYPE_ENUM, "enum", module, tag, pos, true);
	*defined = true;
	next(p);
	do
		parse_enumerator(p, t, &value);
	while (accept(p, TOK_COMMA) && peek(p) != TOK_RBRACE);
	expect(p, TOK_RBRACE);
	type_finish(t);
	return t;
}

/* --- declarations ------------------------------------------------------------------------------------ */

/* Can there be an object of @type?  Reports if not. */
static bool check_declared(struct parser *p, const struct type *type, struct src_pos pos, const char *name)
{
	if (type_is_void(type)) {
		parse_error(p, pos, "D_DECL_VOIDOBJ", "cannot declare void object: %s", name);
		return false;
	}
	if (type_is_complete(type))
		return true;
	if (type_is_array(type))
		parse_error(p, pos, "D_DECL_ARRNULL",
			    "array declaration requires array dimension or tuple signature: %s", name);
	else
		parse_error(p, pos, "D_DECL_INCOMPLETE", "incomplete struct/union/enum %s: %s",
			    type_text(p->arena, type), name);
	return false;
}

static void declare_typedef(struct parser *p, const struct declarator *d, const struct type *type)
{
	if (is_assoc(d))
		parse_error(p, d->pos, "D_DECL_DYNOBJ", "an associative array cannot be part of another type");
	else if (d_is_builtin(d->name))
		parse_error(p, d->pos, "D_DECL_IDRED", "global variable identifier redeclared: %s", d->name);
	else if (!type_typedef(p->types, d->name, type))
		parse_error(p, d->pos, "D_DECL_IDRED", "identifier redeclared: %s", d->name);
}

static void declare_variable(struct parser *p, const struct specs *s, const struct declarator *d,
			     const struct type *type)
{
	bool is_func = type_strip(type)->kind == TYPE_FUNC;
	struct d_prog *prog = p->prog;
	struct d_decl *decl;
	struct d_item *item;

	if (s->class == KEY_AUTO || s->class == KEY_REGISTER || (s->class == KEY_STATIC && !is_func) ||
	    (is_func && (s->class == KEY_SELF || s->class == KEY_THIS))) {
		parse_error(p, s->class_pos, "D_DECL_BADCLASS", "specified storage class not appropriate in D");
		return;
	}
	if (is_assoc(d) && s->class == KEY_THIS) {
		parse_error(p, d->pos, "D_DECL_LOCASSC", "cannot declare local associative array: %s", d->name);
		return;
	}
	if (!is_func && s->class != KEY_EXTERN && !check_declared(p, type, d->pos, d->name))
		return;
	decl = arena_new_of(p->arena, struct d_decl);
	decl->pos = d->pos;
	decl->name = d->name;
	decl->scope = s->class == KEY_SELF ? D_SELF : s->class == KEY_THIS ? D_THIS : D_GLOBAL_SCOPE;
	decl->is_extern = s->class == KEY_EXTERN;
	decl->type = type;
	decl->assoc = is_assoc(d);
	if (decl->assoc)
		decl->keys = d->parts[0].params;
	prog->items = arena_grow(p->arena, prog->items, &prog->items_cap, prog->nitems, sizeof(*prog->items));
	item = &prog->items[prog->nitems++];
	item->kind = D_ITEM_DECL;
	item->decl = decl;
	if (decl->scope == D_GLOBAL_SCOPE)
		declare_name(p, d->name);
}

/* declaration = specifiers (declarator ("," declarator)*)? ";" */
void parse_declaration(struct parser *p)
{
	const struct type *type;
	struct specs s;

	parse_specs(p, &s, ALLOW_CLASS);
	if (peek(p) == TOK_SEMICOLON) {
		if (!s.named || (!type_is_sou(s.named) && type_strip(s.named)->kind != TYPE_ENUM) ||
		    s.named->kind == TYPE_TYPEDEF)
			parse_error(p, s.pos, "D_DECL_USELESS", "useless declaration");
		next(p);
		return;
	}
	do {
		struct declarator d = { 0 };

		parse_declarator(p, &d);
		if (p->failed)
			return;
		if (!d.name) {
			syntax(p, "a name to declare");
			return;
		}
		if (peek(p) == TOK_IDENT) {	/* "self foo_t x": foo_t was parsed as the variable's name */
			if (!s.named && s.word == TOK_EOF && !d.nparts)
				parse_fail(p, d.pos, "D_SYNTAX", "syntax error: %s is not the name of a type", d.name);
			else
				syntax(p, "; or ,");
			return;
		}
		if (peek(p) == TOK_ASSIGN) {
			syntax(p, "; or ,");
			diag_hint(p->diag, "a declaration has no initial value: assign it in BEGIN, or use inline");
			return;
		}
		type = apply(p, &d, s.type);
		if (s.class == KEY_TYPEDEF)
			declare_typedef(p, &d, type);
		else
			declare_variable(p, &s, &d, type);
	} while (accept(p, TOK_COMMA));
	expect(p, TOK_SEMICOLON);
}

bool parse_inline_head(struct parser *p, struct d_inline *inl)
{
	struct declarator d = { 0 };
	struct specs s;
	size_t i;

	if (!at_type(p) && !is_class(peek(p))) {
		if (peek(p) == TOK_IDENT)
			parse_fail(p, here(p), "D_SYNTAX", "syntax error: %s is not the name of a type", p->tok.str);
		else
			syntax(p, "a type");
		return false;
	}
	parse_specs(p, &s, ALLOW_CLASS);
	parse_declarator(p, &d);
	if (!p->failed && !d.name)
		syntax(p, "a name to declare");
	if (p->failed)
		return false;
	inl->pos = d.pos;
	inl->name = d.name;
	inl->assoc = is_assoc(&d);
	inl->type = apply(p, &d, s.type);
	if (s.class != TOK_EOF)
		parse_error(p, s.class_pos, "D_DECL_BADCLASS",
			    "specified storage class not appropriate for inline declaration");
	if (type_strip(inl->type)->kind == TYPE_FUNC)
		parse_error(p, d.pos, "D_DECL_COMBO", "cannot declare inline function: %s", d.name);
	else if (type_is_array(inl->type) && type_is_complete(inl->type) && !inl->assoc)
		parse_error(p, d.pos, "D_DECL_ARRNULL", "inline declaration cannot be of scalar array type: %s", d.name);
	else
		check_declared(p, inl->type, d.pos, d.name);
	if (inl->assoc) {
		inl->params = d.parts[0].params;
		for (i = 0; i < inl->params.n; i++)
			if (!inl->params.v[i].name)
				parse_error(p, inl->params.v[i].pos, "D_DECL_PROTO_NAME",
					    "parameter declaration requires a name: parameter #%zu", i + 1);
	}
	declare_name(p, d.name);
	return true;
}

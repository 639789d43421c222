/*
 * D's expressions: recursive descent down to binary operators, which climb precedences.
 *
 * Guide: "Types, Operators, and Expressions"; the grammar is C's with ^^, stringof, xlate, aggregations and the
 * scoping operator ` added.  Trees that grow without recursion here (a + b + c ...) are limited by D_MAX_DEPTH, so
 * that later passes may recurse.
 */
#include "d/parser.h"

#include <string.h>

#include "base/arena.h"

static struct d_node *parse_unary(struct parser *p);
static struct d_node *parse_cast(struct parser *p);

static const struct {
	enum d_tok tok;
	enum d_op op;
	uint8_t prec;		/* higher binds tighter; 0: not a binary operator of parse_binary */
	bool assign;
} ops[] = {
	{ TOK_LOR, D_OP_LOR, 1, false },    { TOK_LXOR, D_OP_LXOR, 2, false },	{ TOK_LAND, D_OP_LAND, 3, false },
	{ TOK_OR, D_OP_OR, 4, false },	    { TOK_XOR, D_OP_XOR, 5, false },	{ TOK_AND, D_OP_AND, 6, false },
	{ TOK_EQ, D_OP_EQ, 7, false },	    { TOK_NE, D_OP_NE, 7, false },	{ TOK_LT, D_OP_LT, 8, false },
	{ TOK_LE, D_OP_LE, 8, false },	    { TOK_GT, D_OP_GT, 8, false },	{ TOK_GE, D_OP_GE, 8, false },
	{ TOK_SHL, D_OP_SHL, 9, false },    { TOK_SHR, D_OP_SHR, 9, false },	{ TOK_ADD, D_OP_ADD, 10, false },
	{ TOK_SUB, D_OP_SUB, 10, false },   { TOK_MUL, D_OP_MUL, 11, false },	{ TOK_DIV, D_OP_DIV, 11, false },
	{ TOK_MOD, D_OP_MOD, 11, false },
	{ TOK_ASSIGN, D_OP_NONE, 0, true }, { TOK_ADD_EQ, D_OP_ADD, 0, true },	{ TOK_SUB_EQ, D_OP_SUB, 0, true },
	{ TOK_MUL_EQ, D_OP_MUL, 0, true },  { TOK_DIV_EQ, D_OP_DIV, 0, true },	{ TOK_MOD_EQ, D_OP_MOD, 0, true },
	{ TOK_AND_EQ, D_OP_AND, 0, true },  { TOK_OR_EQ, D_OP_OR, 0, true },	{ TOK_XOR_EQ, D_OP_XOR, 0, true },
	{ TOK_SHL_EQ, D_OP_SHL, 0, true },  { TOK_SHR_EQ, D_OP_SHR, 0, true },
};

enum { NOPS = sizeof(ops) / sizeof(ops[0]) };

/* --- nodes ------------------------------------------------------------------------------------------- */

static struct d_node *node(struct parser *p, enum d_kind kind, struct src_pos pos)
{
	struct d_node *n = arena_new_of(p->arena, struct d_node);

	n->kind = kind;
	n->pos = pos;
	n->depth = 1;
	return n;
}

/* Update the depth of @n, which has the new child @child. */
static void grow(struct parser *p, struct d_node *n, const struct d_node *child)
{
	if (child->depth < n->depth)
		return;
	if (child->depth >= D_MAX_DEPTH) {
		parse_fail(p, n->pos, "D_SYNTAX", "the expression is too deep: more than %d operators in each other",
			   D_MAX_DEPTH);
		return;
	}
	n->depth = (uint16_t)(child->depth + 1);
}

static struct d_node *unary(struct parser *p, enum d_kind kind, enum d_op op, struct src_pos pos, struct d_node *base)
{
	struct d_node *n = node(p, kind, pos);

	n->op = op;
	n->base = base;
	grow(p, n, base);
	return n;
}

static struct d_node *binary(struct parser *p, enum d_kind kind, enum d_op op, struct src_pos pos,
			     struct d_node *lhs, struct d_node *rhs)
{
	struct d_node *n = node(p, kind, pos);

	n->op = op;
	n->lhs = lhs;
	n->rhs = rhs;
	grow(p, n, lhs);
	grow(p, n, rhs);
	return n;
}

/* C's rule: the first type of its list that holds the value; a decimal constant without u is signed if possible. */
static const struct type *int_type(struct parser *p, const struct d_token *t)
{
	static const enum type_basic list[] = { TYPE_B_INT, TYPE_B_UINT, TYPE_B_LONG, TYPE_B_ULONG, TYPE_B_LLONG,
						TYPE_B_ULLONG };
	uint64_t value = t->value;
	const struct type *type;
	size_t i;

	if (t->from_macro && (int64_t)value < 0 && *t->start == '$')	/* $1 may be "-5" */
		return type_basic(p->types, (int64_t)value >= INT32_MIN ? TYPE_B_INT : TYPE_B_LONG);
	for (i = t->longs * 2u; i < 6; i++) {
		type = type_basic(p->types, list[i]);
		if (type->integer.sign ? t->uns : t->decimal && !t->uns)
			continue;
		if (value <= UINT64_MAX >> (64 - type->size * 8 + type->integer.sign))
			return type;
	}
	return type_basic(p->types, t->longs == 2 ? TYPE_B_ULLONG : TYPE_B_ULONG);
}

/* --- primary ----------------------------------------------------------------------------------------- */

/* name = [module] ` identifier | identifier; the lexer returns both as one word. */
static struct d_node *name_node(struct parser *p, const struct d_token *t, enum d_scope scope)
{
	struct d_node *n = node(p, D_NAME, t->pos);
	const char *tick = strrchr(t->str, '`');

	n->scope = scope;
	n->name = t->str;
	if (tick) {
		n->mod = arena_strndup(p->arena, t->str, (size_t)(tick - t->str));
		n->name = tick + 1;
		if (!*n->name)
			parse_fail(p, t->pos, "D_SYNTAX", "syntax error: a name expected behind `");
		else if (scope != D_GLOBAL_SCOPE)
			parse_fail(p, t->pos, "D_SYNTAX", "syntax error: ` in the name of a %s variable",
				   scope == D_SELF ? "thread-local" : "clause-local");
	}
	return n;
}

/* scoped = ("self" | "this") "->" identifier */
static struct d_node *parse_scoped(struct parser *p)
{
	struct d_token first = next(p), t;

	if (!accept(p, TOK_ARROW)) {
		syntax(p, first.kind == KEY_SELF ? "self->name" : "this->name");
		return node(p, D_INT, first.pos);
	}
	if (peek(p) != TOK_IDENT) {
		syntax(p, "a variable's name");
		return node(p, D_INT, first.pos);
	}
	t = next(p);
	t.pos = first.pos;
	return name_node(p, &t, first.kind == KEY_SELF ? D_SELF : D_THIS);
}

/* strings = string string*: adjacent ones are one, as in C */
static struct d_node *parse_strings(struct parser *p)
{
	struct d_token t = next(p), more;
	struct d_node *n = node(p, D_STR, t.pos);
	char *s;

	n->str = t.str;
	n->str_len = t.len;
	n->from_macro = t.from_macro;
	n->type = type_basic(p->types, TYPE_B_STRING);
	while (peek(p) == TOK_STR) {
		more = next(p);
		s = arena_alloc(p->arena, n->str_len + more.len + 1);
		memcpy(s, n->str, n->str_len);
		memcpy(s + n->str_len, more.str, more.len);
		n->str = s;
		n->str_len += more.len;
	}
	return n;
}

/*
 * Behind a "(" that no type follows.  "(foo_t *)" with an unknown foo_t gets a message of its own.
 *
 * parenthesized = expression ")"
 */
static struct d_node *parse_parenthesized(struct parser *p)
{
	const struct d_lex *l = &p->lex;
	const char *s;
	struct d_token first;
	struct d_node *n;

	if (peek(p) == TOK_IDENT) {
		first = p->tok;
		for (s = first.end; s < l->end && (*s == ' ' || *s == '\t' || *s == '*'); s++)
			;
		if (s < l->end && *s == ')' && memchr(first.end, '*', (size_t)(s - first.end))) {
			parse_fail(p, first.pos, "D_SYNTAX", "syntax error: %s is not the name of a type", first.str);
			return node(p, D_INT, first.pos);
		}
	}
	n = parse_expr(p);
	expect(p, TOK_RPAR);
	n->paren = true;
	return n;
}

/*
 * primary = name | scoped | aggregation | integer | strings | "(" expression ")"
 *	| "offsetof" "(" type_name "," identifier ")"
 *	| "xlate" "<" type_name ">" "(" expression ")"
 */
static struct d_node *parse_primary(struct parser *p)
{
	struct d_token t;
	struct d_node *n;

	switch (peek(p)) {
	case TOK_IDENT:
		t = next(p);
		return name_node(p, &t, D_GLOBAL_SCOPE);
	case KEY_SELF:
	case KEY_THIS:
		return parse_scoped(p);
	case KEY_RETURN:	/* the action of DTrace for Linux; otherwise a reserved word */
		t = next(p);
		if (peek(p) != TOK_LPAR) {
			syntax(p, "( behind return");
			return node(p, D_INT, here(p));
		}
		t.kind = TOK_IDENT;
		t.str = "return";
		return name_node(p, &t, D_GLOBAL_SCOPE);
	case TOK_AGG:
		t = next(p);
		n = node(p, D_AGG, t.pos);
		n->name = t.str;
		return n;
	case TOK_INT:
		t = next(p);
		n = node(p, D_INT, t.pos);
		n->value = t.value;
		n->from_macro = t.from_macro;
		n->type = int_type(p, &t);
		return n;
	case TOK_STR:
		return parse_strings(p);
	case TOK_LPAR:
		next(p);
		return parse_parenthesized(p);
	case KEY_OFFSETOF:
		t = next(p);
		n = node(p, D_OFFSETOF, t.pos);
		expect(p, TOK_LPAR);
		n->ctype = parse_type_name(p);
		if (expect(p, TOK_COMMA)) {
			p->lex.member = true;
			if (peek(p) == TOK_IDENT)
				n->name = next(p).str;
			else
				syntax(p, "a member's name");
		}
		expect(p, TOK_RPAR);
		return n;
	case KEY_XLATE:
		t = next(p);
		n = node(p, D_XLATE, t.pos);
		expect(p, TOK_LT);
		n->ctype = parse_type_name(p);
		expect(p, TOK_GT);
		expect(p, TOK_LPAR);
		n->base = parse_expr(p);
		expect(p, TOK_RPAR);
		grow(p, n, n->base);
		return n;
	default:
		syntax(p, "an expression");
		return node(p, D_INT, here(p));
	}
}

/* arguments = assignment ("," assignment)*, up to @close, which is consumed */
static void parse_args(struct parser *p, struct d_node *n, enum d_tok close)
{
	if (!enter(p))
		return;
	do {
		struct d_node *arg = parse_assign(p);

		n->args = arena_grow(p->arena, n->args, &n->args_cap, n->nargs, sizeof(*n->args));
		n->args[n->nargs++] = arg;
		grow(p, n, arg);
	} while (accept(p, TOK_COMMA));
	expect(p, close);
	leave(p);
}

/*
 * postfix = primary ("[" arguments "]" | "(" arguments? ")" | "." identifier | "->" identifier | "++" | "--")*
 */
static struct d_node *parse_postfix(struct parser *p, struct d_node *n)
{
	for (;;) {
		struct src_pos pos = here(p);
		enum d_tok kind = peek(p);

		switch (kind) {
		case TOK_LBRACKET:
			next(p);
			n = unary(p, D_INDEX, D_OP_NONE, n->pos, n);
			parse_args(p, n, TOK_RBRACKET);
			break;
		case TOK_LPAR:
			next(p);
			if (n->kind != D_NAME || n->scope != D_GLOBAL_SCOPE || n->paren)
				parse_error(p, n->pos, "D_FUNC_IDENT", "function designator is not of function type");
			n = unary(p, D_CALL, D_OP_NONE, n->pos, n);
			if (!accept(p, TOK_RPAR))
				parse_args(p, n, TOK_RPAR);
			break;
		case TOK_DOT:
		case TOK_ARROW:
			next(p);
			n = unary(p, D_MEMBER, D_OP_NONE, pos, n);
			n->arrow = kind == TOK_ARROW;
			if (peek(p) != TOK_IDENT) {
				syntax(p, "a member's name");
				return n;
			}
			n->name = next(p).str;
			if (strchr(n->name, '`'))
				parse_error(p, pos, "D_SYNTAX", "syntax error: ` in a member's name");
			break;
		case TOK_INC:
		case TOK_DEC:
			next(p);
			n = unary(p, D_UNARY, kind == TOK_INC ? D_OP_POSTINC : D_OP_POSTDEC, pos, n);
			break;
		default:
			return n;
		}
	}
}

/* --- unary ------------------------------------------------------------------------------------------- */

/* sizeof = "sizeof" unary | "sizeof" "(" type_name ")"; "sizeof" is consumed */
static struct d_node *parse_sizeof(struct parser *p, struct src_pos pos)
{
	struct d_node *n = node(p, D_SIZEOF, pos);

	if (accept(p, TOK_LPAR)) {
		if (at_type(p)) {
			n->ctype = parse_type_name(p);
			expect(p, TOK_RPAR);
			return n;
		}
		n->base = parse_postfix(p, parse_parenthesized(p));
	} else {
		n->base = parse_unary(p);
	}
	grow(p, n, n->base);
	return n;
}

/*
 * unary = postfix | ("++" | "--") unary | ("-" | "+" | "~" | "!" | "*" | "&") cast | sizeof
 *	| "stringof" unary
 */
static struct d_node *parse_unary(struct parser *p)
{
	static const struct {
		enum d_tok tok;
		enum d_op op;
	} prefixes[] = {
		{ TOK_INC, D_OP_PREINC }, { TOK_DEC, D_OP_PREDEC }, { TOK_SUB, D_OP_NEG },  { TOK_ADD, D_OP_PLUS },
		{ TOK_NOT, D_OP_NOT },	  { TOK_LNOT, D_OP_LNOT },  { TOK_MUL, D_OP_DEREF }, { TOK_AND, D_OP_ADDR },
	};
	struct src_pos pos = here(p);
	enum d_tok kind = peek(p);
	struct d_node *n;
	size_t i;

	if (!enter(p))
		return node(p, D_INT, pos);
	if (kind == KEY_SIZEOF) {
		next(p);
		n = parse_sizeof(p, pos);
	} else if (kind == KEY_STRINGOF) {
		next(p);
		n = unary(p, D_STRINGOF, D_OP_NONE, pos, parse_unary(p));
	} else {
		for (i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]) && prefixes[i].tok != kind; i++)
			;
		if (i < sizeof(prefixes) / sizeof(prefixes[0])) {
			next(p);
			n = unary(p, D_UNARY, prefixes[i].op, pos, i < 2 ? parse_unary(p) : parse_cast(p));
		} else {
			n = parse_postfix(p, parse_primary(p));
		}
	}
	leave(p);
	return n;
}

/* cast = unary | "(" type_name ")" cast */
static struct d_node *parse_cast(struct parser *p)
{
	const struct type *type;
	struct src_pos pos;
	struct d_node *n;

	if (peek(p) != TOK_LPAR)
		return parse_unary(p);
	pos = here(p);
	if (!enter(p))
		return node(p, D_INT, pos);
	next(p);
	if (at_type(p)) {
		type = parse_type_name(p);
		expect(p, TOK_RPAR);
		n = unary(p, D_CAST, D_OP_NONE, pos, parse_cast(p));
		n->ctype = type;
	} else {
		n = parse_postfix(p, parse_parenthesized(p));
	}
	leave(p);
	return n;
}

/* --- binary, conditional, assignment ----------------------------------------------------------------- */

static int find_op(enum d_tok tok, bool assign)
{
	int i;

	for (i = 0; i < NOPS; i++)
		if (ops[i].tok == tok && ops[i].assign == assign)
			return i;
	return -1;
}

/* binary(prec) = cast (operator of at least prec  binary(its prec + 1))* */
static struct d_node *parse_binary(struct parser *p, int prec)
{
	struct d_node *lhs = parse_cast(p);
	struct src_pos pos;
	int op;

	for (;;) {
		op = find_op(peek(p), false);
		if (op < 0 || ops[op].prec < prec)
			return lhs;
		pos = next(p).pos;
		lhs = binary(p, D_BINARY, ops[op].op, pos, lhs, parse_binary(p, ops[op].prec + 1));
	}
}

/* conditional = binary ("?" expression ":" conditional)? */
struct d_node *parse_cond(struct parser *p)
{
	struct d_node *cond = parse_binary(p, 1), *n, *yes;
	struct src_pos pos = here(p);

	if (!accept(p, TOK_QUESTION))
		return cond;
	if (!enter(p))
		return cond;
	yes = parse_expr(p);
	expect(p, TOK_COLON);
	n = binary(p, D_COND, D_OP_NONE, pos, yes, parse_cond(p));
	n->cond = cond;
	grow(p, n, cond);
	leave(p);
	return n;
}

/* assignment = conditional | unary operator "=" assignment */
struct d_node *parse_assign(struct parser *p)
{
	struct d_node *lhs = parse_cond(p), *n;
	int op = find_op(peek(p), true);

	if (op < 0)
		return lhs;
	if (!lhs->paren && (lhs->kind == D_BINARY || lhs->kind == D_COND || lhs->kind == D_CAST)) {
		syntax(p, "; or an operator");
		return lhs;
	}
	if (!enter(p))
		return lhs;
	n = node(p, D_ASSIGN, next(p).pos);
	n->op = ops[op].op;
	n->lhs = lhs;
	n->rhs = parse_assign(p);
	grow(p, n, n->lhs);
	grow(p, n, n->rhs);
	leave(p);
	return n;
}

/* expression = assignment ("," assignment)* */
struct d_node *parse_expr(struct parser *p)
{
	struct d_node *n = parse_assign(p);
	struct src_pos pos;

	while (peek(p) == TOK_COMMA) {
		pos = next(p).pos;
		n = binary(p, D_BINARY, D_OP_COMMA, pos, n, parse_assign(p));
	}
	return n;
}

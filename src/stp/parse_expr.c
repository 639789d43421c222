#include "stp/parse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "lang/diag.h"
#include "lang/format.h"

/* --- literals ---------------------------------------------------------------------------------------- */

/* number := [ '-' ] digits */
struct stp_node *stp_parse_number(struct stp_parser *p)
{
	const struct stp_tok *t = p->t;
	bool minus = stp_at_op(p, "-");
	struct stp_node *n;
	char *end;

	if (p->t[minus].kind != STP_NUMBER) {
		stp_expected(p, "number");
		return NULL;
	}
	p->t += minus;
	n = stp_new_node(p, STP_NUM, t);
	errno = 0;
	n->value = (int64_t)strtoull(p->t->text, &end, 0);
	if (errno || *end) {
		stp_parse_error(p, p->t, "S_NUMBER", "number invalid or out of range");
		return NULL;
	}
	if (minus)
		n->value = (int64_t)(0 - (uint64_t)n->value);
	p->t++;
	return n;
}

/* strings := string { string } */
static struct stp_node *parse_strings(struct stp_parser *p)
{
	struct stp_node *n = stp_new_node(p, STP_STR, p->t);
	size_t len = 0, parts;
	char *s;

	for (parts = 0; p->t[parts].kind == STP_STRING; parts++)
		len += p->t[parts].len;
	s = arena_alloc(p->arena, len + 1);
	n->str = s;
	n->str_len = len;
	for (; parts; parts--, p->t++) {
		memcpy(s, p->t->text, p->t->len);
		s += p->t->len;
	}
	return n;
}

/* literal := number | strings */
struct stp_node *stp_parse_literal(struct stp_parser *p)
{
	if (p->t->kind == STP_STRING)
		return parse_strings(p);
	if (p->t->kind == STP_NUMBER || (stp_at_op(p, "-") && p->t[1].kind == STP_NUMBER))
		return stp_parse_number(p);
	stp_expected(p, "literal string or number");
	return NULL;
}

static const struct stp_tok *stp_parse_string(struct stp_parser *p, const char *what)
{
	if (p->t->kind == STP_STRING)
		return p->t++;
	stp_expected(p, what);
	return NULL;
}

/* --- building ---------------------------------------------------------------------------------------- */

/* Add @child to @n.  False: @child is NULL, or the tree is too deep (reported). */
static bool hang(struct stp_parser *p, struct stp_node *n, const struct stp_node *child)
{
	if (!child)
		return false;
	if (child->depth >= n->depth)
		n->depth = (uint16_t)(child->depth + 1);
	if (n->depth <= STP_MAX_DEPTH)
		return true;
	return stp_parse_error(p, p->t, "S_NESTING", "expression nested too deeply");
}

static struct stp_node *binary(struct stp_parser *p, enum stp_kind kind, enum stp_op op, struct stp_node *l,
			       struct stp_node *(*parse_right)(struct stp_parser *p))
{
	struct stp_node *n = stp_new_node(p, kind, p->t++);

	n->op = op;
	n->l = l;
	n->r = parse_right(p);
	return hang(p, n, l) && hang(p, n, n->r) ? n : NULL;
}

struct op_row {
	const char *text;
	enum stp_op op;
};

static const struct op_row *find_op(const struct stp_parser *p, const struct op_row *row)
{
	for (; row->text; row++)
		if (stp_at_op(p, row->text))
			return row;
	return NULL;
}

/* next { op next }, to the left */
static struct stp_node *left_chain(struct stp_parser *p, enum stp_kind kind, const struct op_row *ops,
				   struct stp_node *(*next)(struct stp_parser *p))
{
	struct stp_node *n = next(p);
	const struct op_row *row;

	while (n && (row = find_op(p, ops)))
		n = binary(p, kind, row->op, n, next);
	return n;
}

static bool add_arg(struct stp_parser *p, struct stp_node *n, struct stp_node *arg)
{
	n->args = arena_grow(p->arena, n->args, &n->args_cap, n->nargs, sizeof(*n->args));
	n->args[n->nargs++] = arg;
	return hang(p, n, arg);
}

/* expr { ',' expr } ')' behind '(', or ')' alone */
static bool parse_args(struct stp_parser *p, struct stp_node *n)
{
	if (stp_accept_op(p, ")"))
		return true;
	for (;;) {
		if (!add_arg(p, n, stp_parse_expr(p)))
			return false;
		if (stp_accept_op(p, ")"))
			return true;
		if (!stp_accept_op(p, ","))
			return stp_expected(p, "one of ') ,'");
	}
}

bool stp_parse_indexes(struct stp_parser *p, struct stp_node ***v, size_t *n, size_t *cap)
{
	for (;;) {
		struct stp_node *e = NULL;

		if (!stp_accept_op(p, "*") && !(e = stp_parse_expr(p)))
			return false;
		*v = arena_grow(p->arena, *v, cap, *n, sizeof(**v));
		(*v)[(*n)++] = e;
		if (stp_accept_op(p, "]"))
			return true;
		if (!stp_accept_op(p, ","))
			return stp_expected(p, "one of '] ,'");
	}
}

/* '[' index { ',' index } ']' */
static bool parse_node_indexes(struct stp_parser *p, struct stp_node *n)
{
	if (!stp_parse_indexes(p, &n->args, &n->nargs, &n->args_cap))
		return false;
	for (size_t i = 0; i < n->nargs; i++)
		if (n->args[i] && !hang(p, n, n->args[i]))
			return false;
	return true;
}

/* --- operators that begin with @ --------------------------------------------------------------------- */

/* '$' or '$$' after ] or ): the dollars are a separate identifier */
static bool at_dollars(const struct stp_parser *p)
{
	return p->t->kind == STP_IDENT && (!strcmp(p->t->text, "$") || !strcmp(p->t->text, "$$"));
}

static void parse_dollars(struct stp_parser *p, struct stp_node *n)
{
	if (at_dollars(p))
		n->pretty = (unsigned int)strlen((p->t++)->text);
}

/* parts := { '->' name | '[' expr ']' }; '$' or '$$' at the end selects pretty-printing */
static bool parse_parts(struct stp_parser *p, struct stp_node *n)
{
	for (;;) {
		struct stp_part part = { .pos = p->t->pos };
		size_t len;

		if (stp_accept_op(p, "->")) {
			if (p->t->kind != STP_IDENT && p->t->kind != STP_KEYWORD)
				return stp_expected(p, "identifier or keyword");
			part.name = (p->t++)->text;
			len = strlen(part.name);
			while (len > 1 && part.name[len - 1] == '$' && n->pretty < 2) {
				len--;
				n->pretty++;
			}
			part.name = arena_strndup(p->arena, part.name, len);
		} else if (stp_accept_op(p, "[")) {
			part.index = stp_parse_expr(p);
			if (!hang(p, n, part.index) || !stp_expect_op(p, "]"))
				return false;
			parse_dollars(p, n);
		} else {
			return true;
		}
		n->parts = arena_grow(p->arena, n->parts, &n->parts_cap, n->nparts, sizeof(*n->parts));
		n->parts[n->nparts++] = part;
		if (n->pretty)
			return true;
	}
}

/* [ '$' | '$$' ] parts, after @var() and @cast() */
static bool parse_value_parts(struct stp_parser *p, struct stp_node *n)
{
	parse_dollars(p, n);
	return n->pretty || parse_parts(p, n);
}

/* target := '$'name [ '$' | '$$' ] parts */
static struct stp_node *parse_target(struct stp_parser *p)
{
	struct stp_node *n = stp_new_node(p, STP_TARGET, p->t);
	size_t len = strlen(p->t->text), lead = strspn(p->t->text, "$");

	while (len > lead && p->t->text[len - 1] == '$' && n->pretty < 2) {
		len--;
		n->pretty++;
	}
	n->name = arena_strndup(p->arena, p->t->text, len);
	p->t++;
	return n->pretty || parse_parts(p, n) ? n : NULL;
}

/* '(' string [ ',' string ] ')' parts */
static bool parse_var(struct stp_parser *p, struct stp_node *n)
{
	const struct stp_tok *s = stp_parse_string(p, "string");

	n->kind = STP_TARGET;
	n->is_var = true;
	if (!s)
		return false;
	n->name = s->text;
	if (stp_accept_op(p, ",")) {
		s = stp_parse_string(p, "string");
		if (!s)
			return false;
		n->module = s->text;
	}
	return stp_expect_op(p, ")") && parse_value_parts(p, n);
}

/* '(' expr ',' string [ ',' string ] ')' parts */
static bool parse_cast(struct stp_parser *p, struct stp_node *n)
{
	const struct stp_tok *s;

	n->kind = STP_CAST;
	n->l = stp_parse_expr(p);
	if (!hang(p, n, n->l) || !stp_expect_op(p, ","))
		return false;
	s = stp_parse_string(p, "string");
	if (!s)
		return false;
	n->str = s->text;
	n->str_len = s->len;
	if (stp_accept_op(p, ",")) {
		s = stp_parse_string(p, "string");
		if (!s)
			return false;
		n->module = s->text;
	}
	return stp_expect_op(p, ")") && parse_value_parts(p, n);
}

/* '(' expr ')' */
static bool parse_one(struct stp_parser *p, struct stp_node *n)
{
	n->l = stp_parse_expr(p);
	return hang(p, n, n->l) && stp_expect_op(p, ")");
}

static bool parse_entry(struct stp_parser *p, struct stp_node *n)
{
	n->kind = STP_ENTRY;
	return parse_one(p, n);
}

static bool parse_defined(struct stp_parser *p, struct stp_node *n)
{
	n->kind = STP_DEFINED;
	return parse_one(p, n);
}

static bool parse_probewrite(struct stp_parser *p, struct stp_node *n)
{
	n->kind = STP_WRITTEN;
	return parse_one(p, n);
}

static bool parse_register(struct stp_parser *p, struct stp_node *n)
{
	n->kind = STP_REGISTER;
	return parse_one(p, n);
}

/* '(' expr ',' expr ')' */
static bool parse_memory(struct stp_parser *p, struct stp_node *n)
{
	n->kind = STP_MEMORY;
	n->l = stp_parse_expr(p);
	if (!hang(p, n, n->l) || !stp_expect_op(p, ","))
		return false;
	n->r = stp_parse_expr(p);
	return hang(p, n, n->r) && stp_expect_op(p, ")");
}

/* '(' string ')' */
static bool parse_perf(struct stp_parser *p, struct stp_node *n)
{
	const struct stp_tok *s = stp_parse_string(p, "string");

	n->kind = STP_PERF;
	n->name = s ? s->text : NULL;
	return s && stp_expect_op(p, ")");
}

static bool parse_const(struct stp_parser *p, struct stp_node *n)
{
	const struct stp_tok *s = stp_parse_string(p, "string");

	n->kind = STP_CONST;
	n->name = s ? s->text : NULL;
	return s && stp_expect_op(p, ")");
}

static const struct at_op {
	const char *name;
	bool (*parse)(struct stp_parser *p, struct stp_node *n);	/* behind '(' */
} at_ops[] = {
	{ "@cast", parse_cast },
	{ "@const", parse_const },
	{ "@defined", parse_defined },
	{ "@entry", parse_entry },
	{ "@kderef", parse_memory },
	{ "@kregister", parse_register },
	{ "@perf", parse_perf },
	{ "@probewrite", parse_probewrite },
	{ "@uderef", parse_memory },
	{ "@uregister", parse_register },
	{ "@var", parse_var },
};

static const char *const stat_names[] = {
	[STP_STAT_COUNT] = "@count", [STP_STAT_SUM] = "@sum", [STP_STAT_MIN] = "@min", [STP_STAT_MAX] = "@max",
	[STP_STAT_AVG] = "@avg", [STP_STAT_VARIANCE] = "@variance", [STP_HIST_LINEAR] = "@hist_linear",
	[STP_HIST_LOG] = "@hist_log",
};

const char *stp_stat_text(enum stp_stat stat)
{
	return stat_names[stat];
}

bool stp_find_stat(const char *op, enum stp_stat *ret)
{
	for (unsigned int i = 0; i < sizeof(stat_names) / sizeof(stat_names[0]); i++) {
		if (strcmp(op, stat_names[i]))
			continue;
		*ret = (enum stp_stat)i;
		return true;
	}
	return false;
}

/*
 * extract := ('@count' | '@sum' | '@min' | '@max' | '@avg') '(' expr ')'
 *	    | '@variance' '(' expr [ ',' number ] ')'
 * histogram := '@hist_linear' '(' expr ',' number ',' number ',' number ')' | '@hist_log' '(' expr ')'
 */
static struct stp_node *parse_stat(struct stp_parser *p, enum stp_stat stat)
{
	struct stp_node *n = stp_new_node(p, stat >= STP_HIST_LINEAR ? STP_HIST : STP_EXTRACT, p->t++), *number;
	unsigned int numbers = stat == STP_HIST_LINEAR ? 3 : 0;

	n->stat = stat;
	if (!stp_expect_op(p, "("))
		return NULL;
	n->l = stp_parse_expr(p);
	if (!hang(p, n, n->l))
		return NULL;
	for (unsigned int i = 0; i < numbers; i++) {
		if (!stp_expect_op(p, ","))
			return NULL;
		number = stp_parse_number(p);
		if (!number)
			return NULL;
		n->hist[i] = number->value;
	}
	if (stat <= STP_STAT_AVG && stp_at_op(p, ",")) {
		stp_parse_error(p, p->t, "S_SYNTAX", "not more than 1 parameter allowed");
		return NULL;
	}
	if (stat == STP_STAT_VARIANCE && stp_accept_op(p, ",")) {
		number = stp_parse_number(p);
		if (!number)
			return NULL;
		n->value = number->value;
	}
	return stp_expect_op(p, ")") ? n : NULL;
}

/* A histogram can only be printed or indexed. */
static struct stp_node *parse_hist_element(struct stp_parser *p, const struct stp_tok *at, struct stp_node *hist)
{
	struct stp_node *n;

	if (!hist)
		return NULL;
	if (!stp_accept_op(p, "[")) {
		stp_parse_error(p, at, "S_HIST", "base histogram operator where expression expected");
		return NULL;
	}
	n = stp_new_node(p, STP_INDEX, at);
	n->l = hist;
	return hang(p, n, hist) && parse_node_indexes(p, n) ? n : NULL;
}

static struct stp_node *parse_at_op(struct stp_parser *p)
{
	const struct stp_tok *at = p->t;
	struct stp_node *n;
	enum stp_stat stat;

	if (stp_find_stat(at->text, &stat)) {
		n = parse_stat(p, stat);
		return n && n->kind == STP_HIST ? parse_hist_element(p, at, n) : n;
	}
	for (size_t i = 0; i < sizeof(at_ops) / sizeof(at_ops[0]); i++) {
		if (strcmp(at->text, at_ops[i].name))
			continue;
		if (!strcmp(at->text, "@const") && !p->guru && !p->from_library) {
			stp_parse_error(p, at, "S_CONST", "using @const operator not permitted; need stap -g");
			diag_hint(p->diag, "write the number: dtap compiles no C");
			return NULL;
		}
		n = stp_new_node(p, STP_DEFINED, at);
		n->user = at->text[1] == 'u';
		p->t++;
		return stp_expect_op(p, "(") && at_ops[i].parse(p, n) ? n : NULL;
	}
	stp_parse_error(p, at, "S_AT_UNKNOWN", "unknown operator %s", at->text);
	return NULL;
}

/* --- print operators --------------------------------------------------------------------------------- */

static const struct stp_print prints[] = {
#define STP_PRINT_OP(name, formatted, to_string, newline, delimited, one_char)                                \
	{ #name, formatted, to_string, newline, delimited, one_char },
#include "stp/prints.def"
#undef STP_PRINT_OP
};

static const struct stp_print *find_print(const char *name)
{
	for (size_t i = 0; i < sizeof(prints) / sizeof(prints[0]); i++)
		if (!strcmp(name, prints[i].name))
			return &prints[i];
	return NULL;
}

static bool parse_format(struct stp_parser *p, struct stp_node *n)
{
	const char *why;
	size_t off;

	size_t percents = 0;

	while (percents < n->str_len && n->str[n->str_len - 1 - percents] == '%')
		percents++;
	why = "a conversion is expected behind the last %";
	if (percents % 2 == 0)
		n->fmt = fmt_parse(p->arena, FMT_STP, n->str, n->str_len, &why, &off);
	if (n->fmt)
		return true;
	stp_parse_error(p, p->t, "S_FORMAT", "invalid or missing conversion specifier");
	diag_hint(p->diag, "%s", why);
	return false;
}

/*
 * print := name '(' { expr } ')'			print... but printf, printd
 *	  | ('print' | 'println' | 'sprint' | 'sprintln') '(' histogram ')'
 *	  | ('printf' | 'sprintf') '(' strings { ',' expr } ')'
 *	  | ('printd' | 'printdln' ...) '(' strings ',' expr { ',' expr } ')'
 */
static struct stp_node *parse_print(struct stp_parser *p, const struct stp_print *print)
{
	struct stp_node *n = stp_new_node(p, STP_PRINT, p->t++), *s;
	enum stp_stat stat;

	n->print = print;
	if (!stp_expect_op(p, "("))
		return NULL;
	if (!print->formatted && !print->delimited && p->t->kind == STP_OP &&
	    stp_find_stat(p->t->text, &stat) && stat >= STP_HIST_LINEAR) {
		const struct stp_tok *at = p->t;

		s = parse_stat(p, stat);
		if (stp_at_op(p, "["))
			s = parse_hist_element(p, at, s);
		if (!add_arg(p, n, s))
			return NULL;
		if (s->kind == STP_HIST)
			return stp_expect_op(p, ")") ? n : NULL;
		if (stp_accept_op(p, ")"))
			return n;
		return stp_expect_op(p, ",") && parse_args(p, n) ? n : NULL;
	}
	if (print->formatted || print->delimited) {
		if (p->t->kind != STP_STRING) {
			stp_expected(p, "literal string");
			return NULL;
		}
		s = parse_strings(p);
		n->str = s->str;
		n->str_len = s->str_len;
		if (print->formatted && !parse_format(p, n))
			return NULL;
		if (print->formatted && stp_accept_op(p, ")"))
			return n;
		if (!stp_expect_op(p, ","))
			return NULL;
	}
	if (stp_at_op(p, ")") && !(print->newline && !print->delimited)) {
		stp_expected(p, "literal string or number");
		return NULL;
	}
	if (!parse_args(p, n))
		return NULL;
	if (print->delimited && n->nargs < 2) {
		stp_expected(p, "literal string or number");
		return NULL;
	}
	return n;
}

/* --- values ------------------------------------------------------------------------------------------ */

/* symbol := print | target | name [ '(' args ')' | '[' indexes ']' ] */
static struct stp_node *parse_symbol(struct stp_parser *p)
{
	const struct stp_print *print = find_print(p->t->text);
	struct stp_node *n, *base;

	if (print)
		return parse_print(p, print);
	if (p->t->text[0] == '$')
		return parse_target(p);
	n = stp_new_node(p, STP_NAME, p->t);
	n->name = (p->t++)->text;
	if (stp_accept_op(p, "(")) {
		n->kind = STP_CALL;
		return parse_args(p, n) ? n : NULL;
	}
	if (!stp_at_op(p, "["))
		return n;
	base = n;
	n = stp_new_node(p, STP_INDEX, p->t - 1);
	n->l = base;
	p->t++;
	return hang(p, n, base) && parse_node_indexes(p, n) ? n : NULL;
}

/* value := '(' expr ')' | '@'operator | symbol | literal */
static struct stp_node *parse_value(struct stp_parser *p)
{
	struct stp_node *n;

	if (p->t->kind == STP_IDENT)
		return parse_symbol(p);
	if (p->t->kind == STP_EMBEDDED) {
		n = stp_new_node(p, STP_NUM, p->t);
		return stp_embedded(p) ? n : NULL;
	}
	if (p->t->kind != STP_OP)
		return stp_parse_literal(p);
	if (stp_accept_op(p, "(")) {
		n = stp_parse_expr(p);
		return n && stp_expect_op(p, ")") ? n : NULL;
	}
	if (p->t->text[0] == '@')
		return parse_at_op(p);
	return stp_parse_literal(p);
}

/* deref := value [ parts ] */
static struct stp_node *parse_deref(struct stp_parser *p)
{
	struct stp_node *n = parse_value(p), *base = n;

	if (!n || (!stp_at_op(p, "->") && !stp_at_op(p, "[") && !at_dollars(p)))
		return n;
	n = stp_new_node(p, STP_DEREF, p->t);
	n->l = base;
	return hang(p, n, base) && parse_value_parts(p, n) ? n : NULL;
}

/* postfix := deref [ '++' | '--' ] */
static struct stp_node *parse_postfix(struct stp_parser *p)
{
	struct stp_node *n = parse_deref(p), *base = n;

	if (!n || (!stp_at_op(p, "++") && !stp_at_op(p, "--")))
		return n;
	n = stp_new_node(p, STP_POST, p->t);
	n->op = stp_at_op(p, "++") ? STP_ADD : STP_SUB;
	p->t++;
	n->l = base;
	return hang(p, n, base) ? n : NULL;
}

/* '&' deref: a context variable's node notes that its address is taken */
static struct stp_node *parse_address(struct stp_parser *p)
{
	struct stp_node *n = stp_new_node(p, STP_ADDRESS, p->t++);

	n->l = parse_deref(p);
	if (!hang(p, n, n->l))
		return NULL;
	if (n->l->kind != STP_TARGET && n->l->kind != STP_CAST && n->l->kind != STP_DEREF)
		return n;
	n->l->addressed = true;
	return n->l;
}

/* unary := ('+' | '-' | '!' | '~') unary | '&' deref | ('++' | '--') deref | postfix */
static struct stp_node *parse_unary(struct stp_parser *p)
{
	static const struct op_row ops[] = {
		{ "+", STP_PLUS }, { "-", STP_NEG }, { "!", STP_LNOT }, { "~", STP_NOT }, { NULL, STP_OP_NONE },
	};
	static const struct op_row steps[] = { { "++", STP_ADD }, { "--", STP_SUB }, { NULL, STP_OP_NONE } };
	const struct op_row *row;
	struct stp_node *n;

	if (stp_at_op(p, "&"))
		return parse_address(p);
	row = find_op(p, steps);
	if (row) {
		n = stp_new_node(p, STP_PRE, p->t++);
		n->op = row->op;
		n->l = parse_deref(p);
		return hang(p, n, n->l) ? n : NULL;
	}
	row = find_op(p, ops);
	if (!row)
		return parse_postfix(p);
	if (!stp_enter(p))
		return NULL;
	n = stp_new_node(p, STP_UNARY, p->t++);
	n->op = row->op;
	n->l = parse_unary(p);
	p->depth--;
	return hang(p, n, n->l) ? n : NULL;
}

/* multiplicative := unary { ('*' | '/' | '%') unary } */
static struct stp_node *parse_multiplicative(struct stp_parser *p)
{
	static const struct op_row ops[] = {
		{ "*", STP_MUL }, { "/", STP_DIV }, { "%", STP_MOD }, { NULL, STP_OP_NONE },
	};

	return left_chain(p, STP_BINARY, ops, parse_unary);
}

/* additive := multiplicative { ('+' | '-') multiplicative } */
static struct stp_node *parse_additive(struct stp_parser *p)
{
	static const struct op_row ops[] = { { "+", STP_ADD }, { "-", STP_SUB }, { NULL, STP_OP_NONE } };

	return left_chain(p, STP_BINARY, ops, parse_multiplicative);
}

/* concatenation := additive { '.' additive } */
static struct stp_node *parse_concatenation(struct stp_parser *p)
{
	static const struct op_row ops[] = { { ".", STP_CONCAT }, { NULL, STP_OP_NONE } };

	return left_chain(p, STP_BINARY, ops, parse_additive);
}

/* shift := concatenation { ('<<' | '>>' | '>>>') concatenation } */
static struct stp_node *parse_shift(struct stp_parser *p)
{
	static const struct op_row ops[] = {
		{ "<<", STP_SHL }, { ">>", STP_SHR }, { ">>>", STP_LSHR }, { NULL, STP_OP_NONE },
	};

	return left_chain(p, STP_BINARY, ops, parse_concatenation);
}

/* comparison := shift ('=~' | '!~') strings | shift { ('<' | '>' | '==' | '!=' | '<=' | '>=') shift } */
static struct stp_node *parse_comparison(struct stp_parser *p)
{
	static const struct op_row ops[] = {
		{ "<", STP_LT }, { ">", STP_GT }, { "==", STP_EQ }, { "!=", STP_NE }, { "<=", STP_LE },
		{ ">=", STP_GE }, { NULL, STP_OP_NONE },
	};
	struct stp_node *n = parse_shift(p), *l = n, *s;
	const struct op_row *row;

	if (n && (stp_at_op(p, "=~") || stp_at_op(p, "!~"))) {
		n = stp_new_node(p, STP_MATCH, p->t);
		n->negated = stp_at_op(p, "!~");
		p->t++;
		n->l = l;
		if (p->t->kind != STP_STRING) {
			stp_expected(p, "literal string");
			return NULL;
		}
		s = parse_strings(p);
		n->str = s->str;
		n->str_len = s->str_len;
		n->str_pos = s->pos;
		return hang(p, n, l) ? n : NULL;
	}
	while (n && (row = find_op(p, ops)))
		n = binary(p, STP_BINARY, row->op, n, parse_shift);
	return n;
}

/* indexable := name | histogram */
struct stp_node *stp_parse_indexable(struct stp_parser *p)
{
	struct stp_node *n;
	enum stp_stat stat;

	if (p->t->kind == STP_OP && stp_find_stat(p->t->text, &stat) && stat >= STP_HIST_LINEAR)
		return parse_stat(p, stat);
	if (p->t->kind != STP_IDENT) {
		stp_expected(p, "identifier or statistical operation");
		return NULL;
	}
	n = stp_new_node(p, STP_NAME, p->t);
	n->name = (p->t++)->text;
	return n;
}

/* After the keys of @n: 'in' indexable */
static struct stp_node *parse_in_what(struct stp_parser *p, struct stp_node *n)
{
	p->t++;
	n->l = stp_parse_indexable(p);
	return hang(p, n, n->l) ? n : NULL;
}

/* array_in := comparison [ 'in' indexable ] | '[' indexes ']' 'in' indexable | '[' expr ']' */
static struct stp_node *parse_in(struct stp_parser *p)
{
	struct stp_node *n, *key;

	if (stp_at_op(p, "[")) {
		n = stp_new_node(p, STP_IN, p->t++);
		if (!parse_node_indexes(p, n))
			return NULL;
		if (stp_at_keyword(p, "in"))
			return parse_in_what(p, n);
		if (n->nargs == 1 && n->args[0])
			return n->args[0];
		stp_parse_error(p, p->t, "S_TUPLE", "unexpected comma-separated expression list");
		return NULL;
	}
	key = parse_comparison(p);
	if (!key || !stp_at_keyword(p, "in"))
		return key;
	n = stp_new_node(p, STP_IN, p->t);
	return add_arg(p, n, key) ? parse_in_what(p, n) : NULL;
}

/* bit_and := array_in { '&' array_in } */
static struct stp_node *parse_bit_and(struct stp_parser *p)
{
	static const struct op_row ops[] = { { "&", STP_AND }, { NULL, STP_OP_NONE } };

	return left_chain(p, STP_BINARY, ops, parse_in);
}

/* bit_xor := bit_and { '^' bit_and } */
static struct stp_node *parse_bit_xor(struct stp_parser *p)
{
	static const struct op_row ops[] = { { "^", STP_XOR }, { NULL, STP_OP_NONE } };

	return left_chain(p, STP_BINARY, ops, parse_bit_and);
}

/* bit_or := bit_xor { '|' bit_xor } */
static struct stp_node *parse_bit_or(struct stp_parser *p)
{
	static const struct op_row ops[] = { { "|", STP_OR }, { NULL, STP_OP_NONE } };

	return left_chain(p, STP_BINARY, ops, parse_bit_xor);
}

/* logical_and := bit_or { '&&' bit_or } */
static struct stp_node *parse_logical_and(struct stp_parser *p)
{
	static const struct op_row ops[] = { { "&&", STP_LAND }, { NULL, STP_OP_NONE } };

	return left_chain(p, STP_LOGIC, ops, parse_bit_or);
}

/* logical_or := logical_and { '||' logical_and } */
static struct stp_node *parse_logical_or(struct stp_parser *p)
{
	static const struct op_row ops[] = { { "||", STP_LOR }, { NULL, STP_OP_NONE } };

	return left_chain(p, STP_LOGIC, ops, parse_logical_and);
}

/* conditional := logical_or [ '?' conditional ':' conditional ] */
static struct stp_node *parse_conditional(struct stp_parser *p)
{
	struct stp_node *n = parse_logical_or(p), *cond = n;

	if (!n || !stp_at_op(p, "?"))
		return n;
	if (!stp_enter(p))
		return NULL;
	n = stp_new_node(p, STP_COND, p->t++);
	n->cond = cond;
	n->l = parse_conditional(p);
	n->r = n->l && stp_expect_op(p, ":") ? parse_conditional(p) : NULL;
	p->depth--;
	return hang(p, n, cond) && hang(p, n, n->l) && hang(p, n, n->r) ? n : NULL;
}

/* expr := conditional [ ('=' | '<<<' | '+=' | ... | '.=') expr ] */
struct stp_node *stp_parse_expr(struct stp_parser *p)
{
	static const struct op_row ops[] = {
		{ "=", STP_OP_NONE }, { "<<<", STP_ADDEND }, { "+=", STP_ADD }, { "-=", STP_SUB }, { "*=", STP_MUL },
		{ "/=", STP_DIV }, { "%=", STP_MOD }, { "<<=", STP_SHL }, { ">>=", STP_SHR }, { "&=", STP_AND },
		{ "^=", STP_XOR }, { "|=", STP_OR }, { ".=", STP_CONCAT }, { NULL, STP_OP_NONE },
	};
	const struct op_row *row;
	struct stp_node *n;

	if (!stp_enter(p))
		return NULL;
	n = parse_conditional(p);
	row = n ? find_op(p, ops) : NULL;
	if (row)
		n = binary(p, STP_ASSIGN, row->op, n, stp_parse_expr);
	p->depth--;
	return n;
}

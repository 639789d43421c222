#include "stp/parse.h"

#include <string.h>

#include "base/arena.h"
#include "lang/diag.h"

static struct stp_stmt *parse_stmt(struct stp_parser *p);

static struct stp_stmt *new_stmt(struct stp_parser *p, enum stp_stmt_kind kind)
{
	struct stp_stmt *s = arena_new_of(p->arena, struct stp_stmt);

	s->kind = kind;
	s->pos = p->t->pos;
	s->what = stp_tok_text(p->arena, p->t);
	return s;
}

static struct stp_node *parse_name_node(struct stp_parser *p)
{
	const struct stp_tok *t = p->t;
	const char *name = stp_parse_name(p);
	struct stp_node *n;

	if (!name)
		return NULL;
	n = stp_new_node(p, STP_NAME, t);
	n->name = name;
	return n;
}

/* '(' expr ')' */
static struct stp_node *parse_condition(struct stp_parser *p)
{
	struct stp_node *n = NULL;

	if (stp_expect_op(p, "("))
		n = stp_parse_expr(p);
	return n && stp_expect_op(p, ")") ? n : NULL;
}

/* if := 'if' '(' expr ')' stmt [ 'else' stmt ] */
static bool parse_if(struct stp_parser *p, struct stp_stmt *s)
{
	s->expr = parse_condition(p);
	s->yes = s->expr ? parse_stmt(p) : NULL;
	if (!s->yes)
		return false;
	if (!stp_accept_keyword(p, "else"))
		return true;
	s->no = parse_stmt(p);
	return s->no != NULL;
}

/* while := 'while' '(' expr ')' stmt */
static bool parse_while(struct stp_parser *p, struct stp_stmt *s)
{
	s->expr = parse_condition(p);
	s->yes = s->expr ? parse_stmt(p) : NULL;
	return s->yes != NULL;
}

/* [ expr ] up to @close */
static bool parse_optional(struct stp_parser *p, const char *close, struct stp_node **ret)
{
	if (stp_accept_op(p, close))
		return true;
	*ret = stp_parse_expr(p);
	return *ret && stp_expect_op(p, close);
}

/* for := 'for' '(' [ expr ] ';' [ expr ] ';' [ expr ] ')' stmt */
static bool parse_for(struct stp_parser *p, struct stp_stmt *s)
{
	if (!stp_expect_op(p, "(") || !parse_optional(p, ";", &s->init) || !parse_optional(p, ";", &s->expr) ||
	    !parse_optional(p, ")", &s->incr))
		return false;
	s->yes = parse_stmt(p);
	return s->yes != NULL;
}

/* sort := [ '+' | '-' ], at most one in a foreach */
static bool parse_sort(struct stp_parser *p, struct stp_stmt *s, unsigned int column)
{
	if (!stp_at_op(p, "+") && !stp_at_op(p, "-"))
		return true;
	if (s->sort_dir)
		return stp_parse_error(p, p->t, "S_SORT", "multiple sort directives");
	s->sort_dir = stp_at_op(p, "+") ? 1 : -1;
	s->sort_column = column;
	p->t++;
	return true;
}

/* keys := name sort | '[' name sort { ',' name sort } ']' */
static bool parse_keys(struct stp_parser *p, struct stp_stmt *s)
{
	bool many = stp_accept_op(p, "[");

	do {
		struct stp_node *n = parse_name_node(p);

		if (!n)
			return false;
		s->keys = arena_grow(p->arena, s->keys, &s->keys_cap, s->nkeys, sizeof(*s->keys));
		s->keys[s->nkeys++] = n;
		if (!parse_sort(p, s, (unsigned int)s->nkeys))
			return false;
	} while (many && stp_accept_op(p, ","));
	if (many && !stp_accept_op(p, "]"))
		return stp_expected(p, "',' or ']'");
	return true;
}

/* [ '@'stat ] sort, after the array */
static bool parse_array_sort(struct stp_parser *p, struct stp_stmt *s)
{
	if (p->t->kind == STP_OP && p->t->text[0] == '@') {
		if (!stp_find_stat(p->t->text, &s->sort_stat) || s->sort_stat > STP_STAT_VARIANCE)
			return stp_expected(p, "statistical operation");
		s->sort_by_stat = true;
		p->t++;
		if (!stp_at_op(p, "+") && !stp_at_op(p, "-"))
			return stp_expected(p, "sort directive");
	}
	return parse_sort(p, s, 0);
}

/*
 * foreach := 'foreach' '(' [ name sort '=' ] keys 'in' indexable [ '[' indexes ']' ] [ '@'stat ] sort
 *	      [ 'limit' expr ] ')' stmt
 */
static bool parse_foreach(struct stp_parser *p, struct stp_stmt *s)
{
	if (!stp_expect_op(p, "("))
		return false;
	if (!stp_at_op(p, "[")) {
		bool sorted = p->t->kind != STP_EOF && p->t[1].kind == STP_OP &&
			      (!strcmp(p->t[1].text, "+") || !strcmp(p->t[1].text, "-"));
		const struct stp_tok *behind = p->t->kind == STP_EOF ? p->t : p->t + 1 + sorted;

		if (behind->kind == STP_OP && !strcmp(behind->text, "=")) {
			s->value = parse_name_node(p);
			if (!s->value || !parse_sort(p, s, 0))
				return false;
			p->t++;
		}
	}
	if (!parse_keys(p, s))
		return false;
	if (!stp_accept_keyword(p, "in"))
		return stp_expected(p, "'in'");
	s->array = stp_parse_indexable(p);
	if (!s->array)
		return false;
	if (stp_accept_op(p, "[") && !stp_parse_indexes(p, &s->slice, &s->nslice, &s->slice_cap))
		return false;
	if (!parse_array_sort(p, s))
		return false;
	if (stp_accept_keyword(p, "limit") && !(s->expr = stp_parse_expr(p)))
		return false;
	if (!stp_expect_op(p, ")"))
		return false;
	s->yes = parse_stmt(p);
	return s->yes != NULL;
}

/* return := 'return' [ expr ] [ ';' ] */
static bool parse_return(struct stp_parser *p, struct stp_stmt *s)
{
	if (!p->in_func)
		return stp_parse_error(p, p->t - 1, "S_RETURN", "found 'return' not in function context");
	if (!stp_at_op(p, ";") && !stp_at_op(p, "}") && !(s->expr = stp_parse_expr(p)))
		return false;
	stp_accept_op(p, ";");
	return true;
}

/* delete := 'delete' expr [ ';' ] */
static bool parse_delete(struct stp_parser *p, struct stp_stmt *s)
{
	s->expr = stp_parse_expr(p);
	stp_accept_op(p, ";");
	return s->expr != NULL;
}

/* next := 'next' [ ';' ], and so 'break' and 'continue' */
static bool parse_jump(struct stp_parser *p, struct stp_stmt *s)
{
	(void)s;
	stp_accept_op(p, ";");
	return true;
}

/* try := 'try' block 'catch' [ '(' name ')' ] block */
static bool parse_try(struct stp_parser *p, struct stp_stmt *s)
{
	s->yes = stp_parse_block(p);
	if (!s->yes)
		return false;
	if (!stp_accept_keyword(p, "catch"))
		return stp_expected(p, "'catch'");
	if (stp_accept_op(p, "(")) {
		s->value = parse_name_node(p);
		if (!s->value || !stp_expect_op(p, ")"))
			return false;
	}
	s->no = stp_parse_block(p);
	return s->no != NULL;
}

static const struct stmt_row {
	const char *keyword;
	enum stp_stmt_kind kind;
	bool (*parse)(struct stp_parser *p, struct stp_stmt *s);	/* parses what follows the keyword */
} rows[] = {
	{ "if", STP_S_IF, parse_if },
	{ "while", STP_S_FOR, parse_while },
	{ "for", STP_S_FOR, parse_for },
	{ "foreach", STP_S_FOREACH, parse_foreach },
	{ "return", STP_S_RETURN, parse_return },
	{ "delete", STP_S_DELETE, parse_delete },
	{ "next", STP_S_NEXT, parse_jump },
	{ "break", STP_S_BREAK, parse_jump },
	{ "continue", STP_S_CONTINUE, parse_jump },
	{ "try", STP_S_TRY, parse_try },
};

static struct stp_stmt *parse_keyword_stmt(struct stp_parser *p)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct stp_stmt *s;

		if (!stp_at_keyword(p, rows[i].keyword))
			continue;
		s = new_stmt(p, rows[i].kind);
		p->t++;
		return rows[i].parse(p, s) ? s : NULL;
	}
	stp_expected(p, "statement");
	return NULL;
}

/* stmt := ';' | block | keyword ... | expr [ ';' ] */
static struct stp_stmt *parse_stmt(struct stp_parser *p)
{
	struct stp_stmt *s = NULL;

	if (!stp_enter(p))
		return NULL;
	if (stp_at_op(p, ";")) {
		s = new_stmt(p, STP_S_NULL);
		p->t++;
	} else if (stp_at_op(p, "{")) {
		s = stp_parse_block(p);
	} else if (p->t->kind == STP_KEYWORD) {
		s = parse_keyword_stmt(p);
	} else if (p->t->kind == STP_EMBEDDED) {
		s = stp_embedded(p) ? new_stmt(p, STP_S_NULL) : NULL;
	} else if (p->t->kind == STP_EOF) {
		stp_expected(p, "statement");
	} else {
		s = new_stmt(p, STP_S_EXPR);
		s->expr = stp_parse_expr(p);
		if (!s->expr)
			s = NULL;
		stp_accept_op(p, ";");
	}
	p->depth--;
	return s;
}

/* block := '{' { stmt } '}' */
struct stp_stmt *stp_parse_block(struct stp_parser *p)
{
	struct stp_stmt *s = new_stmt(p, STP_S_BLOCK), *one;

	if (p->t->kind == STP_EMBEDDED)
		return stp_embedded(p) ? s : NULL;
	if (!stp_expect_op(p, "{"))
		return NULL;
	while (!stp_accept_op(p, "}")) {
		one = parse_stmt(p);
		if (!one)
			return NULL;
		s->stmts = arena_grow(p->arena, s->stmts, &s->cap, s->n, sizeof(*s->stmts));
		s->stmts[s->n++] = one;
	}
	return s;
}

/*
 * From tokens to the tree of ast.h.
 *
 * Recursive descent; the grammar rule is above each function, in the notation
 *	x := y | z	[ optional ]	{ any number of }	'token'
 * Statements need no separator: ';' is an empty statement.  Any tokens are safe to parse: nesting is limited.  A
 * mistake is reported where it is, in stap's words; parsing continues at the next keyword that can start a
 * declaration.
 *
 * Files: parse.c declarations and probe points, parse_stmt.c, parse_expr.c.
 */
#ifndef DTAP_STP_PARSE_H
#define DTAP_STP_PARSE_H

#include <stdbool.h>

#include "stp/ast.h"
#include "stp/lex.h"

struct diag;

struct stp_parser {
	struct arena *arena;
	struct diag *diag;
	struct stp_prog *prog;
	const struct stp_tok *t;	/* the current token; the last one is STP_EOF */
	bool failed;			/* reported; the results until the next declaration are meaningless */
	bool guru;			/* -g */
	bool in_func;
	bool from_library;
	unsigned int depth;
};

/*
 * Add the declarations of preprocessed tokens to @prog.  False: reported.  A script without any declaration is a
 * mistake, a library file without any is not.
 */
bool stp_parse(struct stp_prog *prog, struct diag *diag, const struct stp_toks *toks, bool from_library, bool guru);

/* --- between the files of the parser ----------------------------------------------------------------- */

bool stp_at_op(const struct stp_parser *p, const char *op);
bool stp_at_keyword(const struct stp_parser *p, const char *word);

/* If the current token is @op, consume it. */
bool stp_accept_op(struct stp_parser *p, const char *op);
bool stp_accept_keyword(struct stp_parser *p, const char *word);

/* The same, and report if it is missing. */
bool stp_expect_op(struct stp_parser *p, const char *op);

/* Report "expected WHAT" at the current token.  Returns false. */
bool stp_expected(struct stp_parser *p, const char *what);
bool stp_parse_error(struct stp_parser *p, const struct stp_tok *t, const char *tag, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Consume a name and return it.  NULL: reported. */
const char *stp_parse_name(struct stp_parser *p);

/* Enter a level of nesting, or report that there are too many.  Leave it with p->depth--. */
bool stp_enter(struct stp_parser *p);

struct stp_node *stp_new_node(struct stp_parser *p, enum stp_kind kind, const struct stp_tok *t);

/* A number or string literal; with @minus also -number. */
struct stp_node *stp_parse_literal(struct stp_parser *p);
struct stp_node *stp_parse_number(struct stp_parser *p);

struct stp_node *stp_parse_expr(struct stp_parser *p);

/* The operand of foreach and 'in'. */
struct stp_node *stp_parse_indexable(struct stp_parser *p);

/* { expr | '*' } separated by commas up to @close; '[' is consumed. */
bool stp_parse_indexes(struct stp_parser *p, struct stp_node ***v, size_t *n, size_t *cap);

bool stp_find_stat(const char *op, enum stp_stat *ret);

struct stp_stmt *stp_parse_block(struct stp_parser *p);

/* Code between %{ and %}: parsed with -g, and refused after parsing.  False: reported. */
bool stp_embedded(struct stp_parser *p);

#endif

/*
 * From tokens to the tree of ast.h.
 *
 * Recursive descent; the grammar rule stands above each function, in the notation
 *	x := y | z	[ optional ]	{ any number of }	'token'
 * Statements need no separator: ';' is a statement of its own that does nothing.  Any tokens are safe to
 * parse: nesting is bounded.  A mistake is reported where it is, in stap's words; parsing goes on at the next
 * keyword that can start a declaration.
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
	const struct stp_tok *t;	/* the token at hand; the last one is STP_EOF */
	bool failed;			/* reported; what is parsed until the next declaration is of no use */
	bool guru;			/* -g */
	bool in_func;
	bool from_library;
	unsigned int depth;
};

/*
 * Add the declarations of preprocessed tokens to @prog.  False: reported.  A script without any declaration
 * is a mistake, a library file without is none.
 */
bool stp_parse(struct stp_prog *prog, struct diag *diag, const struct stp_toks *toks, bool from_library, bool guru);

/* --- between the files of the parser ----------------------------------------------------------------- */

bool stp_at_op(const struct stp_parser *p, const char *op);
bool stp_at_keyword(const struct stp_parser *p, const char *word);

/* If the token at hand is @op, go behind it. */
bool stp_accept_op(struct stp_parser *p, const char *op);
bool stp_accept_keyword(struct stp_parser *p, const char *word);

/* The same, else report that it was expected. */
bool stp_expect_op(struct stp_parser *p, const char *op);

/* Report "expected WHAT" at the token at hand; false. */
bool stp_expected(struct stp_parser *p, const char *what);
bool stp_parse_error(struct stp_parser *p, const struct stp_tok *t, const char *tag, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* The name at hand, behind which the parser goes, or NULL: reported. */
const char *stp_parse_name(struct stp_parser *p);

/* Enter a level of nesting, or report that there are too many.  Leave it with p->depth--. */
bool stp_enter(struct stp_parser *p);

struct stp_node *stp_new_node(struct stp_parser *p, enum stp_kind kind, const struct stp_tok *t);

/* A number or string literal; with @minus also -number. */
struct stp_node *stp_parse_literal(struct stp_parser *p);
struct stp_node *stp_parse_number(struct stp_parser *p);

struct stp_node *stp_parse_expr(struct stp_parser *p);

/* What foreach and 'in' look into. */
struct stp_node *stp_parse_indexable(struct stp_parser *p);

/* { expr | '*' } separated by commas up to @close, behind '['. */
bool stp_parse_indexes(struct stp_parser *p, struct stp_node ***v, size_t *n, size_t *cap);

bool stp_find_stat(const char *op, enum stp_stat *ret);

struct stp_stmt *stp_parse_block(struct stp_parser *p);

bool stp_embedded_refused(struct stp_parser *p);

#endif

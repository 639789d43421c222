/*
 * Shared by the parser's files: parse.c (programs, clauses), parse_decl.c (declarations), parse_expr.c (expressions).
 *
 * A function is named after what it parses, with the grammar rule above it.  It looks at most one token ahead.  After
 * a mistake the parser is in a failed state, in which there are no tokens: every loop ends, every function returns
 * what it has, nothing is reported.  A function that knows where to continue (at a statement's ';', a declaration's
 * end) calls recover.
 */
#ifndef DTAP_D_PARSER_H
#define DTAP_D_PARSER_H

#include "d/lex.h"
#include "d/parse.h"
#include "lang/diag.h"
#include "type/type.h"

enum { D_MAX_NEST = 200 };	/* nested parentheses, blocks, structs ...: limits the parser's recursion */

/* State that outlives one source. */
struct d_state {
	struct diag *diag;
	struct d_macro_state macros;
	struct d_libs *libs;		/* or NULL */
	unsigned int in_lib;		/* is a library being parsed? */
	bool *lib_done;			/* which of them are parsed or being parsed */
	size_t *lib_order;		/* those that were parsed, in that order */
	size_t nlib_order;
	const char **shadows;		/* variables with the name of a type: the variable takes precedence */
	size_t nshadows, shadows_cap;
};

struct parser {
	struct arena *arena;
	struct d_prog *prog;
	struct types *types;
	struct diag *diag;
	struct d_lex lex;
	struct d_token tok;		/* the next one, when have_tok */
	bool have_tok;
	bool failed;
	enum d_spec spec;
	unsigned int nest;
};

/* --- tokens (parse.c) -------------------------------------------------------------------------------- */

enum d_tok peek(struct parser *p);			/* TOK_FAIL when failed */
struct d_token next(struct parser *p);
bool accept(struct parser *p, enum d_tok kind);		/* consumes it if it is next */
bool expect(struct parser *p, enum d_tok kind);		/* the same, else reports and fails */
struct src_pos here(struct parser *p);			/* of the next token */

/* "syntax error near X: EXPECTED expected"; fails. */
void syntax(struct parser *p, const char *expected);

/* Reports; parsing goes on. */
void parse_error(struct parser *p, struct src_pos pos, const char *tag, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Reports and fails. */
void parse_fail(struct parser *p, struct src_pos pos, const char *tag, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Enter a level of nesting; false: too deep, reported and failed.  Each success needs a call of leave. */
bool enter(struct parser *p);
void leave(struct parser *p);

enum until {
	UNTIL_STMT,	/* behind a ';', or at the '}' of the block */
	UNTIL_PRED,	/* behind the predicate's '/', or at a '{' */
	UNTIL_ITEM,	/* behind a ';' or a whole { } */
};

/* Continue after a mistake: skip to @until, or to the end. */
void recover(struct parser *p, enum until until);

/* --- expressions (parse_expr.c) ---------------------------------------------------------------------- */

/* All return a node, never NULL; after a failure its contents are meaningless. */
struct d_node *parse_expr(struct parser *p);
struct d_node *parse_assign(struct parser *p);
struct d_node *parse_cond(struct parser *p);

/* --- declarations (parse_decl.c) --------------------------------------------------------------------- */

/* Can a type begin with the next token? */
bool at_type(struct parser *p);

/* type_name = specifiers abstract-declarator? */
const struct type *parse_type_name(struct parser *p);

/* Parse a declaration up to its ';'. */
void parse_declaration(struct parser *p);

/* Parse an inline's specifiers and declarator. */
bool parse_inline_head(struct parser *p, struct d_inline *inl);

/* Parse one parameter: a type and a name, which is NULL if missing. */
void parse_one_param(struct parser *p, struct d_param *param);

/* "(" parameters ")" of a probe; @formals: the other list, whose names these may use, or NULL. */
void parse_probe_params(struct parser *p, struct d_params *ps, const struct d_params *formals);

#endif

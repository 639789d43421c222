/*
 * D's tokens.
 *
 * A lexer walks one source.  What a '/' is and what a word is depends on where it stands, so the parser asks
 * for what it wants next: lex_token inside clauses and declarations, lex_desc where a probe description may
 * stand.  Blanks, comments, #! lines and control lines between tokens are dealt with on the way; control lines
 * (#pragma D option ...) go into the program.
 *
 * Mistakes in tokens are reported here, once; the token is then TOK_FAIL, or has a harmless value when its
 * end is clear (an integer that is too large).
 */
#ifndef DTAP_D_LEX_H
#define DTAP_D_LEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "d/parse.h"
#include "lang/source.h"

enum d_tok {
	TOK_EOF,
	TOK_FAIL,	/* no token: it was reported */
	TOK_IDENT,	/* x  mod`x */
	TOK_AGG,	/* @x  @ */
	TOK_INT,
	TOK_STR,
	TOK_END_PRED,	/* the '/' that ends a predicate */
#define D_PUNCT(NAME, text) TOK_##NAME,
#include "d/tokens.def"
#define D_KEYWORD(NAME, text) KEY_##NAME,
#include "d/tokens.def"
	TOK_MAX
};

struct d_token {
	enum d_tok kind;
	struct src_pos pos;
	const char *start, *end;	/* its text in the source, a macro's as written */
	const char *str;		/* IDENT, STR, AGG (without the @): in the arena */
	size_t len;			/* of @str in bytes */
	uint64_t value;			/* INT */
	bool decimal, uns;		/* INT: written in decimal; with a u */
	uint8_t longs;			/* INT: how many l */
	bool from_macro;		/* INT, STR: $1 ... */
};

/* What outlives one source: the macro arguments and which were used.  One for each program. */
struct d_macro_state {
	struct d_macros m;
	bool *used;			/* argc of them */
};

struct d_lex {
	struct d_prog *prog;
	struct diag *diag;
	struct d_macro_state *macros;
	const struct source *text;	/* what is read */
	const struct source *src;	/* what positions name: #line lines change it */
	const char *p, *end;
	const char *line_start;
	unsigned int line;
	bool member;			/* behind . or ->: a word is a name, never a keyword */
	bool pred;			/* in a predicate: a '/' may end it */
	bool quiet;			/* skipping behind a mistake: no reports */
};

void lex_init(struct d_lex *l, struct d_prog *prog, struct diag *diag, struct d_macro_state *macros,
	      const struct source *src);

/* The position of the byte at @p of the line at hand. */
struct src_pos lex_pos(const struct d_lex *l, const char *p);

/* Past blanks, comments and control lines.  False: a comment without an end (reported). */
bool lex_space(struct d_lex *l);

void lex_token(struct d_lex *l, struct d_token *t);

/* Does a probe description, and not a declaration, begin here (behind lex_space)? */
bool lex_at_desc(const struct d_lex *l);

/*
 * The text of a probe description: letters, digits, -$:_.`?*\[]! and what symbol versions need (@+%).  Empty
 * when there is none.  *pos is where it begins.
 */
const char *lex_desc(struct d_lex *l, struct src_pos *pos);

/* How @kind is written when it is a keyword or punctuation, else a word for it ("an identifier"). */
const char *tok_text(enum d_tok kind);

/* A token as messages show it: "foo", end of input. */
const char *tok_show(const struct d_lex *l, const struct d_token *t);

/* --- macro arguments (macro.c) ----------------------------------------------------------------------- */

/*
 * The text that stands for the macro @name (without $ and $$; "1", "target").  NULL: there is none (*why says
 * what to do about it, or is NULL); an argument left out under defaultargs is "".
 */
const char *macro_text(struct d_lex *l, const char *name, const char **why);

/* --- control lines (pragma.c) ------------------------------------------------------------------------ */

/* @l stands behind the '#' of a control line; afterwards on its newline, or at the end. */
void lex_control(struct d_lex *l);

#endif

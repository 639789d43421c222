/*
 * D's tokens.
 *
 * A lexer reads one source.  The meaning of '/' and the extent of a word depend on context, so the parser calls
 * lex_token inside clauses and declarations, and lex_desc where a probe description may begin.  Both skip blanks,
 * comments and #! lines, and handle control lines (#pragma D option ...), which are added to the program.
 *
 * Mistakes in tokens are reported here, once; the token is then TOK_FAIL, or has a harmless value if its end is known
 * (an integer that is too large).
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
	TOK_FAIL,	/* no token; reported */
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
	const char *start, *end;	/* its text in the source; of a macro its name as written */
	const char *str;		/* IDENT, STR, AGG (without the @): in the arena */
	size_t len;			/* of @str in bytes */
	uint64_t value;			/* INT */
	bool decimal, uns;		/* INT: written in decimal; with a u */
	uint8_t longs;			/* INT: how many l */
	bool from_macro;		/* INT, STR: $1 ... */
};

/* The macro arguments and which of them were used.  One for each program; it outlives the sources. */
struct d_macro_state {
	struct d_macros m;
	bool *used;			/* argc of them */
};

struct d_lex {
	struct d_prog *prog;
	struct diag *diag;
	struct d_macro_state *macros;
	const struct source *text;	/* the text */
	const struct source *src;	/* the source that positions name: #line changes it */
	const char *p, *end;
	const char *line_start;
	unsigned int line;
	bool invalid_control;	/* a control line that D does not have was reported */
	bool member;			/* after . or ->: a word is a name, never a keyword */
	bool pred;			/* in a predicate: a '/' may end it */
	bool quiet;			/* recovering from a mistake: no reports */
};

void lex_init(struct d_lex *l, struct d_prog *prog, struct diag *diag, struct d_macro_state *macros,
	      const struct source *src);

/* The position of the byte at @p, which is in the current line. */
struct src_pos lex_pos(const struct d_lex *l, const char *p);

/* Skip blanks, comments and control lines.  False: a comment does not end (reported). */
bool lex_space(struct d_lex *l);

void lex_token(struct d_lex *l, struct d_token *t);

/* Does a probe description, not a declaration, begin here?  Call lex_space first. */
bool lex_at_desc(const struct d_lex *l);

/*
 * Read the text of a probe description: letters, digits, -$:_.`?*\[]! and the characters of symbol versions (@+%).
 * Empty if there is none.  *pos is its start.
 */
const char *lex_desc(struct d_lex *l, struct src_pos *pos);

/* The text of a keyword or punctuation, else a description ("an identifier"). */
const char *tok_text(enum d_tok kind);

/* A token as messages show it: "foo", end of input. */
const char *tok_show(const struct d_lex *l, const struct d_token *t);

/* --- macro arguments (macro.c) ----------------------------------------------------------------------- */

/*
 * The value of the macro @name (without $ and $$; "1", "target").  NULL: it has none (*why tells the user what to do,
 * or is NULL).  A missing argument is "" under defaultargs.  Without -c and -p $target is 0 in expressions, so that a
 * script can ask for it; a probe description (@desc) needs a process.
 */
const char *macro_text(struct d_lex *l, const char *name, bool desc, const char **why);

/* --- control lines (pragma.c) ------------------------------------------------------------------------ */

/* Read a control line.  @l is behind its '#'; afterwards at its newline, or at the end. */
void lex_control(struct d_lex *l);

#endif

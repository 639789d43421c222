/*
 * Tokens of SystemTap scripts.
 *
 * A whole text is read at once into an array, because the preprocessor (preproc.h) works on runs of tokens.  Script
 * arguments are replaced as text: $1 and $# by the argument itself, @1 and @# by a string literal.  Invalid text
 * becomes a token of kind STP_JUNK with the reason, so that it is a mistake only where the parser reads it: a branch
 * excluded by a conditional may contain anything.
 *
 * Language reference: "Literals", "Comments", "Script arguments".
 */
#ifndef DTAP_STP_LEX_H
#define DTAP_STP_LEX_H

#include <stddef.h>

#include "lang/source.h"

struct arena;

enum stp_tok_kind {
	STP_EOF,
	STP_JUNK,		/* text: why it is no token */
	STP_IDENT,		/* name  $name  $$name */
	STP_KEYWORD,
	STP_OP,			/* also @name, which is an operator or a macro */
	STP_STRING,		/* text: the value, with escapes replaced */
	STP_NUMBER,		/* text: as written */
	STP_EMBEDDED,		/* text: between %{ and %} */
};

struct stp_tok {
	enum stp_tok_kind kind;
	const char *text;		/* NUL-terminated */
	size_t len;
	struct src_pos pos;
	const struct stp_tok *from;	/* the macro invocation that it was expanded from, or NULL */
};

/* A growing array of tokens in an arena.  That of stp_lex ends with an STP_EOF. */
struct stp_toks {
	struct stp_tok *v;
	size_t n, cap;
};

/* The script's arguments: [0] is $1. */
struct stp_args {
	const char *const *v;
	size_t n;
};

void stp_toks_add(struct arena *a, struct stp_toks *to, const struct stp_tok *t);

/* Read all of @src.  Texts live in @a. */
void stp_lex(struct arena *a, const struct source *src, const struct stp_args *args, struct stp_toks *ret);

/* The token for a message: "operator '+'", "identifier 'x'", "keyword", "string 'a'", "<input> EOF". */
const char *stp_tok_text(struct arena *a, const struct stp_tok *t);

#endif

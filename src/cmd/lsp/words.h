/*
 * The names that both languages have without any library: a name, how it is written, what it is.
 */
#ifndef DTAP_CMD_LSP_WORDS_H
#define DTAP_CMD_LSP_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "dtap.h"

enum word_kind { WORD_VARIABLE, WORD_FUNCTION, WORD_KEYWORD, WORD_POINT, WORD_OPTION, WORD_OPERATOR };

struct word_row {
	enum word_kind kind;
	const char *name;
	const char *proto;	/* as in the language's table, or "" */
	const char *doc;	/* "": none */
	bool refused;		/* dtap does not have it: @doc says why, or what works instead */
};

/* Row @i of a language; false after the last.  A name may have several rows. */
bool word_row(enum dtap_language language, size_t i, struct word_row *ret);

/* Append how @w is written: "string copyinstr(uintptr_t, [size_t])", "strlen:long (string)". */
struct strbuf;
void word_signature(enum dtap_language language, const struct word_row *w, struct strbuf *out);

#endif

/*
 * Positions and words of a document, which may be half-typed.
 *
 * Compilers count lines and bytes; the protocol counts lines, which also end at a lone carriage return, and UTF-16
 * code units.  Both are translated through the offset of the byte.  A document is valid UTF-8 and may contain NULs.
 *
 * LSP 3.17, "Position", "Text Documents".
 */
#ifndef DTAP_CMD_LSP_TEXT_H
#define DTAP_CMD_LSP_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "dtap.h"

struct text {
	const char *s;		/* NUL-terminated */
	size_t len;
};

/* As in the protocol: from 0. */
struct text_pos {
	size_t line, unit;
};

/* The bytes from @from up to @to. */
struct text_span {
	size_t from, to;
};

struct text_pos text_pos(struct text t, size_t off);

/* The offset of a position; one beyond its line's end, or the last line, is there. */
size_t text_offset(struct text t, struct text_pos pos);

/* The offset of a compiler's position: line and byte from 1. */
size_t text_offset_of(struct text t, unsigned int line, unsigned int col);

/* A letter, digit or _. */
bool text_is_word(char c);

/* The word (letters, digits, _) around @off, or of which @off is the end; empty if there is none. */
struct text_span text_word(struct text t, size_t off);

/* The token that begins at @off, for underlining: a word with $ or @ before it, a string, or one character. */
struct text_span text_token(struct text t, size_t off);

/* What is written at an offset. */
enum text_where {
	TEXT_NOTHING,		/* a comment or a string */
	TEXT_PROBE,		/* a probe description of D, a probe point of SystemTap */
	TEXT_PRAGMA,		/* a line that begins with # in D */
	TEXT_CODE,		/* all else: handlers, predicates, declarations */
	TEXT_TOP,		/* outside of handlers, where a declaration may begin */
};

/* @probe: TEXT_PROBE: from the start of the description or point up to @off. */
enum text_where text_where(struct text t, enum dtap_language language, size_t off, struct text_span *probe);

/* The options of the interpreter in the first line: does one of its words begin with - and contain @letter? */
bool text_has_option(struct text t, char letter);

#endif

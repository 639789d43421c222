/*
 * Diagnostics: mistakes in the user's script, their positions, and advice.
 *
 * A pass reports and continues, so that one run shows several mistakes; after errors the next pass does not
 * start.  Reports are kept in the compilation's arena; a command prints them in its language's
 * format.  A tag is the short stable name of the kind of mistake (D_SYNTAX, D_PROTO_LEN ...), shown with
 * -x errtags.
 */
#ifndef DTAP_LANG_DIAG_H
#define DTAP_LANG_DIAG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "lang/source.h"

struct arena;
struct strbuf;

enum diag_level { DIAG_ERROR, DIAG_WARNING };

struct diag_msg {
	enum diag_level level;
	struct src_pos pos;	/* line 0: not about a position */
	const char *tag;	/* a string literal */
	const char *text;	/* no newline at its end */
	const char *hint;	/* advice, or NULL */
};

enum { DIAG_MAX_ERRORS = 20 };

struct diag {
	struct arena *arena;
	struct diag_msg *msgs;
	size_t n, cap;
	unsigned int errors, warnings;
	unsigned int max;	/* later ones of each are counted, not kept: DIAG_MAX_ERRORS, or what the caller sets */
};

void diag_init(struct diag *d, struct arena *a);

/* Report a mistake at @pos.  @tag must be a string literal. */
void diag_error(struct diag *d, struct src_pos pos, const char *tag, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void diag_warn(struct diag *d, struct src_pos pos, const char *tag, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void diag_verror(struct diag *d, struct src_pos pos, const char *tag, const char *fmt, va_list ap)
	__attribute__((format(printf, 4, 0)));

/* Add advice to the last report. */
void diag_hint(struct diag *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Append to @out the source line of @pos, indented by a tab, and a caret under the column.  Tabs in the line
 * are kept, so that the caret is in the right column whatever the terminal's tab stops.  Of a long line only the part
 * around the column is shown.  Nothing for line 0.
 */
void diag_excerpt(struct strbuf *out, struct src_pos pos);

#endif

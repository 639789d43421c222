/*
 * Source text and positions in it, common to both languages.
 *
 * A compilation may read several texts (the script, included files, -n arguments).  A position names one
 * of them, a line and a column, both from 1; line 0 means "nowhere in particular".
 */
#ifndef DTAP_LANG_SOURCE_H
#define DTAP_LANG_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

struct arena;

struct source {
	const char *name;	/* as shown to the user: "call_stack.d", "<stdin>", "BEGIN { ..." */
	const char *text;	/* NUL-terminated; may contain NULs before @len */
	size_t len;		/* bytes */
	const struct source *orig;	/* the preprocessor's input, to which positions refer; or NULL */
	const struct source *within;	/* the text whose #line names this source; or NULL */
};

struct src_pos {
	const struct source *src;	/* NULL: none */
	unsigned int line, col;
};

/*
 * A source from a file, or from standard input for "-".  0, or a negative errno and *ret is unchanged: -EFBIG for a
 * file of more than 16 MiB.
 */
int source_read(struct arena *a, const char *path, struct source **ret);

/* A source from the @len bytes at @text; name and text are copied into @a. */
struct source *source_text(struct arena *a, const char *name, const char *text, size_t len);

/* The text of line @line of @src without its newline: *len bytes.  Empty when there is no such line. */
const char *source_line(const struct source *src, unsigned int line, size_t *len);

/* Does a position in @src belong to the text @of? */
bool source_is_in(const struct source *src, const struct source *of);

#endif

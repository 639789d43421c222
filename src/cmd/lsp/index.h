/*
 * What script libraries and documents declare: names, where they are, the line of the declaration and its comment.
 *
 * Texts are searched for declarations that begin a line, so that half-typed documents, and libraries that would not
 * compile here, are found in as well.  What a name means at a place is not looked at: of several declarations of a
 * name all are found.
 */
#ifndef DTAP_CMD_LSP_INDEX_H
#define DTAP_CMD_LSP_INDEX_H

#include <stdbool.h>
#include <stddef.h>

#include "cmd/lsp/text.h"

struct arena;

enum index_kind {
	INDEX_FUNCTION,		/* SystemTap: function f */
	INDEX_ALIAS,		/* SystemTap: probe a.b = ... */
	INDEX_MACRO,		/* SystemTap: @define m; the name is without @ */
	INDEX_GLOBAL,		/* SystemTap: global g; D: a declared variable */
	INDEX_INLINE,		/* D: inline int x = ... */
	INDEX_TYPE,		/* D: typedef, struct, union, enum */
	INDEX_TRANSLATOR,	/* D: translator t < ... >; the name is the type t */
};

struct index_item {
	enum index_kind kind;
	const char *name;
	const char *path;	/* NULL: the document */
	struct text text;	/* the file's */
	struct text_span at;	/* of the name */
	bool is_private;
	const char *line;	/* the declaration up to its body, as one line */
	const char *doc;	/* the comment before it, or the first sentence of the file's; "" without one */
};

struct index {
	struct arena *arena;
	const char *arch;		/* SystemTap's name of the machine */
	struct index_item *items;
	size_t n, cap;
	size_t files;
};

/* Add the declarations of the script files of @dir and, for SystemTap, of the folders below it that count here. */
void index_dir(struct index *x, enum dtap_language language, const char *dir);

/* Add those of @t, which outlives @x; @path: NULL for a document. */
void index_text(struct index *x, enum dtap_language language, const char *path, struct text t);

/* The next item of a name after the index *pos, or NULL.  Start with *pos 0. */
const struct index_item *index_find(const struct index *x, const char *name, size_t *pos);

#endif

/*
 * dtap lsp: a language server for editors, on the front ends of both languages.
 *
 *	frame.c   messages on standard input and output
 *	server.c  methods.def: what a client asks; the documents it has open
 *	guard.c   an answer is computed in a child, which may fail or hang without harm
 *	check.c   a document through its front end; check_d.c, check_probes.c, check_stap.c
 *	answer.c  diagnostics, hover, definition; complete.c, variable.c
 *	words.c   the names of both languages' tables; index.c  what libraries and documents declare
 *	text.c    positions and words
 *
 * Nothing is traced, loaded or executed, no process is looked at, and no privilege is needed.  What the client sends
 * is believed in nothing: its messages have a limit, its texts may be anything.
 *
 * Language Server Protocol 3.17; JSON-RPC 2.0; JSON by jansson, which refuses invalid UTF-8.
 */
#ifndef DTAP_CMD_LSP_LSP_H
#define DTAP_CMD_LSP_LSP_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "cmd/lsp/index.h"
#include "cmd/lsp/text.h"

struct arena;

enum {
	LSP_MAX_MESSAGE = 32 << 20,	/* bytes; a larger one ends the server */
	LSP_MAX_TEXT = 16 << 20,	/* of a document, as of a script (lang/source.h) */
	LSP_MAX_TEXTS = 512 << 20,	/* of all documents together */
	LSP_MAX_DOCS = 1024,
};

/* A library of scripts and its declarations; read again when a document was saved. */
struct lsp_library {
	struct index index;
	bool is_stale;
};

struct lsp {
	struct arena *arena;
	const char *dlib, *tapset;	/* dtap's own folders; NULL: none */
	const char **dirs;		/* the user's, -L */
	size_t ndirs, dirs_cap;
	bool guru, destructive;		/* -g, -w */
	const char *topology;		/* a D library (lib/topology.h) */
	struct lsp_library libraries[2];	/* by enum dtap_language */
	bool markdown;			/* the client shows it */
	unsigned int seconds;		/* that an answer may take */
};

struct lsp_doc {
	char *uri;
	const char *path;		/* of @uri */
	char *text;
	size_t len;
	json_int_t version;
	enum dtap_language language;
	bool dirty;			/* its diagnostics are to be told */
	bool too_long;			/* and so without text */
};

static inline struct text lsp_text(const struct lsp_doc *doc)
{
	return (struct text){ doc->text, doc->len };
}

/* Find dtap's folders.  False: out of memory. */
bool lsp_init(struct lsp *s);
void lsp_fini(struct lsp *s);

/* The declarations in the libraries of @language. */
const struct index *lsp_library(struct lsp *s, enum dtap_language language);

/* --- answer.c, complete.c: results of requests, new references; NULL: out of memory -------------------------------- */

json_t *lsp_diagnostics(struct lsp *s, const struct lsp_doc *doc);	/* PublishDiagnosticsParams */
json_t *lsp_completion(struct lsp *s, const struct lsp_doc *doc, size_t off);
json_t *lsp_hover(struct lsp *s, const struct lsp_doc *doc, size_t off);
json_t *lsp_definition(struct lsp *s, const struct lsp_doc *doc, size_t off);

/* A string of JSON of bytes that may not be UTF-8. */
json_t *lsp_string(const char *s);

#endif

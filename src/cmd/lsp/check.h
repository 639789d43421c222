/*
 * A document through the front end of its language, as far as it gets: diagnostics, and the tree with its types.
 *
 * Probes are those that do not depend on processes, and Python's markers; what else a description or a point names is
 * taken to exist, and its arguments are unknown.  Script arguments ($1) are "1".
 */
#ifndef DTAP_CMD_LSP_CHECK_H
#define DTAP_CMD_LSP_CHECK_H

#include "cmd/lsp/lsp.h"
#include "lang/diag.h"

struct d_prog;
struct probe_set;
struct stp_prog;

struct verdict {
	struct arena *arena;
	const struct source *src;	/* the document's */
	struct diag diag;
	struct probe_set *probes;
	const char *unchecked;		/* why the document was not looked at, or NULL */
	unsigned int strangers;		/* D: descriptions of providers of which nothing is known */
	const struct d_prog *d;		/* DTAP_D */
	const struct stp_prog *stap;	/* DTAP_STAP */
};

/* Errors are in c->diag.  verdict_free() releases everything. */
void check(struct verdict *c, struct lsp *s, const struct lsp_doc *doc);
void verdict_free(struct verdict *c);

/* The two halves of check().  Libraries are parsed only: what is in them is checked where it is used. */
void check_d(struct verdict *c, struct lsp *s, struct text t, bool is_library);
void check_stap(struct verdict *c, struct lsp *s, struct text t, bool is_library);

/* Is the message about the document, and an error wherever it is run?  Else it is a warning, or none. */
enum check_weight { CHECK_NONE, CHECK_WARNING, CHECK_ERROR };
enum check_weight check_weight(const struct verdict *c, const struct lsp *s, const struct diag_msg *m);

/* --- probes of D (check_probes.c) --- */

struct resolver;

/* A resolver on c->probes. */
struct resolver check_resolver(struct verdict *c);

/* Call @fn for each description that completion offers, with its arguments or what it is. */
void check_each_probe(void (*fn)(void *ctx, const char *desc, const char *args, const char *doc), void *ctx);

#endif

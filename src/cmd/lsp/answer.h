/*
 * Parts of the answers that several of them have.
 */
#ifndef DTAP_CMD_LSP_ANSWER_H
#define DTAP_CMD_LSP_ANSWER_H

#include "cmd/lsp/lsp.h"

struct verdict;
struct strbuf;

/* What the cursor is on. */
struct answer_at {
	const struct lsp_doc *doc;
	size_t off;
	struct text_span word;	/* or in SystemTap's probe points the whole name "a.b.c" */
	char *name;		/* its text; to be freed */
	char before;		/* the byte before the word, NUL at the start of the text */
	enum text_where where;
};

void answer_at(struct answer_at *at, const struct lsp_doc *doc, size_t off);

/* A Range of the bytes in @t. */
json_t *answer_range(struct text t, struct text_span s);

/* Of the words of the script itself: append the type of the variable @at is on, as it is declared, or nothing. */
void answer_variable_type(const struct verdict *c, const struct answer_at *at, struct strbuf *out);

/* Where the variable that @at is on is first named, or an empty span. */
struct text_span answer_variable(const struct verdict *c, const struct answer_at *at);

/* Call @fn for each variable, maybe several times, that is written after @prefix: "self->", "this->", "@" or "". */
void answer_each_variable(const struct answer_at *at, const char *prefix, void (*fn)(void *ctx, const char *name), void *ctx);

/*
 * D: call @fn for each member, with its declaration, of the structure that stands before the "->" or "." before the word;
 * for none where its type is not known.
 */
void answer_each_member(struct lsp *s, const struct answer_at *at, void (*fn)(void *ctx, const char *name, const char *type),
			void *ctx);

#endif

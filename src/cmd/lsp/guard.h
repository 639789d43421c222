/*
 * Answers are computed in a child of the server, a copy of it: what a text does to a front end that it should not,
 * an endless loop, a crash, all memory, ends the child, and the server tells so.
 */
#ifndef DTAP_CMD_LSP_GUARD_H
#define DTAP_CMD_LSP_GUARD_H

#include <jansson.h>

struct strbuf;

/*
 * Call @fn with @ctx in a child and append its result, which may be NULL, to @out as JSON.  0, or a negative errno with
 * a sentence in @why: it took more than @seconds, or the child ended.
 */
int guard_run(json_t *(*fn)(void *ctx), void *ctx, unsigned int seconds, struct strbuf *out, struct strbuf *why);

#endif

/*
 * D's compile errors in DTrace's wording.
 */
#ifndef DTAP_LIB_D_MSG_H
#define DTAP_LIB_D_MSG_H

#include <stdbool.h>

struct diag;
struct diag_msg;
struct dtap;
struct strbuf;

/* Append to @b the part between "dtrace: " and the text of @m: what failed, and where. */
typedef void d_where_fn(void *ctx, const struct diag_msg *m, struct strbuf *b);

/* Append the messages of @diag to @out, each with its line of the script and its hint. */
void d_msg_text(const struct diag *diag, d_where_fn *where, void *ctx, struct strbuf *out);

/* Pass the diagnostics of a run with D scripts to the caller.  True if there are errors. */
bool d_msg_report(struct dtap *t, const struct diag *diag);

#endif

/*
 * dtrace's compile errors, worded as DTrace words them.
 */
#ifndef DTAP_CMD_DTRACE_MSG_H
#define DTAP_CMD_DTRACE_MSG_H

#include <stdbool.h>

struct diag;
struct diag_msg;
struct dtrace_opts;
struct source;
struct strbuf;

/* Add to @b what stands between "dtrace: " and the text of @m: what failed, and where. */
typedef void dtrace_where_fn(void *ctx, const struct diag_msg *m, struct strbuf *b);

/* Print what @diag has on standard error, each with its line of the script and its hint.  True when there are errors. */
bool dtrace_print(const struct diag *diag, dtrace_where_fn *where, void *ctx);

/* The same of a trace script; @sources are the texts of the programs of @o, in their order.  With @tags each has its tag. */
bool dtrace_report(const struct diag *diag, const struct dtrace_opts *o, const struct source *const *sources,
		   bool tags);

#endif

/*
 * dtrace's compile errors, worded as DTrace words them.
 */
#ifndef DTAP_CMD_DTRACE_MSG_H
#define DTAP_CMD_DTRACE_MSG_H

#include <stdbool.h>

struct diag;
struct dtrace_opts;
struct source;

/*
 * Print what @diag has on standard error; @sources are the texts of the programs of @o, in their order.  With @tags each has
 * its tag.  True when there are errors.
 */
bool dtrace_report(const struct diag *diag, const struct dtrace_opts *o, const struct source *const *sources,
		   bool tags);

#endif

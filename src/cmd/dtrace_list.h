/*
 * dtrace -l: probes as a table.
 */
#ifndef DTAP_CMD_DTRACE_LIST_H
#define DTAP_CMD_DTRACE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "lang/desc.h"

struct arena;
struct out_sink;
struct probe_set;

/*
 * Print the probes that the @n descriptions match, each once, in the order of their ids; with @verbose their
 * arguments, too.  How many descriptions matched nothing, after a line on standard error for each, made in @a.
 */
size_t dtrace_list(struct arena *a, struct probe_set *set, const struct probe_desc *descs, size_t n, bool verbose,
		   struct out_sink *out);

#endif

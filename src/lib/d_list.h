/*
 * dtrace -l: probes as a table.
 */
#ifndef DTAP_LIB_D_LIST_H
#define DTAP_LIB_D_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "lang/desc.h"

struct dtap;
struct strbuf;

/*
 * Append the probes that the @n descriptions match, each once, in the order of their ids; with @verbose also their
 * arguments.  Returns how many descriptions matched nothing, after a message for each.
 */
size_t d_list(struct dtap *t, const struct probe_desc *descs, size_t n, bool verbose, struct strbuf *out);

#endif

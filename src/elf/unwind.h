/*
 * How the callers of a file's functions are found: from its call frame information (.eh_frame, on libdw) to the tables of
 * abi/unwind.h.
 *
 * Rules that these tables cannot express (a CFA that is computed, as in procedure linkage tables and signal frames) are
 * left unknown.
 */
#ifndef DTAP_ELF_UNWIND_H
#define DTAP_ELF_UNWIND_H

#include <stdint.h>

#include "abi/unwind.h"

struct obj;

/*
 * Call @page for each page of code that something is known of, in order, with its @n rows, until it does not return 0.
 * 0, what @page returned, -ENOENT when there is no such information, or -ENOTSUP on another machine than x86-64.
 */
int obj_unwind(struct obj *o, int (*page)(void *ctx, uint32_t number, const struct abi_unwind_row *rows, uint32_t n), void *ctx);

#endif

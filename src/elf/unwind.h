/*
 * Unwinding the functions of a file: from its call frame information (.eh_frame, read by libdw) to the tables of
 * abi/unwind.h.
 *
 * Rules that these tables cannot express (a CFA that is computed by an expression, as in procedure linkage tables and
 * signal frames) become unknown rows.
 */
#ifndef DTAP_ELF_UNWIND_H
#define DTAP_ELF_UNWIND_H

#include <stdint.h>

#include "abi/unwind.h"

struct obj;

/*
 * Call @page for each page of code with known rules, in order, with its @n rows, until it does not return 0.  Returns
 * 0, the result of @page, -ENOENT: there is no such information, or -ENOTSUP: the machine is
 * neither x86-64 nor aarch64.
 */
int obj_unwind(struct obj *o, int (*page)(void *ctx, uint32_t number, const struct abi_unwind_row *rows, uint32_t n), void *ctx);

#endif

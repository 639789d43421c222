/*
 * Parallel work on independent items, each of which waits (mostly for the kernel) or computes.
 */
#ifndef DTAP_BASE_PARALLEL_H
#define DTAP_BASE_PARALLEL_H

#include <stddef.h>

/*
 * Call @fn with @ctx and each number below @n, in up to 16 threads including the caller's, and return when all
 * calls have returned.  They start in the order of the numbers.  If threads cannot be created, fewer are used; created
 * ones have all signals blocked.
 */
void parallel_each(size_t n, void (*fn)(void *ctx, size_t i), void *ctx);

#endif

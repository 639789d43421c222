/*
 * The same work for several things at once, where each waits (for the kernel, mostly) or computes by itself.
 */
#ifndef DTAP_BASE_PARALLEL_H
#define DTAP_BASE_PARALLEL_H

#include <stddef.h>

/*
 * Call @fn with @ctx and each number below @n, in up to 16 threads of which the caller's is one, and return when all
 * calls have.  They begin in the order of the numbers.  Threads that cannot be had are done without; no signal is
 * delivered to those that are made.
 */
void parallel_each(size_t n, void (*fn)(void *ctx, size_t i), void *ctx);

#endif

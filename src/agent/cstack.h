/* SPDX-License-Identifier: MIT */
/*
 * This thread's C stack.
 */
#ifndef AGENT_CSTACK_H
#define AGENT_CSTACK_H

#include <stdbool.h>
#include <stdint.h>

struct cstack {
	char *low, *high;	/* it may grow down to @low */
};

/* Can the bounds be asked for? */
bool cstack_usable(void);

/* The bounds, from the C library; both NULL: not known.  Asked for once a thread, which may allocate. */
struct cstack cstack_bounds(void);

#endif

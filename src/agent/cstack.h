/* SPDX-License-Identifier: MIT */
/*
 * This thread's C stack.
 */
#ifndef AGENT_CSTACK_H
#define AGENT_CSTACK_H

#include <stdbool.h>

#include "agent/state.h"

/* Can the C library tell the bounds? */
bool cstack_usable(void);

/* The bounds, from the C library; both NULL: not known.  The first call in each thread may allocate memory. */
struct cstack cstack_bounds(void);

#endif

/*
 * Keeping a session's struct abi_clock (abi/segment.h): the processor's cycle counter as a cheap CLOCK_MONOTONIC.
 */
#ifndef DTAP_PLACE_CLOCK_H
#define DTAP_PLACE_CLOCK_H

#include <stdbool.h>

#include "abi/segment.h"

struct clock {
	struct abi_clock own, *shared;	/* others can overwrite the shared copy: it is written only, never read */
	uint64_t first_tsc, first_ns;	/* at the start */
};

/*
 * A clock will be started soon: look at both clocks now, so that clock_start() need not wait between its two looks.  By any
 * thread; a look is of use for a second.
 */
void clock_foresee(void);

/*
 * Measure the counter's rate, which takes a millisecond, or what is left of it since clock_foresee() was called.  If the kernel
 * does not use the counter as its clock source (or on another machine), the shared clock stays unusable, and processes call
 * clock_gettime(2).
 */
void clock_start(struct clock *c, struct abi_clock *shared);

/* Adjust it to the system's clock without a jump; to be called several times a second. */
void clock_keep(struct clock *c);

#endif

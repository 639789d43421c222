/*
 * Keeping a session's struct abi_clock (abi/segment.h): the processor's cycle counter as a cheap CLOCK_MONOTONIC.
 */
#ifndef DTAP_PLACE_CLOCK_H
#define DTAP_PLACE_CLOCK_H

#include <stdbool.h>

#include "abi/segment.h"

struct clock {
	struct abi_clock *shared;
	uint64_t first_tsc, first_ns;	/* when it was started */
};

/*
 * Measure the counter's rate, which takes a millisecond.  Where the kernel itself does not count time by it (another
 * clock source, another machine) the shared clock stays unusable, and processes ask the system.
 */
void clock_start(struct clock *c, struct abi_clock *shared);

/* Bring it in step with the system's clock, without a leap: to be called some times a second. */
void clock_keep(struct clock *c);

#endif

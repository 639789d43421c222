/*
 * The scheduler's clock, by which the kernel adds up the time of threads.
 */
#ifndef DTAP_PLACE_SCHED_CLOCK_H
#define DTAP_PLACE_SCHED_CLOCK_H

#include <stdint.h>

/*
 * What is to be added to CLOCK_MONOTONIC for it, in ns.  They are corrected in different ways, so this changes, by up to
 * half a millisecond in a second.  Where the kernel does not tell, 0: both begin when the system does.
 */
int64_t sched_clock_off(void);

#endif

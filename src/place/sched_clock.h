/*
 * The scheduler's clock, with which the kernel measures the CPU time of threads.
 */
#ifndef DTAP_PLACE_SCHED_CLOCK_H
#define DTAP_PLACE_SCHED_CLOCK_H

#include <stdint.h>

/*
 * The scheduler's clock minus CLOCK_MONOTONIC, ns.  The two are corrected in different ways, so the difference changes
 * by up to half a millisecond per second.  0 if it cannot be found: both start at boot.
 */
int64_t sched_clock_off(void);

#endif

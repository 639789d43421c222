/* SPDX-License-Identifier: MIT */
/*
 * The time of a thread on a CPU without that of its events: vtimestamp.
 *
 * The kernel's clock of the thread is asked once, when an event begins.  How long the event takes is told by the cycle
 * counter, which costs less and also covers the call that reads the clock.  An event that takes long may have waited
 * or lost its CPU: its end is then asked of the kernel's clock as well.  Not covered are the few nanoseconds of the
 * interpreter's and the hook's way to the engine.
 */
#ifndef AGENT_VTIME_H
#define AGENT_VTIME_H

#include <stdint.h>

#include "vm/shm.h"

/*
 * Around the programs of an event, while agent.engine.vtime is set; @clock is a session's.  Nested events belong to the
 * outermost.  errno is kept.
 */
void vtime_begin(const struct shm *clock);
void vtime_end(const struct shm *clock);

/* This thread's vtimestamp at the event in ns.  It never goes back. */
uint64_t vtime_now(void);

/* In a child of fork, whose thread's clock begins at 0. */
void vtime_forked(void);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Laps: adding the time since the thread's last event to its calling context (abi/segment.h, enum abi_known) without
 * running the program that does it.
 *
 * A node of the tree of calling contexts (context.h) knows the two elements of the lane that its program adds to, and a
 * thread knows where in the lane its last time is.  Both are learned from the program: it runs when one of them is not
 * known.  So the program's results do not depend on how often it runs.
 *
 * All functions need the GIL.  Around an event: context_begin(), lap_take(), if that is false the programs and lap_learn(),
 * context_end().
 */
#ifndef AGENT_LAP_H
#define AGENT_LAP_H

#include "agent/context.h"
#include "agent/marker.h"
#include "agent/state.h"
#include "vm/shm.h"

/* Are the numbers in @f valid for a lap of this segment? */
bool lap_good(const struct shm *s, const struct abi_fire *f);
/* From now on events are added here; the programs @entry and @ret are good, @run has a lane. */
void lap_start(const struct shm_run *run, const struct abi_fire *entry, const struct abi_fire *ret);
void lap_stop(void);

bool lap_add(bool entry);
void lap_learn_any(bool entry);

/* Add the event of the thread's innermost frame.  False: its programs must run. */
static inline bool lap_take(bool entry)
{
	return __builtin_expect(agent.laps.control != NULL, 0) && lap_add(entry);
}

/* The programs have run. */
static inline void lap_learn(bool entry)
{
	if (__builtin_expect(agent.laps.control != NULL, 0))
		lap_learn_any(entry);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Functions by name for programs in the kernel (ABI_FIRE_AWAY in abi/segment.h): the agent finds the functions and reads the
 * values that the programs ask for, and fires a marker.
 */
#ifndef AGENT_AWAY_H
#define AGENT_AWAY_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/segment.h"

struct shm;
struct shm_run;

/* An event of a function.  @file and @name: addresses of strings, or 0. */
struct away_event {
	struct shm_run *run;	/* reads values; it needs no lane */
	const struct abi_fire *fire;
	const char *module, *qualname;
	uint64_t file, name;
	int line;
	void *given;		/* memory of away_room() */
};

/* Is @f such a fire, and what it says of values right? */
bool away_good(const struct shm *shm, const struct abi_fire *f);

/* Memory for the values of any fire of the segment, which the caller frees, or NULL: none has values.  0 or -ENOMEM. */
int away_room(const struct shm *shm, void **ret);

/* Read the values and fire the marker, if it has listeners.  Inside (engine_enter()); changes errno. */
void away_fire(const struct away_event *event);

#endif

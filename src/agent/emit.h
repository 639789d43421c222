/* SPDX-License-Identifier: MIT */
/*
 * Records that the agent outputs without running the program that does it (abi/segment.h, ABI_KNOWN_RECORD): file, name and line of a
 * code object, the time, the process and the thread.
 *
 * All functions need the GIL, and an event that goes the quick way (struct engine_quick).
 */
#ifndef AGENT_EMIT_H
#define AGENT_EMIT_H

#include "agent/state.h"
#include "vm/shm.h"

/* What @f's program outputs, if all that it says of that is right; else .out is NULL. */
struct shm_record emit_of(const struct shm *s, const struct abi_fire *f);

/*
 * Output the record of this thread's event: the session's probe, the code object's texts, if the record has them, and the line.  False:
 * nothing was done, and the program must run.
 */
static inline bool emit_record(const struct shm_record *rec, struct shm_run *run, uint64_t probe, uint64_t file, uint64_t name,
			       uint64_t line)
{
	if (__builtin_expect(!agent_thread.tid || run->running || !shm_is_active(run->shm), 0))
		return false;
	shm_set_tid(run, agent_thread.tid);
	return shm_record(run, rec, probe, file, name, line);
}

#endif

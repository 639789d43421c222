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

struct emit {
	const struct shm_map *out;	/* NULL: it is none */
	struct shm_record rec;
	uint32_t id;			/* abi_record.rec */
	uint8_t fields[ABI_FIELD_MOST];	/* enum abi_field */
};

/* What @f's program outputs, if all that it says of that is right. */
struct emit emit_of(const struct shm *s, const struct abi_fire *f);

/* The event: the session's probe, the code object's texts, if they are asked for, and the line. */
struct emit_event {
	uint64_t probe, file, name, line;
};

/* Output the record of this thread's event.  False: nothing was done, and the program must run. */
bool emit_record(const struct emit *e, struct shm_run *run, const struct emit_event *event);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Without a GIL: reading objects that other threads may change or free.
 *
 * Who changes a list, a dictionary, a set, an instance, a slot or a cell holds its lock, a byte in the object.  So whatever
 * can change is locked before it is read, and stays so until the event ends: what was found in it is alive and where it was
 * found.  Nobody waits here.  A lock that is held, perhaps by this thread itself or by one that waits for this one's turn, is
 * tried READS_TRIES times; then the question is a fault (ABI_FAULT_VALUE_CHANGES), and never another answer.
 *
 * Some links have no lock: what exceptions, classes and tasks refer to.  All readings are noted, and are repeated when the
 * answer is complete: every byte must be as it was.  What lies behind such a link, and objects at addresses that come from a
 * script, are not locked, since they may be none: their locks must be free at both times.  There the answer is as good as
 * that: an object could have been freed, its memory used by others, and then by an object with the same bytes, unseen.
 *
 * In turn (engine.c).  With a GIL nothing is noted or locked, and all answers hold.
 */
#ifndef AGENT_READS_H
#define AGENT_READS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/state.h"
#include "vm/shm.h"

enum { READS_TRIES = 100 };

/* Get the memory for notes, before anything is read without a GIL; not at an event.  False: there is none. */
bool reads_prepare(void);

/* A question about @object, or about 0, is asked (again): note what @r reads. */
void reads_begin(struct shm_run *r, uint64_t object);

/*
 * The question is answered: stop noting.  False: it must be asked again; then other threads have been let go on.  @given:
 * the answer, if it may be the address of an object, or 0.
 */
bool reads_end(struct shm_run *r, uint64_t given);

/* What has been read for this question needs not be read again. */
void reads_forget(void);

/* The object at @addr, which may change, is going to be read. */
void reads_open(struct shm_run *r, uint64_t addr);

/* What is read from now on for this question was found where nobody holds a lock. */
void reads_loose(void);

/* The event ends. */
void reads_release_all(void);
static inline void reads_release(void)
{
	if (__builtin_expect(agent.reads.nheld, 0))
		reads_release_all();
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The frames of an event, for programs that record stacks (vm/stack.h): native frames (cframes.h), Python frames
 * (pyframes.h), or both.  With both, an entry after the Python frames run by one native call names that native frame.
 */
#ifndef AGENT_STACKS_H
#define AGENT_STACKS_H

struct shm_stacks;

/* The state for a session's lane.  NULL: no memory.  stacks_free() accepts NULL. */
struct shm_stacks *stacks_new(void);
void stacks_free(struct shm_stacks *s);

#endif

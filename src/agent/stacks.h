/* SPDX-License-Identifier: MIT */
/*
 * The frames of an event, for programs that ask for stacks (vm/stack.h): native ones (cframes.h), Python's (pyframes.h), or
 * both, with a note behind those of Python that one native call runs which that is.
 */
#ifndef AGENT_STACKS_H
#define AGENT_STACKS_H

struct shm_stacks;

/* What a session's lane needs.  NULL: no memory.  stacks_free() accepts NULL. */
struct shm_stacks *stacks_new(void);
void stacks_free(struct shm_stacks *s);

#endif

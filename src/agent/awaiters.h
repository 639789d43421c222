/* SPDX-License-Identifier: MIT */
/*
 * Stacks of asyncio's tasks: behind the frames of the running task's coroutines those of the coroutines that wait for it,
 * in place of the event loop's.
 */
#ifndef AGENT_AWAITERS_H
#define AGENT_AWAITERS_H

#include <stdbool.h>
#include <stdint.h>

struct pyobj;
struct shm_run;
struct task_state;

/*
 * The part of task.c's measuring for this: _asyncio is @module.  Runs Python code of the agent's own.  With the GIL, no
 * exception set, not at an event.
 */
void awaiters_measure(struct task_state *t, struct pyobj *module);

/*
 * As pyframes_walk() without @calls.  Where several wait for a task, those of the first one are taken; an eager task's
 * first step is in the stack of who makes it, and has its frames.  With the GIL.
 */
uint32_t awaiters_walk(struct shm_run *r, uint32_t pid, bool lines, uint32_t most, uint64_t *words, struct pyobj **codes);

#endif

/* SPDX-License-Identifier: MIT */
/* Functions by name: the source of their events.  function.h decides which programs get them. */
#ifndef AGENT_HOOK_FUNCTION_H
#define AGENT_HOOK_FUNCTION_H

#include <stdbool.h>

struct pyobj;

/*
 * Install the hooks that agent.engine.functions needs, after sessions were added or removed.  With the GIL, in the main
 * interpreter, no exception set; the caller clears exceptions.  agent_why() tells what is not available.
 */
void hook_function_update(void);

/*
 * task-step-begin and task-step-end (@steps), task-create (@making): events of the same hooks.  hook_function_tasks() says
 * which are wanted; false: they cannot be had.
 */
bool hook_function_tasks(bool steps, bool making);

/* Before 3.12: profile functions take over from the evaluator. */
void hook_function_hand_over(void);

/* An event of a profile or trace function: enum capi_trace @what in @frame, with its @value. */
void hook_function_traced(struct pyobj *frame, int what, struct pyobj *value);

#endif

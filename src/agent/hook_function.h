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

/* What a subinterpreter has because of functions by name. */
struct hook_function_sub {
	bool asked, usable;	/* room beside its code objects: requested, and had */
	int tool, watcher;	/* 3.12+: 1 + the ids, or 0 */
};

/*
 * The same in the subinterpreter that this thread is in, when the engine's epoch is another one: without LINE before 3.12, and
 * without tasks.  Before 3.12 its evaluator is the caller's (eval_use_sub()).  Where another tool has the room beside code
 * objects, nothing is done, and @sub is not usable.
 */
void hook_function_update_sub(struct hook_function_sub *sub);

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

/* SPDX-License-Identifier: MIT */
/*
 * The agent's frame evaluator (PEP 523), in the main interpreter.  It calls the evaluator that was installed before,
 * has three uses, and is removed when none is wanted.  With the GIL.
 */
#ifndef AGENT_EVAL_H
#define AGENT_EVAL_H

#include <stdbool.h>

enum eval_use { EVAL_EVENTS = 1, EVAL_THREADS = 2, EVAL_FUNCTIONS = 4 };

void eval_use(enum eval_use use, bool on);
bool eval_used(enum eval_use use);
/* EVAL_EVENTS and EVAL_FUNCTIONS in the subinterpreter that this thread is in; the latter needs function_usable_sub() there. */
void eval_use_sub(unsigned uses);
/*
 * In a subinterpreter that has the main one's GIL: its next frame calls subinterp_meet() before it runs.  eval_met(): in it, no more
 * frames do; it is as after eval_use_sub().
 */
void eval_expect_sub(struct pyinterp *interp);
void eval_met(unsigned uses);

/* EVAL_EVENTS in hook_eval.c: run a frame, with its entry and return.  hook_eval_run_sub(): in a subinterpreter. */
struct pyobj *hook_eval_run(struct pythread *thread, void *frame, int throwing, capi_evaluator *next);
struct pyobj *hook_eval_run_sub(struct pythread *thread, void *frame, int throwing, capi_evaluator *next);

/*
 * EVAL_FUNCTIONS in hook_function.c: run a frame, with the events of its function if that is probed by name.
 * hook_function_eval_sub(): in a subinterpreter.
 */
struct pyobj *hook_function_eval(struct pythread *thread, void *frame, int throwing, capi_evaluator *next);
struct pyobj *hook_function_eval_sub(struct pythread *thread, void *frame, int throwing, capi_evaluator *next);

/*
 * Is so much of this thread's stack in use at @here that evaluators must not use more (see hook_eval.c)?  If so,
 * profile functions supply from now on what they did.
 */
bool hook_eval_stack_ends(char *here);
#define hook_eval_near_end(here) (__builtin_expect((here) < agent_thread.stack_limit, 0) && hook_eval_stack_ends(here))

/* The same in a subinterpreter, in which there are no more events then. */
bool hook_eval_ends_sub(const char *here);

/* The code object of a frame before 3.12, where the evaluator is usable; a borrowed reference. */
struct pyobj *hook_eval_code(void *frame);

#endif

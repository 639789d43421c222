/* SPDX-License-Identifier: MIT */
/*
 * exception-caught: a handler has ended, and its exception goes no further.
 *
 * No event of the interpreter tells that.  sys.monitoring's EXCEPTION_HANDLED only tells that control goes to a handler,
 * which a "finally", a "with" statement and an "except" for other exceptions are, too; what it does is then still open.  But
 * all compilers of CPython end a handler that keeps its exception by the instruction POP_EXCEPT, on each way out of it; from
 * 3.11 on there is another one directly before RERAISE, where the exception goes on.  So the instructions of functions in
 * which there are handlers at work are watched for that one.
 */
#ifndef AGENT_CAUGHT_H
#define AGENT_CAUGHT_H

#include <stdbool.h>

#include "agent/fire.h"

/* Find out what the instructions are, once.  With the GIL, no exception set, not at an event. */
bool caught_usable(void);

/* Does the instruction at offset @at of @code end a handler that keeps its exception? */
bool caught_ends(struct pyobj *code, long at);

/* The thread is at such an instruction. */
void caught_fire(const struct moment *moment);

/*
 * From 3.12 on: have sys.monitoring's tool of hook_monitoring.c told of each instruction of @code, which is running, and of its
 * lines if agent.monitoring.line is not 0, until caught_unwatch().  @monitoring: the module.
 */
void caught_watch(struct pyobj *monitoring, struct pyobj *code);
void caught_unwatch(struct pyobj *monitoring);

/* Are instructions of @code, which is running, watched by others, too?  agent.monitoring.instruction is set. */
bool caught_is_shared(struct pyobj *monitoring, struct pyobj *code);

/* Does an instruction of caught_ends() belong to that line of @code? */
bool caught_is_at_line(struct pyobj *code, int line);

/*
 * Before 3.12: an event of the trace function; enum capi_trace @what.  True: it is one that the program has not asked for
 * and must not get.
 */
bool caught_traced(struct pyobj *frame, int what);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Tools of sys.monitoring (PEP 669), from Python 3.12 on: who has callbacks there is a tool, which has one of six ids.
 *
 * @monitoring is the module of the interpreter that this thread is in, which each interpreter has its own of.  All need the GIL,
 * and no exception is set before or after.
 */
#ifndef DTAP_AGENT_TOOL_H
#define DTAP_AGENT_TOOL_H

#include <stdbool.h>

#include "agent/capi.h"

enum { TOOL_IDS = 6 };		/* 0 to 5 */

/* sys.monitoring, borrowed; NULL: there is none. */
struct pyobj *tool_monitoring(void);

/*
 * Take a free id, @first if it is: at an event, tools with lower ids are called before others.  Those of debuggers, coverage tools and
 * profilers (0, 1, 2) come last, which such tools use by convention.  @name: for who asks get_tool().  -1: others have all.
 */
int tool_take(struct pyobj *monitoring, int first, const char *name);

/* Give it back; its events are off before. */
void tool_free(struct pyobj *monitoring, int tool);

/* The number of sys.monitoring.events.NAME, one bit; 0: this version has no such event. */
int tool_event(struct pyobj *monitoring, const char *name);

/* Have @method called at @event, with @self; NULL: nothing is.  False: it is not. */
bool tool_call_back(struct pyobj *monitoring, int tool, int event, struct capi_method *method, struct pyobj *self);

/* From now on the tool's @events, numbers together, are those of all code.  False: as before. */
bool tool_enable(struct pyobj *monitoring, int tool, int events);

/*
 * Events that callbacks have disabled occur again; also to be called when the events of a tool of the agent's have been set: CPython
 * forgets which instructions others watch in a function when two tools come to have the same event there (watched.c), a program's trace
 * function with f_trace_opcodes would have none any more, and this gives them back.  Nothing where there is no sys.monitoring.
 */
void tool_restart(void);

#endif

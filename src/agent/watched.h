/* SPDX-License-Identifier: MIT */
/*
 * Code objects in which a tool of sys.monitoring has events of its own, until all of them are dropped at once.  Threads add them at
 * their events; without a GIL several at a time, and while they are being dropped.
 */
#ifndef AGENT_WATCHED_H
#define AGENT_WATCHED_H

#include <stdbool.h>

#include "agent/capi.h"
#include "agent/state.h"

/*
 * From now on code can be added.  @helper: a second tool's id, or -1; @event: an event that nobody listens to.  See
 * set_first(); needed where events of instructions are set.
 */
void watched_open(struct watched *w, int helper, int event);

/* Does @tool have events in @code?  @monitoring: the module sys.monitoring, here and below. */
bool watched_has(struct pyobj *monitoring, int tool, struct pyobj *code);
bool watched_set(struct pyobj *monitoring, int tool, struct pyobj *code, int events);

/*
 * Set events of @code; nothing happens when @w is not open.  Interpreters without a GIL stop the world for it.  Not between
 * engine_enter() and engine_leave().
 */
void watched_add(struct watched *w, struct pyobj *monitoring, int tool, struct pyobj *code, int events);

/* Take all events away; nothing is added any more.  It may let other threads go on meanwhile. */
void watched_drop(struct watched *w, struct pyobj *monitoring, int tool);

/* False: no memory. */
bool watched_list_add(struct watched_list *l, struct pyobj *o);

/* In a child of fork: the other threads are not there. */
void watched_forked(struct watched *w);

#endif

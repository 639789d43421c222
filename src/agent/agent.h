/* SPDX-License-Identifier: MIT */
/*
 * The agent: the object loaded into a CPython process, which fires the markers that the interpreter lacks.
 *
 * It is a guest.  A callback leaves errno and the interpreter's error indicator as found; what the agent does to
 * the interpreter by itself (installing hooks raises audit events) is not reported by its markers.  No hook is
 * installed while no semaphore is raised.
 */
#ifndef AGENT_H
#define AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/agent.h"
#include "agent/capi.h"
#include "agent/marker.h"

/*
 * A way to hook the interpreter.  @serves: the markers it can supply.  @usable: in this interpreter?  @update:
 * from now on supply the markers @wants (a subset of @serves, 0 removes the hook); called with the GIL in the main
 * interpreter and only on a change; returns the markers it really supplies now.  Exceptions are the caller's to
 * clear.
 */
struct hook {
	unsigned serves;
	bool (*usable)(void);
	unsigned (*update)(unsigned wants);
};

extern const struct hook hook_monitoring, hook_eval, hook_profile, hook_trace, hook_gc, hook_import, hook_thread;

/* The agent's one state: hooks bring no pointer.  Written with the GIL held, but for what is said to be atomic. */
struct agent {
	struct capi py;
	bool resolved;			/* @py has been tried */
	enum { AGENT_WAITING, AGENT_SETTING_UP, AGENT_READY, AGENT_OFF } phase;
	unsigned can, installed, supplied;	/* markers, as enum want: with usable hooks, hooks asked for (atomic),
						   hooks in place */
	char why[ABI_AGENT_WHY];	/* it is off, or not all that is asked for is supplied */
	long code_file_off, code_name_off;
};

extern struct agent agent;

/* The agent itself is at work in this thread: its audit events are nobody's business. */
extern __thread bool agent_busy;

/*
 * With the GIL, in the main interpreter, no exception set.  agent_set_up() is the first thing to be called;
 * whatever fails there leaves an agent that does nothing.  agent_update_hooks() brings the hooks up to date with
 * the semaphores.
 */
void agent_set_up(void);
void agent_update_hooks(void);
/* The markers that ought to be supplied, as enum want.  Needs no GIL. */
unsigned agent_listeners(void);
/* Are the hooks out of date?  Needs no GIL. */
bool agent_changed(void);
/* A hook says why it cannot supply what it is asked for. */
void agent_why(const char *text);
/* Audit events reach the agent from now on; false when another audit hook refuses that. */
bool agent_audits(void);
/* In a child of fork, before anything else. */
void agent_forked(void);

/*
 * Threads to come.  Trace and profile functions belong to a thread, and nothing tells of a new one but its starter.
 * threads_watch() says for whom starters are watched; threads_expect() is called when a thread is about to be
 * started, and threads_seen() with its first frame.
 */
enum threads_use { THREADS_TRACE = 1, THREADS_PROFILE = 2, THREADS_MARKER = 4 };

void threads_watch(enum threads_use use, bool on);
bool threads_watched(void);
void threads_expect(void);
void threads_seen(struct pythread *thread, void *frame);

/* In a new thread: the trace and profile functions that others have. */
void hook_trace_adopt(void);
/* The same for any thread that has lost them to the program. */
void hook_trace_again(void);
/* The profile function supplies @wants of the function pair from now on; what it needs for that from any thread. */
unsigned hook_profile_take_over(unsigned wants);
bool hook_profile_prepare(void);

static inline void agent_release(struct pyobj *obj)
{
	if (obj)
		agent.py.Py_DecRef(obj);
}

/* PyObject's ob_type, where there is a GIL. */
static inline struct pyobj *agent_type(struct pyobj *obj)
{
	return ((struct pyobj **)obj)[1];
}

/* A Python callable from a static method definition. */
static inline struct pyobj *agent_callable(struct capi_method *def)
{
	return agent.py.PyCFunction_NewEx(def, NULL, NULL);
}

static inline struct pyobj *agent_none(void)
{
	agent.py.Py_IncRef(agent.py.none);
	return agent.py.none;
}

#endif

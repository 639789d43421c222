/* SPDX-License-Identifier: MIT */
/*
 * The agent: a shared object loaded into a CPython process.  It fires the markers that the interpreter lacks.
 *
 * It is a guest.  A callback leaves errno and the interpreter's error indicator as found; the agent's markers do not
 * report its own actions (installing hooks raises audit events).  Without a listener no hook is installed.
 */
#ifndef AGENT_H
#define AGENT_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/marker.h"
#include "agent/state.h"

struct moment;

/*
 * A way to hook the interpreter.  @serves: the markers it can supply; @serves_free: in a free-threaded one.  @usable: does it work in this interpreter?
 * @update: supply the markers @wants (a subset of @serves, 0 removes the hook); called with the GIL in the main
 * interpreter and only on a change; returns the markers that it now supplies.  The caller clears exceptions.
 */
struct hook {
	unsigned serves, serves_free;
	bool (*usable)(void);
	unsigned (*update)(unsigned wants);
};

extern const struct hook hook_monitoring, hook_eval, hook_profile, hook_trace, hook_gc, hook_import, hook_thread,
	hook_task, hook_memory, hook_audit;

/* The markers that the hook supplies now. */
unsigned agent_supplied_by(const struct hook *hook);

/*
 * With the GIL, in the main interpreter, no exception set.  agent_set_up() is called first, and again if the program is just
 * importing what it needs (AGENT_WAITING remains); if it fails, the agent does nothing.  agent_update_hooks() installs and removes
 * hooks as the listeners require.
 */
void agent_set_up(void);
void agent_update_hooks(void);
/* Block the program's signals in this thread, those of @faults, too, but not those that a C library sends to all threads. */
void agent_block_signals(sigset_t *old, bool faults);
/* The markers that have listeners, as enum want.  Needs no GIL. */
unsigned agent_listeners(void);
/* Are the hooks out of date?  Needs no GIL. */
bool agent_changed(void);
/* Record why something that was asked for cannot be supplied. */
void agent_why(const char *text);

/* CLOCK_MONOTONIC, of a system call. */
long long agent_now_ms(void);
/* Install the audit hook, unless it is installed.  False: another audit hook refuses it. */
bool agent_audits(void);
/* In a child of fork, before anything else. */
void agent_forked(void);

/*
 * New threads.  Trace and profile functions belong to a thread, and the agent learns of a new thread only where it is
 * started.  threads_watch() sets the uses for which thread starts are watched; threads_expect() is called when a thread
 * is about to be started, with the arguments of its audit event (NULL: it has none), threads_seen() before each frame; true: it is a thread's first, and threads_run() must run it by
 * @run, since somebody wants to know when it ends.
 */
enum threads_use { THREADS_TRACE = 1, THREADS_PROFILE = 2, THREADS_MARKER = 4 };

void threads_watch(enum threads_use use, bool on);
bool threads_watched(void);
void threads_expect(struct pyobj *args);
bool threads_seen(struct pythread *thread, void *frame);
struct pyobj *threads_run(struct pythread *thread, void *frame, int throwing, capi_evaluator *run);

/* Is it the first function of the threads of the module threading? */
bool threads_is_bootstrap(struct pyobj *code);

/* In a new thread: install the trace and profile functions that the other threads have. */
void hook_trace_adopt(void);
/* Reinstall them in threads where the program has replaced them. */
void hook_trace_again(void);
/* Supply @wants, of function-entry and function-return, by the profile function; prepare for that, in any thread. */
unsigned hook_profile_take_over(unsigned wants);
bool hook_profile_prepare(void);

/*
 * The events that functions by name need: calls by the profile function, lines by the trace function.  False: not
 * available.
 */
enum hook_trace_use { HOOK_FUNCTION_CALLS = 1 << 30, HOOK_FUNCTION_LINES = 1 << 29 };
bool hook_trace_use(unsigned uses);
/*
 * hook_memory_watched(): are allocators wrapped?  Then hook_memory_displaced() is to be asked from time to time: a tool
 * that was there before may have removed its own wrappers, and ours with them.  It takes no GIL, but a lock of the
 * interpreter's, so that no other thread may fork meanwhile.  hook_memory_again(), with the GIL: wrap them again.
 */
bool hook_memory_watched(void);
bool hook_memory_displaced(void);
void hook_memory_again(void);

/* The line of a moment whose @where is a frame object. */
int hook_trace_line(const struct moment *moment);

/*
 * The same hooks in the subinterpreter that this thread is in (subinterp.h).  hook_monitoring_sub(): @wants of
 * HOOK_MONITORING_SUB; *tool: the id in its sys.monitoring, or -1.  The others keep what they have to in its dictionary.
 */
enum { HOOK_MONITORING_SUB = WANT_function__entry | WANT_function__return | WANT_cfunction__entry | WANT_cfunction__return |
			     WANT_exception__raise | WANT_line };
void hook_monitoring_sub(unsigned wants, int *tool);
void hook_gc_sub(struct pyobj *dict, bool on);
void hook_import_sub(struct pyobj *dict, bool on);

/* Where this thread's errno is, without the call that the C library has for it. */
static inline int *agent_errno(void)
{
	if (__builtin_expect(!agent_thread.errno_at, 0))
		agent_thread.errno_at = &errno;
	return agent_thread.errno_at;
}

static inline void agent_release(struct pyobj *obj)
{
	if (obj)
		agent.py.Py_DecRef(obj);
}

/* Release the result of a call, and clear its exception, which must not be set at the next one.  True: it has succeeded. */
static inline bool agent_dropped(struct pyobj *result)
{
	agent_release(result);
	if (!result)
		agent.py.PyErr_Clear();
	return result;
}

/* PyObject's ob_type. */
static inline struct pyobj *agent_type(struct pyobj *obj)
{
	return ((struct pyobj **)obj)[agent.py.type_slot];
}

/* A Python callable from a static method definition. */
static inline struct pyobj *agent_callable(struct capi_method *def)
{
	return agent.py.PyCFunction_NewEx(def, NULL, NULL);
}

/* None as a result.  From 3.12 on it is immortal (PEP 683). */
static inline struct pyobj *agent_none(void)
{
	if (agent.py.minor < 12)
		agent.py.Py_IncRef(agent.py.none);
	return agent.py.none;
}

#endif

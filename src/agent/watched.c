/* SPDX-License-Identifier: MIT */
/*
 * The code objects are known by weak references.
 *
 * A thread that holds the lock calls nothing of the interpreter's: it might wait there, detached, for another thread that has
 * stopped the world, and that waits for those that wait for the lock.  @adding are the threads between the question whether the
 * list is open and the last of their events: watched_drop() closes it, waits for them, and then has a list that is complete.
 */
#include "agent/watched.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/agent.h"

static void lock(struct watched *w)
{
	while (__atomic_exchange_n(&w->lock, true, __ATOMIC_ACQUIRE))
		syscall(SYS_sched_yield);
}

static void unlock(struct watched *w)
{
	__atomic_store_n(&w->lock, false, __ATOMIC_RELEASE);
}

/* --- the list ----------------------------------------------------------------------------------------- */

bool watched_list_add(struct watched_list *l, struct pyobj *o)
{
	if (l->n == l->room) {
		unsigned room = l->room ? 2 * l->room : 64;
		struct pyobj **v = realloc(l->v, room * sizeof(struct pyobj *));

		if (!v)
			return false;
		l->v = v;
		l->room = room;
	}
	l->v[l->n++] = o;
	return true;
}

static bool put(struct watched *w, struct pyobj *o)
{
	bool done;

	lock(w);
	done = watched_list_add(&w->list, o);
	unlock(w);
	return done;
}

/* The list, if it has no room left, or in any case; an empty one is left behind. */
static struct watched_list take(struct watched *w, bool full)
{
	struct watched_list l = { .v = NULL };

	lock(w);
	if (!full || w->list.n == w->list.room) {
		l = w->list;
		w->list = (struct watched_list){ .v = NULL };
	}
	unlock(w);
	return l;
}

/* What the weak reference is to; None when that is gone.  Released by the caller. */
static struct pyobj *referent(struct pyobj *reference)
{
	return agent.py.PyObject_CallFunctionObjArgs(reference, NULL);
}

/* Before the list would have to grow, drop references to code that is gone. */
static void prune(struct watched *w)
{
	struct watched_list l = take(w, true);

	for (unsigned k = 0; k < l.n; k++) {
		struct pyobj *code = referent(l.v[k]);

		if (code == agent.py.none || !put(w, l.v[k]))
			agent_release(l.v[k]);
		agent_release(code);
	}
	free(l.v);
}

/* --- the events --------------------------------------------------------------------------------------- */

bool watched_set(struct pyobj *monitoring, int tool, struct pyobj *code, int events)
{
	struct pyobj *result = agent.py.PyObject_CallMethod(monitoring, "set_local_events", "iOi", tool, code, events);

	agent_release(result);
	if (!result)
		agent.py.PyErr_Clear();
	return result != NULL;
}

bool watched_has(struct pyobj *monitoring, int tool, struct pyobj *code)
{
	struct pyobj *events = agent.py.PyObject_CallMethod(monitoring, "get_local_events", "iO", tool, code);
	bool has = !events || agent.py.PyLong_AsLong(events) != 0;

	agent_release(events);
	agent.py.PyErr_Clear();
	return has;
}

/*
 * CPython (3.12 to 3.15) notes for each instruction which tools watch it from the moment on at which two tools have the same event
 * of a code object, whichever that is, and forgets who has watched instructions until then.  So two have one here, when
 * nobody watches the instructions yet.
 */
static void set_first(const struct watched *w, struct pyobj *monitoring, int tool, struct pyobj *code, int events)
{
	int helper = w->helper - 1;

	if (helper >= 0 && watched_set(monitoring, helper, code, w->helper_event)) {
		watched_set(monitoring, tool, code, events | w->helper_event);
		watched_set(monitoring, helper, code, 0);
	}
	watched_set(monitoring, tool, code, events);
}

/* --- coming and going --------------------------------------------------------------------------------- */

void watched_open(struct watched *w, int helper, int event)
{
	lock(w);
	w->helper = 1 + helper;
	w->helper_event = event;
	w->open = true;
	unlock(w);
}

/* May the thread add something?  Then it counts among those that do. */
static bool begin(struct watched *w)
{
	bool open;

	lock(w);
	open = w->open;
	w->adding += open;
	unlock(w);
	return open;
}

static void end(struct watched *w)
{
	lock(w);
	w->adding--;
	unlock(w);
}

static bool is_busy(struct watched *w)
{
	bool busy;

	lock(w);
	busy = w->adding;
	unlock(w);
	return busy;
}

void watched_add(struct watched *w, struct pyobj *monitoring, int tool, struct pyobj *code, int events)
{
	struct pyobj *reference = agent.py.PyWeakref_NewRef(code, NULL);

	agent.py.PyErr_Clear();
	if (!reference)
		return;
	if (!begin(w)) {
		agent_release(reference);
		return;
	}
	prune(w);
	if (put(w, reference))
		set_first(w, monitoring, tool, code, events);
	else
		agent_release(reference);
	end(w);
}

void watched_drop(struct watched *w, struct pyobj *monitoring, int tool)
{
	struct watched_list l;

	lock(w);
	w->open = false;
	unlock(w);
	while (is_busy(w)) {
		void *thread = agent.py.PyEval_SaveThread();

		syscall(SYS_sched_yield);
		agent.py.PyEval_RestoreThread(thread);
	}
	l = take(w, false);
	for (unsigned k = 0; k < l.n; k++) {
		struct pyobj *code = referent(l.v[k]);

		if (code && code != agent.py.none)
			watched_set(monitoring, tool, code, 0);
		agent_release(code);
		agent_release(l.v[k]);
	}
	free(l.v);
	agent.py.PyErr_Clear();
}

void watched_forked(struct watched *w)
{
	w->lock = false;
	w->adding = 0;
}

/* SPDX-License-Identifier: MIT */
/* gc-start and gc-done: a function in gc.callbacks. */
#include "agent/agent.h"

#include <errno.h>

#include "agent/code.h"
#include "agent/engine.h"
#include "agent/modules.h"

static struct pyobj *on_gc(struct pyobj *self, struct pyobj *const *args, ssize_t nargs);

static struct capi_method gc_method = { "dtap_gc", on_gc, CAPI_FASTCALL, NULL };

static long count(struct pyobj *info, const char *key)
{
	struct pyobj *value = agent.py.PyDict_GetItemString(info, key);

	return value ? agent.py.PyLong_AsLong(value) : 0;
}

/* (phase, info): "start" or "stop", and a dictionary of counts */
static struct pyobj *on_gc(struct pyobj *self, struct pyobj *const *args, ssize_t nargs)
{
	int saved = errno;

	(void)self;
	if (nargs == 2) {
		bool start = code_text(args[0])[2] == 'a';

		long what = start ? count(args[1], "generation") :
				    count(args[1], "collected") + count(args[1], "uncollectable");
		uint64_t words[ABI_MARKER_ARGS] = { (uint64_t)what };

		if (start && marker_wanted(gc__start))
			marker_gc__start((int)what);
		else if (!start && marker_wanted(gc__done))
			marker_gc__done(what);
		if (start ? engine_wanted(gc__start) : engine_wanted(gc__done))
			engine_fire(start ? ABI_MARKER_gc__start : ABI_MARKER_gc__done, words, 0);
		agent.py.PyErr_Clear();
	}
	errno = saved;
	return agent_none();
}

static bool usable(void)
{
	return true;
}

static unsigned update(unsigned wants)
{
	struct pyobj *gc, *callbacks = NULL;

	if (!!wants == !!agent.gc.callable)
		return wants;
	gc = modules_get("gc");
	if (gc)
		callbacks = agent.py.PyObject_GetAttrString(gc, "callbacks");
	agent.gc.callbacks = callbacks;
	if (callbacks && wants) {
		agent.gc.callable = agent_callable(&gc_method);
		if (agent.gc.callable && agent.py.PyList_Append(callbacks, agent.gc.callable) < 0) {
			agent_release(agent.gc.callable);
			agent.gc.callable = NULL;
		}
	} else if (callbacks) {
		agent_release(agent.py.PyObject_CallMethod(callbacks, "remove", "O", agent.gc.callable));
		agent_release(agent.gc.callable);
		agent.gc.callable = NULL;
	}
	agent_release(callbacks);
	agent_release(gc);
	return agent.gc.callable ? wants : 0;
}

#define KEY "dtap_gc"

void hook_gc_sub(struct pyobj *dict, bool on)
{
	struct pyobj *gc = modules_get("gc"), *callable;
	struct pyobj *callbacks = gc ? agent.py.PyObject_GetAttrString(gc, "callbacks") : NULL;

	/* In 3.9 subinterpreters see the main one's list, and have none for their own collections. */
	if (callbacks == agent.gc.callbacks) {
		;
	} else if (callbacks && on) {
		callable = agent_callable(&gc_method);
		if (callable && !agent.py.PyDict_SetItemString(dict, KEY, callable))
			agent.py.PyList_Append(callbacks, callable);
		agent_release(callable);
	} else if (callbacks) {
		callable = agent.py.PyDict_GetItemString(dict, KEY);
		if (callable)
			agent_release(agent.py.PyObject_CallMethod(callbacks, "remove", "O", callable));
	}
	agent_release(callbacks);
	agent_release(gc);
}

const struct hook hook_gc = { WANT_gc__start | WANT_gc__done, WANT_gc__start | WANT_gc__done, usable, update };

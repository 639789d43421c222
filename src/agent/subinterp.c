/* SPDX-License-Identifier: MIT */
#include "agent/subinterp.h"

#include <errno.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/code.h"
#include "agent/engine.h"
#include "agent/eval.h"

/* The key in the interpreter's dictionary, and what it leads to: an int, made of these. */
#define KEY "dtap"
enum { NOTE_WANTS = (1 << 24) - 1, NOTE_TOOL = 24 };	/* enum want; from bit 24 on: 1 + the tool's id, or 0 */

_Static_assert(ABI_MARKERS <= 24, "NOTE_WANTS");

/* The hooks that serve: sys.monitoring, or the evaluator, and these two. */
static unsigned served(void)
{
	unsigned wants = hook_gc.serves | hook_import.serves;

	if (hook_monitoring.usable())
		return wants | HOOK_MONITORING_SUB;
	return hook_eval.usable() ? wants | hook_eval.serves : wants;
}

static long noted(struct pyobj *dict)
{
	struct pyobj *note = agent.py.PyDict_GetItemString(dict, KEY);

	return note ? agent.py.PyLong_AsLong(note) : 0;
}

static bool note(struct pyobj *dict, long value)
{
	struct pyobj *number = agent.py.PyLong_FromLong(value);
	bool done = number && agent.py.PyDict_SetItemString(dict, KEY, number) == 0;

	agent_release(number);
	return done;
}

/* Its modules can be imported: from when it has __main__ to when it ends. */
static bool is_ready(void)
{
	struct pyobj *modules = agent.py.PySys_GetObject("modules");

	return modules && agent.py.PyDict_GetItemString(modules, "__main__");
}

/* The note is made first: what cannot be noted is not installed. */
static void update(struct pyobj *dict, long was, unsigned wants)
{
	int tool = (int)(was >> NOTE_TOOL) - 1;
	unsigned changed = ((unsigned)was & NOTE_WANTS) ^ wants;

	if (!note(dict, wants | (long)(tool + 1) << NOTE_TOOL))
		return;
	if (changed & HOOK_MONITORING_SUB && hook_monitoring.usable()) {
		hook_monitoring_sub(wants & HOOK_MONITORING_SUB, &tool);
		agent.py.PyErr_Clear();
		note(dict, wants | (long)(tool + 1) << NOTE_TOOL);
	} else if (changed & hook_eval.serves) {
		eval_use_sub(wants & hook_eval.serves);
	}
	agent.py.PyErr_Clear();
	if (changed & hook_gc.serves && !((unsigned)was & hook_gc.serves) != !(wants & hook_gc.serves))
		hook_gc_sub(dict, wants & hook_gc.serves);
	agent.py.PyErr_Clear();
	if (changed & hook_import.serves && !((unsigned)was & hook_import.serves) != !(wants & hook_import.serves))
		hook_import_sub(dict, wants & hook_import.serves);
	agent.py.PyErr_Clear();
}

static void look(struct pyinterp *interp)
{
	struct pyobj *dict = agent.py.PyInterpreterState_GetDict(interp), *type, *value, *traceback;
	unsigned wants = agent_listeners() & served();
	int saved = errno;
	long was;

	if (!dict)
		return;
	agent.py.PyErr_Fetch(&type, &value, &traceback);
	agent_thread.busy = true;
	was = noted(dict);
	if ((was & NOTE_WANTS) != wants && is_ready())
		update(dict, was, wants);
	agent.py.PyErr_Clear();
	agent_thread.busy = false;
	agent.py.PyErr_Restore(type, value, traceback);
	errno = saved;
}

/*
 * The modules whose import tells that subinterpreters will be made.  From 3.14 on _interpreters does not: asyncio imports
 * it.  What makes them by the package concurrent imports _interpqueues as well.
 */
static const struct {
	const char *name;
	int until;		/* 0, or the first minor version of which it does not tell */
} makers[] = { { "_interpreters", 14 }, { "_interpqueues", 0 }, { "_xxsubinterpreters", 0 } };
enum { MAKERS = sizeof(makers) / sizeof(*makers) };

static bool tells(unsigned maker)
{
	return !makers[maker].until || agent.py.minor < makers[maker].until;
}

static bool has_thread(void)
{
	if (agent.py.PyThreadState_GetUnchecked)
		return agent.py.PyThreadState_GetUnchecked();
	return !agent.py._PyThreadState_UncheckedGet || agent.py._PyThreadState_UncheckedGet();
}

static bool is_maker(const char *name)
{
	for (unsigned i = 0; i < MAKERS; i++)
		if (tells(i) && !strcmp(name, makers[i].name))
			return true;
	return false;
}

bool subinterp_event(const char *event, struct pyobj *args)
{
	struct pyinterp *interp, *main = agent.py.PyInterpreterState_Main();

	if (!has_thread())
		return false;
	interp = agent.py.PyInterpreterState_Get();
	if (interp == main) {
		/*
		 * A program of C that has subinterpreters imports nothing, and most versions do not tell here that one is
		 * made: those are met at their first event.
		 */
		if (!strcmp(event, "cpython.PyInterpreterState_New") ||
		    (!strcmp(event, "import") && is_maker(code_text(agent.py.PyTuple_GetItem(args, 0)))))
			engine_expect_subinterpreters();
		return false;
	}
	if (!agent.engine.turns && !engine_meet_subinterpreter())
		return true;
	/* "cpython.": the interpreter is made, or ends. */
	if (agent.phase == AGENT_READY && !agent_thread.busy && strncmp(event, "cpython.", 8) != 0)
		look(interp);
	return true;
}

void subinterp_expect(void)
{
	struct pyobj *modules = agent.py.PySys_GetObject("modules");
	/* The newest comes first. */
	bool expected = agent.py.PyInterpreterState_Head() != agent.py.PyInterpreterState_Main(), possible = false;

	if (!(agent_listeners() & served()))
		return;
	for (unsigned i = 0; modules && i < MAKERS; i++) {
		bool is_there = agent.py.PyDict_GetItemString(modules, makers[i].name);

		expected |= is_there && tells(i);
		possible |= is_there;
	}
	if (expected)
		engine_expect_subinterpreters();
	if (expected || possible)
		agent_audits();
}

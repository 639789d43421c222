/* SPDX-License-Identifier: MIT */
#include "agent/subinterp.h"

#include <errno.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/code.h"
#include "agent/engine.h"
#include "agent/eval.h"
#include "agent/hook_function.h"
#include "agent/modules.h"
#include "agent/object.h"
#include "vm/memory.h"

/* The keys in the interpreter's dictionary, and what they lead to: an int, made of these. */
#define KEY "dtap"
enum { NOTE_WANTS = (1 << 24) - 1, NOTE_TOOL = 24 };	/* enum want; from bit 24 on: 1 + the tool's id, or 0 */

#define FUNCTIONS "dtap functions"
/* struct hook_function_sub; the engine's epoch when that was brought up to date. */
enum { FUNCTIONS_USABLE = 1, FUNCTIONS_ASKED = 2, FUNCTIONS_TOOL = 2, FUNCTIONS_WATCHER = 5, FUNCTIONS_EPOCH = 9, ID = 7, WATCHER = 15 };

_Static_assert(ABI_MARKERS <= 24, "NOTE_WANTS");

/* The hooks that serve: sys.monitoring, or the evaluator, and these two. */
static unsigned served(void)
{
	unsigned wants = hook_gc.serves | hook_import.serves;

	if (hook_monitoring.usable())
		return wants | HOOK_MONITORING_SUB;
	return hook_eval.usable() ? wants | hook_eval.serves : wants;
}

static long noted(struct pyobj *dict, const char *key)
{
	struct pyobj *note = agent.py.PyDict_GetItemString(dict, key);

	return note ? agent.py.PyLong_AsLong(note) : 0;
}

static bool note(struct pyobj *dict, const char *key, long value)
{
	struct pyobj *number = agent.py.PyLong_FromLong(value);
	bool done = number && agent.py.PyDict_SetItemString(dict, key, number) == 0;

	agent_release(number);
	return done;
}

/* Its modules can be imported: from when it has __main__ to when it ends. */
static bool is_ready(void)
{
	struct pyobj *modules = agent.py.PySys_GetObject("modules");

	return modules && agent.py.PyDict_GetItemString(modules, "__main__");
}

/* Not while this thread is importing what the hooks need: at the next event it is looked at again. */
static bool has_modules(void)
{
	struct pyobj *gc = modules_get("gc");

	agent_release(gc);
	return gc;
}

/* The note is made first: what cannot be noted is not installed. */
static void update(struct pyobj *dict, long was, unsigned wants)
{
	int tool = (int)(was >> NOTE_TOOL) - 1;
	unsigned changed = ((unsigned)was & NOTE_WANTS) ^ wants;

	if ((changed & hook_gc.serves && !has_modules()) || !note(dict, KEY, wants | (long)(tool + 1) << NOTE_TOOL))
		return;
	if (changed & HOOK_MONITORING_SUB && hook_monitoring.usable()) {
		hook_monitoring_sub(wants & HOOK_MONITORING_SUB, &tool);
		agent.py.PyErr_Clear();
		note(dict, KEY, wants | (long)(tool + 1) << NOTE_TOOL);
	}
	agent.py.PyErr_Clear();
	if (changed & hook_gc.serves && !((unsigned)was & hook_gc.serves) != !(wants & hook_gc.serves))
		hook_gc_sub(dict, wants & hook_gc.serves);
	agent.py.PyErr_Clear();
	if (changed & hook_import.serves && !((unsigned)was & hook_import.serves) != !(wants & hook_import.serves))
		hook_import_sub(dict, wants & hook_import.serves);
	agent.py.PyErr_Clear();
}

/* Do all interpreters have the main one's (PEP 684, 3.12), and an evaluator for this? */
static bool has_one_gil(void)
{
	return agent.py.minor < 12 && hook_eval.usable();
}

static bool note_functions(struct pyobj *dict, const struct hook_function_sub *sub, unsigned epoch)
{
	return note(dict, FUNCTIONS, (long)epoch << FUNCTIONS_EPOCH | (long)sub->watcher << FUNCTIONS_WATCHER |
		    (long)sub->tool << FUNCTIONS_TOOL | (sub->asked ? FUNCTIONS_ASKED : 0) | (sub->usable ? FUNCTIONS_USABLE : 0));
}

/* Functions by name: other ones with each set of programs. */
static void update_functions(struct pyobj *dict)
{
	unsigned epoch = agent.engine.epoch;		/* which others may change meanwhile, with another GIL */
	long was = noted(dict, FUNCTIONS);
	struct hook_function_sub sub = {
		was & FUNCTIONS_ASKED, was & FUNCTIONS_USABLE, (int)(was >> FUNCTIONS_TOOL) & ID, (int)(was >> FUNCTIONS_WATCHER) & WATCHER,
	};

	if (was >> FUNCTIONS_EPOCH == (long)epoch || (!was && !agent.engine.functions) || !note_functions(dict, &sub, epoch))
		return;
	hook_function_update_sub(&sub);
	agent.py.PyErr_Clear();
	note_functions(dict, &sub, epoch);
}

/* Before 3.12: what the evaluator is needed for in this interpreter; enum eval_use. */
static unsigned evaluates(struct pyobj *dict)
{
	bool named = agent.functions.evaluates && noted(dict, FUNCTIONS) & FUNCTIONS_USABLE;

	return ((unsigned)noted(dict, KEY) & hook_eval.serves ? EVAL_EVENTS : 0) | (named ? EVAL_FUNCTIONS : 0);
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
	was = noted(dict, KEY);
	if (has_one_gil())
		eval_met(evaluates(dict));
	if (is_ready()) {
		if ((was & NOTE_WANTS) != wants)
			update(dict, was, wants);
		update_functions(dict);
		if (has_one_gil())
			eval_use_sub(evaluates(dict));
	}
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

/* False: the system does not support it. */
static bool meet(struct pyinterp *interp, bool is_made)
{
	if (!agent.engine.turns && !engine_meet_subinterpreter())
		return false;
	if (is_made && agent.phase == AGENT_READY && !agent_thread.busy)
		look(interp);
	return true;
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
	/* "cpython.": the interpreter is made, or ends. */
	meet(interp, strncmp(event, "cpython.", 8) != 0);
	return true;
}

void subinterp_meet(void)
{
	if (!meet(agent.py.PyInterpreterState_Get(), true))
		eval_met(0);
}

/* --- those that are there, from 3.12 on ---------------------------------------------------------------- */

/*
 * One that has the main interpreter's GIL, which this thread has, is asked to look by a pending call of its own: it cannot end
 * meanwhile, unless it has begun to.  (From 3.13 on it gives the GIL back before it is gone: PyInterpreterState_Delete() in
 * CPython's Python/pystate.c.)  One with a GIL of its own may end at any time, and is met at its next audit event.
 */
enum { NEAR = 1 << 14, LAST_ID = 4096, MISSED = 64 };

static uint64_t word_at(const void *at)
{
	uint64_t w;

	memcpy(&w, at, sizeof(w));
	return w;
}

/* struct _gil_runtime_state begins with the switch interval, the thread that had it last, and a word that says that it is taken. */
static bool is_taken_gil(const char *gil)
{
	return word_at(gil + 8) == (uint64_t)(uintptr_t)agent.py.PyThreadState_Get() && (uint32_t)word_at(gil + 16) == 1;
}

/* The main interpreter contains its GIL, and has a pointer to it. */
static void measure_gil(void)
{
	const char *main = (const char *)agent.py.PyInterpreterState_Main();
	long found = 0;

	for (long off = 0; off < NEAR; off += 8) {
		uint64_t behind = word_at(main + off) - (uint64_t)(uintptr_t)main;

		if (behind < NEAR && behind % 8 == 0 && is_taken_gil(main + behind))
			found = found ? -1 : off;
	}
	agent.subinterps.gil_off = found > 0 ? found : 0;
	agent.subinterps.measured = true;
}

static bool can_ask(void)
{
	const struct capi *py = &agent.py;

	if (py->minor < 12 || py->free_threaded || !py->_PyInterpreterState_LookUpID || !py->_PyEval_AddPendingCall ||
	    (py->minor > 12 && !py->_Py_IsInterpreterFinalizing))
		return false;
	if (!agent.subinterps.measured)
		measure_gil();
	return agent.subinterps.gil_off;
}

/* It may be gone already if it has a GIL of its own. */
static bool has_main_gil(const struct pyinterp *interp)
{
	uint64_t gil = 0;

	return !memory_read(object_reader(), &gil, sizeof(gil), (uint64_t)(uintptr_t)interp + (uint64_t)agent.subinterps.gil_off) &&
	       gil == word_at((const char *)agent.py.PyInterpreterState_Main() + agent.subinterps.gil_off);
}

/* The entry of @id, or a free one; NULL: there is none. */
static int64_t *asked_entry(int64_t id)
{
	int64_t *ret = NULL;

	for (unsigned i = 0; i < SUBINTERP_ASKED; i++) {
		if (agent.subinterps.asked[i] == id)
			return &agent.subinterps.asked[i];
		if (!ret && !agent.subinterps.asked[i])
			ret = &agent.subinterps.asked[i];
	}
	return ret;
}

/* A pending call, in any thread that runs Python in the interpreter. */
static int look_here(void *unused)
{
	struct pyinterp *interp = agent.py.PyInterpreterState_Get();
	int64_t id = agent.py.PyInterpreterState_GetID(interp), *entry = asked_entry(id);
	int saved = errno;

	(void)unused;
	if (entry && *entry == id)
		*entry = 0;
	meet(interp, true);
	errno = saved;
	return 0;
}

static void ask(struct pyinterp *interp, int64_t id)
{
	int64_t *entry = asked_entry(id);

	if (!entry || *entry == id)
		return;
	*entry = id;
	if (agent.py._PyEval_AddPendingCall(interp, look_here, NULL, 0))
		*entry = 0;
}

static void ask_each(void)
{
	for (int64_t id = 1, missed = 0; id < LAST_ID && missed < MISSED; id++) {
		struct pyinterp *interp = agent.py._PyInterpreterState_LookUpID(id);

		missed = interp ? 0 : missed + 1;
		if (interp && has_main_gil(interp) && !(agent.py._Py_IsInterpreterFinalizing && agent.py._Py_IsInterpreterFinalizing(interp)))
			ask(interp, id);
	}
	agent.py.PyErr_Clear();
}

static void expect_each(void)
{
	struct pyinterp *main = agent.py.PyInterpreterState_Main(), *interp = agent.py.PyInterpreterState_Head();

	for (; interp; interp = agent.py.PyInterpreterState_Next(interp))
		if (interp != main)
			eval_expect_sub(interp);
}

void subinterp_expect(void)
{
	struct pyobj *modules = agent.py.PySys_GetObject("modules");
	/* The newest comes first. */
	bool others = agent.py.PyInterpreterState_Head() != agent.py.PyInterpreterState_Main(), expected = others, possible = false;

	if (others && agent.py.minor < 12 && agent.engine.functions >> ABI_FUNCTION_LINE & 1 && !agent.why[0])
		agent_why("lines of functions by name are seen in the main interpreter alone, and there are others");
	if (!(agent_listeners() & served()) && !agent.engine.functions)
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
	if (others && has_one_gil())
		expect_each();
	else if (others && can_ask())
		ask_each();
}

/* SPDX-License-Identifier: MIT */
#include "agent/threadcode.h"

#include <errno.h>

#include "agent/agent.h"
#include "agent/fire.h"
#include "agent/object.h"
#include "agent/tool.h"
#include "agent/watched.h"

static struct threads_state *const threads = &agent.threads;

static capi_fastcall on_start, on_end;

static struct capi_method start_method = { "dtap_thread_start", on_start, CAPI_FASTCALL, NULL };
static struct capi_method end_method = { "dtap_thread_end", on_end, CAPI_FASTCALL, NULL };

/* --- events ------------------------------------------------------------------------------------------- */

static int first_line(const struct moment *moment)
{
	return agent.py.PyCode_Addr2Line(moment->code, -1);
}

/* Does no other function of Python call the running one? */
static bool has_no_caller(void)
{
	struct pyobj *frame = agent.py.PyEval_GetFrame(), *back = frame ? agent.py.PyFrame_GetBack(frame) : NULL;

	agent_release(back);
	return frame && !back;
}

/* The thread has begun since somebody listens, and this has not been asked in it before. */
static bool is_new_thread(void)
{
	uint64_t id = agent.py.PyThreadState_GetID(agent.py.PyThreadState_Get());

	if (id <= threads->last_covered || id == agent_thread.adopted)
		return false;
	agent_thread.adopted = id;
	return true;
}

/* (code, instruction offset): of first functions, or of all. */
static struct pyobj *on_start(struct pyobj *self, struct pyobj *const *args, ssize_t nargs)
{
	struct moment moment = { .code = args[0], .line = first_line };
	int saved = errno;

	(void)self;
	(void)nargs;
	if (agent_thread.busy || !is_new_thread())
		return agent_none();
	agent_thread.busy = true;
	if (has_no_caller()) {
		agent_thread.first = args[0];
		if (fire_wanted(thread__start))
			fire_thread__start(&moment);
	}
	agent_thread.busy = false;
	errno = saved;
	return agent_none();
}

/*
 * The name of the threading.Thread that runs, a reference to a str, or NULL.  No function of the program's is asked for it: a
 * class may have its own __getattribute__().
 */
static struct pyobj *thread_name(void)
{
	const struct capi *py = &agent.py;
	struct pyobj *key = py->PyUnicode_InternFromString("_name"), *name = NULL;
	struct pyobj *thread = py->PyFrame_GetVarString(py->PyEval_GetFrame(), "self");

	if (key && thread)
		name = py->PyObject_GenericGetAttr(thread, key);
	if (name && !(py->PyType_GetFlags(agent_type(name)) & TYPE_STR)) {
		agent_release(name);
		name = NULL;
	}
	agent_release(thread);
	agent_release(key);
	py->PyErr_Clear();
	return name;
}

static void fire_finish(struct pyobj *code)
{
	struct moment moment = { .code = code, .line = first_line };
	bool has_name = threads_is_bootstrap(code);
	struct pyobj *name = has_name ? thread_name() : NULL;

	fire_thread__finish(&moment, name ? code_text(name) : has_name ? NULL : "");
	agent_release(name);
}

/* (code, instruction offset, value or exception): a first function returns, or an exception leaves any. */
static struct pyobj *on_end(struct pyobj *self, struct pyobj *const *args, ssize_t nargs)
{
	int saved = errno;

	(void)self;
	(void)nargs;
	if (agent_thread.first != args[0] || agent_thread.busy)
		return agent_none();
	agent_thread.busy = true;
	if (has_no_caller()) {
		agent_thread.first = NULL;
		if (fire_wanted(thread__finish))
			fire_finish(args[0]);
	}
	agent_thread.busy = false;
	errno = saved;
	return agent_none();
}

/* --- sys.monitoring ----------------------------------------------------------------------------------- */

static bool take_tool(struct pyobj *monitoring)
{
	enum { TOOL = 5 };	/* the id, if it is free */

	threads->tool = 1 + tool_take(monitoring, TOOL, "dtap threads");
	if (!threads->tool)
		agent_why("threads: other tools have taken all six tool ids of sys.monitoring");
	return threads->tool;
}

/* The number of an event for which @method is called from now on; 0: it cannot be had, or @method is NULL, and nothing is called. */
static int register_event(struct pyobj *monitoring, const char *name, struct capi_method *method)
{
	int bit = tool_event(monitoring, name);

	return bit && tool_call_back(monitoring, threads->tool - 1, bit, method, NULL) && method ? bit : 0;
}

/* Threads have rising numbers: those that exist have lower ones than a new one. */
static bool cover(void)
{
	const struct capi *py = &agent.py;
	struct pythread *thread = py->PyThreadState_New(py->PyInterpreterState_Main());

	if (!thread)
		return false;
	__atomic_store_n(&threads->last_covered, py->PyThreadState_GetID(thread), __ATOMIC_RELAXED);
	py->PyThreadState_Clear(thread);
	py->PyThreadState_Delete(thread);
	return true;
}

static void leave(struct pyobj *monitoring)
{
	if (!threads->tool)
		return;
	threads->uses = 0;
	register_event(monitoring, "PY_START", NULL);
	register_event(monitoring, "PY_RETURN", NULL);
	register_event(monitoring, "PY_UNWIND", NULL);
	tool_enable(monitoring, threads->tool - 1, 0);
	watched_drop(&threads->codes, monitoring, threads->tool - 1);
	tool_free(monitoring, threads->tool - 1);
	threads->tool = 0;
}

static bool can(const struct capi *py)
{
	return py->PyFrame_GetBack && py->PyFrame_GetVarString && py->PyObject_GenericGetAttr && py->PyMethod_Function &&
	       py->PyMethod_Type && py->PyFunction_Type && py->PyType_GetFlags && py->PyThreadState_New &&
	       py->PyThreadState_Clear && py->PyThreadState_Delete;
}

/* Whichever of the two is wanted: the end is that of a thread whose start was seen. */
unsigned threadcode_update(unsigned wants)
{
	struct pyobj *monitoring = tool_monitoring();

	if (!monitoring || !can(&agent.py))
		return 0;
	if (!wants) {
		leave(monitoring);
		return 0;
	}
	if (threads->tool)
		return wants;
	if (!agent_audits() || !take_tool(monitoring))
		return 0;
	threads->local = register_event(monitoring, "PY_START", &start_method) | register_event(monitoring, "PY_RETURN", &end_method);
	threads->global = register_event(monitoring, "PY_UNWIND", &end_method);
	watched_open(&threads->codes, -1, 0);
	if (!cover() || !tool_enable(monitoring, threads->tool - 1, threads->global)) {
		leave(monitoring);
		return 0;
	}
	tool_restart();
	threads->uses = THREADS_MARKER;
	return wants;
}

/* The code of the function of Python that calling @fn calls; NULL: not known. */
static struct pyobj *code_of(struct pyobj *fn)
{
	if (fn && agent_type(fn) == agent.py.PyMethod_Type)
		fn = agent.py.PyMethod_Function(fn);
	return fn && agent_type(fn) == agent.py.PyFunction_Type ? agent.py.PyFunction_GetCode(fn) : NULL;
}

/* Any function may be a thread's first from now on. */
static void watch_all(struct pyobj *monitoring)
{
	int was = __atomic_fetch_or(&threads->global, threads->local, __ATOMIC_RELAXED);

	if ((was & threads->local) != threads->local && tool_enable(monitoring, threads->tool - 1, was | threads->local))
		tool_restart();
}

void threadcode_expect(struct pyobj *args)
{
	struct pyobj *monitoring = tool_monitoring(), *code;
	int tool = threads->tool - 1;

	if (!monitoring || tool < 0)
		return;
	agent_thread.busy = true;
	code = args && agent.py.PyTuple_Size(args) > 0 ? code_of(agent.py.PyTuple_GetItem(args, 0)) : NULL;
	if (!code) {
		agent.py.PyErr_Clear();
		watch_all(monitoring);
	} else if (!watched_has(monitoring, tool, code)) {
		agent.py.Py_IncRef(code);
		watched_add(&threads->codes, monitoring, tool, code, threads->local);
		agent.py.Py_DecRef(code);
	}
	agent_thread.busy = false;
}

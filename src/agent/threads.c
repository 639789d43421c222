/* SPDX-License-Identifier: MIT */
/*
 * New threads.
 *
 * A frame evaluator (PEP 523) sees the first frame of a new thread before it runs, whatever started the thread.  But
 * while one is installed, calls from Python to Python are not inlined and deep recursion uses up the C stack (3.11
 * crashes at 100,000).  So it is installed when a thread is about to be started, and removed when all expected threads
 * have run their first frame.  From 3.12 on, a thread's start is announced by its audit event.  Before 3.12 there is
 * none: the C function of _thread.start_new_thread is replaced in its method definition, which every reference to it
 * shares.  A thread that C code starts and attaches by PyGILState_Ensure is not noticed.  Without a GIL: threadcode.h.
 */
#include "agent/agent.h"

#include <errno.h>
#include <string.h>

#include "agent/attribute.h"
#include "agent/eval.h"
#include "agent/fire.h"
#include "agent/methods.h"
#include "agent/pyframes.h"
#include "agent/threadcode.h"
#include "agent/variable.h"

static int first_line(const struct moment *moment)
{
	return agent.py.PyCode_Addr2Line(moment->code, -1);
}

/* The caller releases it. */
static struct pyobj *code_of(void *frame)
{
	struct pyobj *code;

	if (agent.py.PyUnstable_InterpreterFrame_GetCode)
		return agent.py.PyUnstable_InterpreterFrame_GetCode(frame);
	code = hook_eval_code(frame);
	agent.py.Py_IncRef(code);
	return code;
}

static void fire_start(void *frame)
{
	struct moment moment = { .code = code_of(frame), .line = first_line };

	fire_thread__start(&moment);
	agent.py.Py_DecRef(moment.code);
}

bool threads_is_bootstrap(struct pyobj *code)
{
	return !strcmp(code_name(code), "_bootstrap");
}

/*
 * The threading.Thread that runs in a new thread, whose first function is its _bootstrap(self); or NULL.  The caller
 * releases it.
 */
static struct pyobj *find_thread(struct pythread *thread, void *frame, struct pyobj *code)
{
	struct pyframes_link link;
	uint64_t self = 0;
	unsigned how;

	if (!threads_is_bootstrap(code))
		return NULL;
	how = engine_enter();
	object_forget();
	pyframes_link(thread, frame, &link);
	if (variable_parameter(object_reader(), 0, &self))
		self = 0;
	pyframes_unlink(&link);
	object_forget();
	if (self)
		agent.py.Py_IncRef((struct pyobj *)(uintptr_t)self);
	engine_leave(how);
	return (struct pyobj *)(uintptr_t)self;
}

/* The name of a threading.Thread; NULL: not known.  Valid as long as it has the name. */
static const char *name_of(struct pyobj *thread)
{
	static const char key[] = "_name";
	const char *text = NULL;
	struct attribute_key k;
	struct object o, name;
	uint64_t value = 0;
	unsigned how;

	if (!object_at->type_flags)
		return NULL;
	how = engine_enter();
	object_forget();
	object_lives((uint64_t)(uintptr_t)thread);
	object_open_alive(object_reader(), (uint64_t)(uintptr_t)thread, &o);
	attribute_text_key(&k, key, sizeof(key) - 1);
	if (!attribute_find(&o, &k, &value)) {
		object_open_alive(object_reader(), value, &name);
		text = name.flags & TYPE_STR ? code_text((struct pyobj *)(uintptr_t)value) : NULL;
	}
	object_forget();
	engine_leave(how);
	return text;
}

/* An exception may be set: it has ended the thread. */
static void fire_finish(struct pyobj *code, struct pyobj *thread)
{
	struct moment moment = { .code = code, .line = first_line };
	struct pyobj *type, *value, *traceback;
	bool was_busy = agent_thread.busy;
	int saved = errno;

	agent.py.PyErr_Fetch(&type, &value, &traceback);
	agent_thread.busy = true;
	if (fire_wanted(thread__finish))
		fire_thread__finish(&moment, thread ? name_of(thread) : threads_is_bootstrap(code) ? NULL : "");
	agent_thread.busy = was_busy;
	agent.py.PyErr_Restore(type, value, traceback);
	errno = saved;
}

struct pyobj *threads_run(struct pythread *thread, void *frame, int throwing, capi_evaluator *run)
{
	struct pyobj *code = code_of(frame), *self = find_thread(thread, frame, code);
	struct pyobj *result = run(thread, frame, throwing);

	fire_finish(code, self);
	agent_release(self);
	agent.py.Py_DecRef(code);
	return result;
}

bool threads_seen(struct pythread *thread, void *frame)
{
	uint64_t id = agent.py.PyThreadState_GetID(thread);
	bool first = false;

	if (id > agent.threads.last_covered && id != agent_thread.adopted && !agent_thread.busy) {
		int saved = errno;

		first = true;
		agent_thread.busy = true;
		agent_thread.adopted = id;
		hook_trace_adopt();
		if (agent.threads.uses & THREADS_MARKER && fire_wanted(thread__start))
			fire_start(frame);
		if (!--agent.threads.expected)
			eval_use(EVAL_THREADS, false);
		agent_thread.busy = false;
		errno = saved;
	}
	return first && agent.threads.uses & THREADS_MARKER && fire_wanted(thread__finish);
}

void threads_expect(struct pyobj *args)
{
	if (agent.py.PyInterpreterState_Get() != agent.py.PyInterpreterState_Main())
		return;
	if (agent.py.free_threaded) {
		threadcode_expect(args);
		return;
	}
	agent.threads.expected++;
	eval_use(EVAL_THREADS, true);
}

/* Before 3.12; the starters are replaced together, and have the same former function. */
static struct pyobj *announce(struct pyobj *self, struct pyobj *args)
{
	if (threads_watched())
		threads_expect(NULL);
	return agent.threads.starters[0].former(self, args);
}

static void replace_starters(bool on)
{
	static const char *const names[] = { "start_new_thread", "start_new" };

	for (unsigned i = 0; i < 2; i++) {
		struct method_replaced *starter = &agent.threads.starters[i];

		if (!starter->def)
			starter->def = methods_find("_thread", names[i]);
		methods_replace(starter, announce, on);
	}
}

/* Note that all existing threads are older than the watch. */
static void cover(void)
{
	const struct capi *py = &agent.py;
	struct pythread *thread = py->PyInterpreterState_ThreadHead(py->PyInterpreterState_Main());

	for (; thread; thread = py->PyThreadState_Next(thread)) {
		uint64_t id = py->PyThreadState_GetID(thread);

		if (id > agent.threads.last_covered)
			agent.threads.last_covered = id;
	}
}

bool threads_watched(void)
{
	return agent.threads.uses;
}

/* Not covered: a thread that was made since the watch began.  Its first frame may still be to come. */
void threads_watch(enum threads_use use, bool on)
{
	bool watched = agent.threads.uses;

	agent.threads.uses = on ? agent.threads.uses | use : agent.threads.uses & ~use;
	if (!agent.threads.uses) {
		agent.threads.expected = 0;
		eval_use(EVAL_THREADS, false);
	}
	if (agent.py.minor < 12)
		replace_starters(agent.threads.uses);
	else if (on)
		agent_audits();
	if (!watched)
		cover();
}

static bool usable(void)
{
	if (agent.py.free_threaded)
		return hook_monitoring.usable();
	return agent.py.PyUnstable_InterpreterFrame_GetCode || hook_eval.usable();
}

static unsigned update(unsigned wants)
{
	if (agent.py.free_threaded)
		return threadcode_update(wants);
	if (wants & WANT_thread__finish) {
		object_measure();	/* for the name */
		pyframes_measure();
	}
	threads_watch(THREADS_MARKER, wants);
	return wants;
}

const struct hook hook_thread = { WANT_thread__start | WANT_thread__finish, WANT_thread__start | WANT_thread__finish, usable, update };

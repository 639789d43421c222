/* SPDX-License-Identifier: MIT */
/*
 * Threads to come.
 *
 * A frame evaluator (PEP 523) sees the first frame of a new thread before it runs, whatever started the thread.
 * But while one is installed, calls from Python to Python are not inlined and deep recursion uses up the C stack
 * (3.11 crashes at 100,000).  So it is installed when a thread is about to be started, and goes as soon as all
 * expected threads have shown themselves.  What announces a thread is the audit event of its start, from 3.12 on.
 * Before there is none: the C function behind _thread.start_new_thread is replaced in its method definition, which
 * every reference to it shares.  A thread that C code starts and attaches by PyGILState_Ensure announces itself to
 * nobody and is not seen.
 */
#include "agent/agent.h"

#include <errno.h>
#include <string.h>

#include "agent/eval.h"
#include "agent/fire.h"
#include "agent/methods.h"

static unsigned uses;			/* of enum threads_use */
static unsigned expected;		/* threads announced and not seen yet */
static uint64_t last_covered;		/* id of the youngest thread that had the hooks set for it */
static __thread uint64_t adopted;	/* id of the thread state that was adopted in this thread */

static int first_line(const struct moment *moment)
{
	return agent.py.PyCode_Addr2Line(moment->code, -1);
}

static void fire_start(void *frame)
{
	struct pyobj *code = agent.py.PyUnstable_InterpreterFrame_GetCode
				     ? agent.py.PyUnstable_InterpreterFrame_GetCode(frame)
				     : hook_eval_code(frame);
	struct moment moment = { .code = code, .line = first_line };

	fire_thread__start(&moment);
	if (agent.py.PyUnstable_InterpreterFrame_GetCode)
		agent.py.Py_DecRef(code);
}

void threads_seen(struct pythread *thread, void *frame)
{
	uint64_t id = agent.py.PyThreadState_GetID(thread);

	if (id > last_covered && id != adopted && !agent_busy) {
		int saved = errno;

		agent_busy = true;
		adopted = id;
		hook_trace_adopt();
		if (uses & THREADS_MARKER && fire_wanted(thread__start))
			fire_start(frame);
		if (!--expected)
			eval_use(EVAL_THREADS, false);
		agent_busy = false;
		errno = saved;
	}
}

void threads_expect(void)
{
	if (agent.py.PyInterpreterState_Get() != agent.py.PyInterpreterState_Main())
		return;
	expected++;
	eval_use(EVAL_THREADS, true);
}

/* Before 3.12: the definitions of start_new_thread and its old name start_new, and the function of both. */
static struct capi_method *starters[2];
static capi_varargs *start_thread;

static struct pyobj *announce(struct pyobj *self, struct pyobj *args)
{
	threads_expect();
	return start_thread(self, args);
}

static void find_starters(void)
{
	static const char *const names[] = { "start_new_thread", "start_new" };

	for (unsigned i = 0; i < 2; i++)
		starters[i] = methods_find("_thread", names[i]);
}

static void replace_starters(bool on)
{
	if (!start_thread)
		find_starters();
	if (!start_thread && starters[0])
		start_thread = (capi_varargs *)(void *)starters[0]->fn;
	for (unsigned i = 0; start_thread && i < 2; i++)
		if (starters[i])
			starters[i]->fn = (capi_fastcall *)(void *)(on ? announce : start_thread);
}

/* All present threads are taken care of. */
static void cover(void)
{
	const struct capi *py = &agent.py;
	struct pythread *thread = py->PyInterpreterState_ThreadHead(py->PyInterpreterState_Main());

	for (; thread; thread = py->PyThreadState_Next(thread)) {
		uint64_t id = py->PyThreadState_GetID(thread);

		if (id > last_covered)
			last_covered = id;
	}
}

bool threads_watched(void)
{
	return uses;
}

void threads_watch(enum threads_use use, bool on)
{
	uses = on ? uses | use : uses & ~use;
	if (!uses) {
		expected = 0;
		eval_use(EVAL_THREADS, false);
	}
	if (agent.py.minor < 12)
		replace_starters(uses);
	else if (on)
		agent_audits();
	cover();
}

static bool usable(void)
{
	return agent.py.PyUnstable_InterpreterFrame_GetCode || hook_eval.usable();
}

static unsigned update(unsigned wants)
{
	threads_watch(THREADS_MARKER, wants);
	return wants;
}

const struct hook hook_thread = { WANT_thread__start, usable, update };

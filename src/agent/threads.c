/* SPDX-License-Identifier: MIT */
/*
 * Threads to come.
 *
 * A frame evaluator (PEP 523) sees the first frame of a new thread before it runs, whatever started the thread.  But
 * while one is installed, calls from Python to Python are not inlined and deep recursion uses up the C stack (3.11
 * crashes at 100,000).  So it is installed when a thread is about to be started, and goes as soon as all
 * expected threads have shown themselves.  What announces a thread is the audit event of its start, from 3.12 on.
 * Before there is none: the C function behind _thread.start_new_thread is replaced in its method definition, which
 * every reference to it shares.  A thread that C code starts and attaches by PyGILState_Ensure
 * announces itself to nobody and is not seen.
 */
#include "agent/agent.h"

#include <errno.h>
#include <string.h>

#include "agent/eval.h"
#include "agent/methods.h"

static unsigned expected;		/* threads announced and not seen yet */
static uint64_t last_covered;		/* id of the youngest thread that had the hooks set for it */
static __thread uint64_t adopted;	/* id of the thread state that was adopted in this thread */

void threads_seen(struct pythread *thread)
{
	uint64_t id = agent.py.PyThreadState_GetID(thread);

	if (id > last_covered && id != adopted && !agent_busy) {
		int saved = errno;

		agent_busy = true;
		adopted = id;
		hook_trace_adopt();
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

void threads_watch(bool on)
{
	if (!on) {
		expected = 0;
		eval_use(EVAL_THREADS, false);
	}
	if (agent.py.minor >= 12)
		return;
	if (!start_thread)
		find_starters();
	if (!start_thread && starters[0])
		start_thread = (capi_varargs *)(void *)starters[0]->fn;
	for (unsigned i = 0; start_thread && i < 2; i++)
		if (starters[i])
			starters[i]->fn = (capi_fastcall *)(void *)(on ? announce : start_thread);
}

void threads_covered(void)
{
	const struct capi *py = &agent.py;
	struct pythread *thread = py->PyInterpreterState_ThreadHead(py->PyInterpreterState_Main());

	for (; thread; thread = py->PyThreadState_Next(thread)) {
		uint64_t id = py->PyThreadState_GetID(thread);

		if (id > last_covered)
			last_covered = id;
	}
}

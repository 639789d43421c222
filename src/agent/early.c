/* SPDX-License-Identifier: MIT */
#include "agent/early.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/engine.h"

static struct {
	struct capi_allocator from;	/* the entry's */
	struct capi_allocator now;	/* the one at the end */
	void *entry;			/* the last block that was allocated when the hook was added */
} early;

/* --- the hook's entry ----------------------------------------------------------------------------------- */

static void *noting_malloc(void *ctx, size_t size)
{
	early.entry = early.from.malloc(ctx, size);
	return early.entry;
}

bool early_add_hook(capi_audithook *hook)
{
	const struct capi *py = &agent.py;
	struct capi_allocator noting;
	bool added;

	early.now.free = NULL;
	if (!py->PyMem_GetAllocator || !py->PyMem_SetAllocator)
		return py->PySys_AddAuditHook(hook, NULL) == 0;
	py->PyMem_GetAllocator(CAPI_DOMAIN_RAW, &early.from);
	noting = early.from;
	noting.malloc = noting_malloc;
	py->PyMem_SetAllocator(CAPI_DOMAIN_RAW, &noting);
	added = py->PySys_AddAuditHook(hook, NULL) == 0;
	py->PyMem_SetAllocator(CAPI_DOMAIN_RAW, &early.from);
	if (!added)
		early.entry = NULL;
	return added;
}

/* Release the entry by its own allocator, and others as before; all but this function is as it was set. */
static void release(void *ctx, void *at)
{
	struct capi_allocator top;

	if (!at || at != early.entry) {
		early.now.free(ctx, at);
		return;
	}
	early.entry = NULL;
	early.from.free(early.from.ctx, at);
	agent.py.PyMem_GetAllocator(CAPI_DOMAIN_RAW, &top);
	if (top.free == release)
		agent.py.PyMem_SetAllocator(CAPI_DOMAIN_RAW, &early.now);
}

void early_event(const char *event)
{
	struct capi_allocator ours;

	if (!early.entry || early.now.free || strcmp(event, "cpython._PySys_ClearAuditHooks"))
		return;
	agent.py.PyMem_GetAllocator(CAPI_DOMAIN_RAW, &early.now);
	if (early.now.free == early.from.free && early.now.ctx == early.from.ctx)
		return;
	ours = early.now;
	ours.free = release;
	agent.py.PyMem_SetAllocator(CAPI_DOMAIN_RAW, &ours);
}

/* --- the first calls ------------------------------------------------------------------------------------ */

enum { NOTES_MOST = 1 << 17 };	/* a program that embeds Python may make many before the agent is set up */

struct note {
	struct pyobj *code;		/* held */
	uint64_t time_ns;
	int line;
	bool is_return;
};

static struct {
	enum { CALLS_NONE, CALLS_NOTED, CALLS_STOPPED } state;
	capi_evaluator *next;
	struct note *notes;
	uint32_t n, room;
	uint64_t lost;
	int pid;		/* in which they were made */
} calls;

static void note(void *frame, bool is_return)
{
	struct timespec now = { 0 };
	int saved = errno;

	if (calls.n == calls.room) {
		uint32_t room = calls.room ? 2 * calls.room : 1024;
		struct note *more = room <= NOTES_MOST ? realloc(calls.notes, room * sizeof(*more)) : NULL;

		if (!more) {
			calls.lost++;
			errno = saved;
			return;
		}
		calls.notes = more;
		calls.room = room;
	}
	clock_gettime(CLOCK_MONOTONIC, &now);
	calls.notes[calls.n++] = (struct note){
		.code = agent.py.PyFrame_GetCode(frame),
		.time_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec,
		.line = agent.py.PyFrame_GetLineNumber(frame), .is_return = is_return,
	};
	errno = saved;
}

static struct pyobj *evaluate(struct pythread *thread, void *frame, int throwing)
{
	struct pyobj *result;

	if (calls.state != CALLS_NOTED || agent_thread.busy)
		return calls.next(thread, frame, throwing);
	note(frame, false);
	result = calls.next(thread, frame, throwing);
	if (calls.state == CALLS_NOTED)
		note(frame, true);
	return result;
}

void early_watch(void)
{
	struct pyinterp *interp;

	if (calls.state != CALLS_NONE || agent.py.minor > 10 || agent.py.Py_IsInitialized())
		return;
	interp = agent.py.PyInterpreterState_Main();
	if (interp)
		calls.next = agent.py._PyInterpreterState_GetEvalFrameFunc(interp);
	if (!calls.next)
		return;
	agent.py._PyInterpreterState_SetEvalFrameFunc(interp, evaluate);
	calls.pid = getpid();
	calls.state = CALLS_NOTED;
}

/* If another evaluator has been installed on top of ours, it stays in the chain and passes calls on. */
void early_stop(void)
{
	struct pyinterp *interp = agent.py.PyInterpreterState_Main();

	if (calls.state == CALLS_NOTED && agent.py._PyInterpreterState_GetEvalFrameFunc(interp) == evaluate)
		agent.py._PyInterpreterState_SetEvalFrameFunc(interp, calls.next);
	if (calls.state == CALLS_NOTED)
		calls.state = CALLS_STOPPED;
}

void early_forget(void)
{
	uint32_t n = calls.n;

	calls.n = 0;
	for (uint32_t k = 0; k < n; k++)
		agent_release(calls.notes[k].code);
	free(calls.notes);
	calls.notes = NULL;
	calls.room = 0;
	calls.lost = 0;
}

void early_replay(void)
{
	if (calls.state != CALLS_STOPPED)
		return;
	/* A child of fork has its parent's notes. */
	for (uint32_t k = 0; k < calls.n && calls.pid == getpid(); k++)
		engine_replay(calls.notes[k].is_return ? ABI_MARKER_function__return : ABI_MARKER_function__entry,
			      calls.notes[k].code, calls.notes[k].line, calls.notes[k].time_ns);
	if (calls.lost && calls.pid == getpid())
		engine_lost(calls.lost);
	early_forget();
}

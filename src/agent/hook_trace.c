/* SPDX-License-Identifier: MIT */
/*
 * C profile and trace functions.
 *
 * The trace function serves line in every version, because "line" means sys.settrace's line events, which
 * sys.monitoring's LINE is not.  The profile function serves function-entry and function-return before 3.12.  Both
 * belong to a thread: present threads get them here, new ones by threads.c.  They take the place of a debugger's or
 * profiler's own, and a program that sets its own takes theirs.
 */
#include "agent/agent.h"

#include <errno.h>

#include "agent/code.h"
#include "agent/engine.h"

static unsigned profiling, tracing;

static void fire(struct pyobj *frame, bool wanted, enum want_index index,
		 void (*marker)(const char *, const char *, int))
{
	int saved = errno, line = 0;
	struct pyobj *code;

	if (agent_busy)
		return;
	code = agent.py.PyFrame_GetCode(frame);
	if (wanted || engine_reads_line(index))
		line = agent.py.PyFrame_GetLineNumber(frame);
	if (wanted)
		marker(code_file(code), code_name(code), line);
	if (engine_markers & 1u << index)
		engine_fire_code(index, code, line);
	agent.py.Py_DecRef(code);	/* the frame holds another */
	errno = saved;
}

static int on_profile(struct pyobj *arg, struct pyobj *frame, int what, struct pyobj *value)
{
	(void)arg;
	(void)value;
	if (what == CAPI_TRACE_CALL && (marker_wanted(function__entry) || engine_wanted(function__entry)))
		fire(frame, marker_wanted(function__entry), WANT_INDEX_function__entry, marker_function__entry);
	else if (what == CAPI_TRACE_RETURN && (marker_wanted(function__return) || engine_wanted(function__return)))
		fire(frame, marker_wanted(function__return), WANT_INDEX_function__return, marker_function__return);
	return 0;
}

static int on_trace(struct pyobj *arg, struct pyobj *frame, int what, struct pyobj *value)
{
	(void)arg;
	(void)value;
	if (what == CAPI_TRACE_LINE)
		fire(frame, marker_wanted(line), WANT_INDEX_line, marker_line);
	return 0;
}

static void each_thread(int (*set)(struct pythread *, capi_tracefunc *, struct pyobj *), capi_tracefunc *fn)
{
	const struct capi *py = &agent.py;
	struct pythread *thread = py->PyInterpreterState_ThreadHead(py->PyInterpreterState_Main());

	for (; thread; thread = py->PyThreadState_Next(thread))
		set(thread, fn, NULL);
}

bool hook_trace_per_thread(void)
{
	return profiling | tracing;
}

static bool profile_usable(void)
{
	return agent.py.minor < 12;
}

static unsigned profile_update(unsigned wants)
{
	if (!!wants != !!profiling)
		each_thread(agent.py._PyEval_SetProfile, wants ? on_profile : NULL);
	profiling = wants;
	threads_watch(hook_trace_per_thread());
	threads_covered();
	return wants;
}

static bool trace_usable(void)
{
	return true;
}

static unsigned trace_update(unsigned wants)
{
	capi_tracefunc *fn = wants ? on_trace : NULL;

	if (agent.py.PyEval_SetTraceAllThreads)
		agent.py.PyEval_SetTraceAllThreads(fn, NULL);
	else
		each_thread(agent.py._PyEval_SetTrace, fn);
	tracing = wants;
	if (wants && agent.py.minor >= 12)
		agent_audits();
	threads_watch(hook_trace_per_thread());
	threads_covered();
	return wants;
}

void hook_trace_adopt(void)
{
	if (profiling)
		agent.py.PyEval_SetProfile(on_profile, NULL);
	if (tracing)
		agent.py.PyEval_SetTrace(on_trace, NULL);
}

const struct hook hook_profile = { WANT_function__entry | WANT_function__return, profile_usable, profile_update };
const struct hook hook_trace = { WANT_line, trace_usable, trace_update };

/* SPDX-License-Identifier: MIT */
/*
 * C profile and trace functions.
 *
 * The trace function serves line in every version, because "line" means sys.settrace's line events, which
 * sys.monitoring's LINE is not.  The profile function serves function-entry and function-return before 3.12.  Both
 * belong to a thread: present threads get them by slot.c, which shares the place with the program's own, new ones by
 * threads.c.
 */
#include "agent/agent.h"
<<<<<<< HEAD
#include "agent/fire.h"
#include "agent/slot.h"

static unsigned profiling, tracing;

static int line_of_frame(const struct moment *moment)
{
	return agent.py.PyFrame_GetLineNumber((struct pyobj *)moment->where);
}

static void fire_frame(struct pyobj *frame, fire *to)
{
	struct moment moment = { .line = line_of_frame, .where = frame };

	if (agent_busy)
		return;
	moment.code = agent.py.PyFrame_GetCode(frame);
	to(&moment);
	agent.py.Py_DecRef(moment.code);	/* the frame holds another */
=======

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
>>>>>>> main
}

static int on_profile(struct pyobj *arg, struct pyobj *frame, int what, struct pyobj *value)
{
<<<<<<< HEAD
	if (what == CAPI_TRACE_CALL && marker_wanted(function__entry))
		fire_frame(frame, fire_function__entry);
	else if (what == CAPI_TRACE_RETURN && marker_wanted(function__return))
		fire_frame(frame, fire_function__return);
	return slot_pass(SLOT_PROFILE, arg, frame, what, value);
=======
	(void)arg;
	(void)value;
	if (what == CAPI_TRACE_CALL && (marker_wanted(function__entry) || engine_wanted(function__entry)))
		fire(frame, marker_wanted(function__entry), WANT_INDEX_function__entry, marker_function__entry);
	else if (what == CAPI_TRACE_RETURN && (marker_wanted(function__return) || engine_wanted(function__return)))
		fire(frame, marker_wanted(function__return), WANT_INDEX_function__return, marker_function__return);
	return 0;
>>>>>>> main
}

static int on_trace(struct pyobj *arg, struct pyobj *frame, int what, struct pyobj *value)
{
<<<<<<< HEAD
	if (what == CAPI_TRACE_LINE && marker_wanted(line))
		fire_frame(frame, fire_line);
	return slot_pass(SLOT_TRACE, arg, frame, what, value);
=======
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
>>>>>>> main
}

bool hook_trace_per_thread(void)
{
	return profiling | tracing;
}

static bool profile_usable(void)
{
	return agent.py.minor < 12;
}

bool hook_profile_prepare(void)
{
	return slot_measure(SLOT_PROFILE, on_profile);
}

static unsigned profile_update(unsigned wants)
{
	if (!wants)
		slot_remove(SLOT_PROFILE);
	else if (!slot_install(SLOT_PROFILE, on_profile))
		wants = 0;
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
	/* New threads, and C code that takes a slot, announce themselves by audit events. */
	if (wants)
		agent_audits();
	if (!wants)
		slot_remove(SLOT_TRACE);
	else if (!slot_install(SLOT_TRACE, on_trace))
		wants = 0;
	tracing = wants;
	threads_watch(hook_trace_per_thread());
	threads_covered();
	return wants;
}

void hook_trace_adopt(void)
{
	slot_adopt(SLOT_PROFILE);
	slot_adopt(SLOT_TRACE);
}

void hook_trace_again(void)
{
	if (profiling)
		slot_install(SLOT_PROFILE, on_profile);
	if (tracing)
		slot_install(SLOT_TRACE, on_trace);
}

const struct hook hook_profile = { WANT_function__entry | WANT_function__return, profile_usable, profile_update };
const struct hook hook_trace = { WANT_line, trace_usable, trace_update };

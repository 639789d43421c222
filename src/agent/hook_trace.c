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
}

static int on_profile(struct pyobj *arg, struct pyobj *frame, int what, struct pyobj *value)
{
	if (what == CAPI_TRACE_CALL && fire_wanted(function__entry))
		fire_frame(frame, fire_function__entry);
	else if (what == CAPI_TRACE_RETURN && fire_wanted(function__return))
		fire_frame(frame, fire_function__return);
	return slot_pass(SLOT_PROFILE, arg, frame, what, value);
}

static int on_trace(struct pyobj *arg, struct pyobj *frame, int what, struct pyobj *value)
{
	if (what == CAPI_TRACE_LINE && fire_wanted(line))
		fire_frame(frame, fire_line);
	return slot_pass(SLOT_TRACE, arg, frame, what, value);
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

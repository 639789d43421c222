/* SPDX-License-Identifier: MIT */
/*
 * C profile and trace functions.
 *
 * The trace function serves line in every version, because "line" means sys.settrace's line events, which
 * sys.monitoring's LINE is not, and exceptions before 3.12.  The profile function serves calls of C functions
 * before 3.12, and of Python functions where the frame evaluator cannot.  Both belong to a thread: present threads
 * get them by slot.c, which shares the place with the program's own, new ones by threads.c.
 */
#include "agent/agent.h"
#include "agent/fire.h"
#include "agent/slot.h"

/* Markers that the functions supply.  The profile function has two employers: the table of hooks and hook_eval. */
static unsigned profiling, asked, handed, tracing;

static int line_of_frame(const struct moment *moment)
{
	return agent.py.PyFrame_GetLineNumber((struct pyobj *)moment->where);
}

/* The moment of a frame object; its code is the caller's to release. */
static struct moment moment_of(struct pyobj *frame)
{
	return (struct moment){ agent.py.PyFrame_GetCode(frame), line_of_frame, frame };
}

static void fire_frame(struct pyobj *frame, fire *to)
{
	struct moment moment;

	if (agent_busy)
		return;
	moment = moment_of(frame);
	to(&moment);
	agent.py.Py_DecRef(moment.code);	/* the frame holds another */
}

static void fire_c(struct pyobj *frame, struct pyobj *callable, bool entry)
{
	struct moment moment;

	if (agent_busy || !callable || !(profiling & (entry ? WANT_cfunction__entry : WANT_cfunction__return)))
		return;
	moment = moment_of(frame);
	fire_cfunction(&moment, callable, entry);
	agent.py.Py_DecRef(moment.code);
}

static int on_profile(struct pyobj *arg, struct pyobj *frame, int what, struct pyobj *value)
{
	if (what == CAPI_TRACE_CALL && profiling & WANT_function__entry)
		fire_frame(frame, fire_function__entry);
	else if (what == CAPI_TRACE_RETURN && profiling & WANT_function__return)
		fire_frame(frame, fire_function__return);
	else if (what >= CAPI_TRACE_C_CALL)
		fire_c(frame, value, what == CAPI_TRACE_C_CALL);
	return slot_pass(SLOT_PROFILE, arg, frame, what, value);
}

/* @value of an exception: a tuple of type, value, traceback; the value can still be its arguments. */
static void fire_raise(struct pyobj *frame, struct pyobj *value)
{
	struct pyobj *type = agent.py.PyTuple_GetItem(value, 0);
	struct moment moment;

	if (agent_busy || !type)
		return;
	moment = moment_of(frame);
	fire_exception(&moment, type);
	agent.py.Py_DecRef(moment.code);
}

static int on_trace(struct pyobj *arg, struct pyobj *frame, int what, struct pyobj *value)
{
	if (what == CAPI_TRACE_LINE && fire_wanted(line))
		fire_frame(frame, fire_line);
	else if (what == CAPI_TRACE_EXCEPTION && tracing & WANT_exception__raise)
		fire_raise(frame, value);
	return slot_pass(SLOT_TRACE, arg, frame, what, value);
}

static bool profile_usable(void)
{
	return agent.py.minor < 12;
}

bool hook_profile_prepare(void)
{
	return slot_measure(SLOT_PROFILE, on_profile);
}

static void profile_apply(void)
{
	unsigned wants = asked | handed;

	if (!wants)
		slot_remove(SLOT_PROFILE);
	else if (!slot_install(SLOT_PROFILE, on_profile))
		wants = 0;
	profiling = wants;
	threads_watch(THREADS_PROFILE, wants);
}

static unsigned profile_update(unsigned wants)
{
	asked = wants;
	profile_apply();
	return asked & profiling;
}

unsigned hook_profile_take_over(unsigned wants)
{
	handed = wants;
	profile_apply();
	return handed & profiling;
}

static bool trace_usable(void)
{
	return true;
}

static unsigned trace_update(unsigned wants)
{
	/* C code that takes a slot announces itself by an audit event. */
	if (wants)
		agent_audits();
	if (!wants)
		slot_remove(SLOT_TRACE);
	else if (!slot_install(SLOT_TRACE, on_trace))
		wants = 0;
	tracing = wants;
	threads_watch(THREADS_TRACE, wants);
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

const struct hook hook_profile = {
	WANT_function__entry | WANT_function__return | WANT_cfunction__entry | WANT_cfunction__return,
	profile_usable, profile_update
};
const struct hook hook_trace = { WANT_line | WANT_exception__raise, trace_usable, trace_update };

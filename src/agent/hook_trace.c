/* SPDX-License-Identifier: MIT */
/*
 * C profile and trace functions.
 *
 * The trace function supplies the marker line in every version, because that is defined by sys.settrace's line events,
 * from which sys.monitoring's LINE differs; and exceptions before 3.12 (those that are caught: caught.h).  The profile
 * function supplies calls of C functions before 3.12, and of Python functions where the frame evaluator cannot.  Both
 * belong to a thread: existing threads get them by slot.c, which shares the slot with the program's own function, new
 * ones by threads.c.
 */
#include "agent/agent.h"
#include "agent/caught.h"
#include "agent/fire.h"
#include "agent/hook_function.h"
#include "agent/slot.h"

int hook_trace_line(const struct moment *moment)
{
	return agent.py.PyFrame_GetLineNumber((struct pyobj *)moment->where);
}

/* The moment of a frame object; the caller releases its code. */
static struct moment moment_of(struct pyobj *frame)
{
	return (struct moment){ .code = agent.py.PyFrame_GetCode(frame), .line = hook_trace_line, .where = frame };
}

static void fire_frame(struct pyobj *frame, struct pyobj *result, fire *to)
{
	struct moment moment;

	if (agent_thread.busy)
		return;
	moment = moment_of(frame);
	moment.result = result;
	to(&moment);
	agent.py.Py_DecRef(moment.code);	/* the frame has a reference, too */
}

static void fire_c(struct pyobj *frame, struct pyobj *callable, bool entry)
{
	struct moment moment;

	if (agent_thread.busy || !callable || !(agent.trace.profiling & (entry ? WANT_cfunction__entry : WANT_cfunction__return)))
		return;
	moment = moment_of(frame);
	fire_cfunction(&moment, callable, NULL, entry);
	agent.py.Py_DecRef(moment.code);
}

/* Functions by name; @frame's code is alive. */
static void fire_named(struct pyobj *frame, int what, struct pyobj *value)
{
	if (!agent_thread.busy)
		hook_function_traced(frame, what, value);
}

SLOT_FUNCTION(hook_profile_function, slot_below_profile);

int hook_profile_function_event(struct pyobj *arg, struct pyobj *frame, int what, struct pyobj *value)
{
	if (what == CAPI_TRACE_CALL && agent.trace.profiling & WANT_function__entry)
		fire_frame(frame, NULL, fire_function__entry);
	else if (what == CAPI_TRACE_RETURN && agent.trace.profiling & WANT_function__return)
		fire_frame(frame, value, fire_function__return);
	else if (what >= CAPI_TRACE_C_CALL)
		fire_c(frame, value, what == CAPI_TRACE_C_CALL);
	if (agent.trace.profiling & HOOK_FUNCTION_CALLS && (what == CAPI_TRACE_CALL || what == CAPI_TRACE_RETURN))
		fire_named(frame, what, value);
	return slot_pass(SLOT_PROFILE, arg, frame, what, value);
}

/* The exception in a tuple of type, value, traceback; NULL: the value is still the arguments for creating it. */
static struct pyobj *exception_in(struct pyobj *tuple)
{
	enum { EXCEPTION = 1 << 30 };	/* Py_TPFLAGS_BASE_EXC_SUBCLASS */
	struct pyobj *value = agent.py.PyTuple_GetItem(tuple, 1);

	return value && agent.py.PyType_GetFlags && agent.py.PyType_GetFlags(agent_type(value)) & EXCEPTION ? value : NULL;
}

/* @value: a tuple of type, value, traceback. */
static void fire_raise(struct pyobj *frame, struct pyobj *value)
{
	struct pyobj *type = agent.py.PyTuple_GetItem(value, 0);
	struct moment moment;

	if (agent_thread.busy || !type)
		return;
	moment = moment_of(frame);
	moment.exception = exception_in(value);
	agent_thread.traceback = agent.py.PyTuple_GetItem(value, 2);
	fire_exception(&moment, type, false);
	agent_thread.traceback = NULL;
	agent.py.Py_DecRef(moment.code);
}

SLOT_FUNCTION(hook_trace_function, slot_below_trace);

int hook_trace_function_event(struct pyobj *arg, struct pyobj *frame, int what, struct pyobj *value)
{
	if (what == CAPI_TRACE_LINE && fire_wanted(line))
		fire_frame(frame, NULL, fire_line);
	else if (what == CAPI_TRACE_EXCEPTION && agent.trace.tracing & WANT_exception__raise)
		fire_raise(frame, value);
	/* Another agent may want what this one has asked for; where the program has a function, that must not see it. */
	if ((agent.trace.tracing & WANT_exception__caught || agent.caught.frames.n) && caught_traced(frame, what) &&
	    slot_is_programs(SLOT_TRACE))
		return 0;
	if (agent.trace.tracing & HOOK_FUNCTION_LINES && what == CAPI_TRACE_LINE)
		fire_named(frame, what, value);
	return slot_pass(SLOT_TRACE, arg, frame, what, value);
}

static bool profile_usable(void)
{
	return agent.py.minor < 12;
}

bool hook_profile_prepare(void)
{
	return slot_measure(SLOT_PROFILE, hook_profile_function);
}

static void profile_apply(void)
{
	unsigned wants = agent.trace.asked | agent.trace.handed | (agent.trace.functions & HOOK_FUNCTION_CALLS);

	if (!wants)
		slot_remove(SLOT_PROFILE);
	else if (!slot_install(SLOT_PROFILE, hook_profile_function))
		wants = 0;
	agent.trace.profiling = wants;
	threads_watch(THREADS_PROFILE, wants);
}

static unsigned profile_update(unsigned wants)
{
	agent.trace.asked = wants;
	profile_apply();
	return agent.trace.asked & agent.trace.profiling;
}

unsigned hook_profile_take_over(unsigned wants)
{
	agent.trace.handed = wants;
	profile_apply();
	return agent.trace.handed & agent.trace.profiling;
}

static bool trace_usable(void)
{
	return true;
}

static void trace_apply(void)
{
	unsigned wants = agent.trace.lines | (agent.trace.functions & HOOK_FUNCTION_LINES);

	/* C code that sets a trace function raises an audit event. */
	if (wants)
		agent_audits();
	if (!wants)
		slot_remove(SLOT_TRACE);
	else if (!slot_install(SLOT_TRACE, hook_trace_function))
		wants = 0;
	agent.trace.tracing = wants;
	threads_watch(THREADS_TRACE, wants);
}

static unsigned trace_update(unsigned wants)
{
	if (wants & WANT_exception__caught && !caught_usable())
		wants &= ~(unsigned)WANT_exception__caught;
	agent.trace.lines = wants;
	trace_apply();
	return wants & agent.trace.tracing;
}

bool hook_trace_use(unsigned uses)
{
	unsigned changed = agent.trace.functions ^ uses;

	agent.trace.functions = uses;
	if (changed & HOOK_FUNCTION_CALLS)
		profile_apply();
	if (changed & HOOK_FUNCTION_LINES)
		trace_apply();
	return !(uses & ~(agent.trace.profiling | agent.trace.tracing));
}

void hook_trace_adopt(void)
{
	slot_adopt(SLOT_PROFILE);
	slot_adopt(SLOT_TRACE);
}

void hook_trace_again(void)
{
	if (agent.trace.profiling)
		slot_install(SLOT_PROFILE, hook_profile_function);
	if (agent.trace.tracing)
		slot_install(SLOT_TRACE, hook_trace_function);
}

const struct hook hook_profile = {
	WANT_function__entry | WANT_function__return | WANT_cfunction__entry | WANT_cfunction__return,
	0, profile_usable, profile_update
};
const struct hook hook_trace = { WANT_line | WANT_exception__raise | WANT_exception__caught, 0, trace_usable, trace_update };

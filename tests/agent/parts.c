/* SPDX-License-Identifier: MIT */
/*
 * Parts of the agent, to be called one by one in a Python: parts_test.py loads this object, which is the agent's code with
 * these functions added, by ctypes, and holds their answers against the interpreter's own.  With the GIL.
 */
#include <stdbool.h>

#include "agent/agent.h"
#include "agent/code.h"
#include "agent/methods.h"
#include "agent/qualname.h"
#include "agent/slot.h"
#include "agent/typename.h"

/* A function that the test calls. */
#define CALLED(...) __attribute__((visibility("default"))) __VA_ARGS__; __VA_ARGS__

static unsigned long events[2];

SLOT_FUNCTION(parts_trace, slot_below_trace);

int parts_trace_event(struct pyobj *arg, struct pyobj *frame, int what, struct pyobj *value)
{
	events[SLOT_TRACE]++;
	return slot_pass(SLOT_TRACE, arg, frame, what, value);
}

SLOT_FUNCTION(parts_profile, slot_below_profile);

int parts_profile_event(struct pyobj *arg, struct pyobj *frame, int what, struct pyobj *value)
{
	events[SLOT_PROFILE]++;
	return slot_pass(SLOT_PROFILE, arg, frame, what, value);
}

static capi_tracefunc *const ours[] = { [SLOT_TRACE] = parts_trace, [SLOT_PROFILE] = parts_profile };

/* The first call.  NULL, or why the agent does nothing here. */
CALLED(const char *parts_begin(void))
{
	const char *why = capi_resolve(&agent.py);

	if (!why)
		agent_set_up();
	return why || agent.phase == AGENT_READY ? why : agent.why;
}

CALLED(const char *parts_file(struct pyobj *code))
{
	return code_file(code);
}

CALLED(const char *parts_name(struct pyobj *code))
{
	return code_name(code);
}

/* NULL: qualified names are not known. */
CALLED(const char *parts_qualname(struct pyobj *code))
{
	return code_has_qualname() ? code_qualname(code) : NULL;
}

CALLED(void parts_learn(void))
{
	if (qualname_usable())
		qualname_learn();
}

CALLED(const char *parts_type(struct pyobj *type))
{
	return typename_of(type);
}

/* The name in the definition of a builtin; NULL: none was found. */
CALLED(const char *parts_method(const char *module, const char *name))
{
	const struct capi_method *def = methods_find(module, name);

	return def ? def->name : NULL;
}

CALLED(bool parts_install(int kind))
{
	return slot_install((enum slot_kind)kind, ours[kind]);
}

CALLED(void parts_remove(int kind))
{
	slot_remove((enum slot_kind)kind);
}

/* How often our function has been called since it was asked last. */
CALLED(unsigned long parts_events(int kind))
{
	unsigned long n = events[kind];

	events[kind] = 0;
	return n;
}

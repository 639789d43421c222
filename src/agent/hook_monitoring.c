/* SPDX-License-Identifier: MIT */
/*
 * Calls and exceptions from 3.12 on: sys.monitoring (PEP 669) with C callbacks.  It covers every thread, and other
 * tools keep their own events: there are six tool ids, and one that is free is taken.
 *
 * The six events pair as sys.setprofile's call and return do: a frame begins, is resumed, or is resumed by throw()
 * or close(); it ends by return, by yield or await, or because an exception leaves it.
 */
#include "agent/agent.h"
#include "agent/fire.h"

static struct pyobj *on_entry(struct pyobj *self, struct pyobj *const *args, ssize_t nargs);
static struct pyobj *on_return(struct pyobj *self, struct pyobj *const *args, ssize_t nargs);

static struct pyobj *on_call(struct pyobj *self, struct pyobj *const *args, ssize_t nargs);
static struct pyobj *on_c_return(struct pyobj *self, struct pyobj *const *args, ssize_t nargs);
static struct pyobj *on_raise(struct pyobj *self, struct pyobj *const *args, ssize_t nargs);

static struct capi_method entry_method = { "dtap_entry", on_entry, CAPI_FASTCALL, NULL };
static struct capi_method return_method = { "dtap_return", on_return, CAPI_FASTCALL, NULL };
static struct capi_method call_method = { "dtap_call", on_call, CAPI_FASTCALL, NULL };
static struct capi_method c_return_method = { "dtap_c_return", on_c_return, CAPI_FASTCALL, NULL };
static struct capi_method raise_method = { "dtap_raise", on_raise, CAPI_FASTCALL, NULL };

/* The debugger's, coverage's and the profiler's ids (0, 1, 2) last: tools take them by convention. */
static const int tool_ids[] = { 3, 4, 5, 2, 1, 0 };

static const struct event {
	const char *name;
	unsigned want;
	struct capi_method *method;
} events[] = {
	{ "PY_START", WANT_function__entry, &entry_method },
	{ "PY_RESUME", WANT_function__entry, &entry_method },
	{ "PY_THROW", WANT_function__entry, &entry_method },
	{ "PY_RETURN", WANT_function__return, &return_method },
	{ "PY_YIELD", WANT_function__return, &return_method },
	{ "PY_UNWIND", WANT_function__return, &return_method },
	{ "CALL", WANT_cfunction__entry | WANT_cfunction__return, &call_method },	/* C_... need it */
	{ "C_RETURN", WANT_cfunction__return, &c_return_method },
	{ "C_RAISE", WANT_cfunction__return, &c_return_method },
	{ "RAISE", WANT_exception__raise, &raise_method },
};

static int tool = -1;

/* @where: the offset of the instruction, a Python integer. */
static int line_of_offset(const struct moment *moment)
{
	long off = agent.py.PyLong_AsLong((struct pyobj *)moment->where);
	int line = agent.py.PyCode_Addr2Line(moment->code, (int)off);

	/* The clean-up that close() and the end of a generator run has no line; its frame remembers one. */
	if (__builtin_expect(line < 0, 0))
		line = agent.py.PyFrame_GetLineNumber(agent.py.PyEval_GetFrame());
	return line;
}

/* Every callback has (code, instruction offset, ...). */
static inline struct pyobj *fire_at(struct pyobj *const *args, fire *to)
{
	struct moment moment = { .code = args[0], .line = line_of_offset, .where = args[1] };

	if (!agent_busy)
		to(&moment);
	return agent_none();
}

/*
 * Counting alone is done in registers; all else is in a function of its own.  None is immortal from 3.12 on, where this
 * hook is used (PEP 683).
 */
#define ON(event, name)											\
	static __attribute__((noinline)) struct pyobj *event##_any(struct pyobj *const *args)		\
	{												\
		return fire_at(args, fire_##name);							\
	}												\
													\
	static struct pyobj *event(struct pyobj *self, struct pyobj *const *args, ssize_t nargs)	\
	{												\
		(void)self;										\
		(void)nargs;										\
		if (__builtin_expect(!agent_busy && fire_counted(name, args[0]), 1))			\
			return agent.py.none;								\
		return event##_any(args);								\
	}
ON(on_entry, function__entry)
ON(on_return, function__return)
#undef ON

/* (code, instruction offset, callable, first argument): of any callable. */
static struct pyobj *on_call(struct pyobj *self, struct pyobj *const *args, ssize_t nargs)
{
	struct moment moment = { .code = args[0], .line = line_of_offset, .where = args[1] };

	(void)self;
	if (!agent_busy && nargs > 2 && fire_wanted(cfunction__entry) && fire_is_cfunction(args[2]))
		fire_cfunction(&moment, args[2], true);
	return agent_none();
}

static struct pyobj *on_c_return(struct pyobj *self, struct pyobj *const *args, ssize_t nargs)
{
	struct moment moment = { .code = args[0], .line = line_of_offset, .where = args[1] };

	(void)self;
	if (!agent_busy && nargs > 2 && fire_is_cfunction(args[2]))
		fire_cfunction(&moment, args[2], false);
	return agent_none();
}

/* (code, instruction offset, exception) */
static struct pyobj *on_raise(struct pyobj *self, struct pyobj *const *args, ssize_t nargs)
{
	struct moment moment = { .code = args[0], .line = line_of_offset, .where = args[1] };

	(void)self;
	if (!agent_busy && nargs > 2)
		fire_exception(&moment, agent_type(args[2]));
	return agent_none();
}

static bool usable(void)
{
	return agent.py.PySys_GetObject("monitoring") != NULL;
}

/* sys.monitoring.NAME(...), its result dropped.  False leaves the exception. */
#define call(monitoring, name, ...) dropped(agent.py.PyObject_CallMethod(monitoring, name, __VA_ARGS__))

static bool dropped(struct pyobj *result)
{
	agent_release(result);
	return result != NULL;
}

static bool take_tool(struct pyobj *monitoring)
{
	for (unsigned i = 0; i < sizeof(tool_ids) / sizeof(*tool_ids); i++) {
		if (call(monitoring, "use_tool_id", "is", tool_ids[i], "dtap")) {
			tool = tool_ids[i];
			return true;
		}
		agent.py.PyErr_Clear();
	}
	agent_why("calls: other tools have taken all six tool ids of sys.monitoring");
	return false;
}

static int event_bit(struct pyobj *monitoring, const char *name)
{
	struct pyobj *namespace = agent.py.PyObject_GetAttrString(monitoring, "events"), *value = NULL;
	int bit = 0;

	if (namespace)
		value = agent.py.PyObject_GetAttrString(namespace, name);
	if (value)
		bit = (int)agent.py.PyLong_AsLong(value);
	agent_release(value);
	agent_release(namespace);
	return bit;
}

/* Without a @method: nobody. */
static bool register_event(struct pyobj *monitoring, int bit, struct capi_method *method)
{
	struct pyobj *callable = method ? agent_callable(method) : agent_none();
	bool done = callable && call(monitoring, "register_callback", "iiO", tool, bit, callable);

	agent_release(callable);
	return done;
}

static unsigned update(unsigned wants)
{
	struct pyobj *monitoring = agent.py.PySys_GetObject("monitoring");
	int bits = 0;	/* those of C_RETURN and C_RAISE only with that of CALL */

	if (!monitoring || (tool < 0 && (!wants || !take_tool(monitoring))))
		return 0;
	for (unsigned i = 0; i < sizeof(events) / sizeof(*events); i++) {
		bool wanted = wants & events[i].want;
		int bit = event_bit(monitoring, events[i].name);

		if (bit > 0 && register_event(monitoring, bit, wanted ? events[i].method : NULL) && wanted)
			bits |= bit;
	}
	if (!call(monitoring, "set_events", "ii", tool, bits))
		wants = 0;
	if (!wants) {
		agent.py.PyErr_Clear();
		call(monitoring, "free_tool_id", "i", tool);
		tool = -1;
	}
	return wants;
}

const struct hook hook_monitoring = {
	WANT_function__entry | WANT_function__return | WANT_cfunction__entry | WANT_cfunction__return |
		WANT_exception__raise,
	usable, update
};

/* SPDX-License-Identifier: MIT */
/*
 * Calls and exceptions from 3.12 on: sys.monitoring (PEP 669) with C callbacks.  It covers every thread and does not
 * affect the events of other tools: a free one of the six tool ids is taken.
 *
 * Six events correspond to sys.setprofile's call and return: a frame begins, is resumed, or is resumed by throw() or
 * close(); it ends by return, by yield or await, or by an exception.
 */
#include "agent/agent.h"
#include "agent/caught.h"
#include "agent/context.h"
#include "agent/fire.h"
#include "agent/lap.h"
#include "agent/tool.h"
#include "agent/watched.h"

static struct pyobj *on_entry(struct pyobj *self, struct pyobj *const *args, ssize_t nargs);
static struct pyobj *on_return(struct pyobj *self, struct pyobj *const *args, ssize_t nargs);
static struct pyobj *on_unwind(struct pyobj *self, struct pyobj *const *args, ssize_t nargs);

static struct pyobj *on_call(struct pyobj *self, struct pyobj *const *args, ssize_t nargs);
static struct pyobj *on_c_return(struct pyobj *self, struct pyobj *const *args, ssize_t nargs);
static struct pyobj *on_raise(struct pyobj *self, struct pyobj *const *args, ssize_t nargs);
static capi_fastcall on_handled, on_instruction, on_line, on_jump;

static struct capi_method entry_method = { "dtap_entry", on_entry, CAPI_FASTCALL, NULL };
static struct capi_method return_method = { "dtap_return", on_return, CAPI_FASTCALL, NULL };
static struct capi_method unwind_method = { "dtap_unwind", on_unwind, CAPI_FASTCALL, NULL };
static struct capi_method call_method = { "dtap_call", on_call, CAPI_FASTCALL, NULL };
static struct capi_method c_return_method = { "dtap_c_return", on_c_return, CAPI_FASTCALL, NULL };
static struct capi_method raise_method = { "dtap_raise", on_raise, CAPI_FASTCALL, NULL };
static struct capi_method handled_method = { "dtap_handled", on_handled, CAPI_FASTCALL, NULL };
static struct capi_method jump_method = { "dtap_jump", on_jump, CAPI_FASTCALL, NULL };
static struct capi_method line_method = { "dtap_line", on_line, CAPI_FASTCALL, NULL };
static struct capi_method instruction_method = { "dtap_instruction", on_instruction, CAPI_FASTCALL, NULL };

enum { TOOL = 3 };	/* its id, if that is free */

static const struct event {
	const char *name;
	unsigned want;
	struct capi_method *method;
	bool local;		/* enabled in single code objects only */
	bool sub;		/* only in subinterpreters and without a GIL: elsewhere the trace function serves */
} events[] = {
	{ "PY_START", WANT_function__entry, &entry_method },
	{ "PY_RESUME", WANT_function__entry, &entry_method },
	{ "PY_THROW", WANT_function__entry, &entry_method },
	{ "PY_RETURN", WANT_function__return, &return_method },
	{ "PY_YIELD", WANT_function__return, &return_method },
	{ "PY_UNWIND", WANT_function__return, &unwind_method },
	{ "CALL", WANT_cfunction__entry | WANT_cfunction__return, &call_method },	/* for C_RETURN, C_RAISE, too */
	{ "C_RETURN", WANT_cfunction__return, &c_return_method },
	{ "C_RAISE", WANT_cfunction__return, &c_return_method },
	{ "RAISE", WANT_exception__raise, &raise_method },
	{ "EXCEPTION_HANDLED", WANT_exception__caught, &handled_method },
	{ "INSTRUCTION", WANT_exception__caught, &instruction_method, .local = true },
	{ "LINE", WANT_line, &line_method, .sub = true },
	{ "JUMP", WANT_line, &jump_method, .sub = true },
};

/* The line of the thread's innermost frame, which is at the offset @where, a Python integer, of @code. */
static inline int line_at(struct pyobj *code, const void *where)
{
	int line = agent.py.PyCode_Addr2Line(code, (int)agent.py.PyLong_AsLong((struct pyobj *)where));

	/* The cleanup code run by close() and at the end of a generator has no line; its frame has the last one. */
	if (__builtin_expect(line < 0, 0))
		line = agent.py.PyFrame_GetLineNumber(agent.py.PyEval_GetFrame());
	return line;
}

static int line_of_offset(const struct moment *moment)
{
	return line_at(moment->code, moment->where);
}

/* The arguments of every callback begin with (code, instruction offset). */
static __attribute__((noinline)) void fire_whole(struct pyobj *const *args, struct pyobj *result, struct pyobj *exception,
						   bool entry)
{
	const struct moment moment = { .code = args[0], .line = line_of_offset, .where = args[1],
				       .result = result, .exception = exception };

	fire_moment(&moment, entry);
}

static inline __attribute__((always_inline)) struct pyobj *fire_at(struct pyobj *const *args, struct pyobj *result,
								   struct pyobj *exception, bool entry)
{
	struct pyobj *code = args[0];

	if (agent_thread.busy)
		return agent_none();
	context_begin(code, entry);
	if (!lap_take(entry)) {
		if (!fire_quick(code, result, exception, entry))
			fire_whole(args, result, exception, entry);
		lap_learn(entry);
	}
	context_end();
	return agent_none();
}

/*
 * In a subinterpreter, whose callbacks have a @self, hooks are removed at its next audit event.  Until then each place
 * that has no listener any more disables itself.
 */
static struct pyobj *disable(void)
{
	agent.py.Py_IncRef(agent.monitoring.disable);
	return agent.monitoring.disable;
}

/*
 * The fast path only counts and saves no registers; everything else is in a separate function.  None is immortal from
 * 3.12 on, where this hook is used (PEP 683).
 */
#define ON(event, name, result, exception, can_disable)								\
	static __attribute__((noinline)) struct pyobj *event##_any(struct pyobj *self, struct pyobj *const *args, \
								    ssize_t nargs)			\
	{												\
		if (__builtin_expect(self && can_disable && !fire_wanted(name), 0))			\
			return disable();								\
		return fire_at(args, result, exception, ABI_MARKER_##name == ABI_MARKER_function__entry);	\
	}												\
													\
	static __attribute__((noinline)) struct pyobj *event##_straight(struct pyobj *self, struct pyobj *const *args, \
									 ssize_t nargs)			\
	{												\
		const bool entry = ABI_MARKER_##name == ABI_MARKER_function__entry;			\
													\
		if (__builtin_expect(fire_straight(args[0], line_at, args[1], result, exception, entry), 1))	\
			return agent.py.none;								\
		return event##_any(self, args, nargs);							\
	}												\
													\
	static struct pyobj *event(struct pyobj *self, struct pyobj *const *args, ssize_t nargs)	\
	{												\
		if (__builtin_expect(!agent_thread.busy && !marker_wanted(name), 1)) {			\
			if (__builtin_expect(fire_counted(name, args[0]), 1))				\
				return agent.py.none;							\
			if (engine_is_straight(ABI_MARKER_##name))					\
				return event##_straight(self, args, nargs);				\
		}											\
		return event##_any(self, args, nargs);							\
	}
ON(on_entry, function__entry, NULL, nargs > 2 ? args[2] : NULL, nargs <= 2)	/* PY_THROW has an exception */
ON(on_return, function__return, nargs > 2 ? args[2] : NULL, NULL, true)
ON(on_unwind, function__return, NULL, nargs > 2 ? args[2] : NULL, false)
#undef ON

/* (code, instruction offset, callable, first argument): of any callable. */
static struct pyobj *on_call(struct pyobj *self, struct pyobj *const *args, ssize_t nargs)
{
	struct moment moment = { .code = args[0], .line = line_of_offset, .where = args[1] };

	if (self && !fire_wanted(cfunction__entry) && !fire_wanted(cfunction__return))
		return disable();
	if (!agent_thread.busy && nargs > 2 && fire_wanted(cfunction__entry) && fire_is_cfunction(args[2]))
		fire_cfunction(&moment, args[2], nargs > 3 ? args[3] : NULL, true);
	return agent_none();
}

static struct pyobj *on_c_return(struct pyobj *self, struct pyobj *const *args, ssize_t nargs)
{
	struct moment moment = { .code = args[0], .line = line_of_offset, .where = args[1] };

	(void)self;
	if (!agent_thread.busy && nargs > 2 && fire_is_cfunction(args[2]))
		fire_cfunction(&moment, args[2], NULL, false);
	return agent_none();
}

/* (code, instruction offset, exception) */
static struct pyobj *on_raise(struct pyobj *self, struct pyobj *const *args, ssize_t nargs)
{
	struct moment moment = { .code = args[0], .line = line_of_offset, .where = args[1],
				 .exception = nargs > 2 ? args[2] : NULL };

	(void)self;
	if (!agent_thread.busy && nargs > 2)
		fire_exception(&moment, agent_type(args[2]), false);
	return agent_none();
}

/*
 * (code, instruction offset, exception): control goes to a handler.  Not an event that can be disabled: DISABLE would raise
 * ValueError in the program.
 */
static struct pyobj *on_handled(struct pyobj *self, struct pyobj *const *args, ssize_t nargs)
{
	struct pyobj *monitoring = tool_monitoring();
	bool was_busy = agent_thread.busy;
	int saved = errno;

	(void)self;
	(void)nargs;
	if (monitoring && !was_busy && fire_wanted(exception__caught)) {
		agent_thread.busy = true;
		caught_watch(monitoring, args[0]);
		agent_thread.busy = was_busy;
	}
	errno = saved;
	return agent_none();
}

static int line_given(const struct moment *moment)
{
	return (int)agent.py.PyLong_AsLong((struct pyobj *)(uintptr_t)moment->where);
}

/* Where the trace function does not serve the marker (hook_trace.c). */
static bool serves_line(struct pyobj *self)
{
	return self || agent.py.free_threaded;
}

/*
 * (code, line).  Also in functions whose instructions are watched for exception-caught, before 3.14: there an instruction that
 * begins a line has no event when the last tool returns DISABLE for that line.  Others may watch instructions, too.
 */
static struct pyobj *on_line(struct pyobj *self, struct pyobj *const *args, ssize_t nargs)
{
	struct moment moment = { .code = args[0], .line = line_given, .where = args[1] };
	bool wanted = serves_line(self) && fire_wanted(line);

	(void)nargs;
	if (!wanted && (self || !agent.py.free_threaded) && !agent.caught.shares &&
	    !(fire_wanted(exception__caught) && caught_is_at_line(args[0], line_given(&moment))))
		return disable();
	if (wanted && !agent_thread.busy)
		fire_line(&moment);
	return agent_none();
}

/*
 * (code, instruction offset, offset of the next one): a loop in a single line begins again, which is a line for
 * sys.settrace.  Other places never have such an event.
 */
static struct pyobj *on_jump(struct pyobj *self, struct pyobj *const *args, ssize_t nargs)
{
	struct moment moment = { .code = args[0], .line = line_of_offset, .where = args[1] };
	int from = (int)agent.py.PyLong_AsLong(args[1]), to = nargs > 2 ? (int)agent.py.PyLong_AsLong(args[2]) : from;

	(void)self;
	if (to >= from || agent.py.PyCode_Addr2Line(args[0], from) != agent.py.PyCode_Addr2Line(args[0], to))
		return disable();
	if (!agent_thread.busy && fire_wanted(line))
		fire_line(&moment);
	return agent_none();
}

/* (code, instruction offset), where a handler has been at work: of all instructions only ends of handlers stay enabled. */
static struct pyobj *on_instruction(struct pyobj *self, struct pyobj *const *args, ssize_t nargs)
{
	struct moment moment = { .code = args[0], .line = line_of_offset, .where = args[1] };
	int saved = errno;

	(void)self;
	(void)nargs;
	if (!caught_ends(args[0], agent.py.PyLong_AsLong(args[1])))
		return disable();
	if (!agent_thread.busy && fire_wanted(exception__caught))
		caught_fire(&moment);
	errno = saved;
	return agent_none();
}

static bool usable(void)
{
	return tool_monitoring() != NULL;
}

static bool take_own_tool(struct pyobj *monitoring)
{
	agent.monitoring.tool = tool_take(monitoring, TOOL, "dtap");
	agent.monitoring.has_tool = agent.monitoring.tool >= 0;
	if (!agent.monitoring.has_tool)
		agent_why("calls: other tools have taken all six tool ids of sys.monitoring");
	return agent.monitoring.has_tool;
}

static bool get_disable(struct pyobj *monitoring)
{
	if (!agent.monitoring.disable)
		agent.monitoring.disable = agent.py.PyObject_GetAttrString(monitoring, "DISABLE");
	return agent.monitoring.disable;
}

/* What exception-caught needs; false: it cannot be had. */
static bool prepare_caught(struct pyobj *monitoring)
{
	int helper = agent.caught.codes.helper - 1;

	agent.monitoring.instruction = tool_event(monitoring, "INSTRUCTION");
	agent.monitoring.line = agent.py.minor < 14 ? tool_event(monitoring, "LINE") : 0;
	if (!caught_usable() || !get_disable(monitoring) || agent.monitoring.instruction <= 0)
		return false;
	if (helper < 0)
		helper = tool_take(monitoring, TOOL, "dtap instructions");
	watched_open(&agent.caught.codes, helper, tool_event(monitoring, "STOP_ITERATION"));
	return true;
}

static void end_caught(struct pyobj *monitoring)
{
	caught_unwatch(monitoring);
	if (agent.caught.codes.helper)
		tool_free(monitoring, agent.caught.codes.helper - 1);
	agent.caught.codes.helper = 0;
	agent.monitoring.line = 0;
	agent.caught.shares = false;
}

/* Register the callbacks for @wants, and none for the others; the bits of events to be enabled for all code. */
static int register_events(struct pyobj *monitoring, int tool, unsigned wants, struct pyobj *self)
{
	int bits = 0;	/* those of C_RETURN and C_RAISE only with that of CALL */

	for (unsigned i = 0; i < sizeof(events) / sizeof(*events); i++) {
		bool wanted = wants & events[i].want;
		int bit = tool_event(monitoring, events[i].name);
		bool local = events[i].local || (events[i].sub && !serves_line(self));
		bool called = wanted || (events[i].method == &line_method && wants & WANT_exception__caught && agent.monitoring.line);

		if (bit > 0 && tool_call_back(monitoring, tool, bit, called ? events[i].method : NULL, self) && wanted && !local)
			bits |= bit;
	}
	return bits;
}

/* sys.monitoring.DISABLE is the same object in all interpreters, and immortal. */
void hook_monitoring_sub(unsigned wants, int *tool)
{
	struct pyobj *monitoring = tool_monitoring();
	int bits;

	if (!monitoring || !get_disable(monitoring) || (*tool < 0 && !wants))
		return;
	if (*tool < 0)
		*tool = tool_take(monitoring, TOOL, "dtap");
	if (*tool < 0)
		return;
	bits = register_events(monitoring, *tool, wants, agent.py.none);
	tool_enable(monitoring, *tool, bits);
	if (!wants) {
		tool_free(monitoring, *tool);
		*tool = -1;
	} else {
		tool_restart();	/* where disable() was returned before */
	}
}

static unsigned update(unsigned wants)
{
	struct pyobj *monitoring = tool_monitoring();
	int bits;

	if (monitoring && wants & WANT_exception__caught && !prepare_caught(monitoring))
		wants &= ~(unsigned)WANT_exception__caught;
	if (!monitoring || (!agent.monitoring.has_tool && (!wants || !take_own_tool(monitoring))))
		return 0;
	if (wants & WANT_line && !get_disable(monitoring))
		wants &= ~(unsigned)WANT_line;
	bits = register_events(monitoring, agent.monitoring.tool, wants, NULL);
	if (!(wants & WANT_exception__caught))
		end_caught(monitoring);
	if (tool_enable(monitoring, agent.monitoring.tool, bits))
		tool_restart();
	else
		wants = 0;
	if (!wants) {
		tool_free(monitoring, agent.monitoring.tool);
		agent.monitoring.has_tool = false;
	}
	return wants;
}

const struct hook hook_monitoring = {
	WANT_function__entry | WANT_function__return | WANT_cfunction__entry | WANT_cfunction__return |
		WANT_exception__raise | WANT_exception__caught,
	HOOK_MONITORING_SUB | WANT_exception__caught,
	usable, update
};

/* SPDX-License-Identifier: MIT */
/*
 * Events of functions by name.
 *
 * From 3.12 on: sys.monitoring, with a tool id of its own, since its callbacks disable events at single code locations:
 * a function that no program names costs one callback for each of its locations, and nothing after that.  Unwinding and
 * throw() are events that CPython up to 3.14 cannot disable by location; they are enabled only while a program wants
 * them, and cost a look at the code object.  DISABLE is never returned for them: it raises ValueError in the program.
 *
 * restart_events() enables disabled events again; it is called when other functions are named, and enables those of
 * other tools, too, like any call of it.  It is also called when a function is created, for another module, from code
 * that has run in a module that no pattern matches: a function watcher reports that.
 *
 * Before 3.12: the frame evaluator (eval.h), which looks at the code object's extra memory; or, where that would use
 * too much of a thread's stack, the profile function.  Lines come from the trace function, which slows down all
 * functions.
 */
#include "agent/hook_function.h"

#include <string.h>

#include "agent/agent.h"
#include "agent/caught.h"
#include "agent/engine.h"
#include "agent/eval.h"
#include "agent/frame.h"
#include "agent/function.h"
#include "agent/object.h"
#include "agent/pyframes.h"
#include "agent/qualname.h"
#include "agent/reads.h"
#include "agent/task.h"
#include "agent/tool.h"

#define bit(WHAT) (1u << ABI_FUNCTION_##WHAT)

static capi_fastcall on_start, on_resume, on_return, on_yield, on_throw, on_unwind, on_line;

static const struct event {
	const char *name;
	unsigned wants;
	struct capi_method method;
} events[] = {
	{ "PY_START", bit(ENTRY), { "dtap_function_start", on_start, CAPI_FASTCALL, NULL } },
	{ "PY_RESUME", bit(RESUME), { "dtap_function_resume", on_resume, CAPI_FASTCALL, NULL } },
	{ "PY_THROW", bit(RESUME), { "dtap_function_throw", on_throw, CAPI_FASTCALL, NULL } },
	{ "PY_RETURN", bit(RETURN), { "dtap_function_return", on_return, CAPI_FASTCALL, NULL } },
	{ "PY_YIELD", bit(YIELD), { "dtap_function_yield", on_yield, CAPI_FASTCALL, NULL } },
	{ "PY_UNWIND", bit(RAISE), { "dtap_function_unwind", on_unwind, CAPI_FASTCALL, NULL } },
	{ "LINE", bit(LINE), { "dtap_function_line", on_line, CAPI_FASTCALL, NULL } },
};

enum { EVENTS = sizeof(events) / sizeof(*events) };

/* --- tasks -------------------------------------------------------------------------------------------- */

/* A step begins or ends where the frame of the coroutine that the running task was given does. */
enum { STEP = bit(ENTRY) | bit(RESUME) | bit(RETURN) | bit(YIELD) | bit(RAISE), TEXT = 256 };
enum { CO_GENERATOR = 0x20, CO_COROUTINE = 0x80, CO_ITERABLE_COROUTINE = 0x100 };

/* Kinds of events that are wanted because of tasks. */
static inline unsigned kinds_of_tasks(void)
{
	return agent.functions.tasks.steps | agent.functions.tasks.making;
}

/* Kinds of events that somebody wants. */
static unsigned kinds(void)
{
	return agent.engine.functions | kinds_of_tasks();
}

/* asyncio's types are each interpreter's own. */
static bool may_have_tasks(void)
{
	return agent.py.PyInterpreterState_Get() == agent.py.PyInterpreterState_Main();
}

/* Kinds of events that are wanted of code such as this because a task may run it; bits. */
static inline unsigned steps_in(struct pyobj *code)
{
	int flags;

	if (__builtin_expect(!agent.functions.tasks.steps, 1))
		return 0;
	memcpy(&flags, (const char *)code + object_at->code_flags, sizeof(flags));
	return flags & (CO_COROUTINE | CO_ITERABLE_COROUTINE | (agent.py.minor < 12 ? CO_GENERATOR : 0)) && may_have_tasks() ?
	       agent.functions.tasks.steps : 0;
}

/* The same because asyncio calls it where a task is made. */
static inline unsigned makings_in(struct pyobj *code)
{
	return __builtin_expect(agent.functions.tasks.making, 0) && task_is_maker(code) && may_have_tasks() ? agent.functions.tasks.making : 0;
}

static const char *text_of(uint64_t task, bool coroutine, char text[static TEXT])
{
	struct shm_run *r = object_reader();

	for (unsigned n = 0; n < READS_TRIES; n++) {
		int64_t length;

		reads_begin(r, task);
		length = task_text_of(r, task, coroutine, text, TEXT);
		if (reads_end(r, 0))
			return length < 0 ? NULL : text;
	}
	return NULL;
}

/* Fire a marker of the task, whose first arguments are the same for all of them. */
static void fire_task(enum abi_marker marker, uint64_t task, int how)
{
	enum { NAME = 1 << 0, COROUTINE = 1 << 1 };
	unsigned reads = agent.marker_mask & 1u << marker ? NAME | COROUTINE : agent.engine.uses[marker];
	char name[TEXT], coroutine[TEXT];
	const struct fire_task t = { reads & NAME ? text_of(task, false, name) : NULL,
				     reads & COROUTINE ? text_of(task, true, coroutine) : NULL, (struct pyobj *)(uintptr_t)task };

	if (marker == ABI_MARKER_task__create)
		fire_task__create(&t);
	else if (marker == ABI_MARKER_task__step__begin)
		fire_task__step__begin(&t);
	else
		fire_task__step__end(&t, how);
}

static void fire_step(const struct function_event *event, const char *frame)
{
	static const int how[ABI_FUNCTIONS] = { [ABI_FUNCTION_RETURN] = 1, [ABI_FUNCTION_RAISE] = 2 };
	uint64_t task = task_of_frame(object_reader(), frame);

	if (!task)
		return;
	if (event->what == ABI_FUNCTION_ENTRY && agent.functions.tasks.making && task_is_eager(object_reader(), task, frame))
		fire_task(ABI_MARKER_task__create, task, 0);
	fire_values(event->result, event->exception);
	fire_task(event->what == ABI_FUNCTION_ENTRY || event->what == ABI_FUNCTION_RESUME ? ABI_MARKER_task__step__begin :
											   ABI_MARKER_task__step__end,
		  task, how[event->what]);
	fire_values(NULL, NULL);
}

static void fire_making(const struct function_event *event)
{
	uint64_t task = task_made(object_reader(), event->at.code);

	if (task)
		fire_task(ABI_MARKER_task__create, task, 0);
}

static __attribute__((noinline)) void fire_tasks(const struct function_event *event, bool step)
{
	const char *frame;
	uint64_t code;
	unsigned turn;
	int saved = errno;

	engine_look_at_forks();
	turn = engine_enter();
	object_forget();
	if (pyframes_top(&frame, &code) && code == (uint64_t)(uintptr_t)event->at.code) {
		if (step)
			fire_step(event, frame);
		else
			fire_making(event);
	}
	reads_release();
	object_forget();
	engine_leave(turn);
	errno = saved;
}

/* Run the programs for an event of a function, and those for tasks.  False: nobody wants such events of the code. */
static bool tell(const struct function_event *event)
{
	bool step = steps_in(event->at.code) >> event->what & 1, making = makings_in(event->at.code) >> event->what & 1, wanted;
	bool begins = event->what == ABI_FUNCTION_ENTRY || event->what == ABI_FUNCTION_RESUME;

	if (__builtin_expect(making, 0))
		fire_tasks(event, false);
	if (__builtin_expect(step && begins, 0))
		fire_tasks(event, true);
	wanted = function_fire(event);
	if (__builtin_expect(step && !begins, 0))
		fire_tasks(event, true);
	return wanted || step || making;
}

/* The same where no task is asked about, if it is known what to run.  False: nothing was done. */
static inline bool tell_quick(enum abi_function what, struct pyobj *code, struct pyobj *globals, struct pyobj *result,
			      struct pyobj *exception)
{
	return !kinds_of_tasks() && function_fire_quick(what, code, globals, result, exception);
}

/* --- callbacks ---------------------------------------------------------------------------------------- */

/* @where: the offset of the instruction, a Python integer. */
static int line_of_offset(const struct moment *moment)
{
	long off = agent.py.PyLong_AsLong((struct pyobj *)moment->where);
	int line = agent.py.PyCode_Addr2Line(moment->code, (int)off);

	if (line < 0)
		line = agent.py.PyFrame_GetLineNumber(agent.py.PyEval_GetFrame());
	return line;
}

static __attribute__((noinline)) bool fire_any(enum abi_function what, struct pyobj *const *args, struct pyobj *globals,
						 struct pyobj *result, struct pyobj *exception)
{
	const struct function_event event = {
		.what = what, .at = { .code = args[0], .line = line_of_offset, .where = args[1] },
		.globals = globals, .result = result, .exception = exception,
	};

	return tell(&event);
}

/* In 3.12 the code of modules that are in the interpreter's own file is all interpreters', of which each may have a lock of its own. */
static bool is_shared(const struct pyobj *code)
{
	enum { IMMORTAL = 1u << 31 };		/* in the low half of the reference count, see Include/object.h */
	uint32_t references;

	memcpy(&references, code, sizeof(references));
	return agent.py.minor == 12 && references & IMMORTAL;
}

/* Run the programs; false: none wants the event here.  @self: None in subinterpreters. */
static inline bool fire_at(const struct pyobj *self, enum abi_function what, struct pyobj *const *args, struct pyobj *result,
			   struct pyobj *exception)
{
	struct pyobj *globals;

	if (agent_thread.busy)
		return true;
	if (__builtin_expect(self && is_shared(args[0]), 0))
		return false;
	globals = agent.py.PyEval_GetGlobals();
	return tell_quick(what, args[0], globals, result, exception) || fire_any(what, args, globals, result, exception);
}

/* The return value of a callback.  DISABLE may not be immortal, so a reference is taken. */
static struct pyobj *answer(bool wanted)
{
	if (__builtin_expect(wanted, 1))
		return agent_none();
	agent.py.Py_IncRef(agent.functions.disable);
	return agent.functions.disable;
}

/* (code, offset), (code, offset, value), (code, offset, exception) */
#define ON(event, what, result, exception, may_disable)							\
	static struct pyobj *event(struct pyobj *self, struct pyobj *const *args, ssize_t nargs)	\
	{												\
		(void)nargs;										\
		return answer(fire_at(self, ABI_FUNCTION_##what, args, result, exception) || !(may_disable));	\
	}
ON(on_start, ENTRY, NULL, NULL, true)
ON(on_resume, RESUME, NULL, NULL, true)
ON(on_throw, RESUME, NULL, nargs > 2 ? args[2] : NULL, false)
ON(on_return, RETURN, nargs > 2 ? args[2] : NULL, NULL, true)
ON(on_yield, YIELD, nargs > 2 ? args[2] : NULL, NULL, true)
ON(on_unwind, RAISE, NULL, nargs > 2 ? args[2] : NULL, false)
#undef ON

/* Would DISABLE for a line take another tool an instruction's event?  Before 3.14; see on_line() of hook_monitoring.c. */
static bool hurts(struct pyobj *code)
{
	struct pyobj *monitoring = agent.py.minor < 14 ? tool_monitoring() : NULL;

	return monitoring && caught_is_shared(monitoring, code);
}

/* (code, line) */
static struct pyobj *on_line(struct pyobj *self, struct pyobj *const *args, ssize_t nargs)
{
	struct function_event event = { .what = ABI_FUNCTION_LINE, .at = { .code = args[0] } };

	(void)nargs;
	if (agent_thread.busy)
		return answer(true);
	if (self && is_shared(args[0]))
		return answer(hurts(args[0]));
	event.line = (int)agent.py.PyLong_AsLong(args[1]);
	event.globals = agent.py.PyEval_GetGlobals();
	return answer(function_fire(&event) || hurts(args[0]));
}

/* --- sys.monitoring ----------------------------------------------------------------------------------- */

/* 1 + its id, or 0. */
static int take_tool(struct pyobj *monitoring)
{
	enum { TOOL = 4 };	/* the id, if it is free */

	return 1 + tool_take(monitoring, TOOL, "dtap functions");
}

static bool take_own_tool(struct pyobj *monitoring)
{
	agent.functions.tool = take_tool(monitoring);
	if (!agent.functions.tool)
		agent_why("functions by name: other tools have taken all six tool ids of sys.monitoring");
	return agent.functions.tool;
}

/* Register callbacks for those of @wants, and none for the others; the bits of their events.  @tool: 1 + its id. */
static int register_events(struct pyobj *monitoring, int tool, unsigned wants, struct pyobj *self)
{
	int bits = 0;

	if (!agent.functions.disable)
		agent.functions.disable = agent.py.PyObject_GetAttrString(monitoring, "DISABLE");
	for (unsigned i = 0; agent.functions.disable && i < EVENTS; i++) {
		struct capi_method *method = wants & events[i].wants ? (struct capi_method *)(uintptr_t)&events[i].method : NULL;
		int bit = tool_event(monitoring, events[i].name);

		if (bit && tool_call_back(monitoring, tool - 1, bit, method, self) && method)
			bits |= bit;
	}
	if (!self)
		agent.monitoring.instruction = tool_event(monitoring, "INSTRUCTION");
	return bits;
}

/*
 * A function is created or gets other code.  If events of that code were disabled because of another module, enable
 * them.
 */
static int on_function(int event, struct pyobj *fn, struct pyobj *value)
{
	struct pyobj *code;

	if (event != CAPI_FUNCTION_CREATE && event != CAPI_FUNCTION_MODIFY_CODE)
		return 0;
	code = event == CAPI_FUNCTION_CREATE ? agent.py.PyFunction_GetCode(fn) : value;
	if (agent_thread.busy || !agent.engine.functions || !code || !function_is_elsewhere(code, agent.py.PyFunction_GetGlobals(fn)))
		return 0;
	tool_restart();
	return 0;
}

/* *@watcher: 1 + its id, or 0. */
static void watch_functions(bool wanted, int *watcher)
{
	if (wanted == (*watcher != 0) || !agent.py.PyFunction_AddWatcher || !agent.py.PyFunction_ClearWatcher)
		return;
	if (wanted) {
		*watcher = 1 + agent.py.PyFunction_AddWatcher(on_function);
		return;
	}
	agent.py.PyFunction_ClearWatcher(*watcher - 1);
	*watcher = 0;
}

static void leave(struct pyobj *monitoring, int *tool, int *watcher)
{
	watch_functions(false, watcher);
	tool_free(monitoring, *tool - 1);
	*tool = 0;
}

static void monitor(struct pyobj *monitoring)
{
	int bits = register_events(monitoring, agent.functions.tool, kinds(), NULL);

	watch_functions(true, &agent.functions.watcher);
	if (!tool_enable(monitoring, agent.functions.tool - 1, bits))
		agent_why("functions by name: sys.monitoring refuses its events");
	tool_restart();
	/*
	 * Without a GIL a thread may be about to disable an event that was unwanted until now.  It has done so when the world
	 * has been stopped for the call before, unless it waits for another thread that instruments the same code.
	 */
	if (agent.py.free_threaded)
		tool_restart();
}

static void update_monitoring(struct pyobj *monitoring)
{
	if (!kinds() && agent.functions.tool)
		leave(monitoring, &agent.functions.tool, &agent.functions.watcher);
	else if (kinds() && function_usable() && (agent.functions.tool || take_own_tool(monitoring)))
		monitor(monitoring);
}

static void update_monitoring_sub(struct pyobj *monitoring, struct hook_function_sub *sub)
{
	if (!agent.engine.functions && sub->tool) {
		leave(monitoring, &sub->tool, &sub->watcher);
	} else if (agent.engine.functions) {
		int bits;

		if (!sub->tool)
			sub->tool = take_tool(monitoring);
		if (!sub->tool)
			return;
		bits = register_events(monitoring, sub->tool, agent.engine.functions, agent.py.none);
		watch_functions(true, &sub->watcher);
		tool_enable(monitoring, sub->tool - 1, bits);
		tool_restart();
	}
}

/* --- before 3.12 -------------------------------------------------------------------------------------- */

/* Instructions of 3.9 to 3.11 that have the same number in all of these versions, or exist in only one. */
enum { OP_YIELD_FROM = 72, OP_RETURN_VALUE = 83, OP_YIELD_VALUE = 86, OP_SEND = 123, OP_RESUME = 151, RESUME_KIND = 3 };

static struct frame_layout *const layout = &agent.hook_eval.layout;

static bool is_generator(struct pyobj *code)
{
	return *(int *)((char *)code + layout->flags_off) & FRAME_CO_GENERATORS;
}

/* The last instruction begun in a frame object, in @bytes[0], and its argument.  False: none has begun. */
static bool object_instr(struct pyobj *code, struct pyobj *frame, unsigned char bytes[2])
{
	unsigned char instrs[4];
	bool known = frame_instrs(code, frame_object_at(frame), instrs);

	memcpy(bytes, instrs, 2);
	return known;
}

/* The same for an evaluator's frame. */
static bool last_instr(struct pyobj *code, void *frame, unsigned char bytes[2])
{
	long at;

	if (layout->object)
		return object_instr(code, frame, bytes);
	at = frame_instr(layout, frame);
	if (at >= 0)
		memcpy(bytes, (char *)code + layout->first_off + at, 2);
	return at >= 0;
}

/* Is the frame, which is about to run, resumed? */
static bool goes_on(struct pyobj *code, const unsigned char last[2])
{
	return is_generator(code) && (last[0] == OP_YIELD_VALUE || last[0] == OP_YIELD_FROM || last[0] == OP_SEND ||
				      (last[0] == OP_RESUME && agent.py.minor >= 11 && last[1] & RESUME_KIND));
}

static enum abi_function begin_of(struct pyobj *code, void *frame, bool throwing)
{
	unsigned char last[2];

	if (throwing)
		return ABI_FUNCTION_RESUME;
	return is_generator(code) && last_instr(code, frame, last) && goes_on(code, last) ? ABI_FUNCTION_RESUME : ABI_FUNCTION_ENTRY;
}

static enum abi_function end_of(struct pyobj *code, void *frame)
{
	unsigned char last[2];

	return is_generator(code) && last_instr(code, frame, last) && last[0] != OP_RETURN_VALUE ? ABI_FUNCTION_YIELD :
												   ABI_FUNCTION_RETURN;
}

static inline struct pyobj *globals_of(void *frame)
{
	struct pyobj *globals;

	memcpy(&globals, (char *)frame + layout->globals_off, sizeof(globals));
	return globals;
}

static void fire_frame(struct pythread *thread, void *frame, struct function_event *event)
{
	struct pyframes_link link = { .top = NULL };

	event->globals = globals_of(frame);
	pyframes_link(thread, frame, &link);
	if (!tell_quick(event->what, frame_code(layout, frame), event->globals, event->result, event->exception)) {
		frame_moment(layout, frame, &event->at);
		tell(event);
	}
	pyframes_unlink(&link);
}

/* When a frame begins by throw() or ends by an exception, that is set; it is saved during the event. */
static __attribute__((noinline)) void fire_exception_frame(struct pythread *thread, void *frame, enum abi_function what)
{
	struct function_event event = { .what = what };
	struct pyobj *type, *value, *traceback;

	agent.py.PyErr_Fetch(&type, &value, &traceback);
	event.exception = fire_exception_object(&type, &value, &traceback);
	agent_thread.traceback = traceback;
	fire_frame(thread, frame, &event);
	agent_thread.traceback = NULL;
	agent.py.PyErr_Restore(type, value, traceback);
}

static void fire_begin(struct pythread *thread, void *frame, unsigned wanted, bool throwing)
{
	struct function_event event = { .what = begin_of(frame_code(layout, frame), frame, throwing) };

	if (!(wanted >> event.what & 1))
		return;
	if (throwing)
		fire_exception_frame(thread, frame, event.what);
	else
		fire_frame(thread, frame, &event);
}

static void fire_end(struct pythread *thread, void *frame, unsigned wanted, struct pyobj *result)
{
	struct function_event event = { .result = result };

	if (!result) {
		if (wanted & bit(RAISE))
			fire_exception_frame(thread, frame, ABI_FUNCTION_RAISE);
		return;
	}
	event.what = end_of(frame_code(layout, frame), frame);
	if (wanted >> event.what & 1)
		fire_frame(thread, frame, &event);
}

static unsigned wanted_in(void *frame)
{
	struct pyobj *code = frame_code(layout, frame);

	return function_wanted(code, globals_of(frame)) | steps_in(code) | makings_in(code);
}

static __attribute__((noinline)) unsigned wanted_while_throwing(void *frame)
{
	struct pyobj *type, *value, *traceback;
	unsigned wanted;

	agent.py.PyErr_Fetch(&type, &value, &traceback);
	wanted = wanted_in(frame);
	agent.py.PyErr_Restore(type, value, traceback);
	return wanted;
}

/*
 * Without an exception, of a function that is no generator: its entry by the decision about it, @v, or its return.  For who
 * looks at the thread the frame is linked.
 */
static inline __attribute__((always_inline)) void fire_plain(const struct verdict *v, struct pythread *thread, void *frame,
							      struct pyobj *result)
{
	struct pyobj *code = frame_code(layout, frame);
	const bool linked = agent.engine.frames;
	struct pyframes_link link = { .top = NULL };
	bool fired;

	if (linked)
		pyframes_link(thread, frame, &link);
	fired = v ? function_fire_entry(v, code) : function_fire_quick(ABI_FUNCTION_RETURN, code, globals_of(frame), result, NULL);
	if (linked)
		pyframes_unlink(&link);
	if (__builtin_expect(!fired, 0)) {
		struct function_event event = { .what = v ? ABI_FUNCTION_ENTRY : ABI_FUNCTION_RETURN, .result = result };

		fire_frame(thread, frame, &event);
	}
}

/* A call of a function about which the decision is @v. */
static __attribute__((noinline)) struct pyobj *eval_known(const struct verdict *v, unsigned wanted, struct pythread *thread,
							  void *frame, capi_evaluator *next)
{
	unsigned begun = agent.functions.generation;
	struct pyobj *result;

	if (wanted & bit(ENTRY))
		fire_plain(v, thread, frame, NULL);
	if (!(wanted & (bit(RETURN) | bit(RAISE))))
		return next(thread, frame, 0);
	result = next(thread, frame, 0);
	if (begun != agent.functions.generation)
		return result;
	if (__builtin_expect(!result, 0))
		fire_end(thread, frame, wanted, result);
	else if (wanted & bit(RETURN))
		fire_plain(NULL, thread, frame, result);
	return result;
}

static __attribute__((noinline)) struct pyobj *eval_named(struct pythread *thread, void *frame, int throwing,
							 capi_evaluator *next)
{
	unsigned wanted, begun = agent.functions.generation;
	const struct verdict *v;
	struct pyobj *result;

	if (agent_thread.busy || frame_makes_generator(layout, frame) || frame_cannot_start(layout, thread))
		return next(thread, frame, throwing);
	if (!throwing && !kinds_of_tasks() && !is_generator(frame_code(layout, frame))) {
		v = function_verdict(frame_code(layout, frame), globals_of(frame), &wanted);
		if (__builtin_expect(v != NULL, 1))
			return wanted ? eval_known(v, wanted, thread, frame, next) : next(thread, frame, throwing);
	}
	wanted = throwing ? wanted_while_throwing(frame) : wanted_in(frame);
	if (!wanted)
		return next(thread, frame, throwing);
	if (wanted & (bit(ENTRY) | bit(RESUME)))
		fire_begin(thread, frame, wanted, throwing);
	if (!(wanted & (bit(RETURN) | bit(RAISE) | bit(YIELD))))
		return next(thread, frame, throwing);
	result = next(thread, frame, throwing);
	if (begun == agent.functions.generation)
		fire_end(thread, frame, wanted, result);
	return result;
}

struct pyobj *hook_function_eval(struct pythread *thread, void *frame, int throwing, capi_evaluator *next)
{
	struct pyobj *code = frame_code(layout, frame);

	cost_see();
	if (hook_eval_near_end((char *)__builtin_frame_address(0)) || (function_is_nothing(code) && !steps_in(code) && !makings_in(code)))
		return next(thread, frame, throwing);
	return eval_named(thread, frame, throwing, next);
}

struct pyobj *hook_function_eval_sub(struct pythread *thread, void *frame, int throwing, capi_evaluator *next)
{
	cost_see();
	if (hook_eval_ends_sub(__builtin_frame_address(0)) || function_is_nothing(frame_code(layout, frame)))
		return next(thread, frame, throwing);
	return eval_named(thread, frame, throwing, next);
}

void hook_function_traced(struct pyobj *frame, int what, struct pyobj *value)
{
	struct function_event event = { .at = { .code = agent.py.PyFrame_GetCode(frame), .where = frame } };
	unsigned char last[2];

	event.at.line = hook_trace_line;
	event.globals = agent.py.PyEval_GetGlobals();
	if (what == CAPI_TRACE_LINE) {
		event.what = ABI_FUNCTION_LINE;
		event.line = agent.py.PyFrame_GetLineNumber(frame);
	} else {
		bool known = is_generator(event.at.code) && object_instr(event.at.code, frame, last);

		if (what == CAPI_TRACE_CALL)
			event.what = known && goes_on(event.at.code, last) ? ABI_FUNCTION_RESUME : ABI_FUNCTION_ENTRY;
		else
			event.what = !value ? ABI_FUNCTION_RAISE :
				     known && last[0] != OP_RETURN_VALUE ? ABI_FUNCTION_YIELD : ABI_FUNCTION_RETURN;
		event.result = value;
	}
	tell(&event);
	agent.py.Py_DecRef(event.at.code);	/* the frame has a reference, too */
}

static void apply_evaluator(void)
{
	bool calls = agent.functions.evaluates;

	eval_use(EVAL_FUNCTIONS, calls && !agent.functions.handed_over);
	if (!hook_trace_use((calls && agent.functions.handed_over ? HOOK_FUNCTION_CALLS : 0) |
			    (kinds() & bit(LINE) ? HOOK_FUNCTION_LINES : 0)) && !*agent.why)
		agent_why("functions by name: this CPython's profile or trace function cannot be had");
}

void hook_function_hand_over(void)
{
	agent.functions.handed_over = true;
	agent.functions.generation++;
	apply_evaluator();
}

static void update_evaluator(void)
{
	bool calls = kinds() & ~bit(LINE), was = agent.functions.evaluates;

	if (kinds() && (!hook_eval.usable() || layout->globals_off < 0 || !pyframes_measured() || !function_usable())) {
		agent_why("functions by name: the layout of this CPython's frames cannot be told");
		return;
	}
	if (calls && !hook_profile_prepare())
		calls = false;
	if (agent.engine.functions && !was && agent.py.minor < 11)
		qualname_learn();
	if (!calls)
		agent.functions.handed_over = false;
	if (!calls || !was)
		agent.functions.generation++;
	agent.functions.evaluates = calls;
	apply_evaluator();
}

/* ------------------------------------------------------------------------------------------------------- */

static bool tasks_are_as_before(void)
{
	return agent.functions.had.steps == agent.functions.tasks.steps && agent.functions.had.making == agent.functions.tasks.making;
}

void hook_function_update(void)
{
	struct pyobj *monitoring = tool_monitoring();

	if (agent.functions.epoch == agent.engine.epoch && tasks_are_as_before())
		return;
	agent.functions.epoch = agent.engine.epoch;
	agent.functions.had = agent.functions.tasks;
	if (monitoring)
		update_monitoring(monitoring);
	else if (kinds() || agent.functions.evaluates || agent.trace.functions)
		update_evaluator();
}

void hook_function_update_sub(struct hook_function_sub *sub)
{
	struct pyobj *monitoring = tool_monitoring();

	if (!sub->asked && agent.engine.functions) {
		sub->asked = true;
		sub->usable = function_usable_sub();
		if (sub->usable && !monitoring && agent.py.minor < 11)
			qualname_learn();
	}
	if (monitoring && sub->usable)
		update_monitoring_sub(monitoring, sub);
}

bool hook_function_tasks(bool steps, bool making)
{
	agent.functions.tasks.making = making ? bit(ENTRY) : 0;
	/* From 3.12 on there are eager tasks, which are made where they begin. */
	agent.functions.tasks.steps = steps ? STEP : making && agent.py.minor >= 12 ? bit(ENTRY) : 0;
	hook_function_update();
	return !kinds() || agent.functions.tool || agent.functions.evaluates;
}

/* SPDX-License-Identifier: MIT */
#include "agent/caught.h"

#include "agent/agent.h"
#include "agent/frame.h"
#include "agent/tool.h"
#include "agent/watched.h"

static struct caught_state *const caught = &agent.caught;

/* --- the instructions --------------------------------------------------------------------------------- */

enum { FILE_INPUT = 257, UNIT = 2, OLD_POP_EXCEPT = 89 };

/* Offsets of POP_EXCEPT in the specimen; @first and the number of them. */
static unsigned count(const unsigned char *code, long size, int instr, long *first)
{
	unsigned n = 0;

	for (long at = 0; at + UNIT <= size; at += UNIT)
		if (code[at] == instr && !n++)
			*first = at;
	return n;
}

/*
 * In 3.9 and 3.10 the instruction has its number, once in the specimen.  Later the specimen ends with COPY 3, POP_EXCEPT,
 * RERAISE 1, and its handler is PUSH_EXC_INFO, POP_TOP, POP_EXCEPT.
 */
static bool tell_apart(const unsigned char *code, long size)
{
	long first = 0;

	caught->reraise = caught->push = -1;
	caught->pop = OLD_POP_EXCEPT;
	if (agent.py.minor < 11)
		return count(code, size, caught->pop, &first) == 1;
	if (size < 3 * UNIT || code[size - 5] != 3 || code[size - 3] != 0 || code[size - 1] != 1)
		return false;
	caught->pop = code[size - 4];
	caught->reraise = code[size - 2];
	if (count(code, size, caught->pop, &first) != 2 || count(code, size, caught->reraise, &first) != 1)
		return false;
	count(code, size, caught->pop, &first);
	if (first < 2 * UNIT)
		return false;
	caught->push = code[first - 2 * UNIT];
	return true;
}

static bool measure(void)
{
	static const char source[] = "try:\n pass\nexcept:\n pass\n";
	struct pyobj *code = agent.py.Py_CompileString(source, "<dtap>", FILE_INPUT), *bytes = NULL;
	bool known = false;

	if (code)
		bytes = agent.py.PyObject_GetAttrString(code, "co_code");
	if (bytes)
		known = tell_apart((const unsigned char *)agent.py.PyBytes_AsString(bytes), agent.py.PyBytes_Size(bytes));
	agent_release(bytes);
	agent_release(code);
	agent.py.PyErr_Clear();
	return known;
}

bool caught_usable(void)
{
	if (!caught->asked) {
		caught->asked = true;
		caught->usable = measure();
	}
	if (!caught->usable)
		agent_why("exception-caught: how this CPython ends a handler cannot be told");
	return caught->usable;
}

/* Of an instruction and the next one: see caught_ends(). */
static bool is_end(const unsigned char instrs[2 * UNIT])
{
	return instrs[0] == caught->pop && instrs[UNIT] != caught->reraise;
}

bool caught_ends(struct pyobj *code, long at)
{
	unsigned char instrs[2 * UNIT];

	return frame_instrs(code, at, instrs) && is_end(instrs);
}

/* The type of the exception that is being handled in this thread, and the exception; the caller releases both. */
static struct pyobj *handled(struct pyobj **exception)
{
	struct pyobj *type, *traceback;

	agent.py.PyErr_GetExcInfo(&type, exception, &traceback);
	agent_release(traceback);
	if (type && type != agent.py.none)
		return type;
	agent_release(type);
	agent_release(*exception);
	*exception = NULL;
	return NULL;
}

void caught_fire(const struct moment *at)
{
	struct moment moment = *at;
	struct pyobj *type = handled(&moment.exception);

	if (type)
		fire_exception(&moment, type, true);
	agent_release(moment.exception);
	agent_release(type);
}

static long number(struct pyobj *o, const char *name)
{
	struct pyobj *value = agent.py.PyObject_GetAttrString(o, name);
	long n = value ? agent.py.PyLong_AsLong(value) : 0;

	agent_release(value);
	agent.py.PyErr_Clear();
	return n;
}

/* --- from 3.12 on ------------------------------------------------------------------------------------- */

/*
 * What set_first() of watched.c keeps from happening to the agent, its coming does to others who watch instructions alone, as
 * sys.settrace() does in a frame with f_trace_opcodes: restart_events() gives them theirs back.  Without a second tool id
 * the agent's events are set anew.
 */
static bool is_tool(struct pyobj *monitoring, int id)
{
	struct pyobj *name = agent.py.PyObject_CallMethod(monitoring, "get_tool", "i", id);
	bool is = name && name != agent.py.none;

	agent_release(name);
	agent.py.PyErr_Clear();
	return is;
}

static bool has_events(struct pyobj *result, int event)
{
	bool has = result && agent.py.PyLong_AsLong(result) & event;

	agent_release(result);
	agent.py.PyErr_Clear();
	return has;
}

bool caught_is_shared(struct pyobj *monitoring, struct pyobj *code)
{
	struct pyobj *frame = agent.py.PyEval_GetFrame();
	int event = agent.monitoring.instruction;

	if (frame && number(frame, "f_trace_opcodes"))
		return true;
	for (int id = 0; id < TOOL_IDS; id++)
		if (id != agent.monitoring.tool && is_tool(monitoring, id) &&
		    (has_events(agent.py.PyObject_CallMethod(monitoring, "get_local_events", "iO", id, code), event) ||
		     has_events(agent.py.PyObject_CallMethod(monitoring, "get_events", "i", id), event)))
			return true;
	return false;
}

void caught_watch(struct pyobj *monitoring, struct pyobj *code)
{
	int events = agent.monitoring.instruction | agent.monitoring.line;
	bool shared = caught_is_shared(monitoring, code);

	if (shared)
		caught->shares = true;
	if (!watched_has(monitoring, agent.monitoring.tool, code)) {
		watched_add(&caught->codes, monitoring, agent.monitoring.tool, code, events);
		if (caught->shares)
			tool_restart();	/* a frame that does not run may have f_trace_opcodes, too */
	} else if (shared && !caught->codes.helper) {
		watched_set(monitoring, agent.monitoring.tool, code, 0);
		watched_set(monitoring, agent.monitoring.tool, code, events);
	}
}

bool caught_is_at_line(struct pyobj *code, int line)
{
	struct pyobj *bytes = agent.py.PyObject_GetAttrString(code, "co_code");
	const unsigned char *instrs = bytes ? (const unsigned char *)agent.py.PyBytes_AsString(bytes) : NULL;
	long size = bytes ? agent.py.PyBytes_Size(bytes) : 0;
	bool is = false;

	for (long at = 0; !is && at + 2 * UNIT <= size; at += UNIT)
		is = is_end(instrs + at) && agent.py.PyCode_Addr2Line(code, (int)at) == line;
	agent_release(bytes);
	agent.py.PyErr_Clear();
	return is;
}

void caught_unwatch(struct pyobj *monitoring)
{
	watched_drop(&caught->codes, monitoring, agent.monitoring.tool);
}

/* --- before ------------------------------------------------------------------------------------------- */

/*
 * A frame whose f_trace_opcodes is set has an event of the trace function before each instruction.  The agent sets it when an
 * exception comes to a frame, and clears it when no exception is being handled any more, or the frame ends or waits.  A
 * frame in which the program has set it is left alone, and so is one of another agent's: both have its events, unless the
 * program has a trace function of its own, which must not see them.  Then only one agent has them.
 */

enum { GENERATORS = 0x20 | 0x80 | 0x200 };	/* CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR */

static bool tell_instrs(struct pyobj *frame, bool on)
{
	struct pyobj *value = agent.py.PyBool_FromLong(on);
	bool done = value && !agent.py.PyObject_SetAttrString(frame, "f_trace_opcodes", value);

	agent_release(value);
	agent.py.PyErr_Clear();
	return done;
}

/* The row of a frame that the agent watches, the latest first; -1: it does not. */
static int row_of(const struct pyobj *frame)
{
	for (unsigned k = caught->frames.n; k; k--)
		if (caught->frames.v[k - 1] == frame)
			return (int)k - 1;
	return -1;
}

static void begin(struct pyobj *frame)
{
	if (row_of(frame) >= 0 || number(frame, "f_trace_opcodes") || !watched_list_add(&caught->frames, frame))
		return;
	if (!tell_instrs(frame, true))
		caught->frames.n--;
}

static void end(struct pyobj *frame, int row)
{
	if (row < 0)
		return;
	caught->frames.v[row] = caught->frames.v[--caught->frames.n];
	tell_instrs(frame, false);
}

static bool is_handling(void)
{
	struct pyobj *exception, *type = handled(&exception);

	agent_release(exception);
	agent_release(type);
	return type != NULL;
}

static bool is_generator(struct pyobj *frame)
{
	struct pyobj *code = agent.py.PyFrame_GetCode(frame);
	bool is = number(code, "co_flags") & GENERATORS;

	agent.py.Py_DecRef(code);
	return is;
}

static void at_instr(struct pyobj *frame, int row)
{
	struct moment moment = { .code = agent.py.PyFrame_GetCode(frame), .line = hook_trace_line, .where = frame };
	long at = frame_object_at(frame);
	unsigned char instrs[2 * UNIT];

	if (at >= 0 && caught_ends(moment.code, at)) {
		if (fire_wanted(exception__caught))
			caught_fire(&moment);
	} else if (!is_handling() && frame_instrs(moment.code, at, instrs) && instrs[0] != caught->push && instrs[0] != caught->reraise) {
		end(frame, row);	/* a handler is entered by PUSH_EXC_INFO, another one perhaps by RERAISE */
	}
	agent.py.Py_DecRef(moment.code);
}

bool caught_traced(struct pyobj *frame, int what)
{
	int row = caught->frames.n ? row_of(frame) : -1;

	if (agent_thread.busy)
		return false;
	if (what == CAPI_TRACE_OPCODE)
		at_instr(frame, row);
	else if (what == CAPI_TRACE_RETURN)
		end(frame, row);
	else if (!fire_wanted(exception__caught))
		return false;
	else if (what == CAPI_TRACE_EXCEPTION || (what == CAPI_TRACE_CALL && is_handling() && is_generator(frame)))
		begin(frame);
	return what == CAPI_TRACE_OPCODE && row >= 0;
}

/* SPDX-License-Identifier: MIT */
#include "agent/ccall.h"

#include "agent/agent.h"
#include "agent/frame.h"
#include "agent/modules.h"
#include "agent/object.h"
#include "agent/variable.h"
#include "vm/memory.h"

enum { FILE_INPUT = 257, UNIT = 2, SPECIMEN_ARGS = 7 };

/* --- the instructions --------------------------------------------------------------------------------- */

static struct ccall_state *const state = &agent.ccalls;

/* The operations of @source that have its number of arguments: those that call. */
static bool find_calls(const char *source, uint8_t ops[CCALL_OPS])
{
	struct pyobj *code = agent.py.Py_CompileString(source, "<dtap>", FILE_INPUT), *bytes = NULL;
	const unsigned char *instr;
	unsigned n = 0;

	memset(ops, 0, CCALL_OPS);
	if (code)
		bytes = agent.py.PyObject_GetAttrString(code, "co_code");
	instr = bytes ? (const unsigned char *)agent.py.PyBytes_AsString(bytes) : NULL;
	for (long at = 0; instr && at + UNIT <= agent.py.PyBytes_Size(bytes); at += UNIT)
		if (instr[at + 1] == SPECIMEN_ARGS && n++ < CCALL_OPS)
			ops[n - 1] = instr[at];
	agent_release(bytes);
	agent_release(code);
	agent.py.PyErr_Clear();
	return n && n <= CCALL_OPS;
}

void ccall_measure(void)
{
	struct pyobj *builtins = modules_get("builtins");

	state->usable = builtins && find_calls("f(a,a,a,a,a,a,a)\n", state->functions) &&
			find_calls("o.f(a,a,a,a,a,a,a)\n", state->methods);
	state->module_type = builtins ? agent_type(builtins) : NULL;
	agent_release(builtins);
	agent.py.PyErr_Clear();
}

static bool has(const uint8_t ops[CCALL_OPS], uint8_t op)
{
	for (unsigned k = 0; k < CCALL_OPS; k++)
		if (op && ops[k] == op)
			return true;
	return false;
}

/* --- the stack ---------------------------------------------------------------------------------------- */

/* A call whose arguments are looked for. */
struct search {
	struct shm_run *run;
	const struct ccall *call;
	uint64_t callable, object;	/* @object: of a method; 0: none */
	bool is_descr;			/* the function is a method without its object */
	bool of_method;			/* the instruction is one for methods alone (to 3.10) */
	const uint64_t *stack;
	uint32_t room, nargs;
	uint32_t at;			/* of the first argument, behind the object */
	bool with_object;		/* the object is the first of them */
	unsigned found;
};

/* What is at @k of the stack; 0: nothing. */
static uint64_t slot(const struct search *s, uint32_t k)
{
	return k < s->room ? variable_of_slot(s->stack[k]) : 0;
}

/* Is it a method without its object?  It may be anything, and the address one of something that is not any more. */
static bool is_descr(const struct search *s, uint64_t addr)
{
	uint64_t type;

	return addr && !(addr & 7) && !memory_read(s->run, &type, sizeof(type), addr + agent.py.type_slot * 8) &&
	       type == (uint64_t)(uintptr_t)agent.py.PyMethodDescr_Type;
}

static void take(struct search *s, uint32_t at, bool with_object)
{
	s->found++;
	s->at = at;
	s->with_object = with_object;
}

/* From 3.13 on: function, object or nothing, arguments. */
static void look_function_first(struct search *s, uint32_t at)
{
	if (at < 2 || slot(s, at - 2) != s->callable)
		return;
	if (!slot(s, at - 1))
		take(s, at, s->is_descr);
	else if (s->is_descr && slot(s, at - 1) == s->object)
		take(s, at, false);
}

/*
 * To 3.12: method, object, arguments; or nothing, function, arguments.  Up to 3.10 without that nothing, by another
 * instruction.  What a profile function gets in place of a method is made for it, and on no stack.
 */
static void look_function_last(struct search *s, uint32_t at)
{
	bool plain = agent.py.minor < 11 && !s->of_method;
	uint64_t before = at > 1 ? slot(s, at - 2) : 1, last = at ? slot(s, at - 1) : 0;

	if (plain) {
		if (!s->object && last == s->callable)
			take(s, at, false);
		return;
	}
	if (last == s->callable && !before)
		take(s, at, s->is_descr);
	else if (s->object && last == s->object && at > 1 && (before == s->callable || is_descr(s, before)))
		take(s, at, false);
	else if (!s->is_descr && s->object && s->nargs && !before && slot(s, at) == s->object && is_descr(s, last))
		take(s, at, true);
}

/* The object of a method; 0: a function, whose __self__ is its module or nothing. */
static uint64_t object_of(const struct ccall *call, bool is_descr)
{
	struct pyobj *self = is_descr ? call->first : agent.py.PyObject_GetAttrString(call->callable, "__self__");

	if (!is_descr)
		agent_release(self);	/* the function holds it */
	agent.py.PyErr_Clear();
	return self && self != agent.py.none && agent_type(self) != state->module_type ? (uint64_t)(uintptr_t)self : 0;
}

static uint32_t stack_size(struct pyobj *code)
{
	struct pyobj *size = agent.py.PyObject_GetAttrString(code, "co_stacksize");
	long n = size ? agent.py.PyLong_AsLong(size) : 0;

	agent_release(size);
	agent.py.PyErr_Clear();
	return n > 0 && n < 1 << 20 ? (uint32_t)n : 0;
}

/* The instruction's number of arguments; false: it is not one that calls with so many. */
static bool find_instruction(struct search *s)
{
	const struct ccall *c = s->call;
	long at = c->at ? agent.py.PyLong_AsLong((struct pyobj *)(uintptr_t)c->at) : frame_object_at((struct pyobj *)(uintptr_t)c->frame);
	unsigned char instrs[2 * UNIT];

	if (!state->usable || !frame_instrs(c->code, at, instrs))
		return false;
	s->nargs = instrs[1];
	s->of_method = has(state->methods, instrs[0]);
	return s->of_method || has(state->functions, instrs[0]);
}

static bool find(struct search *s)
{
	const struct ccall *c = s->call;

	s->is_descr = agent_type(c->callable) == agent.py.PyMethodDescr_Type;
	s->callable = (uint64_t)(uintptr_t)c->callable;
	s->object = object_of(c, s->is_descr);
	s->room = stack_size(c->code);
	if (!find_instruction(s) || !variable_stack(s->run, &s->stack))
		return false;
	for (uint32_t at = 1; at + s->nargs <= s->room; at++)
		(agent.py.minor >= 13 ? look_function_first : look_function_last)(s, at);
	return s->found == 1;
}

/* Argument @n of what was found, or 0. */
static uint64_t argument(const struct search *s, bool known, uint64_t n)
{
	bool apart = s->object && !s->with_object;

	if (s->object && !n)
		return s->object;
	return known && n - apart < s->nargs ? slot(s, s->at + (uint32_t)(n - apart)) : 0;
}

int ccall_argument(struct shm_run *r, const struct ccall *call, uint64_t n, uint64_t *ret)
{
	struct search s = { .run = r, .call = call };
	bool known;

	if (agent_thread.allocating)
		return ABI_FAULT_VALUE_NONE;
	known = find(&s);
	*ret = argument(&s, known, n);
	if (*ret)
		object_lives(*ret);
	return *ret ? 0 : ABI_FAULT_VALUE_NONE;
}

int ccall_arguments(struct shm_run *r, const struct ccall *call, uint64_t *values, unsigned most)
{
	struct search s = { .run = r, .call = call };
	bool known = !agent_thread.allocating && find(&s);
	unsigned n = 0, all = s.nargs + (s.object && !s.with_object);

	for (; n < most && n < (known ? all : 1); n++) {
		values[n] = argument(&s, known, n);
		if (values[n])
			object_lives(values[n]);
	}
	return known ? (int)n : -1;
}

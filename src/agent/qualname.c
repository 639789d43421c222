/* SPDX-License-Identifier: MIT */
#include "agent/qualname.h"

#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/code.h"
#include "agent/modules.h"

/* The same in 3.9 and 3.10; qualname_usable() checks that. */
enum { OP_STORE_NAME = 90, OP_LOAD_CONST = 100, OP_LOAD_NAME = 101, OP_EXTENDED_ARG = 144, NESTING = 64, FILE_INPUT = 257 };
enum { CO_OPTIMIZED = 1 };

void qualname_release(void *name)
{
	agent_release(name);
}

static struct pyobj *attribute(struct pyobj *obj, const char *name)
{
	struct pyobj *value = agent.py.PyObject_GetAttrString(obj, name);

	if (!value)
		agent.py.PyErr_Clear();
	return value;
}

static struct pyobj *kept(struct pyobj *code)
{
	void *name = NULL;

	if (agent.py._PyCode_GetExtra(code, agent.qualname.index, &name))
		agent.py.PyErr_Clear();
	return name;
}

/* Store @name with @code, unless it has a name. */
static void keep(struct pyobj *code, struct pyobj *name)
{
	if (!name || kept(code))
		return;
	agent.py.Py_IncRef(name);
	if (agent.py._PyCode_SetExtra(code, agent.qualname.index, name)) {
		agent.py.PyErr_Clear();
		agent_release(name);
	}
}

static bool is_code(struct pyobj *obj)
{
	return agent_type(obj) == agent.py.PyCode_Type;
}

/* The instructions and constants of a code object during a search. */
struct body {
	struct pyobj *instrs, *consts;
	const unsigned char *bytes;
	ssize_t n, nconsts;
};

static bool open_body(struct pyobj *code, struct body *b)
{
	b->instrs = attribute(code, "co_code");
	b->consts = attribute(code, "co_consts");
	if (!b->instrs || !b->consts) {
		agent_release(b->instrs);
		agent_release(b->consts);
		return false;
	}
	b->bytes = (const unsigned char *)agent.py.PyBytes_AsString(b->instrs);
	b->n = agent.py.PyBytes_Size(b->instrs);
	b->nconsts = agent.py.PyTuple_Size(b->consts);
	return true;
}

static void close_body(struct body *b)
{
	agent_release(b->instrs);
	agent_release(b->consts);
}

/* Read the instruction at *@at and its argument, and advance *@at. */
static int next_instr(const struct body *b, ssize_t *at, unsigned *arg)
{
	int op = -1;

	*arg = 0;
	while (*at + 1 < b->n) {
		op = b->bytes[*at];
		*arg = *arg << 8 | b->bytes[*at + 1];
		*at += 2;
		if (op != OP_EXTENDED_ARG)
			return op;
	}
	return -1;
}

static struct pyobj *constant(const struct body *b, unsigned i)
{
	return i < (size_t)b->nconsts ? agent.py.PyTuple_GetItem(b->consts, i) : NULL;
}

static bool is_function(struct pyobj *code)
{
	struct pyobj *flags = attribute(code, "co_flags");
	bool is = flags && agent.py.PyLong_AsLong(flags) & CO_OPTIMIZED;

	agent_release(flags);
	return is;
}

/*
 * The qualified name of a class, a new reference, if @code is its body, which begins with __module__ = __name__ and
 * __qualname__ = the name; else NULL.
 */
static struct pyobj *class_name(struct pyobj *code)
{
	static const int begin[] = { OP_LOAD_NAME, OP_STORE_NAME, OP_LOAD_CONST, OP_STORE_NAME };
	struct pyobj *value = NULL, *names, *last;
	unsigned arg = 0;
	ssize_t at = 0;
	struct body b;

	if (is_function(code) || !open_body(code, &b))
		return NULL;
	names = attribute(code, "co_names");
	for (unsigned k = 0; k < 4; k++) {
		if (next_instr(&b, &at, &arg) != begin[k]) {
			value = NULL;
			break;
		}
		if (k == 2)
			value = constant(&b, arg);
	}
	last = value && names && arg < (size_t)agent.py.PyTuple_Size(names) ? agent.py.PyTuple_GetItem(names, arg) : NULL;
	if (last && !strcmp(code_text(last), "__qualname__"))
		agent.py.Py_IncRef(value);
	else
		value = NULL;
	agent_release(names);
	close_body(&b);
	return value;
}

/* Record the names of all code nested in @code: of a class its own, of a function the constant after its code. */
static void learn_nested(struct pyobj *code, unsigned depth)
{
	struct pyobj *inner = NULL, *name;
	struct body b;
	unsigned arg;
	int op;

	if (depth == NESTING || !open_body(code, &b))
		return;
	for (ssize_t at = 0; (op = next_instr(&b, &at, &arg)) >= 0;) {
		struct pyobj *value = op == OP_LOAD_CONST ? constant(&b, arg) : NULL;

		if (inner && value) {
			name = class_name(inner);
			keep(inner, name ? name : value);
			agent_release(name);
			learn_nested(inner, depth + 1);
		}
		inner = !inner && value && is_code(value) ? value : NULL;
	}
	close_body(&b);
	agent.py.PyErr_Clear();
}

const char *qualname_of(struct pyobj *code)
{
	struct pyobj *name = kept(code);

	if (name)
		return code_text(name);
	name = class_name(code);
	if (!name)
		name = attribute(code, "co_name");
	keep(code, name);
	agent_release(name);
	learn_nested(code, 0);
	name = kept(code);
	return name ? code_text(name) : code_name(code);
}

/* --- the functions that there are --------------------------------------------------------------------- */

static void each_function(struct pyobj *objects, void (*fn)(struct pyobj *function, struct pyobj *code))
{
	ssize_t n = agent.py.PyList_Size(objects);

	for (ssize_t k = 0; k < n; k++) {
		struct pyobj *obj = agent.py.PyList_GetItem(objects, k);
		struct pyobj *code = obj && agent_type(obj) == agent.py.PyFunction_Type ? agent.py.PyFunction_GetCode(obj) : NULL;

		if (code)
			fn(obj, code);
	}
}

static void learn_inside(struct pyobj *function, struct pyobj *code)
{
	(void)function;
	learn_nested(code, 0);
}

/* For code not found as nested code: the function's __qualname__, which a wrapping decorator may have changed. */
static void learn_itself(struct pyobj *function, struct pyobj *code)
{
	struct pyobj *name = kept(code) ? NULL : attribute(function, "__qualname__");

	keep(code, name);
	agent_release(name);
}

void qualname_learn(void)
{
	struct pyobj *gc = modules_get("gc");
	struct pyobj *objects = gc ? agent.py.PyObject_CallMethod(gc, "get_objects", NULL) : NULL;

	if (objects) {
		each_function(objects, learn_inside);
		each_function(objects, learn_itself);
	}
	agent_release(objects);
	agent_release(gc);
	agent.py.PyErr_Clear();
}

/* --- are instructions what they should be? ------------------------------------------------------------ */

static bool is_named(struct pyobj *code, const char *name)
{
	struct pyobj *found = kept(code);

	return found && !strcmp(code_text(found), name);
}

/* The number of code objects nested in @code, at any depth, with one of these names. */
static unsigned count_named(struct pyobj *code, const char *const names[], unsigned n)
{
	struct body b;
	unsigned count = 0;

	if (!open_body(code, &b))
		return 0;
	for (ssize_t k = 0; k < b.nconsts; k++) {
		struct pyobj *inner = constant(&b, (unsigned)k);

		if (!inner || !is_code(inner))
			continue;
		for (unsigned i = 0; i < n; i++)
			count += is_named(inner, names[i]);
		count += count_named(inner, names, n);
	}
	close_body(&b);
	return count;
}

static bool reads_specimen(void)
{
	static const char source[] = "class A:\n class B:\n  def f(self):\n   return lambda: 1\n"
				     "def g():\n class C:\n  pass\n def h(): pass\n global D\n class D:\n  pass\n";
	static const char *const names[] = { "A", "A.B", "A.B.f", "A.B.f.<locals>.<lambda>", "g", "g.<locals>.C", "g.<locals>.h", "D" };
	enum { NAMES = sizeof(names) / sizeof(*names) };
	struct pyobj *code = agent.py.Py_CompileString(source, "<dtap>", FILE_INPUT);
	bool good = false;

	if (code) {
		learn_nested(code, 0);
		good = count_named(code, names, NAMES) == NAMES;
	}
	agent_release(code);
	agent.py.PyErr_Clear();
	return good;
}

bool qualname_usable(void)
{
	const struct capi *py = &agent.py;

	if (!agent.qualname.asked) {
		agent.qualname.asked = true;
		if (!py->_PyEval_RequestCodeExtraIndex || !py->_PyCode_GetExtra || !py->_PyCode_SetExtra || !py->PyCode_Type ||
		    !py->PyFunction_Type)
			return false;
		agent.qualname.index = py->_PyEval_RequestCodeExtraIndex(qualname_release);
		agent.qualname.usable = agent.qualname.index >= 0 && reads_specimen();
	}
	return agent.qualname.usable;
}

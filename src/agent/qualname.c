/* SPDX-License-Identifier: MIT */
#include "agent/qualname.h"

#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/code.h"

/* The same in 3.9 and 3.10; qualname_usable() checks that. */
enum { OP_BUILD_CLASS = 71, OP_LOAD_CONST = 100, OP_MAKE_FUNCTION = 132, OP_EXTENDED_ARG = 144, NESTING = 64, FILE_INPUT = 257 };
enum { CO_OPTIMIZED = 1 };

static void release(void *name)
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

/* The qualified name of a class body, whose constant has only the last part; a new reference. */
static struct pyobj *class_name(struct pyobj *around, const char *outer, struct pyobj *code)
{
	const char *dot = !outer ? "" : is_function(around) ? ".<locals>." : ".", *name = code_name(code);
	size_t size = (outer ? strlen(outer) : 0) + strlen(dot) + strlen(name) + 1;
	char *text = malloc(size);
	struct pyobj *ret;

	if (!text)
		return NULL;
	strcpy(text, outer ? outer : "");
	strcat(text, dot);
	strcat(text, name);
	ret = agent.py.PyUnicode_FromString(text);
	free(text);
	return ret;
}

/* Record the names of all code nested in @code, whose own name is @outer; NULL: a module or other top-level code. */
static void learn_nested(struct pyobj *code, const char *outer, unsigned depth)
{
	struct pyobj *inner = NULL, *name;
	int op, before = -1, last = -1;
	bool is_class = false;
	struct body b;
	unsigned arg;

	if (depth == NESTING || !open_body(code, &b))
		return;
	for (ssize_t at = 0; (op = next_instr(&b, &at, &arg)) >= 0; before = last, last = op) {
		struct pyobj *value = op == OP_LOAD_CONST ? constant(&b, arg) : NULL;

		if (value && is_code(value)) {
			inner = value;
			is_class = last == OP_BUILD_CLASS || (before == OP_BUILD_CLASS && last != OP_LOAD_CONST);
		} else if (inner && value && last == OP_LOAD_CONST) {
			name = is_class ? class_name(code, outer, inner) : value;
			keep(inner, name);
			learn_nested(inner, code_text(name ? name : value), depth + 1);
			if (is_class)
				agent_release(name);
			inner = NULL;
		} else {
			inner = NULL;
		}
	}
	close_body(&b);
	agent.py.PyErr_Clear();
}

const char *qualname_of(struct pyobj *code)
{
	struct pyobj *name = kept(code);

	if (name)
		return code_text(name);
	name = attribute(code, "co_name");
	keep(code, name);
	learn_nested(code, is_function(code) ? code_name(code) : NULL, 0);
	agent_release(name);
	return code_name(code);
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
	struct pyobj *name = attribute(function, "__qualname__");

	learn_nested(code, name ? code_text(name) : NULL, 0);
	agent_release(name);
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
	struct pyobj *gc = agent.py.PyImport_ImportModule("gc");
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
				     "def g():\n class C:\n  pass\n def h(): pass\n";
	static const char *const names[] = { "A", "A.B", "A.B.f", "A.B.f.<locals>.<lambda>", "g", "g.<locals>.C", "g.<locals>.h" };
	enum { NAMES = sizeof(names) / sizeof(*names) };
	struct pyobj *code = agent.py.Py_CompileString(source, "<dtap>", FILE_INPUT);
	bool good = false;

	if (code) {
		learn_nested(code, NULL, 0);
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
		agent.qualname.index = py->_PyEval_RequestCodeExtraIndex(release);
		agent.qualname.usable = agent.qualname.index >= 0 && reads_specimen();
	}
	return agent.qualname.usable;
}

/* SPDX-License-Identifier: MIT */
/*
 * Names of types.
 *
 * A heap type stores its name as a str, a static type as a C string "module.name", of which type.__name__ is the part
 * after the last dot.  The offsets are measured on a specimen class and on two types that every interpreter has.
 */
#include "agent/typename.h"

#include <stdint.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/code.h"

/* Py_TPFLAGS_HEAPTYPE, Py_TPFLAGS_TYPE_SUBCLASS: the same in all versions. */
#define FLAG_HEAP (1ul << 9)
#define FLAG_IS_TYPE (1ul << 31)

/* After the object header and ob_size in every version so far; this is verified. */
static const char *builtin_name(struct pyobj *type)
{
	return ((const char **)(void *)type)[agent.py.type_slot + 2];
}

/* A class whose qualified name is not its name, or NULL. */
static struct pyobj *specimen(struct pyobj *metatype)
{
	const struct capi *py = &agent.py;
	struct pyobj *name = py->PyUnicode_FromString("dtap_name"), *bases = py->PyTuple_New(0), *space = py->PyDict_New();
	struct pyobj *qualified = py->PyUnicode_FromString("dtap_qualified_name"), *type = NULL;

	if (name && bases && space && qualified && !py->PyDict_SetItemString(space, "__qualname__", qualified))
		type = py->PyObject_CallFunctionObjArgs(metatype, name, bases, space, NULL);
	agent_release(qualified);
	agent_release(space);
	agent_release(bases);
	agent_release(name);
	return type;
}

void typename_measure(void)
{
	struct pyobj *none = agent_type(agent.py.none), *metatype = agent_type(none), *type, *size;

	if (!agent.py.PyType_GetFlags || strcmp(builtin_name(none), "NoneType") || strcmp(builtin_name(metatype), "type"))
		return;
	type = specimen(metatype);
	size = agent.py.PyObject_GetAttrString(metatype, "__basicsize__");
	if (type && size)
		agent.type_name_off = code_find_attr(type, agent.py.PyLong_AsLong(size), "__name__");
	agent.type_name_off = agent.type_name_off > 0 ? agent.type_name_off : 0;
	agent_release(size);
	agent_release(type);
	agent.py.PyErr_Clear();
}

const char *typename_of(struct pyobj *type)
{
	const char *name, *point;

	if (!agent.type_name_off || !(agent.py.PyType_GetFlags(agent_type(type)) & FLAG_IS_TYPE))
		return "<unknown>";
	if (agent.py.PyType_GetFlags(type) & FLAG_HEAP)
		return code_text(*(struct pyobj **)(void *)((char *)type + agent.type_name_off));
	name = builtin_name(type);
	point = strrchr(name, '.');
	return point ? point + 1 : name;
}

/* SPDX-License-Identifier: MIT */
/*
 * Names from code objects.
 *
 * The API has no cheap way from a code object to its file and name, and the layout changes with every version.  So it
 * is measured: a specimen is searched for the pointers that its attributes return.  If a name is found twice, or not at
 * all, the agent does nothing in that process.
 */
#include "agent/code.h"

#include "agent/agent.h"
#include "agent/capi.h"
#include "agent/qualname.h"

long code_find_attr(struct pyobj *object, long size, const char *attr)
{
	const struct capi *py = &agent.py;
	struct pyobj *value = py->PyObject_GetAttrString(object, attr);
	long found = -1;

	if (!value)
		return -1;
	for (long off = 2 * sizeof(void *); off + (long)sizeof(void *) <= size; off += sizeof(void *)) {
		if (*(struct pyobj **)((char *)object + off) != value)
			continue;
		if (found != -1) {
			found = -1;
			break;
		}
		found = off;
	}
	py->Py_DecRef(value);
	return found;
}

/* A code object whose file, name and qualified name are different strings. */
static struct pyobj *specimen(void)
{
	const struct capi *py = &agent.py;
	struct pyobj *plain = py->PyCode_NewEmpty("<dtap's file>", "dtap_qualified_name", 1);
	struct pyobj *name = py->PyUnicode_FromString("dtap_name");
	struct pyobj *none = py->PyTuple_New(0), *changes = py->PyDict_New();
	struct pyobj *replace = NULL, *code = NULL;

	if (plain && name && none && changes && !py->PyDict_SetItemString(changes, "co_name", name))
		replace = py->PyObject_GetAttrString(plain, "replace");
	if (replace)
		code = py->PyObject_Call(replace, none, changes);
	agent_release(replace);
	agent_release(changes);
	agent_release(none);
	agent_release(name);
	agent_release(plain);
	return code;
}

bool code_measure(void)
{
	const struct capi *py = &agent.py;
	struct pyobj *code = specimen();
	struct pyobj *type = NULL, *size = NULL;

	agent.code_file_off = agent.code_name_off = agent.code_qualname_off = -1;
	if (code)
		type = py->PyObject_GetAttrString(code, "__class__");
	if (type)
		size = py->PyObject_GetAttrString(type, "__basicsize__");
	if (size) {
		long bytes = py->PyLong_AsLong(size);

		agent.code_file_off = code_find_attr(code, bytes, "co_filename");
		agent.code_name_off = code_find_attr(code, bytes, "co_name");
		/* Before 3.11 there is none. */
		agent.code_qualname_off = code_find_attr(code, bytes, "co_qualname");
	}
	agent_release(size);
	agent_release(type);
	agent_release(code);
	py->PyErr_Clear();
	return agent.code_file_off > 0 && agent.code_name_off > 0;
}

const char *code_text(struct pyobj *str)
{
	const char *text = agent.py.PyUnicode_AsUTF8(str);

	if (__builtin_expect(text != NULL, 1))
		return text;
	agent.py.PyErr_Clear();
	return "<unknown>";
}

const char *code_file(struct pyobj *code)
{
	return code_text(*(struct pyobj **)((char *)code + agent.code_file_off));
}

const char *code_name(struct pyobj *code)
{
	return code_text(*(struct pyobj **)((char *)code + agent.code_name_off));
}

size_t code_size(struct pyobj *code)
{
	struct pyobj *size = agent.py.PyObject_GetAttrString(agent_type(code), "__basicsize__");
	long bytes = size ? agent.py.PyLong_AsLong(size) : 0;

	agent_release(size);
	return bytes > 0 ? (size_t)bytes : 0;
}

bool code_has_qualname(void)
{
	return agent.code_qualname_off > 0 || (agent.py.minor < 11 && qualname_usable());
}

const char *code_qualname(struct pyobj *code)
{
	if (agent.code_qualname_off < 0)
		return qualname_of(code);
	return code_text(*(struct pyobj **)((char *)code + agent.code_qualname_off));
}

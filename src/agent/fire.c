/* SPDX-License-Identifier: MIT */
/* The markers whose arguments are not all in a moment.  Only tracers outside the process have them. */
#include "agent/fire.h"

bool fire_is_cfunction(struct pyobj *callable)
{
	struct pyobj *type = agent_type(callable);

	return type == agent.py.PyCFunction_Type || type == agent.py.PyCMethod_Type ||
	       type == agent.py.PyMethodDescr_Type;
}

/* The name lives as long as *@held, which the caller releases. */
static const char *name_of(struct pyobj *obj, struct pyobj **held)
{
	*held = agent.py.PyObject_GetAttrString(obj, "__name__");
	if (*held)
		return code_text(*held);
	agent.py.PyErr_Clear();
	return "<unknown>";
}

void fire_cfunction(const struct moment *moment, struct pyobj *callable, bool entry)
{
	int saved = errno;
	struct pyobj *held;
	const char *name = name_of(callable, &held);

	(entry ? marker_cfunction__entry : marker_cfunction__return)(code_file(moment->code), code_name(moment->code),
								     moment->line(moment), name);
	agent_release(held);
	errno = saved;
}

void fire_exception(const struct moment *moment, struct pyobj *type)
{
	int saved = errno;
	struct pyobj *held;
	const char *name = name_of(type, &held);

	marker_exception__raise(name, code_file(moment->code), code_name(moment->code), moment->line(moment));
	agent_release(held);
	errno = saved;
}

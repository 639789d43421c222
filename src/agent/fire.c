/* SPDX-License-Identifier: MIT */
/* The markers whose arguments are not all in a moment. */
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

	enum want_index index = entry ? WANT_INDEX_cfunction__entry : WANT_INDEX_cfunction__return;
	const char *file = code_file(moment->code), *function = code_name(moment->code);
	int line = moment->line(moment);

	if (marker_mask & 1u << index)
		(entry ? marker_cfunction__entry : marker_cfunction__return)(file, function, line, name);
	if (engine_markers & 1u << index) {
		const uint64_t args[ENGINE_ARGS] = { (uint64_t)(uintptr_t)file, (uint64_t)(uintptr_t)function,
						     (uint64_t)(int64_t)line, (uint64_t)(uintptr_t)name };

		engine_fire(index, args, 1 | 2 | 8);
	}
	agent_release(held);
	errno = saved;
}

void fire_exception(const struct moment *moment, struct pyobj *type)
{
	int saved = errno;
	struct pyobj *held;
	const char *name = name_of(type, &held);

	const char *file = code_file(moment->code), *function = code_name(moment->code);
	int line = moment->line(moment);

	if (marker_wanted(exception__raise))
		marker_exception__raise(name, file, function, line);
	if (engine_wanted(exception__raise)) {
		const uint64_t args[ENGINE_ARGS] = { (uint64_t)(uintptr_t)name, (uint64_t)(uintptr_t)file,
						     (uint64_t)(uintptr_t)function, (uint64_t)(int64_t)line };

		engine_fire(WANT_INDEX_exception__raise, args, 1 | 2 | 4);
	}
	agent_release(held);
	errno = saved;
}

/* SPDX-License-Identifier: MIT */
/* The markers that have arguments in addition to a moment's. */
#include "agent/fire.h"

#include "agent/ccall.h"
#include "agent/typename.h"

bool fire_is_cfunction(struct pyobj *callable)
{
	struct pyobj *type = agent_type(callable);

	return type == agent.py.PyCFunction_Type || type == agent.py.PyCMethod_Type ||
	       type == agent.py.PyMethodDescr_Type;
}

/*
 * The name of a C function.  Its type is one of three of the interpreter, so __name__ runs no code of the program.  The
 * name is valid as long as *@held, which the caller releases.
 */
static const char *name_of(struct pyobj *function, struct pyobj **held)
{
	*held = agent.py.PyObject_GetAttrString(function, "__name__");
	if (*held)
		return code_text(*held);
	agent.py.PyErr_Clear();
	return "<unknown>";
}

struct pyobj *fire_exception_object(struct pyobj **type, struct pyobj **value, struct pyobj **traceback)
{
	enum { HEAP = 1 << 9, EXCEPTION = 1 << 30 };	/* Py_TPFLAGS_HEAPTYPE, Py_TPFLAGS_BASE_EXC_SUBCLASS */
	const struct capi *py = &agent.py;

	if (!*type || !py->PyType_GetFlags)
		return NULL;
	if (!(*value && py->PyType_GetFlags(agent_type(*value)) & EXCEPTION) && agent.engine.values &&
	    !(py->PyType_GetFlags(*type) & HEAP))
		py->PyErr_NormalizeException(type, value, traceback);
	return *value && py->PyType_GetFlags(agent_type(*value)) & EXCEPTION ? *value : NULL;
}

void fire_cfunction(const struct moment *moment, struct pyobj *callable, struct pyobj *first, bool entry)
{
	const bool has_offset = agent.py.minor >= 12;	/* else the moment has a frame */
	const struct ccall call = { .code = moment->code, .callable = callable, .first = first,
				    .at = has_offset ? moment->where : NULL, .frame = has_offset ? NULL : moment->where };
	int saved = errno;
	struct pyobj *held;
	const char *name = name_of(callable, &held);

	enum abi_marker index = entry ? ABI_MARKER_cfunction__entry : ABI_MARKER_cfunction__return;
	const char *file = code_file(moment->code), *function = code_name(moment->code);
	int line = moment->line(moment);

	if (agent.marker_mask & 1u << index)
		(entry ? marker_cfunction__entry : marker_cfunction__return)(file, function, line, name);
	if (agent.engine.markers & 1u << index) {
		const uint64_t args[ABI_MARKER_ARGS] = { (uint64_t)(uintptr_t)file, (uint64_t)(uintptr_t)function,
						     (uint64_t)(int64_t)line, (uint64_t)(uintptr_t)name };

		agent_thread.call = entry ? &call : NULL;
		engine_fire(index, args, MARKER_TEXTS_cfunction__entry);
		agent_thread.call = NULL;
	}
	agent_release(held);
	errno = saved;
}

typedef void marker_named(const char *name, const char *file, const char *function, int line);

/* A marker whose arguments are a name and those of a moment. */
static void fire_named(enum abi_marker index, marker_named *marker, const struct moment *moment, const char *name)
{
	int saved = errno;
	const char *file = code_file(moment->code), *function = code_name(moment->code);
	int line = moment->line(moment);

	if (agent.marker_mask & 1u << index)
		marker(name, file, function, line);
	if (agent.engine.markers & 1u << index) {
		const uint64_t args[ABI_MARKER_ARGS] = { (uint64_t)(uintptr_t)name, (uint64_t)(uintptr_t)file,
						     (uint64_t)(uintptr_t)function, (uint64_t)(int64_t)line };

		fire_values(NULL, moment->exception);
		engine_fire(index, args, MARKER_TEXTS_exception__raise);
		fire_values(NULL, NULL);
	}
	errno = saved;
}

void fire_exception(const struct moment *moment, struct pyobj *type, bool caught)
{
	fire_named(caught ? ABI_MARKER_exception__caught : ABI_MARKER_exception__raise,
		   caught ? marker_exception__caught : marker_exception__raise, moment, typename_of(type));
}

void fire_thread__finish(const struct moment *moment, const char *name)
{
	_Static_assert((int)MARKER_TEXTS_thread__finish == (int)MARKER_TEXTS_exception__raise, "fire_named()");
	fire_named(ABI_MARKER_thread__finish, marker_thread__finish, moment, name);
}

void fire_task__create(const struct fire_task *t)
{
	const uint64_t args[ABI_MARKER_ARGS] = { (uint64_t)(uintptr_t)t->name, (uint64_t)(uintptr_t)t->coroutine,
					     (uint64_t)(uintptr_t)t->task };
	int saved = errno;

	if (marker_wanted(task__create))
		marker_task__create(t->name, t->coroutine, t->task);
	if (engine_wanted(task__create))
		engine_fire(ABI_MARKER_task__create, args, MARKER_TEXTS_task__create);
	errno = saved;
}

void fire_task__step__begin(const struct fire_task *t)
{
	const uint64_t args[ABI_MARKER_ARGS] = { (uint64_t)(uintptr_t)t->name, (uint64_t)(uintptr_t)t->coroutine,
					     (uint64_t)(uintptr_t)t->task };
	int saved = errno;

	if (marker_wanted(task__step__begin))
		marker_task__step__begin(t->name, t->coroutine, t->task);
	if (engine_wanted(task__step__begin))
		engine_fire(ABI_MARKER_task__step__begin, args, MARKER_TEXTS_task__step__begin);
	errno = saved;
}

void fire_task__step__end(const struct fire_task *t, int how)
{
	const uint64_t args[ABI_MARKER_ARGS] = { (uint64_t)(uintptr_t)t->name, (uint64_t)(uintptr_t)t->coroutine,
					     (uint64_t)(uintptr_t)t->task, (uint64_t)how };
	int saved = errno;

	if (marker_wanted(task__step__end))
		marker_task__step__end(t->name, t->coroutine, t->task, how);
	if (engine_wanted(task__step__end))
		engine_fire(ABI_MARKER_task__step__end, args, MARKER_TEXTS_task__step__end);
	errno = saved;
}

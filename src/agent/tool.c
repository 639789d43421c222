/* SPDX-License-Identifier: MIT */
#include "agent/tool.h"

#include "agent/agent.h"

enum { OTHERS = 3 };		/* ids below are debuggers', coverage tools' and profilers' */

/* Call sys.monitoring.NAME(...), dropping the result. */
#define call(monitoring, name, ...) agent_dropped(agent.py.PyObject_CallMethod(monitoring, name, __VA_ARGS__))

struct pyobj *tool_monitoring(void)
{
	return agent.py.PySys_GetObject("monitoring");
}

static bool take(struct pyobj *monitoring, int id, const char *name)
{
	return call(monitoring, "use_tool_id", "is", id, name);
}

int tool_take(struct pyobj *monitoring, int first, const char *name)
{
	if (take(monitoring, first, name))
		return first;
	for (int id = OTHERS; id < TOOL_IDS; id++)
		if (id != first && take(monitoring, id, name))
			return id;
	for (int id = OTHERS - 1; id >= 0; id--)
		if (take(monitoring, id, name))
			return id;
	return -1;
}

void tool_free(struct pyobj *monitoring, int tool)
{
	call(monitoring, "set_events", "ii", tool, 0);
	call(monitoring, "free_tool_id", "i", tool);
}

int tool_event(struct pyobj *monitoring, const char *name)
{
	struct pyobj *events = agent.py.PyObject_GetAttrString(monitoring, "events");
	struct pyobj *value = events ? agent.py.PyObject_GetAttrString(events, name) : NULL;
	int number = value ? (int)agent.py.PyLong_AsLong(value) : 0;

	agent_release(value);
	agent_release(events);
	agent.py.PyErr_Clear();
	return number > 0 ? number : 0;
}

bool tool_call_back(struct pyobj *monitoring, int tool, int event, struct capi_method *method, struct pyobj *self)
{
	struct pyobj *callable = method ? agent.py.PyCFunction_NewEx(method, self, NULL) : agent_none();
	bool done = callable && call(monitoring, "register_callback", "iiO", tool, event, callable);

	agent_release(callable);
	agent.py.PyErr_Clear();
	return done;
}

bool tool_enable(struct pyobj *monitoring, int tool, int events)
{
	return call(monitoring, "set_events", "ii", tool, events);
}

void tool_restart(void)
{
	struct pyobj *monitoring = tool_monitoring();

	if (monitoring)
		call(monitoring, "restart_events", NULL);
}

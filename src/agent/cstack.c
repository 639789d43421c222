/* SPDX-License-Identifier: MIT */
#include "agent/cstack.h"

#include "agent/agent.h"

bool cstack_usable(void)
{
	const struct capi *py = &agent.py;

	return py->pthread_getattr_np && py->pthread_attr_getstack && py->pthread_attr_destroy && py->pthread_self;
}

static struct cstack find(void)
{
	char attr[256] __attribute__((aligned(16)));	/* pthread_attr_t: 56 bytes in every C library */
	struct cstack s = { 0 };
	size_t size = 0;

	if (!cstack_usable() || agent.py.pthread_getattr_np(agent.py.pthread_self(), attr))
		return s;
	if (agent.py.pthread_attr_getstack(attr, (void **)&s.low, &size))
		s.low = NULL;
	agent.py.pthread_attr_destroy(attr);
	s.high = s.low ? s.low + size : NULL;
	return s;
}

struct cstack cstack_bounds(void)
{
	if (!agent_thread.stack_asked) {
		agent_thread.stack_asked = true;
		agent_thread.stack = find();
	}
	return agent_thread.stack;
}

/* SPDX-License-Identifier: MIT */
/*
 * Finding method definitions.  Only fields that every version has are searched; a definition is recognised by its
 * function.
 */
#include "agent/methods.h"

#include "agent/modules.h"

static struct capi_method *definition_of(struct pyobj *fn)
{
	enum { HEAD_WORDS = 2 };	/* reference count and type; a debug build has two more */
	void **words = (void **)fn, *address = agent.py.PyCFunction_GetFunction(fn);

	for (int i = HEAD_WORDS; address && i < HEAD_WORDS + 3; i++) {
		struct capi_method *def = words[i];

		if (def && (uintptr_t)def % sizeof(void *) == 0 && (void *)def->fn == address)
			return def;
	}
	return NULL;
}

struct capi_method *methods_find(const char *module_name, const char *name)
{
	struct pyobj *module = modules_get(module_name);
	struct pyobj *fn = module ? agent.py.PyObject_GetAttrString(module, name) : NULL;
	struct capi_method *def = fn ? definition_of(fn) : NULL;

	agent_release(fn);
	agent_release(module);
	agent.py.PyErr_Clear();
	return def;
}

void methods_replace(struct method_replaced *r, capi_varargs *ours, bool on)
{
	capi_fastcall *fn = (capi_fastcall *)(void *)ours;

	if (!r->def)
		return;
	if (on && !r->in_chain) {
		r->former = (capi_varargs *)(void *)r->def->fn;
		r->def->fn = fn;
		r->in_chain = true;
	} else if (!on && r->in_chain && r->def->fn == fn) {
		r->def->fn = (capi_fastcall *)(void *)r->former;
		r->in_chain = false;
	}
}

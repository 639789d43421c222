/* SPDX-License-Identifier: MIT */
/*
 * import-find-load-start and -done: importlib's _find_and_load as called from C.
 *
 * The interpreter looks that function up in _frozen_importlib at each call, so it is replaced there by a C function,
 * which has no frame and is not in tracebacks.  importlib.import_module() calls it, too, and is recognised by the
 * function that it passes for nested imports: _gcd_import, where C passes __import__.  The audit event "import" is
 * raised by C before this call up to 3.14 and inside it from 3.15 on, so the start marker comes after it or before it
 * as the interpreter's own does.
 */
#include "agent/agent.h"

#include "agent/code.h"
#include "agent/engine.h"
#include "agent/modules.h"

static struct pyobj *find_and_load(struct pyobj *self, struct pyobj *const *args, ssize_t nargs);

static capi_fastcall find_and_load_sub;

static struct capi_method method_sub = { "_find_and_load", find_and_load_sub, CAPI_FASTCALL, NULL };
static struct capi_method method = { "_find_and_load", find_and_load, CAPI_FASTCALL, NULL };
static struct pyobj *load(struct pyobj *original, struct pyobj *gcd_import, struct pyobj *const *args, ssize_t nargs)
{
	bool from_c = nargs == 2 && args[1] != gcd_import && !agent_thread.busy;
	const char *name = from_c ? code_text(args[0]) : NULL;
	uint64_t words[ABI_MARKER_ARGS] = { (uint64_t)(uintptr_t)name };
	struct pyobj *module;

	if (from_c && marker_wanted(import__find__load__start))
		marker_import__find__load__start(name);
	if (from_c && engine_wanted(import__find__load__start))
		engine_fire(ABI_MARKER_import__find__load__start, words, MARKER_TEXTS_import__find__load__start);
	/* There should be two arguments; otherwise the original raises the exception. */
	module = agent.py.PyObject_CallFunctionObjArgs(original, nargs > 0 ? args[0] : NULL,
						       nargs > 1 ? args[1] : NULL,
						       nargs > 2 ? args[2] : NULL, NULL);
	if (from_c && marker_wanted(import__find__load__done))
		marker_import__find__load__done(name, module != NULL);
	words[1] = module != NULL;
	if (from_c && engine_wanted(import__find__load__done))
		engine_fire(ABI_MARKER_import__find__load__done, words, MARKER_TEXTS_import__find__load__done);
	return module;
}

static struct pyobj *find_and_load(struct pyobj *self, struct pyobj *const *args, ssize_t nargs)
{
	(void)self;
	return load(agent.import.original, agent.import.gcd_import, args, nargs);
}

/* @self: a dictionary with the functions of this interpreter. */
static struct pyobj *find_and_load_sub(struct pyobj *self, struct pyobj *const *args, ssize_t nargs)
{
	return load(agent.py.PyDict_GetItemString(self, "original"), agent.py.PyDict_GetItemString(self, "gcd_import"),
		    args, nargs);
}

static bool usable(void)
{
	return true;
}

/* Put the wrapper in place of @current.  What it has called before is kept: another thread may be inside. */
static void put_on(struct pyobj *importlib, struct pyobj *current)
{
	const struct capi *py = &agent.py;

	if (!agent.import.gcd_import)
		agent.import.gcd_import = py->PyObject_GetAttrString(importlib, "_gcd_import");
	if (!agent.import.wrapper && agent.import.gcd_import)
		agent.import.wrapper = agent_callable(&method);
	if (!agent.import.wrapper)
		return;
	if (agent.import.original != current) {
		agent.import.original = current;
		py->Py_IncRef(current);
	}
	agent.import.in_chain = !py->PyObject_SetAttrString(importlib, "_find_and_load", agent.import.wrapper);
}

/* Another tool, or agent, may have replaced the wrapper: that goes on calling it, and it only passes calls on. */
static unsigned update(unsigned wants)
{
	const struct capi *py = &agent.py;
	struct pyobj *importlib, *current;

	if (!!wants == agent.import.on)
		return wants;
	importlib = modules_get("_frozen_importlib");
	if (!importlib)
		return 0;
	current = py->PyObject_GetAttrString(importlib, "_find_and_load");
	if (current && wants && !agent.import.in_chain)
		put_on(importlib, current);
	else if (current && !wants && current == agent.import.wrapper)
		agent.import.in_chain = py->PyObject_SetAttrString(importlib, "_find_and_load", agent.import.original) < 0;
	agent.import.on = wants && agent.import.in_chain;
	agent_release(current);
	agent_release(importlib);
	return agent.import.on ? wants : 0;
}

#define NAME "_find_and_load"
#define KEY "dtap_import"

/* Make the wrapper and put it in place. */
static void wrap(struct pyobj *dict, struct pyobj *importlib, struct pyobj *current)
{
	struct pyobj *gcd_import = agent.py.PyObject_GetAttrString(importlib, "_gcd_import"), *self = agent.py.PyDict_New();
	struct pyobj *wrapper = NULL;

	if (gcd_import && self && !agent.py.PyDict_SetItemString(self, "original", current) &&
	    !agent.py.PyDict_SetItemString(self, "gcd_import", gcd_import))
		wrapper = agent.py.PyCFunction_NewEx(&method_sub, self, NULL);
	if (wrapper && !agent.py.PyDict_SetItemString(self, "wrapper", wrapper) &&
	    !agent.py.PyDict_SetItemString(self, "in_chain", wrapper) && !agent.py.PyDict_SetItemString(dict, KEY, self))
		agent.py.PyObject_SetAttrString(importlib, NAME, wrapper);
	agent_release(wrapper);
	agent_release(self);
	agent_release(gcd_import);
}

void hook_import_sub(struct pyobj *dict, bool on)
{
	struct pyobj *importlib = modules_get("_frozen_importlib");
	struct pyobj *current = importlib ? agent.py.PyObject_GetAttrString(importlib, NAME) : NULL;
	struct pyobj *self = agent.py.PyDict_GetItemString(dict, KEY);
	struct pyobj *wrapper = self ? agent.py.PyDict_GetItemString(self, "wrapper") : NULL;
	bool in_chain = self && agent.py.PyDict_GetItemString(self, "in_chain") != agent.py.none;

	/* As in the main interpreter. */
	if (current && on && !in_chain) {
		wrap(dict, importlib, current);
	} else if (current && !on && in_chain && current == wrapper) {
		agent.py.PyObject_SetAttrString(importlib, NAME, agent.py.PyDict_GetItemString(self, "original"));
		agent.py.PyDict_SetItemString(self, "in_chain", agent.py.none);
	}
	agent_release(current);
	agent_release(importlib);
}

const struct hook hook_import = {
	WANT_import__find__load__start | WANT_import__find__load__done,
	WANT_import__find__load__start | WANT_import__find__load__done, usable, update
};

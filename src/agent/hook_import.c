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

static struct pyobj *find_and_load(struct pyobj *self, struct pyobj *const *args, ssize_t nargs);

static struct capi_method method = { "_find_and_load", find_and_load, CAPI_FASTCALL, NULL };
static struct pyobj *find_and_load(struct pyobj *self, struct pyobj *const *args, ssize_t nargs)
{
	bool from_c = nargs == 2 && args[1] != agent.import.gcd_import && !agent_thread.busy;
	const char *name = from_c ? code_text(args[0]) : NULL;
	uint64_t words[ABI_MARKER_ARGS] = { (uint64_t)(uintptr_t)name };
	struct pyobj *module;

	(void)self;
	if (from_c && marker_wanted(import__find__load__start))
		marker_import__find__load__start(name);
	if (from_c && engine_wanted(import__find__load__start))
		engine_fire(ABI_MARKER_import__find__load__start, words, MARKER_TEXTS_import__find__load__start);
	/* There should be two arguments; otherwise the original raises the exception. */
	module = agent.py.PyObject_CallFunctionObjArgs(agent.import.original, nargs > 0 ? args[0] : NULL,
						       nargs > 1 ? args[1] : NULL,
						       nargs > 2 ? args[2] : NULL, NULL);
	if (from_c && marker_wanted(import__find__load__done))
		marker_import__find__load__done(name, module != NULL);
	words[1] = module != NULL;
	if (from_c && engine_wanted(import__find__load__done))
		engine_fire(ABI_MARKER_import__find__load__done, words, MARKER_TEXTS_import__find__load__done);
	return module;
}

static bool usable(void)
{
	return true;
}

static unsigned update(unsigned wants)
{
	const struct capi *py = &agent.py;
	struct pyobj *importlib, *current;

	if (!!wants == !!agent.import.wrapper)
		return wants;
	importlib = py->PyImport_ImportModule("_frozen_importlib");
	if (!importlib)
		return 0;
	current = py->PyObject_GetAttrString(importlib, "_find_and_load");
	if (!wants) {
		/* A later replacement by another tool keeps calling the wrapper, which then only passes calls on. */
		if (current == agent.import.wrapper)
			py->PyObject_SetAttrString(importlib, "_find_and_load", agent.import.original);
		agent_release(agent.import.wrapper);
		agent.import.wrapper = NULL;
	} else if (current) {
		if (!agent.import.gcd_import)
			agent.import.gcd_import = py->PyObject_GetAttrString(importlib, "_gcd_import");
		if (!agent.import.original) {
			agent.import.original = current;
			py->Py_IncRef(agent.import.original);
		}
		agent.import.wrapper = agent.import.gcd_import ? agent_callable(&method) : NULL;
		if (agent.import.wrapper && py->PyObject_SetAttrString(importlib, "_find_and_load", agent.import.wrapper) < 0) {
			agent_release(agent.import.wrapper);
			agent.import.wrapper = NULL;
		}
	}
	agent_release(current);
	agent_release(importlib);
	return agent.import.wrapper ? wants : 0;
}

const struct hook hook_import = { WANT_import__find__load__start | WANT_import__find__load__done, usable, update };

/* SPDX-License-Identifier: MIT */
/*
 * import-find-load-start and -done: importlib's _find_and_load as called from C.
 *
 * The interpreter calls that function by its name in _frozen_importlib, so a C function of that name comes
 * between.  It is left out of tracebacks and has no frame.  importlib.import_module() calls it too, and is told by
 * the function it hands over for nested imports: _gcd_import, where C hands over __import__.  The audit event
 * "import" is raised by C before this call up to 3.14 and inside it from 3.15 on, so the start marker comes after
 * it or before it as the interpreter's own does.
 */
#include "agent/agent.h"

#include "agent/code.h"
#include "agent/engine.h"

static struct pyobj *find_and_load(struct pyobj *self, struct pyobj *const *args, ssize_t nargs);

static struct capi_method method = { "_find_and_load", find_and_load, CAPI_FASTCALL, NULL };
/*
 * importlib's own functions; never released, since a thread may be inside.  @wrapper while it stands in for
 * @original.
 */
static struct pyobj *original, *gcd_import, *wrapper;

static struct pyobj *find_and_load(struct pyobj *self, struct pyobj *const *args, ssize_t nargs)
{
	bool from_c = nargs == 2 && args[1] != gcd_import && !agent_busy;
	const char *name = from_c ? code_text(args[0]) : NULL;
	uint64_t words[ENGINE_ARGS] = { (uint64_t)(uintptr_t)name };
	struct pyobj *module;

	(void)self;
	if (from_c && marker_wanted(import__find__load__start))
		marker_import__find__load__start(name);
	if (from_c && engine_wanted(import__find__load__start))
		engine_fire(WANT_INDEX_import__find__load__start, words, 1);
	/* Called with two arguments; with others, let the original complain. */
	module = agent.py.PyObject_CallFunctionObjArgs(original, nargs > 0 ? args[0] : NULL,
						       nargs > 1 ? args[1] : NULL,
						       nargs > 2 ? args[2] : NULL, NULL);
	if (from_c && marker_wanted(import__find__load__done))
		marker_import__find__load__done(name, module != NULL);
	words[1] = module != NULL;
	if (from_c && engine_wanted(import__find__load__done))
		engine_fire(WANT_INDEX_import__find__load__done, words, 1);
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

	if (!!wants == !!wrapper)
		return wants;
	importlib = py->PyImport_ImportModule("_frozen_importlib");
	if (!importlib)
		return 0;
	current = py->PyObject_GetAttrString(importlib, "_find_and_load");
	if (!wants) {
		/* Somebody who came between later keeps calling the wrapper, which only passes on. */
		if (current == wrapper)
			py->PyObject_SetAttrString(importlib, "_find_and_load", original);
		agent_release(wrapper);
		wrapper = NULL;
	} else if (current) {
		if (!gcd_import)
			gcd_import = py->PyObject_GetAttrString(importlib, "_gcd_import");
		if (!original) {
			original = current;
			py->Py_IncRef(original);
		}
		wrapper = gcd_import ? agent_callable(&method) : NULL;
		if (wrapper && py->PyObject_SetAttrString(importlib, "_find_and_load", wrapper) < 0) {
			agent_release(wrapper);
			wrapper = NULL;
		}
	}
	agent_release(current);
	agent_release(importlib);
	return wrapper ? wants : 0;
}

const struct hook hook_import = { WANT_import__find__load__start | WANT_import__find__load__done, usable, update };

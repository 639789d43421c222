/* SPDX-License-Identifier: MIT */
/*
 * Loading is what importlib's _load_unlocked() does with a built-in module.  The last part of it runs no Python, so that no
 * other thread comes between: once the module is in sys.modules, it is whole.
 */
#include "agent/modules.h"

#include <stdbool.h>
#include <stddef.h>

#include "agent/agent.h"

static const char *const names[] = { "gc", "atexit", "posix", "_thread", "_io", "_frozen_importlib", "builtins", "sys" };
enum { NAMES = sizeof(names) / sizeof(*names) };

static bool is_true(struct pyobj *value)
{
	struct pyobj *yes = agent.py.PyBool_FromLong(1);
	bool is = value == yes;

	agent_release(yes);
	agent_release(value);
	return is;
}

/* Is its import under way?  As CPython's import_ensure_initialized() asks. */
static bool is_being_made(struct pyobj *module)
{
	struct pyobj *spec = agent.py.PyObject_GetAttrString(module, "__spec__");
	bool is = spec && is_true(agent.py.PyObject_GetAttrString(spec, "_initializing"));

	agent_release(spec);
	agent.py.PyErr_Clear();
	return is;
}

/* What sys.modules has: a new reference, or NULL. */
static struct pyobj *listed(const char *name)
{
	struct pyobj *modules = agent.py.PySys_GetObject("modules"), *module = NULL, *key;

	if (modules && agent.py.PyDict_GetItemRef) {	/* without a GIL others may take it out */
		key = agent.py.PyUnicode_FromString(name);
		if (key)
			agent.py.PyDict_GetItemRef(modules, key, &module);
		agent_release(key);
	} else if (modules) {
		module = agent.py.PyDict_GetItemString(modules, name);
		if (module)
			agent.py.Py_IncRef(module);
	}
	agent.py.PyErr_Clear();
	return module;
}

/* Has some thread a lock of importlib's for it?  Each module that is being imported has one, from before it is in sys.modules. */
static bool is_locked(struct pyobj *importlib, const char *name)
{
	struct pyobj *locks = agent.py.PyObject_GetAttrString(importlib, "_module_locks");
	bool is = locks && agent.py.PyDict_GetItemString(locks, name);

	agent_release(locks);
	agent.py.PyErr_Clear();
	return is;
}

static bool is_late(const char *name)
{
	struct pyobj *module = listed(name), *importlib = module ? NULL : listed("_frozen_importlib");
	bool is = module ? is_being_made(module) : importlib && is_locked(importlib, name);

	agent_release(importlib);
	agent_release(module);
	return is;
}

/* ModuleSpec(@name, BuiltinImporter), as BuiltinImporter.find_spec() makes it. */
static struct pyobj *spec_of(const char *name, struct pyobj *importlib, struct pyobj *importer)
{
	struct pyobj *spec = agent.py.PyObject_CallMethod(importlib, "ModuleSpec", "sO", name, importer);
	struct pyobj *origin = agent.py.PyUnicode_FromString("built-in");

	if (!spec || !origin || agent.py.PyObject_SetAttrString(spec, "origin", origin)) {
		agent_release(spec);
		spec = NULL;
	}
	agent_release(origin);
	return spec;
}

/* What _init_module_attrs() gives to a built-in module. */
static bool describe(struct pyobj *module, struct pyobj *spec, struct pyobj *importer)
{
	struct pyobj *package = agent.py.PyUnicode_FromString("");
	bool done = package && !agent.py.PyObject_SetAttrString(module, "__loader__", importer) &&
		    !agent.py.PyObject_SetAttrString(module, "__package__", package) &&
		    !agent.py.PyObject_SetAttrString(module, "__spec__", spec);

	agent_release(package);
	return done;
}

/* A module of one phase is in sys.modules as soon as it is created (PEP 489). */
static bool finish(struct pyobj *imp, struct pyobj *module, const char *name)
{
	struct pyobj *modules = agent.py.PySys_GetObject("modules");

	return modules && agent_dropped(agent.py.PyObject_CallMethod(imp, "exec_builtin", "O", module)) &&
	       !agent.py.PyDict_SetItemString(modules, name, module);
}

static struct pyobj *make(const char *name, struct pyobj *importlib, struct pyobj *imp, bool *late)
{
	struct pyobj *importer = agent.py.PyObject_GetAttrString(importlib, "BuiltinImporter");
	struct pyobj *spec = importer ? spec_of(name, importlib, importer) : NULL, *module = NULL;

	/* Another thread may have come meanwhile. */
	*late = spec && is_late(name);
	if (spec && !*late)
		module = listed(name);
	if (spec && !*late && !module) {
		module = agent.py.PyObject_CallMethod(imp, "create_builtin", "O", spec);
		if (module && !(describe(module, spec, importer) && finish(imp, module, name))) {
			agent_release(module);
			module = NULL;
		}
	}
	agent_release(spec);
	agent_release(importer);
	agent.py.PyErr_Clear();
	return module;
}

/* *late: some thread is importing it. */
static struct pyobj *get(const char *name, bool *late)
{
	struct pyobj *module, *importlib, *imp;

	*late = is_late(name);
	module = *late ? NULL : listed(name);
	if (*late || module)
		return module;
	importlib = listed("_frozen_importlib");
	imp = listed("_imp");
	module = importlib && imp ? make(name, importlib, imp, late) : NULL;
	agent_release(imp);
	agent_release(importlib);
	return module;
}

struct pyobj *modules_get(const char *name)
{
	bool late;

	return get(name, &late);
}

enum modules modules_load(void)
{
	for (unsigned i = 0; i < NAMES; i++) {
		bool late;
		struct pyobj *module = get(names[i], &late);

		agent_release(module);
		if (!module)
			return late ? MODULES_LATE : MODULES_REFUSED;
	}
	return MODULES_READY;
}

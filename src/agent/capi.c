/* SPDX-License-Identifier: MIT */
/*
 * Resolving the C API.  The agent is not linked with any library and is loaded into every program of a preloaded tree,
 * so dlsym itself may be missing: before glibc 2.34 it is in a library that not every program loads.
 */
#include "agent/capi.h"

#include "abi/cpython.h"

/* Not the declaration of <dlfcn.h>: weak, and without a symbol version, so that musl and every glibc provide it. */
extern void *dlsym(void *handle, const char *name) __attribute__((weak));

static bool find(void *where, const char *name, bool needed)
{
	void *address = dlsym(NULL, name);	/* RTLD_DEFAULT */

	__builtin_memcpy(where, &address, sizeof(address));
	return address || !needed;
}

const char *capi_own_name(void)
{
	struct { const char *file; void *base; const char *name; void *address; } found = { 0 };	/* Dl_info */
	int (*dladdr)(const void *address, void *info) = NULL;

	return dlsym && find(&dladdr, "dladdr", true) && dladdr((const void *)capi_own_name, &found) ? found.file : NULL;
}

bool capi_is_begun(void)
{
	const char *(*version)(void) = NULL;

	return !dlsym || !find(&version, "Py_GetVersion", true) || *version();
}

static int minor_of(const char *version)
{
	int minor = 0;

	if (version[0] != '3' || version[1] != '.')
		return -1;
	for (version += 2; *version >= '0' && *version <= '9' && minor < 1000; version++)
		minor = 10 * minor + (*version - '0');
	return minor;
}

const char *capi_resolve(struct capi *api)
{
	void *reference = NULL;
	static const char no_api[] = "no CPython that exports its C API", too_old[] = "CPython before 3.9",
			  too_new[] = "a CPython newer than this agent", odd[] = "CPython of an unknown build";

	if (!dlsym || !find(&api->Py_GetVersion, "Py_GetVersion", true))
		return no_api;
	api->minor = minor_of(api->Py_GetVersion());
	if (api->minor < CPYTHON_FIRST)
		return too_old;
	api->version_hex = 0x03000000 | (uint32_t)api->minor << 16;
	if (api->minor > CPYTHON_LAST)
		return too_new;
#define NEED(type, name, params)			\
	if (!find(&api->name, #name, true))		\
		return odd;
#define MAY(type, name, params) find(&api->name, #name, false);
#include "agent/capi.def"
#undef NEED
#undef MAY
	if (!find(&api->none, "_Py_NoneStruct", true) || !find(&api->PyFrame_Type, "PyFrame_Type", true) ||
	    !find(&api->PyCFunction_Type, "PyCFunction_Type", true) ||
	    !find(&api->PyCMethod_Type, "PyCMethod_Type", true) ||
	    !find(&api->PyMethodDescr_Type, "PyMethodDescr_Type", true))
		return odd;
	find(&api->PyCode_Type, "PyCode_Type", false);
	find(&api->PyFunction_Type, "PyFunction_Type", false);
	find(&api->PyMethod_Type, "PyMethod_Type", false);
	find(&api->_PyRuntime, "_PyRuntime", false);
	/* PEP 703: an object begins with its thread, locks and two reference counts. */
	api->free_threaded = find(&reference, "_Py_DecRefShared", false) && reference;
	api->type_slot = api->free_threaded ? 3 : 1;
	if (api->free_threaded && (api->minor < CPYTHON_FREE_FIRST || api->minor > CPYTHON_FREE_LAST))
		return "a free-threaded CPython of another version than " CPYTHON_FREE_RANGE;
	find(&api->rseq_offset, "__rseq_offset", false);
	find(&api->rseq_size, "__rseq_size", false);
	if (api->minor >= 12 ? !api->PyEval_SetTraceAllThreads : !api->_PyEval_SetTrace || !api->_PyEval_SetProfile)
		return odd;
	return NULL;
}

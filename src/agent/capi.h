/* SPDX-License-Identifier: MIT */
/*
 * CPython's C API, resolved in the process by dlsym: no header of any Python version is used, so one object serves all
 * versions.  Types are opaque; the few layouts declared here are part of CPython's stable ABI.
 */
#ifndef AGENT_CAPI_H
#define AGENT_CAPI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct pyobj;
struct pythread;
struct pyinterp;

/* A callable's C function with the calling convention METH_FASTCALL. */
typedef struct pyobj *capi_fastcall(struct pyobj *self, struct pyobj *const *args, ssize_t nargs);
/* The same with METH_VARARGS. */
typedef struct pyobj *capi_varargs(struct pyobj *self, struct pyobj *args);
typedef int capi_audithook(const char *event, struct pyobj *args, void *data);
typedef int capi_tracefunc(struct pyobj *arg, struct pyobj *frame, int what, struct pyobj *value);
/* PEP 523.  The type of a frame depends on the version; it is only passed on. */
typedef struct pyobj *capi_evaluator(struct pythread *thread, void *frame, int throwing);

/* Called when a function is created or gets another code object: @event is PyFunction_EVENT_... */
typedef int capi_function_watcher(int event, struct pyobj *fn, struct pyobj *value);

enum capi_function_event { CAPI_FUNCTION_CREATE, CAPI_FUNCTION_DESTROY, CAPI_FUNCTION_MODIFY_CODE };

/* PyMethodDef */
struct capi_method {
	const char *name;
	capi_fastcall *fn;
	int flags;
	const char *doc;
};

/* PyMemAllocatorEx */
struct capi_allocator {
	void *ctx;
	void *(*malloc)(void *ctx, size_t size);
	void *(*calloc)(void *ctx, size_t n, size_t size);
	void *(*realloc)(void *ctx, void *at, size_t size);
	void (*free)(void *ctx, void *at);
};

/* PyMemAllocatorDomain */
enum capi_domain { CAPI_DOMAIN_RAW, CAPI_DOMAIN_MEM, CAPI_DOMAIN_OBJ };

#define CAPI_O 0x0008		/* METH_O */
#define CAPI_FASTCALL 0x0080	/* METH_FASTCALL */

/* The events of trace and profile functions: PyTrace_... */
enum capi_trace {
	CAPI_TRACE_CALL, CAPI_TRACE_EXCEPTION, CAPI_TRACE_LINE, CAPI_TRACE_RETURN, CAPI_TRACE_C_CALL,
	CAPI_TRACE_C_EXCEPTION, CAPI_TRACE_C_RETURN, CAPI_TRACE_OPCODE
};

struct capi {
	int minor;		/* 3.MINOR; 0: not a CPython that exports its API */
	uint32_t version_hex;	/* PY_VERSION_HEX, without the last 16 bits until sys.hexversion has been read */
	struct pyobj *none, *PyFrame_Type, *PyCFunction_Type, *PyCMethod_Type, *PyMethodDescr_Type;
	struct pyobj *PyCode_Type, *PyFunction_Type, *PyMethod_Type;	/* or NULL */
	const uint64_t *_PyRuntime;	/* likewise */
	unsigned type_slot;		/* ob_type in an object, in words */
	bool free_threaded;		/* a build without a GIL (PEP 703), whatever PYTHON_GIL says */
	const long *rseq_offset;	/* the C library's, from glibc 2.35 on, or NULL: see shm_use_rseq() */
	const unsigned *rseq_size;
#define NEED(type, name, params) type (*name) params;
#define MAY NEED
#include "agent/capi.def"
#undef NEED
#undef MAY
};

/*
 * Resolve the table.  NULL, or the reason for failure: the process is not CPython, does not export its API, or has a
 * version that the agent does not know.  Needs no interpreter, runs no Python.
 */
const char *capi_resolve(struct capi *api);

/*
 * May capi_resolve() be called?  False while the program is just putting its version's text together, at its start: then that is
 * empty, and what the process is cannot be told.  True where there is no CPython.
 */
bool capi_is_begun(void);

/* The path by which the loader has been asked for this object; NULL: not known. */
const char *capi_own_name(void);

#endif

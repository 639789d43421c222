/* SPDX-License-Identifier: MIT */
/*
 * CPython's C API as the agent finds it in the process, by dlsym: no header of any Python version is used, so
 * one object serves all.  Types are opaque; the few layouts declared here are part of CPython's stable ABI.
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

/* A callable's C function, called METH_FASTCALL. */
typedef struct pyobj *capi_fastcall(struct pyobj *self, struct pyobj *const *args, ssize_t nargs);
/* The same, called METH_VARARGS. */
typedef struct pyobj *capi_varargs(struct pyobj *self, struct pyobj *args);
typedef int capi_audithook(const char *event, struct pyobj *args, void *data);
typedef int capi_tracefunc(struct pyobj *arg, struct pyobj *frame, int what, struct pyobj *value);
/* PEP 523.  What a frame is differs by version; it is only passed on. */
typedef struct pyobj *capi_evaluator(struct pythread *thread, void *frame, int throwing);

/* PyMethodDef */
struct capi_method {
	const char *name;
	capi_fastcall *fn;
	int flags;
	const char *doc;
};

#define CAPI_O 0x0008		/* METH_O */
#define CAPI_FASTCALL 0x0080	/* METH_FASTCALL */

/* What a trace or profile function is told: PyTrace_... */
enum capi_trace {
	CAPI_TRACE_CALL, CAPI_TRACE_EXCEPTION, CAPI_TRACE_LINE, CAPI_TRACE_RETURN, CAPI_TRACE_C_CALL,
	CAPI_TRACE_C_EXCEPTION, CAPI_TRACE_C_RETURN
};

/* 3.8 has no PyFrame_GetCode; what comes after 3.15 is not known. */
enum { CAPI_MINOR_MIN = 9, CAPI_MINOR_MAX = 15 };

struct capi {
	int minor;		/* 3.MINOR; 0: no CPython that exports its API */
	uint32_t version_hex;	/* PY_VERSION_HEX, without the last 16 bits until sys.hexversion has been read */
	struct pyobj *none, *PyFrame_Type, *PyCFunction_Type, *PyCMethod_Type, *PyMethodDescr_Type;
	struct pyobj *PyCode_Type;	/* or NULL */
	const uint64_t *_PyRuntime;	/* likewise */
	const long *rseq_offset;	/* the C library's, from glibc 2.35 on, or NULL: see shm_use_rseq() */
	const unsigned *rseq_size;
#define NEED(type, name, params) type (*name) params;
#define MAY NEED
#include "agent/capi.def"
#undef NEED
#undef MAY
};

/*
 * Resolve the table.  NULL, or why not: this process is no CPython, none that exports its API, or one of a version
 * that the agent does not know.  Needs no interpreter, runs no Python.
 */
const char *capi_resolve(struct capi *api);

#endif

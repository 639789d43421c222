/* SPDX-License-Identifier: MIT */
/*
 * The agent's markers: provider "python", the eight of CPython's HOWTO with its argument order and types, in its
 * order (abi/agent.h), then those that only the agent has.  Each has one site and a semaphore that the kernel
 * raises while somebody listens.
 */
#ifndef AGENT_MARKER_H
#define AGENT_MARKER_H

#include <stdbool.h>

struct pyobj;

/*	name, parameters of the C function that fires it, arguments */
#define MARKERS(MARKER)										\
	MARKER(function__entry, (const char *file, const char *func, int line), file, func, line)	\
	MARKER(function__return, (const char *file, const char *func, int line), file, func, line)	\
	MARKER(line, (const char *file, const char *func, int line), file, func, line)			\
	MARKER(gc__start, (int generation), generation)							\
	MARKER(gc__done, (long collected), collected)							\
	MARKER(import__find__load__start, (const char *module), module)					\
	MARKER(import__find__load__done, (const char *module, int found), module, found)		\
	MARKER(audit, (const char *event, void *args), event, args)				\
	MARKER(cfunction__entry, (const char *file, const char *func, int line, const char *name),	\
	       file, func, line, name)								\
	MARKER(cfunction__return, (const char *file, const char *func, int line, const char *name),	\
	       file, func, line, name)								\
	MARKER(exception__raise, (const char *type, const char *file, const char *func, int line),	\
	       type, file, func, line)								\
	MARKER(thread__start, (const char *file, const char *func, int line), file, func, line)

/* A bit for each marker: WANT_function__entry ... */
enum want_index {
#define MARKER(name, ...) WANT_INDEX_##name,
	MARKERS(MARKER)
#undef MARKER
	WANT_COUNT
};

enum want {
#define MARKER(name, ...) WANT_##name = 1 << WANT_INDEX_##name,
	MARKERS(MARKER)
#undef MARKER
};

/* marker_NAME(...) fires the marker; whether somebody listens is the caller's to ask. */
#define MARKER(name, params, ...)		\
	extern unsigned short python_##name##_semaphore;	\
	void marker_##name params;
MARKERS(MARKER)
#undef MARKER

/*
 * marker_raised(): does a tracer's semaphore say so?  marker_wanted(): is it to be fired?  That is decided when
 * hooks are changed, by semaphores and by what tracers leave to the interpreter; marker_mask holds it, as enum
 * want.
 */
#define marker_raised(name) (__atomic_load_n(&python_##name##_semaphore, __ATOMIC_RELAXED) != 0)
#define marker_wanted(name) __builtin_expect((marker_mask & WANT_##name) != 0, 0)

extern unsigned marker_mask;		/* written with the GIL */

/* The markers somebody listens to, as bits of enum want. */
unsigned marker_raised_mask(void);

#endif

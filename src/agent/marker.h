/* SPDX-License-Identifier: MIT */
/*
 * The agent's markers: provider "python", the rows of abi/marker.def.  Each has one site and a semaphore that the
 * kernel raises while there is a listener.
 */
#ifndef AGENT_MARKER_H
#define AGENT_MARKER_H

#include <stdbool.h>

#include "abi/marker.h"

/* A bit for each marker: WANT_function__entry ... */
enum want {
#define ABI_MARKER(name, ...) WANT_##name = 1 << ABI_MARKER_##name,
#include "abi/marker.def"
#undef ABI_MARKER
};

/* Which of its arguments are strings, bit k for argument k: MARKER_TEXTS_function__entry ... */
enum marker_texts {
#define ABI_MARKER(name, ...) MARKER_TEXTS_##name = ABI_TEXTS(__VA_ARGS__),
#include "abi/marker.def"
#undef ABI_MARKER
};

/* A parameter of marker_NAME(), from the type of an argument. */
#define MARKER_PARAM(type, argument) MARKER_C_##type argument
#define MARKER_C_TEXT const char *
#define MARKER_C_INT int
#define MARKER_C_LONG long
#define MARKER_C_OBJECT void *

/*
 * marker_NAME(...) fires the marker; the caller checks for listeners.  A semaphore must be a symbol of its own in
 * section .probes, to which its note refers, and so is not a field of struct agent.
 */
#define ABI_MARKER(name, n, ...)				\
	extern unsigned short python_##name##_semaphore;	\
	void marker_##name(ABI_ARGS(n, MARKER_PARAM, __VA_ARGS__));
#include "abi/marker.def"
#undef ABI_MARKER

/*
 * For programs elsewhere (ABI_FIRE_AWAY in abi/segment.h), of provider "dtap".  It is fired for those whose fires the agent has,
 * if the semaphore is raised.
 */
extern unsigned short dtap_function_semaphore;
void marker_away(const char *file, const char *function, long line, const void *event);

/*
 * marker_raised(): is the semaphore raised?  marker_wanted(): must the marker be fired?  That is decided when hooks are
 * changed, from the semaphores and from what tracers leave to the interpreter, and stored in agent.marker_mask.
 */
#define marker_raised(name) (__atomic_load_n(&python_##name##_semaphore, __ATOMIC_RELAXED) != 0)
#define marker_wanted(name) __builtin_expect((agent.marker_mask & WANT_##name) != 0, 0)

/* The markers whose semaphores are raised, as bits of enum want. */
unsigned marker_raised_mask(void);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The sites of the agent's markers.  Each is a function of its own, so that inlining does not multiply sites and
 * operands are the registers of the calling convention.
 *
 * The nops are short.  A long one the kernel turns into a call of a page that it adds to the process, from Linux 6.18
 * on; a child of fork has the call and not the page, and dies at its first event (seen with 6.18.44).
 */
#include "agent/marker.h"

#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

#define MARKER(name, params, ...)								\
	unsigned short python_##name##_semaphore __attribute__((section(".probes")));		\
	__attribute__((noinline)) void marker_##name params					\
	{											\
		STAP_PROBEV(python, name, __VA_ARGS__);						\
	}
MARKERS(MARKER)
#undef MARKER

unsigned marker_mask;

unsigned marker_raised_mask(void)
{
	unsigned wants = 0;

#define MARKER(name, ...) wants |= marker_raised(name) ? WANT_##name : 0;
	MARKERS(MARKER)
#undef MARKER
	return wants;
}

/* SPDX-License-Identifier: MIT */
/*
 * The sites of the agent's markers.  Each is a function of its own, so that inlining does not multiply sites and
 * operands are the registers of the calling convention.
 *
 * A site is a nop of one byte.  One of five would cost a tracer a third less: since Linux 6.18 the kernel replaces
 * it by a call to a page of its own.  But that page is not copied by fork while the call is, so that on 6.18 a
 * child that comes to a marker dies.
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

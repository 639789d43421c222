/* SPDX-License-Identifier: MIT */
/*
 * The sites of the agent's markers.  Each is in a separate function, so that inlining does not multiply sites and the
 * operands are the registers of the calling convention.
 *
 * A site is a one-byte nop.  A five-byte nop would reduce the cost of an event by a third: since Linux 6.18 the kernel
 * replaces it by a call to a trampoline page.  But fork copies the call and not that page, so on 6.18 a child that
 * reaches a marker dies.
 */
#include "agent/marker.h"

#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

#define ARGUMENT(type, argument) argument
#define ABI_MARKER(name, n, ...)									\
	unsigned short python_##name##_semaphore __attribute__((section(".probes")));			\
	__attribute__((noinline)) void marker_##name(ABI_ARGS(n, MARKER_PARAM, __VA_ARGS__))		\
	{												\
		STAP_PROBEV(python, name, ABI_ARGS(n, ARGUMENT, __VA_ARGS__));				\
	}
#include "abi/marker.def"
#undef ABI_MARKER

unsigned short dtap_function_semaphore __attribute__((section(".probes")));
__attribute__((noinline)) void marker_away(const char *file, const char *function, long line, const void *event)
{
	STAP_PROBEV(dtap, function, file, function, line, event);
}

unsigned marker_raised_mask(void)
{
	unsigned wants = 0;

#define ABI_MARKER(name, ...) wants |= marker_raised(name) ? WANT_##name : 0;
#include "abi/marker.def"
#undef ABI_MARKER
	return wants;
}

/*
 * System calls that this process must not make, because it would not survive them (abi/calls.h).  None in the tracer.
 */
#ifndef DTAP_VM_CALLS_H
#define DTAP_VM_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/calls.h"

extern uint32_t vm_forbidden;	/* atomic */

static inline bool calls_may(enum abi_calls group)
{
	return !(__atomic_load_n(&vm_forbidden, __ATOMIC_RELAXED) & (uint32_t)group);
}

/* Forbid @groups as well, from now on. */
void calls_forbid(uint32_t groups);

#endif

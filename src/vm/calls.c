/* SPDX-License-Identifier: MIT */
#include "vm/calls.h"

uint32_t vm_forbidden;

void calls_forbid(uint32_t groups)
{
	__atomic_fetch_or(&vm_forbidden, groups, __ATOMIC_RELAXED);
}

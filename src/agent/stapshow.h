/* SPDX-License-Identifier: MIT */
/*
 * A value in the form of SystemTap's probes of Python functions (its tapset python3.stp), for existing scripts:
 *
 *	"a str", 0x2a, (0x1 0x2), [0x1 0x2], {"key":0x1 "other":0x2}, <NULL> where there is none, and
 *	<float object at 0x7f...> for everything else
 *
 * Text that does not fit is cut, like SystemTap's strings.  Otherwise as show.h.
 */
#ifndef AGENT_STAPSHOW_H
#define AGENT_STAPSHOW_H

#include <stdint.h>

#include "abi/segment.h"

struct shm_run;

int64_t stapshow_object(struct shm_run *r, uint64_t addr, char *dst, uint32_t size);

/* "name=value" for the function's variables, separated by blanks; @which: enum abi_variables. */
int64_t stapshow_variables(struct shm_run *r, uint64_t which, char *dst, uint32_t size);

#endif

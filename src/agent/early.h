/* SPDX-License-Identifier: MIT */
/*
 * The audit hook of an agent that is there before the interpreter is initialised.
 *
 * PySys_AddAuditHook() may be called that early ("Audit hooks"), and takes its entry from the raw allocator.  A program
 * with PYTHONMALLOC=debug, PYTHONDEVMODE or -X dev gets another raw allocator afterwards, by which CPython releases the
 * entry at its end: it would crash.  So the entry is released here by the allocator that it is from.
 */
#ifndef AGENT_EARLY_H
#define AGENT_EARLY_H

#include <stdbool.h>

#include "agent/capi.h"

/* Add the hook.  Before the interpreter is initialised, in the process's only thread.  False: it was not added. */
bool early_add_hook(capi_audithook *hook);

/* An audit event of the hook. */
void early_event(const char *event);

#endif

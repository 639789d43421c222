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

/*
 * The calls before the agent is set up, on CPythons whose frames are objects (up to 3.10): 3.9 makes some 2,300 calls and
 * returns before the program's first.  Layouts are not measured yet, and no object may be made: the evaluator's pointer is
 * set, and each call is noted with its code object, line and time.  When the programs of tracers are there they run for
 * what was noted.
 *
 * early_watch(): at an audit event before the interpreter is initialised; does nothing if that is not possible, or done.
 * early_stop(): takes no more notes.  early_replay(): runs the programs, and forgets.  The last three with the GIL.
 */
void early_watch(void);
void early_stop(void);
void early_replay(void);
void early_forget(void);

#endif

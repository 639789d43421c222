/* SPDX-License-Identifier: MIT */
/*
 * The modules that the agent uses: all are built into the interpreter.
 *
 * The agent does not import them.  It works in threads of the program, in the midst of what they do, which may be an import: one
 * more import below that would wait for a lock that its own thread has, and up to 3.11 delete what importlib has noted of the
 * thread, of which the program would die (CPython's issue 91351).  It would also call a builtins.__import__ of the program's.
 */
#ifndef AGENT_MODULES_H
#define AGENT_MODULES_H

#include "agent/capi.h"

/*
 * The module @name of the interpreter that this thread is in; if that has not loaded it, it is loaded as importlib does, without its
 * locks.  A new reference; NULL: not now, since some thread is importing it, or never.  With the GIL; no exception is set before or
 * after.
 */
struct pyobj *modules_get(const char *name);

/*
 * Load those that the agent uses in the main interpreter, so that nothing is loaded when hooks are installed.  The same.  LATE: not
 * now, since some thread is importing one of them; REFUSED: one cannot be loaded.
 */
enum modules { MODULES_READY, MODULES_LATE, MODULES_REFUSED };

enum modules modules_load(void);

#endif

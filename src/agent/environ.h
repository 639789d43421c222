/* SPDX-License-Identifier: MIT */
/*
 * The agent's variables in the environment.  They are hidden from os.environ, where they could confuse a program, and
 * stay in C's environ, which subprocesses inherit unless the program passes them another one.
 */
#ifndef AGENT_ENVIRON_H
#define AGENT_ENVIRON_H

#include <stdbool.h>

/*
 * At the start, before other constructors: if the process was held at its exec (ABI_AGENT_HELD), take that variable and the
 * agent out of environ.
 */
void environ_take_held(void);

/*
 * At the start, too: if this object was loaded by a path in /proc (ABI_AGENT_LENT), the program is under another root.  Take that
 * path out of LD_PRELOAD, or the blanks by which the tracer has replaced it.
 */
void environ_take_lent(void);

/* The tracer's address, of either variable, or NULL. */
const char *environ_address(void);

/* Was the process held at its exec? */
bool environ_is_held(void);

/* With the GIL.  Takes DTAP_AGENT, and the agent from LD_PRELOAD, out of os.environ; may leave an exception. */
void environ_hide(void);

#endif

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
 * As early: if a tracer has lent this object (ABI_AGENT_LENT), or brought it to another root, take it, or the blanks that were left of
 * it, out of environ: its path is soon that of nothing.
 */
void environ_take_lent(void);

/* The tracer's address, of either variable, or NULL. */
const char *environ_address(void);

/* Was the process held at its exec? */
bool environ_is_held(void);

/* With the GIL.  Takes DTAP_AGENT, and the agent from LD_PRELOAD, out of os.environ; may leave an exception. */
void environ_hide(void);

#endif

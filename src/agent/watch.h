/* SPDX-License-Identifier: MIT */
/*
 * The agent's thread: it waits for tracers and changes the hooks.  It is there while there is a channel, a hook, or
 * DTAP_AGENT_POLL=1, and sleeps unless something comes.
 */
#ifndef AGENT_WATCH_H
#define AGENT_WATCH_H

#include <stdbool.h>

/* Have the thread running and awake.  Any thread, without the GIL or with it.  0 or -errno. */
int watch_start(void);
/* With the GIL: have it called at fork and at the end of the interpreter.  False leaves an exception. */
bool watch_register(void);
/* Has the end of the interpreter begun? */
bool watch_closing(void);
/* Foreign listeners are to be looked for every 100 ms. */
void watch_poll(void);

#endif

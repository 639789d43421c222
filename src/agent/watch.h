/* SPDX-License-Identifier: MIT */
/*
 * The agent's thread: it waits for tracers and changes the hooks.  It exists while there is a channel, a hook, or
 * DTAP_AGENT_POLL=1, and sleeps until something happens.
 */
#ifndef AGENT_WATCH_H
#define AGENT_WATCH_H

#include <stdbool.h>

/* Start the thread or wake it.  Any thread may call this, with or without the GIL.  0 or -errno. */
int watch_start(void);
/* With the GIL: register callbacks for fork and for the end of the interpreter.  False leaves an exception. */
bool watch_register(void);
/*
 * Does the agent's thread ask the main thread to do something, since it must not take the GIL itself?  watch_answer(), with the
 * GIL: do it now; the caller waits for that thread, and runs no Python meanwhile.
 */
bool watch_asks(void);
void watch_answer(void);
/*
 * Before the set-up, after watch_start(): if this is the main thread, wait until the interpreter's end cannot overtake the agent's
 * thread any more.  Not where this thread has the dynamic loader's lock.
 */
void watch_hold_main_thread(void);
/* Is this the child of a fork whose functions, registered with os.register_at_fork(), have yet to be called? */
bool watch_is_in_fork(void);
/* Has the end of the interpreter begun? */
bool watch_closing(void);
/* Look for foreign listeners every 100 ms. */
void watch_poll(void);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Asking for sessions when the interpreter starts (abi/ask.h).
 */
#ifndef DTAP_AGENT_ASK_H
#define DTAP_AGENT_ASK_H

#include <stdbool.h>

/*
 * At the main interpreter's first safe point outside of any frame, with the GIL: load the agents of the tracers that want this
 * process, and wait until their hooks are installed; ABI_ASK_MS at most.  Where no session listens, this is one failed open
 * for root and two for others.
 */
void ask_sessions(void);

/* Does a session of root's listen, or has one?  One failed open if not. */
bool ask_is_possible(void);

#endif

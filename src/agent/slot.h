/* SPDX-License-Identifier: MIT */
/*
 * A thread's place for a trace function, or for a profile function.
 *
 * There is one of each in a thread, and a program may want it, before the agent or while it is there.  The agent's
 * function then stands in it, with the program's object beside, which sys.gettrace() returns, and calls the
 * program's function in turn.  What the program sets later is noticed, and treated alike.
 */
#ifndef AGENT_SLOT_H
#define AGENT_SLOT_H

#include "agent/agent.h"

enum slot_kind { SLOT_TRACE, SLOT_PROFILE };

/*
 * With the GIL, in the main interpreter, no exception set.  slot_measure() needs a thread whose slot the program
 * does not use: the agent's own, or any at the start; the others call it at first.  slot_install() puts @fn into
 * the slots of all threads; called again it does the same for slots that have got away.  False, and the reason
 * with agent_why(), when it cannot be done.  slot_remove() leaves every slot as the program wants it; threads that
 * this version cannot do it for do it themselves at their next event.  slot_adopt() is for the calling thread.
 */
bool slot_measure(enum slot_kind kind, capi_tracefunc *fn);
bool slot_install(enum slot_kind kind, capi_tracefunc *fn);
void slot_remove(enum slot_kind kind);
void slot_adopt(enum slot_kind kind);

/* An audit event tells that C code is about to set one.  True: slot_install() again, soon. */
bool slot_displaced(const char *event);

/* The rest of an event after the agent's part: the program's function, if it has one. */
int slot_pass(enum slot_kind kind, struct pyobj *arg, struct pyobj *frame, int what, struct pyobj *value);

#endif

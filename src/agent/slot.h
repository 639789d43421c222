/* SPDX-License-Identifier: MIT */
/*
 * A thread's slot for a trace function, or for a profile function.
 *
 * A thread has one of each, and the program may use it, too, before the agent or later.  Then the agent's function is
 * in the slot and calls the program's function; the program's object, which sys.gettrace() returns, stays.  A function
 * that the program sets later is noticed and handled in the same way.
 */
#ifndef AGENT_SLOT_H
#define AGENT_SLOT_H

#include "agent/agent.h"

/*
 * SLOT_FUNCTION(name, below) is a capi_tracefunc @name for a slot: it goes to name##_event(), of the same type.  @below:
 * slot_below_trace or slot_below_profile.  Before it there is a link, for the agents of other builds (slot.c).
 */
#define SLOT_LINK_MAGIC "dtap: slot link1"
enum { SLOT_LINK_AT_BELOW = sizeof(SLOT_LINK_MAGIC) - 1, SLOT_LINK_BYTES = 32 };
#if defined(__x86_64__)
#define SLOT_GO_TO "jmp "
#elif defined(__aarch64__)
#define SLOT_GO_TO "b "
#endif
#define SLOT_FUNCTION(name, below)							\
	capi_tracefunc name, name##_event;						\
	__asm__(".pushsection .text\n"							\
		".balign 64\n"								\
		"1:\t.ascii \"" SLOT_LINK_MAGIC "\"\n"					\
		"\t.long " #below " - 1b, 0, 0, 0\n"					\
		".globl " #name "\n.hidden " #name "\n.type " #name ", %function\n"	\
		#name ":\t" SLOT_GO_TO #name "_event\n"				\
		".size " #name ", . - " #name "\n"					\
		".popsection")
capi_tracefunc **slot_below_trace(struct pythread *thread);
capi_tracefunc **slot_below_profile(struct pythread *thread);

/*
 * With the GIL, in the main interpreter, no exception set.  slot_measure() needs a thread whose slot the program does
 * not use: the agent's own, or any at the start; slot_install() calls it first.  slot_install() puts @fn into the slots
 * of all threads; call it again for slots that the program has overwritten.  @fn: made by SLOT_FUNCTION.  False, with the
 * reason in agent_why(): not possible.  slot_remove() restores every slot for the program; where this version cannot do that for another thread,
 * the thread does it at its next event.  slot_adopt() is slot_install() for the calling thread.
 */
bool slot_measure(enum slot_kind kind, capi_tracefunc *fn);
bool slot_install(enum slot_kind kind, capi_tracefunc *fn);
void slot_remove(enum slot_kind kind);
void slot_adopt(enum slot_kind kind);

/* At an audit event: is C code about to set one?  If true, slot_install() must be called again soon. */
bool slot_displaced(const char *event);

/* Has the program a function of its own in the slot of the calling thread? */
bool slot_is_programs(enum slot_kind kind);

/* Pass an event on to the program's function, if there is one, after the agent's part. */
int slot_pass(enum slot_kind kind, struct pyobj *arg, struct pyobj *frame, int what, struct pyobj *value);

#endif

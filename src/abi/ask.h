/*
 * How a Python that starts asks for sessions.
 *
 * The agent that "dtap agent install" has put into an interpreter connects, before the program's first line, to sockets
 * of type SOCK_SEQPACKET whose names in the abstract namespace everybody can compute (ABI_ASK_NAME).  Each session that is
 * about processes which nobody has named listens on the first free one of its user; the agent tries root's, and its own
 * user's.  It sends nothing: the kernel says which process it is, and the tracer decides by that alone.
 *
 *	not for this process	the tracer closes the connection
 *	for it			struct abi_answer with the files of the tracer's own agent (SCM_RIGHTS): for glibc, and for
 *				musl if there is one.  The process loads it and passes the connection to its entry point; it is a
 *				channel from then on, as one with a word that is proved (abi/agent.h)
 *	has its agent already	the tracer closes the connection when the hooks are installed
 *
 * The agent waits ABI_ASK_MS for all of it; then the program goes on, and the hooks come later.  So this protocol is the only
 * thing that an installed agent and a tracer must agree about, and its version is part of the names.
 *
 * Anybody can bind such a name.  The agent leaves a socket whose creator is neither root nor its own user alone.
 */
#ifndef DTAP_ABI_ASK_H
#define DTAP_ABI_ASK_H

#include <stdint.h>

/* With the user's id and the slot. */
#define ABI_ASK_NAME "dtap-ask-1-%u-%u"

enum { ABI_ASK_SLOTS = 32, ABI_ASK_MS = 100 };

/*
 * The second argument of agent_entry(): calls that are forbidden (abi/calls.h), and how many milliseconds the caller, who is
 * in no frame of the main interpreter and holds the GIL, is to wait for the tracer; 0: the caller may be anywhere.
 */
enum { ABI_ENTRY_CALLS = 0xffff, ABI_ENTRY_WAIT_SHIFT = 16 };

struct abi_answer {
	uint32_t calls;		/* that the agent must not make */
};

_Static_assert(sizeof(struct abi_answer) == 4, "the same for every compiler");

#endif

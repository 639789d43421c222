/*
 * How a Python that starts asks for sessions.
 *
 * Each session that is about processes which nobody has named listens on a socket of type SOCK_SEQPACKET in its user's folder
 * (ABI_ASK_ROOT, ABI_ASK_USER).  The agent that "dtap agent install" has put into an interpreter, and one that a process has
 * brought since it was held at its exec (target/starts.h), connects, before the program's first line, to those in root's folder,
 * and in its own user's.  It sends nothing: the kernel says which process it is, and the
 * tracer decides by that alone.
 *
 *	not for this process	the tracer closes the connection
 *	for it			struct abi_answer with the files of the tracer's own agent (SCM_RIGHTS): for glibc, and for
 *				musl if there is one.  The process loads it and passes the connection to its entry point; it is a
 *				channel from then on, as one with a word that is proved (abi/agent.h)
 *	has its agent already	the tracer closes the connection when the hooks are installed
 *
 * The agent waits ABI_ASK_MS for all of it; then the program goes on, and the hooks come later.  So this protocol is the only
 * thing that an installed agent and a tracer must agree about, and its version is part of the sockets' names.
 *
 * Whom a Python believes: the folder is guarded (base/guarded.h), so its sockets were made by root or by the program's own user;
 * the listener is that user by the kernel's word; and the object is a file that only that user or root can write.  A program
 * with rights that its user has not (set-uid, capabilities, not dumpable) believes root alone.  Names in the abstract namespace
 * would not do: they belong to whoever shares the network namespace, a container's root for one.
 */
#ifndef DTAP_ABI_ASK_H
#define DTAP_ABI_ASK_H

#include <stdint.h>

#define ABI_ASK_ROOT "/run/dtap"
#define ABI_ASK_USER "/run/user/%u/dtap"
/*
 * And the last digits of the name in the tracer's address (abi/agent.h), so that a process that has brought that tracer's agent
 * asks the others alone.
 */
#define ABI_ASK_NAME "ask-1-"

enum { ABI_ASK_PATH = 40, ABI_ASK_SESSIONS = 32, ABI_ASK_MS = 100, ABI_ASK_DIGITS = 16 };

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

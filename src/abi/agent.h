/*
 * What the tracer and the agent in a traced process say to each other.
 *
 * A channel is a connected AF_UNIX socket of type SOCK_SEQPACKET; each packet is one struct abi_agent_msg.  A process
 * can have several, one for each tracer.  When one end closes it, or dies, the other knows: the agent then takes
 * away what this tracer alone wanted.  There are two ways to get one:
 *
 * - A program started by the tracer has the agent in LD_PRELOAD and, in the environment variable DTAP_AGENT, the
 *   name of a socket of the abstract namespace (without the leading NUL) on which the tracer listens.  The agent
 *   connects, in this process and in each that is forked or executed from it.
 * - In a running process the tracer makes a socket pair, loads the object, and has one thread call the object's
 *   ELF entry point, agent_entry(fd).  So is a second tracer introduced to an agent that is there already.  An agent that
 *   takes the channel moves it to another number; one that does not closes it.  A descriptor that is still open when
 *   agent_entry() has returned is closed by the tracer, if that lives.
 *
 * Both ends look at the other's credentials (SO_PEERCRED): the same user, or root.
 */
#ifndef DTAP_ABI_AGENT_H
#define DTAP_ABI_AGENT_H

#include <stdint.h>

#define ABI_AGENT_ENV "DTAP_AGENT"

enum { ABI_AGENT_WHY = 200, ABI_AGENT_NAME = 48 };

/*
 * The version of the messages and of the order of markers (ABI_AGENT_MARKERS, agent/marker.h), apart from that of the
 * segment (ABI_VERSION in abi/record.h): with an agent whose programs are another version's the kernel place still
 * works.  Raise it as that.
 */
enum { ABI_AGENT_VERSION = 2 };

enum abi_agent_kind {
	/* From the agent. */
	ABI_AGENT_HELLO = 1,	/* first of all, once the agent is in working order, or with ABI_AGENT_OFF and @why */
	ABI_AGENT_STATE,	/* the answer to LOOK and SEGMENT, with its seq; @supplied is what is hooked now */
	/* From the tracer. */
	ABI_AGENT_LOOK,		/* look at the semaphores and at @leave now, install or remove hooks, answer; @why is
				 * the name of the socket where children of fork are to make a channel of their own, or empty */
	ABI_AGENT_SEGMENT,	/* with three descriptors (SCM_RIGHTS): image and data of abi/segment.h, and the socket
				 * that wakes the tracer.  What its programs want counts from the next LOOK on; it goes
				 * with the channel.  Answered by STATE, whose @why is empty when all is well */
};

/*
 * An agent that comes with its program says HELLO before the program's first line runs, and waits for the LOOK that
 * answers it, ABI_AGENT_WAIT_MS at most.  A marker that every tracer leaves is not supplied.
 */
enum { ABI_AGENT_WAIT_MS = 500 };

/* The markers that an interpreter may have itself; in agent/marker.h, whose order gives the bits, they come first. */
#define ABI_AGENT_MARKERS(MARKER)								\
	MARKER(function__entry) MARKER(function__return) MARKER(line) MARKER(gc__start) MARKER(gc__done)	\
	MARKER(import__find__load__start) MARKER(import__find__load__done) MARKER(audit)

enum abi_agent_phase { ABI_AGENT_READY = 1, ABI_AGENT_OFF };

/* Is the process in another pid namespace than the tracer?  Then their numbers say nothing to each other. */
enum abi_agent_pids { ABI_AGENT_SAME_PIDS, ABI_AGENT_OTHER_PIDS };

struct abi_agent_msg {
	uint16_t version;	/* ABI_AGENT_VERSION; another one: close the channel */
	uint16_t kind;		/* enum abi_agent_kind */
	uint32_t seq;		/* of a LOOK, repeated in its answer */
	uint32_t pid;		/* the agent's, as its own pid namespace calls it; SEGMENT: as the tracer's does */
	uint32_t phase;		/* HELLO, STATE: enum abi_agent_phase; SEGMENT: enum abi_agent_pids */
	uint32_t python;	/* HELLO: the interpreter's PY_VERSION_HEX */
	uint32_t can;		/* HELLO: the markers it could supply, a bit each in the order of agent/marker.h */
	uint32_t supplied;	/* STATE: the markers it supplies now */
	uint32_t leave;		/* LOOK: markers not to be supplied although their semaphores may be up: this tracer
				   has them from the interpreter's own sites */
	char why[ABI_AGENT_WHY];	/* OFF, or what is missing in @supplied and why; NUL-terminated */
};

_Static_assert(sizeof(struct abi_agent_msg) == 32 + ABI_AGENT_WHY, "the same for every compiler");

#endif

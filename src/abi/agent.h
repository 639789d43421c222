/*
 * The protocol between the tracer and the agent in a traced process.
 *
 * A channel is a connected AF_UNIX socket of type SOCK_SEQPACKET; each packet is one struct abi_agent_msg.  A process
 * can have several, one for each tracer.  When one end closes it or dies, the other end is notified; the agent then
 * removes what only this tracer needed.  There are three ways to get one:
 *
 * - A program started by the tracer has the agent in LD_PRELOAD and, in the environment variable DTAP_AGENT, the
 *   address of a socket on which the tracer listens: "dtap-PID-NAME:WORD".  The part before the colon is a name in
 *   the abstract namespace (without the leading NUL), with the tracer's process id; the part after it is a secret
 *   word.  The agent connects, in this process and in each that is forked or executed from it.
 * - In a running process the tracer makes a socket pair, loads the object, and has one thread call the object's
 *   ELF entry point, agent_entry(fd, how), with @how from abi/ask.h.  A second tracer connects to an
 *   already loaded agent in the same way.  An agent that accepts the channel moves it to another descriptor; else
 *   it closes it.  A descriptor that is still open when agent_entry() has returned is closed by the tracer, if it
 *   is alive.  The loader knows the object by a name with ABI_AGENT_BROUGHT before it then; it does nothing until it
 *   is entered, whatever the environment says.
 * - A Python with an installed agent asks at its start (abi/ask.h).
 *
 * Both ends check the other's credentials (SO_PEERCRED): the same user, or root.  The agent also checks that the
 * socket's owner is the process in the address, if its pid namespace shows it.  Any process can connect to the socket,
 * so the agent first sends PROOF with the word.  The tracer then identifies the process, sends ASK, and accepts a
 * READY that has ASK's number and whose sender the kernel confirms (SCM_CREDENTIALS).  So it is still the identified
 * process, and not another one that was given the socket or has taken over the process's number.
 */
#ifndef DTAP_ABI_AGENT_H
#define DTAP_ABI_AGENT_H

#include <stdint.h>

#define ABI_AGENT_ENV "DTAP_AGENT"

/*
 * The same for one process alone, whose environment a tracer has written (target/starts.h): the agent takes this variable and
 * itself, the first object of LD_PRELOAD, out of environ before the program or anybody else reads it.
 */
#define ABI_AGENT_HELD "DTAP_AGENT_HELD"

/*
 * The first part of "/proc/PID/fd/N", a descriptor of the tracer's, by which it lends the object to a program that does not see
 * its file, under another root.  If the path is in LD_PRELOAD, the agent takes it out of environ before anybody reads it:
 * it names nothing when the tracer has ended.
 */
#define ABI_AGENT_LENT "/proc/"

/*
 * What the path begins with by which a tracer has a running program load the object; nobody else writes a path so, and it is
 * the same file (Linux has one root).  The object's constructor runs amid the program, at any instruction of Python's.
 */
#define ABI_AGENT_BROUGHT "//"

enum { ABI_AGENT_WHY = 200, ABI_AGENT_ADDRESS = 96, ABI_AGENT_WORD = 32 };

/*
 * The version of the messages and of the order of markers (abi/marker.def).  The segment has its own version
 * (ABI_VERSION in abi/record.h): with an agent of another ABI_VERSION the kernel place still works.  Raise it by the
 * same rule.
 */
enum { ABI_AGENT_VERSION = 6 };

/* A note in the object, for a tracer who finds it in a process: what it understands. */
#define ABI_AGENT_OWNER "dtap-agent"
enum { ABI_AGENT_VERSIONS = 1 };	/* the note's type */

struct abi_agent_versions {
	uint32_t segment, messages;	/* ABI_VERSION, ABI_AGENT_VERSION */
};

enum abi_agent_kind {
	/* From the agent. */
	ABI_AGENT_HELLO = 1,	/* when the agent is ready, or with ABI_AGENT_OFF and @why */
	ABI_AGENT_STATE,	/* the answer to LOOK and SEGMENT, with its seq; @supplied: the markers hooked now */
	/* From the tracer. */
	ABI_AGENT_LOOK,		/* read the semaphores and @leave now, install or remove hooks, answer; @why is
				 * the address of the socket to which forked children connect, or empty */
	ABI_AGENT_SEGMENT,	/* with three descriptors (SCM_RIGHTS): image and data of abi/segment.h, and the socket
				 * that wakes the tracer.  The markers of its programs are hooked from the next LOOK on;
				 * it ends with the channel.  Answered by STATE; @why is empty if there was no error */
	/* Over a channel that the agent has connected. */
	ABI_AGENT_PROOF,	/* from the agent, first of all: @why is the word of the address */
	ABI_AGENT_ASK,		/* from the tracer, after PROOF: HELLO must have the same @proof */
};

/*
 * An agent that is loaded at the program's start sends HELLO before the program's first line runs, and waits for the
 * answering LOOK: at most ABI_AGENT_WAIT_MS, or ABI_AGENT_ASKED_MS if the tracer has sent ASK, since it is then alive
 * but may be slow.  One that was held at its exec, which nobody has started for the tracer's sake, waits
 * ABI_AGENT_HELD_MS, anew after each message.  A marker that is in the @leave of all tracers is not supplied.
 */
enum { ABI_AGENT_WAIT_MS = 2000, ABI_AGENT_ASKED_MS = 3000, ABI_AGENT_HELD_MS = 1000 };

/*
 * LATE, in a STATE: as READY, but the program went on before its hooks were installed for this tracer.  ANOTHER, in a STATE that
 * answers nothing: the interpreter has ended, and its process begins another one, of which the agent sees nothing.
 */
enum abi_agent_phase { ABI_AGENT_READY = 1, ABI_AGENT_OFF, ABI_AGENT_LATE, ABI_AGENT_ANOTHER };

/* Is the process in another pid namespace than the tracer?  Then neither can use the other's pids. */
enum abi_agent_pids { ABI_AGENT_SAME_PIDS, ABI_AGENT_OTHER_PIDS };

/* Do the programs of the channel's segment run?  While they rest, what hooks there are for them alone is removed. */
enum abi_agent_rest { ABI_AGENT_RUN, ABI_AGENT_REST };

struct abi_agent_msg {
	uint16_t version;	/* ABI_AGENT_VERSION; any other: close the channel */
	uint16_t kind;		/* enum abi_agent_kind */
	uint32_t seq;		/* of a LOOK, repeated in its answer */
	uint32_t pid;		/* the agent's, in its own pid namespace; SEGMENT: in the tracer's */
	uint32_t phase;		/* HELLO, STATE: enum abi_agent_phase; SEGMENT: enum abi_agent_pids; LOOK: enum
				 * abi_agent_rest */
	uint32_t python;	/* HELLO: the interpreter's PY_VERSION_HEX */
	uint32_t can;		/* HELLO: the markers it can supply, a bit each in the order of abi/marker.def */
	uint32_t supplied;	/* STATE: the markers it supplies now */
	uint32_t leave;		/* LOOK: markers not to be supplied even if their semaphores are raised, since this
				   tracer uses the interpreter's own sites; SEGMENT: enum abi_calls, the calls that its
				   programs must not make */
	uint64_t proof;		/* ASK: a random number; HELLO: that of ASK, or 0 */
	char why[ABI_AGENT_WHY];	/* the reason for OFF, or for what @supplied lacks; NUL-terminated */
};

_Static_assert(sizeof(struct abi_agent_msg) == 40 + ABI_AGENT_WHY, "the same for every compiler");

#endif

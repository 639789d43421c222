/*
 * The two halves of starts.h, and what they say to each other: packets on a socket.
 *
 * One holder serves all tracers of the machine: of two, only one could seize a process, and neither knows whether the other
 * wants it.  The first tracer starts it; others find it by its name in the folder of abi/ask.h, and JOIN.
 */
#ifndef DTAP_TARGET_STARTS_PRIV_H
#define DTAP_TARGET_STARTS_PRIV_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "abi/agent.h"

/* The number is that of these messages: tracers of another build may join. */
#define STARTS_NAME "hold-1"

enum starts_kind {
	STARTS_ASK = 1,		/* from the holder: about @pid; 0: about nobody, is the tracer there? */
	STARTS_ANSWER,		/* with the @turn of ASK */
	STARTS_KNOW,		/* with a descriptor (SCM_RIGHTS) of the program, O_PATH */
	STARTS_JOIN,		/* struct starts_join: the first one of a tracer that has found the holder by its name */
	STARTS_READY,		/* from the holder: it holds for this tracer, and can be found */
	STARTS_LEFT,		/* its last word to a tracer that has shut its end, if it goes on for others */
};

struct starts_msg {
	uint32_t kind;
	int32_t pid;
	uint64_t turn;
	uint32_t wanted;	/* ANSWER: 1 or 0 */
	uint32_t pad;
};

/* What a process brings. */
struct starts_bring {
	char path[PATH_MAX];
	char address[ABI_AGENT_ADDRESS];
};

struct starts_join {
	struct starts_msg head;
	struct starts_bring bring;
};

/*
 * Run the holder, in the process that has just been forked for it, until all tracers have ended.  Returns at once if the kernel
 * would not end it should it hang.  @fan: fanotify's descriptor; @sock: the first tracer's socket.
 */
void starts_hold(int fan, int sock, const struct starts_bring *bring);

/* Is process @pid root's, in this process's user and pid namespaces, and may it trace others anyway? */
bool starts_is_tracer(pid_t pid);

/*
 * Write the environment of process @pid, which is in the stop of PTRACE_EVENT_EXEC of this thread, anew: @bring->path in front
 * of LD_PRELOAD, and ABI_AGENT_HELD.  False: nothing is changed, since it has an agent's variable already, or is too large.
 */
bool starts_write(pid_t pid, const struct starts_bring *bring);

/* Is process @pid, which is stopped, before the first instruction of its image's loader? */
bool starts_is_new(pid_t pid);

#endif

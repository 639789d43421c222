/*
 * The two halves of starts.h, and what they say to each other: packets on a socket.
 */
#ifndef DTAP_TARGET_STARTS_PRIV_H
#define DTAP_TARGET_STARTS_PRIV_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "abi/agent.h"

enum starts_kind {
	STARTS_ASK = 1,		/* from the holder: about @pid */
	STARTS_ANSWER,		/* with the @turn of ASK */
	STARTS_KNOW,		/* with a descriptor (SCM_RIGHTS) of the program, O_PATH */
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

/*
 * Run the holder, in the process that has just been forked for it, until the tracer has ended.  @fan: fanotify's descriptor;
 * @sock: the tracer's socket.
 */
void starts_hold(int fan, int sock, const struct starts_bring *bring);

/*
 * Write the environment of process @pid, which is in the stop of PTRACE_EVENT_EXEC of this thread, anew: @bring->path in front
 * of LD_PRELOAD, and ABI_AGENT_HELD.  False: nothing is changed, since it has an agent's variable already, or is too large.
 */
bool starts_write(pid_t pid, const struct starts_bring *bring);

/* Is process @pid, which is stopped, before the first instruction of its image's loader? */
bool starts_is_new(pid_t pid);

#endif

/*
 * Loading the object into a process through one of its threads, which was found at a safe point (seek.c).
 */
#ifndef DTAP_TARGET_INJECT_H
#define DTAP_TARGET_INJECT_H

#include "target/agent_priv.h"
#include "target/chain.h"
#include "target/guest.h"

enum {
	INJECT_CALLS = 11,	/* length of the chain */
	INJECT_THREADS = 32,	/* at most tried in a round */
	INJECT_HELD = 256,	/* at most stopped while the object is loaded */
};

struct injection {
	struct agents *a;
	struct target *t;
	struct strbuf *why;
	struct guest g;
	struct chain c;
	uint64_t begin;		/* when the search began, ms */
	const char *unsafe;	/* why the last thread was refused */
	pid_t stuck[INJECT_THREADS];	/* seized, but not stopped yet */
	unsigned int nstuck;
	pid_t seized[INJECT_HELD + INJECT_THREADS + 2];	/* under ptrace; 0: free.  Atomic */
	struct { pid_t tid; int status; } held[INJECT_HELD];	/* stopped while the object is loaded (seek.c) */
	unsigned int nheld;
	bool is_stopped;	/* by job control: its threads do not move */
	bool is_polite;		/* use no thread whose system call would end with EINTR */
	bool is_stale;		/* the process has changed: @g is not valid any more */
	bool is_hasty;		/* search for milliseconds, not for seconds */
	struct strbuf status;	/* of the thread that is stopped (proc_pid_status(5)) */
	bool may_mark;		/* chain_mark() is possible */
	bool at_entry;		/* a created target: only load; an environment variable has the tracer's address */
	uint32_t forbidden;	/* calls that the agent must not make (abi/calls.h) */
	int fd;			/* our end of the channel */
	int err;
};

/*
 * @j->c.tid is stopped at a safe point, @j->c initialised with INJECT_CALLS.  Afterwards the thread is in its original
 * state or still returning to it.  0 or a negative errno, explained in @j->why: -EBUSY, the thread has not returned in
 * time; -ESRCH; -ENOTSUP.
 */
int inject(struct injection *j);

/* seek.c, called by inject() when the object is loaded: the other threads may go on. */
void seek_release(struct injection *j);

#endif

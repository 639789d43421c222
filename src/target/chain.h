/*
 * A chain of calls (arch/remote.h) in a stopped thread of another process, run step by step.
 *
 * The tracer writes the whole chain, sends the thread into it, and stops it behind each call that it wants to know of; it
 * may then change the calls to come.  Whatever stands there is what the thread does if the tracer dies, so
 * at each moment the rest of the chain has to be a good end.
 */
#ifndef DTAP_TARGET_CHAIN_H
#define DTAP_TARGET_CHAIN_H

#include <stdint.h>
#include <sys/types.h>

#include "arch/remote.h"
#include "target/guest.h"

enum { CHAIN_MAX = 11, CHAIN_DATA = 640, CHAIN_ROOM = 64 << 10 };

struct chain {
	const struct guest *g;
	pid_t tid;
	struct remote_found *found;
	struct remote_thread at;	/* the thread as it was found */
	unsigned int n;			/* calls */
	uint64_t base;			/* address of frame 0 */
	uint64_t data;			/* address of CHAIN_DATA bytes that calls may use */
	uint64_t fp;
	uint8_t *mem;			/* what is at @base, up to the vector registers' end */
	size_t len;
};

/*
 * Lay out @n calls, CHAIN_MAX at most, all of which do nothing, for thread @tid, which is in a ptrace stop.
 * -ENOMEM; -ENOSPC: its stack has no room below; others from ptrace.  chain_fini() in each case.
 */
int chain_init(struct chain *c, const struct guest *g, pid_t tid, unsigned int n);
void chain_fini(struct chain *c);

/* Set call @i; NULL: one that does nothing.  chain_store() then writes calls @from on into the thread, at once. */
void chain_set(struct chain *c, unsigned int i, const struct remote_call *call);
int chain_store(struct chain *c, unsigned int from);

/* The address of the first argument of call @i. */
uint64_t chain_arg0(const struct chain *c, unsigned int i);

/* The data: copied into the chain before it is stored; and read or written in the thread's memory. */
void chain_put(struct chain *c, size_t off, const void *from, size_t len);
int chain_read(const struct chain *c, uint64_t addr, void *to, size_t len);
int chain_write(const struct chain *c, uint64_t addr, const void *from, size_t len);

/* Store all and send the thread to the first call; it does not move yet. */
int chain_go(struct chain *c);

/*
 * Let the thread run until call @i has returned.  The thread has the ptrace option TRACESYSGOOD.  -ESRCH: it has ended;
 * -ETIMEDOUT: it is still on its way; -EFAULT: a call ended by a fault, and the thread is about to go on as it was found.
 */
int chain_run(struct chain *c, unsigned int i, int timeout_ms);

/*
 * Let the thread run to the end of the chain: it is in a stop then as it was when it was found, nothing of the chain
 * is left on its stack.  Errors as of chain_run.
 */
int chain_finish(struct chain *c, int timeout_ms);

/* Wait for thread @tid to stop: 0 and the status as of waitpid, -ESRCH, or -ETIMEDOUT. */
int chain_wait(pid_t tid, int timeout_ms, int *status);

#endif

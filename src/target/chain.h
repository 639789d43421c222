/*
 * A chain of calls (arch/remote.h) in a stopped thread of another process, run step by step.
 *
 * The tracer writes the whole chain, sends the thread into it, and stops it after each call whose result it needs; it
 * may then change the later calls.  If the tracer dies, the thread executes the rest of the chain as last written, so
 * at each moment that rest must leave the process in a good state.
 */
#ifndef DTAP_TARGET_CHAIN_H
#define DTAP_TARGET_CHAIN_H

#include <stdint.h>
#include <sys/types.h>

#include "arch/remote.h"
#include "target/guest.h"

enum { CHAIN_MAX = 11, CHAIN_DATA = 640, CHAIN_ROOM = 64 << 10, CHAIN_LATE_MS = 2000 };

struct chain {
	const struct guest *g;
	pid_t tid;
	int mem_fd;			/* /proc/TID/mem, opened before any later exec; -1: not open */
	struct remote_found *found;
	struct remote_thread at;	/* the thread's original state */
	unsigned int n;			/* number of calls */
	uint32_t marks;			/* a bit for each call that is a mark */
	long own_pid, own_tid;		/* the thread's in its pid namespace; known if it may have marks */
	uint64_t base;			/* address of frame 0 */
	uint64_t data;			/* address of CHAIN_DATA bytes that calls may use */
	uint64_t fp;
	uint8_t *mem;			/* a copy of the memory from @base to the end of @data */
	size_t len;
	void (*late)(void *ctx);	/* unless NULL: called once if a chain_run() takes CHAIN_LATE_MS */
	void *late_ctx;
};

/*
 * Lay out @n calls, CHAIN_MAX at most, all of which do nothing, for thread @tid, which is in a ptrace stop.
 * -ENOMEM; -ENOSPC: not enough room left on its stack; others from ptrace and open.  Call chain_fini() also after an
 * error; it accepts a zeroed chain.
 */
int chain_init(struct chain *c, const struct guest *g, pid_t tid, unsigned int n);
void chain_fini(struct chain *c);

/* Set call @i; NULL: one that does nothing.  chain_store() writes call @from and all later ones, in a single write. */
void chain_set(struct chain *c, unsigned int i, const struct remote_call *call);
int chain_store(struct chain *c, unsigned int from);

/*
 * Make call @i a mark: chain_run() to it lets the thread run without a stop at each system call that the calls before it make.
 * In it the thread sends itself SIGURG, which a tracer is told of although the program ignores it.  chain_may_mark(): is that
 * possible?  Not where the program has a handler for SIGURG, or the thread has it blocked and may wait for it: one of the
 * program's own could be taken for the mark's, or come while that waits, and be lost.  Not with seccomp filters, which may
 * forbid the call.  @status: the thread's status (proc_pid_status(5)).
 */
bool chain_may_mark(struct chain *c, const char *status);
void chain_mark(struct chain *c, unsigned int i);

/* Let the stopped thread continue with call @i, which may have run already. */
int chain_again(struct chain *c, unsigned int i);

/* The address of the first argument of call @i. */
uint64_t chain_arg0(const struct chain *c, unsigned int i);

/* chain_put() copies data into the chain before it is stored; the others read and write the thread's memory. */
void chain_put(struct chain *c, size_t off, const void *from, size_t len);
int chain_read(const struct chain *c, uint64_t addr, void *to, size_t len);
int chain_write(const struct chain *c, uint64_t addr, const void *from, size_t len);

/* Store the chain and set the thread to its first call; the thread stays stopped. */
int chain_go(struct chain *c);

/*
 * Let the thread run until call @i has returned.  The thread must have the ptrace option TRACESYSGOOD.  -ESRCH: it has
 * ended; -ETIMEDOUT: it is still running; -EFAULT: a call ended by a fault, and the thread will continue from its
 * original state; others from ptrace: it is stopped somewhere in the chain.
 */
int chain_run(struct chain *c, unsigned int i, int timeout_ms);

/*
 * Let the thread run to the end of the chain: it is then stopped in its original state, and nothing of the chain is
 * left on its stack.  Errors as of chain_run.
 */
int chain_finish(struct chain *c, int timeout_ms);

/* Wait for thread @tid to stop: 0 and the status as of waitpid, -ESRCH, or -ETIMEDOUT. */
int chain_wait(pid_t tid, int timeout_ms, int *status);

#endif

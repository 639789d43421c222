/*
 * May probe programs in a process access its memory by process_vm_readv(2) and process_vm_writev(2)?  They do so for
 * addresses that may be invalid (vm/memory.h), but a seccomp(2) filter can kill the process for such a call.
 *
 * Filters can be read from a thread that is stopped under ptrace.  The filters of a process that was not stopped are
 * derived from its parent's: filters are inherited and never removed, so a child with as many filters as its parent has
 * the same ones.  In doubt the answer is no.  A filter that is installed later is not noticed.
 */
#ifndef DTAP_TARGET_PERMIT_H
#define DTAP_TARGET_PERMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct permit {
	pid_t pid;
	uint32_t filters;	/* their number when they were checked */
	bool is_fatal;
};

/* Zeroed is empty. */
struct permits {
	struct permit *v;
	size_t n, cap;
	enum { PERMIT_UNTRIED, PERMIT_ALIVE, PERMIT_DEAD } own;	/* the tracer's own filters */
};

/*
 * Check the filters of process @pid in its thread @tid, which this thread has stopped by ptrace, and whose status
 * (proc_pid_status(5)) is @status.
 */
void permit_learn(struct permits *p, pid_t pid, pid_t tid, const char *status);

/* May process @pid call process_vm_readv(2) and process_vm_writev(2)? */
bool permit_memory(struct permits *p, pid_t pid);

void permits_fini(struct permits *p);

#endif

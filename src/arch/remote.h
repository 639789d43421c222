/*
 * Calls functions in a thread of another process, without relying on the tracer once they have started.
 *
 * A stopped thread runs through a chain of calls that is on its own stack, below the part in use.  Each
 * call has a frame like the kernel's for a signal handler, with all registers.  The called function returns to
 * the two instructions to which signal handlers return, in the C library or the vDSO, the "restorer"; so each return is an
 * rt_sigreturn, which loads the next frame.  The last frame has the registers that the thread was found with.
 *
 *	low  [frame 0][frame 1] ... [frame n-1][found registers]  [vector registers]  data  red zone  the thread's stack  high
 *	              ▲ stack of call 0: overwrites frames that are no longer needed
 *
 * Once the thread's registers point to frame 0, it runs through the whole chain and then continues where it was,
 * whether its tracer watches, changes frames ahead of it, or is dead.  No code is written anywhere.
 *
 * Signals are blocked until the end, except those for faults.  A system call that the thread was found in is restarted,
 * as by the kernel after a stop, if that has the same effect; else it ends with EINTR.
 */
#ifndef DTAP_ARCH_REMOTE_H
#define DTAP_ARCH_REMOTE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { REMOTE_ARGS = 6 };

/* Facts about a stopped thread. */
struct remote_thread {
	uint64_t pc, sp;
	uint64_t tls;			/* the thread pointer */
	bool is_native;			/* runs 64-bit code, not 32-bit */
	uint64_t link;			/* the return address, where a register has it; or 0 */
	long nr;			/* number of the system call that it is in, or -1 */
	long result;			/* of that call; may be the kernel's internal -ERESTART... */
	uint64_t arg[REMOTE_ARGS];	/* of that call */
	/*
	 * The kernel has left the call, and the thread will make it again or has its result, -EINTR, in which case arg[0] is
	 * unknown.  A thread that has not begun the call looks the same.
	 */
	bool left;
};

struct remote_call {
	uint64_t fn, arg[REMOTE_ARGS];
	uint64_t unblocked;		/* signals that are not blocked in it, besides those for faults: 1 << (number - 1) */
};

/* The signal mask during a call: blocks all signals except those that a fault raises, and @unblocked. */
static inline uint64_t remote_sigmask(uint64_t unblocked)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS };
	uint64_t mask = ~unblocked;

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		mask &= ~(1ull << (faults[i] - 1));
	return mask;
}

/* All registers of a stopped thread. */
struct remote_found;

struct arch_remote {
	const uint8_t *restorer;	/* the instructions of the restorer */
	size_t restorer_len;
	size_t red_zone;		/* bytes below the stack pointer that belong to the thread */
	size_t frame;			/* bytes from a frame to the next, a multiple of 16 */
	size_t frame_written;		/* bytes of a frame that differ from call to call: @frame, or more where frames overlap */
	size_t frame_len;		/* all bytes of a frame: likewise */
	size_t frame_mod;		/* the address of a frame modulo 16 */
	bool found_apart;		/* the last frame is where the vector registers are, not behind the others */
	bool tls_points_back;		/* the first or third word at the thread pointer is that pointer */
	size_t arg0;			/* offset in a frame of a call's first argument, 8 bytes */
	size_t arg0_before;		/* bytes before that offset which are unused in a call's frame */

	/* Read the facts.  0 or a negative errno; -ESRCH: it is no longer stopped. */
	int (*look)(pid_t tid, struct remote_thread *ret);

	/* Save all registers.  Sets the size and alignment of the memory for the vector registers. */
	int (*save)(pid_t tid, struct remote_found **ret, size_t *fp_len, size_t *fp_align);
	void (*free)(struct remote_found *f);	/* accepts NULL */
	/* Write the vector registers in the format of the last frame, fp_len bytes at @to. */
	void (*put_fp)(const struct remote_found *f, void *to);

	/*
	 * Write a frame: of a call; the last one.  @next is the address of the following frame;
	 * @fp_at is the address for the vector registers.
	 */
	void (*put_call)(const struct remote_found *f, void *to, const struct remote_call *c, uint64_t restorer,
			 uint64_t next);
	void (*put_found)(const struct remote_found *f, void *to, uint64_t restorer, uint64_t fp_at);

	/* Would the system call in which the thread waits end with EINTR? */
	bool (*ends_call)(const struct remote_thread *t);

	/*
	 * Does the restorer's address at @word, the first of @n words of a stack, belong to a signal's frame?  It can be left over
	 * from a call of sigaction(2).
	 */
	bool (*is_signal_frame)(const uint64_t *word, size_t n);

	/* Make the stopped thread continue at the frame at @frame, through the restorer; completely or not at all. */
	int (*go)(pid_t tid, const struct remote_found *f, uint64_t restorer, uint64_t frame);

	/* In the stop after an exec, before the first instruction: another stack pointer.  0 or a negative errno. */
	int (*set_sp)(pid_t tid, uint64_t sp);

	/*
	 * After the chain, in a stop by PTRACE_INTERRUPT, give the thread the registers that it was found with in such
	 * a stop: the kernel then restarts the interrupted call itself, or delivers a signal that has arrived
	 * meanwhile, whose handler must end the call.
	 */
	int (*put_back)(pid_t tid, const struct remote_found *f);

	/* Make the interrupted system call in which the thread is end with EINTR.  0 or a negative errno. */
	int (*end_call)(pid_t tid);

	/* For a thread stopped at the entry of a system call: is it the rt_sigreturn to the frame at @frame? */
	bool (*is_at)(const struct remote_thread *t, uint64_t frame);

	/*
	 * The address of errno, *ret, in a thread with the thread pointer @tls.  Derived from @code, the @len bytes of
	 * __errno_location at @pc.  If *indirect is not 0, the number at address *indirect must be added.  False:
	 * unknown code.
	 */
	bool (*errno_at)(const uint8_t *code, size_t len, uint64_t pc, uint64_t tls, uint64_t *ret, uint64_t *indirect);
};

/* For the machine that dtap was built for, or NULL. */
const struct arch_remote *arch_remote(void);

#endif

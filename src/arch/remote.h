/*
 * Calls in a thread of another process that need nobody's help to end well.
 *
 * A stopped thread is sent through a chain of calls that lies on its own stack, below what it uses.  Each
 * call has a frame as the kernel makes one for a signal handler: all registers.  The address that the called function
 * returns to is the instruction pair that handlers return to in the C library, the "restorer"; so each return is an
 * rt_sigreturn, which loads the next frame.  The last frame holds the registers that the thread was found with.
 *
 *	low  [frame 0][frame 1] ... [frame n-1][found registers]  data  [vector registers]  red zone  the thread's stack  high
 *	              ▲ stack of call 0: frames that are done with are overwritten
 *
 * Once the thread's registers point to frame 0 it goes through all of it and then on where it was, whether its tracer
 * watches, changes frames ahead of it, or is dead.  No code is written anywhere.
 *
 * Signals wait until the end, but for those of faults.  A system call that the thread was found in is started anew as
 * the kernel does it after a stop, where that is the same thing; else it ends with EINTR.
 */
#ifndef DTAP_ARCH_REMOTE_H
#define DTAP_ARCH_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { REMOTE_ARGS = 6 };

/* What is to be known of a stopped thread. */
struct remote_thread {
	uint64_t pc, sp;
	uint64_t tls;			/* the thread pointer */
	bool is_native;			/* executes code of this machine's usual kind */
	long nr;			/* of the system call that it is in, or -1 */
	long result;			/* of that, as the kernel's own -ERESTART... */
	uint64_t arg[REMOTE_ARGS];	/* of that */
};

struct remote_call {
	uint64_t fn, arg[REMOTE_ARGS];
};

/* All registers of a stopped thread. */
struct remote_found;

struct arch_remote {
	const uint8_t *restorer;	/* the instructions of the restorer */
	size_t restorer_len;
	size_t red_zone;		/* bytes below the stack pointer that belong to the thread */
	size_t frame;			/* bytes of a frame, a multiple of 16 */
	size_t arg0;			/* offset in a frame of a call's first argument, 8 bytes */
	size_t arg0_before;		/* bytes in front of that which mean nothing in a call's frame */

	/* Negative errno, -ESRCH: it is not stopped any more. */
	int (*look)(pid_t tid, struct remote_thread *ret);

	/* Keep all registers; @fp_len becomes the room that the vector registers need, @fp_align how it is aligned. */
	int (*save)(pid_t tid, struct remote_found **ret, size_t *fp_len, size_t *fp_align);
	void (*free)(struct remote_found *f);	/* accepts NULL */
	/* The vector registers as the last frame wants them, fp_len bytes at @to. */
	void (*put_fp)(const struct remote_found *f, void *to);

	/*
	 * Write a frame: of a call, and the last one.  @next is the address of the frame behind it, 8 above a multiple of
	 * 16; @fp_at where the vector registers will be.
	 */
	void (*put_call)(const struct remote_found *f, void *to, const struct remote_call *c, uint64_t restorer,
			 uint64_t next);
	void (*put_found)(const struct remote_found *f, void *to, uint64_t restorer, uint64_t fp_at);

	/* Would the call that the thread waits in end with EINTR? */
	bool (*is_spoilt)(const struct remote_thread *t);

	/* Send the stopped thread to the frame at @frame, by the restorer.  At once or not at all. */
	int (*go)(pid_t tid, const struct remote_found *f, uint64_t restorer, uint64_t frame);

	/*
	 * Give the thread, which the chain has brought back and which is in the stop that PTRACE_INTERRUPT makes, the
	 * registers that it was found with in such a stop: the kernel then sees to the interrupted call itself, and to a
	 * signal that has come meanwhile, whose handler has to end the call.
	 */
	int (*put_back)(pid_t tid, const struct remote_found *f);

	/* The thread is in a stop at the entry of a system call: is it the rt_sigreturn to the frame at @frame? */
	bool (*is_at)(const struct remote_thread *t, uint64_t frame);

	/*
	 * Where is the errno of a thread whose thread pointer is @tls?  From the code @code, @len bytes, of
	 * __errno_location at @pc.  With *indirect it is *ret + the number at address *indirect.  False: code
	 * that we do not know.
	 */
	bool (*errno_at)(const uint8_t *code, size_t len, uint64_t pc, uint64_t tls, uint64_t *ret, uint64_t *indirect);
};

/* Of the machine that dtap was built for, or NULL. */
const struct arch_remote *arch_remote(void);

#endif

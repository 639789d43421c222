/*
 * Programs that start, held at exec until the tracer has said whether they are to bring the agent along.
 *
 * Of each interpreter that is known to the tracer the kernel asks before it executes it (fanotify(7), FAN_OPEN_EXEC_PERM on
 * its inode).  It asks a small process, the holder, which has the only descriptor: so a tracer that is stopped or
 * hangs holds nobody for longer than STARTS_MS, once, and whoever waits goes on when the holder ends, however that happens.
 * The holder ends with the last of the machine's tracers.
 *
 *	exec ──► the kernel asks ──► holder: PTRACE_SEIZE, "go on" ──► PTRACE_EVENT_EXEC ──► holder asks all tracers
 *	                                                                    │ yes: the new image's environment is written
 *	                                                                    ▼      anew, with the preload of one that wants it
 *	                                                              PTRACE_DETACH
 *
 * The agent that is brought so asks the other tracers itself (abi/ask.h).
 *
 * No instruction of the program is ever changed, and nothing of it depends on the holder or the tracer at any moment: an image
 * whose environment is not complete yet is still on its old stack pointer.  A process that is traced already, of another libc,
 * set-user-ID, under a filter of system calls or whose exec is by another thread than its first is let go at once.
 *
 * The calls are made in one thread.
 */
#ifndef DTAP_TARGET_STARTS_H
#define DTAP_TARGET_STARTS_H

#include <stdbool.h>
#include <sys/types.h>

#include "target/target.h"

/* The longest that a program is held for the tracers' answers. */
enum { STARTS_MS = 100 };

struct starts;

/* Is process @pid, which has just executed a program and is held, to bring the agent? */
typedef bool starts_wanted_fn(void *ctx, pid_t pid);

struct starts_conf {
	const struct target_preload *preload;	/* what a process brings: its path and first variable are copied */
	starts_wanted_fn *wanted;
	void (*again)(void *ctx);		/* the holder had ended, and another one knows no interpreter yet */
	void *ctx;
};

/*
 * Find the holder, or start it.  0, or a negative errno: -EPERM, -EINVAL and others where the kernel does not ask this user;
 * -ENOTSUP: the machine's processes cannot be held.
 */
int starts_open(const struct starts_conf *conf, struct starts **ret);

/* The holder lets all go, or serves others.  Accepts NULL. */
void starts_close(struct starts *s);

/*
 * For @wanted: can process @pid load the object?  It is linked to glibc's loader, sees the object at its path, does not run with
 * the rights of its file (ld.so(8), secure-execution mode), and no filter would kill it at one of the agent's system calls.
 */
bool starts_can_bring(const struct starts *s, pid_t pid);

/* From now on the interpreter of process @pid, or the program @path, is asked for.  One that cannot be is not. */
void starts_know(struct starts *s, pid_t pid);
void starts_know_file(struct starts *s, const char *path);

/* For poll or epoll: readable when there is something for starts_turn(), which never waits. */
int starts_fd(const struct starts *s);
void starts_turn(struct starts *s);

#endif

/*
 * Traced processes: start one and hold it, or find a running one; what it has mapped; how it ends.
 *
 * A created target is held by ptrace at each exec until the tracer has armed its probes, and is released before it
 * runs: from then on it is just a child of the tracer.  An attached target is only watched.  Tracing itself needs no
 * ptrace: the kernel's probes work on files and ids.
 *
 *	target_create ──► AT_EXEC ──target_release──► RUNNING ──target_poll──► EXITED
 *	                  │  ▲  └──target_to_entry──► AT_ENTRY ──target_release──► ...
 *	                  └──┘ target_next_exec       (target_next_exec leads back to AT_EXEC)
 *
 * The kernel ties ptrace to a thread: create, advance and release a target in one thread.  If the tracer
 * dies while it holds a target, the kernel kills the target; a released one runs on.
 *
 * Functions that can fail return a negative errno and add one line without a newline to @why, which may be
 * NULL.
 */
#ifndef DTAP_TARGET_TARGET_H
#define DTAP_TARGET_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct file;
struct strbuf;
struct target;

/* An object that a created target is to load by LD_PRELOAD, and other variables for its environment. */
struct target_preload {
	const char *path;		/* goes in front of the present value of LD_PRELOAD; or NULL */
	int fd;				/* a descriptor of the object (target_lend); -1: none */
	const char *const *environ;	/* "NAME=VALUE", terminated by NULL; or NULL */
};

enum target_state {
	TARGET_AT_EXEC,		/* held; no instruction of the new image has been executed */
	TARGET_AT_ENTRY,	/* held at the program's entry point */
	TARGET_RUNNING,
	TARGET_EXITED,
};

/*
 * Start @cmdline and hold it at its first exec.  Words are split as described in words.h and the command is looked
 * for in PATH.  The child is in the tracer's process group and on its terminal, so that Ctrl-C reaches both;
 * it starts with no blocked signals and with the default action for each, except that an ignored SIGHUP
 * stays ignored, for nohup.  Descriptors that are not close-on-exec are inherited.
 *
 * With @preload the environment is this process's, changed as @preload says.  For a program that cannot load the
 * object, because it runs under another root or is for another machine, the object is removed from LD_PRELOAD; so
 * children that such a program starts do not have it either.  @preload must outlive the target's release.
 *
 * -EINVAL: @cmdline has no words, or an open quote; -ENOENT, -EACCES, -ENOEXEC and others from execve:
 * no such command, not executable, no program or script; -EINTR as target_next_exec.
 */
int target_create(const char *cmdline, const struct target_preload *preload, struct target **ret,
		  struct strbuf *why);

/* Append the path of the file that target_create() would start for @cmdline to @path.  0 or a negative errno. */
int target_find_command(const char *cmdline, struct strbuf *path);

/*
 * Watch process @pid.  -ESRCH: no such process, or a zombie; -EPERM: another user's, or otherwise not
 * traceable; -EINVAL: a kernel thread, or the id of a thread that is not its process's first.
 */
int target_attach(pid_t pid, struct target **ret, struct strbuf *why);

/* A held target is killed; a running one continues.  Accepts NULL. */
void target_free(struct target *t);

/*
 * Let a held target run to its next exec: 0, and it is AT_EXEC or EXITED.  Signals that arrive are delivered,
 * job control works, and processes that it forks are left alone.  An exec by any of its threads counts; the
 * process id stays the same.
 *
 * -EINTR when SIGINT, SIGTERM, SIGHUP or SIGQUIT arrives or is already pending: the target is still running;
 * call again to go on waiting, or free the target to kill it.
 */
int target_next_exec(struct target *t, struct strbuf *why);

/*
 * Let a target that is AT_EXEC run to the entry point of its program: 0, and it is AT_ENTRY, or EXITED, or
 * AT_EXEC when it called exec on the way.  The dynamic loader has by then mapped and relocated the libraries
 * that the program is linked to and has run their constructors; nothing of the program itself has run, but
 * for the constructors of its .preinit_array.  When the loader was started by hand as a program, the entry
 * point is the loader's.  Threads that constructors start are not held.
 *
 * -EBUSY: something else has a breakpoint there; the target is still AT_EXEC.  -EINTR as above; the next
 * call of target_to_entry or target_next_exec continues the wait.
 */
int target_to_entry(struct target *t, struct strbuf *why);

/* Detach from a held target and let it run.  0 also if it has ended meanwhile: it is EXITED. */
int target_release(struct target *t, struct strbuf *why);

pid_t target_pid(const struct target *t);	/* in the tracer's pid namespace */
enum target_state target_state(const struct target *t);

/*
 * A descriptor for poll or epoll that is readable (POLLIN) when the target has ended, or -1 before
 * Linux 5.3: call target_poll from time to time then.  The target owns it.
 */
int target_fd(const struct target *t);

/* The present state; never waits.  For a held target it is the state in which it is held. */
enum target_state target_poll(struct target *t);

/*
 * The status, as of waitpid, of a target that is EXITED.  False: it is not known, for instance when the parent of an
 * attached target has already reaped it, before Linux 6.15.
 */
bool target_exit_status(const struct target *t, int *status);

/* The program that a target is running. */
struct target_image {
	char *path;		/* as the kernel shows it to the tracer; unusable when @is_deleted */
	struct file *file;	/* the program itself; NULL: it may be executed, but not read */
	uint64_t dev, ino;
	uint16_t machine;	/* e_machine, 0 when it cannot be read */
	uint8_t elf_class;	/* ELFCLASS64 or ELFCLASS32, 0 when it cannot be read */
	bool is_deleted;	/* unlinked or replaced since it was started */
	bool is_setid;		/* set-user-ID or set-group-ID */
};

/* For a script this is its interpreter.  -ESRCH: the target has ended. */
int target_image(const struct target *t, struct target_image *ret, struct strbuf *why);
void target_image_fini(struct target_image *i);

/*
 * Might the program that the target is running execute another one?  True when it imports an exec or
 * spawn function, or in doubt: when it is linked statically, or to a library other than the C
 * library's own, or cannot be read.
 */
bool target_image_can_exec(const struct target *t);

/* Is it a program like chroot or env, which executes another one but creates no process?  False when in doubt. */
bool target_image_only_execs(const struct target *t);

/*
 * Does the program of the target, created with a preload, load the preload's object?  It does not under another root,
 * without the variable (after env -i or sudo), or when it is set-user-ID.
 */
bool target_brings(const struct target *t);

/* Do the programs that it executes load the object, too?  Not if it was lent. */
bool target_passes_on(const struct target *t);

/*
 * Lend the object to a program under another root, which is AT_EXEC: its loader opens the preload's descriptor (abi/agent.h,
 * ABI_AGENT_LENT), which must stay open until it has done so.  False: it cannot.
 */
bool target_lend(struct target *t);

/* Page in the data of the held target's program, at most 4096 pages, so that a probe in the kernel can read it. */
void target_warm(const struct target *t);

/* Does process @pid see another file tree than the tracer: by chroot, or by its mount namespace? */
bool target_other_root(pid_t pid);

/* The tracer's pid namespace, as bpf_get_ns_current_pid_tgid needs it. */
struct target_pid_ns {
	uint64_t dev;		/* in the kernel's encoding, not stat's */
	uint64_t ino;
	bool is_initial;	/* ids are the kernel's own: no translation needed */
};

int target_pid_ns(struct target_pid_ns *ret);

/* Is process @pid (in our pid namespace) in another pid namespace?  False if that cannot be read. */
bool target_other_pids(pid_t pid);

#endif

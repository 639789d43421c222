/*
 * Traced processes: start one and hold it, or find a running one; what it has mapped; how it ends.
 *
 * A created target is held by ptrace at each exec until the tracer has armed its probes, and released for
 * good before it runs: from then on nothing ties it to the tracer but being its child.  An attached target
 * is only watched.  Tracing itself needs no ptrace: the kernel's probes work on files and ids.
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

struct strbuf;
struct target;
struct target_map;

/* An object that a created target is to bring along, and what is to be in its environment besides. */
struct target_preload {
	const char *path;		/* into LD_PRELOAD, in front of what is there; or NULL */
	const char *const *environ;	/* "NAME=VALUE", up to a NULL; or NULL */
};

enum target_state {
	TARGET_AT_EXEC,		/* held; of the new image no instruction was executed */
	TARGET_AT_ENTRY,	/* held at the program's entry point */
	TARGET_RUNNING,
	TARGET_EXITED,
};

/*
 * Start @cmdline and hold it at its first exec.  Words are split as words.h says and the command is looked
 * for in PATH.  The child is in the tracer's process group and on its terminal, so that Ctrl-C reaches both;
 * it starts with no blocked signals and with the default action for each, except that an ignored SIGHUP
 * stays ignored, for nohup.  Descriptors that are not close-on-exec are inherited.
 *
 * With @preload the environment is this process's and what that says.  A program that could not load the object,
 * because it runs under another root or is for another machine, finds it taken out of LD_PRELOAD; children that such
 * a program starts do not have it either.  @preload must outlive the target's release.
 *
 * -EINVAL: @cmdline has no word in it, or an open quote; -ENOENT, -EACCES, -ENOEXEC and others from execve:
 * no such command, not executable, no program or script; -EINTR as target_next_exec.
 */
int target_create(const char *cmdline, const struct target_preload *preload, struct target **ret,
		  struct strbuf *why);

/* Add the path of the file that target_create() would start for @cmdline to @path.  0 or a negative errno. */
int target_find_command(const char *cmdline, struct strbuf *path);

/*
 * Watch process @pid.  -ESRCH: no such process, or a zombie; -EPERM: another user's, or otherwise shut to
 * the tracer; -EINVAL: a kernel thread, or the id of a thread that is not its process's first.
 */
int target_attach(pid_t pid, struct target **ret, struct strbuf *why);

/* A held target is killed; a running one runs on.  Accepts NULL. */
void target_free(struct target *t);

/*
 * Let a held target run to its next exec: 0, and it is AT_EXEC or EXITED.  Signals that arrive are delivered,
 * job control works, and processes that it forks are left alone.  All its threads are watched: when another
 * than the first calls exec, that counts, and the process id stays the same.
 *
 * -EINTR when a signal handler ran, or SIGINT, SIGTERM, SIGHUP or SIGQUIT waits blocked for the caller: the
 * target is still on its way; call again to go on waiting, or free the target to kill it.
 */
int target_next_exec(struct target *t, struct strbuf *why);

/*
 * Let a target that is AT_EXEC run to the entry point of its program: 0, and it is AT_ENTRY, or EXITED, or
 * AT_EXEC when it called exec on the way.  The dynamic loader has by then mapped and relocated the libraries
 * that the program is linked to and has run their constructors; nothing of the program itself has run, but
 * for the constructors of its .preinit_array.  When the loader was started by hand as a program, the entry
 * point is the loader's.  Threads that constructors start are not held.
 *
 * -EBUSY: something else has a breakpoint there; the target is still AT_EXEC.  -EINTR as above, and the next
 * call of target_to_entry or target_next_exec goes on.
 */
int target_to_entry(struct target *t, struct strbuf *why);

/* Let a held target run freely and without ptrace.  0 as well when it has ended meanwhile: it is EXITED. */
int target_release(struct target *t, struct strbuf *why);

pid_t target_pid(const struct target *t);	/* as the tracer's pid namespace calls it */
enum target_state target_state(const struct target *t);

/*
 * A descriptor for poll or epoll that is readable (POLLIN) when the target has ended, or -1 before
 * Linux 5.3: call target_poll from time to time then.  It stays the target's.
 */
int target_fd(const struct target *t);

/* The state as of now; never waits.  Of a target that is held it is the state that it is held in. */
enum target_state target_poll(struct target *t);

/* The status as of waitpid of a created target that is EXITED.  False when nobody can know it. */
bool target_exit_status(const struct target *t, int *status);

/* The program that a target is running. */
struct target_image {
	char *path;		/* as the kernel names it to the tracer; unusable when @is_deleted */
	char *reach;		/* a path that the tracer can open, while the target runs */
	uint64_t dev, ino;
	uint16_t machine;	/* e_machine, 0 when it cannot be read */
	uint8_t elf_class;	/* ELFCLASS64 or ELFCLASS32, 0 when it cannot be read */
	bool is_deleted;	/* unlinked or replaced since it was started */
	bool is_setid;		/* starts with the rights of its file's owner or group */
};

/* Of a script that is its interpreter.  -ESRCH: it has ended. */
int target_image(const struct target *t, struct target_image *ret, struct strbuf *why);
void target_image_fini(struct target_image *i);

/*
 * Might the program that the target is running turn into another one?  True when it imports an exec or
 * spawn function, or when that cannot be told: it is linked statically, or to a library other than the C
 * library's own, or cannot be read.
 */
bool target_image_can_exec(const struct target *t);

/* Is it a program like chroot or env, which turns into another one and starts no other process?  False when in doubt. */
bool target_image_only_execs(const struct target *t);

/*
 * Add to @out a path by which the tracer can open the file of mapping @m of the target, be it in another
 * mount namespace, under another root, or deleted.  -ENOENT: the mapping is not of a file, or of one out of
 * reach.
 */
int target_reach(const struct target *t, const struct target_map *m, struct strbuf *out);

/*
 * Does the program of the target, created with a preload, load its object by itself?  Not in another root folder, without
 * the variable, as behind env -i or sudo, nor with rights of its file's owner.
 */
bool target_brings(const struct target *t);

/* Does process @pid see another file tree than the tracer: by chroot, or by its mount namespace? */
bool target_other_root(pid_t pid);

/* The tracer's pid namespace, as bpf_get_ns_current_pid_tgid wants it. */
struct target_pid_ns {
	uint64_t dev;		/* in the kernel's encoding, not stat's */
	uint64_t ino;
	bool is_initial;	/* ids are the kernel's own: no translation needed */
};

int target_pid_ns(struct target_pid_ns *ret);

/* Is process @pid, as this one's pid namespace calls it, in another pid namespace, as far as can be told? */
bool target_other_pids(pid_t pid);

#endif

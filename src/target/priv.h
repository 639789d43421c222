/*
 * What the files of target/ share.  Nobody else includes this.
 */
#ifndef DTAP_TARGET_PRIV_H
#define DTAP_TARGET_PRIV_H

#include <sys/ptrace.h>

#include "base/strbuf.h"
#include "target/target.h"

/* A thread under ptrace. */
struct target_thread {
	pid_t tid;
	bool is_foreign;	/* a process of its own: let go at its first stop */
};

struct target {
	pid_t pid;
	enum target_state state;
	bool is_child;
	bool is_moving;		/* between two states: the last wait was interrupted */
	bool has_status;
	int status;		/* as of waitpid */
	int pidfd;		/* -1: the kernel has none */
	uint64_t start_time;	/* of an attached target, in clock ticks since boot: which one is meant by @pid */
	struct target_thread *threads;	/* those under ptrace, the first thread first; empty once released */
	size_t nthreads, threads_cap;
	const struct target_preload *preload;	/* or NULL; its owner's */
	bool brings;		/* what runs since the last exec has its object */
	/* The entry breakpoint, when it is set. */
	uint64_t entry;		/* 0: not set */
	unsigned long entry_word;	/* what was there */
};

/* Add a line to @why, which may be NULL; returns @err. */
int target_fail(struct strbuf *why, int err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The same, with the words of strerror(-@err) behind it. */
int target_fail_errno(struct strbuf *why, int err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* pidfd_open, close-on-exec; -1 when the kernel has none. */
int target_pidfd(pid_t pid);

/* hold.c: the ptrace options of a target that is held. */
enum { HOLD_OPTIONS = PTRACE_O_TRACEEXEC | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL };

/* hold.c: put the target's first thread under ptrace; it is not stopped by that.  0 or a negative errno. */
int hold_seize(struct target *t);

/* hold.c: as target_next_exec, for a new child that was just let go to its first exec. */
int hold_wait(struct target *t, struct strbuf *why);

/* proc.c: read all of /proc/@pid/@file.  0 or a negative errno; the caller releases @out in both cases. */
int proc_read(pid_t pid, const char *file, struct strbuf *out);

/* What stands behind "@name:" in the text of /proc/PID/status, or NULL. */
const char *proc_status_field(const char *status, const char *name);

/* Field @nr, as proc(5) counts, of the text of /proc/PID/stat; not the second, which may contain anything. */
uint64_t proc_stat_field(const char *stat, int nr);

/* breakpoint.c: set, look at, and undo the entry breakpoint of a target whose first thread is stopped. */
int entry_set(struct target *t, struct strbuf *why);
bool entry_hit(const struct target *t);
int entry_undo(struct target *t, struct strbuf *why);

/*
 * preload.c: this process's environment and what @p adds, a list that ends with NULL on the heap, in one piece; NULL: no
 * memory.
 */
char **preload_environ(const struct target_preload *p);

/*
 * preload.c: of a target that is AT_EXEC, take the object out of LD_PRELOAD again if the program cannot load it.  True:
 * the program's loader will load it.
 */
bool preload_fit(const struct target *t);

/* breakpoint.c: the number in the auxiliary vector of the target's program under @type, such as AT_ENTRY, or 0. */
uint64_t target_auxv(const struct target *t, uint64_t type);

#endif

/*
 * Declarations shared by the files of target/; no other folder includes this.
 */
#ifndef DTAP_TARGET_PRIV_H
#define DTAP_TARGET_PRIV_H

#include <sys/ptrace.h>

#include "base/proc.h"
#include "base/strbuf.h"
#include "target/target.h"

/* A thread under ptrace. */
struct target_thread {
	pid_t tid;
	bool is_foreign;	/* of another process: detached at its first stop */
};

struct target {
	pid_t pid;
	enum target_state state;
	bool is_child;
	bool is_moving;		/* between two states: the last wait was interrupted */
	bool has_status;
	int status;		/* as of waitpid */
	int pidfd;		/* -1: the kernel has no pidfds */
	uint64_t start_time;	/* attached target: in clock ticks since boot; with @pid it identifies the process */
	struct target_thread *threads;	/* those under ptrace, the first thread first; empty once released */
	size_t nthreads, threads_cap;
	const struct target_preload *preload;	/* or NULL; not owned */
	bool brings;		/* the program of the last exec loads the preload's object */
	bool is_lent;		/* from this process's descriptor */
	uint64_t blanks;	/* where the object's path was in its environment, or 0 */
	/* The entry breakpoint. */
	uint64_t entry;		/* its address; 0: not set */
	unsigned long entry_word;	/* the word that it has replaced */
};

/* Add a line to @why, which may be NULL; returns @err. */
int target_fail(struct strbuf *why, int err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The same, followed by strerror(-@err). */
int target_fail_errno(struct strbuf *why, int err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* pidfd_open, close-on-exec; -1 if the kernel does not have it. */
int target_pidfd(pid_t pid);

/* hold.c: the ptrace options of a target that is held. */
enum { HOLD_OPTIONS = PTRACE_O_TRACEEXEC | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL };

/* hold.c: seize the target's first thread by ptrace, without stopping it.  0 or a negative errno. */
int hold_seize(struct target *t);

/* hold.c: as target_next_exec, for a new child that was just allowed to make its first exec. */
int hold_wait(struct target *t, struct strbuf *why);

/* breakpoint.c: set, check, and remove the entry breakpoint of a target whose first thread is stopped. */
int entry_set(struct target *t, struct strbuf *why);
int entry_hit(const struct target *t);	/* 1, 0, or a negative errno: unknown */
int entry_undo(struct target *t, struct strbuf *why);

/*
 * preload.c: this process's environment with the additions of @p, a list that ends with NULL, in one allocation to be
 * released with free(); NULL: no memory.
 */
char **preload_environ(const struct target_preload *p);

/* preload.c: is @path the same file for the program as for us, and the program one for this machine? */
bool preload_loads(const struct target *t, const char *path);

/* preload.c: is @path, below the root of process @pid, the file of that device and inode (stat(2))? */
bool preload_sees(pid_t pid, const char *path, uint64_t dev, uint64_t ino);

enum { PRELOAD_LENT_PATH = 40 };

/*
 * preload.c: the path by which another process opens @p's descriptor of the object (abi/agent.h, ABI_AGENT_LENT).  False: it is not
 * that file for process @pid.  Whether that has the rights to open it is another question.
 */
bool preload_lent_path(const struct target_preload *p, pid_t pid, char path[PRELOAD_LENT_PATH]);

/* preload.c: for a target that is AT_EXEC, remove the object from LD_PRELOAD if the program cannot load it.  Sets t->brings. */
void preload_fit(struct target *t);

/* breakpoint.c: the entry of @type, such as AT_ENTRY, in the auxiliary vector of the target's program, or 0. */
uint64_t target_auxv(const struct target *t, uint64_t type);

#endif

/*
 * Notification of each process on the machine that executes a program.
 *
 * The kernel reports them through a small BPF program on the tracepoint sched_process_exec.  If this user may not load
 * one, /proc is searched periodically instead; that misses processes that execute the same file again, and those that
 * end between two searches.
 */
#ifndef DTAP_PLACE_EXECS_H
#define DTAP_PLACE_EXECS_H

#include <stdint.h>

/* Of a program's name, with its NUL, that the kernel keeps (TASK_COMM_LEN). */
enum { EXECS_NAME = 16 };

struct execs;

/* Start watching.  0, or a negative errno. */
int execs_open(struct execs **ret);
void execs_close(struct execs *e);	/* accepts NULL */

/* For poll or epoll: readable when execs_take() has something to report. */
int execs_fd(const struct execs *e);

/*
 * Call @fn for each process in the tracer's pid namespace that has executed a program since the last call, once for
 * each exec.  It may have ended by now.  @name: the program's, cut; "" if the kernel does not report them.
 */
typedef void execs_fn(void *ctx, uint32_t pid, const char *name);
void execs_take(struct execs *e, execs_fn *fn, void *ctx);

#endif

/*
 * Programs that are started anywhere on the machine, as they are: each process that executes one.
 *
 * The kernel tells, by a small program on the tracepoint sched_process_exec; where it does not let this user load
 * one, /proc is looked through from time to time.  What executes the same file again is then overlooked, and so is what
 * ends between two looks.
 */
#ifndef DTAP_PLACE_EXECS_H
#define DTAP_PLACE_EXECS_H

#include <stdint.h>

struct execs;

/* From now on.  0, or a negative errno. */
int execs_open(struct execs **ret);
void execs_close(struct execs *e);	/* accepts NULL */

/* For poll or epoll: readable when there is something for execs_take(). */
int execs_fd(const struct execs *e);

/*
 * Call @fn for each process that has executed a program since, of those that the tracer's pid namespace has a number
 * for; several times for one that has several times.  It may have ended by now.
 */
void execs_take(struct execs *e, void (*fn)(void *ctx, uint32_t pid), void *ctx);

#endif

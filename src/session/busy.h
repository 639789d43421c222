/*
 * Processes for which an operation must be retried later: a list, and a timer that retries while the session runs,
 * first after a quarter of a second, then each time after twice as long, at most 8 seconds.  The owner supplies the
 * operation.
 */
#ifndef DTAP_SESSION_BUSY_H
#define DTAP_SESSION_BUSY_H

#include <stdbool.h>

struct busy;
struct target;

/* True: @t need not be tried again.  Not called for one that has ended. */
typedef bool busy_fn(void *ctx, struct target *t);

/* The pause after @ntries tries. */
unsigned int busy_wait_ms(unsigned int ntries);

/* 0, or a negative errno. */
int busy_new(busy_fn *again, void *ctx, struct busy **ret);
void busy_free(struct busy *b);		/* accepts NULL */

/* Add @t, which @b owns from then on.  0, or -ENOMEM. */
int busy_add(struct busy *b, struct target *t);

/* For poll or epoll: readable when busy_turn() is to be called, which tries again and never waits. */
int busy_fd(const struct busy *b);
void busy_turn(struct busy *b);

#endif

/*
 * Processes that start Python while a session runs: a list of candidates, and when to check each.
 *
 * A process that has just executed a program may soon be a running interpreter, or end, or neither.  So it is checked
 * several times, first within milliseconds, then at growing intervals, for some seconds.  The owner supplies the
 * check.
 */
#ifndef DTAP_SESSION_NEWCOMERS_H
#define DTAP_SESSION_NEWCOMERS_H

#include <stdbool.h>
#include <stdint.h>

struct newcomers;

enum newcomer {
	NEWCOMER_DONE,		/* nothing more to do */
	NEWCOMER_SOON,		/* look again */
	NEWCOMER_HARDLY,	/* look again, but rarely */
};

struct newcomers_conf {
	/* Look at @pid, for the last time if @last.  @named: its program has the name of a Python. */
	enum newcomer (*look)(void *ctx, uint32_t pid, bool last, bool named);
	void *ctx;
};

/* A list that newcomers_add() fills, and that newcomers_turn() looks at.  0, or a negative errno. */
int newcomers_new(const struct newcomers_conf *conf, struct newcomers **ret);
void newcomers_free(struct newcomers *n);	/* accepts NULL */

/* Add those that execute a program from now on, too, if that is not done yet.  0, or a negative errno. */
int newcomers_watch(struct newcomers *n);

/* Add @pid, as if it had just executed its program. */
void newcomers_add(struct newcomers *n, uint32_t pid);

/*
 * Call @fn for each that is still to be looked at; @due: it may be an interpreter that runs, since it has executed its program
 * some milliseconds ago, and is no unlikely candidate.  @fn adds none.
 */
void newcomers_each(struct newcomers *n, void (*fn)(void *ctx, uint32_t pid, bool named, bool due), void *ctx);

/* For poll or epoll: readable when there is something for newcomers_turn(), which never waits. */
int newcomers_fd(const struct newcomers *n);
void newcomers_turn(struct newcomers *n);

#endif

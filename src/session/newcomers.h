/*
 * Processes that become Pythons while a session runs: who they are, and when to look at each.
 *
 * A process that has just executed a program is soon an interpreter in working order, or has ended, or is neither: so it
 * is looked at some times, first within milliseconds, then ever more seldom, for some seconds.  What a look is, and
 * what comes of it, is the owner's business.
 */
#ifndef DTAP_SESSION_NEWCOMERS_H
#define DTAP_SESSION_NEWCOMERS_H

#include <stdbool.h>
#include <stdint.h>

struct newcomers;

enum newcomer {
	NEWCOMER_DONE,		/* nothing more is to do */
	NEWCOMER_SOON,		/* look again */
	NEWCOMER_HARDLY,	/* look again, but not often */
};

struct newcomers_conf {
	/* Look at @pid, for the last time if @last. */
	enum newcomer (*look)(void *ctx, uint32_t pid, bool last);
	void *ctx;
};

/* Programs that are started from now on are seen; newcomers_turn() looks at them.  0, or a negative errno. */
int newcomers_new(const struct newcomers_conf *conf, struct newcomers **ret);
void newcomers_free(struct newcomers *n);	/* accepts NULL */

/* Look at @pid, too, as if it had just executed its program. */
void newcomers_add(struct newcomers *n, uint32_t pid);

/* For poll or epoll: readable when there is something for newcomers_turn(), which never waits. */
int newcomers_fd(const struct newcomers *n);
void newcomers_turn(struct newcomers *n);

#endif

/*
 * The watchdog: a thread that ends the service when another one of it hangs.
 *
 * A thread of which others depend says at least every quarter of the limit that it goes on.  If one does not for the whole
 * limit, the service ends at once, by _exit(2): agents then let go of the traced processes, and systemd starts it anew.
 * systemd, if it is told where (NOTIFY_SOCKET; sd_notify(3)), hears that the service is ready, and as often as it wants
 * (WATCHDOG_USEC) that nothing hangs.
 */
#ifndef DTAP_CMD_SERVE_WATCHDOG_H
#define DTAP_CMD_SERVE_WATCHDOG_H

#include <stdatomic.h>

struct watchdog;

/* A thread that is watched, by its owner, who keeps it until watchdog_leave(). */
struct watched {
	const char *name;		/* for the message */
	atomic_ullong alive_ms;		/* now_ms() when it last said so */
	struct watched *next;
};

/* @limit_s 0: nothing is ended.  NULL: no memory, or no thread. */
struct watchdog *watchdog_new(unsigned int limit_s);
void watchdog_free(struct watchdog *d);		/* accepts NULL */

/* By any thread.  A thread that waits wakes at least every watchdog_wait_ms(); -1: it need not. */
void watchdog_join(struct watchdog *d, struct watched *w, const char *name);
void watchdog_leave(struct watchdog *d, struct watched *w);
void watchdog_alive(struct watched *w);
int watchdog_wait_ms(const struct watchdog *d);

/* Tell systemd: "READY=1", "STOPPING=1".  Nothing without it. */
void watchdog_tell(const char *state);

#endif

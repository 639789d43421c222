#include "cmd/serve/watchdog.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/now.h"

enum { EXIT_HUNG = 70 };	/* sysexits.h: EX_SOFTWARE */

struct watchdog {
	pthread_t thread;
	uint64_t limit_ms;		/* 0: none */
	uint64_t tell_ms;		/* how often systemd wants to hear; 0: never */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool stop;
	struct watched *list;
};

void watchdog_tell(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t len = path ? strlen(path) : 0;
	int fd;

	if (!len || len >= sizeof(to.sun_path) || (*path != '/' && *path != '@'))
		return;
	memcpy(to.sun_path, path, len);
	to.sun_path[0] = *path == '@' ? 0 : '/';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	/* One that is not heard is like one that was not sent. */
	if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&to,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) < 0)
		fprintf(stderr, "dtap serve: systemd cannot be told %s\n", state);
	close(fd);
}

/* Ends the service if a thread hangs; with d->lock. */
static void look(const struct watchdog *d)
{
	uint64_t now = now_ms();
	bool hangs = false;

	for (const struct watched *w = d->list; d->limit_ms && w; w = w->next) {
		uint64_t alive = atomic_load(&w->alive_ms);

		if (now <= alive || now - alive <= d->limit_ms)
			continue;
		fprintf(stderr, "dtap serve: %s: hangs for %" PRIu64 " s; the service ends, and lets go of all processes\n", w->name,
			(now - alive) / 1000);
		hangs = true;
	}
	if (hangs)
		_exit(EXIT_HUNG);
}

static void *run(void *ctx)
{
	struct watchdog *d = ctx;
	uint64_t every = d->limit_ms ? d->limit_ms / 4 : UINT64_MAX;

	every = d->tell_ms && d->tell_ms < every ? d->tell_ms : every;
	pthread_mutex_lock(&d->lock);
	while (!d->stop) {
		uint64_t due = now_ms() + every;
		const struct timespec until = { (time_t)(due / 1000), (long)(due % 1000) * 1000000 };

		look(d);
		if (d->tell_ms)
			watchdog_tell("WATCHDOG=1");
		pthread_cond_timedwait(&d->changed, &d->lock, &until);
	}
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

struct watchdog *watchdog_new(unsigned int limit_s)
{
	const char *usec = getenv("WATCHDOG_USEC");
	struct watchdog *d = calloc(1, sizeof(*d));
	pthread_condattr_t monotonic;

	if (!d)
		return NULL;
	d->limit_ms = limit_s * UINT64_C(1000);
	d->tell_ms = usec ? strtoull(usec, NULL, 10) / 2000 : 0;
	pthread_mutex_init(&d->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&d->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	d->stop = !d->limit_ms && !d->tell_ms;	/* nothing to do */
	if (!pthread_create(&d->thread, NULL, run, d)) {
		pthread_setname_np(d->thread, "dtap-watchdog");
		return d;
	}
	pthread_cond_destroy(&d->changed);
	pthread_mutex_destroy(&d->lock);
	free(d);
	return NULL;
}

void watchdog_free(struct watchdog *d)
{
	if (!d)
		return;
	pthread_mutex_lock(&d->lock);
	d->stop = true;
	pthread_cond_signal(&d->changed);
	pthread_mutex_unlock(&d->lock);
	pthread_join(d->thread, NULL);
	pthread_cond_destroy(&d->changed);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

void watchdog_join(struct watchdog *d, struct watched *w, const char *name)
{
	w->name = name;
	watchdog_alive(w);
	pthread_mutex_lock(&d->lock);
	w->next = d->list;
	d->list = w;
	pthread_mutex_unlock(&d->lock);
}

void watchdog_leave(struct watchdog *d, struct watched *w)
{
	struct watched **at;

	pthread_mutex_lock(&d->lock);
	for (at = &d->list; *at && *at != w; at = &(*at)->next)
		;
	if (*at)
		*at = w->next;
	pthread_mutex_unlock(&d->lock);
}

void watchdog_alive(struct watched *w)
{
	atomic_store(&w->alive_ms, now_ms());
}

int watchdog_wait_ms(const struct watchdog *d)
{
	return d->limit_ms ? (int)(d->limit_ms / 4) : -1;
}

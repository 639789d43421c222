#include "session/newcomers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/now.h"
#include "place/execs.h"

/* Milliseconds between looks.  An interpreter takes some 10 ms to start, on a busy machine some seconds. */
static const uint16_t naps[] = { 3, 4, 6, 8, 12, 20, 30, 50, 80, 120, 200, 300, 500, 800, 1300, 2000, 3000 };

enum {
	NAPS = sizeof(naps) / sizeof(naps[0]),
	HARDLY = 11,		/* unlikely candidates are looked at after every second nap from this one on */
	PENDING_MAX = 16384,	/* more than that are not looked at */
};

struct newcomer_pid {
	uint32_t pid;
	uint32_t step;		/* index in naps */
	bool named;		/* its program has the name of a Python */
	uint64_t due_ms;
};

struct newcomers {
	struct newcomers_conf conf;
	struct execs *execs;	/* NULL: not watched */
	struct newcomer_pid *v;
	size_t n, cap;
	int epoll, timer;
	uint64_t set_ms;	/* when the timer is due; 0: it is not set */
};

/* Wake up when the first is due. */
static void set_timer(struct newcomers *n)
{
	struct itimerspec at = { 0 };
	uint64_t first = 0;

	for (size_t i = 0; i < n->n; i++)
		if (!first || n->v[i].due_ms < first)
			first = n->v[i].due_ms;
	if (first == n->set_ms)
		return;
	at.it_value.tv_sec = (time_t)(first / 1000);
	at.it_value.tv_nsec = (long)(first % 1000) * 1000000;
	timerfd_settime(n->timer, TFD_TIMER_ABSTIME, &at, NULL);
	n->set_ms = first;
}

/* @pid has executed a program, perhaps after another one that was looked at. */
static void add(void *ctx, uint32_t pid, const char *name)
{
	struct newcomers *n = ctx;
	struct newcomer_pid *p;
	size_t i, cap;

	for (i = 0; i < n->n && n->v[i].pid != pid; i++)
		;
	if (i == n->cap) {
		cap = n->cap ? 2 * n->cap : 64;
		p = cap <= PENDING_MAX ? realloc(n->v, cap * sizeof(*p)) : NULL;
		if (!p)
			return;
		n->v = p;
		n->cap = cap;
	}
	n->v[i] = (struct newcomer_pid){ .pid = pid, .due_ms = now_ms() + naps[0], .step = 1,
					   .named = !strncmp(name, "python", 6) };
	n->n += i == n->n;
}

void newcomers_add(struct newcomers *n, uint32_t pid)
{
	add(n, pid, "");
	set_timer(n);
}

/* Look at number @i.  False: it need not be looked at again. */
static bool look(struct newcomers *n, size_t i)
{
	struct newcomer_pid *p = &n->v[i];
	bool last = p->step >= NAPS;

	switch (n->conf.look(n->conf.ctx, p->pid, last, p->named)) {
	case NEWCOMER_DONE:
		return false;
	case NEWCOMER_SOON:
		break;
	case NEWCOMER_HARDLY:
		p->step = p->step < HARDLY ? HARDLY : p->step + 1;
		break;
	}
	if (last || p->step >= NAPS)
		return false;
	p->due_ms = now_ms() + naps[p->step++];
	return true;
}

static void take(struct newcomers *n)
{
	if (n->execs)
		execs_take(n->execs, add, n);
}

void newcomers_turn(struct newcomers *n)
{
	uint64_t now, ticks;
	size_t i = 0;

	if (read(n->timer, &ticks, sizeof(ticks)) == sizeof(ticks))
		n->set_ms = 0;
	take(n);
	now = now_ms();
	while (i < n->n) {
		if (n->v[i].due_ms > now || look(n, i))
			i++;
		else
			n->v[i] = n->v[--n->n];
	}
	set_timer(n);
}

void newcomers_each(struct newcomers *n, void (*fn)(void *ctx, uint32_t pid, bool named, bool due), void *ctx)
{
	uint64_t now = now_ms();

	take(n);
	for (size_t i = 0; i < n->n; i++) {
		const struct newcomer_pid *p = &n->v[i];

		fn(ctx, p->pid, p->named, p->step < HARDLY && (p->step > 1 || p->due_ms <= now));
	}
}

static int watch(struct newcomers *n, int fd)
{
	struct epoll_event e = { .events = EPOLLIN };

	return epoll_ctl(n->epoll, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
}

int newcomers_new(const struct newcomers_conf *conf, struct newcomers **ret)
{
	struct newcomers *n = calloc(1, sizeof(*n));
	int err;

	if (!n)
		return -ENOMEM;
	n->conf = *conf;
	n->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	n->epoll = epoll_create1(EPOLL_CLOEXEC);
	err = n->timer < 0 || n->epoll < 0 ? -errno : watch(n, n->timer);
	if (err)
		newcomers_free(n);
	else
		*ret = n;
	return err;
}

int newcomers_watch(struct newcomers *n)
{
	struct execs *e = NULL;
	int err;

	if (n->execs)
		return 0;
	err = execs_open(&e);
	if (!err)
		err = watch(n, execs_fd(e));
	if (err)
		execs_close(e);
	else
		n->execs = e;
	return err;
}

void newcomers_free(struct newcomers *n)
{
	if (!n)
		return;
	execs_close(n->execs);
	if (n->timer >= 0)
		close(n->timer);
	if (n->epoll >= 0)
		close(n->epoll);
	free(n->v);
	free(n);
}

int newcomers_fd(const struct newcomers *n)
{
	return n->epoll;
}

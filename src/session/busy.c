#include "session/busy.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/now.h"
#include "target/target.h"

/*
 * A try takes some milliseconds, so one turn makes few of them, and processes that stay busy are tried ever less
 * often.
 */
enum { FIRST_MS = 250, MOST_MS = 8000, TRIES = 4 };

struct waiting {
	struct target *t;
	unsigned int ntries;
	uint64_t due_ms;
};

struct busy {
	busy_fn *again;
	void *ctx;
	struct waiting *v;
	size_t n, cap;
	int timer;
};

unsigned int busy_wait_ms(unsigned int ntries)
{
	unsigned int ms = FIRST_MS;

	while (ntries-- && ms < MOST_MS)
		ms *= 2;
	return ms;
}

/* Set the timer to the first try that is due. */
static void set_timer(struct busy *b)
{
	struct itimerspec at = { 0 };
	uint64_t first = b->n ? UINT64_MAX : 0;

	for (size_t i = 0; i < b->n; i++)
		first = b->v[i].due_ms < first ? b->v[i].due_ms : first;
	at.it_value.tv_sec = (time_t)(first / 1000);
	at.it_value.tv_nsec = (long)(first % 1000) * 1000000;
	timerfd_settime(b->timer, TFD_TIMER_ABSTIME, &at, NULL);
}

int busy_new(busy_fn *again, void *ctx, struct busy **ret)
{
	struct busy *b = calloc(1, sizeof(*b));
	int err;

	if (!b)
		return -ENOMEM;
	b->again = again;
	b->ctx = ctx;
	b->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (b->timer < 0) {
		err = -errno;
		free(b);
		return err;
	}
	*ret = b;
	return 0;
}

void busy_free(struct busy *b)
{
	if (!b)
		return;
	close(b->timer);
	while (b->n)
		target_free(b->v[--b->n].t);
	free(b->v);
	free(b);
}

int busy_add(struct busy *b, struct target *t)
{
	size_t cap = b->cap ? 2 * b->cap : 8;
	struct waiting *v;

	if (b->n == b->cap) {
		v = realloc(b->v, cap * sizeof(*v));
		if (!v) {
			target_free(t);
			return -ENOMEM;
		}
		b->v = v;
		b->cap = cap;
	}
	b->v[b->n++] = (struct waiting){ t, 0, now_ms() + busy_wait_ms(0) };
	set_timer(b);
	return 0;
}

int busy_fd(const struct busy *b)
{
	return b->timer;
}

/* False: it need not be tried again. */
static bool try(struct busy *b, struct waiting *w)
{
	if (target_poll(w->t) == TARGET_EXITED || b->again(b->ctx, w->t))
		return false;
	w->due_ms = now_ms() + busy_wait_ms(++w->ntries);
	return true;
}

void busy_turn(struct busy *b)
{
	uint64_t ticks, now = now_ms();
	struct waiting tried[TRIES];
	size_t kept = 0, ntried = 0;
	int left = TRIES;

	if (read(b->timer, &ticks, sizeof(ticks)) != sizeof(ticks))
		return;
	for (size_t i = 0; i < b->n; i++) {
		struct waiting w = b->v[i];

		bool is_due = left && w.due_ms <= now;

		left -= is_due;
		if (!is_due)
			b->v[kept++] = w;
		else if (try(b, &w))
			tried[ntried++] = w;
		else
			target_free(w.t);
	}
	/* Move it behind the others, whose turn is next. */
	for (size_t i = 0; i < ntried; i++)
		b->v[kept++] = tried[i];
	b->n = kept;
	set_timer(b);
}

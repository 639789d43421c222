#include "base/parallel.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

enum { THREADS_MAX = 16, STACK_SIZE = 256 << 10 };

struct work {
	void (*fn)(void *ctx, size_t i);
	void *ctx;
	size_t n;
	atomic_size_t next;
};

static void *take(void *arg)
{
	struct work *w = arg;
	size_t i;

	while ((i = atomic_fetch_add(&w->next, 1)) < w->n)
		w->fn(w->ctx, i);
	return NULL;
}

/* Start up to @want threads that run take(); returns how many. */
static size_t make_threads(struct work *w, pthread_t *threads, size_t want)
{
	pthread_attr_t attr;
	sigset_t all, old;
	size_t n = 0;

	if (pthread_attr_init(&attr))
		return 0;
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	while (n < want && !pthread_create(&threads[n], &attr, take, w))
		n++;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return n;
}

void parallel_each(size_t n, void (*fn)(void *ctx, size_t i), void *ctx)
{
	struct work w = { .fn = fn, .ctx = ctx, .n = n };
	pthread_t threads[THREADS_MAX - 1];
	size_t made = 0;

	if (n > 1)
		made = make_threads(&w, threads, n < THREADS_MAX ? n - 1 : THREADS_MAX - 1);
	take(&w);
	while (made)
		pthread_join(threads[--made], NULL);
}

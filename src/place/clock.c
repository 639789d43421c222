/*
 * The kernel continually corrects the rate of CLOCK_MONOTONIC (NTP), by up to 500 parts per million; the counter's own
 * rate is constant if the kernel uses it as its clock source.  So the rate is measured repeatedly over the whole
 * session, and a difference is corrected within a second by a slightly higher or lower rate: time never goes back.
 */
#include "place/clock.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "arch/cycles.h"

#if defined(ARCH_CYCLES)

enum { TRIES = 5, CATCH_UP_NS = 1000000000, LEAP_NS = 10000000, APART_NS = 1000000, FORESEEN_NS = 1000000000 };

static bool is_clock_source(void)
{
	int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
	char name[32] = "";
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, name, sizeof(name) - 1);
	close(fd);
	return n > 0 && !strcmp(name, ARCH_CYCLES "\n");
}

/* Read both clocks at the same moment: the shortest of several tries. */
static void sample(uint64_t *tsc, uint64_t *ns)
{
	uint64_t best = UINT64_MAX;

	for (int k = 0; k < TRIES; k++) {
		struct timespec ts;
		uint64_t before = arch_cycles(), after;

		clock_gettime(CLOCK_MONOTONIC, &ts);
		after = arch_cycles();
		if (!k || after - before < best) {
			best = after - before;
			*tsc = before + best / 2;
			*ns = (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
		}
	}
}

static uint64_t scale(uint64_t ticks, uint64_t mult)
{
	return (uint64_t)((unsigned __int128)ticks * mult >> 32);
}

static void publish(struct clock *k, uint64_t tsc, uint64_t ns, uint64_t mult)
{
	struct abi_clock *c = k->shared;

	k->own.base_tsc = tsc;
	k->own.base_ns = ns;
	k->own.mult = mult;
	__atomic_store_n(&c->seq, ++k->own.seq, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	c->base_tsc = tsc;
	c->base_ns = ns;
	c->mult = mult;
	__atomic_store_n(&c->seq, ++k->own.seq, __ATOMIC_RELEASE);
	__atomic_store_n(&c->usable, k->own.usable, __ATOMIC_RELEASE);
}

/* The last look ahead. */
static struct {
	pthread_mutex_t lock;
	uint64_t tsc, ns;
} foreseen = { .lock = PTHREAD_MUTEX_INITIALIZER };

void clock_foresee(void)
{
	pthread_mutex_lock(&foreseen.lock);
	sample(&foreseen.tsc, &foreseen.ns);
	pthread_mutex_unlock(&foreseen.lock);
}

void clock_start(struct clock *c, struct abi_clock *shared)
{
	uint64_t tsc, ns;

	*c = (struct clock){ .shared = shared };
	if (!is_clock_source())
		return;
	pthread_mutex_lock(&foreseen.lock);
	c->first_tsc = foreseen.tsc;
	c->first_ns = foreseen.ns;
	pthread_mutex_unlock(&foreseen.lock);
	sample(&tsc, &ns);
	if (ns - c->first_ns > FORESEEN_NS) {
		c->first_tsc = tsc;
		c->first_ns = ns;
	}
	if (ns - c->first_ns < APART_NS) {
		const struct timespec rest = { .tv_nsec = (long)(APART_NS - (ns - c->first_ns)) };

		nanosleep(&rest, NULL);
		sample(&tsc, &ns);
	}
	if (tsc <= c->first_tsc || ns <= c->first_ns)
		return;
	c->own.usable = 1;
	publish(c, tsc, ns, (uint64_t)(((unsigned __int128)(ns - c->first_ns) << 32) / (tsc - c->first_tsc)));
}

void clock_keep(struct clock *c)
{
	const struct abi_clock *s = &c->own;
	uint64_t tsc, ns, shown, mult;
	int64_t ahead;

	if (!s->usable)
		return;
	sample(&tsc, &ns);
	if (tsc <= s->base_tsc || tsc <= c->first_tsc || ns <= c->first_ns)
		return;
	shown = s->base_ns + scale(tsc - s->base_tsc, s->mult);
	mult = (uint64_t)(((unsigned __int128)(ns - c->first_ns) << 32) / (tsc - c->first_tsc));
	ahead = (int64_t)(shown - ns);
	if (ahead > LEAP_NS || ahead < -LEAP_NS) {
		/* The machine was suspended or migrated: better a jump than a wrong clock. */
		c->first_tsc = tsc;
		c->first_ns = ns;
		publish(c, tsc, ns, s->mult);
		return;
	}
	mult -= (uint64_t)((__int128)(int64_t)mult * ahead / CATCH_UP_NS);
	publish(c, tsc, shown, mult);
}

#else

void clock_foresee(void)
{
}

void clock_start(struct clock *c, struct abi_clock *shared)
{
	*c = (struct clock){ .shared = shared };
}

void clock_keep(struct clock *c)
{
	(void)c;
}

#endif

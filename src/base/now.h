/*
 * The time: CLOCK_MONOTONIC for timestamps of events and for timeouts, and the time of day.
 */
#ifndef DTAP_BASE_NOW_H
#define DTAP_BASE_NOW_H

#include <stdint.h>
#include <time.h>

static inline uint64_t now_of(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static inline uint64_t now_ns(void)
{
	return now_of(CLOCK_MONOTONIC);
}

static inline uint64_t now_us(void)
{
	return now_ns() / 1000;
}

static inline uint64_t now_ms(void)
{
	return now_ns() / 1000000;
}

/* Nanoseconds since 1970. */
static inline uint64_t now_wall_ns(void)
{
	return now_of(CLOCK_REALTIME);
}

/*
 * The offset from CLOCK_MONOTONIC to the time of day.  A thread can be preempted between reading the
 * two clocks, so the shortest of several tries is used.
 */
static inline uint64_t now_wall_off_ns(void)
{
	uint64_t shortest = UINT64_MAX, off = 0;

	for (int i = 0; i < 5; i++) {
		uint64_t before = now_ns(), wall = now_wall_ns(), took = now_ns() - before;

		if (took < shortest) {
			shortest = took;
			off = wall - before - took / 2;
		}
	}
	return off;
}

#endif

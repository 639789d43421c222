/*
 * The time: CLOCK_MONOTONIC, by which events are stamped and waits are measured, and the time of day.
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

#endif

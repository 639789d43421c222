/* SPDX-License-Identifier: MIT */
#include "agent/vtime.h"

#include <time.h>

#include "agent/state.h"

/* Most events are shorter.  One that is not may have lost its CPU meanwhile, which hardly takes less. */
enum { LONG_NS = 4000 };

static uint64_t thread_clock(void)
{
	struct timespec ts = { 0 };

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

void vtime_begin(const struct shm *clock)
{
	struct thread_vtime *v = &agent_thread.vtime;
	uint64_t from, cpu, took;

	if (v->depth++)
		return;
	from = shm_now(clock);
	cpu = thread_clock();
	v->since_ns = shm_now(clock);
	took = v->since_ns - from;
	/* The clock was read about in the middle. */
	v->lead_ns = took < LONG_NS ? took / 2 : 0;
	v->began_ns = cpu - v->lead_ns;
	if (v->began_ns - v->hidden_ns > v->now_ns && v->began_ns > v->hidden_ns)
		v->now_ns = v->began_ns - v->hidden_ns;
}

void vtime_end(const struct shm *clock)
{
	struct thread_vtime *v = &agent_thread.vtime;
	uint64_t took, end;

	if (!v->depth || --v->depth)
		return;
	took = shm_now(clock) - v->since_ns;
	end = took < LONG_NS ? v->began_ns + 2 * (uint64_t)v->lead_ns + took : thread_clock() + v->lead_ns;
	if (end > v->began_ns)
		v->hidden_ns += end - v->began_ns;
}

uint64_t vtime_now(void)
{
	return agent_thread.vtime.depth ? agent_thread.vtime.now_ns : thread_clock();
}

void vtime_forked(void)
{
	agent_thread.vtime = (struct thread_vtime){ .depth = 0 };
}

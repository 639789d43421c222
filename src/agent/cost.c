/* SPDX-License-Identifier: MIT */
#include "agent/cost.h"

#include <time.h>

#include "agent/agent.h"
#include "vm/shm.h"

/* --- the machine's speed ------------------------------------------------------------------------------- */

/*
 * REFERENCE_NS is what ROUNDS rounds took on the machine of cost.def.  A round calls through a pointer and waits for memory,
 * as interpreters do.  The least of some tries counts: in the others the thread may have lost its processor.
 */
enum { ROUNDS = 2048, TRIES = 5, REFERENCE_NS = 3900, SLOWEST = 8 };

static uint64_t clock_ns(void)
{
	struct timespec ts = { 0 };

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static __attribute__((noinline)) uint32_t step(const uint32_t *at, uint32_t n)
{
	return at[n & 63] + n;
}

static uint64_t one_try(void)
{
	uint32_t (*volatile call)(const uint32_t *, uint32_t) = step;
	uint32_t words[64], n = 0;
	uint64_t from;

	for (uint32_t k = 0; k < 64; k++)
		words[k] = k * 7 + 1;
	from = clock_ns();
	for (uint32_t k = 0; k < ROUNDS; k++)
		n = call(words, n);
	__asm__ volatile("" : : "r"(n));
	return clock_ns() - from;
}

/* In 1/64: 64 for the machine of cost.def. */
static uint32_t slowness(void)
{
	uint64_t least = UINT64_MAX;

	for (int k = 0; k < TRIES; k++) {
		uint64_t ns = one_try();

		least = ns < least ? ns : least;
	}
	least = least * 64 / REFERENCE_NS;
	return least < 16 ? 16 : least > 64 * SLOWEST ? 64 * SLOWEST : (uint32_t)least;
}

/* --- hooks --------------------------------------------------------------------------------------------- */

enum { PYTHONS = 5 };

static const struct row {
	const struct hook *hook;	/* NULL: of a kind that is no marker */
	enum cost_kind kind;
	uint16_t tenths[PYTHONS];	/* of ns */
} rows[] = {
#define COST_HOOK(hook, ...) { &hook, 0, { __VA_ARGS__ } },
#define COST_KIND(KIND, ...) { NULL, COST_##KIND, { __VA_ARGS__ } },
#include "agent/cost.def"
#undef COST_HOOK
#undef COST_KIND
};

/* The column of cost.def; one that is not there is like the next older one. */
static unsigned column(void)
{
	static const int minors[PYTHONS] = { 9, 11, 13, 14, 15 };
	unsigned at = 0;

	while (at + 1 < PYTHONS && agent.py.minor >= minors[at + 1])
		at++;
	return agent.py.minor == 12 ? at + 1 : at;
}

static uint32_t ps_of(const struct row *r)
{
	return (uint32_t)((uint64_t)r->tenths[column()] * 100 * agent.cost.slowness / 64);
}

void cost_measure(void)
{
	static struct abi_lane nobody;

	agent.cost.nobody = &nobody;
	agent.cost.slowness = slowness();
	for (unsigned k = 0; k < COST_KINDS; k++)
		agent.cost.payers[k] = &nobody;
}

void cost_update(void)
{
	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		unsigned markers = rows[i].hook ? agent_supplied_by(rows[i].hook) : 0;

		if (!rows[i].hook)
			agent.cost.ps[rows[i].kind] = ps_of(&rows[i]);
		for (unsigned k = 0; k < ABI_MARKERS; k++)
			if (markers >> k & 1)
				agent.cost.ps[k] = ps_of(&rows[i]);
	}
}

void cost_set_payer(unsigned kind, struct abi_lane *lane)
{
	agent.cost.payers[kind] = lane ? lane : agent.cost.nobody;
}

/* --- programs ------------------------------------------------------------------------------------------ */

/*
 * Reading the clock twice takes some CLOCK_NS, so an event of as many ns as that is one of RATIO.  A run that took so
 * long that it may have lost its processor meanwhile does not stand for others.
 */
enum { CLOCK_NS = 12, RATIO = 2000, LONG_NS = 20000 };

void cost_measured(struct abi_lane *lane, uint32_t weight, uint64_t ns)
{
	ns = ns > CLOCK_NS ? ns - CLOCK_NS : 0;
	lane->spent_ps += ns * 1000 * (ns > LONG_NS ? 1 : weight);
}

void cost_next(uint64_t ns)
{
	struct thread_cost *c = &agent_thread.cost;
	uint32_t most = 1 + (uint32_t)(ns < RATIO ? 2 * RATIO / (ns + 1) : 0);

	most = most > 256 ? 256 : most;
	c->random = c->random * 1103515245 + 12345;
	c->interval = c->left = 1 + (c->random >> 16) % most;
}

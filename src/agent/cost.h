/* SPDX-License-Identifier: MIT */
/*
 * What events cost the process, for its lane (abi_lane.events, spent_ps): the hook, and the programs.
 *
 * The hook's part, with the interpreter's way to it, is a figure for each hook and interpreter (cost.def), measured by
 * bench/what_does_an_event_cost_and_what_is_told.py and multiplied by how slow this machine is, which is measured once,
 * at set-up.  Of several sessions that want an event the first one pays for the hook.
 *
 * The programs' part is measured with the clock, at every event that takes long, and the shorter events are, the fewer of
 * them are measured, each for those before it.  How many are left out is random: events often alternate.
 */
#ifndef AGENT_COST_H
#define AGENT_COST_H

#include "abi/segment.h"
#include "agent/state.h"

/* With the GIL, once; afterwards, whenever hooks have changed. */
void cost_measure(void);
void cost_update(void);

static inline void cost_pay(struct abi_lane *lane, uint64_t ps)
{
	lane->events++;
	lane->spent_ps += ps;
}

/* The hook's part of an event of @kind, a marker or enum cost_kind; with the way to programs. */
static inline uint64_t cost_hook(unsigned kind)
{
	return agent.cost.ps[kind];
}

static inline uint64_t cost_hook_and_way(unsigned kind)
{
	return (uint64_t)agent.cost.ps[kind] + agent.cost.ps[COST_WAY];
}

/* An event that no program runs for, since they have nothing to do there: only its hook costs. */
static inline void cost_pass(unsigned kind)
{
	cost_pay(agent.cost.payers[kind], agent.cost.ps[kind]);
}

/* A call that the evaluator sees because of functions by name. */
static inline void cost_see(void)
{
	agent.cost.payers[COST_SEEN]->spent_ps += agent.cost.ps[COST_SEEN];
}

/* Set who pays for @kind; NULL: nobody. */
void cost_set_payer(unsigned kind, struct abi_lane *lane);

/* Is this event to be measured?  The number of events that it is measured for, or 0. */
static inline uint32_t cost_due(void)
{
	struct thread_cost *c = &agent_thread.cost;

	if (__builtin_expect(c->left > 1, 1)) {
		c->left--;
		return 0;
	}
	return c->interval ? c->interval : 1;
}

/* Programs have taken @ns at an event that was due; @weight of cost_due(). */
void cost_measured(struct abi_lane *lane, uint32_t weight, uint64_t ns);

/* After such an event, of whose programs the longest took @ns. */
void cost_next(uint64_t ns);

#endif

/*
 * The session's part of the budget (budget.h): what its events have cost each process, read from the place, with the CPU
 * time that the tracer has used for their records; and that the session rests in a process, or goes on.  In the kernel it
 * rests as a whole.
 *
 * What programs keep for a thread is forgotten before they go on: a time since the beginning of a call whose end they
 * have not seen would be wrong.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/now.h"
#include "session/budget.h"
#include "session/private.h"

static uint64_t thread_ns(void)
{
	return now_of(CLOCK_THREAD_CPUTIME_ID);
}

void session_spend_begin(struct session *s)
{
	s->spending.has_records = false;
	if (s->spending.budget)
		s->spending.drain_from_ns = thread_ns();
}

void session_spend_end(struct session *s)
{
	struct spending *p = &s->spending;

	if (p->budget && p->has_records)
		p->drained_ns += thread_ns() - p->drain_from_ns;
}

static void keep_cost(void *ctx, const struct place_cost *cost)
{
	struct spending *p = ctx;

	p->sum.events += cost->events;
	p->sum.spent_ns += cost->spent_ns;
	if (cost->pid && cost->pid != (uint32_t)getpid() && p->budget &&
	    grow_array(&p->costs, &p->costs_cap, p->ncosts, sizeof(*p->costs)))
		p->costs[p->ncosts++] = *cost;
}

/* What fires in the kernel does so in all processes: where one is to rest, all do. */
static bool let_all_rest(struct session *s)
{
	struct strbuf err = { 0 };

	if (!s->spending.all_rest)
		s->place->ops->rest(s->place, true, &err);
	s->spending.all_rest = true;
	strbuf_fini(&err);
	return true;
}

static void let_all_go_on(struct session *s)
{
	struct strbuf err = { 0 };

	if (s->place->ops->rest(s->place, false, &err))
		session_warn(s, "after a rest: %s", strbuf_str(&err));
	s->spending.all_rest = false;
	strbuf_fini(&err);
}

static bool let_rest(struct session *s, const struct budget_advice *a)
{
	const struct spending *p = &s->spending;

	if (!s->place->in_target)
		return !a->rest || let_all_rest(s);
	if (!a->rest)
		s->place->ops->forget_threads(s->place, a->pid);
	return p->rest && p->rest(p->rest_ctx, a->pid, a->rest);
}

static bool advise(void *ctx, const struct budget_advice *a)
{
	struct session *s = ctx;

	if (!let_rest(s, a))
		return false;
	if (a->rest) {
		s->losses.nrests++;
		session_warn(s, "%sprocess %u %s traced for %llu s or longer: that costs %.3g %% of its CPU time, and the budget is "
			     "%.3g %%", s->place->in_target ? "" : "because of ", a->pid,
			     s->place->in_target ? "is not" : "nothing is", (unsigned long long)(a->pause_ms / 1000),
			     100 * a->ratio, 100 * a->share);
	}
	if (s->conf.rests)
		s->conf.rests(s->conf.message_ctx, a->pid, a->rest);
	return true;
}

/* Each process pays for the tracer's time by its part of the events. */
static void share_out(struct session *s)
{
	struct spending *p = &s->spending;
	uint64_t events = 0;

	for (size_t i = 0; i < p->ncosts; i++)
		events += p->costs[i].events;
	for (size_t i = 0; i < p->ncosts; i++) {
		const struct place_cost *c = &p->costs[i];
		double part = events ? (double)c->events / (double)events : 0;

		budget_spend(p->budget, s, c->pid, c->spent_ns + (uint64_t)((double)p->drained_ns * part));
	}
	p->ncosts = 0;
	p->sum.tracer_ns += p->drained_ns;
	p->drained_ns = 0;
}

void session_spend(struct session *s)
{
	struct spending *p = &s->spending;
	uint64_t now = now_ns();

	if (!p->budget || now - p->looked_ns < (uint64_t)BUDGET_PERIOD_MS * 1000000 * 9 / 10)
		return;
	p->looked_ns = now;
	s->place->ops->costs(s->place, keep_cost, p);
	share_out(s);
	budget_look(p->budget, s, now, advise, s, &p->sum.of_budget);
	if (p->all_rest && !p->sum.of_budget.resting)
		let_all_go_on(s);
}

void session_spend_open(struct session *s)
{
	struct spending *p = &s->spending;

	if (s->conf.budget)
		p->budget = budget_use(s->conf.budget);
}

void session_spend_close(struct session *s)
{
	struct spending *p = &s->spending;

	if (p->budget)
		budget_leave(p->budget, s);
	budget_drop(p->budget);
	free(p->costs);
	*p = (struct spending){ 0 };
}

void session_set_rest(struct session *s, session_rest_fn *rest, void *ctx)
{
	s->spending.rest = rest;
	s->spending.rest_ctx = ctx;
}

void session_forget_cost(struct session *s, uint32_t pid)
{
	if (s->spending.budget)
		budget_forget(s->spending.budget, s, pid);
}

void session_cost(struct session *s, struct session_cost *ret)
{
	struct spending *p = &s->spending;

	s->place->ops->costs(s->place, keep_cost, p);
	*ret = p->sum;
	ret->is_bounded = p->budget && budget_share(p->budget) > 0;
}

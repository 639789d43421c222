/*
 * What tracing may cost each process, by account: several sessions, in several threads, can share one.
 *
 * A process's credit grows with the CPU time that it uses, times the budget's share, up to what BUDGET_AHEAD_NS of CPU
 * time give; what its events cost is taken from it.  When nothing is left, the session that has cost most lately rests in
 * that process.  It goes on when half of the most is there again, but not before a pause is over that is doubled each
 * time that it has had to rest soon again.  So over any time a process pays at most the share of its CPU time, and what
 * is ahead.
 *
 * Each session calls budget_look() every BUDGET_PERIOD_MS, and does what that says.
 */
#ifndef DTAP_SESSION_BUDGET_H
#define DTAP_SESSION_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BUDGET_PERIOD_MS = 100 };
#define BUDGET_AHEAD_NS UINT64_C(2000000000)

struct budget;

/*
 * @share: 0.01 for a hundredth, 0: no bound, what is spent is summed up all the same.  @cpu: the CPU time of a process in
 * ns, 0 if it has ended; NULL: as the kernel says.  NULL: out of memory.  The last user frees it.
 */
struct budget *budget_new(double share, uint64_t (*cpu)(uint32_t pid));
struct budget *budget_use(struct budget *b);
void budget_drop(struct budget *b);	/* accepts NULL */
double budget_share(struct budget *b);
void budget_set(struct budget *b, double share);

/* The share that @text says, such as "0.5 %", or "none": 0.  False: it is none from 0.01 % to 50 %. */
bool budget_parse(const char *text, double *share);

/* Has process @pid cost session @who something more?  @who is any address that no other session has.  0 or -ENOMEM. */
int budget_spend(struct budget *b, const void *who, uint32_t pid, uint64_t ns);

/* What @who is to do in a process, from now on. */
struct budget_advice {
	uint32_t pid;
	bool rest;		/* or go on */
	uint64_t pause_ms;	/* rest: for so long at least */
	double ratio, share;	/* rest: what all sessions have cost the process lately, of its CPU time; and may cost */
};

/* What has become of @who so far; all sums are of all processes, also of those that have ended. */
struct budget_sum {
	uint64_t cpu_ns;	/* of the processes, since their first event */
	uint64_t rests;		/* how often it had to rest */
	uint64_t rested_ns;
	uint32_t resting;	/* processes in which it rests */
	double ratio;		/* the dearest process: what all sessions have cost it lately, of its CPU time */
};

/*
 * Look at the processes that @who has cost something, at @now_ns.  Calls @advise where it is to rest or to go on; if that returns
 * false, it was not possible, and it is asked again.
 */
void budget_look(struct budget *b, const void *who, uint64_t now_ns, bool (*advise)(void *ctx, const struct budget_advice *a),
		 void *ctx, struct budget_sum *sum);

/* The process has ended, or executes another program; @who ends. */
void budget_forget(struct budget *b, const void *who, uint32_t pid);
void budget_leave(struct budget *b, const void *who);

#endif

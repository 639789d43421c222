#include "session/budget.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/grow.h"
#include "base/now.h"

enum { PAUSE_MIN_MS = 1000, PAUSE_MAX_MS = 60000, SOON_MS = 10000 };

/* Processes that have cost nothing since the last look are looked at each second: a script about the kernel has all of a machine. */
enum { IDLE_MS = 1000 };

/* What is recent: sums of it lose half each time that so much CPU time was used. */
#define RECENT_NS UINT64_C(5000000000)

/* A session in a process. */
struct part {
	const void *who;
	double recent_ns;		/* spent; halved at each look of its own */
	uint64_t cpu_ns;		/* of the process, as far as @who has been told of it */
	bool rests, is_stuck;		/* is_stuck: it could not do what it was told */
	uint64_t since_ns, until_ns, pause_ms;	/* of the rest, or of going on */
	uint64_t looked_ns;		/* when @who looked last */
	bool has_spent;			/* ... and since then this */
};

struct process {
	uint32_t pid;
	uint64_t cpu_ns, used_ns;	/* the clock; used since its first event */
	double credit_ns, recent_spent_ns, recent_cpu_ns;
	double low_ns;			/* the credit when a session had to rest last, until there is some again */
	struct part *parts;
	size_t n, cap;
};

/* Sums of a session, also of processes that are gone. */
struct member {
	const void *who;
	uint64_t cpu_ns, rests, rested_ns;
};

struct budget {
	pthread_mutex_t lock;
	unsigned int users;
	double share;
	uint64_t (*cpu)(uint32_t pid);
	struct process *v;		/* by pid */
	size_t n, cap;
	struct member *members;
	size_t nmembers, members_cap;
};

static uint64_t cpu_of(uint32_t pid)
{
	clockid_t clock;

	return clock_getcpuclockid((pid_t)pid, &clock) ? 0 : now_of(clock);
}

struct budget *budget_new(double share, uint64_t (*cpu)(uint32_t pid))
{
	struct budget *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	pthread_mutex_init(&b->lock, NULL);
	b->users = 1;
	b->share = share;
	b->cpu = cpu ? cpu : cpu_of;
	return b;
}

struct budget *budget_use(struct budget *b)
{
	pthread_mutex_lock(&b->lock);
	b->users++;
	pthread_mutex_unlock(&b->lock);
	return b;
}

void budget_drop(struct budget *b)
{
	bool last;

	if (!b)
		return;
	pthread_mutex_lock(&b->lock);
	last = !--b->users;
	pthread_mutex_unlock(&b->lock);
	if (!last)
		return;
	for (size_t i = 0; i < b->n; i++)
		free(b->v[i].parts);
	free(b->v);
	free(b->members);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

double budget_share(struct budget *b)
{
	double share;

	pthread_mutex_lock(&b->lock);
	share = b->share;
	pthread_mutex_unlock(&b->lock);
	return share;
}

void budget_set(struct budget *b, double share)
{
	pthread_mutex_lock(&b->lock);
	b->share = share;
	pthread_mutex_unlock(&b->lock);
}

bool budget_parse(const char *text, double *share)
{
	char *end;

	*share = 0;
	if (!strcmp(text, "none"))
		return true;
	*share = strtod(text, &end) / 100;
	if (end == text)
		return false;
	end += strspn(end, " ");
	return *end == '%' && !end[1] && *share >= 0.0001 && *share <= 0.5;
}

/* --- tables -------------------------------------------------------------------------------------------- */

/* The first process whose number is not below @pid. */
static size_t place_of(const struct budget *b, uint32_t pid)
{
	size_t low = 0, high = b->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (b->v[mid].pid < pid)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static struct process *find(struct budget *b, uint32_t pid)
{
	size_t i = place_of(b, pid);

	return i < b->n && b->v[i].pid == pid ? &b->v[i] : NULL;
}

static struct part *part_of(struct process *p, const void *who)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->parts[i].who == who)
			return &p->parts[i];
	return NULL;
}

static struct member *member_of(struct budget *b, const void *who)
{
	for (size_t i = 0; i < b->nmembers; i++)
		if (b->members[i].who == who)
			return &b->members[i];
	return NULL;
}

static double most(const struct budget *b)
{
	return b->share * (double)BUDGET_AHEAD_NS;
}

/* NULL: out of memory. */
static struct process *add_process(struct budget *b, uint32_t pid)
{
	const uint64_t period_ns = (uint64_t)BUDGET_PERIOD_MS * 1000000;
	size_t i = place_of(b, pid);
	uint64_t cpu = b->cpu(pid);

	if (!grow_array(&b->v, &b->cap, b->n, sizeof(*b->v)))
		return NULL;
	memmove(&b->v[i + 1], &b->v[i], (b->n++ - i) * sizeof(*b->v));
	/* What it has cost first, it has cost since the last look: in so much CPU time at most. */
	b->v[i] = (struct process){ .pid = pid, .cpu_ns = cpu, .credit_ns = most(b),
				    .recent_cpu_ns = (double)(cpu < period_ns ? cpu : period_ns) };
	return &b->v[i];
}

static struct part *add_part(struct budget *b, struct process *p, const void *who)
{
	if (!member_of(b, who)) {
		if (!grow_array(&b->members, &b->members_cap, b->nmembers, sizeof(*b->members)))
			return NULL;
		b->members[b->nmembers++] = (struct member){ .who = who };
	}
	if (!grow_array(&p->parts, &p->cap, p->n, sizeof(*p->parts)))
		return NULL;
	p->parts[p->n] = (struct part){ .who = who, .cpu_ns = p->used_ns };
	return &p->parts[p->n++];
}

static void remove_process(struct budget *b, struct process *p)
{
	free(p->parts);
	memmove(p, p + 1, (size_t)(&b->v[b->n--] - (p + 1)) * sizeof(*p));
}

/* --- what is spent ------------------------------------------------------------------------------------- */

int budget_spend(struct budget *b, const void *who, uint32_t pid, uint64_t ns)
{
	struct process *p;
	struct part *part = NULL;

	pthread_mutex_lock(&b->lock);
	p = find(b, pid);
	if (!p)
		p = add_process(b, pid);
	if (p)
		part = part_of(p, who);
	if (p && !part)
		part = add_part(b, p, who);
	if (part) {
		part->has_spent = true;
		part->recent_ns += (double)ns;
		p->recent_spent_ns += (double)ns;
		p->credit_ns -= (double)ns;
		if (part->rests)	/* until the process has heard of it; no other session is to rest for that */
			p->low_ns -= (double)ns;
	}
	pthread_mutex_unlock(&b->lock);
	return part ? 0 : -ENOMEM;
}

/* Give @p credit for the CPU time that it has used.  False: it has ended. */
static bool give_credit(struct budget *b, struct process *p)
{
	uint64_t cpu = b->cpu(p->pid), used;

	if (!cpu)
		return false;
	used = cpu > p->cpu_ns ? cpu - p->cpu_ns : 0;
	p->cpu_ns = cpu;
	p->used_ns += used;
	p->credit_ns += b->share * (double)used;
	if (p->credit_ns > most(b))
		p->credit_ns = most(b);
	if (p->credit_ns >= 0)
		p->low_ns = 0;
	p->recent_cpu_ns += (double)used;
	if (p->recent_cpu_ns > 2 * (double)RECENT_NS) {
		p->recent_cpu_ns /= 2;
		p->recent_spent_ns /= 2;
	}
	return true;
}

static double ratio_of(const struct process *p)
{
	return p->recent_cpu_ns > 0 ? p->recent_spent_ns / p->recent_cpu_ns : 0;
}

/* Of the sessions that do not rest, is it the dearest?  One that cannot rest does not count. */
static bool is_dearest(const struct process *p, const struct part *part)
{
	for (size_t i = 0; i < p->n; i++)
		if (!p->parts[i].rests && !p->parts[i].is_stuck && p->parts[i].recent_ns > part->recent_ns)
			return false;
	return !part->rests;
}

/* Is it too much, also without those that rest already? */
static bool is_over(const struct budget *b, const struct process *p)
{
	return b->share > 0 && p->credit_ns < 0 && p->credit_ns < p->low_ns - (p->low_ns < 0 ? most(b) / 20 : 0);
}

static bool is_due(const struct budget *b, const struct process *p, const struct part *part, uint64_t now_ns)
{
	return part->rests && (b->share <= 0 || (now_ns >= part->until_ns && p->credit_ns >= most(b) / 2));
}

/* --- advice -------------------------------------------------------------------------------------------- */

/* One that could go on only for a short time rests longer. */
static uint64_t next_pause(const struct part *part, uint64_t now_ns)
{
	uint64_t pause = 2 * part->pause_ms;

	if (!part->pause_ms || now_ns - part->since_ns > (uint64_t)SOON_MS * 1000000)
		return PAUSE_MIN_MS;
	return pause > PAUSE_MAX_MS ? PAUSE_MAX_MS : pause;
}

static void take_advice(struct member *m, struct part *part, const struct budget_advice *a, uint64_t now_ns)
{
	part->rests = a->rest;
	if (a->rest) {
		part->pause_ms = a->pause_ms;
		part->until_ns = now_ns + a->pause_ms * 1000000;
		m->rests++;
	} else {
		m->rested_ns += now_ns - part->since_ns;
	}
	part->since_ns = now_ns;
}

struct looking {
	bool (*advise)(void *ctx, const struct budget_advice *a);
	void *ctx;
};

/* What is @part to do now?  @advise is quick, so that it may be called with the lock. */
static void advise(struct budget *b, struct process *p, struct part *part, const struct looking *l, uint64_t now_ns)
{
	struct budget_advice a = { .pid = p->pid, .rest = !part->rests, .ratio = ratio_of(p), .share = b->share };

	if (part->rests ? !is_due(b, p, part, now_ns) : !is_over(b, p) || !is_dearest(p, part))
		return;
	if (a.rest)
		a.pause_ms = next_pause(part, now_ns);
	part->is_stuck = !l->advise(l->ctx, &a);
	if (part->is_stuck)
		return;
	if (a.rest)
		p->low_ns = p->credit_ns;
	take_advice(member_of(b, part->who), part, &a, now_ns);
}

static void end_rests(struct budget *b, struct process *p, uint64_t now_ns)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->parts[i].rests)
			member_of(b, p->parts[i].who)->rested_ns += now_ns - p->parts[i].since_ns;
}

/* Add what @part is now to @sum. */
static void note(const struct process *p, const struct part *part, uint64_t now_ns, struct budget_sum *sum)
{
	sum->resting += part->rests;
	sum->rested_ns += part->rests ? now_ns - part->since_ns : 0;
	if (ratio_of(p) > sum->ratio)
		sum->ratio = ratio_of(p);
}

static void look_at(struct budget *b, struct process *p, struct part *part, const struct looking *l, uint64_t now_ns,
		    struct budget_sum *sum)
{
	member_of(b, part->who)->cpu_ns += p->used_ns - part->cpu_ns;
	part->cpu_ns = p->used_ns;
	part->looked_ns = now_ns;
	part->has_spent = false;
	advise(b, p, part, l, now_ns);
	part->recent_ns /= 2;
	note(p, part, now_ns, sum);
}

void budget_look(struct budget *b, const void *who, uint64_t now_ns, bool (*advise_fn)(void *ctx, const struct budget_advice *a),
		 void *ctx, struct budget_sum *sum)
{
	const struct looking l = { advise_fn, ctx };
	const struct member *m;

	*sum = (struct budget_sum){ 0 };
	pthread_mutex_lock(&b->lock);
	for (size_t i = 0; i < b->n;) {
		struct part *part = part_of(&b->v[i], who);

		if (part && !part->has_spent && !part->rests && now_ns - part->looked_ns < (uint64_t)IDLE_MS * 1000000) {
			note(&b->v[i], part, now_ns, sum);
			i++;
			continue;
		}
		if (part && !give_credit(b, &b->v[i])) {
			end_rests(b, &b->v[i], now_ns);
			remove_process(b, &b->v[i]);
			continue;
		}
		if (part)
			look_at(b, &b->v[i], part, &l, now_ns, sum);
		i++;
	}
	m = member_of(b, who);
	if (m) {
		sum->cpu_ns += m->cpu_ns;
		sum->rests += m->rests;
		sum->rested_ns += m->rested_ns;
	}
	pthread_mutex_unlock(&b->lock);
}

/* Remove the part of @who, and the process if nobody has a part in it. */
static void remove_part(struct budget *b, struct process *p, const void *who)
{
	struct part *part = part_of(p, who);

	if (part)
		*part = p->parts[--p->n];
	if (!p->n)
		remove_process(b, p);
}

void budget_forget(struct budget *b, const void *who, uint32_t pid)
{
	struct process *p;

	pthread_mutex_lock(&b->lock);
	p = find(b, pid);
	if (p) {
		const struct part *part = part_of(p, who);

		if (part && part->rests)
			member_of(b, who)->rested_ns += now_ns() - part->since_ns;
		remove_part(b, p, who);
	}
	pthread_mutex_unlock(&b->lock);
}

void budget_leave(struct budget *b, const void *who)
{
	struct member *m;

	pthread_mutex_lock(&b->lock);
	for (size_t i = b->n; i--;)
		remove_part(b, &b->v[i], who);
	m = member_of(b, who);
	if (m)
		*m = b->members[--b->nmembers];
	pthread_mutex_unlock(&b->lock);
}

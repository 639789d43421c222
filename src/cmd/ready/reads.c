#include "cmd/ready/reads.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytemap.h"
#include "base/now.h"
#include "base/proc.h"
#include "base/strbuf.h"
#include "cmd/ready/run.h"

enum { RATE_MAX = 1000, DEPTH = 120 };		/* frames, as those of the kernel's stacks: option ustackframes */

/*
 * A process is left alone for so many times as long as a look at it has taken.  That is a bound for the time in which it is
 * stopped, and lets it run on a busy machine, too, where it stops only when it gets a processor and goes on when it gets one again.
 */
enum { LEFT_ALONE = 9 };

/* What threads wait for at a place. */
struct wait {
	uint64_t pid, owner;
	const char *what;
	char *lock;
	char **frames;			/* the innermost first */
	size_t n;
	int64_t waits, ns, longest_ns;
};

/* A thread at the last reading. */
struct seen {
	uint32_t tid;
	struct wait *waits;		/* NULL: it does not */
	uint64_t since_ns;		/* when that began */
	uint64_t ran_ns, at_ns;		/* its CPU time, and when that was read */
	uint64_t left_ns;		/* of its CPU time, what is not yet a sample */
};

struct process {
	pid_t pid;
	struct seen *threads, *before;	/* by tid */
	size_t n, cap, nbefore, cap_before;
	uint64_t due_ns;		/* not read before */
	bool was_read;
	char *why;			/* or why it could not be */
};

struct stack {
	uint64_t pid;
	char **frames;			/* the innermost first */
	size_t n;
	int64_t ran_ns, waited_ns, samples;
};

struct ready_reads {
	const struct ready_head *head;
	uint64_t period_ns, due_ns;
	struct process *v;
	size_t n, cap;
	struct bytemap stacks, waits;
	size_t frames;			/* of a wait */
	struct strbuf text;		/* scratch */
};

struct ready_reads *ready_reads_new(const struct ready_run *r)
{
	const struct ready_head *h = &r->req->head;
	struct ready_reads *s = calloc(1, sizeof(*s));
	size_t frames = DEPTH;
	long rate = 0;

	for (size_t i = 0; i < h->noptions; i++) {
		long n = h->options[i].kind == READY_INT ? strtol(ready_value(&h->options[i]), NULL, 10) : 0;

		if (!strcmp(h->options[i].name, h->reads))
			rate = n;
		else if (!strcmp(h->options[i].name, "frames"))
			frames = n > 0 && n < DEPTH ? (size_t)n : DEPTH;
	}
	if (!s)
		fprintf(stderr, "dtap %s: out of memory\n", h->name);
	if (s && (rate < 1 || rate > RATE_MAX)) {
		fprintf(stderr, "dtap %s: --%s: stacks can be read 1 to %d times a second\n", h->name, h->reads, RATE_MAX);
		free(s);
		s = NULL;
	}
	if (s) {
		s->head = h;
		s->frames = frames;
		s->period_ns = 1000000000 / (uint64_t)rate;
	}
	return s;
}

static void free_stack(struct stack *k)
{
	for (size_t i = 0; k && i < k->n; i++)
		free(k->frames[i]);
	free(k ? k->frames : NULL);
	free(k);
}

static void free_wait(struct wait *w)
{
	for (size_t i = 0; w && i < w->n; i++)
		free(w->frames[i]);
	free(w ? w->frames : NULL);
	free(w ? w->lock : NULL);
	free(w);
}

/* What is there of a process goes, when it ends or the run does. */
static void forget(struct ready_reads *s, size_t i)
{
	struct process *p = &s->v[i];

	/* One that begins is no Python for a moment. */
	if (!p->was_read && p->why)
		fprintf(stderr, "# dtap %s: %s\n", s->head->name, p->why);
	free(p->threads);
	free(p->before);
	free(p->why);
	*p = s->v[--s->n];
}

void ready_reads_free(struct ready_reads *s)
{
	size_t pos = 0;

	if (!s)
		return;
	for (struct stack *k; (k = bytemap_next(&s->stacks, &pos)); )
		free_stack(k);
	bytemap_fini(&s->stacks);
	pos = 0;
	for (struct wait *w; (w = bytemap_next(&s->waits, &pos)); )
		free_wait(w);
	bytemap_fini(&s->waits);
	while (s->n)
		forget(s, s->n - 1);
	free(s->v);
	strbuf_fini(&s->text);
	free(s);
}

/* --- processes ----------------------------------------------------------------------------------------- */

void ready_reads_process(struct ready_reads *s, const struct dtap_process_event *e)
{
	struct process *more;
	size_t i = 0;

	while (i < s->n && s->v[i].pid != e->pid)
		i++;
	if (e->what == DTAP_GONE && i < s->n)
		forget(s, i);
	if (e->what != DTAP_TRACED || i < s->n)
		return;
	if (s->n == s->cap) {
		more = realloc(s->v, (2 * s->cap + 8) * sizeof(*more));
		if (!more)
			return;
		s->v = more;
		s->cap = 2 * s->cap + 8;
	}
	s->v[s->n++] = (struct process){ .pid = e->pid };
}

/* --- a reading ----------------------------------------------------------------------------------------- */

/* The CPU time of a thread: by schedstat, or where the kernel has none by stat, in ticks.  False: it is gone. */
static bool cpu_time(struct ready_reads *s, pid_t pid, uint32_t tid, uint64_t *ns)
{
	uint64_t ticks = (uint64_t)sysconf(_SC_CLK_TCK);
	char file[48];

	strbuf_clear(&s->text);
	snprintf(file, sizeof(file), "task/%" PRIu32 "/schedstat", tid);
	if (!proc_read(pid, file, &s->text)) {
		*ns = strtoull(strbuf_str(&s->text), NULL, 10);
		return true;
	}
	strbuf_clear(&s->text);
	snprintf(file, sizeof(file), "task/%" PRIu32 "/stat", tid);
	if (proc_read(pid, file, &s->text))
		return false;
	*ns = proc_stat_cpu_time(strbuf_str(&s->text)) * (1000000000 / ticks);
	return true;
}

/* The frames as pystack() writes them; stacks that differ only in lines are one. */
static struct stack *new_stack(uint64_t pid, const struct dtap_thread *t)
{
	struct stack *k = calloc(1, sizeof(*k));
	struct strbuf text = { 0 };

	if (!k)
		return NULL;
	k->pid = pid;
	k->frames = calloc(DEPTH, sizeof(*k->frames));
	for (size_t i = 0; k->frames && i < t->nframes && k->n < DEPTH; i++) {
		strbuf_clear(&text);
		strbuf_printf(&text, "[ %s:0 (%s) ]", t->frames[i].file, t->frames[i].function);
		k->frames[k->n] = strdup(strbuf_str(&text));
		if (!k->frames[k->n])
			break;
		k->n++;
	}
	strbuf_fini(&text);
	return k;
}

static struct stack *stack_of(struct ready_reads *s, const struct dtap_thread *t)
{
	uint64_t pid = t->pid;
	struct stack *k;

	strbuf_clear(&s->text);
	strbuf_add(&s->text, (const char *)&pid, sizeof(pid));
	for (size_t i = 0; i < t->nframes && i < DEPTH; i++) {
		strbuf_add(&s->text, t->frames[i].file, strlen(t->frames[i].file) + 1);
		strbuf_add(&s->text, t->frames[i].function, strlen(t->frames[i].function) + 1);
	}
	k = bytemap_get(&s->stacks, s->text.s, s->text.len);
	if (k)
		return k;
	k = new_stack(pid, t);
	if (k && bytemap_set(&s->stacks, s->text.s, s->text.len, k)) {
		free_stack(k);
		k = NULL;
	}
	return k;
}

/* --- waits --------------------------------------------------------------------------------------------- */

static struct wait *new_wait(const struct ready_reads *s, const struct dtap_thread *t, const char *what, const char *lock)
{
	struct wait *w = calloc(1, sizeof(*w));
	struct strbuf text = { 0 };

	if (!w)
		return NULL;
	*w = (struct wait){ .pid = t->pid, .owner = t->wait.owner_tid, .what = what, .lock = strdup(lock),
			    .frames = calloc(s->frames, sizeof(*w->frames)) };
	for (size_t i = 0; w->frames && i < t->nframes && w->n < s->frames; i++) {
		strbuf_clear(&text);
		strbuf_printf(&text, "[ %s:%" PRIu32 " (%s) ]", t->frames[i].file, t->frames[i].line, t->frames[i].function);
		w->frames[w->n] = strdup(strbuf_str(&text));
		if (!w->frames[w->n])
			break;
		w->n++;
	}
	strbuf_fini(&text);
	if (!w->lock || !w->frames) {
		free_wait(w);
		return NULL;
	}
	return w;
}

/* What the thread waits for, there; NULL: for nothing that is known. */
static struct wait *wait_of(struct ready_reads *s, const struct dtap_thread *t)
{
	static const char *const whats[] = { [DTAP_WAIT_GIL] = "GIL", [DTAP_WAIT_LOCK] = "lock", [DTAP_WAIT_THREAD] = "thread" };
	enum dtap_wait_kind kind = t->knows_locks || t->knows_gil ? t->wait.kind : DTAP_WAIT_UNKNOWN;
	uint64_t key[] = { t->pid, kind, t->wait.owner_tid, kind == DTAP_WAIT_LOCK && t->wait.nobjects ? t->wait.objects[0].address : 0 };
	char lock[128] = "";
	struct wait *w;

	if (kind == DTAP_WAIT_UNKNOWN || kind >= sizeof(whats) / sizeof(whats[0]) || !t->nframes)
		return NULL;
	if (key[3])
		snprintf(lock, sizeof(lock), "%.80s 0x%" PRIx64, t->wait.objects[0].type, key[3]);
	strbuf_clear(&s->text);
	strbuf_add(&s->text, (const char *)key, sizeof(key));
	for (size_t i = 0; i < t->nframes && i < s->frames; i++)
		strbuf_printf(&s->text, "%s:%" PRIu32 " %s", t->frames[i].file, t->frames[i].line, t->frames[i].function);
	w = bytemap_get(&s->waits, s->text.s, s->text.len);
	if (w)
		return w;
	w = new_wait(s, t, whats[kind], kind == DTAP_WAIT_GIL ? "GIL" : lock);
	if (w && bytemap_set(&s->waits, s->text.s, s->text.len, w)) {
		free_wait(w);
		w = NULL;
	}
	return w;
}

/* The thread waits at @now: since then, or the same wait as at the last reading. */
static void add_wait(struct ready_reads *s, const struct dtap_thread *t, const struct seen *was, struct seen *now)
{
	struct wait *w = now->waits = wait_of(s, t);
	int64_t took;

	if (!w)
		return;
	now->since_ns = was->waits == w ? was->since_ns : was->at_ns;
	took = (int64_t)(now->at_ns - now->since_ns);
	w->waits += was->waits != w;
	w->ns += (int64_t)(now->at_ns - was->at_ns);
	w->longest_ns = took > w->longest_ns ? took : w->longest_ns;
}

/* --- a reading's threads ------------------------------------------------------------------------------- */

struct reading {
	struct ready_reads *s;
	struct process *p;
	size_t at;			/* in p->before */
};

/* @now goes on from what it was at the last reading; both are sorted by tid. */
static void add_time(struct reading *r, const struct dtap_thread *t, struct seen *now)
{
	const struct process *p = r->p;
	const struct seen *was;
	uint64_t ran, took;
	struct stack *k;

	while (r->at < p->nbefore && p->before[r->at].tid < now->tid)
		r->at++;
	was = r->at < p->nbefore ? &p->before[r->at] : NULL;
	if (!was || was->tid != now->tid || now->ran_ns < was->ran_ns)
		return;
	if (r->s->head->form == READY_TABLE) {
		add_wait(r->s, t, was, now);
		return;
	}
	took = now->at_ns - was->at_ns;
	ran = now->ran_ns - was->ran_ns;
	now->left_ns = was->left_ns + ran;
	k = t->nframes ? stack_of(r->s, t) : NULL;
	if (!k)
		return;
	k->ran_ns += (int64_t)ran;
	k->waited_ns += took > ran ? (int64_t)(took - ran) : 0;
	k->samples += (int64_t)(now->left_ns / r->s->period_ns);
	now->left_ns %= r->s->period_ns;
}

static int take_thread(void *ctx, const struct dtap_thread *t)
{
	struct reading *r = ctx;
	struct process *p = r->p;
	struct seen now = { .tid = t->tid, .at_ns = now_ns() }, *more;

	if (!t->is_python || !t->tid || !cpu_time(r->s, p->pid, t->tid, &now.ran_ns))
		return 0;
	if (p->n == p->cap) {
		more = realloc(p->threads, (2 * p->cap + 8) * sizeof(*more));
		if (!more)
			return 0;
		p->threads = more;
		p->cap = 2 * p->cap + 8;
	}
	add_time(r, t, &now);
	p->threads[p->n++] = now;
	return 0;
}

static void read_process(struct ready_reads *s, struct process *p)
{
	struct reading r = { .s = s, .p = p };
	uint64_t begin = now_ns(), end;
	struct seen *v = p->before;
	size_t cap = p->cap_before;
	char why[512];
	int e;

	if (begin < p->due_ns)
		return;

	p->before = p->threads;
	p->nbefore = p->n;
	p->cap_before = p->cap;
	p->threads = v;
	p->cap = cap;
	p->n = 0;
	e = dtap_threads((uint32_t)p->pid, 0, why, sizeof(why), take_thread, &r);
	end = now_ns();
	p->due_ns = end + LEFT_ALONE * (end - begin);
	p->was_read |= !e;
	if (e && e != -ESRCH && !p->why)
		p->why = strdup(why);
}

uint64_t ready_reads_turn(struct ready_reads *s)
{
	uint64_t now = now_ns();

	if (now >= s->due_ns) {
		for (size_t i = 0; i < s->n; i++)
			read_process(s, &s->v[i]);
		/* What took longer than a period is one reading, not several. */
		now = now_ns();
		s->due_ns = s->due_ns + s->period_ns > now ? s->due_ns + s->period_ns : now + s->period_ns;
	}
	return s->due_ns / 1000000 + 1;
}

/* --- the result ---------------------------------------------------------------------------------------- */

static int64_t value_of(const struct stack *k, enum ready_kind kind)
{
	return kind == READY_BUSY ? k->ran_ns : kind == READY_SAMPLES ? k->samples : k->waited_ns;
}

static struct dtap_value key_of(const struct wait *w, const char *name)
{
	if (!strcmp(name, "what") || !strcmp(name, "lock"))
		return (struct dtap_value){ .type = DTAP_STRING, .s = *name == 'w' ? w->what : w->lock };
	if (!strcmp(name, "where"))
		return (struct dtap_value){ .type = DTAP_STACK, .stack = { (const char *const *)w->frames, w->n } };
	return (struct dtap_value){ .type = DTAP_UINT, .u = !strcmp(name, "owner") ? w->owner : w->pid };
}

static int wait_rows(const struct ready_reads *s, int (*row)(void *ctx, const struct dtap_row *row), void *ctx)
{
	const struct ready_head *h = s->head;
	struct dtap_value keys[READY_COLUMNS];
	const struct wait *w;
	size_t pos = 0;
	int e = 0;

	while (!e && (w = bytemap_next(&s->waits, &pos))) {
		const struct { const char *name, *function; int64_t n; } values[] = {
			{ "waits", "count", w->waits }, { "time", "sum", w->ns }, { "longest", "max", w->longest_ns },
		};
		size_t nkeys = 0;

		for (size_t i = 0; i < h->ncolumns; i++)
			if (h->columns[i].is_key)
				keys[nkeys++] = key_of(w, h->columns[i].name);
		for (size_t i = 0; i < sizeof(values) / sizeof(values[0]) && !e; i++) {
			struct dtap_row one = { .aggregation = values[i].name, .function = values[i].function, .keys = keys, .nkeys = nkeys,
						.value = { .type = DTAP_INT, .i = values[i].n } };

			e = row(ctx, &one);
		}
	}
	return e;
}

int ready_reads_rows(const struct ready_reads *s, int (*row)(void *ctx, const struct dtap_row *row), void *ctx)
{
	const struct ready_head *h = s->head;
	const struct stack *k;
	size_t pos = 0;
	int e = h->form == READY_TABLE ? wait_rows(s, row, ctx) : 0;

	while (!e && (k = bytemap_next(&s->stacks, &pos))) {
		const struct dtap_value keys[] = {
			{ .type = DTAP_UINT, .u = k->pid },
			{ .type = DTAP_STACK, .stack = { (const char *const *)k->frames, k->n } },
		};

		for (size_t i = 0; i < h->ncolumns && !e; i++) {
			int64_t n = h->columns[i].of ? value_of(k, h->columns[i].kind) : 0;
			struct dtap_row one = { .aggregation = h->columns[i].of, .function = "sum", .keys = keys, .nkeys = 2,
						.value = { .type = DTAP_INT, .i = n } };

			if (n)
				e = row(ctx, &one);
		}
	}
	return e;
}

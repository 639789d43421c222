#include "cmd/serve/output.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/now.h"
#include "base/strbuf.h"
#include "cmd/serve/config.h"
#include "cmd/serve/item.h"
#include "cmd/serve/spool.h"

enum {
	MEMORY_MAX = 16 << 20,		/* bytes of events that wait in memory */
	KEPT_BYTES = 64 << 10,		/* of an empty buffer */
	BATCH_BYTES = 4 << 20,		/* a batch is delivered when it has as many */
	PAUSE_MIN_MS = 250, PAUSE_MAX_MS = 15000,
	END_MS = 5000,			/* for the last tries */
};

struct output {
	struct serve_config *config;
	const struct serve_output *conf;
	const struct output_kind *kind;
	uint64_t run;
	atomic_ullong sequence;
	atomic_uint users;
	atomic_ullong until_ms;		/* not 0: it ends, and what lasts longer is given up */
	pthread_t thread;

	/* The thread's own. */
	void *state;			/* of the kind; NULL: not open */
	struct strbuf batch;		/* the one that is delivered */
	uint64_t nbatch;
	size_t done;			/* of its bytes */
	uint64_t retry_ms, pause_ms;	/* not before then; 0: the last try succeeded */
	struct spool *spool;
	bool spool_failed;

	pthread_mutex_t lock;		/* of all that follows */
	pthread_cond_t changed;
	struct strbuf now;		/* events that wait */
	uint64_t nnow, since_ms;	/* their number, and when the first came */
	struct output_health health;
};

static void say(const struct output *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(const struct output *o, const char *fmt, ...)
{
	struct strbuf line = { 0 };
	va_list ap;

	va_start(ap, fmt);
	strbuf_vprintf(&line, fmt, ap);
	va_end(ap);
	fprintf(stderr, "dtap serve: output %s: %s\n", o->conf->name, strbuf_str(&line));
	strbuf_fini(&line);
}

static void count_lost(struct output *o, uint64_t n)
{
	if (!n)
		return;
	pthread_mutex_lock(&o->lock);
	o->health.lost += n;
	pthread_mutex_unlock(&o->lock);
}

/* What is delivered, as messages call it. */
static const char *things(const struct output *o)
{
	return o->conf->has_profiles ? "profiles" : "events";
}

/* --- delivering ---------------------------------------------------------------------------------------- */

/* The state of the kind and the spool, if they are not open yet. */
static int open_all(struct output *o, struct strbuf *why)
{
	int e = 0;

	if (o->conf->spool && !o->spool)
		e = spool_open(o->conf->spool, o->conf->has_profiles ? "profile" : "jsonl", o->conf->spool_size, &o->spool, why);
	if (!e && !o->state)
		e = o->kind->open(o->conf, &o->until_ms, &o->state, why);
	return e;
}

static void succeed(struct output *o, uint64_t events)
{
	if (o->pause_ms)
		say(o, "delivers again");
	o->pause_ms = o->retry_ms = 0;
	pthread_mutex_lock(&o->lock);
	o->health.events += events;
	o->health.up = true;
	pthread_mutex_unlock(&o->lock);
}

static void fail(struct output *o, const struct strbuf *why)
{
	if (!o->pause_ms)
		say(o, "%s; it is tried again", strbuf_str(why));
	o->pause_ms = !o->pause_ms ? PAUSE_MIN_MS : 2 * o->pause_ms > PAUSE_MAX_MS ? PAUSE_MAX_MS : 2 * o->pause_ms;
	o->retry_ms = now_ms() + o->pause_ms;
	pthread_mutex_lock(&o->lock);
	o->health.failures++;
	o->health.up = false;
	pthread_mutex_unlock(&o->lock);
}

/* Deliver @text of @events from *@done on.  False: it is still to be delivered. */
static bool deliver(struct output *o, const struct strbuf *text, uint64_t events, size_t *done)
{
	struct strbuf why = { 0 };
	enum output_result r = OUTPUT_LATER;

	if (!open_all(o, &why))
		r = o->kind->deliver(o->state, text, done, &why);
	if (r == OUTPUT_DONE) {
		succeed(o, events);
	} else if (r == OUTPUT_REFUSED) {
		say(o, "%" PRIu64 " %s are refused: %s", events, things(o), strbuf_str(&why));
		count_lost(o, events);
	} else {
		fail(o, &why);
	}
	strbuf_fini(&why);
	return r != OUTPUT_LATER;
}

/* The oldest batch on disk.  False: it is still there. */
static bool deliver_spooled(struct output *o)
{
	struct strbuf text = { 0 };
	uint64_t events, lost = 0;
	size_t done = 0;
	bool over = true;

	if (!spool_first(o->spool, &text, &events, &lost)) {
		over = deliver(o, &text, events, &done);
		if (over)
			spool_remove(o->spool);
	}
	count_lost(o, lost);
	strbuf_fini(&text);
	return over;
}

/* The store is away: the batch goes to disk.  If it cannot, it stays. */
static void to_disk(struct output *o)
{
	uint64_t lost = 0;
	int e = spool_add(o->spool, &o->batch, o->nbatch, &lost);

	if (lost)
		say(o, "%s has no room: %" PRIu64 " %s are lost", o->conf->spool, lost, things(o));
	if (e && !o->spool_failed)
		say(o, "%s: %s", o->conf->spool, strerror(-e));
	o->spool_failed = e != 0;
	count_lost(o, lost);
	if (!e)
		o->nbatch = 0;
}

/* The length of the first event of those that wait behind the first @at bytes. */
static size_t length_at(const struct output *o, size_t at)
{
	const char *text = o->now.s + at;
	struct item i;

	if (o->conf->has_profiles && item_read(text, o->now.len - at, &i))
		return (size_t)(i.bytes + i.nbytes - text);
	return (size_t)(strchr(text, '\n') + 1 - text);
}

/* Take the first batch of the events that wait; with o->lock. */
static void take(struct output *o)
{
	struct strbuf whole = o->now;
	size_t len = 0;
	uint64_t n = 0;

	o->done = 0;
	strbuf_clear(&o->batch);
	if (o->nnow <= o->conf->batch) {
		o->now = o->batch;
		o->batch = whole;
		o->nbatch = o->nnow;
		o->nnow = 0;
		return;
	}
	for (; n < o->conf->batch; n++)
		len += length_at(o, len);
	strbuf_add(&o->batch, o->now.s, len);
	memmove(o->now.s, o->now.s + len, o->now.len - len + 1);
	o->now.len -= len;
	o->nbatch = n;
	o->nnow -= n;
}

/* When a batch is to be delivered; with o->lock. */
static uint64_t batch_due(const struct output *o)
{
	if (!o->nnow)
		return UINT64_MAX;
	return o->nnow >= o->conf->batch || o->now.len >= BATCH_BYTES ? 0 : o->since_ms + o->conf->interval_ms;
}

static bool has_spooled(const struct output *o)
{
	return o->spool && spool_batches(o->spool);
}

/* When the thread has something to do next; with o->lock. */
static uint64_t next_due(const struct output *o)
{
	uint64_t due = o->nbatch ? UINT64_MAX : batch_due(o);

	if ((o->nbatch || has_spooled(o)) && o->retry_ms < due)
		due = o->retry_ms;
	return due;
}

static void work(struct output *o, bool ends)
{
	bool away = now_ms() < o->retry_ms && !ends;

	pthread_mutex_lock(&o->lock);
	if (!o->nbatch && o->nnow && (ends || now_ms() >= batch_due(o)))
		take(o);
	pthread_mutex_unlock(&o->lock);
	if (!away && has_spooled(o))
		away = !deliver_spooled(o);
	if (o->nbatch && !away && !has_spooled(o) && deliver(o, &o->batch, o->nbatch, &o->done))
		o->nbatch = 0;
	else if (o->nbatch && o->spool)
		to_disk(o);
	if (!o->nbatch && o->batch.cap > KEPT_BYTES)	/* else it stays as large as the largest burst */
		strbuf_fini(&o->batch);
	pthread_mutex_lock(&o->lock);
	o->health.spooled_bytes = o->spool ? spool_bytes(o->spool) : 0;
	pthread_mutex_unlock(&o->lock);
}

/* All that can be delivered before the end, then what can be kept; the rest is lost.  Nobody puts events any more. */
static void finish(struct output *o)
{
	while ((o->nbatch || o->nnow || has_spooled(o)) && now_ms() < o->until_ms) {
		if (o->pause_ms && o->spool && !o->nbatch && !o->nnow)
			break;		/* it is away, and all is on disk */
		if (o->pause_ms && !o->spool)
			nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
		work(o, true);
	}
	while (o->spool && (o->nbatch || o->nnow)) {
		if (!o->nbatch)
			take(o);
		to_disk(o);
		if (o->nbatch)
			break;
	}
	if (o->nbatch || o->nnow) {
		say(o, "%" PRIu64 " %s are lost at the end", o->nbatch + o->nnow, things(o));
		count_lost(o, o->nbatch + o->nnow);
	}
}

static void *run(void *ctx)
{
	struct output *o = ctx;
	struct strbuf why = { 0 };

	if (open_all(o, &why))		/* what a service before has left is to be delivered */
		fail(o, &why);
	strbuf_fini(&why);
	pthread_mutex_lock(&o->lock);
	while (!o->until_ms) {
		uint64_t due = next_due(o);
		const struct timespec until = { (time_t)(due / 1000), (long)(due % 1000) * 1000000 };

		if (due == UINT64_MAX) {
			pthread_cond_wait(&o->changed, &o->lock);
		} else if (now_ms() < due) {
			pthread_cond_timedwait(&o->changed, &o->lock, &until);
		} else {
			pthread_mutex_unlock(&o->lock);
			work(o, false);
			pthread_mutex_lock(&o->lock);
		}
	}
	pthread_mutex_unlock(&o->lock);
	finish(o);
	if (o->state)
		o->kind->close(o->state);
	spool_close(o->spool);
	return NULL;
}

/* --- for other threads --------------------------------------------------------------------------------- */

static void release(struct output *o)
{
	serve_config_drop(o->config);
	strbuf_fini(&o->batch);
	strbuf_fini(&o->now);
	pthread_cond_destroy(&o->changed);
	pthread_mutex_destroy(&o->lock);
	free(o);
}

int output_start(struct serve_config *config, const struct serve_output *conf, struct output **ret)
{
	struct output *o = calloc(1, sizeof(*o));
	pthread_condattr_t monotonic;
	int e;

	if (!o)
		return -ENOMEM;
	o->config = serve_config_use(config);
	o->conf = conf;
	o->kind = &output_kinds[conf->kind];
	o->users = 1;
	o->health.up = true;
	if (getrandom(&o->run, sizeof(o->run), 0) != sizeof(o->run))
		o->run = now_wall_ns();
	pthread_mutex_init(&o->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&o->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	e = -pthread_create(&o->thread, NULL, run, o);
	if (e)
		release(o);
	else
		*ret = o;
	return e;
}

struct output *output_use(struct output *o)
{
	if (o)
		atomic_fetch_add(&o->users, 1);
	return o;
}

bool output_is_shared(const struct output *o)
{
	return atomic_load(&o->users) > 1;
}

void output_drop(struct output *o)
{
	if (!o || atomic_fetch_sub(&o->users, 1) > 1)
		return;
	pthread_mutex_lock(&o->lock);
	atomic_store(&o->until_ms, now_ms() + END_MS);
	pthread_cond_signal(&o->changed);
	pthread_mutex_unlock(&o->lock);
	pthread_join(o->thread, NULL);
	release(o);
}

const struct serve_output *output_conf(const struct output *o)
{
	return o->conf;
}

enum event_form output_form(const struct output *o)
{
	return o->kind->form;
}

uint64_t output_run(const struct output *o)
{
	return o->run;
}

uint64_t output_next(struct output *o)
{
	return atomic_fetch_add(&o->sequence, 1);
}

int output_offer(struct output *o, const struct strbuf *line)
{
	bool room;

	if (line->len > MEMORY_MAX)
		return -EFBIG;
	pthread_mutex_lock(&o->lock);
	room = o->now.len + line->len <= MEMORY_MAX;
	if (room) {
		if (!o->nnow++)
			o->since_ms = now_ms();
		strbuf_add(&o->now, line->s, line->len);
		if (o->nnow == 1 || o->nnow == o->conf->batch || o->now.len >= BATCH_BYTES)
			pthread_cond_signal(&o->changed);
	}
	pthread_mutex_unlock(&o->lock);
	return room ? 0 : -ENOBUFS;
}

bool output_put(struct output *o, const struct strbuf *line)
{
	bool room = !output_offer(o, line);

	count_lost(o, !room);
	return room;
}

void output_health(struct output *o, struct output_health *h)
{
	pthread_mutex_lock(&o->lock);
	*h = o->health;
	h->waiting = o->nnow;
	pthread_mutex_unlock(&o->lock);
}

#include "cmd/serve/tally.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/strbuf.h"
#include "dtap.h"

/* What rows of the same texts have, together. */
struct amount {
	uint64_t value, count;
	int64_t sum;
	struct dtap_bucket *buckets;
	size_t nbuckets, buckets_cap;
};

struct tally {
	struct amount was, now;		/* at the reading before, and so far in this one */
	uint64_t reading;
	bool is_over;			/* tallies_is_over() has been asked, and it has not grown since */
};

void tally_text(const struct dtap_value *v, struct strbuf *out)
{
	switch (v->type) {
	case DTAP_INT:
		strbuf_printf(out, "%" PRId64, v->i);
		break;
	case DTAP_UINT:
		strbuf_printf(out, "%" PRIu64, v->u);
		break;
	case DTAP_FLOAT:
		strbuf_printf(out, "%g", v->f);
		break;
	case DTAP_STRING:
		strbuf_puts(out, v->s);
		break;
	case DTAP_STACK:
		for (size_t i = 0; i < v->stack.n; i++)
			strbuf_printf(out, "%s%s", i ? ";" : "", v->stack.frames[i]);
		break;
	}
}

/* Texts with their lengths, so that no two rows have the same. */
static void put_keys(const struct dtap_row *row, struct strbuf *out)
{
	struct strbuf key = { 0 };

	strbuf_printf(out, "%zu:%s", strlen(row->aggregation), row->aggregation);
	for (size_t i = 0; i < row->nkeys; i++) {
		strbuf_clear(&key);
		tally_text(&row->keys[i], &key);
		strbuf_printf(out, "%zu:%s", key.len, strbuf_str(&key));
	}
	strbuf_fini(&key);
}

/* The tally of the row; NULL: out of memory. */
static struct tally *tally_of(struct tallies *all, const struct dtap_row *row)
{
	struct strbuf key = { 0 };
	struct tally *t;

	put_keys(row, &key);
	t = bytemap_get(&all->by_key, strbuf_str(&key), key.len);
	if (!t) {
		t = calloc(1, sizeof(*t));
		if (t && bytemap_set(&all->by_key, strbuf_str(&key), key.len, t)) {
			free(t);
			t = NULL;
		}
	}
	strbuf_fini(&key);
	return t;
}

/* The bucket of @a that begins there; NULL: there is none. */
static struct dtap_bucket *bucket_from(const struct amount *a, int64_t from)
{
	for (size_t i = 0; i < a->nbuckets; i++)
		if (a->buckets[i].from == from)
			return &a->buckets[i];
	return NULL;
}

/* Add the row to what its texts have. */
static int add_row(struct amount *a, const struct dtap_row *row)
{
	a->value += row->value.u;
	a->count += row->count;
	a->sum += row->sum;
	for (size_t i = 0; i < row->nbuckets; i++) {
		struct dtap_bucket *b = bucket_from(a, row->buckets[i].from);

		if (b) {
			b->count += row->buckets[i].count;
			continue;
		}
		if (!grow_array(&a->buckets, &a->buckets_cap, a->nbuckets, sizeof(*a->buckets)))
			return -ENOMEM;
		a->buckets[a->nbuckets++] = row->buckets[i];
	}
	return 0;
}

static void begin_amount(struct tally *t)
{
	struct amount was = t->was;

	t->was = t->now;
	t->now = (struct amount){ .buckets = was.buckets, .buckets_cap = was.buckets_cap };
}

static void release(struct tally *t)
{
	if (t) {
		free(t->was.buckets);
		free(t->now.buckets);
	}
	free(t);
}

static void forget_over(struct tallies *all)
{
	for (size_t i = 0; i < all->nover; i++) {
		release(bytemap_del(&all->by_key, all->over[i].s, all->over[i].len));
		free(all->over[i].s);
	}
	all->nover = 0;
}

void tallies_begin(struct tallies *all)
{
	forget_over(all);
	all->reading++;
}

bool tallies_is_over(struct tallies *all, const struct dtap_row *row)
{
	struct strbuf key = { 0 };
	struct tally *t;
	bool was = false;

	put_keys(row, &key);
	t = bytemap_get(&all->by_key, strbuf_str(&key), key.len);
	if (t) {
		was = t->is_over;
		t->is_over = true;
	}
	strbuf_fini(&key);
	return was;
}

void tallies_forget(struct tallies *all, const struct dtap_row *row)
{
	struct strbuf key = { 0 };

	put_keys(row, &key);
	/* Without memory it stays: a row of its keys that comes later is smaller than it, which is a growth below 0. */
	if (grow_array(&all->over, &all->over_cap, all->nover, sizeof(*all->over)))
		all->over[all->nover++] = (struct tally_key){ key.s, key.len };
	else
		strbuf_fini(&key);
}

int tallies_grow(struct tallies *all, const struct dtap_row *row, struct dtap_row *growth)
{
	struct tally *t = tally_of(all, row);
	struct dtap_bucket *more = row->nbuckets ? malloc(row->nbuckets * sizeof(*more)) : NULL;
	bool first, grown;

	if (!t || (row->nbuckets && !more)) {
		free(more);
		return -ENOMEM;
	}
	first = t->reading != all->reading;
	if (first)
		begin_amount(t);
	t->reading = all->reading;
	*growth = *row;
	growth->buckets = more;
	if (first) {		/* the others of these texts add to it */
		growth->value.u -= t->was.value;
		growth->count -= t->was.count;
		growth->sum -= t->was.sum;
	}
	grown = (!row->nbuckets && growth->value.u) || growth->count || growth->sum;
	for (size_t i = 0; i < row->nbuckets; i++) {
		const struct dtap_bucket *was = bucket_from(&t->was, row->buckets[i].from);
		bool is_new = !bucket_from(&t->now, row->buckets[i].from);

		more[i] = row->buckets[i];
		more[i].count -= is_new && was ? was->count : 0;
		grown |= more[i].count != 0;
	}
	t->is_over = t->is_over && !grown;
	if (!add_row(&t->now, row))
		return grown;
	free(more);
	return -ENOMEM;
}

void tallies_fini(struct tallies *all)
{
	struct tally *t;

	forget_over(all);
	free(all->over);
	for (size_t pos = 0; (t = bytemap_next(&all->by_key, &pos));)
		release(t);
	bytemap_fini(&all->by_key);
}

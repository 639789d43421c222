#include "cmd/serve/tally.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "dtap.h"

/* What a row had at the reading before. */
struct tally {
	uint64_t value, count;
	int64_t sum;
	struct dtap_bucket *buckets;
	size_t nbuckets;
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

static struct dtap_bucket *copy_buckets(const struct dtap_bucket *v, size_t n)
{
	struct dtap_bucket *copy = n ? malloc(n * sizeof(*copy)) : NULL;

	if (copy)
		memcpy(copy, v, n * sizeof(*copy));
	return copy;
}

static int64_t count_from(const struct tally *t, int64_t from)
{
	for (size_t i = 0; i < t->nbuckets; i++)
		if (t->buckets[i].from == from)
			return t->buckets[i].count;
	return 0;
}

int tallies_grow(struct tallies *all, const struct dtap_row *row, struct dtap_row *growth)
{
	struct tally *t = tally_of(all, row);
	struct dtap_bucket *now = copy_buckets(row->buckets, row->nbuckets), *more = copy_buckets(row->buckets, row->nbuckets);
	bool grown;

	if (!t || (row->nbuckets && (!now || !more))) {
		free(now);
		free(more);
		return -ENOMEM;
	}
	grown = (!row->nbuckets && row->value.u != t->value) || row->count != t->count || row->sum != t->sum;
	for (size_t i = 0; i < row->nbuckets; i++) {
		more[i].count -= count_from(t, more[i].from);
		grown |= more[i].count != 0;
	}
	*growth = *row;
	growth->value.u -= t->value;
	growth->count -= t->count;
	growth->sum -= t->sum;
	growth->buckets = more;
	free(t->buckets);
	*t = (struct tally){ row->value.u, row->count, row->sum, now, row->nbuckets };
	return grown;
}

void tallies_fini(struct tallies *all)
{
	struct tally *t;

	for (size_t pos = 0; (t = bytemap_next(&all->by_key, &pos));) {
		free(t->buckets);
		free(t);
	}
	bytemap_fini(&all->by_key);
}

#include "cmd/serve/fold.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/strbuf.h"
#include "cmd/serve/labels.h"
#include "cmd/serve/tally.h"
#include "dtap.h"

struct fold {
	struct dtap_row row;		/* its texts, keys and buckets are this fold's */
	size_t buckets_cap;
	size_t process;
	struct labels labels;
};

static void release(struct fold *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->row.nkeys; i++)
		free((char *)(f->row.keys[i].type == DTAP_STRING ? f->row.keys[i].s : NULL));
	free((void *)f->row.keys);
	free((void *)f->row.buckets);
	free((char *)f->row.aggregation);
	free((char *)f->row.function);
	labels_fini(&f->labels);
	free(f);
}

/* Where rows are added up: the aggregation, the keys as texts, and the labels in the process's place; NULs between. */
static void put_text(const struct dtap_row *row, size_t process, const struct labels *l, struct strbuf *out)
{
	strbuf_puts(out, row->aggregation);
	for (size_t i = 0; i < row->nkeys; i++) {
		strbuf_putc(out, 0);
		if (i != process)
			tally_text(&row->keys[i], out);
	}
	for (size_t i = 0; l && i < 3 + l->nvalues; i++) {
		const char *text = i == 0 ? l->unit : i == 1 ? l->container : i == 2 ? l->interpreter : l->values[i - 3];

		strbuf_putc(out, 0);
		strbuf_puts(out, text ? text : "");
	}
}

/* An empty fold for rows like @row; NULL: out of memory. */
static struct fold *new_fold(const struct dtap_row *row, size_t process, const struct labels *l)
{
	struct fold *f = calloc(1, sizeof(*f));
	struct dtap_value *keys = calloc(row->nkeys ? row->nkeys : 1, sizeof(*keys));
	bool failed = !f || !keys;

	if (failed) {
		free(keys);
		free(f);
		return NULL;
	}
	f->process = process;
	f->row = (struct dtap_row){ .aggregation = strdup(row->aggregation), .function = strdup(row->function), .keys = keys,
				    .nkeys = row->nkeys, .value = { .type = row->value.type } };
	failed = !f->row.aggregation || !f->row.function || (l && labels_copy(l, &f->labels));
	for (size_t i = 0; i < row->nkeys && !failed; i++) {
		struct strbuf text = { 0 };

		keys[i].type = DTAP_INT;
		if (i != process) {
			tally_text(&row->keys[i], &text);
			keys[i].s = strdup(strbuf_str(&text));
			keys[i].type = keys[i].s ? DTAP_STRING : DTAP_INT;
			failed = !keys[i].s;
		}
		strbuf_fini(&text);
	}
	if (!failed)
		return f;
	release(f);
	return NULL;
}

static int add_bucket(struct fold *f, struct dtap_bucket b)
{
	struct dtap_bucket *v = (struct dtap_bucket *)f->row.buckets;
	size_t at = 0;

	while (at < f->row.nbuckets && v[at].from < b.from)
		at++;
	if (at < f->row.nbuckets && v[at].from == b.from) {
		v[at].count += b.count;
		return 0;
	}
	if (!grow_array(&v, &f->buckets_cap, f->row.nbuckets, sizeof(*v)))
		return -ENOMEM;
	memmove(&v[at + 1], &v[at], (f->row.nbuckets++ - at) * sizeof(b));
	v[at] = b;
	f->row.buckets = v;
	return 0;
}

static int add_row(struct fold *f, const struct dtap_row *row, bool first)
{
	bool least = !strcmp(row->function, "min"), most = !strcmp(row->function, "max");
	bool less = row->value.type == DTAP_INT ? row->value.i < f->row.value.i : row->value.u < f->row.value.u;
	int e = 0;

	if (!least && !most)
		f->row.value.u += row->value.u;
	else if (first || (row->value.u != f->row.value.u && less == least))
		f->row.value.u = row->value.u;
	f->row.count += row->count;
	f->row.sum += row->sum;
	for (size_t i = 0; i < row->nbuckets && !e; i++)
		e = add_bucket(f, row->buckets[i]);
	return e;
}

int folds_add(struct folds *all, const struct dtap_row *row, size_t process, const struct labels *l)
{
	struct strbuf text = { 0 };
	struct fold *f;
	bool first;
	int e = 0;

	put_text(row, process, l, &text);
	f = bytemap_get(&all->by_text, text.s, text.len);
	first = !f;
	if (first) {
		f = new_fold(row, process, l);
		e = f ? bytemap_set(&all->by_text, text.s, text.len, f) : -ENOMEM;
		if (e)
			release(f);
	}
	strbuf_fini(&text);
	return e ? e : add_row(f, row, first);
}

int folds_each(const struct folds *all, int (*each)(void *ctx, const struct dtap_row *row, const struct labels *l), void *ctx)
{
	struct fold *f;
	int e = 0;

	for (size_t pos = 0; !e && (f = bytemap_next(&all->by_text, &pos));)
		e = each(ctx, &f->row, &f->labels);
	return e;
}

int folds_unlabel(struct folds *all)
{
	struct folds fresh = { 0 };
	struct fold *f;
	int e = 0;

	for (size_t pos = 0; !e && (f = bytemap_next(&all->by_text, &pos));) {
		struct labels l = f->labels;

		l.nvalues = 0;
		e = folds_add(&fresh, &f->row, f->process, &l);
	}
	if (e) {
		folds_fini(&fresh);
		return e;
	}
	folds_fini(all);
	*all = fresh;
	return 0;
}

void folds_fini(struct folds *all)
{
	struct fold *f;

	for (size_t pos = 0; (f = bytemap_next(&all->by_text, &pos));)
		release(f);
	bytemap_fini(&all->by_text);
	*all = (struct folds){ 0 };
}

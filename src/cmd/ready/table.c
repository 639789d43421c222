/*
 * The form "table": aggregations with the same keys, in columns.
 *
 * With -i a count or a sum is that of the last interval: the previous value is subtracted.  Others, such as a
 * maximum, are those since the start, as are levels (head.h).  Keys that look alike, as stacks at two instructions of a line do, are one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytemap.h"
#include "base/now.h"
#include "base/strbuf.h"
#include "cmd/ready/cell.h"
#include "cmd/ready/rows.h"
#include "cmd/ready/run.h"

/* One key: the cells of its columns, and the values of its aggregations. */
struct entry {
	struct dtap_value *cells;	/* ncolumns: the keys are set, texts are on the heap */
	int64_t *now, *before;		/* 2 * ncolumns: values of ->of, then, for ratios, of ->by */
	uint64_t *counts;		/* 2 * ncolumns: how many values *now stands for */
};

struct table {
	struct ready_run *r;
	struct bytemap entries;
	struct ready_rows rows;
	bool lasts[READY_COLUMNS];	/* neither a count nor a sum: not subtracted */
	uint64_t shown_ns;		/* CLOCK_MONOTONIC: the last table, or the start */
};

static void free_entry(const struct ready_head *h, struct entry *e)
{
	if (!e)
		return;
	for (size_t i = 0; e->cells && i < h->ncolumns; i++)
		ready_value_drop(&e->cells[i]);
	free(e->cells);
	free(e->now);
	free(e->before);
	free(e->counts);
	free(e);
}

static void add_frames(const struct dtap_value *v, struct strbuf *key)
{
	for (size_t i = 0; i < v->stack.n; i++)
		strbuf_add(key, v->stack.frames[i], strlen(v->stack.frames[i]) + 1);
	strbuf_putc(key, '\0');
}

static void key_bytes(const struct dtap_row *row, struct strbuf *key)
{
	for (size_t i = 0; i < row->nkeys; i++) {
		const struct dtap_value *v = &row->keys[i];

		if (v->type == DTAP_STRING)
			strbuf_add(key, v->s, strlen(v->s) + 1);
		else if (v->type == DTAP_STACK)
			add_frames(v, key);
		else
			strbuf_add(key, (const char *)&v->u, sizeof(v->u));
	}
	strbuf_putc(key, '\0');		/* there may be no keys */
}

/* Of the locks in the interpreter's _PyRuntime only the GIL's are futexes. */
static bool is_gil(const struct dtap_value *v)
{
	const char *symbol = v->type == DTAP_STRING ? strrchr(v->s, '`') : NULL;

	return symbol && !strcmp(symbol, "`_PyRuntime");
}

static struct entry *new_entry(const struct ready_head *h, const struct dtap_row *row)
{
	struct entry *e = calloc(1, sizeof(*e));
	size_t k = 0;

	if (e) {
		e->cells = calloc(h->ncolumns, sizeof(*e->cells));
		e->now = calloc(2 * h->ncolumns, sizeof(*e->now));
		e->before = calloc(2 * h->ncolumns, sizeof(*e->before));
		e->counts = calloc(2 * h->ncolumns, sizeof(*e->counts));
	}
	if (!e || !e->cells || !e->now || !e->before || !e->counts) {
		free_entry(h, e);
		return NULL;
	}
	for (size_t i = 0; i < h->ncolumns; i++) {
		if (!h->columns[i].is_key)
			continue;
		e->cells[i] = row->keys[k++];
		if (h->columns[i].kind == READY_LOCK && is_gil(&e->cells[i]))
			e->cells[i].s = "GIL";
		if (ready_value_keep(&e->cells[i]))
			e->cells[i] = (struct dtap_value){ .type = DTAP_UINT };
	}
	return e;
}

static struct entry *entry_of(struct table *t, const struct dtap_row *row)
{
	const struct ready_head *h = &t->r->req->head;
	struct strbuf key = { 0 };
	struct entry *e;

	key_bytes(row, &key);
	e = bytemap_get(&t->entries, strbuf_str(&key), key.len);
	if (!e) {
		e = new_entry(h, row);
		if (e && bytemap_set(&t->entries, strbuf_str(&key), key.len, e)) {
			free_entry(h, e);
			e = NULL;
		}
	}
	strbuf_fini(&key);
	return e;
}

/*
 * Merge the value of another row of the same entry into *value, which is 0 before the first.  *n: how many values it
 * stands for so far.  Of stddev() the largest is taken.
 */
static void take(const struct dtap_row *row, int64_t *value, uint64_t *n)
{
	int64_t v = row->value.i;
	uint64_t count = row->count ? row->count : 1;

	if (!strcmp(row->function, "count") || !strcmp(row->function, "sum"))
		*value += v;
	else if (!*n)
		*value = v;
	else if (!strcmp(row->function, "min"))
		*value = v < *value ? v : *value;
	else if (!strcmp(row->function, "avg"))
		*value += (int64_t)((double)(v - *value) * (double)count / (double)(*n + count));
	else
		*value = v > *value ? v : *value;
	*n += count;
}

static int take_row(void *ctx, const struct dtap_row *row)
{
	struct table *t = ctx;
	const struct ready_head *h = &t->r->req->head;
	struct entry *e;

	if (row->nkeys != h->nkeys || row->nbuckets)
		return 0;
	e = entry_of(t, row);
	if (!e)
		return -ENOMEM;
	for (size_t i = 0; i < h->ncolumns; i++) {
		const struct ready_column *c = &h->columns[i];
		bool of = c->of && !strcmp(c->of, row->aggregation), by = c->by && !strcmp(c->by, row->aggregation);

		if (of)
			take(row, &e->now[i], &e->counts[i]);
		if (by)
			take(row, &e->now[h->ncolumns + i], &e->counts[h->ncolumns + i]);
		if (of && !c->by)
			t->lasts[i] = strcmp(row->function, "count") && strcmp(row->function, "sum");
	}
	return 0;
}

/* Fill the cells of @e's values.  False: no value has changed since it was last shown, and all levels are 0. */
static bool fill(const struct table *t, const struct ready_head *h, struct entry *e, uint64_t took_ns)
{
	bool some = false;

	for (size_t i = 0; i < h->ncolumns; i++) {
		int64_t of = e->now[i] - e->before[i], by = e->now[h->ncolumns + i] - e->before[h->ncolumns + i];

		if (h->columns[i].is_key)
			continue;
		if (h->columns[i].by)
			of = by ? of / by : 0;
		if (h->columns[i].per_second)
			of = (int64_t)((double)of * 1e9 / (double)(took_ns ? took_ns : 1));
		if (t->lasts[i] || h->columns[i].is_level)
			of = e->now[i];
		e->cells[i] = (struct dtap_value){ .type = DTAP_INT, .i = of };
		some = some || (h->columns[i].is_level && of) || (!t->lasts[i] && e->now[i] != e->before[i]);
	}
	memcpy(e->before, e->now, 2 * h->ncolumns * sizeof(*e->now));
	return some;
}

static int show(struct ready_run *r, bool last)
{
	const struct ready_head *h = &r->req->head;
	struct table *t = r->state;
	struct entry *e;
	uint64_t now = now_ns();
	size_t pos = 0;
	int err;

	(void)last;
	if (!t) {
		t = r->state = calloc(1, sizeof(*t));
		if (!t)
			return -ENOMEM;
		t->r = r;
		t->shown_ns = r->began_ns;
		t->rows = (struct ready_rows){ .columns = h->columns, .ncolumns = h->ncolumns };
	}
	while ((e = bytemap_next(&t->entries, &pos))) {
		memset(e->now, 0, 2 * h->ncolumns * sizeof(*e->now));
		memset(e->counts, 0, 2 * h->ncolumns * sizeof(*e->counts));
	}
	pos = 0;
	err = ready_aggregations(r, take_row, t);
	while (!err && (e = bytemap_next(&t->entries, &pos)))
		if (fill(t, h, e, now - t->shown_ns))
			err = ready_rows_add(&t->rows, e->cells);
	t->shown_ns = now;
	if (err)
		return err;
	ready_rows_sort(&t->rows, h->sort);
	ready_rows_print(&t->rows, r, r->req->rows);
	ready_rows_clear(&t->rows);
	return 0;
}

static void fini(struct ready_run *r)
{
	struct table *t = r->state;
	struct entry *e;
	size_t pos = 0;

	if (!t)
		return;
	while ((e = bytemap_next(&t->entries, &pos)))
		free_entry(&r->req->head, e);
	bytemap_fini(&t->entries);
	ready_rows_fini(&t->rows);
	free(t);
	r->state = NULL;
}

const struct ready_form_ops ready_table_ops = { .show = show, .repeats = true, .fini = fini };

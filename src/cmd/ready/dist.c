/*
 * The form "distribution": a histogram for each key of the aggregation with buckets, with other values in its title.
 *
 * The other values are those of the same keys in other aggregations.  In JSON and CSV each bucket is a row.  The histograms
 * in which most time was spent come first.
 *
 * A command that has fields, too, prints a record for each event that may be among the greatest, of which the first field
 * says how great it is.  The greatest are a table behind the histograms; CSV, which has one kind of rows, is without it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "cmd/ready/cell.h"
#include "cmd/ready/rows.h"
#include "cmd/ready/run.h"

enum { BAR = 40, GREATEST = 10, GROUPS = 20, KEPT_MAX = 1024 };

/* A histogram, by its place among the aggregations' rows, and the sum of what is in its buckets. */
struct group {
	size_t at;
	double sum;
};

struct showing {
	struct ready_run *r;
	struct group *groups;		/* the largest sum first */
	size_t ngroups, cap, at;
	const struct dtap_row *row;	/* with buckets */
	const struct ready_column *column;
	struct dtap_value cells[READY_COLUMNS];
	size_t shown;
};

static bool is_field(const struct ready_column *c)
{
	return !c->is_key && !c->of;
}

static bool same_keys(const struct dtap_row *x, const struct dtap_row *y)
{
	for (size_t i = 0; i < x->nkeys; i++) {
		const struct dtap_value *a = &x->keys[i], *b = &y->keys[i];

		if (a->type != b->type || (a->type == DTAP_STRING ? strcmp(a->s, b->s) : a->u != b->u))
			return false;
	}
	return x->nkeys == y->nkeys;
}

/* Store the value of a row without buckets if its keys are those of the shown histogram. */
static int take_value(void *ctx, const struct dtap_row *row)
{
	struct showing *s = ctx;
	const struct ready_head *h = &s->r->req->head;

	if (row->nbuckets || !same_keys(row, s->row))
		return 0;
	for (size_t i = 0; i < h->ncolumns; i++)
		if (h->columns[i].of && !strcmp(h->columns[i].of, row->aggregation))
			s->cells[i] = row->value;
	return 0;
}

static void put_bound(const struct ready_column *c, int64_t from, struct strbuf *out)
{
	const struct dtap_value v = { .type = DTAP_INT, .i = from };

	if (from == INT64_MIN)
		strbuf_puts(out, "below");
	else
		ready_cell(c->kind, &v, out);
}

static void put_picture(const struct showing *s)
{
	const struct dtap_row *row = s->row;
	struct strbuf b = { 0 };
	int64_t most = 1;

	for (size_t i = 0; i < row->nbuckets; i++)
		most = row->buckets[i].count > most ? row->buckets[i].count : most;
	for (size_t i = 0; i < row->nbuckets; i++) {
		int n = (int)((double)row->buckets[i].count * BAR / (double)most + 0.999);

		strbuf_clear(&b);
		put_bound(s->column, row->buckets[i].from, &b);
		fprintf(s->r->out, "%12s |%.*s%*s %" PRId64 "\n", strbuf_str(&b), n, "########################################",
			BAR - n, "", row->buckets[i].count);
	}
	strbuf_fini(&b);
}

/* "f (app.py): calls 12, longest 3.4 ms" */
static void put_head(const struct showing *s)
{
	const struct ready_head *h = &s->r->req->head;
	struct strbuf b = { 0 };
	size_t nkeys = 0, nvalues = 0;

	for (size_t i = 0; i < h->ncolumns; i++) {
		const struct ready_column *c = &h->columns[i];

		if (c->is_key && s->cells[i].type == DTAP_STRING && !*s->cells[i].s)
			continue;	/* a key that was not asked for */
		if (c->is_key && nkeys++)
			strbuf_puts(&b, ", ");
		if (c->is_key && c->kind == READY_PID)
			strbuf_puts(&b, "pid ");
		if (c->is_key)
			ready_cell(c->kind, &s->cells[i], &b);
	}
	for (size_t i = 0; i < h->ncolumns; i++) {
		const struct ready_column *c = &h->columns[i];

		if (c->is_key || c == s->column || is_field(c))
			continue;
		strbuf_printf(&b, "%s %s ", nvalues++ ? "," : ":", c->title);
		ready_cell(c->kind, &s->cells[i], &b);
	}
	fprintf(s->r->out, "%s%s\n", s->shown ? "\n" : "", strbuf_str(&b));
	strbuf_fini(&b);
}

/* The row for programs: the columns of the head, with "from" and "count" in place of the distribution. */
static void put_buckets(struct showing *s)
{
	struct ready_column columns[READY_COLUMNS + 2];
	struct dtap_value cells[READY_COLUMNS + 2];
	const struct ready_head *h = &s->r->req->head;
	size_t n = 0;

	for (size_t i = 0; i < h->ncolumns; i++) {
		if (&h->columns[i] == s->column || is_field(&h->columns[i]))
			continue;
		columns[n] = h->columns[i];
		cells[n++] = s->cells[i];
	}
	columns[n] = (struct ready_column){ .name = "from", .title = "FROM", .kind = s->column->kind };
	columns[n + 1] = (struct ready_column){ .name = "count", .title = "COUNT", .kind = READY_COUNT };
	if (s->r->format == READY_AS_CSV && !s->r->titled)
		ready_titles_csv(columns, n + 2, s->r->out);
	s->r->titled = true;
	for (size_t i = 0; i < s->row->nbuckets; i++) {
		if (!s->row->buckets[i].count)
			continue;
		cells[n] = (struct dtap_value){ .type = DTAP_INT, .i = s->row->buckets[i].from };
		cells[n + 1] = (struct dtap_value){ .type = DTAP_INT, .i = s->row->buckets[i].count };
		(s->r->format == READY_AS_CSV ? ready_row_csv : ready_row_json)(columns, n + 2, cells, s->r->out);
	}
}

static int take_group(void *ctx, const struct dtap_row *row)
{
	struct showing *s = ctx;
	struct group *more;
	double sum = 0;

	if (!row->nbuckets || row->nkeys != s->r->req->head.nkeys)
		return 0;
	if (s->ngroups == s->cap) {
		s->cap = s->cap ? 2 * s->cap : 64;
		more = realloc(s->groups, s->cap * sizeof(*more));
		if (!more)
			return -ENOMEM;
		s->groups = more;
	}
	for (size_t i = 0; i < row->nbuckets; i++)
		sum += (double)row->buckets[i].count * (row->buckets[i].from == INT64_MIN ? 0 : (double)row->buckets[i].from);
	s->groups[s->ngroups] = (struct group){ s->ngroups, sum };
	s->ngroups++;
	return 0;
}

static int by_sum(const void *x, const void *y)
{
	const struct group *a = x, *b = y;

	return a->sum != b->sum ? (a->sum < b->sum ? 1 : -1) : (a->at > b->at) - (a->at < b->at);
}

/* The row whose turn it is. */
static int take_buckets(void *ctx, const struct dtap_row *row)
{
	struct showing *s = ctx;
	const struct ready_head *h = &s->r->req->head;
	size_t k = 0;
	int e;

	if (!row->nbuckets || row->nkeys != h->nkeys || s->at++ != s->groups[s->shown].at)
		return 0;
	s->column = NULL;
	memset(s->cells, 0, sizeof(s->cells));
	for (size_t i = 0; i < h->ncolumns; i++) {
		if (h->columns[i].is_key)
			s->cells[i] = row->keys[k++];
		else if (h->columns[i].of && !strcmp(h->columns[i].of, row->aggregation))
			s->column = &h->columns[i];
	}
	if (!s->column)
		return 0;
	s->row = row;
	e = ready_aggregations(s->r, take_value, s);
	if (e)
		return e;
	if (s->r->format == READY_AS_TEXT) {
		put_head(s);
		put_picture(s);
	} else {
		put_buckets(s);
	}
	return 0;
}

/* How many histograms are shown: a text with hundreds of them is not read. */
static size_t most_groups(const struct showing *s)
{
	size_t most = s->r->req->rows ? s->r->req->rows : s->r->format == READY_AS_TEXT ? GROUPS : SIZE_MAX;

	return s->ngroups < most ? s->ngroups : most;
}

static int show_groups(struct showing *s)
{
	int e = ready_aggregations(s->r, take_group, s);
	size_t most = most_groups(s);

	if (s->ngroups)
		qsort(s->groups, s->ngroups, sizeof(*s->groups), by_sum);
	for (; !e && s->shown < most; s->shown++) {
		s->at = 0;
		e = ready_aggregations(s->r, take_buckets, s);
	}
	if (!e && s->r->format == READY_AS_TEXT && most < s->ngroups)
		fprintf(s->r->out, "\nand %zu more, in which less time was spent: -n %zu shows all\n", s->ngroups - most, s->ngroups);
	return e;
}

/* --- the greatest events -------------------------------------------------------------------------------- */

struct greatest {
	struct ready_column columns[READY_COLUMNS];	/* the fields */
	struct ready_rows rows;
};

static struct greatest *new_greatest(const struct ready_head *h)
{
	struct greatest *g = calloc(1, sizeof(*g));

	for (size_t i = 0; g && i < h->ncolumns; i++)
		if (is_field(&h->columns[i]))
			g->columns[g->rows.ncolumns++] = h->columns[i];
	if (g)
		g->rows.columns = g->columns;
	return g;
}

static size_t limit_of(const struct ready_run *r)
{
	return r->req->rows && r->req->rows < KEPT_MAX ? r->req->rows : GREATEST;
}

static void record(struct ready_run *r, const struct dtap_record *rec)
{
	struct dtap_value cells[READY_COLUMNS];
	struct greatest *g = r->state;

	if (!g)
		g = r->state = new_greatest(&r->req->head);
	for (size_t i = 0; g && i < rec->nactions; i++) {
		const struct dtap_action *a = &rec->actions[i];

		if (strcmp(a->name, "printf") || !a->nvalues || a->nvalues != g->rows.ncolumns)
			continue;
		for (size_t k = 0; k < a->nvalues; k++) {
			cells[k] = a->values[k];
			if (g->columns[k].kind == READY_CLOCK)
				cells[k].u -= r->began_ns;
		}
		ready_rows_add(&g->rows, cells);
	}
	if (g && g->rows.n > 2 * KEPT_MAX) {
		ready_rows_sort(&g->rows, 0);
		ready_rows_cut(&g->rows, KEPT_MAX);
	}
}

/* A record is sure to be there only of an event at least half as great as the greatest. */
static void show_greatest(struct ready_run *r)
{
	struct greatest *g = r->state;
	size_t n = 0;

	if (!g || !g->rows.n || r->format == READY_AS_CSV)
		return;
	ready_rows_sort(&g->rows, 0);
	while (n < g->rows.n && n < limit_of(r) && g->rows.cells[n * g->rows.ncolumns].i >= g->rows.cells[0].i / 2)
		n++;
	ready_rows_cut(&g->rows, n);
	if (r->format == READY_AS_TEXT)
		fputc('\n', r->out);
	r->titled = false;
	ready_rows_print(&g->rows, r, 0);
}

static void fini(struct ready_run *r)
{
	struct greatest *g = r->state;

	if (g)
		ready_rows_fini(&g->rows);
	free(g);
	r->state = NULL;
}

static int show(struct ready_run *r, bool last)
{
	struct showing s = { .r = r };
	int e = show_groups(&s);

	(void)last;
	free(s.groups);
	r->shown += s.shown;
	if (!e)
		show_greatest(r);
	return e;
}

const struct ready_form_ops ready_distribution_ops = { .record = record, .show = show, .fini = fini };

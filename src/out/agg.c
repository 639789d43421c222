#include "out/agg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "out/field.h"
#include "out/dialect.h"
#include "out/hist.h"
#include "out/printf.h"
#include "out/sink.h"
#include "out/trace.h"

/* --- values ------------------------------------------------------------------------------------------ */

/* Without its sign, modulo 2^64: that of INT64_MIN is 2^63. */
static uint64_t magnitude(uint64_t v)
{
	return (int64_t)v < 0 ? -v : v;
}

int64_t out_normalize(int64_t v, uint64_t normal)
{
	uint64_t by = normal ? magnitude(normal) : 1, q = magnitude((uint64_t)v) / by;

	return (int64_t)((v < 0) != ((int64_t)normal < 0) ? -q : q);
}

static uint64_t square_root(unsigned __int128 v)
{
	unsigned __int128 root = 0, bit = (unsigned __int128)1 << 126;

	for (; bit; bit >>= 2) {
		if (v >= root + bit) {
			v -= root + bit;
			root = (root >> 1) + bit;
		} else {
			root >>= 1;
		}
	}
	return (uint64_t)root;
}

/* sqrt(average of the squares - square of the average), in integers at each step. */
static uint64_t stddev(const struct ir_agg *g, const uint64_t *words, uint64_t normal)
{
	unsigned __int128 squares = (unsigned __int128)words[3] << 64 | words[2];
	uint64_t n = words[0], by = normal ? magnitude(normal) : 1, mag;

	if (!n)
		return 0;
	squares = squares / by / by;
	mag = (g->sign ? magnitude(words[1]) : words[1]) / by / n;
	return square_root(squares / n - (unsigned __int128)mag * mag);
}

int64_t out_agg_value(const struct ir_agg *g, const uint64_t *words, uint64_t normal, bool *sign)
{
	uint64_t v = words ? words[0] : 0, by = normal ? magnitude(normal) : 1;

	*sign = g->sign && g->fn != IR_A_COUNT && g->fn != IR_A_STDDEV;
	if (!words)
		return 0;
	switch (g->fn) {
	case IR_A_STDDEV:
		return (int64_t)stddev(g, words, normal);
	case IR_A_AVG:
		if (!words[0])
			return 0;
		if (*sign)
			return out_normalize(out_normalize((int64_t)words[1], normal), words[0]);
		v = words[1] / words[0];
		break;
	case IR_A_MIN:
	case IR_A_MAX:
		if (!words[1])
			v = 0;
		break;
	default:
		break;
	}
	if (*sign)
		return out_normalize((int64_t)v, normal);
	*sign = (int64_t)normal < 0;	/* what has no sign gets that of the factor */
	return (int64_t)(*sign ? -(v / by) : v / by);
}

/* --- order ------------------------------------------------------------------------------------------- */

/* A line to be printed: a key, and the value that each aggregation has for it, or NULL. */
struct line {
	const struct ir_value *keys;
	const struct ir_slot *slots;
	const uint64_t **words;
};

struct sorter {
	const struct out_agg *aggs;
	size_t n;
	const struct out_agg_order *order;
};

static int value_cmp(const struct ir_agg *g, const uint64_t *a, const uint64_t *b)
{
	int64_t va, vb;
	bool sign;

	if (out_is_hist(g))
		return out_hist_cmp(g, a, b);
	va = out_agg_value(g, a, 1, &sign);
	vb = out_agg_value(g, b, 1, &sign);
	if (sign)
		return (va > vb) - (va < vb);
	return ((uint64_t)va > (uint64_t)vb) - ((uint64_t)va < (uint64_t)vb);
}

/* libdtrace compares keys as unsigned numbers of their size, strings byte by byte. */
static int part_cmp(const struct ir_value *a, const struct ir_value *b, const struct ir_slot *slot)
{
	uint64_t mask = slot->width >= 8 ? UINT64_MAX : ((uint64_t)1 << slot->width * 8) - 1;
	uint64_t va, vb;

	if (a->type == IR_STR)
		return strcmp(a->s, b->s);
	va = (uint64_t)a->i & mask;
	vb = (uint64_t)b->i & mask;
	return (va > vb) - (va < vb);
}

static int key_cmp(const struct ir_value *a, const struct ir_value *b, const struct ir_agg *g,
		   unsigned int key_pos)
{
	uint32_t i, at;
	int cmp;

	for (i = 0; i < g->nkeys; i++) {
		at = (i + (key_pos < g->nkeys ? key_pos : 0)) % g->nkeys;
		cmp = part_cmp(&a[at], &b[at], &g->keys[at]);
		if (cmp)
			return cmp;
	}
	return 0;
}

static int values_cmp(const struct line *a, const struct line *b, const struct sorter *by)
{
	size_t j, at;
	int cmp;

	for (j = 0; j < by->n; j++) {
		at = (j + (by->order->pos < by->n ? by->order->pos : 0)) % by->n;
		cmp = value_cmp(by->aggs[at].agg, a->words[at], b->words[at]);
		if (cmp)
			return cmp;
	}
	return 0;
}

static int line_cmp(const void *pa, const void *pb, void *ctx)
{
	const struct sorter *by = ctx;
	const struct line *a = pa, *b = pb;
	const struct ir_agg *g = by->aggs[0].agg;
	int cmp = 0;

	if (by->order->by_key)
		cmp = key_cmp(a->keys, b->keys, g, by->order->key_pos);
	if (!cmp)
		cmp = values_cmp(a, b, by);
	if (!cmp)
		cmp = key_cmp(a->keys, b->keys, g, by->order->key_pos);
	return by->order->reverse ? -cmp : cmp;
}

/* --- the lines of several aggregations --------------------------------------------------------------- */

/* A row, and the index of its aggregation. */
struct cell {
	const struct out_agg_row *row;
	size_t agg;
};

static int cell_cmp(const void *pa, const void *pb, void *ctx)
{
	const struct sorter *by = ctx;
	const struct cell *a = pa, *b = pb;
	int cmp = key_cmp(a->row->keys, b->row->keys, by->aggs[0].agg, 0);

	return cmp ? cmp : (a->agg > b->agg) - (a->agg < b->agg);
}

struct lines {
	struct line *v;
	size_t n;
	const uint64_t **words;		/* of all lines */
};

static void lines_fini(struct lines *l)
{
	free(l->v);
	free(l->words);
	*l = (struct lines){ 0 };
}

/* Sort the cells by key, and make one line of those with equal keys. */
static int join(struct lines *l, struct sorter *by, size_t total)
{
	struct cell *cells = malloc(total * sizeof(*cells)), *c = cells;
	struct line *line = NULL;
	size_t i, j;

	if (!cells)
		return -ENOMEM;
	for (j = 0; j < by->n; j++)
		for (i = 0; i < by->aggs[j].n; i++)
			*c++ = (struct cell){ &by->aggs[j].rows[i], j };
	qsort_r(cells, total, sizeof(*cells), cell_cmp, by);
	for (i = 0; i < total; i++) {
		const struct out_agg_row *row = cells[i].row;

		if (!line || key_cmp(line->keys, row->keys, by->aggs[0].agg, 0)) {
			if (by->order->first && cells[i].agg)	/* the first aggregation's cell would come first */
				continue;
			line = &l->v[l->n];
			line->keys = row->keys;
			line->slots = by->aggs[cells[i].agg].agg->keys;
			line->words = l->words + l->n++ * by->n;
		}
		line->words[cells[i].agg] = row->words;
	}
	free(cells);
	return 0;
}

/* For a single aggregation: its rows are the lines. */
static void adopt(struct lines *l, const struct out_agg *a)
{
	for (; l->n < a->n; l->n++) {
		l->words[l->n] = a->rows[l->n].words;
		l->v[l->n] = (struct line){ a->rows[l->n].keys, a->agg->keys, l->words + l->n };
	}
}

/* The sorted lines of @by's aggregations.  0 or -ENOMEM. */
static int lines_init(struct lines *l, struct sorter *by)
{
	size_t j, total = 0;
	int err = 0;

	*l = (struct lines){ 0 };
	for (j = 0; j < by->n; j++)
		total += by->aggs[j].n;
	if (!total)
		return 0;
	l->v = calloc(total, sizeof(*l->v));
	l->words = calloc(total * by->n, sizeof(*l->words));
	if (!l->v || !l->words)
		err = -ENOMEM;
	else if (by->n == 1)
		adopt(l, by->aggs);
	else
		err = join(l, by, total);
	if (err) {
		lines_fini(l);
		return err;
	}
	qsort_r(l->v, l->n, sizeof(*l->v), line_cmp, by);
	return 0;
}

/* --- printing ---------------------------------------------------------------------------------------- */

static void put_value(struct out_sink *s, const struct out_agg *a, const uint64_t *words)
{
	static const struct out_spec column = { .width = 16, .prec = -1 };
	int64_t v;
	bool sign;

	if (out_is_hist(a->agg)) {
		out_hist(s, a->agg, words, a->normal, a->zoom);
		return;
	}
	v = out_agg_value(a->agg, words, a->normal, &sign);
	out_putc(s, ' ');
	if (sign)
		out_field_signed(s, &column, v);
	else
		out_field_unsigned(s, &column, (uint64_t)v, 10, false);
}

static void put_columns(struct out_sink *s, const struct out_agg *aggs, size_t n, const struct line *line)
{
	for (uint32_t i = 0; i < aggs[0].agg->nkeys; i++)
		out_key(s, &line->keys[i], &line->slots[i]);
	for (size_t j = 0; j < n; j++)
		put_value(s, &aggs[j], line->words[j]);
	out_putc(s, '\n');
}

/* %@: a distribution is printed as a histogram, whatever the conversion. */
static int conv_value(struct out_sink *s, const struct dialect *d, const struct fmt_conv *c,
		      const struct out_spec *spec, const struct out_agg *a, const uint64_t *words)
{
	struct ir_value v = { .type = IR_INT };
	struct ir_slot slot = { .type = IR_INT, .width = 8 };

	if (out_is_hist(a->agg)) {
		out_hist(s, a->agg, words, a->normal, a->zoom);
		return 0;
	}
	v.i = out_agg_value(a->agg, words, a->normal, &slot.sign);
	return d->conv(s, c, spec, &v, &slot);
}

static int put_format(struct out_sink *s, const struct fmt *f, const struct out_agg *aggs, size_t n,
		      const struct line *line)
{
	const struct dialect *d = out_dialect(s);
	struct out_args keys = { .v = line->keys, .slots = line->slots, .n = aggs[0].agg->nkeys };
	struct out_spec spec;
	size_t i, at = 0;
	int err;

	for (i = 0; i < f->n; i++) {
		const struct fmt_conv *c = &f->convs[i];

		out_put(s, c->lit, c->lit_len);
		if (c->kind == FMT_NONE)
			continue;
		err = out_spec_of(d, c, &keys, &spec);
		if (err)
			return err;
		if (c->flags & FMT_AGG) {
			err = conv_value(s, d, c, &spec, &aggs[at], line->words[at]);
			at += at + 1 < n;
		} else {
			if (keys.next == keys.n)
				return -EINVAL;
			err = d->conv(s, c, &spec, &keys.v[keys.next], &keys.slots[keys.next]);
			keys.next++;
		}
		if (err)
			return err;
	}
	return 0;
}

int out_printa(struct out_sink *s, const struct fmt *f, const struct out_agg *aggs, size_t n,
	       const struct out_agg_order *order)
{
	struct sorter by = { aggs, n, order };
	struct lines l;
	int err;

	err = lines_init(&l, &by);
	if (!err && !f)
		out_putc(s, '\n');
	for (size_t i = 0; i < l.n && !err; i++) {
		if (f)
			err = put_format(s, f, aggs, n, &l.v[i]);
		else
			put_columns(s, aggs, n, &l.v[i]);
	}
	lines_fini(&l);
	return err;
}

int out_agg(struct out_sink *s, const struct out_agg *a, const struct out_agg_order *order)
{
	struct sorter by = { a, 1, order };
	struct lines l;
	int err = lines_init(&l, &by);

	for (size_t i = 0; i < l.n; i++)
		put_columns(s, a, 1, &l.v[i]);
	lines_fini(&l);
	return err;
}

int out_agg_each(const struct out_agg *a, const struct out_agg_order *order,
		 int (*each)(void *ctx, const struct out_agg_line *line), void *ctx)
{
	struct sorter by = { a, 1, order };
	struct lines l;
	int e = lines_init(&l, &by);

	if (e)
		return e;
	for (size_t i = 0; i < l.n && !e; i++) {
		const struct out_agg_line line = { a, l.v[i].keys, l.v[i].slots, l.v[i].words[0] };

		e = each(ctx, &line);
	}
	lines_fini(&l);
	return e;
}

long out_agg_trunc(const struct out_agg *a, int64_t keep, size_t *index)
{
	struct out_agg_order order = { .reverse = keep >= 0 };
	struct sorter by = { a, 1, &order };
	uint64_t stay = keep < 0 ? -(uint64_t)keep : (uint64_t)keep;
	long gone = 0;
	struct lines l;
	size_t i;

	if (stay >= a->n)
		return 0;
	if (lines_init(&l, &by))
		return -ENOMEM;
	for (i = stay; i < l.n; i++)
		index[gone++] = (size_t)(l.v[i].words - l.words);	/* sorting moves lines, not words */
	lines_fini(&l);
	return gone;
}

#include "out/hist.h"

#include <stdio.h>

#include "lang/format.h"
#include "out/agg.h"
#include "out/field.h"
#include "out/sink.h"

enum { BAR = 40, QUANTIZE_BINS = 127, QUANTIZE_ZERO = 63 };

bool out_is_hist(const struct ir_agg *g)
{
	return g->fn == IR_A_QUANTIZE || g->fn == IR_A_LQUANTIZE || g->fn == IR_A_LLQUANTIZE;
}

static uint32_t bins(const struct ir_agg *g)
{
	return g->fn == IR_A_QUANTIZE ? QUANTIZE_BINS : ir_agg_words(g);
}

int64_t out_hist_count(const uint64_t *words, uint32_t i)
{
	return words ? (int64_t)words[i] : 0;
}

/* The value of bin @i nearest to zero; for lquantize()'s open first bin, the first value above it. */
int64_t out_hist_bound(const struct ir_agg *g, uint32_t i)
{
	switch (g->fn) {
	case IR_A_QUANTIZE:
		if (i == QUANTIZE_ZERO)
			return 0;
		return i > QUANTIZE_ZERO ? (int64_t)1 << (i - QUANTIZE_ZERO - 1)
					 : -((int64_t)1 << (QUANTIZE_ZERO - 1 - i));
	case IR_A_LQUANTIZE:
		return (int64_t)((uint64_t)g->param[0] + (i ? i - 1 : 0) * (uint64_t)g->param[2]);
	default:
		return ir_llquantize_label(g, i);
	}
}

int64_t out_hist_from(const struct ir_agg *g, uint32_t i)
{
	if (g->fn == IR_A_LLQUANTIZE)
		return ir_llquantize_bound(g, i);
	if (i == 0)
		return INT64_MIN;
	if (g->fn == IR_A_QUANTIZE && i < QUANTIZE_ZERO)
		return out_hist_bound(g, i - 1) + 1;
	return out_hist_bound(g, i);
}

static void put_bound(struct out_sink *s, const struct ir_agg *g, uint32_t i)
{
	bool open = g->fn != IR_A_QUANTIZE, log = g->fn == IR_A_LLQUANTIZE;
	int64_t bound = out_hist_bound(g, i);
	const char *sign = "";
	char text[40];

	if (open && i == 0)
		sign = log ? "<= " : "< ";
	else if (open && i == bins(g) - 1)
		sign = ">= ";
	if (log && i == bins(g) / 2 && g->param[1]) {
		sign = "abs() < ";
		bound = out_hist_bound(g, i + 1);
	}
	snprintf(text, sizeof(text), "%s%lld", sign, (long long)bound);
	out_format(s, "%16s ", text);
}

/* Scale for the bars. */
struct scale {
	long double total;		/* the count of a full bar: the sum of the counts' magnitudes, unless zoomed */
	bool positives, negatives;
};

static long double mag(int64_t n)
{
	return n < 0 ? -(long double)n : (long double)n;
}

static unsigned int bar_length(int64_t n, long double total, unsigned int whole)
{
	return total > 0 ? (unsigned int)(mag(n) * whole / total + 0.5L) : 0;
}

/*
 * Bars of positive counts grow to the right of the axis.  Counts are negative only if the script increments by a
 * negative number; their bars grow to the left.  If there are both, the axis is in the middle.
 *
 *	|@@@@@@@@@@                              10
 *	                              @@@@@@@@@@| -10
 *	               @@@@@|                     -5
 */
static void put_bar(struct out_sink *s, const struct scale *sc, int64_t n)
{
	bool both = sc->positives && sc->negatives;
	unsigned int whole = both ? BAR / 2 : BAR, len = bar_length(n, sc->total, whole);
	bool left = sc->negatives && (!both || n <= 0);

	if (left) {
		out_pad(s, ' ', whole - len);
		out_pad(s, '@', len);
		out_putc(s, '|');
		out_pad(s, ' ', both ? whole : 0);
	} else {
		out_pad(s, ' ', both ? whole : 0);
		out_putc(s, '|');
		out_pad(s, '@', len);
		out_pad(s, ' ', whole - len);
	}
}

/* For an empty distribution, the rows around 0, or the first ones. */
void out_hist_range(const struct ir_agg *g, const uint64_t *words, uint32_t *from, uint32_t *to)
{
	uint32_t n = bins(g), first = 0, last = n - 1;

	while (first < n && !out_hist_count(words, first))
		first++;
	if (first == n) {
		*from = g->fn == IR_A_QUANTIZE ? QUANTIZE_ZERO - 1 : g->fn == IR_A_LQUANTIZE ? 0 : n / 2;
		*to = *from + 2;
		if (*to >= n)
			*to = n - 1;
		return;
	}
	while (!out_hist_count(words, last))
		last--;
	*from = first ? first - 1 : 0;
	*to = last < n - 1 ? last + 1 : last;
}

void out_hist(struct out_sink *s, const struct ir_agg *g, const uint64_t *words, uint64_t normal, bool zoom)
{
	static const struct out_spec left = { .flags = FMT_LEFT, .width = 9, .prec = -1 };
	struct scale sc = { 0 };
	uint32_t i, from, to;

	out_hist_range(g, words, &from, &to);
	for (i = from; i <= to; i++) {
		int64_t n = out_hist_count(words, i);

		sc.positives |= n > 0;
		sc.negatives |= n < 0;
		if (!zoom)
			sc.total += mag(n);
		else if (sc.total < mag(n) / 0.95L)
			sc.total = mag(n) / 0.95L;
	}
	out_format(s, "\n%16s %41s %-9s\n", "value", "------------- Distribution -------------", "count");
	for (i = from; i <= to; i++) {
		put_bound(s, g, i);
		put_bar(s, &sc, out_hist_count(words, i));
		out_putc(s, ' ');
		out_field_signed(s, &left, out_normalize(out_hist_count(words, i), normal));
		out_putc(s, '\n');
	}
}

/* The sum of the values.  Those in the open ends of a linear distribution count as the value next to the range. */
static long double sum(const struct ir_agg *g, const uint64_t *words)
{
	uint32_t i, n = bins(g);
	long double total = 0, at;

	for (i = 0; i < n; i++) {
		if (!out_hist_count(words, i))
			continue;
		at = out_hist_bound(g, i);
		if (i == 0 && g->fn == IR_A_LQUANTIZE)
			at -= 1;
		if (i == n - 1 && g->fn == IR_A_LQUANTIZE)
			at += 1;
		total += at * out_hist_count(words, i);
	}
	return total;
}

/* The count of the bin for zero, 0 if there is none. */
static int64_t zeros(const struct ir_agg *g, const uint64_t *words)
{
	uint32_t i, n = bins(g);

	if (g->fn == IR_A_QUANTIZE)
		return out_hist_count(words, QUANTIZE_ZERO);
	if (g->fn == IR_A_LLQUANTIZE)
		return out_hist_count(words, n / 2);
	for (i = 0; i < n; i++)
		if (out_hist_bound(g, i) + (i == n - 1) - (i == 0) == 0)
			return out_hist_count(words, i);
	return 0;
}

int out_hist_cmp(const struct ir_agg *g, const uint64_t *a, const uint64_t *b)
{
	long double sa = sum(g, a), sb = sum(g, b);
	int64_t za, zb;

	if (sa != sb)
		return sa < sb ? -1 : 1;
	za = zeros(g, a);
	zb = zeros(g, b);
	return (za > zb) - (za < zb);
}

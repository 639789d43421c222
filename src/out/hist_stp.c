#include "out/hist_stp.h"

#include <string.h>

#include "out/sink.h"

enum { WIDTH = 50, MARGIN = 2 };

/* The value shown in the row of bin @i. */
static int64_t label(const struct out_stp_hist *h, uint32_t i)
{
	if (h->linear) {
		uint64_t at = i == 0 ? 0 : i == h->n - 1 ? i - 2 : i - 1;

		return (int64_t)((uint64_t)h->start + at * (uint64_t)h->interval);
	}
	if (i == OUT_STP_LOG_ZERO)
		return 0;
	return i > OUT_STP_LOG_ZERO ? (int64_t)1 << (i - OUT_STP_LOG_ZERO - 1) : INT64_MIN >> i;
}

/* The open ends of a linear distribution are marked. */
static const char *mark(const struct out_stp_hist *h, uint32_t i)
{
	return h->linear && i == 0 ? "<" : h->linear && i == h->n - 1 ? ">" : "";
}

static int places(int64_t v)
{
	uint64_t mag = v < 0 ? -(uint64_t)v : (uint64_t)v;
	int n = 1 + (v < 0);

	for (; mag > 9; mag /= 10)
		n++;
	return n;
}

static int max(int a, int b)
{
	return a > b ? a : b;
}

/*
 * Rows to show: from the first to the last nonempty bin, and up to two empty ones on each side.  A
 * logarithmic histogram shows negative bins only if one of them is not empty, a linear one an open end only if it is
 * not empty.
 */
static bool range(const struct out_stp_hist *h, uint32_t *from, uint32_t *to)
{
	uint32_t first = 0, last = h->n;

	while (first < h->n && !h->counts[first])
		first++;
	if (first == h->n)
		return false;
	while (!h->counts[last - 1])
		last--;
	last--;
	for (int i = 0; i < MARGIN; i++) {
		first -= first > 0 && (h->linear || first != OUT_STP_LOG_ZERO);
		last += last < h->n - 1;
	}
	if (h->linear && first == 0 && !h->counts[0])
		first++;
	if (h->linear && last == h->n - 1 && !h->counts[last])
		last--;
	*from = first;
	*to = last;
	return true;
}

/* Are row @i and its neighbours empty? */
static bool elided(const struct out_stp_hist *h, uint32_t i, uint32_t from, uint32_t to)
{
	uint32_t near, k;

	if (h->elision < 0)
		return false;
	near = (uint32_t)h->elision;
	for (k = i - from > near ? i - near : from; k <= to && k - i + near <= 2 * near; k++)
		if (h->counts[k])
			return false;
	return true;
}

void out_stp_hist(struct out_sink *s, const struct out_stp_hist *h)
{
	uint32_t i, from = 0, to = 0;
	bool any = range(h, &from, &to), gap = false;
	uint64_t most = 0, scale;
	int value_width = 5, count_width;

	for (i = 0; i < h->n; i++)
		most = h->counts[i] > most ? h->counts[i] : most;
	scale = most <= WIDTH ? 1 : (most + WIDTH - 1) / WIDTH;
	count_width = places((int64_t)most);
	if (any && h->linear) {
		/* SystemTap's runtime computes the width from one bin above the last that it prints. */
		int64_t end = (int64_t)((uint64_t)h->start + (uint64_t)h->interval * to);

		value_width = max(value_width, places(h->start) + (from == 0));
		value_width = max(value_width, places(end) + (to == h->n - 1));
	} else if (any) {
		value_width = max(value_width, max(places(label(h, from)), places(label(h, to))));
	}

	out_format(s, "%*s |", value_width, "value");
	out_pad(s, '-', WIDTH);
	out_puts(s, " count\n");
	for (i = from; any && i <= to; i++) {
		uint64_t bar = h->counts[i] / scale;

		if (elided(h, i, from, to)) {
			gap = true;
			continue;
		}
		if (gap)
			out_format(s, "%*s ~\n", value_width, "");
		gap = false;
		out_format(s, "%*s%lld |", value_width - places(label(h, i)), mark(h, i), (long long)label(h, i));
		out_pad(s, '@', bar);
		out_format(s, "%*llu\n", (int)(WIDTH - bar) + 1 + count_width, (unsigned long long)h->counts[i]);
	}
	out_putc(s, '\n');
}

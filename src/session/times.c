/*
 * stap -t: how often each handler ran and how long it took, in SystemTap's wording.
 *
 * Handlers measure in nanoseconds.  The report is in cycles of the processor's counter; its rate is measured from the
 * session's start to its end.
 *
 * Man page stap(1), option -t; the form is that of SystemTap 4.8.
 */
#include "session/private.h"

#include <inttypes.h>
#include <stdlib.h>
#include "arch/cycles.h"
#include "base/now.h"
#include "out/sink.h"

static uint64_t cycles(void)
{
#if defined(ARCH_CYCLES)
	return arch_cycles();
#else
	return now_ns();
#endif
}

void session_times_start(struct session *s)
{
	s->began.cycles = cycles();
	s->began.ns = now_ns();
}

/* The value of the clause @id in @rows, or NULL. */
static const uint64_t *words_of(const struct out_agg_row *rows, long n, uint32_t id)
{
	for (long k = 0; k < n; k++)
		if (rows[k].keys[0].i == (int64_t)id)
			return rows[k].words;
	return NULL;
}

/* The sample variance of @w, as IR_A_STDDEV has it. */
static double variance(const uint64_t *w)
{
	double n = (double)w[0], sum = (double)(int64_t)w[1], squares = (double)w[2] + (double)w[3] * 18446744073709551616.0;

	return n > 1 ? (squares - sum * sum / n) / (n - 1) : 0;
}

static void put_probe(struct session *s, const struct session_timed *t, unsigned int number, const uint64_t *low,
		      const uint64_t *high, const uint64_t *all, double rate)
{
	out_puts(s->conf.out, t->point);
	out_format(s->conf.out, ", (%s:%u:%u), hits: %" PRIu64 ", cycles: %" PRId64 "min/%" PRId64 "avg/%" PRId64
		   "max, variance: %" PRId64 ", from: ", t->pos.src ? t->pos.src->name : "", t->pos.line,
		   t->pos.col, all[0], (int64_t)((double)(int64_t)low[0] * rate),
		   (int64_t)((double)(int64_t)all[1] * rate / (double)all[0]), (int64_t)((double)(int64_t)high[0] * rate),
		   (int64_t)(variance(all) * rate * rate));
	out_puts(s->conf.out, t->written);
	out_format(s->conf.out, ", index: %u\n", number);
}

int session_times_print(struct session *s)
{
	const struct session_times *t = s->conf.times;
	double ns = (double)(now_ns() - s->began.ns), rate = ns > 0 ? (double)(cycles() - s->began.cycles) / ns : 1;
	const struct ir_agg *aggs[3];
	const struct out_agg_row *rows[3];
	long n[3];

	if (!t)
		return 0;
	aggs[0] = t->shortest;
	aggs[1] = t->longest;
	aggs[2] = t->all;
	for (int k = 0; k < 3; k++) {
		n[k] = aggs_read(s->aggs, aggs[k], &rows[k]);
		if (n[k] < 0)
			return (int)n[k];
		aggs_set_printed(s->aggs, aggs[k]);
	}
	out_puts(s->conf.out, "----- probe hit report: \n");
	for (uint32_t i = 0; i < t->n; i++) {
		const uint64_t *w[3];

		for (int k = 0; k < 3; k++)
			w[k] = words_of(rows[k], n[k], t->rows[i].clause);
		if (w[0] && w[1] && w[2] && w[2][0])
			put_probe(s, &t->rows[i], i, w[0], w[1], w[2], rate);
	}
	out_puts(s->conf.out, "----- refresh report:\n");
	return 0;
}

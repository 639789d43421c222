/*
 * stap -t: how often each handler ran and how long it took, in SystemTap's words.
 *
 * Handlers measure in nanoseconds; what is printed are cycles of the processor's counter, whose rate is that between the
 * session's start and its end.
 *
 * Man page stap(1), option -t; the form is that of SystemTap 4.8.
 */
#include "session/private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "base/strbuf.h"
#include "out/sink.h"
#include "stp/stp.h"

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t cycles(void)
{
#if defined(__x86_64__)
	return __rdtsc();
#else
	return now_ns();
#endif
}

void session_times_start(struct session *s)
{
	s->began_cycles = cycles();
	s->began_ns = now_ns();
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

static void put_probe(struct session *s, const struct stp_clause *c, unsigned int number, const uint64_t *low,
		      const uint64_t *high, const uint64_t *all, double rate)
{
	struct stp_point written = *c->handler->written;
	struct strbuf from = { 0 };

	written.optional = written.sufficient = false;
	written.cond = NULL;
	stp_dump_point(&from, &written);
	out_puts(s->conf.out, c->pp);
	out_format(s->conf.out, ", (%s:%u:%u), hits: %" PRIu64 ", cycles: %" PRId64 "min/%" PRId64 "avg/%" PRId64
		   "max, variance: %" PRId64 ", from: ", written.pos.src ? written.pos.src->name : "", written.pos.line,
		   written.pos.col, all[0], (int64_t)((double)(int64_t)low[0] * rate),
		   (int64_t)((double)(int64_t)all[1] * rate / (double)all[0]), (int64_t)((double)(int64_t)high[0] * rate),
		   (int64_t)(variance(all) * rate * rate));
	out_puts(s->conf.out, strbuf_str(&from));
	out_format(s->conf.out, ", index: %u\n", number);
	strbuf_fini(&from);
}

int session_times_print(struct session *s)
{
	const struct stp_code *code = s->conf.stp;
	const struct out_agg_row *rows[STP_TIMES];
	double ns = (double)(now_ns() - s->began_ns), rate = ns > 0 ? (double)(cycles() - s->began_cycles) / ns : 1;
	unsigned int number = 0;
	long n[STP_TIMES];

	if (!code || !code->times[0])
		return 0;
	for (int k = 0; k < STP_TIMES; k++) {
		n[k] = aggs_read(s->aggs, code->times[k], &rows[k]);
		if (n[k] < 0)
			return (int)n[k];
		aggs_set_printed(s->aggs, code->times[k]);
	}
	out_puts(s->conf.out, "----- probe hit report: \n");
	for (uint32_t i = 0; i < code->prog->nclauses; i++) {
		const struct stp_clause *c = &code->clauses[i];
		const uint64_t *w[STP_TIMES];

		if (!c->handler)
			continue;
		for (int k = 0; k < STP_TIMES; k++)
			w[k] = words_of(rows[k], n[k], c->code->id);
		if (w[STP_TIME_MIN] && w[STP_TIME_MAX] && w[STP_TIME_ALL] && w[STP_TIME_ALL][0])
			put_probe(s, c, number, w[STP_TIME_MIN], w[STP_TIME_MAX], w[STP_TIME_ALL], rate);
		number++;
	}
	out_puts(s->conf.out, "----- refresh report:\n");
	return 0;
}

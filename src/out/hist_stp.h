/*
 * SystemTap's histograms: @hist_log and @hist_linear (language reference, "Histogram extractors").  D's (hist.h) have
 * different bins, rows and bars.
 */
#ifndef DTAP_OUT_HIST_STP_H
#define DTAP_OUT_HIST_STP_H

#include <stdbool.h>
#include <stdint.h>

struct out_sink;

enum { OUT_STP_LOG_BINS = 128, OUT_STP_LOG_ZERO = 64, OUT_STP_ELISION = 2 };

/*
 * Bins and their counts, not negative.  Logarithmic: bin 64 is zero, 64 + n starts at 2^(n-1), 64 - n
 * at -2^(n-1), so that bin 0 is INT64_MIN alone.  Linear: one bin below @start, bins of @interval from @start,
 * one above.
 */
struct out_stp_hist {
	bool linear;
	int64_t start, interval;	/* linear */
	uint32_t n;
	const uint64_t *counts;		/* @n */
	int elision;			/* HIST_ELISION: empty rows shown next to others; negative: all */
};

void out_stp_hist(struct out_sink *s, const struct out_stp_hist *h);

#endif

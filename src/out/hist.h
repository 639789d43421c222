/*
 * Distributions as histograms, and their order when sorted: quantize(), lquantize(), llquantize().
 *
 * All three are bins with ascending bounds.  The linear and the log-linear ones are open at both ends:
 * the first bin holds values below the range, the last those at or above its end.  The words are those of
 * ir/aggs.def; NULL is an empty distribution.
 */
#ifndef DTAP_OUT_HIST_H
#define DTAP_OUT_HIST_H

#include <stdbool.h>
#include <stdint.h>

#include "ir/ir.h"

struct out_sink;

/* Is @g a distribution? */
bool out_is_hist(const struct ir_agg *g);

/*
 * Print it: a newline, the titles, and a row for each bin from one before the first nonempty bin to one after
 * the last.  Counts are divided by @normal; bars are not.  @zoom: the longest bar fills 95 % of the width, as under
 * libdtrace's aggzoom; else the sum of all counts would.
 */
void out_hist(struct out_sink *s, const struct ir_agg *g, const uint64_t *words, uint64_t normal, bool zoom);

/* The bins to show, *from to *to.  The value shown for bin @i, the one nearest to zero, and its count. */
void out_hist_range(const struct ir_agg *g, const uint64_t *words, uint32_t *from, uint32_t *to);
int64_t out_hist_bound(const struct ir_agg *g, uint32_t i);
int64_t out_hist_count(const uint64_t *words, uint32_t i);

/* The smallest value of bin @i; INT64_MIN for a first bin that is open below. */
int64_t out_hist_from(const struct ir_agg *g, uint32_t i);

/* Order by the sum of the values, estimated from the bins, then by the number of zeros: < 0, 0 or > 0. */
int out_hist_cmp(const struct ir_agg *g, const uint64_t *a, const uint64_t *b);

#endif

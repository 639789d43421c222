/*
 * Distributions as pictures, and their weight when they are sorted: quantize(), lquantize(), llquantize().
 *
 * All three are bins with ascending lower bounds.  The linear and the log-linear ones are open at both ends:
 * the first bin holds what is below the range, the last what is at or above its end.  The words are those of
 * ir/aggs.def; NULL stands for a distribution that is empty.
 */
#ifndef DTAP_OUT_HIST_H
#define DTAP_OUT_HIST_H

#include <stdbool.h>
#include <stdint.h>

#include "ir/ir.h"

struct out_sink;

/* Is @g one? */
bool out_is_hist(const struct ir_agg *g);

/*
 * Print it: an empty line's end, the titles, and a row for each bin from one before the first that is not
 * empty to one behind the last.  Counts are divided by @normal; the bars are not.  @zoom: the longest bar fills 95 % of
 * its place, as under libdtrace's aggzoom; else all together would fill it.
 */
void out_hist(struct out_sink *s, const struct ir_agg *g, const uint64_t *words, uint64_t normal, bool zoom);

/* The bins that are shown, from *from to *to: the lower bound of bin @i, and its count. */
void out_hist_range(const struct ir_agg *g, const uint64_t *words, uint32_t *from, uint32_t *to);
int64_t out_hist_bound(const struct ir_agg *g, uint32_t i);
int64_t out_hist_count(const uint64_t *words, uint32_t i);

/* Order by the sum of the values, as the bins know them, then by how many are zero: < 0, 0 or > 0. */
int out_hist_cmp(const struct ir_agg *g, const uint64_t *a, const uint64_t *b);

#endif

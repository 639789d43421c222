/*
 * Statistics: SystemTap's buckets, and results that are calculated when they are read.
 */
#include "rt.h"

#include "abi/stat.h"

RT u64 rt_log_bucket(s64 v)
{
	u64 x = v < 0 ? -(u64)v : (u64)v, bits = 0;

	_Pragma("unroll") for (u32 shift = 32; shift; shift /= 2)
	{
		if (x >> shift) {
			x >>= shift;
			bits += shift;
		}
	}
	bits += x;	/* 1, or 0 for zero */
	return v < 0 ? ABI_STAT_LOG_ZERO - bits : ABI_STAT_LOG_ZERO + bits;
}

RT u64 rt_linear_bucket(s64 v, s64 low, u64 width, u64 buckets)
{
	u64 n;

	if (v < low)
		return 0;
	n = ((u64)v - (u64)low) / width + 1;
	return n < buckets - 1 ? n : buckets - 1;
}

RT s64 rt_avg(const u64 *w)
{
	u64 n = w[ABI_STAT_COUNT];
	s64 sum = (s64)w[ABI_STAT_SUM];

	return sum < 0 ? -(s64)(-(u64)sum / n) : (s64)((u64)sum / n);
}

/* Towards zero; INT64_MIN stays itself. */
static inline s64 quotient(s64 a, u64 by)
{
	return a < 0 ? -(s64)(-(u64)a / by) : (s64)((u64)a / by);
}

/*
 * Welford's algorithm in integers, step by step as SystemTap's runtime does it (runtime/stat-common.c), with the
 * difference kept in 32 bits: @w[0] is the average so far, shifted, @w[1] the sum of squared differences, @v the @n-th
 * value.  Additions on two CPUs at a time may lose a step.
 */
RT long rt_square(u64 *w, s64 v, u64 n, u64 shift)
{
	s64 shifted = (s64)((u64)v << (shift & 63)), delta;

	if (n < 2) {
		w[0] = (u64)shifted;
		w[1] = 0;
		return 0;
	}
	delta = (int)((u64)shifted - w[0]);
	w[0] += (u64)quotient(delta, n);
	w[1] += (u64)delta * ((u64)shifted - w[0]);
	return 0;
}

/* How that runtime combines the parts of all CPUs when it reads them; here there is one part. */
RT s64 rt_variance(const u64 *w)
{
	u64 n = w[ABI_STAT_COUNT], shift = w[ABI_STAT_SHIFT] & 63;
	u64 mean, off;

	if (n < 2)
		return 0;
	mean = (u64)quotient((s64)(w[ABI_STAT_SUM] << shift), n);
	off = w[ABI_STAT_SQUARES] - mean;
	return quotient((s64)(n * (off * off) + (n - 1) * (u64)quotient((s64)w[ABI_STAT_SQUARES + 1], n - 1)), n - 1) >>
	       ((2 * shift) & 63);
}

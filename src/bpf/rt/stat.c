/*
 * Statistics: SystemTap's buckets, and what is calculated when it is asked for.
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

/* The square of a number of 64 bits in 128. */
static inline __attribute__((always_inline)) void square(u64 x, u64 *lo, u64 *hi)
{
	u64 low = x & 0xffffffff, high = x >> 32, middle = low * high;
	u64 sum = (middle << 33) + low * low;

	*lo = sum;
	*hi = high * high + (middle >> 31) + (sum < low * low);
}

RT long rt_square(u64 *w, s64 v)
{
	u64 lo, hi, old;

	square(v < 0 ? -(u64)v : (u64)v, &lo, &hi);
	old = __sync_fetch_and_add(w, lo);
	__sync_fetch_and_add(w + 1, hi + (old + lo < lo));
	return 0;
}

RT s64 rt_avg(const u64 *w)
{
	u64 n = w[ABI_STAT_COUNT];
	s64 sum = (s64)w[ABI_STAT_SUM];

	return sum < 0 ? -(s64)(-(u64)sum / n) : (s64)((u64)sum / n);
}

/* hi:lo / by, of which the low 64 bits, bit by bit: division of 128 bits is what the machine does not have. */
struct division {
	u64 hi, lo, by;
};

static long divide_bit(u32 k, struct division *c)
{
	u64 out = c->hi >> 63;

	c->hi = c->hi << 1 | c->lo >> 63;
	c->lo <<= 1;
	if (out || c->hi >= c->by) {
		c->hi -= c->by;
		c->lo |= 1;
	}
	return 0;
}

static inline __attribute__((always_inline)) void divide(struct division *c)
{
	u64 top = c->hi / c->by;

	c->hi -= top * c->by;
	rt_loop(64, divide_bit, c, 0);
	/* Now lo is the low word of the quotient, hi the rest; the high word goes there. */
	c->by = c->hi;
	c->hi = top;
}

/* (squares - sum * sum / n) / (n - 1), rounded down; the inner quotient rounded up, since it is taken away. */
RT s64 rt_variance(const u64 *w)
{
	struct division c;
	u64 n = w[ABI_STAT_COUNT], lo = w[ABI_STAT_SQUARES], hi = w[ABI_STAT_SQUARES + 1], up;
	s64 sum = (s64)w[ABI_STAT_SUM];

	if (n < 2)
		return 0;
	square(sum < 0 ? -(u64)sum : (u64)sum, &c.lo, &c.hi);
	c.by = n;
	divide(&c);
	up = c.by != 0;
	c.lo += up;
	c.hi += up && !c.lo;
	hi -= c.hi + (lo < c.lo);
	lo -= c.lo;
	c.lo = lo;
	c.hi = hi;
	c.by = n - 1;
	divide(&c);
	return (s64)c.lo;
}

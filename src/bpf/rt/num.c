/*
 * Numbers: as text, and into aggregations.
 */
#include "rt.h"

/* --- text -------------------------------------------------------------------------------------------- */

struct digits {
	char *dst;
	u64 v, base;
	u64 n, max;		/* number of characters, and its limit */
};

static long count_digit(u32 k, struct digits *c)
{
	c->n++;
	c->v /= c->base;
	return c->v == 0;
}

static long write_digit(u32 k, struct digits *c)
{
	u64 digit = c->v % c->base, at = c->n - 1 - k;

	if (k >= c->n || at >= c->max)
		return 1;
	c->dst[at] = (char)(digit < 10 ? '0' + digit : 'a' + digit - 10);
	c->v /= c->base;
	return 0;
}

/* Write the digits of @v after the sign, if there is one; returns the bytes.  @dst has room for @max characters and
 * the NUL. */
static inline __attribute__((always_inline)) u64 write_number(char *dst, u64 v, u64 base, u64 sign, u64 max)
{
	struct digits c = { dst, v, base, sign, max };
	u64 n;

	rt_loop(64, count_digit, &c, 0);
	n = c.n;
	if (n > max)
		return 0;
	c.v = v;
	rt_loop((u32)(n - sign), write_digit, &c, 0);
	if (sign)
		dst[0] = '-';
	dst[n] = '\0';
	return n + 1;
}

RT u64 rt_lltostr(char *dst, s64 v, s64 base)
{
	u64 sign = base == 10 && v < 0;

	/* An invalid base gives the empty string. */
	if (base < 2 || base > 36) {
		*dst = '\0';
		return 1;
	}
	return write_number(dst, sign ? -(u64)v : (u64)v, (u64)base, sign, 66);
}

RT u64 rt_decimal(char *dst, u64 v)
{
	return write_number(dst, v, 10, 0, 22);
}

/* --- aggregations ------------------------------------------------------------------------------------- */

/*
 * Word 0 is the smallest (largest) value, word 1 whether there is one; both begin as 0.  Another program may run
 * between any two instructions, hence the compare-and-swap.  While word 1 is 0, 0 in word 0 means that there is no
 * value: a program that replaces it and then finds that word 1 was set meanwhile has overwritten a real 0, and adds
 * that again.  A value of 0 only sets word 1 and is then compared like any other.
 */
enum { TRIES = 8 };

#define EXTREME(NAME, TYPE, BETTER)                                                                            \
	RT long NAME(u64 *w, u64 v)                                                                            \
	{                                                                                                      \
		_Pragma("unroll") for (int k = 0; k < TRIES; k++)                                              \
		{                                                                                              \
			u64 old = *(volatile u64 *)w;                                                          \
                                                                                                               \
			if (!old && !*(volatile u64 *)(w + 1)) {                                               \
				if (!v) {                                                                      \
					*(volatile u64 *)(w + 1) = 1;                                          \
					continue;                                                              \
				}                                                                              \
				if (__sync_val_compare_and_swap(w, 0, v) != 0)                                 \
					continue;                                                              \
				if (!__sync_lock_test_and_set(w + 1, 1))                                       \
					return 0;                                                              \
				v = 0;                                                                         \
				continue;                                                                      \
			}                                                                                      \
			if (!((TYPE)v BETTER (TYPE)old))                                                       \
				return 0;                                                                      \
			if (__sync_val_compare_and_swap(w, old, v) == old)                                     \
				return 0;                                                                      \
		}                                                                                              \
		return 0;                                                                                      \
	}

EXTREME(rt_min, s64, <)
EXTREME(rt_max, s64, >)
EXTREME(rt_umin, u64, <)
EXTREME(rt_umax, u64, >)

/* Count, total, and the sum of squares in 128 bits, whose high word gets the low word's carry. */
RT long rt_squares(u64 *w, s64 v)
{
	u64 x = v < 0 ? -(u64)v : (u64)v;
	u64 low = x & 0xffffffff, high = x >> 32, middle = low * high;
	u64 lo = x * x, hi = high * high + (middle >> 31);
	u64 carry = (middle << 33) + low * low < low * low, old;

	__sync_fetch_and_add(w, 1);
	__sync_fetch_and_add(w + 1, (u64)v);
	old = __sync_fetch_and_add(w + 2, lo);
	__sync_fetch_and_add(w + 3, hi + carry + (old + lo < lo));
	return 0;
}

/* --- the user's memory ------------------------------------------------------------------------------- */

/* Touch the pages of the @size bytes at @addr, so that a read that must not fault finds them.  Stops at a page that
 * does not exist. */
struct pages {
	u64 addr;
};

static long touch_page(u32 k, struct pages *c)
{
	u8 byte;

	return rt_copy_from_user(&byte, 1, k ? (c->addr & ~4095ull) + k * 4096ull : c->addr) != 0;
}

RT long rt_touch(u64 addr, u64 size)
{
	struct pages c = { addr };

	rt_loop((u32)(((addr & 4095) + size + 4095) >> 12) & 63, touch_page, &c, 0);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * The shortest decimal: Steele and White's generation with exact integers, in the form of Burger and Dybvig ("Printing
 * Floating-Point Numbers Quickly and Accurately", 1996, fig. 3).  A float is r / s; low / s and high / s are half the
 * distances to its neighbours below and above.
 */
#include "agent/digits.h"

#include <string.h>

/* --- large numbers ------------------------------------------------------------------------------------ */

enum { WORDS = 40 };		/* of 32 bits: 2**1024 times a few powers of two and ten */

struct large {
	uint32_t n;		/* words in use; the highest is not 0 */
	uint32_t w[WORDS];
};

static void set_shifted(struct large *a, uint64_t v, uint32_t shift)
{
	uint32_t word = shift / 32, bits = shift % 32;
	unsigned __int128 wide = (unsigned __int128)v << bits;

	memset(a, 0, sizeof(*a));
	for (uint32_t k = word; wide && k < WORDS; k++, wide >>= 32) {
		a->w[k] = (uint32_t)wide;
		a->n = k + 1;
	}
}

static void multiply(struct large *a, uint32_t by)
{
	uint64_t carry = 0;

	for (uint32_t k = 0; k < a->n; k++) {
		carry += (uint64_t)a->w[k] * by;
		a->w[k] = (uint32_t)carry;
		carry >>= 32;
	}
	if (carry && a->n < WORDS)
		a->w[a->n++] = (uint32_t)carry;
}

static int compare(const struct large *a, const struct large *b)
{
	if (a->n != b->n)
		return a->n < b->n ? -1 : 1;
	for (uint32_t k = a->n; k--;)
		if (a->w[k] != b->w[k])
			return a->w[k] < b->w[k] ? -1 : 1;
	return 0;
}

static void subtract(struct large *a, const struct large *b)	/* @b is not larger */
{
	int64_t carry = 0;

	for (uint32_t k = 0; k < a->n; k++) {
		carry += (int64_t)a->w[k] - (k < b->n ? b->w[k] : 0);
		a->w[k] = (uint32_t)carry;
		carry >>= 32;
	}
	while (a->n && !a->w[a->n - 1])
		a->n--;
}

static void add(struct large *a, const struct large *b)
{
	uint64_t carry = 0;

	for (uint32_t k = 0; k < WORDS && (k < a->n || k < b->n || carry); k++) {
		carry += (uint64_t)(k < a->n ? a->w[k] : 0) + (k < b->n ? b->w[k] : 0);
		a->w[k] = (uint32_t)carry;
		a->n = k + 1 > a->n ? k + 1 : a->n;
		carry >>= 32;
	}
}

/* Compare @a + @b with @c. */
static int compare_sum(const struct large *a, const struct large *b, const struct large *c)
{
	static struct large sum;

	sum = *a;
	add(&sum, b);
	return compare(&sum, c);
}

/* --- floats ------------------------------------------------------------------------------------------- */

enum { FRACTION = 52, BIAS = 1075, MOST_DIGITS = 17 };

static struct large r, s, low, high;

/* The float is @f * 2 ** @e; @edge: the gap below it is half the gap above. */
static void set_up(uint64_t f, int e, bool edge)
{
	uint32_t up = e > 0 ? (uint32_t)e : 0, down = e < 0 ? (uint32_t)-e : 0;

	set_shifted(&r, f, up + 1 + edge);
	set_shifted(&s, 1, down + 1 + edge);
	set_shifted(&low, 1, up);
	set_shifted(&high, 1, up + edge);
}

/* Scale so that the first digit is the one before the point; returns the number of digits before it. */
static int scale(uint64_t f, int e, bool even)
{
	int bits = 64 - __builtin_clzll(f) + e - 1;
	int k = (bits * 1233 >> 12) - 1;	/* a little below the logarithm to base 10 */

	for (int i = 0; i < k; i++)
		multiply(&s, 10);
	for (int i = k; i < 0; i++) {
		multiply(&r, 10);
		multiply(&low, 10);
		multiply(&high, 10);
	}
	while (compare_sum(&r, &high, &s) >= (even ? 0 : 1)) {
		multiply(&s, 10);
		k++;
	}
	return k;
}

static uint32_t next_digit(void)
{
	uint32_t d = 0;

	multiply(&r, 10);
	multiply(&low, 10);
	multiply(&high, 10);
	for (; compare(&r, &s) >= 0; d++)
		subtract(&r, &s);
	return d;
}

static uint32_t generate(char digits[MOST_DIGITS + 1], bool even)
{
	for (uint32_t n = 0; n < MOST_DIGITS;) {
		uint32_t d = next_digit();
		bool below = compare(&r, &low) < (even ? 1 : 0), above = compare_sum(&r, &high, &s) > (even ? -1 : 0);

		if (below && above) {
			int half = compare_sum(&r, &r, &s);

			d += half > 0 || (half == 0 && d & 1);
		} else if (above) {
			d++;
		}
		digits[n++] = (char)('0' + d);
		if (below || above)
			return n;
	}
	return MOST_DIGITS;
}

static uint32_t put_exponent(char *to, int exponent)
{
	uint32_t n = 0, v = (uint32_t)(exponent < 0 ? -exponent : exponent);

	to[n++] = 'e';
	to[n++] = exponent < 0 ? '-' : '+';
	if (v >= 100)
		to[n++] = (char)('0' + v / 100);
	to[n++] = (char)('0' + v / 10 % 10);
	to[n++] = (char)('0' + v % 10);
	return n;
}

/* Write @n digits, @point of them before the decimal point, in the form of repr(). */
static uint32_t put_digits(char *to, const char *digits, uint32_t n, int point)
{
	char *p = to;

	if (point > 16 || point < -3) {
		*p++ = digits[0];
		if (n > 1) {
			*p++ = '.';
			memcpy(p, digits + 1, n - 1);
			p += n - 1;
		}
		return (uint32_t)(p - to) + put_exponent(p, point - 1);
	}
	if (point <= 0) {
		*p++ = '0';
		*p++ = '.';
		for (; point < 0; point++)
			*p++ = '0';
		memcpy(p, digits, n);
		return (uint32_t)(p - to) + n;
	}
	for (uint32_t k = 0; k < (uint32_t)point || k < n; k++) {
		if (k == (uint32_t)point)
			*p++ = '.';
		*p++ = k < n ? digits[k] : '0';
	}
	if (n <= (uint32_t)point) {
		*p++ = '.';
		*p++ = '0';
	}
	return (uint32_t)(p - to);
}

uint32_t digits_float(char to[DIGITS_FLOAT], double value)
{
	char digits[MOST_DIGITS + 1];
	uint64_t bits, f;
	uint32_t n = 0, exponent, count;
	bool even;
	int point;

	memcpy(&bits, &value, sizeof(bits));
	f = bits & (((uint64_t)1 << FRACTION) - 1);
	exponent = bits >> FRACTION & 0x7ff;
	if (exponent == 0x7ff && f) {
		memcpy(to, "nan", 4);
		return 3;
	}
	if (bits >> 63)
		to[n++] = '-';
	if (exponent == 0x7ff || !(bits << 1)) {
		memcpy(to + n, exponent ? "inf" : "0.0", 4);
		return n + 3;
	}
	even = !(f & 1);
	if (exponent)
		f |= (uint64_t)1 << FRACTION;
	set_up(f, (int)(exponent ? exponent : 1) - BIAS, exponent > 1 && f == (uint64_t)1 << FRACTION);
	point = scale(f, (int)(exponent ? exponent : 1) - BIAS, even);
	count = generate(digits, even);
	n += put_digits(to + n, digits, count, point);
	to[n] = '\0';
	return n;
}

/* --- ints --------------------------------------------------------------------------------------------- */

uint32_t digits_int(uint32_t *v, uint32_t n, bool below, const char **text)
{
	enum { BITS = 30, PART = 1000000000, PART_DIGITS = 9 };
	static char room[DIGITS_INT_TEXT];
	char *p = room + sizeof(room) - 1;

	*p = '\0';
	do {
		uint64_t rest = 0;

		for (uint32_t k = n; k--;) {
			rest = rest << BITS | v[k];
			v[k] = (uint32_t)(rest / PART);
			rest %= PART;
		}
		while (n && !v[n - 1])
			n--;
		for (int k = 0; k < PART_DIGITS && (n || rest || k == 0); k++, rest /= 10)
			*--p = (char)('0' + rest % 10);
	} while (n);
	if (below)
		*--p = '-';
	*text = p;
	return (uint32_t)(room + sizeof(room) - 1 - p);
}

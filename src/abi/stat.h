/*
 * An element of a SystemTap array as programs and the tracer see it: a map's value.
 *
 * Word 0 is the element's number, from 1 in the order they came, and 0 for one that is just being made.  A plain
 * value follows: 8 bytes, or a string.  Of a statistic these words follow, all of them changed atomically:
 */
#ifndef DTAP_ABI_STAT_H
#define DTAP_ABI_STAT_H

enum abi_stat {
	ABI_STAT_COUNT,
	ABI_STAT_SUM,
	ABI_STAT_MIN,			/* and whether there is one */
	ABI_STAT_MAX = ABI_STAT_MIN + 2,	/* the same */
	ABI_STAT_SQUARES = ABI_STAT_MAX + 2,	/* sum of squares in 128 bits: low word, high word */
	ABI_STAT_BUCKETS = ABI_STAT_SQUARES + 2,	/* how many values in each */
};

/*
 * Logarithmic: bucket 64 is zero, 64 + n has [2^(n-1), 2^n), 64 - n the negatives of it; bucket 0 is INT64_MIN.
 * Linear: below low, the buckets of the width from low to that of high, above.
 */
enum { ABI_STAT_LOG_BUCKETS = 128, ABI_STAT_LOG_ZERO = 64 };

enum { ABI_ELEMENT_VALUE = 8 };		/* the byte at which the value begins */

#endif

/*
 * An element of a SystemTap array: the layout of a map's value, for programs and the tracer.
 *
 * Word 0 is the element's number, counted from 1 in order of creation, or 0 while it is being created.  A plain value
 * follows: 8 bytes, or a string.  A statistic has these words instead, changed atomically:
 */
#ifndef DTAP_ABI_STAT_H
#define DTAP_ABI_STAT_H

enum abi_stat {
	ABI_STAT_COUNT,
	ABI_STAT_SUM,
	ABI_STAT_MIN,			/* and a word: is it valid? */
	ABI_STAT_MAX = ABI_STAT_MIN + 2,	/* the same */
	ABI_STAT_SQUARES = ABI_STAT_MAX + 2,	/* the average so far, the sum of squared differences; not atomic */
	ABI_STAT_SHIFT = ABI_STAT_SQUARES + 2,	/* number of bits that these two are shifted by */
	ABI_STAT_BUCKETS = ABI_STAT_SHIFT + 1,	/* the number of values in each */
};

/*
 * Logarithmic: bucket 64 is for zero, 64 + n for [2^(n-1), 2^n), 64 - n for the negatives of that, 0 for INT64_MIN.
 * Linear: one for values below low, those of the given width from low to high, one for values above.
 */
enum { ABI_STAT_LOG_BUCKETS = 128, ABI_STAT_LOG_ZERO = 64 };

enum { ABI_ELEMENT_VALUE = 8 };		/* the offset of the value */

#endif

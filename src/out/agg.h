/*
 * Aggregations as text, D's way: what printa() prints, what is printed when a session ends, and the order
 * of the keys in both.  DTrace guide, "Aggregations", and libdtrace.
 */
#ifndef DTAP_OUT_AGG_H
#define DTAP_OUT_AGG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ir/ir.h"
#include "ir/layout.h"
#include "lang/format.h"

struct out_sink;

/* One key with its value. */
struct out_agg_row {
	const struct ir_value *keys;	/* as many as the aggregation has */
	const uint64_t *words;		/* as ir/aggs.def says */
};

/* A snapshot of one aggregation. */
struct out_agg {
	const struct ir_agg *agg;
	const struct out_agg_row *rows;	/* in no order, keys differ */
	size_t n;
	uint64_t normal;		/* values are shown divided by it; 0 and 1: as they are */
	bool zoom;			/* a distribution's bars are measured by the longest (aggzoom), not by the sum */
};

/*
 * Which line comes first.  All zero: the smaller value (of the first aggregation whose values differ), then
 * the smaller key.  The guide's options of the same names.
 */
struct out_agg_order {
	bool by_key;			/* aggsortkey: keys first */
	bool reverse;			/* aggsortrev: the larger first */
	unsigned int key_pos;		/* aggsortkeypos: the key to begin with, from 0 */
	unsigned int pos;		/* aggsortpos: the aggregation to begin with, from 0 */
};

/*
 * printa(): the @n aggregations, whose keys have the same types, a line for each key that one of them has,
 * by @f, or in columns when it is NULL (an empty line comes first then).  An aggregation without the key
 * shows zero.  The first %@ prints the first aggregation's value, the last one's is repeated.
 *
 * 0; -ENOMEM: nothing was printed; -EINVAL when a key is not of the kind its conversion takes.
 */
int out_printa(struct out_sink *s, const struct fmt *f, const struct out_agg *aggs, size_t n,
	       const struct out_agg_order *order);

/* As out_printa in columns, without the empty line: an aggregation when the session ends. */
int out_agg(struct out_sink *s, const struct out_agg *a, const struct out_agg_order *order);

/* Give each line of the aggregation to @each, in order, until that does not return 0.  What it returned, or -ENOMEM. */
struct out_agg_line {
	const struct out_agg *agg;
	const struct ir_value *keys;
	const struct ir_slot *slots;
	const uint64_t *words;
};
int out_agg_each(const struct out_agg *a, const struct out_agg_order *order,
		 int (*each)(void *ctx, const struct out_agg_line *line), void *ctx);

/*
 * trunc(): which rows go when the @keep largest stay, or for a negative @keep the smallest.  Their numbers in
 * @index, which has room for all; how many, or -ENOMEM.
 */
long out_agg_trunc(const struct out_agg *a, int64_t keep, size_t *index);

/* @v divided as normalize() says. */
int64_t out_normalize(int64_t v, uint64_t normal);

/*
 * The value of an aggregation that is one number: unsigned when *sign comes back false.  @words NULL: zero.
 * Not for distributions.
 */
int64_t out_agg_value(const struct ir_agg *g, const uint64_t *words, uint64_t normal, bool *sign);

#endif

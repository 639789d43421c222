/*
 * Aggregations as D prints them: by printa() and when a session ends, and the order of the keys in both.  DTrace
 * guide, "Aggregations", and libdtrace.
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
	const uint64_t *words;		/* see ir/aggs.def */
};

/* A snapshot of one aggregation. */
struct out_agg {
	const struct ir_agg *agg;
	const struct out_agg_row *rows;	/* in no order, keys differ */
	size_t n;
	uint64_t normal;		/* values are shown divided by it, an int64_t; 0 and 1: not divided */
	bool zoom;			/* a distribution's bars are scaled to the longest (aggzoom), not the sum */
};

/*
 * Which line comes first.  All zero: the smaller value (of the first aggregation whose values differ), then
 * the smaller key.  For the options see the guide.
 */
struct out_agg_order {
	bool by_key;			/* aggsortkey: keys first */
	bool reverse;			/* aggsortrev: the larger first */
	unsigned int key_pos;		/* aggsortkeypos: the key to sort by first, from 0 */
	unsigned int pos;		/* aggsortpos: the aggregation to sort by first, from 0 */
	bool first;			/* aggfirst: no line for a key that the first aggregation does not have */
};

/*
 * printa(): print the @n aggregations, whose keys have the same types, with a line for each key that one of them has,
 * in the format @f, or if that is NULL in columns after an empty line.  An aggregation without the key
 * shows zero.  The first %@ prints the first aggregation's value and so on; further ones repeat the last.
 *
 * 0; -ENOMEM: nothing was printed; -EINVAL when a key is not of the kind its conversion takes.
 */
int out_printa(struct out_sink *s, const struct fmt *f, const struct out_agg *aggs, size_t n,
	       const struct out_agg_order *order);

/* As out_printa in columns, without the empty line: for an aggregation at the session's end. */
int out_agg(struct out_sink *s, const struct out_agg *a, const struct out_agg_order *order);

/* Call @each for each line of the aggregation, in order, while it returns 0.  Returns its last result, or -ENOMEM. */
struct out_agg_line {
	const struct out_agg *agg;
	const struct ir_value *keys;
	const struct ir_slot *slots;
	const uint64_t *words;
};
int out_agg_each(const struct out_agg *a, const struct out_agg_order *order,
		 int (*each)(void *ctx, const struct out_agg_line *line), void *ctx);

/*
 * trunc(): which rows to remove so that the @keep largest stay, or for a negative @keep the smallest.  Stores their
 * indices in @index, which has room for all; returns how many, or -ENOMEM.
 */
long out_agg_trunc(const struct out_agg *a, int64_t keep, size_t *index);

/* @v divided as by normalize(): @normal is an int64_t (0: not divided), and what is left over falls to the side of 0. */
int64_t out_normalize(int64_t v, uint64_t normal);

/*
 * The value of an aggregation that is one number, unsigned if *sign is set to false.  @words NULL: zero.
 * Not for distributions.
 */
int64_t out_agg_value(const struct ir_agg *g, const uint64_t *words, uint64_t normal, bool *sign);

#endif

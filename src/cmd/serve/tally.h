/*
 * What rows of aggregations have grown by between two readings.
 *
 * A row counts from the script's start on, and stays when its process is gone.  Whoever wants to know what is new, since it
 * goes to labels that are known now or to a profile of a period, remembers what each row had at the reading before.
 */
#ifndef DTAP_CMD_SERVE_TALLY_H
#define DTAP_CMD_SERVE_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytemap.h"

struct dtap_row;
struct dtap_value;
struct strbuf;

struct tallies {
	struct bytemap by_key;		/* struct tally, by the aggregation's name and the keys' texts */
	uint64_t reading;
	struct tally_key { char *s; size_t len; } *over;	/* forgotten with the next reading */
	size_t nover, over_cap;
};

/* A new reading begins. */
void tallies_begin(struct tallies *t);

/*
 * Make *growth the row with what it has grown by in value, count, sum and buckets, and remember what it has now.  The buckets
 * are on the heap, and the caller's.  1: it has grown; 0: it has not; -ENOMEM: nothing is remembered.
 *
 * Several rows of a reading can have the same texts, such as stacks of two programs.  Their growths are right together: one
 * alone may be below 0.
 */
int tallies_grow(struct tallies *t, const struct dtap_row *row, struct dtap_row *growth);

/*
 * The row has not grown in this reading, and its process has ended.  True if that was so in the reading before, too: nothing can
 * come any more.
 */
bool tallies_is_over(struct tallies *t, const struct dtap_row *row);

/* The row is forgotten after this reading; one of its keys is a new one then. */
void tallies_forget(struct tallies *t, const struct dtap_row *row);

void tallies_fini(struct tallies *t);	/* accepts a zeroed one */

/* Append a key as text; a stack's frames with ';' between them. */
void tally_text(const struct dtap_value *v, struct strbuf *out);

#endif

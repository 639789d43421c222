/*
 * Aggregations in the tracer: snapshots of what the programs count, with the effects of the script's clear, trunc
 * and normalize.
 *
 * The programs only add, each CPU to its own copy.  So clear and trunc do not change the maps, but record the
 * current values as the base to which later values are relative: no event between two reports is lost or
 * counted twice.  There are two exceptions.  A smallest or largest value has no difference, so its key is
 * removed from the map (with a concurrent event, if there is one).  And a key that was truncated, and not
 * changed until after the next truncation, is removed if its map is more than half full.
 */
#ifndef DTAP_SESSION_AGGS_H
#define DTAP_SESSION_AGGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ir/ir.h"
#include "out/agg.h"

struct aggs;
struct names;
struct ebpf_unit;
struct place;

/* For all aggregations of @unit's program, read from @place.  Both must outlive it.  NULL: out of memory. */
struct aggs *aggs_new(const struct ebpf_unit *unit, struct place *place);
void aggs_free(struct aggs *a);

/*
 * For keys that are numbers with a name in @names: keys of the same name are shown as one.  @pull adds the names that
 * programs have sent since.
 */
void aggs_set_names(struct aggs *a, struct names *names, int (*pull)(void *ctx), void *ctx);

/*
 * Read @g, or return the reading since aggs_stale(): printa() and clear() of records that arrive together work on
 * the same reading, so that nothing that is counted between them is lost.  *rows: the rows, unordered, valid until
 * the next call for @g.  Returns their number, or a negative errno.
 */
long aggs_read(struct aggs *a, const struct ir_agg *g, const struct out_agg_row **rows);

/* Discard the readings: the next aggs_read() of each aggregation reads it again. */
void aggs_stale(struct aggs *a);

/* Set the values of the last aggs_read to zero and keep the keys. */
int aggs_clear(struct aggs *a, const struct ir_agg *g);

/* Remove the keys of @n rows of the last aggs_read, named by their index in its array. */
int aggs_trunc(struct aggs *a, const struct ir_agg *g, const size_t *index, size_t n);

/*
 * Forget @n rows of the last aggs_read(), named by the addresses of their keys in it: what comes to their keys later makes new
 * ones.  What comes to them at this moment may be lost.  Without memory rows stay.
 */
void aggs_forget(struct aggs *a, const struct ir_agg *g, const struct ir_value *const *keys, size_t n);

/* Divide shown values by @n; 1: no longer. */
void aggs_normalize(struct aggs *a, const struct ir_agg *g, uint64_t n);
uint64_t aggs_normal(const struct aggs *a, const struct ir_agg *g);

/* Did the script print it?  Aggregations that it did not print are printed at the end. */
void aggs_set_printed(struct aggs *a, const struct ir_agg *g);
bool aggs_printed(const struct aggs *a, const struct ir_agg *g);

#endif

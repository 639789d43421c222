/*
 * Aggregations as the tracer sees them: snapshots of what the programs count, with what the script has
 * since done to them (clear, trunc, normalize).
 *
 * The programs only ever add, each CPU to its own copy.  clear and trunc therefore leave the programs alone
 * and remember the values of that moment as the base that later values are shown relative to: no event
 * between two reports is lost or shown twice.  Two cases need more: a smallest or largest value has no
 * difference, so its key is removed from the map (an event of that very moment may go with it); and a key
 * that was truncated and not seen until after the next truncation is removed to free its memory.
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

/* For all aggregations of @unit's program, read from @place.  Both must outlive it.  NULL: no memory. */
struct aggs *aggs_new(const struct ebpf_unit *unit, struct place *place);
void aggs_free(struct aggs *a);

/*
 * Keys may be numbers that @names knows: those that are shown alike are then one key.  @pull makes it know what
 * programs have told of meanwhile.
 */
void aggs_set_names(struct aggs *a, struct names *names, int (*pull)(void *ctx), void *ctx);

/*
 * @g as it is, or as it was when first read since aggs_stale(): what records that arrive together do to an
 * aggregation, printa() and then clear(), they do to one reading, and nothing counted in between is lost.
 * Its rows, in no order, are in *rows until the next call for @g; the count, or a negative errno.
 */
long aggs_read(struct aggs *a, const struct ir_agg *g, const struct out_agg_row **rows);

/* What was read is old: the next aggs_read of each aggregation reads it again. */
void aggs_stale(struct aggs *a);

/* Set the values of the last aggs_read to zero and keep the keys. */
int aggs_clear(struct aggs *a, const struct ir_agg *g);

/* Remove the keys of @n rows of the last aggs_read, named by their index in its array. */
int aggs_trunc(struct aggs *a, const struct ir_agg *g, const size_t *index, size_t n);

/* Divide values shown by @n; 1 ends it. */
void aggs_normalize(struct aggs *a, const struct ir_agg *g, uint64_t n);
uint64_t aggs_normal(const struct aggs *a, const struct ir_agg *g);

/* Was it printed by the script?  What was not is printed when the session ends. */
void aggs_set_printed(struct aggs *a, const struct ir_agg *g);
bool aggs_printed(const struct aggs *a, const struct ir_agg *g);

#endif

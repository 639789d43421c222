/*
 * Speculations: records that wait for commit() or discard().  DTrace guide, "Speculative Tracing".
 */
#ifndef DTAP_SESSION_SPEC_H
#define DTAP_SESSION_SPEC_H

#include <stddef.h>
#include <stdint.h>

struct record;
struct specs;

/* @specsize: the most bytes of a speculation.  NULL: out of memory.  specs_free accepts NULL. */
struct specs *specs_new(size_t specsize);
void specs_free(struct specs *s);

/* Keep the record for speculation @id.  0 or -ENOMEM; records that do not fit are counted. */
int specs_keep(struct specs *s, int64_t id, const struct record *rec);

/*
 * Pass the records kept for @id to @fn (NULL: none) in their order, and remove them.  0, or what @fn returned if that
 * is not 0.
 */
int specs_end(struct specs *s, int64_t id, int (*fn)(void *ctx, const struct record *rec), void *ctx);

/* The number of records that did not fit since the last call. */
uint64_t specs_drops(struct specs *s);

#endif

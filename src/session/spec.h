/*
 * Speculations: records that wait for commit() or discard().  DTrace guide, "Speculative Tracing".
 */
#ifndef DTAP_SESSION_SPEC_H
#define DTAP_SESSION_SPEC_H

#include <stddef.h>
#include <stdint.h>

struct specs;

/* @specsize: bytes that each speculation may keep.  NULL: no memory.  specs_free accepts NULL. */
struct specs *specs_new(size_t specsize);
void specs_free(struct specs *s);

/* Keep the record for speculation @id.  0 or -ENOMEM; one that does not fit is counted. */
int specs_keep(struct specs *s, int64_t id, const void *rec, size_t size);

/*
 * Hand what was kept for @id to @fn (NULL: to nobody) in its order, and forget it.  0, or what @fn returned when that
 * was not 0.
 */
int specs_end(struct specs *s, int64_t id, int (*fn)(void *ctx, const void *rec, size_t size), void *ctx);

/* How many records did not fit since the last time. */
uint64_t specs_drops(struct specs *s);

#endif

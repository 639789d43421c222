/*
 * Time order: records come out of the buffer in the order in which programs finished, on all CPUs; they are
 * passed on in the order of the events.
 *
 * A record is held until no earlier one can still arrive: a program takes its time stamp first and writes its
 * record last, some microseconds later, or after a page fault or a preemption some milliseconds.  Records
 * older than STREAM_SLACK_NS are passed on, the others with the next batch, or at the end.  Records of the same
 * nanosecond keep the order in which they were written.
 */
#ifndef DTAP_SESSION_STREAM_H
#define DTAP_SESSION_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vm/record.h"

enum { STREAM_SLACK_NS = 10 * 1000 * 1000 };

struct stream_item {
	uint64_t time_ns, order;
	size_t off;		/* of the record in the bytes */
	size_t size;
	bool is_foreign;
};

/* Zero-initialise it. */
struct stream {
	char *bytes;
	size_t len, cap;
	struct stream_item *items;
	size_t n, items_cap;
	uint64_t order;
};

/* Add a copy of a record.  0, -EINVAL for an invalid record, or -ENOMEM. */
int stream_add(struct stream *s, const struct record *rec);

/*
 * Called with @rec, and the record after it or NULL.  Records of one firing have the same time, so they stay
 * together.
 */
typedef int stream_fn(void *ctx, const struct record *rec, const struct record *next);

/*
 * Pass all records up to @until_ns (UINT64_MAX: all) to @each in time order, and remove them.  A value of @each
 * that is not 0 stops it and is returned; later records are kept.
 */
int stream_take(struct stream *s, uint64_t until_ns, stream_fn *each, void *ctx);

/*
 * For each CPU keep the last records that have together at most @bytes, including headers.  0, or -ENOMEM: all are
 * kept.
 */
int stream_keep_last(struct stream *s, size_t bytes);

void stream_fini(struct stream *s);

#endif

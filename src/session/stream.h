/*
 * Time order: records come out of the buffer in the order in which programs finished, on all CPUs; they are
 * handed on in the order of the events.
 *
 * A record is held until no earlier one can be under way: a program takes its time stamp first and writes
 * its record last, some microseconds later, or after a page fault or a preemption some milliseconds.  What
 * is older than STREAM_SLACK_NS is handed on, the rest with the next batch, or at the end.  Records of the
 * same nanosecond keep the order in which they were written.
 */
#ifndef DTAP_SESSION_STREAM_H
#define DTAP_SESSION_STREAM_H

#include <stddef.h>
#include <stdint.h>

enum { STREAM_SLACK_NS = 10 * 1000 * 1000 };

struct stream_item {
	uint64_t time_ns, order;
	size_t off;		/* of the record in the bytes */
	size_t size;
};

/* Zero-initialise it. */
struct stream {
	char *bytes;
	size_t len, cap;
	struct stream_item *items;
	size_t n, items_cap;
	uint64_t order;
};

/* Add a copy of a record (struct abi_record first).  0, -EINVAL for bytes that are none, or -ENOMEM. */
int stream_add(struct stream *s, const void *rec, size_t size);

/*
 * What gets the records: @rec of @size bytes, and the one behind it or NULL.  Records of one firing have the
 * same time and so are never parted.
 */
typedef int stream_fn(void *ctx, const void *rec, size_t size, const void *next);

/*
 * Hand all records up to @until_ns (UINT64_MAX: all) to @each in time order.  @each may stop it with a
 * value that is not 0, which is returned; the record it was given is gone, later ones stay.
 */
int stream_take(struct stream *s, uint64_t until_ns, stream_fn *each, void *ctx);

/*
 * Keep of each CPU's records the last that have together at most @bytes, headers included.  0, or -ENOMEM: all are
 * kept.
 */
int stream_keep_last(struct stream *s, size_t bytes);

void stream_fini(struct stream *s);

#endif

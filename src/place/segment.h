/*
 * One shared memory of a session in the target place (abi/segment.h), for the processes of one trust domain
 * (target/peer.h) only.  The first one is also used by the tracer: the programs that it fires itself run there.
 */
#ifndef DTAP_PLACE_SEGMENT_H
#define DTAP_PLACE_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "place/checked.h"
#include "place/clock.h"
#include "place/layout.h"
#include "place/named.h"
#include "place/place.h"
#include "target/peer.h"
#include "vm/reader.h"

struct segment_cost {
	uint32_t owner;
	uint64_t events, spent_ps;
};

struct segment {
	int image_fd, data_fd;
	int wake_fd, woken_fd;		/* a socket pair: the targets' end for writing, the tracer's for reading */
	uint8_t *data;
	uint64_t data_size;
	void *image;			/* NULL before segment_finish() */
	uint64_t image_size;
	struct shm shm;
	struct clock clock;
	struct checked *checked;	/* owned by the place */
	struct named *named;		/* likewise */
	struct named_here named_here;
	struct reader *reader;		/* NULL before segment_finish() */
	uint64_t made_ns;		/* time of creation */
	bool has_domain;
	struct domain domain;
	bool is_foreign;		/* @domain is not the tracer's own */
	struct { uint64_t failed, unserved, drops[ABI_DROP_MAX]; } seen;
	struct segment_cost *costs;	/* by lane, as they were last read; NULL: never */
	uint64_t costs_ns;		/* and when */
	struct place_told told;		/* checked values: sums; errors, interpreted and over: present values */
};

/* The tracer's own copy of values that it publishes in shared memory, where others can overwrite them. */
struct segment_own {
	enum abi_state state;
	uint64_t walltime_off_ns;
};

/* Create the data memory.  0 or a negative errno; call segment_fini() in both cases. */
int segment_init(struct segment *s, const struct layout *l, struct checked *checked, struct named *named);
void segment_fini(struct segment *s);

/* Create the image of @size bytes, which @fill writes, and then the reader.  0 or a negative errno with *why. */
int segment_finish(struct segment *s, uint64_t size, void (*fill)(void *ctx, uint8_t *image), void *ctx, const char **why);

/* Write @own to the shared memory. */
void segment_publish(struct segment *s, const struct segment_own *own);

/* Bring s->told up to date; @events_end as in struct place. */
void segment_hear(struct segment *s, const struct segment_own *own, bool events_end);

/* Clear @map, a lane's table, in the lanes of process @pid. */
void segment_clear(struct segment *s, uint32_t map, uint32_t pid);

/* As place_ops.drain, costs and map_each, for this segment.  Sets record.is_foreign. */
int segment_drain(struct segment *s, int (*record)(void *ctx, const struct record *rec), void *ctx);
void segment_costs(struct segment *s, void (*each)(void *ctx, const struct place_cost *cost), void *ctx);
int segment_each(struct segment *s, uint32_t map,
		 void (*each)(void *ctx, const void *key, const void *value, unsigned int ncpus), void *ctx);

#endif

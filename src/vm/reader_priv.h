/*
 * Shared by the reader's files: reader.c, and drain.c for the rings.
 */
#ifndef DTAP_VM_READER_PRIV_H
#define DTAP_VM_READER_PRIV_H

#include "vm/reader.h"

/*
 * The state of reading a lane's ring: bytes read; the published tail; bytes read when memory was last released; the
 * position up to which memory was allocated ahead of the writer; the seconds when memory was last released and when
 * records were last read.
 */
struct reader_ring {
	uint64_t off, told, given_back, made;
	uint64_t released;		/* how often memory was given back */
	int64_t when, last;
};

struct reader {
	const struct shm *shm;
	const struct shm_map *out;	/* NULL: no records */
	int punch_fd;
	uint32_t lanes;			/* 1 + the number of the last lane seen in use */
	uint32_t looks;			/* counts calls, to look at all lanes now and then */
	bool corrupt;			/* the published number of lanes decreased once */
	uint32_t next;			/* the lane to read first */
	struct reader_ring *rings;	/* by lane */
	uint8_t *record;		/* buffer for one record, aligned to 8 */
	size_t record_max;
	uint64_t bad;
};

/* Copy memory once that others may be writing.  Words aligned to 8 are read whole. */
static inline void reader_copy(void *to, const uint8_t *from, size_t n)
{
	size_t nwords = (uintptr_t)from % 8 ? 0 : n / 8, k;
	uint64_t *words = to;

	for (k = 0; k < nwords; k++)
		words[k] = __atomic_load_n((const uint64_t *)(const void *)from + k, __ATOMIC_RELAXED);
	for (k *= 8; k < n; k++)
		((uint8_t *)to)[k] = __atomic_load_n(from + k, __ATOMIC_RELAXED);
}

/*
 * Pass a copy of each record of lane @number to @record.  Stops when that returns a negative errno, and returns it;
 * else returns the number of records.  An invalid ring is emptied and counted.
 */
int drain_lane(struct reader *r, uint32_t number, int (*record)(void *ctx, void *rec, size_t size), void *ctx);

/*
 * Release memory of the part of the ring that was read, not @all of it: but for the ring's beginning.  The writer may be active.
 * drain_lane does so now and then.
 */
void drain_give_back(struct reader *r, uint32_t number, bool all);

#endif

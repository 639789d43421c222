/*
 * The ring of records in a lane: one writer, the lane's owner; one reader, the tracer.
 */
#ifndef DTAP_VM_RING_H
#define DTAP_VM_RING_H

#include "vm/shm.h"

/* Append @size bytes (a multiple of 8).  0 or -EAGAIN: no room. */
int ring_put(const struct shm_map *m, uint8_t *lane, const void *data, uint32_t size);

/* Bytes not yet read, and up to a page that was. */
uint64_t ring_used(const uint8_t *lane);

/* Give the memory of what was read back, but for parts; the writer may be at work.  Done by ring_drain now and then. */
void ring_give_back(const struct shm *s, const struct shm_map *m, uint8_t *lane);

/* See shm_drain. */
int ring_drain(const struct shm *s, const struct shm_map *m, uint32_t number, int (*record)(void *ctx, const void *rec, size_t size),
	       void *ctx, uint64_t *lost);

#endif

/*
 * The ring of records in a lane: one writer, the lane's owner; one reader, the tracer (drain.c).
 */
#ifndef DTAP_VM_RING_H
#define DTAP_VM_RING_H

#include "vm/shm.h"

/* Append @size bytes (a multiple of 8).  0 or -EAGAIN: no room. */
int ring_put(const struct shm_map *m, uint8_t *lane, const void *data, uint32_t size);

/* Bytes not yet read, plus up to a page already read. */
uint64_t ring_used(const uint8_t *lane);

#endif

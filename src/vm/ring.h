/*
 * The ring of records in a lane: one writer, the lane's owner; one reader, the tracer (drain.c).
 */
#ifndef DTAP_VM_RING_H
#define DTAP_VM_RING_H

#include <errno.h>
#include <string.h>

#include "vm/shm.h"

/* Append @size bytes (a multiple of 8).  0 or -EAGAIN: no room. */
int ring_put(const struct shm_map *m, uint8_t *lane, const void *data, uint32_t size);

/* Bytes not yet read, plus up to a page already read. */
uint64_t ring_used(const uint8_t *lane);

/* --- the same inline, for who writes a record at each event --- */

static inline uint64_t ring_unread(const struct abi_lane *l)
{
	uint64_t tail = __atomic_load_n(&l->tail, __ATOMIC_ACQUIRE);

	return __atomic_load_n(&l->head, __ATOMIC_ACQUIRE) - tail;
}

/* Where the next records will be, memory that the tracer's processor may have, is asked for in time. */
enum { RING_AHEAD = 512 };

/*
 * ring_put(); *unread: the bytes in the ring afterwards.  What can be done before the copy is done there: what is needed
 * after a call takes registers.
 */
static inline __attribute__((always_inline)) int ring_append(const struct shm_map *m, uint8_t *lane, const void *data,
							       uint32_t size, uint64_t *unread)
{
	uint64_t ring = m->max_entries, head, used, pos, need = (uint64_t)size + ABI_RING_HEADER;
	struct abi_lane *l = (struct abi_lane *)(void *)lane;
	uint8_t *base = lane + m->off;

	head = __atomic_load_n(&l->head, __ATOMIC_RELAXED) & ~(uint64_t)7;
	used = head - __atomic_load_n(&l->tail, __ATOMIC_ACQUIRE);
	pos = head & (ring - 1);
	*unread = used;
	if (used > ring || size % 8 || need > ring)
		return -EAGAIN;
	if (pos + need > ring) {
		uint64_t rest = ring - pos;

		if (used + rest + need > ring)
			return -EAGAIN;
		*(uint32_t *)(base + pos) = ABI_RING_SKIP;
		head += rest;
		used += rest;
		pos = 0;
	} else if (used + need > ring) {
		return -EAGAIN;
	}
	*unread = used + need;
	head += need;
	__builtin_prefetch(base + ((pos + need + RING_AHEAD) & (ring - 1)), 1);
	*(uint32_t *)(base + pos) = size;
	memcpy(base + pos + ABI_RING_HEADER, data, size);
	__atomic_store_n(&l->head, head, __ATOMIC_RELEASE);
	return 0;
}

#endif

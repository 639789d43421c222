#include "vm/ring.h"

#include <errno.h>
#include <string.h>

static struct abi_lane *header(const uint8_t *lane)
{
	return (struct abi_lane *)(uintptr_t)lane;
}

uint64_t ring_used(const uint8_t *lane)
{
	struct abi_lane *l = header(lane);
	uint64_t tail = __atomic_load_n(&l->tail, __ATOMIC_ACQUIRE);

	return __atomic_load_n(&l->head, __ATOMIC_ACQUIRE) - tail;
}

int ring_put(const struct shm_map *m, uint8_t *lane, const void *data, uint32_t size)
{
	uint64_t ring = m->max_entries, head, used, pos, need = (uint64_t)size + ABI_RING_HEADER;
	struct abi_lane *l = header(lane);
	uint8_t *base = lane + m->off;

	head = __atomic_load_n(&l->head, __ATOMIC_RELAXED) & ~(uint64_t)7;
	used = head - __atomic_load_n(&l->tail, __ATOMIC_ACQUIRE);
	pos = head & (ring - 1);
	if (used > ring || size % 8 || need > ring)
		return -EAGAIN;
	if (pos + need > ring) {
		uint64_t rest = ring - pos;

		if (used + rest + need > ring)
			return -EAGAIN;
		*(uint32_t *)(base + pos) = ABI_RING_SKIP;
		head += rest;
		pos = 0;
	} else if (used + need > ring) {
		return -EAGAIN;
	}
	*(uint32_t *)(base + pos) = size;
	memcpy(base + pos + ABI_RING_HEADER, data, size);
	__atomic_store_n(&l->head, head + need, __ATOMIC_RELEASE);
	return 0;
}

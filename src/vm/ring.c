#include "vm/ring.h"

uint64_t ring_used(const uint8_t *lane)
{
	return ring_unread((const struct abi_lane *)(const void *)lane);
}

int ring_put(const struct shm_map *m, uint8_t *lane, const void *data, uint32_t size)
{
	uint64_t unread;

	return ring_append(m, lane, data, size, &unread);
}

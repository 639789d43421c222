#include "vm/ring.h"

#include <errno.h>
#include <fcntl.h>
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

	head = l->head & ~(uint64_t)7;
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

/*
 * Rings are large, so that a burst fits; what it took is given back as it is read, but for the ring's beginning.  That is
 * done in whole pages, and the writer may use them again only afterwards: so how far was read is the reader's own to
 * know, and the tail follows page by page.
 */
enum { KEPT = 1 << 20, PAGE = 4096, AT_ONCE = 1 << 20 };

static void move_tail(const struct shm *s, const struct shm_map *m, uint8_t *lane, uint64_t to)
{
	struct abi_lane *l = header(lane);
	uint64_t ring = m->max_entries, begin, end;

	to &= ~(uint64_t)(PAGE - 1);
	if (to <= l->tail)
		return;
	begin = l->tail & (ring - 1);
	end = begin + (to - l->tail);
	if (begin < KEPT)
		begin = KEPT;
	if (end > ring)
		end = ring;
	if (s->punch_fd >= 0 && begin < end)
		fallocate(s->punch_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			  (off_t)((uint64_t)(lane - s->data) + m->off + begin), (off_t)(end - begin));
	__atomic_store_n(&l->tail, to, __ATOMIC_RELEASE);
}

int ring_drain(const struct shm *s, const struct shm_map *m, uint32_t number,
	       int (*record)(void *ctx, const void *rec, size_t size), void *ctx, uint64_t *lost)
{
	uint8_t *lane = shm_lane(s, number);
	uint64_t ring = m->max_entries, head, tail = s->read[number];
	struct abi_lane *l = header(lane);
	const uint8_t *base = lane + m->off;
	int n = 0, err = 0;

	head = __atomic_load_n(&l->head, __ATOMIC_ACQUIRE);
	if (head - tail > ring || head % 8 || tail - l->tail >= PAGE)
		goto nonsense;
	while (tail != head && !err) {
		uint64_t pos = tail & (ring - 1), rest = ring - pos;
		uint32_t size = __atomic_load_n((const uint32_t *)(base + pos), __ATOMIC_RELAXED);

		if (size == ABI_RING_SKIP && rest <= head - tail) {
			tail += rest;
		} else {
			uint64_t all = (uint64_t)size + ABI_RING_HEADER;

			if (size % 8 || size < sizeof(struct abi_record) || all > rest || all > head - tail)
				goto nonsense;
			err = record(ctx, base + pos + ABI_RING_HEADER, size);
			tail += all;
			n++;
		}
		if (tail - l->tail >= AT_ONCE || !(tail & (ring - 1)))
			move_tail(s, m, lane, tail);
	}
	move_tail(s, m, lane, tail);
	s->read[number] = tail;
	return err < 0 ? err : n;
nonsense:
	head &= ~(uint64_t)7;
	__atomic_store_n(&l->tail, head & ~(uint64_t)(PAGE - 1), __ATOMIC_RELEASE);
	s->read[number] = head;
	(*lost)++;
	return n;
}

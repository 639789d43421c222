#include "vm/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

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
 * Rings are large, so that a burst fits.  While records come their memory stays: to have it anew would cost their writer
 * more than they do.  Afterwards it is given back, but for the ring's beginning and a part in front of the writer.
 *
 * The writer must not write to what is just given back.  So that is taken from it first: with the tail moved back there
 * is less room.  A record that it is writing meanwhile, having seen the tail of before, is behind the head that is read
 * after that, and far from what was taken.
 */
enum { KEPT = 1 << 20, PAGE = 4096, AT_ONCE = 1 << 20, RECORD_MOST = 1 << 20 };

static void punch(const struct shm *s, uint64_t base, uint64_t begin, uint64_t end)
{
	if (begin < KEPT)
		begin = KEPT;
	if (begin < end)
		fallocate(s->punch_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(base + begin), (off_t)(end - begin));
}

void ring_give_back(const struct shm *s, const struct shm_map *m, uint8_t *lane)
{
	uint64_t ring = m->max_entries, margin = ring / 4, base = (uint64_t)(lane - s->data) + m->off, tail, from;
	struct abi_lane *l = header(lane);

	if (margin < 4 * RECORD_MOST)
		return;
	tail = l->tail;
	__atomic_store_n(&l->tail, tail - (ring - margin), __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&l->head, __ATOMIC_SEQ_CST) - tail <= margin - 2 * RECORD_MOST) {
		from = (tail + margin) & (ring - 1);
		if (from + (ring - margin) <= ring) {
			punch(s, base, from, from + (ring - margin));
		} else {
			punch(s, base, from, ring);
			punch(s, base, 0, from + (ring - margin) - ring);
		}
	}
	__atomic_store_n(&l->tail, tail, __ATOMIC_RELEASE);
}

/* All is read, @n records this time: is it the moment to give memory back? */
static bool calm(const struct shm *s, uint32_t number, int n)
{
	struct shm_reader *r = &s->read[number];
	struct timespec now;

	if (s->punch_fd < 0 || r->off - r->given_back < KEPT)
		return false;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (n)
		r->last = now.tv_sec;
	if (!r->when)
		r->when = now.tv_sec;	/* not in a first burst: there is less room meanwhile */
	/* Nothing came for a while; or something always comes. */
	if (now.tv_sec <= (n ? r->when : r->last) + 2)
		return false;
	r->given_back = r->off;
	r->when = now.tv_sec;
	return true;
}

/*
 * A writer that writes much meets pages that there are none of yet.  They are made for it ahead of it, in proportion to
 * what it wrote since the last look, so that it has only to map them (Linux 5.14; what is refused the writer makes).
 */
enum { MUCH = 1 << 16, AHEAD_LEAST = 1 << 20, AHEAD_MOST = 1 << 23, AHEAD_PART = 1 << 18,
       POPULATE_WRITE = 23 /* MADV_POPULATE_WRITE */ };

static void make_ahead(const struct shm_map *m, uint8_t *lane, struct shm_reader *r, uint64_t head)
{
	uint64_t ring = m->max_entries, most = ring / 4 < AHEAD_MOST ? ring / 4 : AHEAD_MOST;
	uint64_t want = 4 * (head - r->off), all = r->given_back + ring, from, pos, part;

	if (head - r->off < MUCH || r->made >= all)
		return;
	want = want < AHEAD_LEAST ? AHEAD_LEAST : want;
	want = head + (want < most ? want : most);
	want = (want < all ? want : all) & ~(uint64_t)(PAGE - 1);
	from = (r->made > head ? r->made : head) & ~(uint64_t)(PAGE - 1);
	if (want < from + AHEAD_PART)
		return;
	r->made = want;
	for (; from < want; from += part) {
		pos = from & (ring - 1);
		part = want - from < ring - pos ? want - from : ring - pos;
		if (syscall(SYS_madvise, lane + m->off + pos, part, POPULATE_WRITE))
			r->made = UINT64_MAX;
	}
}

/* The tail stays on a page. */
static void move_tail(uint8_t *lane, uint64_t to)
{
	__atomic_store_n(&header(lane)->tail, to & ~(uint64_t)(PAGE - 1), __ATOMIC_RELEASE);
}

int ring_drain(const struct shm *s, const struct shm_map *m, uint32_t number,
	       int (*record)(void *ctx, const void *rec, size_t size), void *ctx, uint64_t *lost)
{
	uint8_t *lane = shm_lane(s, number);
	uint64_t ring = m->max_entries, head, tail = s->read[number].off;
	struct abi_lane *l = header(lane);
	const uint8_t *base = lane + m->off;
	int n = 0, err = 0;

	head = __atomic_load_n(&l->head, __ATOMIC_ACQUIRE);
	if (head - tail > ring || head % 8 || tail - l->tail >= PAGE)
		goto nonsense;
	make_ahead(m, lane, &s->read[number], head);
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
			move_tail(lane, tail);
	}
	move_tail(lane, tail);
	s->read[number].off = tail;
	if (tail == head && calm(s, number, n))
		ring_give_back(s, m, lane);
	return err < 0 ? err : n;
nonsense:
	head &= ~(uint64_t)7;
	move_tail(lane, head);
	s->read[number].off = head;
	(*lost)++;
	return n;
}

/*
 * Reads the rings of records.  The read position is reader_ring.off, which is private to the reader; the lane's
 * tail only informs the writer.  So a writer cannot change where the reader reads.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "vm/reader_priv.h"

static struct abi_lane *lane_of(const struct reader *r, uint32_t number)
{
	return (struct abi_lane *)(void *)shm_lane(r->shm, number);
}

/*
 * Rings are large, so that a burst fits.  While records arrive, the ring keeps its memory: allocating it again would
 * cost the writer more than the records do.  Afterwards the memory is released, except for the ring's beginning and a
 * part ahead of the writer; the beginning, too, when nothing came for QUIET_S: in a service most lanes' owners have ended.
 *
 * The writer must not write to memory that is being released.  So the tail is first moved back, which leaves it less
 * room.  A record that it is writing at that moment, based on the old tail, starts at the head that is read
 * afterwards, which is far from the released part.
 */
enum { KEPT = 1 << 18, PAGE = 4096, AT_ONCE = 1 << 20, RECORD_MOST = 1 << 20, CALM_S = 2, QUIET_S = 10 };

/* From @begin to @end, but not before @least. */
static void punch(const struct reader *r, uint64_t base, uint64_t least, uint64_t begin, uint64_t end)
{
	if (begin < least)
		begin = least;
	if (begin < end)
		fallocate(r->punch_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(base + begin), (off_t)(end - begin));
}

static void tell_tail(struct reader *r, uint32_t number, uint64_t tail)
{
	r->rings[number].told = tail;
	__atomic_store_n(&lane_of(r, number)->released, 1 + r->rings[number].released, __ATOMIC_RELAXED);
	__atomic_store_n(&lane_of(r, number)->tail, tail, __ATOMIC_SEQ_CST);
}

/* Move the tail, rounded to a page. */
static void move_tail(struct reader *r, uint32_t number, uint64_t to)
{
	tell_tail(r, number, to & ~(uint64_t)(PAGE - 1));
}

void drain_give_back(struct reader *r, uint32_t number, bool all)
{
	uint64_t ring = r->out->max_entries, margin = ring / 4, tail = r->rings[number].told, from;
	uint64_t base = (uint64_t)(shm_lane(r->shm, number) - r->shm->data) + r->out->off, least = all ? 0 : KEPT;

	if (margin < 4 * RECORD_MOST)
		return;
	tell_tail(r, number, tail - (ring - margin));
	if (__atomic_load_n(&lane_of(r, number)->head, __ATOMIC_SEQ_CST) - tail <= margin - 2 * RECORD_MOST) {
		from = (tail + margin) & (ring - 1);
		if (from + (ring - margin) <= ring) {
			punch(r, base, least, from, from + (ring - margin));
		} else {
			punch(r, base, least, from, ring);
			punch(r, base, least, 0, from + (ring - margin) - ring);
		}
	}
	r->rings[number].released++;
	tell_tail(r, number, tail);
}

/* All records are read, @n this time: should memory be released now, and *@all of it? */
static bool calm(const struct reader *r, uint32_t number, int n, bool *all)
{
	struct reader_ring *ring = &r->rings[number];
	struct timespec now;

	if (r->punch_fd < 0 || ring->off == ring->given_back)
		return false;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	if (n)
		ring->last = now.tv_sec;
	if (!ring->when)
		ring->when = now.tv_sec;	/* not during the first burst: releasing reduces the room */
	/* Nothing came for a while, or records keep coming. */
	*all = now.tv_sec > ring->last + QUIET_S;
	if (!*all && (ring->off - ring->given_back < KEPT || now.tv_sec <= (n ? ring->when : ring->last) + CALM_S))
		return false;
	ring->given_back = ring->off;
	ring->when = now.tv_sec;
	return true;
}

/*
 * A writer of many records reaches pages that are not allocated yet.  The reader allocates them ahead of it, in
 * proportion to what it wrote since the last look, so that the writer only maps them (Linux 5.14; where that fails,
 * the writer allocates).
 */
enum { MUCH = 1 << 16, AHEAD_LEAST = 1 << 20, AHEAD_MOST = 1 << 23, AHEAD_PART = 1 << 18,
       POPULATE_WRITE = 23 /* MADV_POPULATE_WRITE */ };

static void make_ahead(const struct shm_map *m, uint8_t *base, struct reader_ring *r, uint64_t head)
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
		if (syscall(SYS_madvise, base + pos, part, POPULATE_WRITE))
			r->made = UINT64_MAX;
	}
}

/* The ring's contents are invalid: skip them. */
static void skip_to(struct reader *r, uint32_t number, uint64_t head)
{
	struct reader_ring *ring = &r->rings[number];

	ring->off = ring->given_back = head & ~(uint64_t)7;
	ring->made = 0;
	move_tail(r, number, ring->off);
	r->bad++;
}

int drain_lane(struct reader *r, uint32_t number, int (*record)(void *ctx, void *rec, size_t size), void *ctx)
{
	uint64_t ring = r->out->max_entries, head, tail = r->rings[number].off;
	uint8_t *base = shm_lane(r->shm, number) + r->out->off;
	int n = 0, err = 0;
	bool all;

	head = __atomic_load_n(&lane_of(r, number)->head, __ATOMIC_ACQUIRE);
	if (head - tail > ring || head % 8) {
		skip_to(r, number, head);
		return 0;
	}
	make_ahead(r->out, base, &r->rings[number], head);
	while (tail != head && !err) {
		uint64_t pos = tail & (ring - 1), rest = ring - pos;
		uint32_t size = __atomic_load_n((const uint32_t *)(const void *)(base + pos), __ATOMIC_RELAXED);

		if (size == ABI_RING_SKIP && rest <= head - tail) {
			tail += rest;
		} else {
			uint64_t whole = (uint64_t)size + ABI_RING_HEADER;

			if (size % 8 || size < sizeof(struct abi_record) || size > r->record_max || whole > rest ||
			    whole > head - tail) {
				skip_to(r, number, head);
				return n;
			}
			reader_copy(r->record, base + pos + ABI_RING_HEADER, size);
			err = record(ctx, r->record, size);
			tail += whole;
			n++;
		}
		if (tail - r->rings[number].told >= AT_ONCE || !(tail & (ring - 1)))
			move_tail(r, number, tail);
	}
	move_tail(r, number, tail);
	r->rings[number].off = tail;
	if (tail == head && calm(r, number, n, &all))
		drain_give_back(r, number, all);
	return err < 0 ? err : n;
}

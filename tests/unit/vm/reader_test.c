/* What the tracer reads of a segment: rings and tables as they should be, and with others writing what they like. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "segment.h"
#include "vm/reader_priv.h"
#include "vm/ring.h"
#include "vm/table.h"

enum { RECORD_MAX = 1024 };

static void open_it(struct segment *seg, struct shm *shm, struct reader **r)
{
	const char *why;

	assert_int_equal(shm_open_segment(seg->image, seg->image_size, seg->data, seg->data_size, shm, &why), 0);
	assert_int_equal(reader_new(shm, -1, RECORD_MAX, r), 0);
}

static void close_it(struct segment *seg, struct shm *shm, struct reader *r)
{
	reader_free(r);
	shm_fini(shm);
	segment_free(seg);
}

struct heard {
	uint64_t next, n;
	bool wrong;
	int answer;
};

static int read_record(void *ctx, void *rec, size_t size)
{
	struct heard *r = ctx;
	const uint64_t *words = rec;

	if (words[0] != r->next || size != 32 + 8 * (r->next % 20))
		r->wrong = true;
	for (size_t k = 1; k < size / 8; k++)
		r->wrong |= words[k] != ~words[0];
	r->next = words[0] + 1;
	r->n++;
	return r->answer;
}

static void write_records(const struct shm_map *m, uint8_t *lane, uint64_t n, bool wait)
{
	uint64_t words[32];

	for (uint64_t k = 0; k < n; k++) {
		words[0] = k;
		for (int w = 1; w < 32; w++)
			words[w] = ~k;
		while (ring_put(m, lane, words, (uint32_t)(32 + 8 * (k % 20))) && wait)
			;
	}
}

static void ring(void **state)
{
	struct heard r = { 0 };
	struct segment seg;
	struct abi_lane *lane;
	struct reader *reader;
	struct shm shm;

	(void)state;
	segment_make(&seg);
	open_it(&seg, &shm, &reader);
	lane = (struct abi_lane *)(seg.data + shm.lanes_off);
	/* All of a writer that waits for room arrives, in order. */
	if (!fork()) {
		write_records(&shm.maps[SEG_OUT], (uint8_t *)lane, 300000, true);
		_exit(0);
	}
	while (r.n < 300000 && !r.wrong)
		drain_lane(reader, 0, read_record, &r);
	wait(NULL);
	assert_false(r.wrong);
	assert_int_equal(reader_bad(reader), 0);
	/* What does not fit is refused, what did is there. */
	write_records(&shm.maps[SEG_OUT], (uint8_t *)lane, 1000, false);
	assert_true(ring_used((uint8_t *)lane) <= SEG_RING);
	r = (struct heard){ .answer = -EINTR };
	assert_int_equal(drain_lane(reader, 0, read_record, &r), -EINTR);
	assert_int_equal(r.n, 1);
	close_it(&seg, &shm, reader);
}

/* A lane that has a ring and nothing else. */
struct lone_ring {
	struct shm_map map;
	struct shm shm;
	int fd;
	struct reader *reader;
};

static void lone_ring(struct lone_ring *l, uint32_t size, bool gives_back)
{
	l->map = (struct shm_map){ .kind = ABI_MAP_OUT, .off = ABI_ALIGN, .max_entries = size };
	l->shm = (struct shm){ .nlanes = 1, .lane_size = ABI_ALIGN + size, .nmaps = 1, .maps = &l->map };
	l->shm.data_size = l->shm.lane_size;
	l->fd = memfd_create("ring", MFD_CLOEXEC);
	assert_int_equal(ftruncate(l->fd, (off_t)l->shm.data_size), 0);
	l->shm.data = mmap(NULL, l->shm.data_size, PROT_READ | PROT_WRITE, MAP_SHARED, l->fd, 0);
	assert_true(l->shm.data != MAP_FAILED);
	assert_int_equal(reader_new(&l->shm, gives_back ? l->fd : -1, 4096, &l->reader), 0);
}

static void end_lone_ring(struct lone_ring *l)
{
	assert_int_equal(reader_bad(l->reader), 0);
	reader_free(l->reader);
	munmap(l->shm.data, l->shm.data_size);
	close(l->fd);
}

/* Memory is given back again and again while a writer is at work: nothing of what it writes is lost. */
static void memory_given_back(void **state)
{
	enum { RING = 16 << 20, RECORDS = 250000 };
	struct lone_ring l;
	struct heard r = { 0 };
	struct stat st;

	(void)state;
	lone_ring(&l, RING, true);
	if (!fork()) {
		write_records(&l.map, l.shm.data, RECORDS, true);
		_exit(0);
	}
	while (r.n < RECORDS && !r.wrong) {
		drain_lane(l.reader, 0, read_record, &r);
		drain_give_back(l.reader, 0, false);
	}
	wait(NULL);
	assert_false(r.wrong);
	assert_int_equal(r.n, RECORDS);
	assert_int_equal(fstat(l.fd, &st), 0);
	assert_true((uint64_t)st.st_blocks * 512 < RING / 2);
	end_lone_ring(&l);
}

/* While much is written there is memory ahead of the writer, a part of the ring at most. */
static void memory_made_ahead(void **state)
{
	enum { RING = 16 << 20, RECORDS = 2000, POPULATE_WRITE = 23 };
	struct lone_ring l;
	struct heard r = { 0 };
	struct stat st;
	uint64_t bytes;

	(void)state;
	lone_ring(&l, RING, false);
	if (madvise(l.shm.data, ABI_ALIGN, POPULATE_WRITE))
		skip();		/* before Linux 5.14 */
	for (int k = 0; k < 100; k++) {
		write_records(&l.map, l.shm.data, RECORDS, false);
		assert_int_equal(fstat(l.fd, &st), 0);
		bytes = (uint64_t)st.st_blocks * 512;
		drain_lane(l.reader, 0, read_record, &r);
		assert_int_equal(fstat(l.fd, &st), 0);
		if (k < 2) {
			assert_true((uint64_t)st.st_blocks * 512 >= l.reader->rings[0].off + (k ? 1 << 18 : 1 << 20));
			assert_true((uint64_t)st.st_blocks * 512 <= l.reader->rings[0].off + RING / 4 + 2 * ABI_ALIGN);
		}
		r = (struct heard){ 0 };
	}
	/* All that there is, it is not made again. */
	assert_int_equal((uint64_t)st.st_blocks * 512, bytes);
	assert_true(bytes <= l.shm.data_size);
	/* Nor is it given back as soon as much was read: that takes room from a writer in its first burst. */
	l.reader->punch_fd = l.fd;
	write_records(&l.map, l.shm.data, RECORDS, false);
	drain_lane(l.reader, 0, read_record, &r);
	assert_int_equal(l.reader->rings[0].given_back, 0);
	end_lone_ring(&l);
}

/* A ring keeps its beginning for the next records, unless none have come for long. */
static void memory_of_a_quiet_lane(void **state)
{
	enum { RING = 16 << 20, RECORDS = 500 };
	struct lone_ring l;
	struct heard r = { 0 };
	struct stat st;

	(void)state;
	lone_ring(&l, RING, true);
	write_records(&l.map, l.shm.data, RECORDS, false);		/* not so much that memory is made ahead */
	drain_lane(l.reader, 0, read_record, &r);
	assert_true(l.reader->rings[0].off < 1 << 18);
	drain_lane(l.reader, 0, read_record, &r);
	assert_int_equal(fstat(l.fd, &st), 0);
	assert_true((uint64_t)st.st_blocks * 512 > l.reader->rings[0].off);
	l.reader->rings[0].last = 1;	/* long ago */
	drain_lane(l.reader, 0, read_record, &r);
	assert_int_equal(fstat(l.fd, &st), 0);
	/* The lane's header, and the page that the writer is in. */
	assert_true((uint64_t)st.st_blocks * 512 <= 3 * 4096);
	r = (struct heard){ 0 };
	write_records(&l.map, l.shm.data, RECORDS, false);
	drain_lane(l.reader, 0, read_record, &r);
	assert_false(r.wrong);
	end_lone_ring(&l);
}

/* --- others write what they like ------------------------------------------------------------------------ */

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

struct proof {
	uint64_t from_ns, n, others;
	const struct segment *seg;
};

/* Private, whole and of a time that can be; looked at twice, it is the same. */
static int prove_record(void *ctx, const struct record *rec)
{
	struct proof *p = ctx;
	uint64_t sum[2] = { 0, 0 };

	assert_true((const uint8_t *)rec->hdr < p->seg->data || (const uint8_t *)rec->hdr >= p->seg->data + p->seg->data_size);
	assert_true(rec->size >= sizeof(*rec->hdr) && rec->size <= RECORD_MAX && !((uintptr_t)rec->hdr % 8));
	assert_true(rec->hdr->size >= sizeof(*rec->hdr) && rec->hdr->size <= rec->size);
	assert_true(rec->hdr->time_ns >= p->from_ns && rec->hdr->time_ns <= now_ns() + READER_AHEAD_NS);
	for (int twice = 0; twice < 2; twice++)
		for (size_t k = 0; k < rec->size / 8; k++)
			sum[twice] += ((const uint64_t *)(const void *)rec->hdr)[k];
	assert_int_equal(sum[0], sum[1]);
	p->n++;
	p->others += rec->hdr->tid == 0x5a17f00d && rec->hdr->pid == 0x0dd5ec0d;
	return 0;
}

static void prove_element(void *ctx, const void *key, const void *value)
{
	struct proof *p = ctx;
	const uint64_t *words = key;

	assert_true((const uint8_t *)key < p->seg->data || (const uint8_t *)key >= p->seg->data + p->seg->data_size);
	(void)value;
	p->n++;
	if (words[0] == 1000) {
		assert_int_equal(words[1], ~(uint64_t)1000);
		p->others += *(const uint64_t *)value;
	}
}

struct flipper {
	uint8_t *from;
	size_t n;
	bool stop;
};

/* A second thread that writes into a lane, and to what all share, as fast as it can. */
static void *flip(void *ctx)
{
	struct flipper *f = ctx;
	uint64_t x = 88172645463325252;

	while (!__atomic_load_n(&f->stop, __ATOMIC_RELAXED)) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		__atomic_store_n(&f->from[x % f->n], (uint8_t)(x >> 40 & 1 ? x >> 48 : x >> 48 & 9), __ATOMIC_RELAXED);
	}
	return NULL;
}

/*
 * Lane 2 is another process's, lane 1 is the flipper's: its keys, elements, records, ring and header.  Nothing of the other
 * one's is missed.
 */
static void second_thread(void **state)
{
	struct abi_record rec = { .rec = 1, .tid = 0x5a17f00d, .pid = 0x0dd5ec0d, .size = sizeof(rec) };
	struct abi_record own = { .rec = 1, .size = sizeof(own) };
	struct shm_run one, other;
	struct flipper f = { .stop = false };
	struct reader *reader;
	struct segment seg;
	pthread_t thread;
	struct shm shm;
	uint64_t key[2] = { 1000, ~(uint64_t)1000 }, v = 5, bad = 0;

	(void)state;
	segment_make(&seg);
	open_it(&seg, &shm, &reader);
	assert_int_equal(shm_run_init(&one, &shm, 1, 10, 5), 0);
	assert_int_equal(shm_run_init(&other, &shm, 2, 20, 5), 0);
	assert_int_equal(lane_table_put(&shm.maps[SEG_LANE_HASH], other.lane, key, &v, BPF_ANY), 0);
	f.from = one.lane;
	f.n = shm.lane_size;
	assert_int_equal(pthread_create(&thread, NULL, flip, &f), 0);
	for (int round = 0; round < 3000 || bad < 10; round++) {
		struct proof p = { .seg = &seg, .from_ns = now_ns() };

		rec.time_ns = round % 2 ? UINT64_MAX : 3;
		assert_int_equal(ring_put(&shm.maps[SEG_OUT], other.lane, &rec, sizeof(rec)), 0);
		for (uint64_t k = 0; k < 20; k++) {
			lane_table_put(&shm.maps[SEG_LANE_HASH], one.lane, (uint64_t[]){ k, ~k }, &k, BPF_ANY);
			ring_put(&shm.maps[SEG_OUT], one.lane, &own, sizeof(own));
		}
		((struct abi_data *)(void *)seg.data)->lanes_high = (uint32_t)round % 5 * 1000000;
		reader_drain(reader, p.from_ns, prove_record, &p);
		assert_int_equal(p.others, 1);
		p = (struct proof){ .seg = &seg };
		assert_int_equal(reader_each(reader, SEG_LANE_HASH, prove_element, &p), 0);
		assert_int_equal(p.others, 5);
		bad += reader_bad(reader);
	}
	__atomic_store_n(&f.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	/* Its lane is what it left; that of the other one is as it was. */
	memset(one.lane, 0, shm.lane_size);
	{
		struct proof p = { .seg = &seg };

		assert_int_equal(reader_each(reader, SEG_LANE_HASH, prove_element, &p), 0);
		assert_int_equal(p.others, 5);
		assert_int_equal(p.n, 1);
	}
	shm_run_fini(&one);
	shm_run_fini(&other);
	close_it(&seg, &shm, reader);
}

/* A key that is not the one that was put there is left out, once for all; its neighbours are not. */
static void flipped_key(void **state)
{
	struct proof p = { 0 };
	struct reader *reader;
	struct shm_run run;
	struct segment seg;
	struct shm shm;
	uint64_t *at;

	(void)state;
	segment_make(&seg);
	open_it(&seg, &shm, &reader);
	assert_int_equal(shm_run_init(&run, &shm, 1, 10, 5), 0);
	for (uint64_t k = 1; k <= 3; k++)
		assert_int_equal(lane_table_put(&shm.maps[SEG_LANE_HASH], run.lane, (uint64_t[]){ k, 0 }, &k, BPF_ANY), 0);
	at = lane_table_find(&shm.maps[SEG_LANE_HASH], run.lane, (uint64_t[]){ 2, 0 });
	at[-1] ^= 0x100;	/* the key's second word */
	p.seg = &seg;
	assert_int_equal(reader_each(reader, SEG_LANE_HASH, prove_element, &p), 0);
	assert_int_equal(p.n, 2);
	assert_int_equal(reader_bad(reader), 1);
	shm_run_fini(&run);
	close_it(&seg, &shm, reader);
}

static int want_no_more(void *ctx, const struct record *rec)
{
	uint32_t *seen = ctx;

	*seen |= 1U << rec->hdr->tid;
	return -EAGAIN;
}

/* One lane that always has more than is wanted does not keep the others from being read. */
static void turns(void **state)
{
	struct abi_record rec = { .rec = 1, .size = sizeof(rec) };
	struct reader *reader;
	struct segment seg;
	struct shm shm;
	uint32_t seen = 0;

	(void)state;
	segment_make(&seg);
	open_it(&seg, &shm, &reader);
	((struct abi_data *)(void *)seg.data)->lanes_high = SEG_LANES;
	for (uint32_t lane = 0; lane < SEG_LANES; lane++)
		for (int k = 0; k < 100; k++) {
			rec.tid = lane;
			assert_int_equal(ring_put(&shm.maps[SEG_OUT], shm_lane(&shm, lane), &rec, sizeof(rec)), 0);
		}
	for (uint32_t k = 0; k < SEG_LANES; k++)
		assert_int_equal(reader_drain(reader, 0, want_no_more, &seen), -EAGAIN);
	assert_int_equal(seen, (1U << SEG_LANES) - 1);
	close_it(&seg, &shm, reader);
}

/* Sizes, heads and tails that cannot be. */
static void scribbled_ring(void **state)
{
	struct reader *reader;
	struct segment seg;
	struct abi_lane *lane;
	struct shm shm;
	uint64_t words[8] = { 0 };
	struct proof p = { 0 };

	(void)state;
	segment_make(&seg);
	open_it(&seg, &shm, &reader);
	p.seg = &seg;
	lane = (struct abi_lane *)(void *)(seg.data + shm.lanes_off);
	srand(3);
	for (int round = 0; round < 20000; round++) {
		uint8_t *ring = (uint8_t *)lane + shm.maps[SEG_OUT].off;

		((struct abi_data *)(void *)seg.data)->lanes_high = round % 2 ? 1 : 0xffffffff;
		for (int k = 0; k < 64; k++)
			ring[rand() % SEG_RING] = (uint8_t)(rand() % 2 ? 8 * (rand() % 32) : rand());
		lane->head += (uint64_t)(rand() % 5000) - (rand() % 10 ? 0 : 1);
		if (rand() % 10 == 0)
			lane->tail = (uint64_t)rand() << (rand() % 40);
		reader_drain(reader, 0, prove_record, &p);
		ring_put(&shm.maps[SEG_OUT], (uint8_t *)lane, words, sizeof(words));
	}
	assert_true(reader_bad(reader) > 100);
	close_it(&seg, &shm, reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ring),
		cmocka_unit_test(memory_given_back), cmocka_unit_test(memory_of_a_quiet_lane),
		cmocka_unit_test(memory_made_ahead),
		cmocka_unit_test(second_thread),
		cmocka_unit_test(flipped_key),
		cmocka_unit_test(turns),
		cmocka_unit_test(scribbled_ring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

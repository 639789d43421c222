/* Segments that are refused, lanes, rings. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "segment.h"
#include "vm/ring.h"

static int open_it(struct segment *seg, struct shm *shm)
{
	const char *why;

	return shm_open_segment(seg->image, seg->image_size, seg->data, seg->data_size, shm, &why);
}

/* What a tracer of another build has made is not looked into. */
static void another_version(void **state)
{
	struct segment seg;
	struct shm shm;
	const char *why = NULL;

	(void)state;
	segment_make(&seg);
	segment_header(&seg)->version = ABI_VERSION + 1;
	assert_int_equal(shm_open_segment(seg.image, seg.image_size, seg.data, seg.data_size, &shm, &why), -EINVAL);
	assert_string_equal(why, "the segment is of another version of dtap");
	segment_free(&seg);
}

/* Any byte of the tables changed: refused, or what is accepted lies inside. */
static void changed_image(void **state)
{
	struct segment seg;
	struct shm shm;
	size_t tables = sizeof(struct abi_image) + SEG_MAPS * sizeof(struct abi_map);
	unsigned int refused = 0, accepted = 0;

	(void)state;
	segment_make(&seg);
	for (size_t at = 0; at < tables; at++) {
		static const uint8_t changes[] = { 0x01, 0x08, 0x40, 0x80, 0xff };

		for (size_t c = 0; c < sizeof(changes); c++) {
			seg.image[at] ^= changes[c];
			if (open_it(&seg, &shm)) {
				refused++;
			} else {
				accepted++;
				for (uint32_t k = 0; k < shm.nrows; k++) {
					const struct vm_map *row = &shm.rows[k];
					const uint8_t *base = row->base;

					if (!base)
						continue;
					assert_true((base >= seg.data && base + row->size <= seg.data + seg.data_size) ||
						    (base >= seg.image && base + row->size <= seg.image + seg.image_size));
				}
				shm_fini(&shm);
			}
			seg.image[at] ^= changes[c];
		}
	}
	assert_true(refused > 100 && accepted > 0);
	segment_free(&seg);
}

static void lanes(void **state)
{
	uint32_t me = (uint32_t)getpid();
	struct segment seg;
	struct shm_run a, b, c, d, e;
	struct shm shm;
	pid_t child;

	(void)state;
	segment_make(&seg);
	assert_int_equal(open_it(&seg, &shm), 0);
	assert_int_equal(shm_run_init(&a, &shm, 0, me, 5), 0);
	assert_int_equal(shm_run_init(&b, &shm, -1, me, 5), 0);
	assert_int_equal(b.number, 1);
	child = fork();
	if (!child) {
		shm_run_init(&c, &shm, -1, (uint32_t)getpid(), 6);
		_exit((int)c.number);
	}
	{
		int status;

		waitpid(child, &status, 0);
		assert_int_equal(WEXITSTATUS(status), 2);
	}
	/* Free ones come first, then those of the dead. */
	assert_int_equal(shm_run_init(&c, &shm, -1, me, 5), 0);
	assert_int_equal(c.number, 3);
	/* Who knows other numbers of processes cannot tell who is dead. */
	shm.other_pids = true;
	assert_int_equal(shm_run_init(&d, &shm, -1, me, 5), -EAGAIN);
	shm.other_pids = false;
	assert_int_equal(shm_run_init(&d, &shm, -1, me, 5), 0);
	assert_int_equal(d.number, 2);
	assert_int_equal(shm_run_init(&e, &shm, -1, me, 5), -EAGAIN);
	shm_run_fini(&c);
	assert_int_equal(shm_run_init(&e, &shm, -1, me, 5), 0);
	assert_int_equal(e.number, 3);
	shm_run_fini(&a);
	shm_run_fini(&b);
	shm_run_fini(&d);
	shm_run_fini(&e);
	shm_fini(&shm);
	segment_free(&seg);
}

struct reader {
	uint64_t next, n;
	bool wrong;
	int answer;
};

static int read_record(void *ctx, const void *rec, size_t size)
{
	struct reader *r = ctx;
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
	struct reader r = { 0 };
	struct segment seg;
	struct abi_lane *lane;
	struct shm shm;
	uint64_t lost = 0;

	(void)state;
	segment_make(&seg);
	assert_int_equal(open_it(&seg, &shm), 0);
	lane = (struct abi_lane *)(seg.data + shm.lanes_off);
	((struct abi_data *)seg.data)->lanes_high = 1;
	/* All of a writer that waits for room arrives, in order. */
	if (!fork()) {
		write_records(&shm.maps[SEG_OUT], (uint8_t *)lane, 300000, true);
		_exit(0);
	}
	while (r.n < 300000 && !r.wrong)
		shm_drain(&shm, read_record, &r, &lost);
	wait(NULL);
	assert_false(r.wrong);
	assert_int_equal(lost, 0);
	/* What does not fit is refused, what did is there. */
	write_records(&shm.maps[SEG_OUT], (uint8_t *)lane, 1000, false);
	assert_true(ring_used((uint8_t *)lane) <= SEG_RING);
	r = (struct reader){ .answer = -EINTR };
	assert_int_equal(shm_drain(&shm, read_record, &r, &lost), -EINTR);
	assert_int_equal(r.n, 1);
	segment_free(&seg);
	shm_fini(&shm);
}

/* Memory is given back again and again while a writer is at work: nothing of what it writes is lost. */
static void memory_given_back(void **state)
{
	enum { RING = 16 << 20, RECORDS = 250000 };
	struct shm_map m = { .kind = ABI_MAP_OUT, .off = ABI_ALIGN, .max_entries = RING };
	struct shm s = { .nlanes = 1, .lane_size = ABI_ALIGN + RING, .nmaps = 1, .maps = &m };
	struct reader r = { 0 };
	uint64_t lost = 0;
	struct stat st;

	(void)state;
	s.data_size = s.lane_size;
	s.punch_fd = memfd_create("ring", MFD_CLOEXEC);
	assert_int_equal(ftruncate(s.punch_fd, (off_t)s.data_size), 0);
	s.data = mmap(NULL, s.data_size, PROT_READ | PROT_WRITE, MAP_SHARED, s.punch_fd, 0);
	assert_true(s.data != MAP_FAILED);
	s.read = calloc(1, sizeof(*s.read));
	if (!fork()) {
		write_records(&m, s.data, RECORDS, true);
		_exit(0);
	}
	while (r.n < RECORDS && !r.wrong) {
		ring_drain(&s, &m, 0, read_record, &r, &lost);
		ring_give_back(&s, &m, s.data);
	}
	wait(NULL);
	assert_false(r.wrong);
	assert_int_equal(lost, 0);
	assert_int_equal(r.n, RECORDS);
	assert_int_equal(fstat(s.punch_fd, &st), 0);
	assert_true((uint64_t)st.st_blocks * 512 < RING / 2);
	munmap(s.data, s.data_size);
	close(s.punch_fd);
	free(s.read);
}

/* While much is written there is memory ahead of the writer, a part of the ring at most. */
static void memory_made_ahead(void **state)
{
	enum { RING = 16 << 20, RECORDS = 2000, POPULATE_WRITE = 23 };
	struct shm_map m = { .kind = ABI_MAP_OUT, .off = ABI_ALIGN, .max_entries = RING };
	struct shm s = { .nlanes = 1, .lane_size = ABI_ALIGN + RING, .nmaps = 1, .maps = &m };
	struct reader r = { 0 };
	uint64_t lost = 0, bytes;
	struct stat st;
	int fd;

	(void)state;
	s.data_size = s.lane_size;
	s.punch_fd = -1;
	fd = memfd_create("ring", MFD_CLOEXEC);
	assert_int_equal(ftruncate(fd, (off_t)s.data_size), 0);
	s.data = mmap(NULL, s.data_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(s.data != MAP_FAILED);
	s.read = calloc(1, sizeof(*s.read));
	if (madvise(s.data, ABI_ALIGN, POPULATE_WRITE))
		skip();		/* before Linux 5.14 */
	for (int k = 0; k < 100; k++) {
		write_records(&m, s.data, RECORDS, false);
		assert_int_equal(fstat(fd, &st), 0);
		bytes = (uint64_t)st.st_blocks * 512;
		ring_drain(&s, &m, 0, read_record, &r, &lost);
		assert_int_equal(fstat(fd, &st), 0);
		if (k < 2) {
			assert_true((uint64_t)st.st_blocks * 512 >= s.read[0].off + (k ? 1 << 18 : 1 << 20));
			assert_true((uint64_t)st.st_blocks * 512 <= s.read[0].off + RING / 4 + 2 * ABI_ALIGN);
		}
		r = (struct reader){ 0 };
	}
	/* All that there is, it is not made again. */
	assert_int_equal((uint64_t)st.st_blocks * 512, bytes);
	assert_true(bytes <= s.data_size);
	/* Nor is it given back as soon as much was read: that takes room from a writer in its first burst. */
	s.punch_fd = fd;
	write_records(&m, s.data, RECORDS, false);
	ring_drain(&s, &m, 0, read_record, &r, &lost);
	assert_int_equal(s.read[0].given_back, 0);
	assert_int_equal(lost, 0);
	munmap(s.data, s.data_size);
	close(fd);
	free(s.read);
}

static int any_record(void *ctx, const void *rec, size_t size)
{
	volatile uint8_t sum = 0;

	for (size_t k = 0; k < size; k++)
		sum = (uint8_t)(sum + ((const uint8_t *)rec)[k]);
	*(uint64_t *)ctx += size;
	return 0;
}

static void scribbled_ring(void **state)
{
	struct segment seg;
	struct abi_lane *lane;
	struct shm shm;
	uint64_t lost = 0, bytes = 0, words[8] = { 0 };

	(void)state;
	segment_make(&seg);
	assert_int_equal(open_it(&seg, &shm), 0);
	lane = (struct abi_lane *)(seg.data + shm.lanes_off);
	srand(3);
	for (int round = 0; round < 20000; round++) {
		uint8_t *ring = (uint8_t *)lane + shm.maps[SEG_OUT].off;

		((struct abi_data *)seg.data)->lanes_high = round % 2 ? 1 : 0xffffffff;
		for (int k = 0; k < 64; k++)
			ring[rand() % SEG_RING] = (uint8_t)(rand() % 2 ? 8 * (rand() % 32) : rand());
		lane->head += (uint64_t)(rand() % 5000) - (rand() % 10 ? 0 : 1);
		if (rand() % 10 == 0)
			lane->tail = (uint64_t)rand() << (rand() % 40);
		shm_drain(&shm, any_record, &bytes, &lost);
		ring_put(&shm.maps[SEG_OUT], (uint8_t *)lane, words, sizeof(words));
	}
	assert_true(lost > 100);
	segment_free(&seg);
	shm_fini(&shm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_version),
		cmocka_unit_test(changed_image),
		cmocka_unit_test(lanes),
		cmocka_unit_test(ring),
		cmocka_unit_test(memory_given_back),
		cmocka_unit_test(memory_made_ahead),
		cmocka_unit_test(scribbled_ring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

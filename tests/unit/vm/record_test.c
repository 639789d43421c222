/* ABI_HELPER_RECORD: wherever strings lie and end, and wherever in the ring it is built, the record is the same. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "segment.h"
#include "vm/helper.h"
#include "vm/memory.h"

enum { PAGE = 4096, ERRNO = 97, FIELDS = 3, TEXT = 1, HEADER = sizeof(struct abi_record) };

struct fixture {
	struct segment seg;
	struct shm shm;
	struct shm_run run;
	uint64_t strings[2];
	char *page;		/* its end is the end of what can be read */
	struct { struct abi_record hdr; uint64_t slots[FIELDS]; char strings[2 * PAGE]; } rec;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	segment_begin(&f->seg, &f->shm, &f->run);
	f->run.wake.fd = -1;
	f->page = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(f->page, MAP_FAILED);
	f->page += PAGE;
	assert_int_equal(mprotect(f->page + PAGE, PAGE, PROT_NONE), 0);
	f->run.strings = f->strings;
	f->run.nstrings = 2;
	*state = f;
	errno = ERRNO;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(errno, ERRNO);
	munmap(f->page - PAGE, 3 * PAGE);
	segment_end(&f->seg, &f->shm, &f->run);
	free(f);
	return 0;
}

static struct abi_lane *lane(struct fixture *f)
{
	return (struct abi_lane *)(void *)f->run.lane;
}

static const struct vm_helper *helper(void)
{
	const struct vm_helper *h = shm_helpers;

	while (h->number != ABI_HELPER_RECORD)
		h++;
	return h;
}

/* The call of a program for the integers 7, 9 and, between them, the string at @addr, cut to @max bytes. */
static int64_t call(struct fixture *f, uint64_t addr, uint32_t max)
{
	uint32_t size = (HEADER + 8 * FIELDS + max + 7) & ~7u;

	f->rec.hdr = (struct abi_record){ .time_ns = 11, .rec = 12, .probe = 13 };
	f->rec.slots[0] = 7;
	f->rec.slots[TEXT] = addr;
	f->rec.slots[2] = 9;
	shm_set_tid(&f->run, 14);
	return (int64_t)helper()->fn((uintptr_t)&f->shm.maps[SEG_OUT], (uintptr_t)&f->rec, size, 1u << TEXT,
				     (uint64_t)max << 32 | FIELDS, &f->run.thread);
}

/* The record at the ring's position *at, which is moved behind it. */
static const struct abi_record *next(struct fixture *f, uint64_t *at)
{
	const struct shm_map *m = &f->shm.maps[SEG_OUT];
	const uint8_t *ring = f->run.lane + m->off;
	const uint32_t *size = (const uint32_t *)(const void *)(ring + *at % SEG_RING);

	if (*size == ABI_RING_SKIP) {
		*at += SEG_RING - *at % SEG_RING;
		size = (const uint32_t *)(const void *)(ring + *at % SEG_RING);
	}
	*at += ABI_RING_HEADER + *size;
	return (const struct abi_record *)(const void *)((const uint8_t *)size + ABI_RING_HEADER);
}

/* What was appended since @from is the one record of the string @text, cut to @max bytes. */
static void expect(struct fixture *f, uint64_t from, const char *text, uint32_t max)
{
	uint64_t at = from, len = strnlen(text, max - 1) + 1, slot = len << 32 | (HEADER + 8 * FIELDS);
	const struct abi_record *rec = next(f, &at);
	const uint64_t *slots = (const uint64_t *)(rec + 1);

	assert_int_equal(at, lane(f)->head);
	assert_int_equal(rec->time_ns, 11);
	assert_int_equal(rec->rec, 12);
	assert_int_equal(rec->probe, 13);
	assert_int_equal(rec->tid, 14);
	assert_int_equal(rec->pid, getpid());
	assert_int_equal(rec->size, (HEADER + 8 * FIELDS + len + 7) & ~(uint64_t)7);
	assert_int_equal(slots[0], 7);
	assert_int_equal(slots[TEXT], slot);
	assert_int_equal(slots[2], 9);
	assert_memory_equal((const char *)rec + HEADER + 8 * FIELDS, text, len - 1);
	assert_int_equal(((const char *)rec)[HEADER + 8 * FIELDS + len - 1], 0);
	lane(f)->tail = at;
}

/* Strings that end @before bytes before a page does behind which there is nothing, or another one. */
static void wherever_strings_lie(void **state)
{
	struct fixture *f = *state;
	static const uint32_t sizes[] = { 1, 2, 7, 8, 9, 16, 100, PAGE };
	char *ends[] = { f->page, f->page + PAGE };

	memset(f->page - PAGE, 'y', 2 * PAGE);
	for (int e = 0; e < 2; e++)
		for (int before = 0; before < 20; before++)
			for (int length = 0; length < 40; length++)
				for (unsigned k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
					char *nul = ends[e] - before - 1, was = *nul;
					uint64_t from = lane(f)->head;

					*nul = 0;
					f->strings[1] = (uintptr_t)nul - (unsigned)length;
					assert_int_equal(call(f, f->strings[1], sizes[k]), 0);
					expect(f, from, nul - length, sizes[k]);
					*nul = was;
				}
	/* The first argument, one across the pages, and of others a copy of the kernel's. */
	f->page[PAGE - 1] = 0;
	f->strings[0] = (uintptr_t)f->page - 50;
	for (int known = 0; known < 2; known++) {
		uint64_t from = lane(f)->head;

		assert_int_equal(call(f, (uintptr_t)f->page - 50, PAGE), 0);
		expect(f, from, f->page - 50, PAGE);
		f->strings[0] = 0;
	}
}

/* Those of the program's own: in its memory, where a string need not end. */
static void own_strings(void **state)
{
	struct fixture *f = *state;
	char *scratch = (char *)f->run.lane + f->shm.maps[SEG_SCRATCH].off;
	uint64_t from = lane(f)->head;

	memset(scratch, 'z', 300);
	assert_int_equal(call(f, (uintptr_t)scratch, 200), 0);
	expect(f, from, scratch, 200);
}

/* Nothing was appended, the number of the field says which string it is, and its address is still in the slot. */
static void unreadable(void **state)
{
	struct fixture *f = *state;
	uint64_t nowhere[] = { 0, 8, (uintptr_t)f->page + PAGE };

	for (int k = 0; k < 3; k++) {
		uint64_t from = lane(f)->head;

		assert_int_equal(call(f, nowhere[k], 64), TEXT + 1);
		assert_int_equal(f->rec.slots[TEXT], nowhere[k]);
		assert_int_equal(lane(f)->head, from);
	}
}

/* Until the ring is full, and when the tracer has taken some: the same records as by the copy, and as many. */
static void until_it_is_full(void **state)
{
	struct fixture *f = *state;
	uint64_t at = 0, n = 0, taken = 0;

	f->strings[0] = (uintptr_t)"a function";
	for (int round = 0; round < 20; round++) {
		while (!call(f, f->strings[0], 300))
			n++;
		assert_int_equal(call(f, f->strings[0], 300), -EAGAIN);
		assert_true(lane(f)->head - lane(f)->tail > SEG_RING - 2 * (HEADER + 8 * FIELDS + 16 + ABI_RING_HEADER));
		for (int k = 0; k < 37; k++, taken++)
			assert_string_equal((const char *)next(f, &at) + HEADER + 8 * FIELDS, "a function");
		lane(f)->tail = at;
	}
	for (; taken < n; taken++)
		assert_string_equal((const char *)next(f, &at) + HEADER + 8 * FIELDS, "a function");
	assert_int_equal(at, lane(f)->head);
}

/* What no program of bpf/ says. */
static void refused(void **state)
{
	struct fixture *f = *state;
	const struct { uint64_t map, size, strings, fields; } bad[] = {
		{ SEG_OUT, 64, 0, (uint64_t)8 << 32 | (ABI_RECORD_FIELDS + 1) },
		{ SEG_OUT, HEADER + 8, 0, (uint64_t)8 << 32 | 2 },		/* no room for the slots ... */
		{ SEG_OUT, HEADER + 8 + 8, 1, (uint64_t)9 << 32 | 1 },		/* ... for the string */
		{ SEG_OUT, HEADER + 8 + 8, 2, (uint64_t)8 << 32 | 1 },		/* of no field */
		{ SEG_OUT, HEADER + 8 + 8, 1, 1 },				/* cut to nothing */
		{ SEG_ARRAY, HEADER + 8, 0, (uint64_t)8 << 32 | 1 },
	};

	f->strings[0] = f->rec.slots[0] = (uintptr_t)"text";
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal((int64_t)helper()->fn((uintptr_t)&f->shm.maps[bad[i].map], (uintptr_t)&f->rec, bad[i].size,
						       bad[i].strings, bad[i].fields, &f->run.thread), -EINVAL);
	assert_int_equal(lane(f)->head, 0);
}

/* A process can write any head and tail to its lane: it loses its own records, and goes on. */
static void heads_that_are_made_up(void **state)
{
	static const uint64_t bases[] = { 0, SEG_RING, (uint64_t)1 << 32, (uint64_t)1 << 63, 0 - (uint64_t)SEG_RING };
	struct fixture *f = *state;

	f->strings[0] = (uintptr_t)"text";
	for (unsigned i = 0; i < sizeof(bases) / sizeof(*bases); i++)
		for (unsigned k = 0; k < sizeof(bases) / sizeof(*bases); k++)
			for (int off = -72; off <= 72; off += 3) {
				int64_t err;

				lane(f)->head = bases[i] + (uint64_t)(int64_t)off;
				lane(f)->tail = bases[k] + (uint64_t)(int64_t)off;
				f->run.ring_ready = 0;
				err = call(f, f->strings[0], 64);
				assert_true(!err || err == -EAGAIN);
				lane(f)->head = bases[i] + (uint64_t)(int64_t)off;
				f->run.ring_ready = 0;
				err = shm_output(&f->run, &f->shm.maps[SEG_OUT], &f->rec, HEADER + 8 * FIELDS);
				assert_true(!err || err == -EAGAIN);
			}
}

/* Pages of the ring that are in memory. */
static unsigned present(struct fixture *f)
{
	unsigned char pages[SEG_RING / PAGE];
	unsigned n = 0;

	assert_int_equal(mincore(f->run.lane + f->shm.maps[SEG_OUT].off, SEG_RING, pages), 0);
	for (unsigned k = 0; k < SEG_RING / PAGE; k++)
		n += pages[k] & 1;
	return n;
}

/* Write so many bytes, of which all are read at once. */
static void write_on(struct fixture *f, uint64_t bytes)
{
	for (uint64_t end = lane(f)->head + bytes; lane(f)->head < end;) {
		assert_int_equal(call(f, f->strings[0], 64), 0);
		lane(f)->tail = lane(f)->head;
	}
}

/* Memory of the ring is asked for once, and again when the tracer says that it has given some back. */
static void memory_is_asked_for_once(void **state)
{
	struct fixture *f = *state;
	uint8_t *ring = f->run.lane + f->shm.maps[SEG_OUT].off;

	f->strings[0] = (uintptr_t)"text";
	lane(f)->released = 1;
	write_on(f, 3 * SEG_RING);
	assert_int_equal(present(f), SEG_RING / PAGE);
	/* By somebody who does not say it: pages come one by one. */
	assert_int_equal(madvise(ring, SEG_RING, MADV_REMOVE), 0);
	write_on(f, 200);
	assert_in_range(present(f), 1, 2);
	lane(f)->released = 2;
	write_on(f, SEG_RING + PAGE);
	assert_int_equal(madvise(ring, SEG_RING, MADV_REMOVE), 0);
	lane(f)->released = 3;
	f->run.ring_ready = 0;
	write_on(f, 200);
	assert_int_equal(present(f), SEG_RING / PAGE);
	/* A tracer that never says it. */
	f->run.ring_released = lane(f)->released = 0;
	write_on(f, 3 * SEG_RING);
	assert_int_equal(madvise(ring, SEG_RING, MADV_REMOVE), 0);
	f->run.ring_ready = 0;
	write_on(f, 200);
	assert_int_equal(present(f), SEG_RING / PAGE);
}

int main(void)
{
#define TEST(NAME) cmocka_unit_test_setup_teardown(NAME, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(wherever_strings_lie), TEST(own_strings), TEST(unreadable), TEST(until_it_is_full), TEST(refused),
		TEST(heads_that_are_made_up), TEST(memory_is_asked_for_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

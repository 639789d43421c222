/* Stacks as programs in vm/ have them: their numbers, and what the tracer is told of them, and how often. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "segment.h"
#include "vm/helper.h"
#include "vm/reader.h"
#include "vm/stack.h"

enum { MIXED = ABI_STACK_USER | ABI_STACK_NATIVE | ABI_STACK_PYTHON };

static struct fixture {
	struct segment seg;
	struct shm shm;
	struct reader *reader;
	struct shm_run run;
	struct shm_stacks *stacks;
	/* What the next walk finds, and how often what it found was to be told. */
	uint64_t words[STACK_WORDS_MAX];
	uint32_t n, naddrs, asked;
	unsigned told;
	bool lossy;
	/* What is found without a walk; 0: nothing.  What was learned last. */
	uint64_t found, learned;
	/* The last record, and how many there were. */
	uint64_t record[8 + STACK_WORDS_MAX];
	unsigned records;
} f;

static uint32_t walk(struct shm_run *r, const struct shm_map *out, uint32_t flags, uint32_t frames,
		     uint64_t words[STACK_WORDS_MAX], uint32_t *naddrs)
{
	(void)r, (void)out, (void)flags;
	f.asked = frames;
	memcpy(words, f.words, f.n * sizeof(*words));
	*naddrs = f.naddrs;
	return f.n;
}

static bool tell(struct shm_run *r, const struct shm_map *out)
{
	(void)r, (void)out;
	f.told++;
	return !f.lossy;
}

static bool find(struct shm_run *r, uint32_t flags, uint32_t frames, uint64_t *number)
{
	(void)r, (void)flags, (void)frames;
	*number = f.found;
	return f.found != 0;
}

static void learn(struct shm_run *r, uint32_t frames, uint64_t number)
{
	(void)r, (void)frames;
	f.learned = number;
}

static const struct stack_walker walker = { walk, tell, find, learn }, plain_walker = { walk, tell, NULL, NULL };

static int setup(void **state)
{
	const char *why;

	(void)state;
	memset(&f, 0, sizeof(f));
	segment_make(&f.seg);
	assert_int_equal(shm_open_segment(f.seg.image, f.seg.image_size, f.seg.data, f.seg.data_size, &f.shm, &why), 0);
	assert_int_equal(shm_run_init(&f.run, &f.shm, -1, (uint32_t)getpid(), 1), 0);
	assert_int_equal(reader_new(&f.shm, -1, STACK_CODE, &f.reader), 0);
	f.stacks = f.run.stacks = calloc(1, sizeof(*f.stacks));
	f.stacks->walker = &walker;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	shm_run_fini(&f.run);
	reader_free(f.reader);
	shm_fini(&f.shm);
	segment_free(&f.seg);
	free(f.stacks);
	return 0;
}

static uint64_t number(uint64_t flags, uint64_t frames, uint64_t address)
{
	return stack_number((uint64_t)(uintptr_t)&f.shm.maps[SEG_OUT], flags, frames, address, 0, &f.run.thread);
}

/* Of @n words, the first @naddrs of them addresses. */
static uint64_t number_of(uint64_t flags, uint64_t frames, uint32_t n, uint32_t naddrs, uint64_t first)
{
	f.n = n;
	f.naddrs = naddrs;
	for (uint32_t k = 0; k < n; k++)
		f.words[k] = first + k;
	return number(flags, frames, 0);
}

static int take(void *ctx, const struct record *rec)
{
	(void)ctx;
	assert_true(rec->size <= sizeof(f.record));
	memcpy(f.record, rec->hdr, rec->size);
	f.records++;
	return 0;
}

static unsigned int records(void)
{
	f.records = 0;
	reader_drain(f.reader, 0, take, NULL);
	assert_int_equal(reader_bad(f.reader), 0);
	return f.records;
}

/* One record for a stack, with its words; the number depends on all of them, and on the process. */
static void each_is_told_once(void **state)
{
	uint64_t a = number_of(MIXED, 20, 7, 3, 100), b;
	const struct abi_record *hdr = (const struct abi_record *)f.record;
	const uint64_t *slots = (const uint64_t *)(hdr + 1);

	(void)state;
	assert_int_equal(records(), 1);
	assert_int_equal(hdr->rec, ABI_REC_STACK);
	assert_int_equal(hdr->pid, getpid());
	assert_int_equal(hdr->size, sizeof(*hdr) + 8 * (2 + 7));
	assert_int_equal(slots[0], a);
	assert_int_equal(slots[1], MIXED | 3 << 8 | (uint64_t)20 << 32);
	assert_memory_equal(slots + 2, f.words, 7 * 8);
	assert_int_equal(number_of(MIXED, 20, 7, 3, 100), a);
	assert_int_equal(records(), 0);
	b = number_of(MIXED, 20, 6, 2, 100);
	assert_int_not_equal(b, a);
	assert_int_equal(records(), 1);
	f.run.thread.values[SHM_TASK] += (uint64_t)1 << 32;
	assert_int_not_equal(number_of(MIXED, 20, 7, 3, 100), a);
	assert_int_equal(records(), 1);
	assert_int_equal(f.told, 3);
}

/* What the walker finds by itself is not walked and not told; what was told it learns, and no number of an address. */
static void found_without_a_walk(void **state)
{
	uint64_t a = number_of(MIXED, 20, 7, 3, 100);

	(void)state;
	assert_int_equal(f.learned, a);
	f.learned = 0;
	assert_int_equal(number_of(MIXED, 20, 7, 3, 100), a);
	assert_int_equal(f.learned, a);
	assert_int_equal(records(), 1);
	f.found = 77;
	f.learned = f.asked = 0;
	assert_int_equal(number_of(MIXED, 20, 6, 3, 100), 77);
	assert_int_equal(f.asked, 0);
	assert_int_equal(records(), 0);
	number(ABI_STACK_USER, 1, 0x1234);
	number_of(MIXED, 0, 7, 3, 100);
	assert_int_equal(f.learned, 0);
	f.stacks->walker = &plain_walker;
	assert_int_equal(number_of(MIXED, 20, 7, 3, 100), a);
}

static void one_address(void **state)
{
	uint64_t a = number(ABI_STACK_USER, 1, 0x1234);

	(void)state;
	assert_int_equal(records(), 1);
	assert_int_equal(f.record[6], 0x1234);
	assert_int_not_equal(number(ABI_STACK_USER, 1, 0x1235), a);
	assert_int_equal(f.told, 0);
}

/* Where there is no stack, and in a lane that has nothing for any. */
static void none(void **state)
{
	uint64_t a = number(ABI_STACK_USER | ABI_STACK_PYTHON, 0, 0);

	(void)state;
	assert_int_equal(records(), 1);
	assert_int_equal(((struct abi_record *)f.record)->size, sizeof(struct abi_record) + 16);
	f.run.stacks = NULL;
	assert_int_equal(number(ABI_STACK_USER | ABI_STACK_PYTHON, 20, 0), a);
	assert_int_equal(records(), 1);
}

/* What was lost is told again. */
static void lost(void **state)
{
	(void)state;
	f.lossy = true;
	number_of(MIXED, 20, 4, 2, 1);
	assert_int_equal(records(), 0);
	f.lossy = false;
	number_of(MIXED, 20, 4, 2, 1);
	assert_int_equal(records(), 1);
	for (uint64_t k = 0; k < SEG_RING / 64; k++)
		number_of(MIXED, 20, 12, 2, 1000 * k);
	assert_true(((struct abi_data *)f.seg.data)->control.drops[ABI_DROP_RECORD] > 0);
	records();
	number_of(MIXED, 20, 12, 2, 1000 * (SEG_RING / 64 - 1));
	assert_int_equal(records(), 1);
}

static void as_many_frames_as_there_is_room_for(void **state)
{
	(void)state;
	number_of(MIXED, UINT64_MAX, 0, 0, 0);
	assert_int_equal(f.asked, STACK_FRAMES_MAX);
}

/* Crowded out and told again, but never taken for another. */
static void many(void **state)
{
	enum { N = 64, OF = 16 };
	uint64_t table[OF] = { 0 };

	(void)state;
	for (uint64_t k = 1; k <= N; k++) {
		uint64_t number = stack_mix(k, 0);

		assert_false(stack_sent(table, OF, number));
		stack_note_sent(table, OF, number);
		assert_true(stack_sent(table, OF, number));
	}
}

static int by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Processes forked from one have the same addresses and neighbouring numbers: no two of their stacks have one number. */
static void siblings_differ(void **state)
{
	enum { N = 64 };
	static uint64_t numbers[N * N];
	uint64_t task = f.run.thread.values[SHM_TASK];

	(void)state;
	for (uint64_t pid = 0; pid < N; pid++) {
		f.run.thread.values[SHM_TASK] = (1000 + pid) << 32;
		for (uint64_t k = 0; k < N; k++) {
			numbers[pid * N + k] = number(ABI_STACK_USER, 1, 0x555500001000 + k);
			records();
		}
	}
	f.run.thread.values[SHM_TASK] = task;
	qsort(numbers, N * N, sizeof(numbers[0]), by_number);
	for (size_t k = 1; k < N * N; k++)
		assert_true(numbers[k - 1] < numbers[k]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_is_told_once, setup, teardown),
		cmocka_unit_test_setup_teardown(found_without_a_walk, setup, teardown),
		cmocka_unit_test_setup_teardown(one_address, setup, teardown),
		cmocka_unit_test_setup_teardown(none, setup, teardown),
		cmocka_unit_test_setup_teardown(lost, setup, teardown),
		cmocka_unit_test_setup_teardown(as_many_frames_as_there_is_room_for, setup, teardown),
		cmocka_unit_test_setup_teardown(siblings_differ, setup, teardown),
		cmocka_unit_test(many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

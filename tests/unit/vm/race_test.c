/*
 * What several threads do at a time to a segment: rings, tables, lanes, as processes and the tracer do.  Built with the thread
 * sanitizer, which says where an order of memory accesses is missing.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "segment.h"
#include "vm/reader_priv.h"
#include "vm/record.h"
#include "vm/ring.h"
#include "vm/table.h"
#include "vm/table_priv.h"

enum { RECORD_MAX = 1024, RECORDS = 30000, STEPS = 15000, WRITERS = 3 };

struct all {
	struct segment seg;
	struct shm shm;
	struct reader *reader;
	uint32_t writing;		/* threads that still write */
	uint32_t holders[SEG_LANES];
	uint64_t wrong;
};

static int set_up(void **state)
{
	struct all *a = calloc(1, sizeof(*a));
	const char *why;

	segment_make(&a->seg);
	assert_int_equal(shm_open_segment(a->seg.image, a->seg.image_size, a->seg.data, a->seg.data_size, &a->shm, &why), 0);
	assert_int_equal(reader_new(&a->shm, -1, RECORD_MAX, &a->reader), 0);
	*state = a;
	return 0;
}

static int tear_down(void **state)
{
	struct all *a = *state;

	reader_free(a->reader);
	shm_fini(&a->shm);
	segment_free(&a->seg);
	free(a);
	return 0;
}

static uint32_t own_tid(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

static void done(struct all *a)
{
	__atomic_fetch_sub(&a->writing, 1, __ATOMIC_RELEASE);
}

static bool is_written(struct all *a)
{
	return __atomic_load_n(&a->writing, __ATOMIC_ACQUIRE);
}

static void wrong(struct all *a)
{
	__atomic_fetch_add(&a->wrong, 1, __ATOMIC_RELAXED);
}

static void run(struct all *a, void *(*const *fns)(void *), unsigned int n)
{
	pthread_t threads[WRITERS + 1];

	a->writing = n;
	for (unsigned int k = 0; k < n; k++)
		assert_int_equal(pthread_create(&threads[k], NULL, fns[k], a), 0);
	while (is_written(a))
		sched_yield();
	for (unsigned int k = 0; k < n; k++)
		pthread_join(threads[k], NULL);
	assert_int_equal(a->wrong, 0);
}

/* --- the ring of a lane ------------------------------------------------------------------------------- */

static void *write_records(void *ctx)
{
	struct all *a = ctx;
	uint8_t *lane = shm_lane(&a->shm, 1);
	uint64_t words[24];

	for (uint64_t n = 0; n < RECORDS;) {
		for (unsigned int k = 0; k < 24; k++)
			words[k] = k ? ~n : n;
		if (ring_put(&a->shm.maps[SEG_OUT], lane, words, (uint32_t)(32 + 8 * (n % 20))))
			sched_yield();		/* full */
		else
			n++;
	}
	done(a);
	return NULL;
}

struct heard {
	struct all *all;
	uint64_t next;
};

static int hear(void *ctx, void *rec, size_t size)
{
	struct heard *h = ctx;
	const uint64_t *words = rec;

	if (words[0] != h->next || size != 32 + 8 * (h->next % 20))
		wrong(h->all);
	for (size_t k = 1; k < size / 8; k++)
		if (words[k] != ~h->next)
			wrong(h->all);
	h->next++;
	return 0;
}

static void test_ring(void **state)
{
	struct all *a = *state;
	struct heard h = { .all = a };
	pthread_t writer;

	a->writing = 1;
	assert_int_equal(pthread_create(&writer, NULL, write_records, a), 0);
	while (is_written(a) || h.next < RECORDS)
		if (drain_lane(a->reader, 1, hear, &h) <= 0)
			sched_yield();
	pthread_join(writer, NULL);
	assert_int_equal(h.next, RECORDS);
	assert_int_equal(a->wrong, 0);
}

/* --- the table that all share -------------------------------------------------------------------------- */

static void *change_shared(void *ctx)
{
	struct all *a = ctx;
	const struct shm_map *m = &a->shm.maps[SEG_SHARED];
	uint32_t tid = own_tid(), seed = tid;

	for (int step = 0; step < STEPS; step++) {
		uint64_t key[2], value;

		seed = seed * 1664525 + 1013904223;
		key[0] = seed >> 8 & 31;
		key[1] = ~key[0];
		value = key[0] << 32 | tid;
		if (seed >> 28 < 9) {
			if (shared_table_put(m, a->seg.data, key, &value, BPF_ANY, tid))
				wrong(a);
		} else if (seed >> 28 < 13) {
			int err = shared_table_del(m, a->seg.data, key, tid);

			if (err && err != -ENOENT)
				wrong(a);
		} else {
			shared_table_find(m, a->seg.data, key, tid);
		}
	}
	done(a);
	return NULL;
}

/* The @n-th key of those in one chain of the table; number 0 is one that nobody removes. */
static void chained_key(const struct shm_map *m, unsigned int n, uint64_t key[2])
{
	for (key[0] = 0, key[1] = 0;; key[0]++)
		if ((table_hash(key, m->key_size) & m->mask) == 5 && !n--)
			return;
}

static void *change_chain(void *ctx)
{
	struct all *a = ctx;
	const struct shm_map *m = &a->shm.maps[SEG_SHARED];
	uint32_t tid = own_tid(), seed = tid;
	uint64_t keys[6][2];

	for (unsigned int n = 0; n < 6; n++)
		chained_key(m, n + 1, keys[n]);
	for (int step = 0; step < STEPS; step++) {
		seed = seed * 1664525 + 1013904223;
		if (seed >> 31)
			shared_table_put(m, a->seg.data, keys[seed % 6], keys[0], BPF_ANY, tid);
		else
			shared_table_del(m, a->seg.data, keys[seed % 6], tid);
	}
	done(a);
	return NULL;
}

/* A key that nobody removes is found, whatever becomes of its neighbours in the chain. */
static void *find_steady(void *ctx)
{
	struct all *a = ctx;
	const struct shm_map *m = &a->shm.maps[SEG_SHARED];
	uint64_t key[2];

	chained_key(m, 0, key);
	while (__atomic_load_n(&a->writing, __ATOMIC_ACQUIRE) > 1)
		if (!shared_table_find(m, a->seg.data, key, own_tid()))
			wrong(a);
	done(a);
	return NULL;
}

static void test_steady_keys(void **state)
{
	static void *(*const fns[])(void *) = { change_chain, find_steady, change_chain };
	struct all *a = *state;
	uint64_t key[2];

	chained_key(&a->shm.maps[SEG_SHARED], 0, key);
	assert_int_equal(shared_table_put(&a->shm.maps[SEG_SHARED], a->seg.data, key, key, BPF_ANY, own_tid()), 0);
	run(a, fns, WRITERS);
}

static void test_shared_table(void **state)
{
	static void *(*const fns[])(void *) = { change_shared, change_shared, change_shared };
	struct all *a = *state;
	const struct shm_map *m = &a->shm.maps[SEG_SHARED];
	struct vm_elem e;
	unsigned int n = 0;
	bool seen[32] = { false };

	run(a, fns, WRITERS);
	for (uint64_t from = 0; table_next(m, a->seg.data, from, &e); from = e.number + 1) {
		const uint64_t *key = (const void *)(uintptr_t)e.key, *value = (const void *)(uintptr_t)e.value;

		assert_true(key[0] < 32 && key[1] == ~key[0] && !seen[key[0]]);
		assert_int_equal(*value >> 32, key[0]);
		seen[key[0]] = true;
		n++;
	}
	assert_true(n <= 32);
}

/* --- lanes ---------------------------------------------------------------------------------------------- */

static void *take_lanes(void *ctx)
{
	struct all *a = ctx;

	for (int step = 0; step < 300; step++) {
		struct shm_run r;

		/* As processes would: by number they differ. */
		if (shm_run_init(&r, &a->shm, -1, own_tid(), 1)) {
			sched_yield();
			continue;
		}
		if (__atomic_exchange_n(&a->holders[r.number], 1, __ATOMIC_RELAXED))
			wrong(a);
		shm_set_tid(&r, own_tid());
		__atomic_store_n(&a->holders[r.number], 0, __ATOMIC_RELAXED);
		shm_run_fini(&r);
	}
	done(a);
	return NULL;
}

static void test_lanes(void **state)
{
	static void *(*const fns[])(void *) = { take_lanes, take_lanes, take_lanes };

	run(*state, fns, WRITERS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_ring, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_shared_table, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_steady_keys, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_lanes, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

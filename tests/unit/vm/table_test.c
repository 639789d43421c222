/* Hash tables against a plain array of what must be in them; readers and killed writers. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "segment.h"
#include "vm/table_priv.h"

enum { KEYS = 3 * SEG_ENTRIES / 2 };

struct fixture {
	struct segment seg;
	struct shm shm;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const char *why;

	segment_make(&f->seg);
	assert_int_equal(shm_open_segment(f->seg.image, f->seg.image_size, f->seg.data, f->seg.data_size, &f->shm, &why), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	shm_fini(&f->shm);
	segment_free(&f->seg);
	free(f);
	return 0;
}

static const uint64_t *make_key(uint64_t key[2], unsigned int n)
{
	key[0] = n;
	key[1] = n % 7;
	return key;
}

/* Each element in use of the table at @at, in place: nobody writes to it meanwhile. */
static void table_each(const struct shm_map *m, uint8_t *at, void (*each)(void *ctx, const void *key, const void *value),
		       void *ctx)
{
	struct vm_elem e;

	for (uint64_t n = 0; table_next(m, at - m->off, n, &e); n = e.number + 1)
		each(ctx, (const void *)(uintptr_t)e.key, (const void *)(uintptr_t)e.value);
}

struct seen {
	uint64_t values[KEYS];
	unsigned int n, bad;
};

static void see(void *ctx, const void *key, const void *value)
{
	struct seen *s = ctx;
	const uint64_t *k = key;

	s->n++;
	if (k[0] >= KEYS || k[1] != k[0] % 7)
		s->bad++;
	else
		s->values[k[0]] += *(const uint64_t *)value;
}

/* What is walked over is what can be found; returns how many. */
static unsigned int walk(const struct shm_map *m, uint8_t *base, bool shared)
{
	struct vm_elem e = { .number = 0 };
	unsigned int n = 0;

	for (uint64_t from = 0; table_next(m, base, from, &e); from = e.number + 1) {
		const void *key = (const void *)(uintptr_t)e.key;
		void *found = shared ? shared_table_find(m, base, key, 1) : lane_table_find(m, base, key);

		assert_true(e.number >= from);
		assert_ptr_equal(found, (void *)(uintptr_t)e.value);
		n++;
	}
	return n;
}

/* A program's call of the helper @number; a table of a lane, whose own functions know nothing of what was found last. */
static uint64_t help(struct shm_run *r, uint32_t number, const struct shm_map *m, const void *key, const void *value,
		     uint64_t flags)
{
	uint32_t k = 0;

	while (shm_helpers[k].number != number)
		k++;
	return shm_helpers[k].fn((uintptr_t)m, (uintptr_t)key, (uintptr_t)value, flags, 0, &r->thread);
}

/* Random operations, often with the key of the one before: of the shared table; else of the lane's, by @helpers or without. */
static void against_model(struct fixture *f, bool shared, struct shm_run *helpers)
{
	const struct shm_map *m = &f->shm.maps[shared ? SEG_SHARED : SEG_LANE_HASH];
	uint8_t *base = shared ? f->seg.data : helpers ? helpers->lane : f->seg.data + f->shm.lanes_off;
	uint64_t model[KEYS] = { 0 }, key[2], v, *p;
	unsigned int live = 0, k = 0;

	srand(7);
	for (int step = 0; step < 200000; step++) {
		unsigned int op = (unsigned int)rand() % 4;
		int err;

		k = rand() % 2 ? k : (unsigned int)rand() % KEYS;
		make_key(key, k);
		v = (uint64_t)step + 1;
		if (op < 2) {
			uint64_t flags = op ? BPF_NOEXIST : BPF_ANY;

			err = shared ? shared_table_put(m, base, key, &v, flags, 1) :
			      helpers ? (int)help(helpers, BPF_FUNC_map_update_elem, m, key, &v, flags) :
					lane_table_put(m, base, key, &v, flags);
			if (model[k] && op) {
				assert_int_equal(err, -EEXIST);
			} else if (!model[k] && live == SEG_ENTRIES) {
				assert_int_equal(err, -E2BIG);
			} else {
				assert_int_equal(err, 0);
				live += !model[k];
				model[k] = v;
			}
		} else if (op == 2) {
			err = shared ? shared_table_del(m, base, key, 1) :
			      helpers ? (int)help(helpers, BPF_FUNC_map_delete_elem, m, key, NULL, 0) :
					lane_table_del(m, base, key);
			assert_int_equal(err, model[k] ? 0 : -ENOENT);
			live -= !!model[k];
			model[k] = 0;
		}
		p = shared ? shared_table_find(m, base, key, 1) :
		    helpers ? (uint64_t *)(uintptr_t)help(helpers, BPF_FUNC_map_lookup_elem, m, key, NULL, 0) :
			      lane_table_find(m, base, key);
		assert_true(model[k] ? p && *p == model[k] : !p);
		if (step % 1000 == 0) {
			struct seen seen = { .n = 0 };

			if (!shared)
				lane_table_repair(m, base);
			table_each(m, base + m->off, see, &seen);
			assert_int_equal(seen.n, live);
			assert_int_equal(walk(m, base, shared), live);
			assert_memory_equal(seen.values, model, sizeof(model));
		}
	}
}

static void lane_table(void **state)
{
	against_model(*state, false, NULL);
}

static unsigned int fill(const struct shm_map *m, uint8_t *lane)
{
	unsigned int n = 0;
	uint64_t key[2], one = 1;

	for (unsigned int k = 0; k < KEYS; k++) {
		make_key(key, k);
		n += !lane_table_put(m, lane, key, &one, BPF_ANY);
	}
	return n;
}

/* Helpers leave an element that they removed in the table: it never takes the room of another, nor from the lane's next user. */
static void lane_table_by_helpers(void **state)
{
	struct fixture *f = *state;
	const struct shm_map *m = &f->shm.maps[SEG_LANE_HASH];
	uint64_t key[2], one = 1;
	struct shm_run r;

	assert_int_equal(shm_run_init(&r, &f->shm, 0, (uint32_t)getpid(), 1), 0);
	against_model(f, false, &r);
	for (unsigned int k = 0; k < KEYS; k++) {
		make_key(key, k);
		help(&r, BPF_FUNC_map_update_elem, m, key, &one, BPF_ANY);
		help(&r, BPF_FUNC_map_lookup_elem, m, key, NULL, 0);
		help(&r, BPF_FUNC_map_delete_elem, m, key, NULL, 0);
	}
	assert_int_equal(walk(m, r.lane, false), 0);
	shm_run_fini(&r);
	assert_int_equal(fill(m, f->seg.data + f->shm.lanes_off), SEG_ENTRIES);
}

/*
 * Elements that are all zero make room for others, for those who say so and when there is none left; what is not zero stays.
 * Without such elements what does not fit is lost, and once there are some again they are found, at the latest after some losses.
 */
static void zeros_make_room(void **state)
{
	enum { FLAGS = BPF_NOEXIST | ABI_UPDATE_ZERO_IS_NONE, LOSSES = 2000 };
	struct fixture *f = *state;
	const struct shm_map *m = &f->shm.maps[SEG_LANE_HASH];
	uint64_t key[2], one = 1, zero = 0, *v;
	struct shm_run r;
	unsigned int n = 0;

	assert_int_equal(shm_run_init(&r, &f->shm, 0, (uint32_t)getpid(), 1), 0);
	for (unsigned int k = 0; k < SEG_ENTRIES; k++) {
		make_key(key, k);
		assert_int_equal(help(&r, BPF_FUNC_map_update_elem, m, key, k % 3 ? &zero : &one, FLAGS), 0);
		assert_int_equal((int)help(&r, BPF_FUNC_map_update_elem, m, key, &zero, FLAGS), -EEXIST);
	}
	make_key(key, SEG_ENTRIES);
	assert_int_equal((int)help(&r, BPF_FUNC_map_update_elem, m, key, &one, BPF_NOEXIST), -E2BIG);
	for (unsigned int k = SEG_ENTRIES; k < KEYS; k++) {
		make_key(key, k);
		assert_int_equal(help(&r, BPF_FUNC_map_update_elem, m, key, &one, FLAGS), 0);
	}
	for (unsigned int k = 0; k < SEG_ENTRIES; k++) {
		make_key(key, k);
		v = lane_table_find(m, r.lane, key);
		assert_true(k % 3 ? !v || !*v : v && *v == 1);
	}
	for (n = 0; !lane_table_put(m, r.lane, make_key(key, KEYS + n), &one, BPF_NOEXIST); n++)
		;
	assert_int_equal((int)help(&r, BPF_FUNC_map_update_elem, m, key, &one, FLAGS), -E2BIG);
	make_key(key, 0);
	v = lane_table_find(m, r.lane, key);
	*v = 0;
	make_key(key, KEYS + n);
	for (n = 0; n < LOSSES && (int)help(&r, BPF_FUNC_map_update_elem, m, key, &one, FLAGS) == -E2BIG; n++)
		;
	assert_in_range(n, 0, LOSSES - 1);
	assert_non_null(lane_table_find(m, r.lane, key));
	shm_run_fini(&r);
}

/* The same where the user of the lane was killed. */
static void left_by_the_dead(void **state)
{
	struct fixture *f = *state;
	const struct shm_map *m = &f->shm.maps[SEG_LANE_HASH];
	uint64_t key[2] = { KEYS, 1 }, one = 1;
	struct shm_run r;
	pid_t pid = fork();
	int status;

	if (!pid) {
		bool good = !shm_run_init(&r, &f->shm, 1, (uint32_t)getpid(), 1) &&
			    !help(&r, BPF_FUNC_map_update_elem, m, key, &one, BPF_ANY) &&
			    help(&r, BPF_FUNC_map_lookup_elem, m, key, NULL, 0) &&
			    !help(&r, BPF_FUNC_map_delete_elem, m, key, NULL, 0) &&
			    !help(&r, BPF_FUNC_map_lookup_elem, m, key, NULL, 0);

		_exit(good ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	assert_int_equal(shm_run_init(&r, &f->shm, 1, (uint32_t)getpid(), 2), 0);
	assert_int_equal(fill(m, r.lane), SEG_ENTRIES);
	shm_run_fini(&r);
}

static void shared_table(void **state)
{
	against_model(*state, true, NULL);
}

/* What the tracer removes makes room for others, and comes back when its key does. */
static void tracer_removes(void **state)
{
	struct fixture *f = *state;
	const struct shm_map *m = &f->shm.maps[SEG_LANE_HASH];
	uint8_t *lane = f->seg.data + f->shm.lanes_off;
	uint64_t key[2], one = 1;

	for (unsigned int k = 0; k < SEG_ENTRIES; k++) {
		make_key(key, k);
		assert_int_equal(lane_table_put(m, lane, key, &one, BPF_ANY), 0);
	}
	for (unsigned int k = 0; k < 10; k++) {
		make_key(key, k);
		assert_int_equal(lane_table_kill(m, lane, key), 0);
		assert_int_equal(lane_table_kill(m, lane, key), -ENOENT);
		assert_null(lane_table_find(m, lane, key));
	}
	make_key(key, 3);
	assert_int_equal(lane_table_put(m, lane, key, &one, BPF_NOEXIST), 0);
	assert_non_null(lane_table_find(m, lane, key));
	for (unsigned int k = SEG_ENTRIES; k < SEG_ENTRIES + 9; k++) {
		make_key(key, k);
		assert_int_equal(lane_table_put(m, lane, key, &one, BPF_ANY), 0);
	}
	make_key(key, SEG_ENTRIES + 9);
	assert_int_equal(lane_table_put(m, lane, key, &one, BPF_ANY), -E2BIG);
	make_key(key, 3);
	assert_non_null(lane_table_find(m, lane, key));
}

/* How far the index of the lane's table is in use: 1 + its last word that is not 0. */
static uint32_t index_used(const struct shm_map *m, uint8_t *lane)
{
	const uint32_t *index = table_index(m, lane);
	uint32_t n = m->mask + 1;

	while (n && !index[n - 1])
		n--;
	return n;
}

static void put_keys(const struct shm_map *m, uint8_t *lane, unsigned int from, unsigned int to)
{
	uint64_t key[2], v = 1;

	for (unsigned int k = from; k < to; k++)
		assert_int_equal(lane_table_put(m, lane, make_key(key, k), &v, BPF_NOEXIST), 0);
}

/* Keys that come and go stay where a few of them fit; more of them at once have the whole index. */
static void index_grows(void **state)
{
	enum { FEW = ABI_TABLE_FIRST / 2 - 1 };
	struct fixture *f = *state;
	const struct shm_map *m = &f->shm.maps[SEG_LANE_HASH];
	uint8_t *lane = f->seg.data + f->shm.lanes_off;
	uint64_t key[2];

	for (unsigned int k = 0; k < 1000; k++) {
		put_keys(m, lane, k, k + 1);
		if (k >= FEW)
			assert_int_equal(lane_table_del(m, lane, make_key(key, k - FEW)), 0);
		if (k >= FEW)
			assert_non_null(lane_table_find(m, lane, make_key(key, k - 1)));
	}
	assert_in_range(index_used(m, lane), FEW, ABI_TABLE_FIRST);
	assert_int_equal(table_mask(m, lane), ABI_TABLE_FIRST - 1);
	put_keys(m, lane, 0, SEG_ENTRIES - FEW);
	assert_int_equal(table_mask(m, lane), m->mask);
	assert_in_range(index_used(m, lane), ABI_TABLE_FIRST + 1, m->mask + 1);
	assert_int_equal(walk(m, lane, false), SEG_ENTRIES);
}

/* While the index grows the tracer finds a key all the same; and each moment of it can be an owner's last. */
static void growth_cut_off(void **state)
{
	enum { KEYS_THEN = ABI_TABLE_FIRST / 2 + 1 };	/* with the last one it grew */
	struct fixture *f = *state;
	const struct shm_map *m = &f->shm.maps[SEG_LANE_HASH];
	uint8_t *lane = f->seg.data + f->shm.lanes_off;
	struct abi_table *t = table_header(m, lane);
	uint32_t *index = table_index(m, lane);
	uint64_t key[2];

	put_keys(m, lane, 0, KEYS_THEN);
	for (unsigned int step = 0; step <= KEYS_THEN + 1; step++) {
		struct abi_lane *l = (struct abi_lane *)lane;
		unsigned int left = 0;

		/* The old mask and no index, the new one and none, with the first element ... */
		for (uint32_t k = 0; k <= m->mask; k++) {
			if (!step || index[k] > step - 1)
				index[k] = 0;
		}
		t->mask = step ? m->mask : 0;
		l->changing = 1;
		if (step % 10 == 3) {
			assert_int_equal(lane_table_kill(m, lane, make_key(key, step % KEYS_THEN)), 0);
			assert_int_equal(lane_table_kill(m, lane, key), -ENOENT);
			left++;
		}
		lane_table_repair(m, lane);
		l->changing = 0;
		assert_int_equal(t->live, KEYS_THEN);
		assert_int_equal(walk(m, lane, false), KEYS_THEN - left);
		if (left)
			put_keys(m, lane, step % KEYS_THEN, step % KEYS_THEN + 1);
	}
}

/* Several processes add to the same keys; what they added is what is there. */
static void shared_by_processes(void **state)
{
	enum { PROCESSES = 4, ROUNDS = 20000 };
	struct fixture *f = *state;
	const struct shm_map *m = &f->shm.maps[SEG_SHARED];
	struct seen seen = { .n = 0 };
	uint64_t key[2], zero = 0, sum = 0;

	for (int n = 0; n < PROCESSES; n++) {
		if (fork())
			continue;
		for (unsigned int k = 0; k < ROUNDS; k++) {
			uint64_t *p;

			make_key(key, k % SEG_ENTRIES);
			p = shared_table_find(m, f->seg.data, key, (uint32_t)getpid());
			if (!p) {
				shared_table_put(m, f->seg.data, key, &zero, BPF_NOEXIST, (uint32_t)getpid());
				p = shared_table_find(m, f->seg.data, key, (uint32_t)getpid());
			}
			__atomic_fetch_add(p, 1, __ATOMIC_RELAXED);
		}
		_exit(0);
	}
	while (wait(NULL) > 0)
		;
	table_each(m, f->seg.data + m->off, see, &seen);
	assert_int_equal(seen.n, SEG_ENTRIES);
	assert_int_equal(seen.bad, 0);
	for (unsigned int k = 0; k < KEYS; k++)
		sum += seen.values[k];
	assert_int_equal(sum, PROCESSES * ROUNDS);
}

/* Writers are killed anywhere; the others go on, and nothing false is in the tables. */
static void killed_writers(void **state)
{
	struct fixture *f = *state;
	const struct shm_map *shared = &f->shm.maps[SEG_SHARED], *own = &f->shm.maps[SEG_LANE_HASH];
	struct seen seen;

	for (int round = 0; round < 60; round++) {
		pid_t pids[3];

		for (int n = 0; n < 3; n++) {
			pids[n] = fork();
			if (!pids[n]) {
				struct shm_run r;
				uint64_t key[2], v = 1;
				unsigned int k = (unsigned int)n;

				if (shm_run_init(&r, &f->shm, n, (uint32_t)getpid(), 1))
					_exit(1);
				for (;; k = k * 1103515245 + 12345) {
					make_key(key, (k >> 16) % KEYS);
					shared_table_put(shared, f->seg.data, key, &v, BPF_ANY, (uint32_t)getpid());
					lane_table_put(own, r.lane, key, &v, BPF_ANY);
					make_key(key, (k >> 8) % KEYS);
					shared_table_del(shared, f->seg.data, key, (uint32_t)getpid());
					lane_table_del(own, r.lane, key);
				}
			}
		}
		usleep(1000 + (useconds_t)round * 37);
		for (int n = 0; n < 3; n++)
			kill(pids[n], SIGKILL);
		while (wait(NULL) > 0)
			;
		memset(&seen, 0, sizeof(seen));
		table_each(shared, f->seg.data + shared->off, see, &seen);
		assert_int_equal(seen.bad, 0);
		assert_int_equal(walk(shared, f->seg.data, true), seen.n);
		for (int n = 0; n < 3; n++) {
			memset(&seen, 0, sizeof(seen));
			table_each(own, f->seg.data + f->shm.lanes_off + (uint64_t)n * f->shm.lane_size + own->off, see,
				   &seen);
			assert_int_equal(seen.bad, 0);
		}
	}
	/* Each key can still be put, found and taken out once. */
	for (unsigned int k = 0; k < SEG_ENTRIES / 2; k++) {
		struct shm_run r;
		uint64_t key[2], v = 5, *p;

		make_key(key, k);
		assert_int_equal(shm_run_init(&r, &f->shm, 1, (uint32_t)getpid(), 1), 0);
		assert_int_equal(lane_table_put(own, r.lane, key, &v, BPF_ANY), 0);
		p = lane_table_find(own, r.lane, key);
		assert_true(p && *p == 5);
		assert_int_equal(lane_table_del(own, r.lane, key), 0);
		assert_null(lane_table_find(own, r.lane, key));
		shm_run_fini(&r);
		assert_int_equal(shared_table_put(shared, f->seg.data, key, &v, BPF_ANY, 1), 0);
		assert_int_equal(shared_table_del(shared, f->seg.data, key, 1), 0);
		assert_null(shared_table_find(shared, f->seg.data, key, 1));
	}
}

/* Random bytes instead of a table: any answer, but no access outside. */
static void scribbled(void **state)
{
	struct fixture *f = *state;
	struct seen seen = { .n = 0 };

	srand(11);
	for (int round = 0; round < 300; round++) {
		uint64_t key[2], v = 1;

		for (uint64_t k = sizeof(struct abi_data); k < f->seg.data_size; k++)
			f->seg.data[k] = (uint8_t)(rand() % 3 ? rand() % 4 : rand());
		for (unsigned int n = 0; n < 20; n++) {
			make_key(key, (unsigned int)rand() % KEYS);
			for (int shared = 0; shared < 2; shared++) {
				const struct shm_map *m = &f->shm.maps[shared ? SEG_SHARED : SEG_LANE_HASH];
				uint8_t *base = shared ? f->seg.data : f->seg.data + f->shm.lanes_off;

				memset(f->seg.data + m->off + m->locks_off, 0, shared ? ((size_t)m->mask + 1) * 4 : 0);
				if (shared) {
					shared_table_find(m, base, key, 1);
					shared_table_put(m, base, key, &v, BPF_ANY, 1);
					shared_table_del(m, base, key, 1);
				} else {
					lane_table_find(m, base, key);
					lane_table_put(m, base, key, &v, BPF_ANY);
					lane_table_del(m, base, key);
					lane_table_kill(m, base, key);
					lane_table_repair(m, base);
				}
				table_each(m, base + m->off, see, &seen);
				for (struct vm_elem e = { 0 }; table_next(m, base, e.number, &e); e.number++)
					assert_in_range(e.key, (uintptr_t)f->seg.data,
							(uintptr_t)f->seg.data + f->seg.data_size - m->key_size - m->value_size);
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(lane_table, setup, teardown),
		cmocka_unit_test_setup_teardown(lane_table_by_helpers, setup, teardown),
		cmocka_unit_test_setup_teardown(zeros_make_room, setup, teardown),
		cmocka_unit_test_setup_teardown(left_by_the_dead, setup, teardown),
		cmocka_unit_test_setup_teardown(shared_table, setup, teardown),
		cmocka_unit_test_setup_teardown(tracer_removes, setup, teardown),
		cmocka_unit_test_setup_teardown(index_grows, setup, teardown),
		cmocka_unit_test_setup_teardown(growth_cut_off, setup, teardown),
		cmocka_unit_test_setup_teardown(shared_by_processes, setup, teardown),
		cmocka_unit_test_setup_teardown(killed_writers, setup, teardown),
		cmocka_unit_test_setup_teardown(scribbled, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

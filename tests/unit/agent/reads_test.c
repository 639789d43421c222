/*
 * Reading objects that other threads change, in an interpreter without a GIL: an answer that is given rests on bytes that all are
 * there at its end, and one is refused only if some were not, or a lock was held.  The other threads are played between the
 * readings; they change what nobody has locked.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/agent.h"
#include "agent/object.h"
#include "agent/reads.h"
#include "vm/memory.h"

enum { OBJECTS = 24, ROUNDS = 6000, READINGS = 12, QUESTIONS = 6, LOCK = 10, CONTENT = 16, CONTENT_BYTES = 1200 };

struct shared { uint8_t bytes[CONTENT + CONTENT_BYTES]; } __attribute__((aligned(16)));

static struct shared objects[OBJECTS];
static struct shm_run *run;

/* xorshift64*: the same numbers with each run. */
static uint64_t seed = 14;

static uint32_t any(uint32_t below)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return (uint32_t)((seed * 2685821657736338717u) >> 32) % below;
}

static uint64_t at(const struct shared *o)
{
	return (uint64_t)(uintptr_t)o;
}

static void unlock(void *mutex)
{
	assert_int_equal(*(uint8_t *)mutex & 1, 1);
	*(uint8_t *)mutex = 0;
}

/* Objects that another thread has locked at this moment. */
static bool others[OBJECTS];

static void others_run(void)
{
	unsigned k = any(OBJECTS);
	struct shared *o = &objects[k];

	if (any(3))
		return;
	if (others[k]) {
		others[k] = false;
		o->bytes[LOCK] = 0;
	} else if (!o->bytes[LOCK]) {
		if (any(2))
			o->bytes[CONTENT + any(CONTENT_BYTES)]++;
		if (!any(6)) {
			others[k] = true;
			o->bytes[LOCK] = 1;
		}
	}
}

/* What a question has read, and that by which its object was found. */
struct reading { unsigned object; uint32_t off, size; uint8_t bytes[CONTENT_BYTES]; };
static struct question {
	struct reading readings[READINGS];
	unsigned n, object, given, finder;
	bool refused_rightly;
} questions[QUESTIONS];

static bool is_same(const struct question *q)
{
	for (unsigned k = 0; k < q->n; k++) {
		const struct reading *r = &q->readings[k];

		if (memcmp(objects[r->object].bytes + CONTENT + r->off, r->bytes, r->size))
			return false;
	}
	return true;
}

static void read_some(struct question *q, unsigned object)
{
	struct reading *r = &q->readings[q->n++];

	*r = (struct reading){ .object = object, .off = any(CONTENT_BYTES) };
	r->size = 1 + any(any(4) ? 16 : CONTENT_BYTES);
	if (r->size > CONTENT_BYTES - r->off)
		r->size = CONTENT_BYTES - r->off;
	q->refused_rightly |= others[object];
	reads_open(run, at(&objects[object]));
	assert_int_equal(memory_read(run, r->bytes, r->size, at(&objects[object]) + CONTENT + r->off), 0);
}

static void answers(void **state)
{
	unsigned given = 0, refused = 0;

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned n = 0;

		object_forget();
		if (any(4))	/* the event's own object */
			object_lives(at(&objects[0]));
		for (unsigned asked = 0; asked < QUESTIONS; asked++) {
			struct question *q = &questions[n];
			bool changed;

			*q = (struct question){ .finder = n ? 1 + any(n) : 0 };
			q->object = q->finder && any(4) ? questions[q->finder - 1].given : 0;
			if (q->object != (q->finder ? questions[q->finder - 1].given : 0))
				q->finder = 0;
			for (unsigned k = 0; k < n; k++)	/* the last one that found it counts */
				if (questions[k].given == q->object)
					q->finder = k + 1;
			reads_begin(run, at(&objects[q->object]));
			if (!any(8))
				reads_loose();
			for (unsigned k = 1 + any(READINGS); k; k--) {
				others_run();
				read_some(q, k == 1 ? q->object : any(OBJECTS));
			}
			others_run();
			q->given = any(OBJECTS);
			changed = !is_same(q);
			for (unsigned f = q->finder; f; f = questions[f - 1].finder)
				changed |= !is_same(&questions[f - 1]);
			if (reads_end(run, at(&objects[q->given]))) {
				assert_false(changed);
				n++;
				given++;
			} else {
				refused++;
				for (unsigned f = n + 1; f; f = questions[f - 1].finder)	/* a lock may be held now */
					for (unsigned k = 0; k < questions[f - 1].n; k++)
						changed |= others[questions[f - 1].readings[k].object];
				assert_true(changed || q->refused_rightly);
			}
			assert_null(run->note);
		}
		for (unsigned k = 0; k < OBJECTS; k++)	/* what was locked for an answer is still */
			if (objects[k].bytes[LOCK] && !others[k])
				assert_true(agent.reads.nheld > 0);
		reads_release();
		for (unsigned k = 0; k < OBJECTS; k++)
			assert_int_equal(objects[k].bytes[LOCK], others[k]);
	}
	assert_true(given > ROUNDS && refused > ROUNDS / 10);
}

/* An answer that does not fit is not given, and nothing stays locked. */
static void too_much(void **state)
{
	uint8_t bytes[8];

	(void)state;
	memset(others, 0, sizeof(others));
	for (unsigned k = 0; k < OBJECTS; k++)
		objects[k].bytes[LOCK] = 0;
	object_forget();
	object_lives(at(&objects[0]));
	reads_begin(run, at(&objects[0]));
	reads_open(run, at(&objects[0]));
	for (unsigned k = 0; k < 5000; k++)
		assert_int_equal(memory_read(run, bytes, sizeof(bytes), at(&objects[0]) + CONTENT + k % 16), 0);
	assert_false(reads_end(run, 0));
	assert_int_equal(objects[0].bytes[LOCK], 0);
	/* Until what was read so far is forgotten. */
	reads_begin(run, at(&objects[0]));
	for (unsigned k = 0; k < 5000; k++) {
		if (k % 1000 == 0)
			reads_forget();
		assert_int_equal(memory_read(run, bytes, sizeof(bytes), at(&objects[0]) + CONTENT + k % 16), 0);
	}
	assert_true(reads_end(run, 0));
	/* Addresses are given so often in an event. */
	for (unsigned k = 0; k < READS_ANSWERS; k++) {
		reads_begin(run, at(&objects[0]));
		assert_true(reads_end(run, at(&objects[1])));
	}
	reads_begin(run, at(&objects[0]));
	assert_false(reads_end(run, at(&objects[1])));
	reads_begin(run, at(&objects[0]));
	assert_true(reads_end(run, 7));		/* no address */
	reads_release();
}

/* With a GIL nothing is noted. */
static void with_gil(void **state)
{
	(void)state;
	agent.py.free_threaded = false;
	object_forget();
	reads_begin(run, at(&objects[0]));
	assert_null(run->note);
	reads_open(run, at(&objects[0]));
	assert_int_equal(objects[0].bytes[LOCK], 0);
	assert_true(reads_end(run, at(&objects[1])));
	agent.py.free_threaded = true;
}

static int set_up(void **state)
{
	(void)state;
	agent.py.free_threaded = true;
	agent.py.PyMutex_Unlock = unlock;
	run = object_reader();
	return reads_prepare() ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	free(agent.reads.rows);
	agent.reads.rows = NULL;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers),
		cmocka_unit_test(too_much),
		cmocka_unit_test(with_gil),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}

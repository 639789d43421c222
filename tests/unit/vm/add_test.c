/* Counting under strings, by address and by the object that owns them, against what the table then says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "segment.h"
#include "vm/add.h"
#include "vm/table.h"

enum { OWNERS = 3 * SHM_OBJECTS / 2 };

/* As a code object refers to its name. */
struct owner {
	uint64_t header[2];
	const char *name;
	uint64_t rest[13];
};

struct fixture {
	struct segment seg;
	struct shm shm;
	struct shm_run run;
	const struct shm_map *map;
	struct add_objects in;
	uint64_t strings[1];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	segment_begin(&f->seg, &f->shm, &f->run);
	f->map = &f->shm.maps[SEG_LANE_HASH];
	f->run.strings = f->strings;
	f->run.nstrings = 1;
	f->in = (struct add_objects){ f->run.objects, (struct abi_lane *)f->run.lane, offsetof(struct owner, name),
				      SEG_LANE_HASH, NULL, 0 };
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	segment_end(&f->seg, &f->shm, &f->run);
	free(f);
	return 0;
}

/* The slow way, as a program does it. */
static uint64_t add(struct fixture *f, const char *s)
{
	f->strings[0] = (uint64_t)(uintptr_t)s;
	return add_by_string((uint64_t)(uintptr_t)f->map, (uint64_t)(uintptr_t)s, 1, 0, 1, &f->run.thread);
}

static uint64_t learn(struct fixture *f, const struct owner *o, uint64_t *forgotten)
{
	struct add_pair was, pair = add_learn_object(&f->run, &f->in, 1, (uint64_t)(uintptr_t)o, (uint64_t)(uintptr_t)o->name, &was);

	assert_int_equal(pair.other, 0);
	assert_int_equal(was.other, 0);
	*forgotten = was.object;
	return pair.object;
}

static bool count(struct fixture *f, const struct owner *o)
{
	return add_count_object(&f->in, (uint64_t)(uintptr_t)o);
}

static uint64_t value(struct fixture *f, const char *s)
{
	char key[16] = "";
	uint64_t *v;

	snprintf(key, sizeof(key), "%.15s", s);
	v = lane_table_find(f->map, f->run.lane, key);
	return v ? *v : 0;
}

static void by_object(void **state)
{
	struct fixture *f = *state;
	static const char abc[32] = "abc", xyz[32] = "xyz";
	struct owner o = { .name = abc }, other = { .name = abc };
	uint64_t forgotten;
	char key[16] = "abc";

	assert_false(count(f, &o));
	assert_int_equal(learn(f, &o, &forgotten), 0);	/* not counted yet */
	assert_int_equal(add(f, abc), 0);
	assert_int_equal(learn(f, &o, &forgotten), (uint64_t)(uintptr_t)abc);
	assert_int_equal(forgotten, 0);
	assert_true(count(f, &o));
	assert_false(count(f, &other));
	assert_int_equal(value(f, abc), 2);

	/* Another string takes the place. */
	o.name = xyz;
	assert_false(count(f, &o));
	assert_int_equal(learn(f, &o, &forgotten), 0);
	assert_int_equal(add(f, xyz), 0);
	assert_int_equal(learn(f, &o, &forgotten), (uint64_t)(uintptr_t)xyz);
	assert_int_equal(forgotten, (uint64_t)(uintptr_t)abc);
	assert_true(count(f, &o));
	assert_int_equal(value(f, xyz), 2);
	assert_int_equal(value(f, abc), 2);

	/* The tracer removes it: it begins anew. */
	memcpy(key, "xyz", 4);
	assert_int_equal(lane_table_kill(f->map, f->run.lane, key), 0);
	assert_false(count(f, &o));
	assert_int_equal(add(f, xyz), 0);
	assert_int_equal(value(f, xyz), 1);
	assert_true(count(f, &o));
	assert_int_equal(value(f, xyz), 2);

	/* An element goes to another key. */
	assert_int_equal(lane_table_del(f->map, f->run.lane, key), 0);
	memcpy(key, "new", 4);
	assert_int_equal(lane_table_put(f->map, f->run.lane, key, NULL, BPF_ANY), 0);
	assert_false(count(f, &o));
	assert_int_equal(value(f, "new"), 0);
}

/* The way of a program that finds the element by itself; NULL: it finds none. */
static bool learn_found(struct fixture *f, const struct owner *o, const char *key, struct add_pair *learned, struct add_pair *forgotten)
{
	add_forget_found(&f->run, &f->in, 1);
	if (key)
		f->run.recent[SEG_LANE_HASH].found = (struct abi_elem *)((uint8_t *)lane_table_find(f->map, f->run.lane, key) -
									  f->map->key_size - sizeof(struct abi_elem));
	*learned = add_learn_found(&f->run, &f->in, 1, (uint64_t)(uintptr_t)o, forgotten);
	return learned->object;
}

/* By two objects of the owner: the element is another one if either is another. */
static void by_what_was_found(void **state)
{
	struct fixture *f = *state;
	static const char abc[32] = "abc", xyz[32] = "xyz";
	struct owner o = { .name = abc, .rest = { (uint64_t)(uintptr_t)xyz } };
	struct add_pair learned, forgotten;
	char key[16] = "key", two[16] = "two";

	f->in.others = f->run.others;
	f->in.other = offsetof(struct owner, rest);
	assert_int_equal(lane_table_put(f->map, f->run.lane, key, NULL, BPF_ANY), 0);
	assert_int_equal(lane_table_put(f->map, f->run.lane, two, NULL, BPF_ANY), 0);
	assert_false(learn_found(f, &o, NULL, &learned, &forgotten));	/* its run has faulted, or there was no room */
	assert_false(count(f, &o));
	assert_true(learn_found(f, &o, key, &learned, &forgotten));
	assert_int_equal(learned.object, (uint64_t)(uintptr_t)abc);
	assert_int_equal(learned.other, (uint64_t)(uintptr_t)xyz);
	assert_int_equal(forgotten.object | forgotten.other, 0);
	assert_true(count(f, &o));
	assert_int_equal(value(f, key), 1);

	o.rest[0] = (uint64_t)(uintptr_t)abc;
	assert_false(count(f, &o));
	assert_true(learn_found(f, &o, two, &learned, &forgotten));
	assert_int_equal(forgotten.object, (uint64_t)(uintptr_t)abc);
	assert_int_equal(forgotten.other, (uint64_t)(uintptr_t)xyz);
	assert_true(count(f, &o));
	assert_int_equal(value(f, two), 1);
	assert_int_equal(value(f, key), 1);
	o.name = xyz;
	assert_false(count(f, &o));
	o.name = abc;
	assert_true(count(f, &o));

	/* The tracer removes it; an element goes to another key. */
	assert_int_equal(lane_table_kill(f->map, f->run.lane, two), 0);
	assert_false(count(f, &o));
	assert_true(learn_found(f, &o, key, &learned, &forgotten));
	assert_true(count(f, &o));
	assert_int_equal(lane_table_del(f->map, f->run.lane, key), 0);
	assert_int_equal(lane_table_put(f->map, f->run.lane, two, NULL, BPF_ANY), 0);
	assert_false(count(f, &o));
}

/* What an image says of its maps is not believed. */
static void tables(void **state)
{
	const struct fixture *f = *state;

	assert_true(shm_good_tables(&f->shm, f->map, 1));
	assert_false(shm_good_tables(&f->shm, f->map, 0));
	assert_false(shm_good_tables(&f->shm, f->map, f->shm.nmaps));
	assert_false(shm_good_tables(&f->shm, f->map, UINT32_MAX));
	for (uint32_t k = 0; k < f->shm.nmaps; k++)
		assert_int_equal(shm_good_tables(&f->shm, &f->shm.maps[k], 1), f->shm.maps[k].value_size >= 8 &&
				 (f->shm.maps[k].kind == ABI_MAP_LANE_HASH || f->shm.maps[k].kind == ABI_MAP_LANE_ARRAY));
}

/* What was remembered by an address is not believed when another string is there and was not counted. */
static void address_of_another(void **state)
{
	struct fixture *f = *state;
	char name[32] = "first";
	struct owner o = { .name = name };
	uint64_t forgotten;

	assert_int_equal(add(f, name), 0);
	strcpy(name, "second");
	assert_int_equal(learn(f, &o, &forgotten), 0);
	assert_false(count(f, &o));
	assert_int_equal(add(f, name), 0);
	assert_int_not_equal(learn(f, &o, &forgotten), 0);
	assert_true(count(f, &o));
	assert_int_equal(value(f, "first"), 1);
	assert_int_equal(value(f, "second"), 2);
}

/* More owners than there is room for: what is learned and not forgotten is what is there, and all is counted. */
static void many(void **state)
{
	static char names[SEG_ENTRIES][32];
	struct fixture *f = *state;
	struct owner *owners = calloc(OWNERS, sizeof(*owners));
	uint64_t learned = 0, lost = 0, have = 0, forgotten, all = 0;

	for (unsigned int k = 0; k < SEG_ENTRIES; k++)
		snprintf(names[k], sizeof(names[k]), "name %u", k);
	for (unsigned int round = 0; round < 3; round++) {
		for (unsigned int k = 0; k < OWNERS; k++) {
			owners[k].name = names[k % SEG_ENTRIES];
			if (count(f, &owners[k]))
				continue;
			assert_int_equal(add(f, owners[k].name), 0);
			learned += learn(f, &owners[k], &forgotten) != 0;
			lost += forgotten != 0;
		}
	}
	for (unsigned int k = 0; k < SHM_OBJECTS; k++)
		have += f->run.objects[k].object != 0;
	assert_int_equal(have, learned - lost);
	for (unsigned int k = 0; k < SEG_ENTRIES; k++)
		all += value(f, names[k]);
	assert_int_equal(all, 3 * OWNERS);
	free(owners);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(by_object, setup, teardown),
		cmocka_unit_test_setup_teardown(by_what_was_found, setup, teardown),
		cmocka_unit_test_setup_teardown(tables, setup, teardown),
		cmocka_unit_test_setup_teardown(address_of_another, setup, teardown),
		cmocka_unit_test_setup_teardown(many, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

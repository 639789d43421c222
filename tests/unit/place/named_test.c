/* Functions that patterns have met: entries of a segment's probe table, which others can write to, and their numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "place/named.h"
#include "vm/shm.h"

enum { OWN = 2, ROOM = 3, ENTRIES = OWN + ROOM };

/* As much of a segment as is looked at. */
struct table {
	struct shm shm;
	struct shm_map map;
	uint8_t data[sizeof(struct abi_data) + ENTRIES * sizeof(struct abi_probe)] __attribute__((aligned(8)));
};

static struct abi_probe *entry(struct table *t, uint32_t index)
{
	return (struct abi_probe *)(void *)(t->data + t->map.off) + index;
}

static struct table *make(void)
{
	struct table *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	t->map = (struct shm_map){ .kind = ABI_MAP_ARRAY, .value_size = sizeof(struct abi_probe), .max_entries = ENTRIES,
				   .off = sizeof(struct abi_data) };
	t->shm = (struct shm){ .data = t->data, .probes = &t->map, .nprobes = OWN };
	for (uint32_t i = 0; i < OWN; i++) {
		entry(t, i)->id = 10 + i;
		strcpy(entry(t, i)->prov, "py1");
		strcpy(entry(t, i)->func, "*");
		strcpy(entry(t, i)->name, "entry");
	}
	return t;
}

static void test_names(void **state)
{
	struct table *one = make(), *two = make();
	struct named all = { .first = OWN };
	struct named_here here_one = { 0 }, here_two = { 0 };
	const struct abi_probe *p;
	uint32_t a, b, number;
	char far[300];

	(void)state;
	memset(far, 'x', sizeof(far) - 1);
	far[sizeof(far) - 1] = '\0';
	a = shm_name_probe(&one->shm, 1, "m", "C.f");
	b = shm_name_probe(&two->shm, 0, far, far);
	assert_int_equal(a, OWN);
	assert_int_equal(b, OWN);
	number = named_number(&all, &here_one, &one->shm, a);
	assert_int_equal(number, OWN);
	assert_int_equal(named_number(&all, &here_one, &one->shm, a), number);
	p = named_get(&all, number);
	assert_non_null(p);
	assert_int_equal(p->pattern, 2);
	assert_int_equal(p->id, 11);
	assert_string_equal(p->mod, "m");
	assert_string_equal(p->func, "C.f");
	assert_string_equal(p->name, "entry");
	/* The same entry of another segment is another function. */
	assert_int_equal(named_number(&all, &here_two, &two->shm, b), OWN + 1);
	p = named_get(&all, OWN + 1);
	assert_int_equal(strlen(p->mod), sizeof(p->mod) - 1);
	assert_int_equal(strlen(p->func), sizeof(p->func) - 1);
	assert_null(named_get(&all, OWN + 2));
	assert_null(named_get(&all, 0));
	named_here_fini(&here_one);
	named_here_fini(&here_two);
	named_fini(&all);
	free(one);
	free(two);
}

static void test_no_room(void **state)
{
	struct table *t = make();

	(void)state;
	for (uint32_t i = 0; i < ROOM; i++)
		assert_int_equal(shm_name_probe(&t->shm, 0, "m", "f"), OWN + i);
	assert_int_equal(shm_name_probe(&t->shm, 0, "m", "f"), 0);
	/* Who writes the count gets nothing by it. */
	((struct abi_data *)(void *)t->data)->named = UINT32_MAX;
	assert_int_equal(shm_name_probe(&t->shm, 1, "m", "f"), 1);
	free(t);
}

static void test_what_others_wrote(void **state)
{
	struct table *t = make();
	struct named all = { .first = OWN };
	struct named_here here = { 0 };
	struct abi_probe *p = entry(t, OWN);

	(void)state;
	/* Never made; of no pattern; of one that is none of the session's; without an end; beyond the table. */
	assert_int_equal(named_number(&all, &here, &t->shm, OWN), 0);
	p->pattern = OWN + 1;
	assert_int_equal(named_number(&all, &here, &t->shm, OWN), 0);
	p->pattern = 1;
	memset(p->func, 'x', sizeof(p->func));
	assert_int_equal(named_number(&all, &here, &t->shm, OWN), 0);
	p->func[3] = '\0';
	assert_int_equal(named_number(&all, &here, &t->shm, OWN), OWN);
	p->func[0] = 'y';
	assert_string_equal(named_get(&all, OWN)->func, "xxx");
	assert_int_equal(named_number(&all, &here, &t->shm, ENTRIES), 0);
	assert_int_equal(named_number(&all, &here, &t->shm, UINT32_MAX), 0);
	assert_int_equal(named_number(&all, &here, &t->shm, 1), 0);
	named_here_fini(&here);
	named_fini(&all);
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names), cmocka_unit_test(test_no_room), cmocka_unit_test(test_what_others_wrote),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

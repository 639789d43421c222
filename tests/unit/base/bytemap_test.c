#include "base/bytemap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void finds_what_was_set(void **state)
{
	struct bytemap m = { 0 };
	int values[3];

	(void)state;
	assert_null(bytemap_get(&m, "a", 1));
	assert_int_equal(bytemap_set(&m, "a", 1, &values[0]), 0);
	assert_int_equal(bytemap_set(&m, "a\0b", 3, &values[1]), 0);
	assert_int_equal(bytemap_set(&m, "", 0, &values[2]), 0);
	assert_ptr_equal(bytemap_get(&m, "a", 1), &values[0]);
	assert_ptr_equal(bytemap_get(&m, "a\0b", 3), &values[1]);
	assert_ptr_equal(bytemap_get(&m, "", 0), &values[2]);
	assert_int_equal(bytemap_set(&m, "a", 1, &values[1]), 0);
	assert_ptr_equal(bytemap_get(&m, "a", 1), &values[1]);
	assert_int_equal(m.n, 3);
	bytemap_fini(&m);
}

/* Removing leaves gaps in runs of displaced keys; all others must still be found. */
static void survives_removal(void **state)
{
	enum { N = 5000 };
	static char present[N];
	struct bytemap m = { 0 };
	size_t pos = 0, n = 0;
	uint32_t seed = 1, i, k;

	(void)state;
	for (i = 0; i < 4 * N; i++) {
		seed = seed * 1103515245 + 12345;
		k = (seed >> 8) % N;
		if (present[k]) {
			assert_ptr_equal(bytemap_del(&m, &k, sizeof(k)), &present[k]);
			present[k] = 0;
		} else {
			assert_int_equal(bytemap_set(&m, &k, sizeof(k), &present[k]), 0);
			present[k] = 1;
		}
	}
	for (k = 0; k < N; k++) {
		assert_ptr_equal(bytemap_get(&m, &k, sizeof(k)), present[k] ? &present[k] : NULL);
		n += (size_t)present[k];
	}
	assert_int_equal(m.n, n);
	while (bytemap_next(&m, &pos))
		n--;
	assert_int_equal(n, 0);
	bytemap_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_was_set),
		cmocka_unit_test(survives_removal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

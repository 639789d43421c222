#include "base/parallel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

enum { MANY = 1000 };

struct counts {
	atomic_int calls[MANY], at_once, most;
};

static void count(void *ctx, size_t i)
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	struct counts *c = ctx;
	int now = ++c->at_once, most = c->most;

	while (most < now && !atomic_compare_exchange_weak(&c->most, &most, now))
		;
	nanosleep(&ms, NULL);
	c->calls[i]++;
	c->at_once--;
}

static void calls_once_each(void **state)
{
	static const size_t ns[] = { 0, 1, 2, 16, 17, MANY };
	size_t k, i;

	(void)state;
	for (k = 0; k < sizeof(ns) / sizeof(*ns); k++) {
		static struct counts c;

		c = (struct counts){ 0 };
		parallel_each(ns[k], count, &c);
		for (i = 0; i < MANY; i++)
			assert_int_equal(c.calls[i], i < ns[k]);
		assert_in_range(c.most, 0, 16);
		assert_int_equal(c.at_once, 0);
	}
}

static void waits_for_one_another(void *ctx, size_t i)
{
	atomic_int *here = ctx;

	(void)i;
	++*here;
	while (*here < 4)
		;
}

/* This would not end if one call followed the other. */
static void calls_are_at_once(void **state)
{
	atomic_int here = 0;

	(void)state;
	parallel_each(4, waits_for_one_another, &here);
	assert_int_equal(here, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_once_each),
		cmocka_unit_test(calls_are_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

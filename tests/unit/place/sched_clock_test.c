/* The scheduler's clock, as told to a thread that loses its CPU again and again. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/now.h"
#include "place/sched_clock.h"

static bool over;

static void *spin(void *unused)
{
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED))
		;
	return unused;
}

static void beside_others(void **state)
{
	int64_t first = sched_clock_off();
	uint64_t end = now_ns() + 400000000;
	pthread_t others[4];
	cpu_set_t all, one;

	(void)state;
	sched_getaffinity(0, sizeof(all), &all);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&others[i], NULL, spin, NULL), 0);
	while (now_ns() < end) {
		/* The clocks' rates differ by up to half a thousandth; a thread is away for milliseconds. */
		int64_t apart = sched_clock_off() - first;

		assert_true(apart > -1000000 && apart < 1000000);
	}
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
	for (int i = 0; i < 4; i++)
		pthread_join(others[i], NULL);
	sched_setaffinity(0, sizeof(all), &all);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(beside_others) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

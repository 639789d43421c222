/* The shared clock beside the system's: close to it, and never going back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "place/clock.h"
#include "vm/shm.h"

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void keeps_step(void)
{
	struct abi_data *data = calloc(1, sizeof(*data));
	struct shm shm = { .data = (uint8_t *)data, .clock = &data->clock };
	struct clock c;
	uint64_t last = 0, end = now() + 400000000, keep = 0;

	clock_start(&c, &data->clock);
	while (now() < end) {
		uint64_t before = now(), t = shm_now(&shm), after = now();

		assert_true(t >= last);
		assert_true(t + 200000 >= before && t <= after + 200000);
		last = t;
		if (before > keep) {
			clock_keep(&c);
			keep = before + 10000000;
		}
	}
	free(data);
}

static void in_step(void **state)
{
	(void)state;
	keeps_step();
}

/* Foreseen just now, less than a millisecond ago, 2 ms ago, and too long ago. */
static void foreseen(void **state)
{
	static const long ago_ns[] = { 0, 400000, 2000000, 1100000000 };

	(void)state;
	for (size_t i = 0; i < sizeof(ago_ns) / sizeof(ago_ns[0]); i++) {
		clock_foresee();
		nanosleep(&(struct timespec){ ago_ns[i] / 1000000000, ago_ns[i] % 1000000000 }, NULL);
		keeps_step();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(in_step), cmocka_unit_test(foreseen) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

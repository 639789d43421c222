#include "session/budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { PIDS = 3, SESSIONS = 2 };
#define PERIOD_NS ((uint64_t)BUDGET_PERIOD_MS * 1000000)
#define SECOND_NS UINT64_C(1000000000)

/* Processes that use a CPU each; sessions that cost a part of that where they do not rest.  All that the budget sees. */
static uint64_t cpu_ns[PIDS];
static double cost[SESSIONS][PIDS];
static double late;			/* what the first session still costs while it rests: nobody has told the process */
static bool rests[SESSIONS][PIDS], refuses;
static uint64_t spent_ns[SESSIONS][PIDS], pauses_ms[64];
static size_t npauses;

static uint64_t cpu(uint32_t pid)
{
	return cpu_ns[pid];
}

static bool advised(void *ctx, const struct budget_advice *a)
{
	bool *mine = ctx;

	if (refuses)
		return false;
	assert_true(mine[a->pid] != a->rest);
	mine[a->pid] = a->rest;
	if (a->rest)
		pauses_ms[npauses++ % 64] = a->pause_ms;
	return true;
}

static int set_up(void **state)
{
	(void)state;
	for (uint32_t p = 0; p < PIDS; p++) {
		cpu_ns[p] = SECOND_NS;
		for (int s = 0; s < SESSIONS; s++) {
			cost[s][p] = 0;
			rests[s][p] = false;
			spent_ns[s][p] = 0;
		}
	}
	refuses = false;
	late = 0;
	npauses = 0;
	return 0;
}

/* Each period the processes run, then each session looks. */
static void let_run(struct budget *b, unsigned int seconds, struct budget_sum sums[SESSIONS])
{
	static uint64_t now = SECOND_NS;

	for (uint64_t end = now + seconds * SECOND_NS; now < end; now += PERIOD_NS) {
		for (uint32_t p = 1; p < PIDS; p++) {
			cpu_ns[p] += cpu_ns[p] ? PERIOD_NS : 0;
			for (int s = 0; s < SESSIONS; s++) {
				uint64_t ns = (uint64_t)((!rests[s][p] ? cost[s][p] : s ? 0 : late) * (double)PERIOD_NS);

				spent_ns[s][p] += ns;
				if (ns)
					assert_int_equal(budget_spend(b, rests[s], p, ns), 0);
			}
		}
		for (int s = 0; s < SESSIONS; s++)
			budget_look(b, rests[s], now, advised, rests[s], &sums[s]);
	}
}

/* What is ahead, and what is spent in a period until somebody looks, come on top. */
static void a_process_pays_the_share(void **state)
{
	struct budget *b = budget_new(0.01, cpu);
	struct budget_sum sums[SESSIONS];

	(void)state;
	cost[0][1] = 0.5;
	let_run(b, 60, sums);
	assert_in_range(spent_ns[0][1], 60000000, 600000000 + 20000000 + 50000000);
	assert_true(sums[0].rests >= 3 && sums[0].rested_ns > 55 * SECOND_NS);
	assert_in_range(sums[0].cpu_ns, 59 * SECOND_NS, 60 * SECOND_NS);
	for (size_t i = 1; i < npauses; i++)
		assert_int_equal(pauses_ms[i], pauses_ms[i - 1] * 2 > 60000 ? 60000 : pauses_ms[i - 1] * 2);
	let_run(b, 1000, sums);
	assert_true(spent_ns[0][1] < 11 * SECOND_NS);
	assert_true(npauses >= 15);		/* it is tried again each minute */
	budget_drop(b);
}

static void who_keeps_to_it_goes_on(void **state)
{
	struct budget *b = budget_new(0.01, cpu);
	struct budget_sum sums[SESSIONS];

	(void)state;
	cost[0][1] = 0.009;
	cost[1][1] = 0.0005;
	let_run(b, 300, sums);
	assert_int_equal(sums[0].rests + sums[1].rests, 0);
	budget_drop(b);
}

static void the_dearest_rests(void **state)
{
	struct budget *b = budget_new(0.01, cpu);
	struct budget_sum sums[SESSIONS];

	(void)state;
	cost[0][1] = 0.004;
	cost[1][1] = 0.3;
	cost[1][2] = 0.004;
	let_run(b, 120, sums);
	assert_int_equal(sums[0].rests, 0);
	assert_true(sums[1].rests > 2);
	assert_false(rests[1][2]);
	assert_true(spent_ns[0][1] + spent_ns[1][1] < 1200000000 + 20000000 + 2 * 30000000);
	budget_drop(b);
}

static void nobody_rests_for_another(void **state)
{
	struct budget *b = budget_new(0.01, cpu);
	struct budget_sum sums[SESSIONS];

	(void)state;
	cost[0][1] = late = 0.5;
	cost[1][1] = 0.0005;
	let_run(b, 20, sums);
	assert_true(sums[0].rests >= 1);
	assert_int_equal(sums[1].rests, 0);
	budget_drop(b);
}

static void what_cannot_rest_is_asked_again(void **state)
{
	struct budget *b = budget_new(0.01, cpu);
	struct budget_sum sums[SESSIONS];

	(void)state;
	cost[0][1] = 0.4;
	refuses = true;
	let_run(b, 5, sums);
	assert_int_equal(sums[0].rests, 0);
	refuses = false;
	let_run(b, 1, sums);
	assert_int_equal(sums[0].rests, 1);
	assert_int_equal(sums[0].resting, 1);
	budget_drop(b);
}

static void sums_outlive_processes(void **state)
{
	struct budget *b = budget_new(0.01, cpu);
	struct budget_sum sums[SESSIONS];
	uint64_t cpu_before;

	(void)state;
	cost[0][1] = cost[0][2] = 0.4;
	let_run(b, 2, sums);
	assert_int_equal(sums[0].resting, 2);
	cpu_before = sums[0].cpu_ns;
	cpu_ns[1] = 0;				/* it has ended */
	budget_forget(b, rests[0], 2);		/* it executes another program */
	cost[0][1] = cost[0][2] = 0;
	let_run(b, 1, sums);
	assert_int_equal(sums[0].resting, 0);
	assert_int_equal(sums[0].rests, 2);
	assert_int_equal(sums[0].cpu_ns, cpu_before);
	budget_leave(b, rests[0]);
	budget_drop(b);
}

/* Without a bound all is summed up; what rests goes on when there is none any more. */
static void the_share_can_change(void **state)
{
	struct budget *b = budget_new(0, cpu);
	struct budget_sum sums[SESSIONS];

	(void)state;
	cost[0][1] = 0.4;
	let_run(b, 5, sums);
	assert_int_equal(sums[0].rests, 0);
	assert_in_range((uint64_t)(sums[0].ratio * 1000), 390, 410);
	budget_set(b, 0.01);
	let_run(b, 1, sums);
	assert_int_equal(sums[0].resting, 1);
	budget_set(b, 0);
	let_run(b, 1, sums);
	assert_int_equal(sums[0].resting, 0);
	budget_drop(b);
}

static void shares_are_read(void **state)
{
	static const char *const wrong[] = { "", "1", "%", "0%", "51%", "1%%", "nothing", "1 percent", "-1%", "nan%", "0.001%" };
	double share;

	(void)state;
	assert_true(budget_parse("1%", &share) && share > 0.0099 && share < 0.0101);
	assert_true(budget_parse("0.5 %", &share) && share > 0.0049 && share < 0.0051);
	assert_true(budget_parse("none", &share) && share <= 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_false(budget_parse(wrong[i], &share));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_process_pays_the_share, set_up), cmocka_unit_test_setup(who_keeps_to_it_goes_on, set_up),
		cmocka_unit_test_setup(the_dearest_rests, set_up), cmocka_unit_test_setup(nobody_rests_for_another, set_up),
		cmocka_unit_test_setup(what_cannot_rest_is_asked_again, set_up),
		cmocka_unit_test_setup(sums_outlive_processes, set_up), cmocka_unit_test_setup(the_share_can_change, set_up),
		cmocka_unit_test(shares_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

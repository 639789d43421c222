/* out/hist.c: the pictures of the DTrace guide, "Aggregations", and the edges of each distribution. */
#include "out_test.h"

#include <string.h>

#include "out/hist.h"

#define TITLES "\n           value  ------------- Distribution ------------- count    \n"

enum { ZERO = 63 };

static void check(const struct ir_agg *g, const uint64_t *words, uint64_t normal, const char *want)
{
	struct out_sink s;

	out_open_mem(&s);
	out_hist(&s, g, words, normal, false);
	assert_string_equal(out_text(&s), want);
	out_close(&s);
}

static unsigned int log2_bin(uint64_t v)
{
	return ZERO + 64 - (unsigned int)__builtin_clzll(v);
}

/* Guide, quantize(), bash and gnome-terminal of its example. */
static void quantize(void **state)
{
	const struct ir_agg g = { .fn = IR_A_QUANTIZE, .sign = true };
	uint64_t w[127] = { 0 };

	(void)state;
	w[log2_bin(16384)] = 4;
	w[log2_bin(131072)] = 1;
	check(&g, w, 1,
	      TITLES "            8192 |                                         0        \n"
		     "           16384 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@         4        \n"
		     "           32768 |                                         0        \n"
		     "           65536 |                                         0        \n"
		     "          131072 |@@@@@@@@                                 1        \n"
		     "          262144 |                                         0        \n");
	memset(w, 0, sizeof(w));
	w[log2_bin(8192)] = 5;
	w[log2_bin(16384)] = 5;
	w[log2_bin(32768)] = 4;
	w[log2_bin(65536)] = 1;
	check(&g, w, 1,
	      TITLES "            4096 |                                         0        \n"
		     "            8192 |@@@@@@@@@@@@@                            5        \n"
		     "           16384 |@@@@@@@@@@@@@                            5        \n"
		     "           32768 |@@@@@@@@@@@                              4        \n"
		     "           65536 |@@@                                      1        \n"
		     "          131072 |                                         0        \n");
}

static void quantize_edges(void **state)
{
	const struct ir_agg g = { .fn = IR_A_QUANTIZE, .sign = true };
	uint64_t w[127] = { 0 };
	const char *empty = TITLES "              -1 |                                         0        \n"
				   "               0 |                                         0        \n"
				   "               1 |                                         0        \n";

	(void)state;
	check(&g, w, 1, empty);
	check(&g, NULL, 1, empty);
	w[126] = 1234;
	check(&g, w, 1,
	      TITLES "2305843009213693952 |                                         0        \n"
		     "4611686018427387904 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1234     \n");
	w[126] = 0;
	w[0] = 1;
	check(&g, w, 1,
	      TITLES "-4611686018427387904 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        \n"
		     "-2305843009213693952 |                                         0        \n");
	w[0] = 0;
	w[ZERO - 1] = 1;	/* -1 */
	w[ZERO] = 2;
	w[ZERO + 1] = 1;
	check(&g, w, 1,
	      TITLES "              -2 |                                         0        \n"
		     "              -1 |@@@@@@@@@@                               1        \n"
		     "               0 |@@@@@@@@@@@@@@@@@@@@                     2        \n"
		     "               1 |@@@@@@@@@@                               1        \n"
		     "               2 |                                         0        \n");
}

/* Normalizing divides the counts and leaves the bars. */
static void normalized(void **state)
{
	const struct ir_agg g = { .fn = IR_A_QUANTIZE, .sign = true };
	uint64_t w[127] = { [ZERO + 1] = 30, [ZERO + 2] = 10 };

	(void)state;
	check(&g, w, 10,
	      TITLES "               0 |                                         0        \n"
		     "               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@           3        \n"
		     "               2 |@@@@@@@@@@                               1        \n"
		     "               4 |                                         0        \n");
}

/* Negative increments draw to the left; with positive ones beside them the axis is in the middle. */
static void negative_counts(void **state)
{
	const struct ir_agg g = { .fn = IR_A_QUANTIZE, .sign = true };
	uint64_t w[127] = { [ZERO + 2] = (uint64_t)-1 };

	(void)state;
	check(&g, w, 1,
	      TITLES "               1                                         | 0        \n"
		     "               2 @@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@| -1       \n"
		     "               4                                         | 0        \n");
	w[ZERO + 1] = 1;
	check(&g, w, 1,
	      TITLES "               0                     |                     0        \n"
		     "               1                     |@@@@@@@@@@           1        \n"
		     "               2           @@@@@@@@@@|                     -1       \n"
		     "               4                     |                     0        \n");
}

/* Guide, lquantize(): gnome-session and gnome-terminal of its example, lquantize(fd, 0, 100, 1). */
static void lquantize(void **state)
{
	const struct ir_agg g = { .fn = IR_A_LQUANTIZE, .sign = true, .param = { 0, 100, 1 } };
	uint64_t w[102] = { 0 };

	(void)state;
	w[1 + 26] = 9;
	check(&g, w, 1,
	      TITLES "              25 |                                         0        \n"
		     "              26 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 9        \n"
		     "              27 |                                         0        \n");
	memset(w, 0, sizeof(w));
	w[1 + 16] = 1;
	w[1 + 21] = 4;
	w[1 + 22] = 1;
	w[1 + 23] = 1;
	w[1 + 29] = 6;
	w[1 + 30] = 6;
	check(&g, w, 1,
	      TITLES "              15 |                                         0        \n"
		     "              16 |@@                                       1        \n"
		     "              17 |                                         0        \n"
		     "              18 |                                         0        \n"
		     "              19 |                                         0        \n"
		     "              20 |                                         0        \n"
		     "              21 |@@@@@@@@                                 4        \n"
		     "              22 |@@                                       1        \n"
		     "              23 |@@                                       1        \n"
		     "              24 |                                         0        \n"
		     "              25 |                                         0        \n"
		     "              26 |                                         0        \n"
		     "              27 |                                         0        \n"
		     "              28 |                                         0        \n"
		     "              29 |@@@@@@@@@@@@@                            6        \n"
		     "              30 |@@@@@@@@@@@@@                            6        \n"
		     "              31 |                                         0        \n");
}

static void lquantize_ends(void **state)
{
	const struct ir_agg g = { .fn = IR_A_LQUANTIZE, .sign = true, .param = { -10, 10, 5 } };
	uint64_t w[6] = { 1, 0, 0, 0, 0, 3 };

	(void)state;
	check(&g, w, 1,
	      TITLES "           < -10 |@@@@@@@@@@                               1        \n"
		     "             -10 |                                         0        \n"
		     "              -5 |                                         0        \n"
		     "               0 |                                         0        \n"
		     "               5 |                                         0        \n"
		     "           >= 10 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@           3        \n");
	check(&g, NULL, 1,
	      TITLES "           < -10 |                                         0        \n"
		     "             -10 |                                         0        \n"
		     "              -5 |                                         0        \n");
}

/* DTrace for Linux, llquantize(): factor 10, magnitudes 0 to 1, 10 steps: 1 to 9, then 10 to 90 by 10; negative ones mirrored. */
static void llquantize(void **state)
{
	const struct ir_agg g = { .fn = IR_A_LLQUANTIZE, .sign = true, .param = { 10, 0, 1, 10 } };
	const struct ir_agg far = { .fn = IR_A_LLQUANTIZE, .sign = true, .param = { 10, 2, 3, 1 } };
	uint64_t w[39] = { 0 }, f[7] = { 0, 0, 0, 1, 0, 0, 0 };

	(void)state;
	assert_int_equal(ir_agg_words(&g), 39);
	w[19] = 1;
	w[28] = 1;
	w[38] = 2;
	check(&g, w, 1,
	      TITLES "              -1 |                                         0        \n"
		     "               0 |@@@@@@@@@@                               1        \n"
		     "               1 |                                         0        \n"
		     "               2 |                                         0        \n"
		     "               3 |                                         0        \n"
		     "               4 |                                         0        \n"
		     "               5 |                                         0        \n"
		     "               6 |                                         0        \n"
		     "               7 |                                         0        \n"
		     "               8 |                                         0        \n"
		     "               9 |@@@@@@@@@@                               1        \n"
		     "              10 |                                         0        \n"
		     "              20 |                                         0        \n"
		     "              30 |                                         0        \n"
		     "              40 |                                         0        \n"
		     "              50 |                                         0        \n"
		     "              60 |                                         0        \n"
		     "              70 |                                         0        \n"
		     "              80 |                                         0        \n"
		     "              90 |                                         0        \n"
		     "          >= 100 |@@@@@@@@@@@@@@@@@@@@                     2        \n");
	memset(w, 0, sizeof(w));
	w[0] = 1;
	w[18] = 1;
	check(&g, w, 1,
	      TITLES "         <= -100 |@@@@@@@@@@@@@@@@@@@@                     1        \n"
		     "             -90 |                                         0        \n"
		     "             -80 |                                         0        \n"
		     "             -70 |                                         0        \n"
		     "             -60 |                                         0        \n"
		     "             -50 |                                         0        \n"
		     "             -40 |                                         0        \n"
		     "             -30 |                                         0        \n"
		     "             -20 |                                         0        \n"
		     "             -10 |                                         0        \n"
		     "              -9 |                                         0        \n"
		     "              -8 |                                         0        \n"
		     "              -7 |                                         0        \n"
		     "              -6 |                                         0        \n"
		     "              -5 |                                         0        \n"
		     "              -4 |                                         0        \n"
		     "              -3 |                                         0        \n"
		     "              -2 |                                         0        \n"
		     "              -1 |@@@@@@@@@@@@@@@@@@@@                     1        \n"
		     "               0 |                                         0        \n");
	check(&g, NULL, 1,
	      TITLES "               0 |                                         0        \n"
		     "               1 |                                         0        \n"
		     "               2 |                                         0        \n");
	assert_int_equal(ir_agg_words(&far), 7);
	check(&far, f, 1,
	      TITLES "            -100 |                                         0        \n"
		     "     abs() < 100 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        \n"
		     "             100 |                                         0        \n");
}

/* The bins cover all values, each from its smallest one to the one before the next bin's. */
static void from(void **state)
{
	const struct ir_agg q = { .fn = IR_A_QUANTIZE, .sign = true };
	const struct ir_agg l = { .fn = IR_A_LQUANTIZE, .sign = true, .param = { -1, 3, 2 } };
	const struct ir_agg ll = { .fn = IR_A_LLQUANTIZE, .sign = true, .param = { 10, 0, 2, 10 } };

	(void)state;
	assert_true(out_hist_from(&q, 0) == INT64_MIN);
	assert_int_equal(out_hist_from(&q, ZERO - 3), -7);
	assert_int_equal(out_hist_from(&q, ZERO - 2), -3);
	assert_int_equal(out_hist_from(&q, ZERO - 1), -1);
	assert_int_equal(out_hist_from(&q, ZERO), 0);
	assert_int_equal(out_hist_from(&q, ZERO + 1), 1);
	assert_int_equal(out_hist_from(&q, ZERO + 3), 4);
	assert_true(out_hist_from(&l, 0) == INT64_MIN);
	assert_int_equal(out_hist_from(&l, 1), -1);
	assert_int_equal(out_hist_from(&l, 2), 1);
	assert_int_equal(out_hist_from(&l, 3), 3);
	assert_true(out_hist_from(&ll, 0) == INT64_MIN);
	for (uint32_t i = 1; i < ir_agg_words(&ll); i++) {
		assert_int_equal(ir_llquantize_bucket(&ll, out_hist_from(&ll, i)), i);
		assert_int_equal(ir_llquantize_bucket(&ll, out_hist_from(&ll, i) - 1), i - 1);
	}
}

static void order(void **state)
{
	const struct ir_agg q = { .fn = IR_A_QUANTIZE, .sign = true };
	const struct ir_agg l = { .fn = IR_A_LQUANTIZE, .sign = true, .param = { -1, 3, 1 } };
	uint64_t a[127] = { [ZERO + 1] = 4 }, b[127] = { [ZERO + 3] = 1 }, c[127] = { [ZERO] = 5, [ZERO + 3] = 1 };
	uint64_t la[6] = { [2] = 1, [3] = 1 }, lb[6] = { [2] = 2, [3] = 1 }, lc[6] = { [5] = 1 };

	(void)state;
	assert_int_equal(out_hist_cmp(&q, a, b), 0);		/* 4 ones, 1 four */
	assert_int_equal(out_hist_cmp(&q, b, c), -1);		/* as much, fewer zeros */
	assert_int_equal(out_hist_cmp(&q, NULL, a), -1);
	assert_int_equal(out_hist_cmp(&l, la, lb), -1);
	assert_int_equal(out_hist_cmp(&l, lc, lb), 1);
	assert_int_equal(out_hist_cmp(&l, lb, lb), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantize),	   cmocka_unit_test(quantize_edges),
		cmocka_unit_test(normalized),	   cmocka_unit_test(negative_counts),
		cmocka_unit_test(lquantize),	   cmocka_unit_test(lquantize_ends),
		cmocka_unit_test(llquantize),	   cmocka_unit_test(order),
		cmocka_unit_test(from),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

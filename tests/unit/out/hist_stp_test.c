/* out/hist_stp.c: SystemTap's histograms. */
#include "out_test.h"

#include "out/hist_stp.h"

#define TITLE "value |-------------------------------------------------- count\n"

enum { ZERO = OUT_STP_LOG_ZERO };

static void check(struct out_stp_hist h, const char *want)
{
	struct out_sink s;

	out_open_mem(&s);
	out_stp_hist(&s, &h);
	assert_string_equal(out_text(&s), want);
	out_close(&s);
}

static struct out_stp_hist log_of(const uint64_t *counts)
{
	return (struct out_stp_hist){ .n = OUT_STP_LOG_BINS, .counts = counts, .elision = OUT_STP_ELISION };
}

/* Two empty rows on both sides, none negative without need. */
static void logarithmic(void **state)
{
	uint64_t c[OUT_STP_LOG_BINS] = { 0 };

	(void)state;
	c[ZERO + 1] = 1;
	c[ZERO + 2] = 20;
	check(log_of(c), TITLE "    0 |                                                    0\n"
			       "    1 |@                                                   1\n"
			       "    2 |@@@@@@@@@@@@@@@@@@@@                               20\n"
			       "    4 |                                                    0\n"
			       "    8 |                                                    0\n"
			       "\n");
	memset(c, 0, sizeof(c));
	c[ZERO - 1] = 2;
	check(log_of(c), TITLE "   -4 |                                                   0\n"
			       "   -2 |                                                   0\n"
			       "   -1 |@@                                                 2\n"
			       "    0 |                                                   0\n"
			       "    1 |                                                   0\n"
			       "\n");
}

/* Bars are scaled to 50, gaps of more than four rows become a ~. */
static void scaled_and_elided(void **state)
{
	uint64_t c[OUT_STP_LOG_BINS] = { [ZERO + 1] = 101, [ZERO + 11] = 100 };

	(void)state;
	check(log_of(c), TITLE "    0 |                                                     0\n"
			       "    1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@                  101\n"
			       "    2 |                                                     0\n"
			       "    4 |                                                     0\n"
			       "      ~\n"
			       "  256 |                                                     0\n"
			       "  512 |                                                     0\n"
			       " 1024 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@                  100\n"
			       " 2048 |                                                     0\n"
			       " 4096 |                                                     0\n"
			       "\n");
}

static void extremes(void **state)
{
	uint64_t c[OUT_STP_LOG_BINS] = { [0] = 1, [127] = 1 };

	(void)state;
	check(log_of(c), "               value |-------------------------------------------------- count\n"
			 "-9223372036854775808 |@                                                  1\n"
			 "-4611686018427387904 |                                                   0\n"
			 "-2305843009213693952 |                                                   0\n"
			 "                     ~\n"
			 " 1152921504606846976 |                                                   0\n"
			 " 2305843009213693952 |                                                   0\n"
			 " 4611686018427387904 |@                                                  1\n"
			 "\n");
}

/* @hist_linear(x, 0, 100, 10): below, 0 10 ... 100, above. */
static void linear(void **state)
{
	uint64_t c[13] = { [4] = 3, [12] = 1 };
	struct out_stp_hist h = { .linear = true, .start = 0, .interval = 10, .n = 13, .counts = c,
				  .elision = OUT_STP_ELISION };

	(void)state;
	check(h, TITLE "   10 |                                                   0\n"
		       "   20 |                                                   0\n"
		       "   30 |@@@                                                3\n"
		       "   40 |                                                   0\n"
		       "   50 |                                                   0\n"
		       "      ~\n"
		       "   90 |                                                   0\n"
		       "  100 |                                                   0\n"
		       " >100 |@                                                  1\n"
		       "\n");
	memset(c, 0, sizeof(c));
	c[0] = 1;
	c[2] = 1;
	h.elision = -1;
	check(h, TITLE "   <0 |@                                                  1\n"
		       "    0 |                                                   0\n"
		       "   10 |@                                                  1\n"
		       "   20 |                                                   0\n"
		       "   30 |                                                   0\n"
		       "\n");
	h.elision = 0;
	check(h, TITLE "   <0 |@                                                  1\n"
		       "      ~\n"
		       "   10 |@                                                  1\n"
		       "\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(logarithmic), cmocka_unit_test(scaled_and_elided), cmocka_unit_test(extremes),
		cmocka_unit_test(linear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

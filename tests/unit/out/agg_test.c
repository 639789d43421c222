/* out/agg.c: lines, values and order of aggregations. */
#include "out_test.h"

#include <errno.h>

#include "out/agg.h"

static struct arena *arena;

static int setup(void **state)
{
	(void)state;
	arena = arena_new();
	return !arena;
}

static int teardown(void **state)
{
	(void)state;
	arena_free(arena);
	return 0;
}

#define KEY_STR(text) { .type = IR_STR, .s = (text) }
#define KEY_INT(v) { .type = IR_INT, .i = (v) }
#define W(...) ((const uint64_t[]){ __VA_ARGS__ })
#define KEYS(...) ((const struct ir_value[]){ __VA_ARGS__ })

static const struct ir_slot str_slot = { .type = IR_STR };
static const struct out_agg_order by_value;

static void check(const struct out_agg *aggs, size_t n, const char *format, const struct out_agg_order *order,
		  const char *want)
{
	struct fmt *f = NULL;
	struct out_sink s;
	const char *err;
	size_t off;

	if (format) {
		f = fmt_parse(arena, FMT_D, format, strlen(format), &err, &off);
		assert_non_null(f);
	}
	out_open_mem(&s);
	assert_int_equal(out_printa(&s, f, aggs, n, order), 0);
	assert_string_equal(out_text(&s), want);
	out_close(&s);
}

/* Guide, "Aggregations": counts by execname, the least first, ties by name. */
static void counts(void **state)
{
	const struct ir_agg g = { .fn = IR_A_COUNT, .nkeys = 1, .keys = { str_slot } };
	const struct out_agg_row rows[] = {
		{ KEYS(KEY_STR("utmpd")), W(4) },
		{ KEYS(KEY_STR("xclock")), W(10) },
		{ KEYS(KEY_STR("init")), W(2) },
		{ KEYS(KEY_STR("dtrace")), W(4) },
	};
	const struct out_agg a = { &g, rows, 4, 1 };
	struct out_sink s;

	(void)state;
	check(&a, 1, NULL, &by_value,
	      "\n"
	      "  init                                                              2\n"
	      "  dtrace                                                            4\n"
	      "  utmpd                                                             4\n"
	      "  xclock                                                           10\n");
	check(&a, 1, "%-10s|%@5u\n", &(struct out_agg_order){ .reverse = true },
	      "xclock    |   10\n"
	      "utmpd     |    4\n"
	      "dtrace    |    4\n"
	      "init      |    2\n");
	out_open_mem(&s);
	assert_int_equal(out_agg(&s, &a, &by_value), 0);
	assert_int_equal(strncmp(out_text(&s), "  init  ", 8), 0);
	out_close(&s);
}

/* Integer keys stand in columns by their size. */
static void int_keys(void **state)
{
	const struct ir_agg g = { .fn = IR_A_SUM, .sign = true, .nkeys = 4,
				  .keys = { { IR_INT, 1, false }, { IR_INT, 2, false }, { IR_INT, 4, true },
					    { IR_INT, 8, true } } };
	const struct out_agg_row rows[] = {
		{ KEYS(KEY_INT(1), KEY_INT(2), KEY_INT(3), KEY_INT(4)), W((uint64_t)-5) },
	};
	const struct out_agg a = { &g, rows, 1, 1 };

	(void)state;
	check(&a, 1, NULL, &by_value, "\n   1     2        3                4               -5\n");
}

static void no_keys(void **state)
{
	const struct ir_agg g = { .fn = IR_A_COUNT };
	const struct out_agg_row row = { NULL, W(15) };
	const struct out_agg a = { &g, &row, 1, 1 }, none = { &g, NULL, 0, 1 };

	(void)state;
	check(&a, 1, NULL, &by_value, "\n               15\n");
	check(&a, 1, "%@d calls, again %@d\n", &by_value, "15 calls, again 15\n");
	check(&none, 1, NULL, &by_value, "\n");
	check(&none, 1, "%@d", &by_value, "");
}

static int64_t value(enum ir_agg_fn fn, bool sign, uint64_t normal, const uint64_t *words)
{
	const struct ir_agg g = { .fn = fn, .sign = sign };
	bool signed_value;

	return out_agg_value(&g, words, normal, &signed_value);
}

static void values(void **state)
{
	(void)state;
	assert_int_equal(value(IR_A_COUNT, true, 1, W(7)), 7);
	assert_int_equal(value(IR_A_SUM, true, 10, W((uint64_t)-25)), -2);
	assert_int_equal(value(IR_A_SUM, false, 2, W(UINT64_MAX)), INT64_MAX);
	assert_int_equal(value(IR_A_MIN, true, 1, W(99, 0)), 0);
	assert_int_equal(value(IR_A_MAX, true, 1, W((uint64_t)-3, 1)), -3);
	/* avg: the total is normalized, then divided by the count */
	assert_int_equal(value(IR_A_AVG, true, 1, W(3, 10)), 3);
	assert_int_equal(value(IR_A_AVG, true, 1, W(3, (uint64_t)-10)), -3);
	assert_int_equal(value(IR_A_AVG, true, 10, W(2, 99)), 4);
	assert_int_equal(value(IR_A_AVG, true, 1, W(0, 0)), 0);
	/* stddev of 1 2 3 4 5: sqrt(55/5 - 3*3) = sqrt(2); of -2 and 2: 2; of 2^40 and 0 */
	assert_int_equal(value(IR_A_STDDEV, true, 1, W(5, 15, 55, 0)), 1);
	assert_int_equal(value(IR_A_STDDEV, true, 1, W(2, 0, 8, 0)), 2);
	assert_int_equal(value(IR_A_STDDEV, true, 1, W(2, (uint64_t)1 << 40, 0, (uint64_t)1 << 16)),
			 (int64_t)1 << 39);
	assert_int_equal(value(IR_A_STDDEV, true, 10, W(2, 0, 80000, 0)), 20);
	assert_int_equal(value(IR_A_STDDEV, true, 1, W(0, 0, 0, 0)), 0);
	/* A factor has a sign; the one quotient that an int64_t cannot hold is as it wraps. */
	assert_int_equal(value(IR_A_SUM, true, (uint64_t)-2, W((uint64_t)-7)), 3);
	assert_int_equal(value(IR_A_SUM, true, UINT64_MAX, W((uint64_t)INT64_MIN)), INT64_MIN);
	assert_int_equal(value(IR_A_SUM, false, (uint64_t)-2, W(7)), -3);
	assert_int_equal(value(IR_A_SUM, true, 0, W(5)), 5);
	assert_int_equal(value(IR_A_AVG, true, 1, NULL), 0);
	assert_int_equal(out_normalize(-25, 10), -2);
}

/* Guide, printa() of several aggregations: a line for each key that any of them has, zeros for the rest. */
static void joined(void **state)
{
	const struct ir_agg n = { .id = 0, .fn = IR_A_COUNT, .nkeys = 1, .keys = { str_slot } };
	const struct ir_agg t = { .id = 1, .fn = IR_A_AVG, .sign = true, .nkeys = 1, .keys = { str_slot } };
	const struct out_agg_row counted[] = {
		{ KEYS(KEY_STR("read")), W(5) },
		{ KEYS(KEY_STR("write")), W(2) },
		{ KEYS(KEY_STR("open")), W(5) },
	};
	const struct out_agg_row timed[] = {
		{ KEYS(KEY_STR("close")), W(1, 7) },
		{ KEYS(KEY_STR("open")), W(2, 30) },
		{ KEYS(KEY_STR("read")), W(2, 20) },
	};
	const struct out_agg aggs[] = { { &n, counted, 3, 1 }, { &t, timed, 3, 1 } };

	(void)state;
	check(aggs, 2, NULL, &by_value,
	      "\n"
	      "  close                                                             0                7\n"
	      "  write                                                             2                0\n"
	      "  read                                                              5               10\n"
	      "  open                                                              5               15\n");
	check(aggs, 2, "%-6s%@4u%@4d%@4d\n", &by_value,
	      "close    0   7   7\n"
	      "write    2   0   0\n"
	      "read     5  10  10\n"
	      "open     5  15  15\n");
	check(aggs, 2, "%s ", &(struct out_agg_order){ .pos = 1 }, "write close read open ");
	check(aggs, 2, "%s ", &(struct out_agg_order){ .by_key = true }, "close open read write ");
	check(aggs, 2, "%s ", &(struct out_agg_order){ .by_key = true, .reverse = true },
	      "write read open close ");
	check(aggs, 2, "%s ", &(struct out_agg_order){ .pos = 9 }, "close write read open ");
}

/* libdtrace sorts integer keys as unsigned numbers. */
static void key_order(void **state)
{
	const struct ir_agg g = { .fn = IR_A_COUNT, .nkeys = 2, .keys = { { IR_INT, 4, true }, str_slot } };
	const struct out_agg_row rows[] = {
		{ KEYS(KEY_INT(-1), KEY_STR("b")), W(1) },
		{ KEYS(KEY_INT(1), KEY_STR("b")), W(1) },
		{ KEYS(KEY_INT(0), KEY_STR("c")), W(1) },
		{ KEYS(KEY_INT(1), KEY_STR("a")), W(1) },
	};
	const struct out_agg a = { &g, rows, 4, 1 };

	(void)state;
	check(&a, 1, "%d%s ", &by_value, "0c 1a 1b -1b ");
	check(&a, 1, "%d%s ", &(struct out_agg_order){ .key_pos = 1 }, "1a 1b -1b 0c ");
	check(&a, 1, "%d%s ", &(struct out_agg_order){ .key_pos = 2 }, "0c 1a 1b -1b ");
}

/* Guide, normalize(): counts a second. */
static void normalized(void **state)
{
	const struct ir_agg g = { .fn = IR_A_COUNT, .nkeys = 1, .keys = { str_slot } };
	const struct out_agg_row rows[] = { { KEYS(KEY_STR("Xsun")), W(1550) }, { KEYS(KEY_STR("sh")), W(9) } };
	const struct out_agg a = { &g, rows, 2, 10 };

	(void)state;
	check(&a, 1, "%@d %s\n", &by_value, "0 sh\n155 Xsun\n");
}

/* A distribution is drawn whatever its conversion; its line ends behind it. */
static void distributions(void **state)
{
	const struct ir_agg g = { .fn = IR_A_QUANTIZE, .nkeys = 1, .keys = { str_slot } };
	uint64_t w[127] = { [64] = 2 };
	const struct out_agg_row row = { KEYS(KEY_STR("bash")), w };
	const struct out_agg a = { &g, &row, 1, 1 };

	(void)state;
	check(&a, 1, NULL, &by_value,
	      "\n"
	      "  bash                                              \n"
	      "           value  ------------- Distribution ------------- count    \n"
	      "               0 |                                         0        \n"
	      "               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 2        \n"
	      "               2 |                                         0        \n"
	      "\n");
	check(&a, 1, "%s:%@d.", &by_value,
	      "bash:\n"
	      "           value  ------------- Distribution ------------- count    \n"
	      "               0 |                                         0        \n"
	      "               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 2        \n"
	      "               2 |                                         0        \n"
	      ".");
}

static void truncated(void **state)
{
	const struct ir_agg g = { .fn = IR_A_COUNT, .nkeys = 1, .keys = { str_slot } };
	const struct out_agg_row rows[] = {
		{ KEYS(KEY_STR("c")), W(3) },
		{ KEYS(KEY_STR("a")), W(1) },
		{ KEYS(KEY_STR("d")), W(4) },
		{ KEYS(KEY_STR("b")), W(2) },
	};
	const struct out_agg a = { &g, rows, 4, 1 };
	size_t gone[4];

	(void)state;
	assert_int_equal(out_agg_trunc(&a, 2, gone), 2);
	assert_int_equal(gone[0], 3);
	assert_int_equal(gone[1], 1);
	assert_int_equal(out_agg_trunc(&a, -3, gone), 1);
	assert_int_equal(gone[0], 2);
	assert_int_equal(out_agg_trunc(&a, 0, gone), 4);
	assert_int_equal(out_agg_trunc(&a, 4, gone), 0);
	assert_int_equal(out_agg_trunc(&a, INT64_MIN, gone), 0);
}

static void mismatch(void **state)
{
	const struct ir_agg g = { .fn = IR_A_COUNT, .nkeys = 1, .keys = { str_slot } };
	const struct out_agg_row row = { KEYS(KEY_STR("a")), W(1) };
	const struct out_agg a = { &g, &row, 1, 1 };
	static const char *const formats[] = { "%d", "%s %s", "%@s" };
	struct out_sink s;
	const char *err;
	size_t off;

	(void)state;
	out_open_mem(&s);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(out_printa(&s, fmt_parse(arena, FMT_D, formats[i], strlen(formats[i]), &err,
							  &off), &a, 1, &by_value), -EINVAL);
	out_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts),    cmocka_unit_test(int_keys),   cmocka_unit_test(no_keys),
		cmocka_unit_test(values),    cmocka_unit_test(joined),	   cmocka_unit_test(key_order),
		cmocka_unit_test(normalized), cmocka_unit_test(distributions), cmocka_unit_test(truncated),
		cmocka_unit_test(mismatch),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}

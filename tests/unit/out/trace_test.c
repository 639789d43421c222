/* out/trace.c: the lines of the DTrace guide's examples. */
#include "out_test.h"

#include "out/trace.h"

static void lines(void **state)
{
	struct out_firing begin = { .cpu = 0, .id = 1, .epid = 1, .prov = "dtrace", .func = "", .name = "BEGIN" };
	struct out_firing read = { .cpu = 12, .id = 40000, .epid = 2, .prov = "python123",
				   .func = "_PyEval_EvalFrameDefault", .name = "function-entry" };
	struct out_lines l = { 0 };
	struct out_sink s;

	(void)state;
	out_open_mem(&s);
	out_line_begin(&s, &l, &begin, NULL);
	out_puts(&s, "hello");
	out_line_end(&s, &l);
	out_line_begin(&s, &l, &read, NULL);
	out_line_end(&s, &l);
	assert_string_equal(out_text(&s), "CPU     ID                    FUNCTION:NAME\n"
					  "  0      1                           :BEGIN hello\n"
					  " 12  40000 _PyEval_EvalFrameDefault:function-entry \n");
	out_close(&s);
}

/* A column that is like the one before, and one in which one thing differs; names of any length. */
static void columns(void **state)
{
	static const char longest[] = "a_name_that_is_longer_than_what_is_kept_of_a_column_which_is_a_hundred_and_twenty_eight_bytes_and_some_"
				      "more_than_that_to_be_sure";
	const struct out_firing f[] = {
		{ .cpu = 1, .id = 7, .func = "f", .name = "entry" }, { .cpu = 1, .id = 7, .func = "f", .name = "entry" },
		{ .cpu = 2, .id = 7, .func = "f", .name = "entry" }, { .cpu = 2, .id = 8, .func = "f", .name = "entry" },
		{ .cpu = 2, .id = 8, .func = "g", .name = "entry" }, { .cpu = 2, .id = 8, .func = "g", .name = "return" },
		{ .cpu = 2, .id = 8, .func = longest, .name = "return" }, { .cpu = 2, .id = 8, .func = longest, .name = "return" },
		{ .cpu = 2, .id = 8, .func = "g", .name = "return" },
	};
	struct out_lines l = { .headed = true };
	struct out_sink s;
	char want[2048];
	size_t n = 0;

	(void)state;
	out_open_mem(&s);
	for (size_t k = 0; k < sizeof(f) / sizeof(*f); k++) {
		char name[256];

		out_line_begin(&s, &l, &f[k], NULL);
		out_line_end(&s, &l);
		snprintf(name, sizeof(name), "%s:%s", f[k].func, f[k].name);
		n += (size_t)snprintf(want + n, sizeof(want) - n, "%3u %6u %32s \n", f[k].cpu, f[k].id, name);
	}
	assert_string_equal(out_text(&s), want);
	out_close(&s);
}

static void quiet_lines(void **state)
{
	struct out_firing f = { .prov = "dtrace", .func = "", .name = "BEGIN" };
	struct out_lines l = { .quiet = true };
	struct out_sink s;

	(void)state;
	out_open_mem(&s);
	out_line_begin(&s, &l, &f, NULL);
	out_line_end(&s, &l);
	assert_string_equal(out_text(&s), "");
	out_close(&s);
}

static void flow(void **state)
{
	const struct out_firing f[] = {
		{ .cpu = 1, .id = 7, .epid = 1, .prov = "pid1", .func = "main", .name = "entry" },
		{ .cpu = 1, .id = 7, .epid = 2, .rec = 1, .prov = "pid1", .func = "main", .name = "entry" },
		{ .cpu = 1, .id = 7, .epid = 2, .rec = 2, .prov = "pid1", .func = "main", .name = "entry" },
		{ .cpu = 1, .id = 8, .epid = 3, .prov = "syscall", .func = "read", .name = "entry" },
		{ .cpu = 1, .id = 9, .epid = 4, .prov = "io", .func = "carp", .name = "carpentry" },
		{ .cpu = 1, .id = 10, .epid = 5, .prov = "syscall", .func = "read", .name = "return" },
		{ .cpu = 1, .id = 11, .epid = 6, .prov = "pid1", .func = "main", .name = "function-return" },
		{ .cpu = 1, .id = 11, .epid = 7, .prov = "pid1", .func = "main", .name = "function-return" },
	};
	struct out_lines l = { .flow = true };
	struct out_sink s;

	(void)state;
	out_open_mem(&s);
	for (size_t i = 0; i < 8; i++) {
		out_line_begin(&s, &l, &f[i], i < 7 ? &f[i + 1] : NULL);
		out_puts(&s, ".");
		out_line_end(&s, &l);
	}
	assert_string_equal(out_text(&s), "CPU FUNCTION                                 \n"
					  "  1  -> main                                  .\n"
					  "  1   | main:entry                            .\n"
					  "  1   | main:entry                            .\n"
					  "  1    => read                                .\n"
					  "  1     | carp:carpentry                      .\n"
					  "  1    <= read                                .\n"
					  "  1   | main:function-return                  .\n"
					  "  1  <- main                                  .\n");
	out_close(&s);
}

static void check(const char *want, struct typed t, bool quiet)
{
	const struct out_lines l = { .quiet = quiet };
	struct out_sink s;

	out_open_mem(&s);
	out_trace(&s, &t.v, &t.slot, &l);
	assert_string_equal(out_text(&s), want);
	out_close(&s);
}

/* DTrace for Linux: 3, 5, 10 and 19 places by size; strings in 33 to the left. */
static void traced(void **state)
{
	(void)state;
	check("  -1", (struct typed)I8(-1), false);
	check(" 255", (struct typed)U8(255), false);
	check("    -1", (struct typed)I16(-1), false);
	check("         -1", (struct typed)I32(-1), false);
	check("                  42", (struct typed)I64(42), false);
	check(" 18446744073709551615", (struct typed)U64(-1), false);
	check("  bash                             ", (struct typed)STR("bash"), false);
	check("                                   ", (struct typed)STR(""), false);
	check("42", (struct typed)I64(42), true);
	check("bash", (struct typed)STR("bash"), true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines), cmocka_unit_test(columns), cmocka_unit_test(quiet_lines), cmocka_unit_test(flow),
		cmocka_unit_test(traced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

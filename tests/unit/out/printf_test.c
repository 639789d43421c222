/* out/printf.c: what each conversion makes of values of each type. */
#include "out_test.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "out/dialect.h"
#include "out/printf.h"

static struct arena *arena;

static int setup(void **state)
{
	(void)state;
	setenv("TZ", "UTC", 1);
	tzset();
	arena = arena_new();
	return !arena;
}

static int teardown(void **state)
{
	(void)state;
	arena_free(arena);
	return 0;
}

static void check(enum fmt_lang lang, const char *want, const char *format, const struct typed *t, size_t n)
{
	struct ir_value v[MAX_ARGS];
	struct ir_slot slots[MAX_ARGS];
	struct out_sink s;
	const char *err = NULL;
	size_t off;
	struct fmt *f = fmt_parse(arena, lang, format, strlen(format), &err, &off);

	if (!f)
		print_error("%s: %s\n", format, err);
	assert_non_null(f);
	split(t, n, v, slots);
	out_open_mem(&s);
	s.dialect = lang == FMT_D ? &dialect_d : &dialect_stp;
	assert_int_equal(out_printf(&s, f, v, slots, n), 0);
	assert_string_equal(out_text(&s), want);
	assert_int_equal(out_close(&s), 0);
}

#define D(want, format, ...)                                                                       \
	do {                                                                                       \
		const struct typed t_[] = { __VA_ARGS__ };                                         \
		check(FMT_D, want, format, t_, sizeof(t_) / sizeof(t_[0]));                        \
	} while (0)
#define STP(want, format, ...)                                                                     \
	do {                                                                                       \
		const struct typed t_[] = { __VA_ARGS__ };                                         \
		check(FMT_STP, want, format, t_, sizeof(t_) / sizeof(t_[0]));                      \
	} while (0)

/* Guide: "If the argument is signed, it will be printed as a signed value." */
static void d_integers(void **state)
{
	(void)state;
	D("-1 -1 -1 -1", "%d %d %d %d", I8(-1), I16(-1), I32(-1), I64(-1));
	D("255 65535 4294967295 18446744073709551615", "%d %i %d %i", U8(-1), U16(-1), U32(-1), U64(-1));
	D("255 65535 4294967295 18446744073709551615", "%u %u %u %u", I8(-1), I16(-1), I32(-1), I64(-1));
	D("ff ffff ffffffff ffffffffffffffff", "%x %x %x %x", I8(-1), I16(-1), I32(-1), I64(-1));
	D("377 37777777777", "%o %o", I8(-1), I32(-1));
	D("DEADBEEF", "%X", U32(0xdeadbeef));
	D("-9223372036854775808 0", "%d %d", I64(INT64_MIN), I32(0));
	D("-1 12 255", "%lld %ld %hhu", I64(-1), I32(12), I32(-1));
	D("ffffffffffffffff", "%llx", I32(-1));
	D("100% of 7", "100%% of %d", I32(7));
}

/* Guide, "Flag Specifiers", "Width and Precision Specifiers". */
static void d_flags(void **state)
{
	(void)state;
	D("[   42][42   ][00042][+42][ 42]", "[%5d][%-5d][%05d][%+d][% d]", I32(42), I32(42), I32(42),
	  I32(42), I32(42));
	D("[  -42][-0042][-42  ]", "[%5d][%05d][%-5d]", I32(-42), I32(-42), I32(-42));
	D("[0x2a][0X2A][052][0]", "[%#x][%#X][%#o][%#x]", I32(42), I32(42), I32(42), I32(0));
	D("[0x002a][  0x2a]", "[%#06x][%#6x]", I32(42), I32(42));
	D("[00042][  042]", "[%.5d][%5.3d]", I32(42), I32(42));
	D("[   42][42   ][00042]", "[%*d][%*d][%.*d]", I32(5), I32(42), I32(-5), I32(42), I32(5), I32(42));
	D("[00042]", "[%-05d]", I32(42));	/* in D the later of - and 0 counts */
	D("[1234567]", "[%'d]", I32(1234567));	/* the C locale groups nothing */
	D("[0000000000001000]", "[%0?p]", U64(0x1000));
}

static void d_strings(void **state)
{
	(void)state;
	D("hello", "%s", STR("hello"));
	D("[     hello][hello     ][hel][  he]", "[%10s][%-10s][%.3s][%4.2s]", STR("hello"), STR("hello"),
	  STR("hello"), STR("hello"));
	D("[   hi][hi   ][h]", "[%*s][%-*s][%.*s]", I32(5), STR("hi"), I32(5), STR("hi"), I32(1), STR("hi"));
	D("[]", "[%s]", STR(""));
	D("[hello]", "[%.0s]", STR("hello"));	/* libdtrace leaves a precision of 0 out */
	D("a\\tb\\n\\\"\\\\\\001\\303\\251", "%S", STR("a\tb\n\"\\\001\303\251"));
	D("[   \\n][\\n   ]", "[%5S][%-5S]", STR("\n"), STR("\n"));
	D("A[  A][A  ]", "%c[%3c][%-3c]", I32('A'), I8('A'), I16('A'));
	D("A\\n\\0\\377", "%C%C%C%C", I32('A'), I32('\n'), I32(0), I32(0xff));
	D("\xc3\xa9\xe2\x82\xac", "%wc%lc", I32(0xe9), I32(0x20ac));
}

static void d_addresses(void **state)
{
	(void)state;
	D("ffffffff81000000", "%p", U64(0xffffffff81000000));
	D("0x0 0x7f0012345678", "%a %A", U64(0), U64(0x7f0012345678));
	D("[0x10      ]", "[%-10a]", U64(16));
}

/* Guide, %Y: the example of walltimestamp is "2003 Dec 13 21:36:05"-like: year, month, day, time. */
static void d_times(void **state)
{
	(void)state;
	D("1973 Dec  3 17:20:00", "%Y", U64(123787200ull * 1000000000));
	D("2026 Nov 21 11:53:00", "%Y", U64(1795261980999999999ull));
	D("[   1970 Jan  1 00:00:00]", "[%23Y]", U64(0));
	D("Sat, 21 Nov 2026 11:53:00 UTC", "%T", U64(1795261980ull * 1000000000));
}

/* As C's printf() has them, which is the witness. */
static void d_floats(void **state)
{
	static const char *const formats[] = { "%f", "%e", "%E", "%g", "%G", "%12.3f|", "%-12.3f|", "%+g", "% g", "%#g",
					       "%020.5e", "%-20.2f|", "%.300f", "%400f", "%0400f", "%+030g" };
	static const double values[] = { 0, -0.0, 1, -1.0 / 3, 1e300, -1e-300, 123456.789, INFINITY, -INFINITY };
	char want[2048];

	(void)state;
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		for (size_t j = 0; j < sizeof(values) / sizeof(*values); j++) {
			float f = (float)values[j];
			uint64_t bits = 0;

			snprintf(want, sizeof(want), formats[i], values[j]);
			memcpy(&bits, &values[j], sizeof(values[j]));
			D(want, formats[i], U64(bits));
			snprintf(want, sizeof(want), formats[i], (double)f);
			bits = 0;
			memcpy(&bits, &f, sizeof(f));
			D(want, formats[i], U32(bits));
		}
	}
}

static void mismatch(void **state)
{
	const struct typed one[] = { STR("x") };
	struct ir_value v[1];
	struct ir_slot slots[1];
	struct out_sink s;
	const char *err;
	size_t off;

	(void)state;
	split(one, 1, v, slots);
	out_open_mem(&s);
	assert_int_equal(out_printf(&s, fmt_parse(arena, FMT_D, "%d", 2, &err, &off), v, slots, 1), -EINVAL);
	assert_int_equal(out_printf(&s, fmt_parse(arena, FMT_D, "%s%s", 4, &err, &off), v, slots, 1), -EINVAL);
	assert_int_equal(out_printf(&s, fmt_parse(arena, FMT_D, "%*s", 3, &err, &off), v, slots, 1), -EINVAL);
	assert_int_equal(out_printf(&s, fmt_parse(arena, FMT_D, "%@d", 3, &err, &off), v, slots, 1), -EINVAL);
	out_close(&s);
}

/* SystemTap language reference, "printf": its table of examples, and its runtime. */
static void stp(void **state)
{
	(void)state;
	STP("392 610 sample 7235 7fa 7FA", "%d %o %s %u %x %X", I64(392), I64(0610), STR("sample"), I64(7235),
	    I64(0x7fa), I64(0x7fa));
	STP("ffffffffffffffff", "%x", I64(-1));
	STP("0xff 0x0", "%p %p", I64(255), I64(0));
	STP("0x0 00 0x2a", "%#x %#o %#x", I64(0), I64(0), I64(42));
	STP("[  0xff][0x00ff]", "[%#6x][%#06x]", I64(255), I64(255));
	STP("[    7][7    ][+7][ 7][007]", "[%5d][%-5d][%+d][% d][%03d]", I64(7), I64(7), I64(7), I64(7), I64(7));
	STP("[   ab][ab]", "[%*s][%.*s]", I64(5), STR("ab"), I64(2), STR("abc"));
	STP("A\\n\\000\\'", "%c%#c%#c%#c", I64('A'), I64('\n'), I64(0), I64('\''));
	STP("AB", "%1b%1b", I64('A'), I64('B'));
	STP("ABAB", "%4b", I64(0x42414241));
	STP("100%", "100%", STR(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(d_integers),  cmocka_unit_test(d_flags), cmocka_unit_test(d_strings),
		cmocka_unit_test(d_addresses), cmocka_unit_test(d_floats), cmocka_unit_test(d_times), cmocka_unit_test(mismatch),
		cmocka_unit_test(stp),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}

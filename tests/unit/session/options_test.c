#include "session/options.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/strbuf.h"

static void reads_sizes(void **state)
{
	static const struct {
		const char *text;
		int64_t bytes;
	} good[] = { { "0", 0 }, { "512", 512 }, { "4k", 4096 }, { "4K", 4096 }, { "16m", 16 << 20 },
		     { "1g", 1 << 30 }, { "1t", 1ll << 40 }, { "0x10", 16 } };
	static const char *const bad[] = { "", "m", "4kb", "-1", "4 k", "99999999999999999999", "9999999t" };
	int64_t v;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(option_size(good[i].text, &v), 0);
		assert_int_equal(v, good[i].bytes);
	}
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(option_size(bad[i], &v), -EINVAL);
}

static void reads_rates(void **state)
{
	static const struct {
		const char *text;
		int64_t ns;
	} good[] = { { "1hz", 1000000000 }, { "20", 50000000 }, { "10ms", 10000000 }, { "2s", 2000000000 },
		     { "1min", 60000000000 }, { "3us", 3000 }, { "1day", 86400000000000 },
		     { "0", 1 }, { "0hz", 1 }, { "0ms", 1 } };
	static const char *const bad[] = { "", "-1hz", "1fortnight", "0fortnight", "hz", "9999999999d" };
	int64_t v;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(option_rate(good[i].text, &v), 0);
		assert_int_equal(v, good[i].ns);
	}
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(option_rate(bad[i], &v), -EINVAL);
}

static void the_command_line_wins(void **state)
{
	struct strbuf err = { 0 };
	struct options o;

	(void)state;
	options_init(&o);
	assert_int_equal(o.v[OPT_strsize], 256);
	assert_int_equal(o.v[OPT_quiet], 0);
	assert_int_equal(options_set(&o, "strsize", "1k", OPTION_COMMAND, &err), 0);
	assert_int_equal(options_set(&o, "strsize", "64", OPTION_SCRIPT, &err), 0);
	assert_int_equal(o.v[OPT_strsize], 1024);
	assert_int_equal(options_set(&o, "quiet", NULL, OPTION_SCRIPT, &err), 0);
	assert_int_equal(o.v[OPT_quiet], 1);
	assert_int_equal(err.len, 0);
	strbuf_fini(&err);
}

static void says_what_an_option_takes(void **state)
{
	static const struct {
		const char *name, *value, *message;
		int error;
	} cases[] = {
		{ "nope", NULL, "there is no option 'nope'", -ENOENT },
		{ "strsize", "x", "option 'strsize' takes a size such as 512k or 4m, not 'x'", -EINVAL },
		{ "strsize", "1", "option 'strsize' takes a size from 2 to 64k, not '1'", -EINVAL },
		{ "strsize", NULL, "option 'strsize' takes a size from 2 to 64k", -EINVAL },
		{ "nspec", "-1", "option 'nspec' takes a number from 0 on, not '-1'", -EINVAL },
		{ "quiet", "-1", "option 'quiet' takes no value, or on or off, not '-1'", -EINVAL },
		{ "linktype", "coff", "option 'linktype' takes elf or dof, not 'coff'", -EINVAL },
		{ "quiet", "maybe", "option 'quiet' takes no value, or on or off, not 'maybe'", -EINVAL },
		{ "switchrate", "-1", "option 'switchrate' takes a rate such as 10hz or 50ms, not '-1'", -EINVAL },
		{ "place", "moon", "option 'place' takes auto, kernel or target, not 'moon'", -EINVAL },
	};
	struct strbuf err = { 0 };
	struct options o;
	size_t i;

	(void)state;
	options_init(&o);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		strbuf_clear(&err);
		assert_int_equal(options_set(&o, cases[i].name, cases[i].value, OPTION_COMMAND, &err),
				 cases[i].error);
		assert_string_equal(strbuf_str(&err), cases[i].message);
	}
	strbuf_fini(&err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_sizes),
		cmocka_unit_test(reads_rates),
		cmocka_unit_test(the_command_line_wins),
		cmocka_unit_test(says_what_an_option_takes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

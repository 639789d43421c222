/* In ASCII the patterns agree with fnmatch(), but for its sets of classes ([[:alpha:]]). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fnmatch.h>
#include <stdio.h>

#include "base/glob.h"

static void test_like_fnmatch(void **state)
{
	static const char pattern_chars[] = "ab.*?[]-!\\", text_chars[] = "ab.]-";
	enum { PATTERN = 6, TEXT = 4, ROUNDS = 2000000 };
	uint32_t seed = 1;
	unsigned matches = 0;

	(void)state;
	for (int k = 0; k < ROUNDS; k++) {
		char pattern[PATTERN + 1] = "", text[TEXT + 1] = "";
		bool closed = true, is;

		for (int i = 0; i < PATTERN; i++) {
			seed = seed * 1664525 + 1013904223;
			pattern[i] = (seed >> 8) % 9 ? pattern_chars[(seed >> 16) % (sizeof(pattern_chars) - 1)] : '\0';
		}
		for (int i = 0; i < TEXT; i++) {
			seed = seed * 1664525 + 1013904223;
			text[i] = (seed >> 8) % 4 ? text_chars[(seed >> 16) % (sizeof(text_chars) - 1)] : '\0';
		}
		/* What fnmatch() makes of a set without an end, or of a backslash in one or at the end, is its own. */
		for (const char *p = pattern; *p; p++)
			closed &= *p != '[' && *p != '\\';
		if (!closed || !*pattern)
			continue;
		is = !fnmatch(pattern, text, 0);
		matches += is;
		if (glob_match(pattern, text) != is)
			fail_msg("pattern %s, text %s: %d", pattern, text, is);
	}
	assert_true(matches > 1000);
}

static void test_rows(void **state)
{
	static const struct { const char *pattern, *text; bool is; } rows[] = {
		{ "", "anything", true }, { "", "", true }, { "*", "", true }, { "**", "a.b", true }, { "?", "", false },
		{ "Order.*", "Order.total", true }, { "Order.*", "Order", false }, { "*.<locals>.*", "f.<locals>.g", true },
		{ "[a-c]x", "bx", true }, { "[!a-c]x", "bx", false }, { "[!a-c]x", "dx", true }, { "[]a]", "]", true },
		{ "[a-]", "-", true }, { "[a\\]]", "]", true }, { "[a", "[a", true }, { "[a", "a", false },
		{ "a\\*b", "a*b", true }, { "a\\*b", "axb", false }, { "*a*b*c", "xaxbxc", true }, { "*a*b*c", "xaxbx", false },
		{ "\xce\x94?", "\xce\x94\xce\xbb", true }, { "?", "\xce\x94", true }, { "??", "\xce\x94", false },
		{ "*\xbb", "\xce\xbb", false }, { "[\xce\x91-\xce\xa9]", "\xce\x94", true },
		{ "[!a-z]x", "\xce\x94x", true }, { "[\xce]*", "\xce\x94", false }, { "x[a\xce\x94]y", "x\xce\x94y", true },
		{ "?b", "\xff" "b", true }, { "??", "\xce", false }, { "?x", "\xcex", true }, { "?", "\xf0\x9f\x90\x8d", true },
		{ "\xff", "\xff", true }, { "\xce*", "\xce\x94", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (glob_match(rows[i].pattern, rows[i].text) != rows[i].is)
			fail_msg("row %zu: %s, %s", i, rows[i].pattern, rows[i].text);
	assert_true(glob_is("") && glob_is("a*") && glob_is("a\\b") && !glob_is("a.<locals>.b"));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_like_fnmatch), cmocka_unit_test(test_rows) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

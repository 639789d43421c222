/*
 * Which regular expressions are refused; the accepted ones against regexec(3), on a machine as rt/match.c's.
 */
#include "lang/regex.h"

#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"

static void refused(void **state)
{
	static const char *const bad[] = { "(", ")", "a)", "(a", "[", "[]", "[a", "*", "+a", "a|*", "(?)", "a{", "a{x}",
					   "a{3,2}", "a{999}", "\\", "[z-a]", "[[:nosuch:]]", "((((a{99}){99}){99}){99})" };
	struct arena *a = arena_new();

	(void)state;
	for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
		const char *err = NULL;

		if (regex_compile(a, bad[k], &err) || !err)
			fail_msg("%s is accepted", bad[k]);
	}
	arena_free(a);
}

/* Goes back by recursion; only as far as the short strings below need. */
static bool run(const struct regex *re, const char *s, size_t pos, uint32_t pc, uint64_t *slots)
{
	for (;;) {
		uint64_t insn = re->words[pc], x = insn >> 16 & 0xffff, old;
		unsigned char byte = (unsigned char)s[pos];

		switch ((enum regex_op)(insn & 0xff)) {
		case REGEX_CHAR:
			if (byte != x)
				return false;
			pos++;
			break;
		case REGEX_ANY:
			if (!byte)
				return false;
			pos++;
			break;
		case REGEX_SET:
			if (!byte || !(re->words[x + byte / 64] >> byte % 64 & 1))
				return false;
			pos++;
			break;
		case REGEX_SPLIT:
			if (run(re, s, pos, (uint32_t)x, slots))
				return true;
			pc = (uint32_t)(insn >> 32 & 0xffff);
			continue;
		case REGEX_JMP:
			pc = (uint32_t)x;
			continue;
		case REGEX_SAVE:
			old = slots[x];
			slots[x] = pos;
			if (run(re, s, pos, pc + 1, slots))
				return true;
			slots[x] = old;
			return false;
		case REGEX_BEGIN:
			if (pos)
				return false;
			break;
		case REGEX_END:
			if (byte)
				return false;
			break;
		case REGEX_PROGRESS:
			if (slots[x] == pos)
				return false;
			break;
		case REGEX_MATCH:
			return true;
		case REGEX_FAIL:
			return false;
		}
		pc++;
	}
}

static bool matches(const struct regex *re, const char *s)
{
	uint64_t slots[REGEX_SLOTS];

	for (size_t start = 0; start <= strlen(s); start++) {
		memset(slots, 0xff, sizeof(slots));
		if (run(re, s, start, 0, slots))
			return true;
	}
	return false;
}

static void as_regexec(void **state)
{
	static const char *const patterns[] = { "", "a", "^a", "a$", "^$", "a|b", "(a|b)+c", "a*b", "(a*)*b", "(a*|b)*c$",
						"[a-c]x?", "[^a]", "[]a]", "[a-]", "a.c", "a\\.c", "(ab){2}", "a{2,3}$",
						"a{0,1}b{2,}", "(^a|b$)", "x(y(z)?)+", "[[:upper:][:digit:]]+-", "()a" };
	static const char *const strings[] = { "", "a", "b", "c", "ab", "abc", "aab", "aaa", "aaaa", "a.c", "axc", "abab",
					       "bb", "abb", "xyz", "xyyzy", "]", "-", "A1-", "A1", "ba", "cab", "xx" };
	struct arena *a = arena_new();

	(void)state;
	for (size_t k = 0; k < sizeof(patterns) / sizeof(patterns[0]); k++) {
		const char *err;
		struct regex *re = regex_compile(a, patterns[k], &err);
		regex_t posix;

		if (!re)
			fail_msg("%s: %s", patterns[k], err);
		assert_int_equal(regcomp(&posix, patterns[k], REG_EXTENDED | REG_NOSUB), 0);
		for (size_t s = 0; s < sizeof(strings) / sizeof(strings[0]); s++) {
			if (matches(re, strings[s]) != !regexec(&posix, strings[s], 0, NULL, 0))
				fail_msg("%s in \"%s\"", patterns[k], strings[s]);
		}
		regfree(&posix);
	}
	arena_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(refused), cmocka_unit_test(as_regexec) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

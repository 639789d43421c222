/*
 * Regular expressions: which are refused, and the machine that runs them (bpf/rt/match.c, built for this one) against
 * regexec(3), on patterns and strings made at random.
 */
#include "lang/regex.h"

#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"

/* What rt/rt.h gives to code for the kernel. */
#define DTAP_BPF_RT_RT_H
#define RT static
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;

static long rt_loop(u32 n, void *fn, void *ctx, u64 flags)
{
	long (*step)(u32 k, void *ctx) = (long (*)(u32 k, void *ctx))fn;
	u32 k = 0;

	(void)flags;
	while (k < n && !step(k, ctx))
		k++;
	return k;
}

static long rt_copy(void *dst, u32 size, const void *src)
{
	memcpy(dst, src, size);
	return 0;
}

static long rt_copy_str(void *dst, u32 size, const void *src)
{
	memcpy(dst, src, size - 1);
	((char *)dst)[size - 1] = '\0';
	return size;
}

#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "bpf/rt/match.c"

static long (*const unused)(char *dst, const u32 *kept, u64 size, u64 n) __attribute__((unused)) = rt_matched;

static u64 work[MATCH_WORDS];

static s64 run(const struct regex *re, const char *s)
{
	u64 sizes = re->ncode | (u64)re->nwords << 16 | (u64)(strlen(s) + 1) << 32 | (u64)re->nslots << MATCH_SLOTS_SHIFT |
		    (u64)re->anchored << MATCH_ANCHORED_SHIFT;

	memset(work, 0xa5, sizeof(work));
	return rt_match((const u64 *)re->words, sizes, (const u8 *)s, work);
}

static struct regex *compile(struct arena *a, const char *text, bool groups)
{
	const char *err;
	struct regex *re = regex_compile(a, text, groups, &err);

	if (!re)
		fail_msg("%s: %s", text, err);
	return re;
}

static void refused(void **state)
{
	static const char *const bad[] = { "(", ")", "a)", "(a", "[", "[]", "[a", "*", "+a", "a|*", "(?)", "a{", "a{x}",
					   "a{3,2}", "a{999}", "\\", "[z-a]", "[[:nosuch:]]", "((((a{99}){99}){99}){99})" };
	struct arena *a = arena_new();

	(void)state;
	for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
		const char *err = NULL;

		if (regex_compile(a, bad[k], false, &err) || !err)
			fail_msg("%s is accepted", bad[k]);
	}
	arena_free(a);
}

static void groups(void **state)
{
	static const struct {
		const char *text;
		uint32_t n;
	} cases[] = {
		{ "", 1 }, { "a", 1 }, { "(a)", 2 }, { "(a(b)|(c))", 4 }, { "\\(", 1 }, { "[(]", 1 }, { "[[:alpha:](]", 1 },
		{ "[]()]", 1 }, { "[\\]()](x)", 2 }, { "[\\[:alpha:]([(])", 2 }, { "[^](](a)", 2 }, { "(a){3}", 2 },
	};
	struct arena *a = arena_new();

	(void)state;
	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++)
		assert_int_equal(compile(a, cases[k].text, true)->ngroups, cases[k].n);
	arena_free(a);
}

/* --- against regexec ------------------------------------------------------------------------------------ */

/* Where @re matches in @s must be where @posix does; and with @inner, where its groups do. */
static void same(struct arena *a, const char *text, const char *s, bool inner)
{
	struct regex *plain = compile(a, text, false), *re = compile(a, text, true);
	regmatch_t m[REGEX_GROUPS];
	regex_t posix;
	bool want;

	assert_int_equal(regcomp(&posix, text, REG_EXTENDED), 0);
	want = !regexec(&posix, s, inner ? REGEX_GROUPS : 1, m, 0);	/* of repeated groups it may think for ever */
	regfree(&posix);
	if (run(plain, s) != want)
		fail_msg("\"%s\" =~ \"%s\": %d in regexec", s, text, want);
	if (run(re, s) != want)
		fail_msg("\"%s\" =~ \"%s\" with groups: %d in regexec", s, text, want);
	for (size_t k = 0; want && k < (inner ? re->nslots / 2 : 1); k++) {
		const u32 *slots = (const u32 *)(work + MATCH_SAVED) + 2 * k;
		int from = (int)slots[0], to = (int)slots[1];

		if (from != m[k].rm_so || to != m[k].rm_eo)
			fail_msg("\"%s\" =~ \"%s\", group %zu: %d to %d, in regexec %d to %d", s, text, k, from, to,
				 m[k].rm_so, m[k].rm_eo);
	}
}

static void as_regexec(void **state)
{
	static const char *const patterns[] = { "", "a", "^a", "a$", "^$", "a|b", "(a|b)+c", "a*b", "(a*)*b", "(a*|b)*c$",
						"[a-c]x?", "[^a]", "[]a]", "[a-]", "a.c", "a\\.c", "(ab){2}", "a{2,3}$",
						"a{0,1}b{2,}", "(^a|b$)", "x(y(z)?)+", "[[:upper:][:digit:]]+-", "()a",
						"(a|ab)(c|bcd)(d*)", "(a*)(ab)*(b*)", "a|ab|abc", "(abcd|bc)" };
	static const char *const strings[] = { "", "a", "b", "c", "ab", "abc", "aab", "aaa", "aaaa", "a.c", "axc", "abab", "abcd",
					       "bb", "abb", "xyz", "xyyzy", "]", "-", "A1-", "A1", "ba", "cab", "xx" };
	struct arena *a = arena_new();

	(void)state;
	for (size_t k = 0; k < sizeof(patterns) / sizeof(patterns[0]); k++)
		for (size_t s = 0; s < sizeof(strings) / sizeof(strings[0]); s++)
			same(a, patterns[k], strings[s], !strpbrk(patterns[k], ")*") || !strstr(patterns[k], ")*"));
	arena_free(a);
}

static unsigned int below(unsigned int n)
{
	return (unsigned int)random() % n;
}

/* A pattern at @p of about @size atoms: its end.  Groups are repeated only if @loops. */
static char *make(char *p, int size, bool loops)
{
	static const char *const atoms[] = { "a", "b", "c", ".", "[ab]", "[^a]", "a", "b" };
	static const char *const repeats[] = { "*", "+", "?", "{2}", "{0,2}", "{1,}" };

	while (size > 0) {
		bool group = size > 1 && below(3) == 0;

		if (group) {
			int inside = 1 + (int)below((unsigned int)size - 1);

			*p++ = '(';
			p = make(p, inside, loops);
			*p++ = ')';
			size -= inside;
		} else {
			p = stpcpy(p, atoms[below(8)]);
			size--;
		}
		if (below(3) == 0 && (!group || loops))
			p = stpcpy(p, repeats[below(6)]);
		if (size > 0 && below(5) == 0)
			*p++ = '|';
	}
	*p = '\0';
	return p;
}

static void at_random(void **state)
{
	(void)state;
	srandom(1);
	for (int n = 0; n < 20000; n++) {
		struct arena *a = arena_new();
		bool loops = n % 2;
		char text[256], s[24];

		/* Of anchors in groups and alternatives regexec is not always right: "ccb" =~ "(a)+|(^[^a]|b)+." */
		make(text + 1, 1 + (int)below(7), loops);
		text[0] = '^';
		if (below(6) && !strchr(text, '|'))
			strcat(text, "$");
		for (int k = 0; k < 3; k++) {
			unsigned int len = below(9);

			for (unsigned int i = 0; i < len; i++)
				s[i] = "abc"[below(3)];
			s[len] = '\0';
			same(a, below(6) || strchr(text, '|') ? text + 1 : text, s, !loops);
		}
		arena_free(a);
	}
}

/* No way is gone twice, and nothing grows with the string. */
static void long_strings(void **state)
{
	static const char *const patterns[] = { "^(a|b)*$", "(a*)*$", "^(a|aa)+$", "(a|b|ab)*c|a*$", "(((a*)*)*)*$", "(a?){99}a{99}" };
	struct arena *a = arena_new();
	char s[601];

	(void)state;
	memset(s, 'a', sizeof(s) - 1);
	s[sizeof(s) - 1] = '\0';
	for (size_t k = 0; k < sizeof(patterns) / sizeof(*patterns); k++) {
		assert_int_equal(run(compile(a, patterns[k], false), s), 1);
		assert_int_equal(run(compile(a, patterns[k], true), s), 1);
		assert_int_equal((u32)work[MATCH_SAVED], 0);
	}
	/* What takes too many steps is no match and no mismatch. */
	assert_int_equal(run(compile(a, "((a?){30}){30}b", false), s), -1);
	arena_free(a);
}

/*
 * Alternatives wait on the machine's stack; here they are nested as deep as the compiler permits.  The innermost one, "f", is
 * the first that a smaller stack would lose.  regexec needs years for some of these patterns.
 */
static void nested(void **state)
{
	enum { DEEPEST = 98 };		/* groups around the two of the innermost pattern */
	static const char *const strings[] = { "a", "f", "b", "cd", "af", "ab", "" };
	static const struct {
		const char *around;
		bool want[sizeof(strings) / sizeof(*strings)];
	} cases[] = {
		{ "(%s|b)", { true, true, true } }, { "(b|%s)", { true, true, true } }, { "(%s)?", { true, true, [6] = true } },
		{ "(%s)*", { true, true, [4] = true, [6] = true } }, { "(%s|c)d?", { true, true, [3] = true } },
		{ "(%s|cd)", { true, true, [3] = true } },
	};

	(void)state;
	for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
		char text[2][1024] = { "((a|e)|f)" };

		for (int n = 0; n < DEEPEST; n++) {
			struct arena *a = arena_new();
			char whole[1100];
			struct regex *re;

			snprintf(text[(n + 1) % 2], sizeof(*text), cases[k].around, text[n % 2]);
			snprintf(whole, sizeof(whole), "^%s$", text[(n + 1) % 2]);
			re = compile(a, whole, false);
			for (size_t i = 0; i < sizeof(strings) / sizeof(*strings); i++) {
				s64 got = run(re, strings[i]);

				if (got != cases[k].want[i])
					fail_msg("\"%s\" =~ \"%s\": %d", strings[i], whole, (int)got);
			}
			arena_free(a);
		}
	}
}

/*
 * Patterns and strings at random that reach the machine's limits: what it says is what regexec says, or that it has not
 * come to an end.  With REG_NOSUB regexec does not think for ever.
 */
static void at_random_and_long(void **state)
{
	int ends = 0, gives_up = 0;

	(void)state;
	srandom(2);
	for (int n = 0; n < 150; n++) {
		struct arena *a = arena_new();
		const char *err;
		char text[512], inner[256], s[601];
		unsigned int len = 50 + below(sizeof(s) - 50);
		struct regex *re;

		make(inner, 1 + (int)below(2), false);
		snprintf(text, sizeof(text), "((%s)?){%u}%s", inner, 1 + below(30), below(2) ? "b" : "c");
		if (below(2))
			snprintf(text, sizeof(text), "(((%s)?){%u}b?){%u}c", inner, 1 + below(20), 1 + below(30));
		for (unsigned int i = 0; i < len; i++)
			s[i] = "aaab"[below(4)];
		s[len] = '\0';
		re = regex_compile(a, text, false, &err);
		if (re) {
			s64 got = run(re, s);
			regex_t posix;

			assert_int_equal(regcomp(&posix, text, REG_EXTENDED | REG_NOSUB), 0);
			if (got == -1)
				gives_up++;
			else if (got == !regexec(&posix, s, 0, NULL, 0))
				ends++;
			else
				fail_msg("\"%s\" =~ \"%s\": %d", s, text, (int)got);
			regfree(&posix);
		}
		arena_free(a);
	}
	assert_true(ends > 20 && gives_up > 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(refused), cmocka_unit_test(groups), cmocka_unit_test(as_regexec),
					    cmocka_unit_test(at_random), cmocka_unit_test(long_strings), cmocka_unit_test(nested),
					    cmocka_unit_test(at_random_and_long) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

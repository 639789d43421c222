/* In a tree of all names that a pattern may be about: the same paths as glob(3)'s. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/oom.h"
#include "base/paths.h"

static char folder[] = "/tmp/dtap-paths-XXXXXX";

static int make(void **state)
{
	static const char *const names[] = { "a", "b", "ab", "a.b", ".a", "a-b", "{a}", "a/a", "a/b", "a/.b", "b/ab", "b/a.b", "ab/a" };

	(void)state;
	/* A pattern gets three folders up at most, and there are no others' files there. */
	if (!mkdtemp(folder) || chdir(folder) || mkdir("1", 0755) || mkdir("1/2", 0755) || mkdir("1/2/3", 0755) || chdir("1/2/3"))
		return -1;
	for (int k = 0; k < 3; k++)
		if (mkdir(names[k], 0755))
			return -1;
	for (size_t k = 3; k < sizeof(names) / sizeof(names[0]); k++)
		if (mknod(names[k], S_IFREG | 0644, 0))
			return -1;
	return symlink("nowhere", "b/b");
}

static int clean(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return chdir("/") || system(command);
}

static size_t compare(const char *pattern, bool braces)
{
	struct arena *a = arena_new();
	const char **v = NULL;
	size_t n = paths_matching(a, pattern, braces, &v);
	glob_t g = { 0 };
	int err = glob(pattern, braces ? GLOB_BRACE : 0, NULL, &g);

	if (err && err != GLOB_NOMATCH)
		fail_msg("glob(\"%s\"): %d", pattern, err);
	if (n != g.gl_pathc)
		fail_msg("\"%s\": %zu paths, not %zu", pattern, n, g.gl_pathc);
	for (size_t k = 0; k < n; k++)
		if (strcmp(v[k], g.gl_pathv[k]))
			fail_msg("\"%s\": %s, not %s", pattern, v[k], g.gl_pathv[k]);
	globfree(&g);
	arena_free(a);
	return n;
}

static void like_glob(void **state)
{
	static const char chars[] = "ab.*?-/aab*/[]\\{,}";
	enum { LENGTH = 9, ROUNDS = 100000 };
	unsigned found = 0;
	uint32_t seed = 1;

	(void)state;
	for (int k = 0; k < ROUNDS; k++) {
		bool braces = k % 4 == 0;
		char pattern[LENGTH + 1] = "";
		int open = 0;

		for (int i = 0; i < LENGTH; i++) {
			seed = seed * 1664525 + 1013904223;
			pattern[i] = (seed >> 8) % 9 ? chars[(seed >> 16) % (sizeof(chars) - 1)] : '\0';
		}
		/*
		 * The root's files are others'; what glob() makes of sets and braces without an end, of a backslash before them,
		 * and of a file with a slash behind it, is its own.
		 */
		for (const char *p = pattern; *p; p++)
			open |= *p == '[' || *p == '\\' || (!braces && strchr("{,}", *p));
		if (open || *pattern == '/' || (*pattern && pattern[strlen(pattern) - 1] == '/') || (braces && strpbrk(pattern, "{}") && !strchr(pattern, ',')))
			continue;
		if (braces) {
			int depth = 0;

			for (const char *p = pattern; *p && depth >= 0; p++)
				depth += (*p == '{') - (*p == '}');
			if (depth)
				continue;
		}
		found += compare(pattern, braces) > 0;
	}
	assert_true(found > 1000);
}

static void by_hand(void **state)
{
	static const char *const patterns[] = { "[ab]", "[!a]", "a[.-]b", "\\a", "a\\.b", ".*", "*/", "a/", "a//b", "*//*", "nowhere", "nowhere/*",
						"b/b", "b/b/*", "{a,b}", "{a,{b,ab}}/*", "x{a,b}", "{a}", "{,a}b", "./a*", "../nowhere*", "a*/../b" };

	(void)state;
	for (size_t k = 0; k < sizeof(patterns) / sizeof(patterns[0]); k++)
		for (int braces = 0; braces < 2; braces++)
			if (strcmp(patterns[k], ".*"))	/* glob() has "." and "..", too, and so have these */
				compare(patterns[k], braces);
	assert_int_equal(compare("{b,a}/*", true), 5);
	assert_int_equal(compare("", false), 0);
}

/* A folder that cannot be opened for want of descriptors is not an empty one. */
static void shortage(void **state)
{
	struct arena *a = arena_new();
	int fds[4096], n = 0;
	const char **v;

	(void)state;
	assert_true(paths_matching(a, "*/a*", false, &v) > 0);
	assert_int_equal(shortage_take(), 0);
	while (n < 4096 && (fds[n] = dup(0)) >= 0)
		n++;
	if (n < 4096) {
		assert_int_equal(paths_matching(a, "*/a*", false, &v), 0);
		assert_int_equal(shortage_take(), -EMFILE);
	}
	while (n--)
		close(fds[n]);
	arena_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(like_glob),
		cmocka_unit_test(by_hand),
		cmocka_unit_test(shortage),
	};

	return cmocka_run_group_tests(tests, make, clean);
}

/* Which files of a tapset are given out, in which order, and what of them is hidden. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/stp_env.h"
#include "stp/tapset.h"
#include "tree.h"

static char dir[32];

static void put(const char *folder, const char *name, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, folder);
	if (access(path, F_OK))
		assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/%s/%s", dir, folder, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int set_up(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/tapset-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

/* Base names of the files that @script needs of the folders a and b, a blank behind each, and what was parsed. */
static const char *needed(const char *script, struct strbuf *tree)
{
	static char names[256];
	struct arena *a = arena_new();
	struct stp_env env;
	struct diag diag;
	struct stp_tapset *t = stp_tapset_new(a, "x86_64");
	const struct source *src, *main_src = source_text(a, "script", script, strlen(script));
	struct stp *stp;
	char path[64];

	diag_init(&diag, a);
	stp_env_init(&env, a);
	stp = stp_new(a, &diag, &env);
	stp_tapset_script(t, main_src);
	snprintf(path, sizeof(path), "%s/a", dir);
	stp_tapset_dir(t, path, NULL);
	snprintf(path, sizeof(path), "%s/b", dir);
	stp_tapset_dir(t, path, NULL);
	names[0] = '\0';
	while ((src = stp_tapset_next(t))) {
		strcat(names, strrchr(src->name, '/') + 1);
		strcat(names, " ");
		assert_true(stp_tapset_add(t, stp));
	}
	assert_true(stp_add(stp, main_src, false));
	if (tree)
		stp_dump(tree, stp_tree(stp));
	arena_free(a);
	return names;
}

static void only_what_is_used(void **state)
{
	(void)state;
	put("a", "one.stp", "function one() { return 1 }\n");
	put("a", "two.stp", "function two() { return one() }\n");
	put("a", "three.stp", "function three() { return 3 }\n");
	put("a", "not_a_script", "function one() { return 4 }\n");
	assert_string_equal(needed("probe begin { println(5) }", NULL), "");
	assert_string_equal(needed("probe begin { println(one()) }", NULL), "one.stp ");
	/* What a file that is needed uses is needed, too. */
	assert_string_equal(needed("probe begin { println(two()) }", NULL), "one.stp two.stp ");
}

static void aliases_by_all_of_their_name(void **state)
{
	(void)state;
	put("a", "one.stp", "probe x.y.z = begin { v = 1 }\n");
	put("a", "two.stp", "probe x.w += begin { v = 2 }\n");
	assert_string_equal(needed("probe x.y.z { println(v) }", NULL), "one.stp ");
	assert_string_equal(needed("probe x.w { println(v) }", NULL), "two.stp ");
	assert_string_equal(needed("probe x.* { println(v) }", NULL), "one.stp two.stp ");
	assert_string_equal(needed("probe begin { x = 1; println(x) }", NULL), "");
	assert_string_equal(needed("probe begin { x = 2 * 3; println(x * x) }", NULL), "");
	assert_string_equal(needed("probe x.w* { println(v) }", NULL), "two.stp ");
	assert_string_equal(needed("probe x.{w*,q} { println(v) }", NULL), "two.stp ");
	put("a", "three.stp", "probe p.q = r.s = begin { v = 3 }\n");
	assert_string_equal(needed("probe r.s { println(v) }", NULL), "three.stp ");
}

/* Of a file only those declarations are parsed that something needs, and its probes. */
static void only_the_declarations_that_are_used(void **state)
{
	struct strbuf tree = {0};

	(void)state;
	put("a", "one.stp",
	    "/* function no() { } */\n"
	    "@define plus(x) %( + @x %)\n"
	    "global kept, other = 4 # global no\n"
	    "private function half() { return kept @plus(1) }\n"
	    "function f() { return half() }	// \"\n"
	    "function g() { return \"} function f() {\" }\n"
	    "probe a.b = process(\"x\").function(\"y\") { v = 1 }\n"
	    "probe end { kept = 2 }\n");
	assert_string_equal(needed("probe begin { println(f()) }", &tree), "one.stp ");
	assert_non_null(strstr(strbuf_str(&tree), "half"));
	assert_non_null(strstr(strbuf_str(&tree), "kept"));
	assert_non_null(strstr(strbuf_str(&tree), "end"));
	assert_null(strstr(strbuf_str(&tree), "a.b"));
	assert_null(strstr(strbuf_str(&tree), "function g"));
	strbuf_clear(&tree);
	assert_string_equal(needed("probe begin { println(g()) }", &tree), "one.stp ");
	assert_null(strstr(strbuf_str(&tree), "half"));
	assert_string_equal(needed("probe begin { println(no()) }", NULL), "");
	strbuf_fini(&tree);
}

/* Where the preprocessor chooses between declarations a file is taken whole. */
static void conditions_between_declarations(void **state)
{
	struct strbuf tree = {0};

	(void)state;
	put("a", "one.stp", "%( 1 == 1 %? function f() { return 1 } %: function f() { return 2 } %)\n"
			    "function g() { return 3 }\n");
	assert_string_equal(needed("probe begin { println(f()) }", &tree), "one.stp ");
	assert_non_null(strstr(strbuf_str(&tree), "return 1"));
	assert_non_null(strstr(strbuf_str(&tree), "return 3"));
	assert_null(strstr(strbuf_str(&tree), "return 2"));
	assert_string_equal(needed("probe begin { println(5) }", NULL), "");
	strbuf_clear(&tree);
	/* One inside of a declaration is part of it. */
	put("a", "two.stp", "global v = %( 1 == 1 %? 5 %: 6 %)\nfunction h() { return v }\nfunction k() { return 4 }\n");
	assert_string_equal(needed("probe begin { println(h()) }", &tree), "two.stp ");
	assert_non_null(strstr(strbuf_str(&tree), "5"));
	assert_null(strstr(strbuf_str(&tree), "return 4"));
	strbuf_fini(&tree);
}

static void macros_come_first(void **state)
{
	(void)state;
	put("a", "a.stp", "function f() { return @m }\n");
	put("a", "z.stpm", "@define m %( 5 %)\n");
	assert_string_equal(needed("probe begin { println(f()) }", NULL), "z.stpm a.stp ");
}

/* The names of a macro's parameters and what stands between its brackets are not what the file defines. */
static void macro_bodies_define_nothing(void **state)
{
	(void)state;
	put("a", "a.stp", "@define m(p) %( begin, process.end %)\nprobe q.r = @m(1) { }\n");
	assert_string_equal(needed("probe process.begin { println(1) }", NULL), "");
}

static void nearer_folders_hide(void **state)
{
	struct strbuf tree = {0};

	(void)state;
	put("a", "mine.stp", "probe x.y = begin { v = 1 }\n");
	put("b", "theirs.stp", "probe x.y = end { v = 2 }\nprobe x.z = end { v = 3 }\n");
	assert_string_equal(needed("probe x.y { println(v) }", &tree), "mine.stp ");
	strbuf_clear(&tree);
	/* Of a file that is needed for something else, what is hidden is left out. */
	assert_string_equal(needed("probe x.y, x.z { println(v) }", &tree), "mine.stp theirs.stp ");
	assert_non_null(strstr(strbuf_str(&tree), "x.y = begin"));
	assert_null(strstr(strbuf_str(&tree), "x.y = end"));
	assert_non_null(strstr(strbuf_str(&tree), "x.z = end"));
	strbuf_fini(&tree);
}

static void the_script_hides(void **state)
{
	struct strbuf tree = {0};

	(void)state;
	put("a", "lib.stp", "function f() { return 1 }\nfunction g() { return f() }\n");
	assert_string_equal(needed("function f() { return 2 } probe begin { println(f()) }", NULL), "");
	assert_string_equal(needed("function f() { return 2 } probe begin { println(g()) }", &tree), "lib.stp ");
	assert_null(strstr(strbuf_str(&tree), "return 1"));
	strbuf_fini(&tree);
}

static void folders_of_the_machine(void **state)
{
	(void)state;
	put("a", "one.stp", "function one() { return 1 }\n");
	put("a/linux", "two.stp", "function two() { return 2 }\n");
	put("a/x86_64", "three.stp", "function three() { return 3 }\n");
	put("a/arm64", "four.stp", "function four() { return 4 }\n");
	assert_string_equal(needed("probe begin { println(one(), two(), three()) }", NULL), "one.stp three.stp two.stp ");
	assert_string_equal(needed("probe begin { println(four()) }", NULL), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(only_what_is_used, set_up, tear_down),
		cmocka_unit_test_setup_teardown(aliases_by_all_of_their_name, set_up, tear_down),
		cmocka_unit_test_setup_teardown(only_the_declarations_that_are_used, set_up, tear_down),
		cmocka_unit_test_setup_teardown(conditions_between_declarations, set_up, tear_down),
		cmocka_unit_test_setup_teardown(macros_come_first, set_up, tear_down),
		cmocka_unit_test_setup_teardown(macro_bodies_define_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nearer_folders_hide, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_script_hides, set_up, tear_down),
		cmocka_unit_test_setup_teardown(folders_of_the_machine, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

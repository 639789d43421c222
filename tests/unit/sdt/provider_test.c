/* Provider definitions: what is refused and how it is tagged, and the text that the others become. */
#include "sdt/sdt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "d/parse.h"
#include "lang/diag.h"
#include "lang/source.h"

struct compiled {
	struct arena *a;
	struct diag diag;
	struct sdt_defs defs;
	bool ok;
};

static struct compiled compile(const char *text)
{
	struct compiled c = { .a = arena_new() };
	struct d_macros macros;
	struct d_prog *p;

	assert_non_null(c.a);
	diag_init(&c.diag, c.a);
	d_macros_init(&macros);
	p = d_prog_new(c.a, &c.diag, &macros);
	assert_true(d_parse(p, source_text(c.a, "p.d", text, strlen(text)), D_SPEC_FILE));
	c.ok = sdt_check(c.a, &c.diag, p, &c.defs);
	assert_int_equal(c.ok, !c.diag.errors);
	return c;
}

static void refused(const char *text, const char *tag, unsigned int line, unsigned int col)
{
	struct compiled c = compile(text);

	assert_int_equal(c.diag.errors, 1);
	assert_string_equal(c.diag.msgs[0].tag, tag);
	assert_int_equal(c.diag.msgs[0].pos.line, line);
	assert_int_equal(c.diag.msgs[0].pos.col, col);
	arena_free(c.a);
}

static void refuses_macros_that_collide(void **state)
{
	(void)state;
	refused("provider p {\n probe a__b();\n probe a_b();\n};", "D_PROV_PRDUP", 3, 8);
	refused("provider p {\n probe a-b();\n probe a_b();\n};", "D_PROV_PRDUP", 3, 8);
	refused("provider p {\n probe a();\n probe A();\n};", "D_PROV_PRDUP", 3, 8);
	refused("provider p {\n probe a();\n probe a__enabled();\n};", "D_PROV_PRDUP", 3, 8);
	refused("provider p {\n probe a__enabled();\n probe a();\n};", "D_PROV_PRDUP", 3, 8);
	refused("provider p { probe q__a(); };\nprovider p_q { probe a(); };", "D_PROV_PRDUP", 2, 22);
	refused("provider p { probe a(); };\nprovider p { probe b(); };", "D_PROV_INCOMPAT", 2, 10);
}

static void refuses_what_a_marker_cannot_pass(void **state)
{
	(void)state;
	refused("provider p { probe a(int, int, int, int, int, int, int, int, int, int, int, int,\n long); };",
		"D_PROV_PRARGLEN", 2, 2);
	refused("struct s { int x; };\nprovider p { probe a(int b) : (struct s b); };", "D_PROV_PRXLATOR", 2, 32);
	refused("provider p { probe a(float f) :\n (int f); };", "D_PROV_PRXLATOR", 2, 3);
}

static void refuses_attributes_of_nothing(void **state)
{
	(void)state;
	refused("#pragma D attributes Stable/Stable/Common provider q name\nprovider p { probe a(); };",
		"D_PRAGMA_UNUSED", 1, 1);
	refused("#pragma D attributes Stable/Stable/Common provider p names\nprovider p { probe a(); };",
		"D_PRAGMA_INVAL", 1, 1);
}

static void accepts(void **state)
{
	static const char *const good[] = {
		"",
		"BEGIN { exit(0); }",
		"provider empty { };",
		"provider p { probe a(); };\n#pragma D attributes Stable/Stable/Common provider p args",
		"provider p { probe a(int) : (char *b); };",
		"provider p { probe a(string s, char *t) : (char *s, string t); };",
		"struct s { int x; };\ntranslator struct s < int n > { x = n; };\n"
		"provider p { probe a(int b) : (struct s *b); };",
		"struct s { int x; };\ntranslator struct s < float f > { x = 1; };\n"
		"provider p { probe a(float b) : (struct s *b, struct s b); };",
		"provider p { probe a(int, int, int, int, int, int, int, int, int, int, int, double); };",
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct compiled c = compile(good[i]);

		if (!c.ok)
			print_message("%s\n%s\n", good[i], c.diag.msgs[0].text);
		assert_true(c.ok);
		arena_free(c.a);
	}
}

static void names_probes(void **state)
{
	static const char *const want[][2] = {
		{ "query__receive", "MYSERV_QUERY_RECEIVE" },
		{ "query_send", "MYSERV_QUERY_SEND" },
		{ "a__b__c", "MYSERV_A_B_C" },
		{ "d__e", "MYSERV_D_E" },
		{ "f___g", "MYSERV_F__G" },
		{ "__h", "MYSERV__H" },
		{ "Upper", "MYSERV_UPPER" },
	};
	struct compiled c = compile("provider myserv { probe query__receive(); probe query_send(); probe a__b__c();"
				    " probe d-e(); probe f___g(); probe __h(); probe Upper(); };");
	size_t i;

	(void)state;
	assert_int_equal(c.defs.n, 1);
	assert_int_equal(c.defs.providers[0].nprobes, sizeof(want) / sizeof(want[0]));
	for (i = 0; i < c.defs.providers[0].nprobes; i++) {
		assert_string_equal(c.defs.providers[0].probes[i].marker, want[i][0]);
		assert_string_equal(c.defs.providers[0].probes[i].macro, want[i][1]);
	}
	arena_free(c.a);
}

static void writes(void **state)
{
	struct compiled c = compile("provider p { probe a__b(const char *name, int b) : (int b); };");
	struct strbuf out = { 0 };

	(void)state;
	sdt_write_header(&out, &c.defs, "odd */ name.d");
	assert_non_null(strstr(strbuf_str(&out), "odd * / name.d"));
	assert_non_null(strstr(strbuf_str(&out), "/* probe a__b(const char *name, int b) : (int b) */\n"));
	assert_non_null(strstr(strbuf_str(&out), "#define P_A_B(arg0, arg1) \\\n"
			       "\tDTRACE_PROBE2(p, a__b, arg0, arg1)\n"));
	assert_non_null(strstr(strbuf_str(&out), "#  define P_A_B_ENABLED() __builtin_expect(p_a__b_semaphore, 0)\n"));
	strbuf_clear(&out);
	sdt_write_semaphores(&out, &c.defs, "p.d");
	assert_non_null(strstr(strbuf_str(&out), "unsigned short p_a__b_semaphore __attribute__(("));
	strbuf_fini(&out);
	arena_free(c.a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_macros_that_collide),
		cmocka_unit_test(refuses_what_a_marker_cannot_pass),
		cmocka_unit_test(refuses_attributes_of_nothing),
		cmocka_unit_test(accepts),
		cmocka_unit_test(names_probes),
		cmocka_unit_test(writes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

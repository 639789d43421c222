#include "d/parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "d/cpp.h"
#include "lang/diag.h"

struct parsed {
	struct arena *a;
	struct diag diag;
	struct d_prog *prog;
	struct strbuf text;
};

static void start(struct parsed *x, const struct d_macros *m)
{
	struct d_macros none;

	memset(x, 0, sizeof(*x));
	d_macros_init(&none);
	x->a = arena_new();
	diag_init(&x->diag, x->a);
	x->prog = d_prog_new(x->a, &x->diag, m ? m : &none);
}

static bool add(struct parsed *x, const char *text, enum d_spec spec)
{
	return d_parse(x->prog, source_text(x->a, "test", text, strlen(text)), spec);
}

static void stop(struct parsed *x)
{
	strbuf_fini(&x->text);
	arena_free(x->a);
}

/* The tree of @text is @want. */
static void tree(const char *text, enum d_spec spec, const char *want)
{
	struct parsed x;

	start(&x, NULL);
	if (!add(&x, text, spec))
		print_error("%s: %s\n", text, x.diag.msgs[0].text);
	assert_int_equal(x.diag.errors, 0);
	d_dump(&x.text, x.prog);
	assert_string_equal(strbuf_str(&x.text), want);
	stop(&x);
}

/* The tree of the expression @text is @want. */
static void expr(const char *text, const char *want)
{
	struct strbuf clause = { 0 }, dump = { 0 };

	strbuf_printf(&clause, "BEGIN { %s; }", text);
	strbuf_printf(&dump, "(clause :::BEGIN { %s })\n", want);
	tree(strbuf_str(&clause), D_SPEC_FILE, strbuf_str(&dump));
	strbuf_fini(&clause);
	strbuf_fini(&dump);
}

static void precedence(void **state)
{
	(void)state;
	expr("1 + 2 * 3", "(+ 1 (* 2 3))");
	expr("1 - 2 - 3", "(- (- 1 2) 3)");
	expr("a || b && c", "(|| a (&& b c))");
	expr("a || b ^^ c && d", "(|| a (^^ b (&& c d)))");
	expr("a | b ^ c & d == e", "(| a (^ b (& c (== d e))))");
	expr("a < b << c + d", "(< a (<< b (+ c d)))");
	expr("a = b += c", "(= a (+= b c))");
	expr("a ? b : c ? d : e", "(? a b (? c d e))");
	expr("a ? b, c : d", "(? a (, b c) d)");
	expr("-a * b", "(* (- a) b)");
	expr("*p++", "(* (post++ p))");
	expr("!a == b", "(== (! a) b)");
	expr("(int)a + b", "(+ (cast <int> a) b)");
	expr("(char *)a->b", "(cast <char *> (->b a))");
	expr("&a[1]", "(& ([] a 1))");
	expr("sizeof a[1]", "(sizeof ([] a 1))");
	expr("sizeof (a)[1]", "(sizeof ([] a 1))");
	expr("sizeof (int) + 1", "(+ (sizeof <int>) 1)");
	expr("stringof a + b", "(+ (stringof a) b)");
	expr("a - -b", "(- a (- b))");
	expr("x = 1, y", "(, (= x 1) y)");
}

static void names(void **state)
{
	(void)state;
	expr("self->a", "self->a");
	expr("this->a[1]", "([] this->a 1)");
	expr("`a + m`b", "(+ `a m`b)");
	expr("@ = count()", "(= @ (call count))");
	expr("@a[1, \"x\"] = sum(2)", "(= ([] @a 1 \"x\") (call sum 2))");
	expr("a->b.c", "(.c (->b a))");
	expr("xlate <int>(a)", "(xlate <int> a)");
}

static void specs(void **state)
{
	(void)state;
	tree("a:b:c:d { }", D_SPEC_FILE, "(clause a:b:c:d { })\n");
	tree("c:d", D_SPEC_NAME, "(clause ::c:d)\n");
	tree("d", D_SPEC_NAME, "(clause :::d)\n");
	tree("b:c", D_SPEC_FUNC, "(clause :b:c:)\n");
	tree("a:b { }", D_SPEC_MOD, "(clause a:b:: { })\n");
	tree("a, b /1/ { }", D_SPEC_PROV, "(clause a:::, b::: / 1 / { })\n");
	tree("12", D_SPEC_NAME, "(clause 12)\n");
}

static void several_sources(void **state)
{
	static const char *const argv[] = { "x", "7", "8" };
	struct d_macros m = { .argv = argv, .argc = 3, .target = 12 };
	struct parsed x;

	(void)state;
	start(&x, &m);
	assert_true(add(&x, "typedef int number;", D_SPEC_FILE));
	assert_true(add(&x, "number n; BEGIN { n = $1; }", D_SPEC_FILE));
	assert_true(add(&x, "pid$target:::entry", D_SPEC_NAME));
	d_dump(&x.text, x.prog);
	assert_string_equal(strbuf_str(&x.text), "(decl number n)\n(clause :::BEGIN { (= n 7) })\n(clause pid12:::entry)\n");
	assert_false(d_parse_end(x.prog));	/* nobody used $2 */
	assert_string_equal(x.diag.msgs[0].tag, "D_MACRO_UNUSED");
	stop(&x);
}

static void options(void **state)
{
	struct parsed x;

	(void)state;
	start(&x, NULL);
	add(&x, "#pragma D option quiet\n#pragma D option bufsize=1m\n", D_SPEC_FILE);
	assert_int_equal(x.prog->nitems, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(x.prog->items[i].kind, D_ITEM_PRAGMA);
		assert_int_equal(x.prog->items[i].pragma->kind, D_PRAGMA_OPTION);
	}
	assert_string_equal(x.prog->items[0].pragma->name, "quiet");
	assert_null(x.prog->items[0].pragma->value);
	assert_string_equal(x.prog->items[1].pragma->name, "bufsize");
	assert_string_equal(x.prog->items[1].pragma->value, "1m");
	stop(&x);
}

static void types(void **state)
{
	static const struct {
		const char *text, *want;
		uint64_t size;
	} cases[] = {
		{ "const char *", "const char *", 8 },	   { "int", "int", 4 },
		{ "unsigned long long", "unsigned long long", 8 },
		{ "int (*)(char, ...)", "int (*)(char, ...)", 8 },
		{ "char [4][3]", "char [4][3]", 12 },	   { "struct nosuch *", "struct nosuch *", 8 },
		{ "int *(*[2])(void)", "int *(*[2])(void)", 16 },
		{ "char *const", "char *const", 8 },	   { "uint16_t", "uint16_t", 2 },
	};
	static const char *const bad[] = { "", "nosuch_t", "int x", "int int", "int)", "static int", "int [0]" };
	const struct type *t;
	struct parsed x;

	(void)state;
	start(&x, NULL);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		t = d_parse_type(x.prog, cases[i].text);
		assert_non_null(t);
		assert_string_equal(type_text(x.a, t), cases[i].want);
		assert_int_equal(type_size(t), cases[i].size);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_null(d_parse_type(x.prog, bad[i]));
	assert_int_equal(x.diag.errors, 0);
	stop(&x);
}

static void constants(void **state)
{
	static const struct {
		const char *text;
		int64_t value;
	} cases[] = {
		{ "1 + 2 * 3", 7 },	 { "-7 / 2", -3 },     { "-7 % 2", -1 },	 { "-1 > 0U", 1 },
		{ "-1 < 0", 1 },	 { "~0", -1 },	       { "~0U", 0xffffffff },	 { "1 << 31 >> 31", -1 },
		{ "(char)200", -56 },	 { "(uint8_t)-1", 255 }, { "0 && 1 / 0", 0 },	 { "1 ? 2 : 1 / 0", 2 },
		{ "sizeof (long)", 8 },	 { "A + B", 6 },       { "N * 2", 20 },		 { "1 ^^ 1", 0 },
		{ "-2147483647 - 1", INT32_MIN }, { "0x80000000 + 0", 0x80000000 }, { "INT64", INT64_MIN },
	};
	static const char *const none[] = { "x", "1 / 0", "1 << 64", "f(1)", "pid", "M", "\"a\"" };
	struct parsed x;
	int64_t value;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]) + sizeof(none) / sizeof(none[0]); i++) {
		size_t k = sizeof(cases) / sizeof(cases[0]);
		struct strbuf text = { 0 };
		const struct d_item *item;

		start(&x, NULL);
		strbuf_printf(&text, "enum { A = 1, B = 5 }; inline int N = 10; inline int M = pid;"
			      "inline int64_t INT64 = -9223372036854775807 - 1; BEGIN { %s; }",
			      i < k ? cases[i].text : none[i - k]);
		assert_true(add(&x, strbuf_str(&text), D_SPEC_FILE));
		item = &x.prog->items[x.prog->nitems - 1];
		assert_int_equal(d_const(x.prog, item->clause->body->stmts[0]->expr, &value), i < k);
		if (i < k)
			assert_true(value == cases[i].value);
		strbuf_fini(&text);
		stop(&x);
	}
}

static void preprocessed(void **state)
{
	static const char text[] = "#define N 3\nBEGIN {\n\ttrace(N);\n\tx = ;\n}\n";
	static const char *const args[] = { "-DM=4", NULL };
	const char *err = NULL;
	struct source *src, *out = NULL;
	struct parsed x;
	int e;

	(void)state;
	start(&x, NULL);
	src = source_text(x.a, "dir/x.d", text, sizeof(text) - 1);
	e = d_cpp(x.a, src, "cpp", args, &out, &err);
	if (e) {
		print_message("%s\n", err);
		stop(&x);
		skip();
	}
	assert_false(d_parse(x.prog, out, D_SPEC_FILE));
	assert_int_equal(x.diag.errors, 1);
	assert_int_equal(x.diag.msgs[0].pos.line, 4);
	assert_ptr_equal(x.diag.msgs[0].pos.src, src);
	src = source_text(x.a, "x.d", "#include \"no/such/file.h\"\n", 26);
	assert_int_equal(d_cpp(x.a, src, "cpp", NULL, &out, &err), -22);	/* EINVAL */
	assert_non_null(strstr(err, "no/such/file.h"));
	stop(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(precedence), cmocka_unit_test(names),	   cmocka_unit_test(specs),
		cmocka_unit_test(several_sources), cmocka_unit_test(options), cmocka_unit_test(types),
		cmocka_unit_test(constants), cmocka_unit_test(preprocessed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Trees and messages as stap -p1 (4.8) shows them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tree.h"

static void is(const char *script, const char *const *args, const char *want)
{
	struct compiled c;

	parse(&c, script, args);
	assert_string_equal(strbuf_str(&c.text), want);
	compiled_fini(&c);
}

/* The expression of "probe begin { EXPR }". */
static void expr_is(const char *expr, const char *want)
{
	struct strbuf script = {0}, tree = {0};

	strbuf_printf(&script, "probe begin { %s }", expr);
	strbuf_printf(&tree, "probe begin{\n%s;\n}\n", want);
	is(script.s, NULL, tree.s);
	strbuf_fini(&script);
	strbuf_fini(&tree);
}

static void precedence(void **state)
{
	(void)state;
	expr_is("x = y = 1 ? 2 : 3 ? 4 : 5", "(x) = ((y) = ((1)?(2):((3)?(4):(5))))");
	expr_is("x = a . b + c", "(x) = ((a) . ((b) + (c)))");
	expr_is("x = a << b . c", "(x) = ((a) << ((b) . (c)))");
	expr_is("x = a < b << c", "(x) = ((a) < ((b) << (c)))");
	expr_is("1 | 2 in a", "(1) | ([2] in a)");
	expr_is("x = a && b = c", "(x) = (((a) && (b)) = (c))");
	expr_is("x = --a + -b--", "(x) = ((--(a)) + (-((b)--)))");
	expr_is("x = a &&& b", "(x) = ((a) && (&(b)))");
}

static void values(void **state)
{
	(void)state;
	expr_is("x = 0777 + 0xFF", "(x) = ((511) + (255))");
	expr_is("x = 18446744073709551615", "(x) = (-1)");
	expr_is("x = \"a\" \"b\"", "(x) = (\"ab\")");
	expr_is("x = \"\\x41\\101\\n\\q\"", "(x) = (\"AA\\nq\")");
	expr_is("x = $y[1]$", "(x) = ($y[1]->$)");
	expr_is("x = &$y->z[1]", "(x) = (&$y->z[1])");
	expr_is("x = @cast(1, \"a\", \"m\")->b$", "(x) = (@cast(1, \"a\", \"m\")->b->$)");
	expr_is("x = @hist_linear(a, 1, 2, 3)[3]", "(x) = (@hist_linear(a, 1, 2, 3)[3])");
	expr_is("foreach (v = [a, b-] in c[*, 2] limit 3) d", "foreach (v = [a, b-] in c[*, 2] limit 3) d");
}

static void points(void **state)
{
	(void)state;
	is("probe a.{b,c.{d(1),e}}? {}", NULL, "probe a.b?,a.c.d(1)?,a.c.e?{\n}\n");
	is("probe a*.b(\"x\")!, c if (x > 1) {}", NULL, "probe a*.b(\"x\")!,c if ((x) > (1)){\n}\n");
	is("probe a = b, c {} probe d += e {}", NULL, "probe a = b, c{\n}\nprobe d += e{\n}\n");
}

static void arguments(void **state)
{
	static const char *const args[] = { "1 + 2", "d\"e\\", NULL };

	(void)state;
	is("probe begin { x = $1 y = @2 z = $# . @# }", args,
	   "probe begin{\n(x) = ((1) + (2));\n(y) = (\"d\\\"e\\\\\");\n(z) = ((2) . (\"2\"));\n}\n");
	is("probe begin { x = $3 }", args,
	   "parse error: command line argument out of range [1-2]\n         at: junk ''");
}

static void argument_of_itself(void **state)
{
	static const char *const args[] = { "$1 $1", NULL };
	struct compiled c;

	(void)state;
	parse(&c, "probe begin { x = $1 }", args);
	assert_int_not_equal(c.diag.errors, 0);
	compiled_fini(&c);
}

static void macros(void **state)
{
	(void)state;
	is("@define add(x, y) %( (@x + @y) %) @define two %( @add(1, 1) %) "
	   "probe begin { v = @add(@two, f(2, 3)) }", NULL,
	   "probe begin{\n(v) = (((1) + (1)) + (f(2, 3)));\n}\n");
	is("@define a %( @a %) probe begin { @a }", NULL,
	   "parse error: macros or conditionals nested without end\n         at: operator '@a'");
	is("@define a(x) %( @x %) probe begin { @a(1, 2) }", NULL,
	   "parse error: too many parameters for macro '@a' (expected 1)\n         at: operator ','");
}

static void conditionals(void **state)
{
	(void)state;
	is("probe begin { %( kernel_v >= \"2.6.30\" && arch == \"x86*\" %? a %: b ) ( %) }", NULL,
	   "probe begin{\na;\n}\n");
	is("probe begin { %( kernel_vr == \"6.1.0-*\" %? %( 1 == 2 %? a %: b %) %) }", NULL, "probe begin{\nb;\n}\n");
	is("probe begin { %( CONFIG_X == \"\" || 1 > 2 %? a %) }", NULL, "probe begin{\na;\n}\n");
	is("@define old %( kernel_v < \"3\" %) probe begin { %( @old || 1 == 2 %? a %: b %) }", NULL,
	   "probe begin{\nb;\n}\n");
	is("probe begin { %( $# == 0 %? a %: $1 %) }", NULL, "probe begin{\na;\n}\n");
}

static void mistakes(void **state)
{
	(void)state;
	is("probe begin { x = = 1 }", NULL,
	   "parse error: expected literal string or number\n        saw: operator '='");
	is("foo", NULL,
	   "parse error: expected 'probe', 'global', 'private', 'function', or '%{'\n        saw: identifier 'foo'");
	is("probe begin { x = \"abc }", NULL,
	   "parse error: Could not find matching closing quote\n         at: junk ''");
	is("function f(x) %{ %}", NULL,
	   "parse error: embedded code in unprivileged script; need stap -g\n        saw: embedded-code");
}

/* One run shows the mistakes of several declarations. */
static void goes_on(void **state)
{
	struct compiled c;

	(void)state;
	parse(&c, "probe begin { x = }\nprobe end { y = }\nglobal 3", NULL);
	assert_int_equal(c.diag.errors, 3);
	assert_int_equal(c.diag.msgs[2].pos.line, 3);
	compiled_fini(&c);
}

static void deep(void **state)
{
	struct strbuf s = {0};
	struct compiled c;

	(void)state;
	strbuf_puts(&s, "probe begin { x = ");
	for (int i = 0; i < 100000; i++)
		strbuf_puts(&s, i % 2 ? "(" : "-");
	parse(&c, s.s, NULL);
	assert_int_equal(c.diag.errors, 1);
	compiled_fini(&c);
	strbuf_clear(&s);
	strbuf_puts(&s, "probe begin { x = 1");
	for (int i = 0; i < 100000; i++)
		strbuf_puts(&s, "+1");
	strbuf_puts(&s, "}");
	parse(&c, s.s, NULL);
	assert_int_equal(c.diag.errors, 1);
	compiled_fini(&c);
	strbuf_fini(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(precedence), cmocka_unit_test(values), cmocka_unit_test(points),
		cmocka_unit_test(arguments), cmocka_unit_test(argument_of_itself), cmocka_unit_test(macros),
		cmocka_unit_test(conditionals), cmocka_unit_test(mistakes), cmocka_unit_test(goes_on),
		cmocka_unit_test(deep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

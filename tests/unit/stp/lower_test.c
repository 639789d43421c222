/*
 * What a session takes from a compiled script: clauses with their points and order, places of errors, and code that is
 * well formed.  What the code does is the business of tests/stp/run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir/ir.h"
#include "tree.h"

static size_t find(void *ctx, const struct stp_point *point, enum stp_point_kind kind,
		   const struct stp_point ***found, const char **why)
{
	(void)ctx;
	(void)point;
	(void)kind;
	(void)found;
	(void)why;
	return 1;
}

/* $arg1 and so on; $$name is "mark", $$vars lists two. */
static bool find_target(void *ctx, const struct stp_point *point, enum stp_point_kind kind,
			const struct stp_node *target, struct stp_source *source, const char **why)
{
	static const char *const names[] = { "$arg1", "$arg2" };
	static const struct stp_source items[] = { { .type = STP_LONG }, { .type = STP_LONG, .arg = 1 } };

	(void)ctx;
	(void)point;
	(void)kind;
	(void)why;
	if (!strcmp(target->name, "$$name")) {
		source->kind = STP_SRC_TEXT;
		source->text = "mark";
		return true;
	}
	if (!strcmp(target->name, "$$vars")) {
		source->kind = STP_SRC_LIST;
		source->names = (const char **)names;
		source->items = items;
		source->nnames = 2;
		return true;
	}
	source->arg = (uint32_t)(atoi(target->name + 4) - 1);
	return !strncmp(target->name, "$arg", 4);
}

static const struct stp_resolver resolver = { .find = find, .target = find_target };

struct code {
	struct compiled c;
	struct stp_code *code;
	struct strbuf text;
};

static void compile(struct code *k, const char *script)
{
	memset(k, 0, sizeof(*k));
	check(&k->c, script, &resolver);
	assert_string_equal(message(&k->c, DIAG_ERROR, 0), "");
	k->code = stp_compile(k->c.stp, k->c.prog);
	if (!k->code)
		return;
	assert_null(ir_check(k->code->prog));
	ir_print(k->code->prog, &k->text);
}

static void code_fini(struct code *k)
{
	strbuf_fini(&k->text);
	compiled_fini(&k->c);
}

static void has(const char *script, const char *want)
{
	struct code k;

	compile(&k, script);
	assert_non_null(k.code);
	if (!strstr(strbuf_str(&k.text), want))
		assert_string_equal(strbuf_str(&k.text), want);
	code_fini(&k);
}

static void has_not(const char *script, const char *unwanted)
{
	struct code k;

	compile(&k, script);
	assert_non_null(k.code);
	assert_null(strstr(strbuf_str(&k.text), unwanted));
	code_fini(&k);
}

static void refused(const char *script, const char *want)
{
	struct code k;

	compile(&k, script);
	assert_null(k.code);
	assert_string_equal(message(&k.c, DIAG_ERROR, 0), want);
	code_fini(&k);
}

static void clauses(void **state)
{
	struct code k;

	(void)state;
	compile(&k, "global x = 5 probe begin(3), timer.s(1) if (x > 2) { println(x) } probe end { println(pp()) }");
	assert_int_equal(k.code->prog->nclauses, 4);
	assert_null(k.code->clauses[0].handler);		/* the global's first value */
	assert_int_equal(k.code->clauses[0].kind, STP_P_BEGIN);
	assert_true(k.code->clauses[0].order == INT64_MIN);
	assert_int_equal(k.code->clauses[1].order, 3);
	assert_string_equal(k.code->clauses[1].pp, "begin(3)");
	assert_int_equal(k.code->clauses[2].kind, STP_P_TIMER_S);
	assert_string_equal(k.code->clauses[2].pp, "timer.s(1)");
	assert_int_equal(k.code->clauses[3].kind, STP_P_END);
	for (uint32_t i = 0; i < 4; i++)
		assert_ptr_equal(k.code->clauses[i].code, k.code->prog->clauses[i]);
	code_fini(&k);
	compile(&k, "global x probe begin { println(x) x = 1 }");
	assert_int_equal(k.code->prog->nclauses, 1);		/* 0 is no value to be given */
	code_fini(&k);
}

static void shown(void **state)
{
	struct code k;

	(void)state;
	compile(&k, "global n, s, a, b probe begin { n++ s <<< 1 a[1, \"x\"] = 2 b = n }");
	assert_int_equal(k.code->prog->nclauses, 4);		/* n is read; three are shown */
	for (uint32_t i = 1; i < 4; i++)
		assert_string_equal(k.code->clauses[i].pp, "end");
	code_fini(&k);
	has("global a probe begin { a[1, \"x\"] = \"v\" }", "fmt \"a[%#d,\\\"%#s\\\"]=\\\"%#s\\\"\\n\"");
	has("global a probe begin { a[1] <<< 3 }", "fmt \"a[%#d] @count=%#d @min=%#d @max=%#d @sum=%#d @avg=%#d\\n\"");
}

static const struct ir_near *near_of(const struct code *k, const char *what)
{
	for (uint32_t i = 0; i < k->code->nnears; i++)
		if (!strcmp(k->code->nears[i].what, what))
			return &k->code->nears[i];
	return NULL;
}

static void nears(void **state)
{
	const struct ir_near *near;
	struct code k;

	(void)state;
	compile(&k, "global a, b[3] probe process(\"x\").mark(\"y\") {\n a[1] = 2 b[1] = 2\n println(1 / $arg1, "
		    "user_string($arg1)) }\nprobe end { println(a[1], b[1]) }");
	near = near_of(&k, "operator '/'");
	assert_non_null(near);
	assert_int_equal(near->pos.line, 3);
	assert_null(near->text);
	assert_null(near_of(&k, "identifier 'a'")->text);
	assert_string_equal(near_of(&k, "identifier 'b'")->text, "Array overflow, check size limit (3)");
	assert_string_equal(near_of(&k, "identifier 'user_string'")->text,
			    "user string copy fault -14 at 0x%x [man error::fault]");
	assert_string_equal(k.code->nears[0].what, "");
	code_fini(&k);
}

static void catching(void **state)
{
	(void)state;
	/* Nothing that fails, nothing that catches. */
	has_not("probe begin { println(1) }", "try");
	has("probe begin { println(1 / tid()) }", "try");
	has("probe begin { error(\"x\") }", "act error");
	has_not("probe begin { println(1) }", "spend");
	has("probe begin { while (1) println(1) }", "budget 9999");
	has("probe timer.s(1) { while (1) println(1) }", "budget 999\n");
	has_not("global n probe begin { n += 2 println(n) }", "vst");
	has("global n probe begin { n += 2 println(n) }", "vadd");
	has("global a probe begin { a[1]++ println(a[1]) }", "madd");
}

static void targets(void **state)
{
	(void)state;
	has("probe process(\"x\").mark(\"y\") { println($arg2) }", "arg 1");
	has("probe process(\"x\").mark(\"y\") { println($$name) }", "strc \"mark\"");
	has("probe process(\"x\").mark(\"y\") { println($$vars) }", "sprintf \"$arg1=%#x $arg2=%#x\"");
}

static void functions(void **state)
{
	(void)state;
	has_not("function f(x) { return x + 1 } probe begin { println(f(f(1))) }", "enter");
	has("function f(x) { return x ? f(x - 1) : 0 } probe begin { println(f(3)) }", "enter");
	/* A value is kept while a loop runs. */
	has("function f(x) { while (x) x-- return 1 } probe begin { println(5 + tid() + f(3)) }", "turn");
}

static void refusals(void **state)
{
	(void)state;
	refused("probe begin { println(@cast(5, \"foo\")->x) }",
		"semantic error: types of the program are not known here: operator '@cast'");
	refused("global s probe begin { s <<< 1 println(@hist_linear(s, 10, 0, 1)) }",
		"semantic error: histogram of 's' has impossible bounds or too many buckets: identifier 's'");
	refused("global a function f(n) { foreach (k in a) { print(k) if (n) f(n - 1) } } probe begin { a[1] = 1 f(3) exit() }",
		"semantic error: a function cannot call itself out of its foreach: identifier 'f'");
	refused("probe begin { println(stack(5)) }",
		"semantic error: the function is not available: identifier 'stack'");
	refused("probe begin { println(register(\"no such\")) }",
		"semantic error: unknown register: identifier 'register'");
}

/* Nothing here may crash or make code that is not well formed. */
static void many(void **state)
{
	static const char *const scripts[] = {
		"global a function f(x) { foreach (k in a) if (k == x) return a[k] return -1 } "
		"probe begin { a[1] = 2 printf(\"%d %d %s\", f(1), f(2), sprint(f(3) + f(4))) }",
		"probe begin { for (i = 0; i < 9; i++) { try { if (i == 5) break if (i == 3) continue error(\"x\") } "
		"catch (m) { println(i, m) } } }",
		"global a, b probe begin { while (1) { foreach ([x, y] in a- limit 3) foreach (z = w in b+) { "
		"if (w) break if (z) continue if (x + y) next } a[1, 2] = 3 b[1]++ } }",
		"global s probe begin { s[1, \"a\"] <<< 3 foreach ([i, j] in s @sum- limit 2) println(i, j, @sum(s[i, j])) "
		"print(@hist_log(s[1, \"a\"])) if ([*, \"a\"] in s) println(1) delete s[1, *] delete s }",
		"function g:string(x:long) { if (x > 3) next return \"b\" } function g:string(x:long) { next } "
		"probe begin { println(g(1), g(5)) }",
		"function r(n) { try { if (n) r(n - 1) else error(\"deep\") } catch (m) { println(m) } "
		"foreach (k in q) if (k) return 2 return 1 } global q probe begin { q[1] = 1 println(r(3)) }",
		"probe begin { t = tokenize(\"a b\", \" \") while (t != \"\") { println(t) t = tokenize(\" \") } }",
		"probe begin { println(user_string2(1, \"bad\"), user_string_quoted(2), user_string_nofault(3), "
		"user_string_n(4, pid())) user_string_warn(5) }",
		"probe begin { exit() + 1 abort() println(clock_gettime(pid()), text_strn(\"abc\", tid(), 1)) }",
		"function x(a) { return a } function y(a, b) { while (a) a-- return b } global m "
		"probe begin { m[y(1, x(2)), x(y(3, 4))] = y(x(1), y(2, 3)) if ([y(1, 2), 3] in m) println(m[y(1, 2), 3]) }",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++)
		has(scripts[i], "clause");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clauses), cmocka_unit_test(shown),	cmocka_unit_test(nears),
		cmocka_unit_test(catching), cmocka_unit_test(targets),	cmocka_unit_test(functions),
		cmocka_unit_test(refusals), cmocka_unit_test(many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Handlers, types and warnings; the resolver knows the markers gc__start and gc__done with one argument. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tree.h"

static size_t find(void *ctx, const struct stp_point *point, enum stp_point_kind kind,
		   const struct stp_point ***found, const char **why)
{
	(void)ctx;
	(void)found;
	*why = "no such marker";
	return kind != STP_P_MARK || !strncmp(point->comps[point->n - 1].arg->str, "gc__", 4);
}

static bool find_target(void *ctx, const struct stp_point *point, enum stp_point_kind kind,
			const struct stp_node *target, struct stp_source *source, const char **why)
{
	(void)ctx;
	(void)point;
	(void)source;
	(void)why;
	return kind == STP_P_MARK && (!strcmp(target->name, "$arg1") || !strcmp(target->name, "$$name"));
}

static const struct stp_resolver resolver = { .find = find, .target = find_target };

/* The points of the handlers, a blank behind each; or the first message. */
static void handlers_are(const char *script, const char *want)
{
	struct strbuf b = {0};
	struct compiled c;

	check(&c, script, &resolver);
	for (const struct stp_handler *h = c.prog ? c.prog->handlers : NULL; h; h = h->next) {
		stp_dump_point(&b, h->point);
		strbuf_putc(&b, ' ');
	}
	assert_string_equal(c.prog ? strbuf_str(&b) : message(&c, DIAG_ERROR, 0), want);
	strbuf_fini(&b);
	compiled_fini(&c);
}

static void refused(const char *script, const char *want)
{
	struct compiled c;

	check(&c, script, &resolver);
	assert_null(c.prog);
	assert_string_equal(message(&c, DIAG_ERROR, 0), want);
	compiled_fini(&c);
}

static void expansion(void **state)
{
	(void)state;
	handlers_are("probe begin, end(3) { println(1) }", "begin end(3) ");
	handlers_are("probe a = timer {} probe a.s(3) { println(1) }", "timer.s(3) ");
	handlers_are("probe a.b = begin {} probe a.c = end {} probe a.* { println(1) }", "begin end ");
	handlers_are("probe a.b.c = begin {} probe a.d = end {} probe a.** { println(1) }", "begin end ");
	handlers_are("probe nosuch?, begin { println(1) }", "begin ");
	handlers_are("probe begin!, end { println(1) }", "begin! ");
	handlers_are("probe nosuch!, end { println(1) }", "end ");
	handlers_are("probe m = process(\"p\").mark(\"gc__start\") { g = $arg1 } probe m { println(g, $$name) }",
		     "process(\"p\").mark(\"gc__start\") ");
	handlers_are("probe process(\"p\").mark(\"line\") { println(1) }",
		     "semantic error: while resolving probe point: identifier 'process'");
	handlers_are("probe a = b {} probe b = a {} probe a { println(1) }",
		     "semantic error: recursive loop in alias expansion of a");
}

/* Prologues run before the body, epilogues behind it, the innermost alias outermost. */
static void order(void **state)
{
	struct strbuf b = {0};
	struct compiled c;

	(void)state;
	check(&c, "probe in = begin { println(1) } probe out += in { println(2) } probe out { println(3) }", &resolver);
	assert_non_null(c.prog);
	for (size_t i = 0; i < c.prog->handlers->nblocks; i++)
		stp_dump_node(&b, c.prog->handlers->blocks[i]->stmts[0]->expr);
	assert_string_equal(b.s, "println(1)println(3)println(2)");
	strbuf_fini(&b);
	compiled_fini(&c);
}

static void types(void **state)
{
	const struct stp_var *v;
	struct compiled c;

	(void)state;
	check(&c, "global n, a, st function f(x, y) { return x . \"!\" }\n"
	      "probe begin { a[f(\"k\", 2), 3] = n st <<< 1 foreach ([s, i] in a) println(s, i, @sum(st)) n++ }",
	      &resolver);
	assert_non_null(c.prog);
	v = c.prog->globals.first;
	assert_int_equal(v->type, STP_LONG);
	v = v->next;
	assert_int_equal(v->type, STP_LONG);
	assert_int_equal(v->arity, 2);
	assert_int_equal(v->index_types[0], STP_STRINGS);
	assert_int_equal(v->index_types[1], STP_LONG);
	assert_int_equal(v->next->type, STP_STATS);
	assert_int_equal(v->next->stats, 1 << STP_STAT_SUM);
	assert_int_equal(c.prog->funcs->type, STP_STRINGS);
	assert_int_equal(c.prog->handlers->locals.first->type, STP_STRINGS);
	compiled_fini(&c);
}

static void mismatches(void **state)
{
	(void)state;
	refused("probe begin { x = 1 x = \"a\" println(x) }", "semantic error: type mismatch (string): identifier 'x'");
	refused("probe begin { println(\"a\" . 5) }",
		"semantic error: type mismatch: expected string but found long: number '5'");
	refused("global x probe begin { x[1] = 2 } probe end { x[1, 2] = 3 }",
		"semantic error: inconsistent arity (1 vs 2): identifier 'x'");
	refused("global x probe begin { x[1] = 2 x[\"a\"] = 3 }",
		"semantic error: index 0 type mismatch (string): string 'a'");
	refused("probe begin { println(x) }", "semantic error: unresolved type : identifier 'x'");
	refused("probe process(\"p\").mark(\"gc__done\") { println($arg2) }",
		"semantic error: unresolved target-symbol expression: identifier '$arg2'");
}

/* What has no effect may be wrong. */
static void elision(void **state)
{
	struct compiled c;

	(void)state;
	handlers_are("probe process(\"p\").mark(\"gc__done\") { x = $arg9 println(1) }",
		     "process(\"p\").mark(\"gc__done\") ");
	handlers_are("probe begin { if (@defined($no)) println($no) println(@choose_defined($no, 3)) }", "begin ");
	handlers_are("function bad() { return 1 . 2 } probe begin { println(1) }", "begin ");
	handlers_are("probe begin { x = 1 }", "semantic error: no probes found");
	check(&c, "probe begin { x = \"a\" . 5 println(y) y = 1 }", &resolver);
	assert_string_equal(message(&c, DIAG_WARNING, 0), "Eliding assignment to 'x': operator '='");
	assert_string_equal(message(&c, DIAG_WARNING, 1), "Eliding side-effect-free expression : identifier 'x'");
	compiled_fini(&c);
	check(&c, "probe begin { println(y) }", &resolver);
	assert_string_equal(message(&c, DIAG_WARNING, 0), "never-assigned local variable 'y': identifier 'y'");
	compiled_fini(&c);
}

/* The scripts of CPython's HOWTO, pasted as they stand there: comments ended by a backslash too many. */
static const char tapset[] =
	"/*\n   wrappers around the markers:\n \\*/\n"
	"probe python.function.entry = process(\"python\").mark(\"gc__start\")\n"
	"{\n    filename = user_string($arg1);\n    frameptr = $arg4\n}\n";

static void howto_tapset(void **state)
{
	struct compiled c;

	(void)state;
	parse(&c, "global fn_calls;\nprobe python.function.entry\n{\n    fn_calls[pid(), filename] += 1;\n}\n"
	      "probe timer.ms(1000) {\n    printf(\"\\033[2J\\033[1;1H\") /* clear screen \\*/\n"
	      "    foreach ([pid, filename] in fn_calls- limit 20) {\n"
	      "        printf(\"%6d %80s %6d\\n\", pid, filename,\n            fn_calls[pid, filename]);\n    }\n"
	      "    delete fn_calls;\n}\n", NULL);
	assert_true(stp_add(c.stp, source_text(c.arena, "python.stp", tapset, sizeof(tapset) - 1), true));
	c.prog = stp_check(c.stp, &resolver);
	assert_string_equal(message(&c, DIAG_ERROR, 0), "");
	assert_non_null(c.prog);
	assert_int_equal(c.prog->globals.first->index_types[1], STP_STRINGS);
	compiled_fini(&c);
	/* Nobody is hurt by a variable set from an argument that the marker has not, until somebody reads it. */
	parse(&c, "probe python.function.entry { println(frameptr) }", NULL);
	assert_true(stp_add(c.stp, source_text(c.arena, "python.stp", tapset, sizeof(tapset) - 1), true));
	assert_null(stp_check(c.stp, &resolver));
	assert_string_equal(message(&c, DIAG_ERROR, 0),
			    "semantic error: unresolved target-symbol expression: identifier '$arg4'");
	compiled_fini(&c);
}

/* Scripts whose naive treatment takes 2^100 steps. */
static void explosions(void **state)
{
	struct strbuf b = {0};
	struct compiled c;

	(void)state;
	for (int i = 0; i < 60; i++)
		strbuf_printf(&b, "probe a%d = a%d?, a%d? {} ", i, i + 1, i + 1);
	strbuf_puts(&b, "probe a0?, begin { println(1) }");
	check(&c, b.s, &resolver);
	assert_string_equal(message(&c, DIAG_ERROR, 0), "semantic error: aliases nested without end");
	compiled_fini(&c);
	strbuf_clear(&b);
	strbuf_puts(&b, "global g function f100() { return 1 } ");
	for (int i = 0; i < 100; i++)
		strbuf_printf(&b, "function f%d() { return f%d() + f%d() } ", i, i + 1, i + 1);
	strbuf_puts(&b, "function o(x) { next } function o(x) { return x } probe begin { g[1] = 1 foreach (k in g) f0() "
		    "foreach (k in g) println(f0()) println(");
	for (int i = 0; i < 100; i++)
		strbuf_puts(&b, "o(");
	strbuf_puts(&b, "1");
	for (int i = 0; i < 100; i++)
		strbuf_puts(&b, ")");
	strbuf_puts(&b, ") }");
	check(&c, b.s, &resolver);
	assert_string_equal(message(&c, DIAG_ERROR, 0), "");
	compiled_fini(&c);
	strbuf_fini(&b);
}

static void limits(void **state)
{
	int64_t low, high;
	struct compiled c;

	(void)state;
	parse(&c, "probe begin {}", NULL);
	assert_int_equal(stp_get_limit(c.stp, STP_MAXSTRINGLEN), 512);
	assert_true(stp_set_limit(c.stp, "MAXSTRINGLEN", 8192, &low, &high));
	assert_int_equal(stp_get_limit(c.stp, STP_MAXSTRINGLEN), 8192);
	assert_false(stp_set_limit(c.stp, "MAXSTRINGLEN", 1, &low, &high));
	assert_int_equal(low, 2);
	assert_int_equal(stp_get_limit(c.stp, STP_MAXSTRINGLEN), 8192);
	assert_true(stp_set_limit(c.stp, "STP_NO_OVERLOAD", 1, &low, &high));
	compiled_fini(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(expansion), cmocka_unit_test(order), cmocka_unit_test(types),
		cmocka_unit_test(mismatches), cmocka_unit_test(elision), cmocka_unit_test(howto_tapset),
		cmocka_unit_test(explosions), cmocka_unit_test(limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

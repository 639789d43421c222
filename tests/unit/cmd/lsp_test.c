/* The language server's positions, what it sees at a cursor, and the child that answers. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "cmd/lsp/guard.h"
#include "cmd/lsp/text.h"

/* --- text.c ------------------------------------------------------------------------------------------- */

static struct text text_of(const char *s)
{
	return (struct text){ s, strlen(s) };
}

/* LSP, "Position": lines end at \n, \r\n and \r; U+10000 and above are two units. */
static void positions(void **state)
{
	static const struct {
		const char *text;
		size_t off, line, unit;
	} rows[] = {
		{ "", 0, 0, 0 }, { "ab", 2, 0, 2 }, { "a\nb", 2, 1, 0 }, { "a\r\nb", 3, 1, 0 }, { "a\rb", 2, 1, 0 },
		{ "\n\r\n\r", 4, 3, 0 }, { "\xc3\xa9x", 2, 0, 1 }, { "\xe6\xbc\xa2x", 3, 0, 1 }, { "\xf0\x9f\x98\x80x", 4, 0, 2 },
		{ "a\r\n\xf0\x9f\x98\x80\xc3\xa9 x", 10, 1, 4 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct text t = text_of(rows[i].text);
		struct text_pos pos = text_pos(t, rows[i].off);

		assert_int_equal(pos.line, rows[i].line);
		assert_int_equal(pos.unit, rows[i].unit);
		assert_int_equal(text_offset(t, pos), rows[i].off);
	}
}

static void positions_beyond(void **state)
{
	struct text t = text_of("ab\r\ncd");

	(void)state;
	assert_int_equal(text_offset(t, (struct text_pos){ 0, 99 }), 2);
	assert_int_equal(text_offset(t, (struct text_pos){ 1, SIZE_MAX }), 6);
	assert_int_equal(text_offset(t, (struct text_pos){ SIZE_MAX, 0 }), 6);
	/* In the middle of a character: behind it. */
	assert_int_equal(text_offset(text_of("\xf0\x9f\x98\x80x"), (struct text_pos){ 0, 1 }), 4);
	/* A compiler's position is in its line. */
	assert_int_equal(text_offset_of(t, 1, 99), 3);
	assert_int_equal(text_offset_of(t, 2, 2), 5);
	assert_int_equal(text_offset_of(t, 9, 1), 6);
}

/* The cursor is at the bar. */
static void places(void **state)
{
	static const struct {
		enum dtap_language language;
		const char *text;
		enum text_where where;
		const char *probe;
	} rows[] = {
		{ DTAP_D, "|", TEXT_PROBE, "" },
		{ DTAP_D, "BEGIN { x = 1; }\n tick-|", TEXT_PROBE, "tick-" },
		{ DTAP_D, "BEGIN, END, py|thon*:::", TEXT_PROBE, "py" },
		{ DTAP_D, "BEGIN /x| == 1/", TEXT_CODE, NULL },
		{ DTAP_D, "BEGIN /x == 1/ { y|", TEXT_CODE, NULL },
		{ DTAP_D, "BEGIN { { } |", TEXT_CODE, NULL },
		{ DTAP_D, "BEGIN { \"a|", TEXT_NOTHING, NULL },
		{ DTAP_D, "BEGIN { \"a\"|", TEXT_CODE, NULL },
		{ DTAP_D, "BEGIN { \"a\\\"|", TEXT_NOTHING, NULL },
		{ DTAP_D, "BEGIN { /* a|", TEXT_NOTHING, NULL },
		{ DTAP_D, "/* a */ BE|", TEXT_PROBE, "BE" },
		{ DTAP_D, "inline int x|", TEXT_CODE, NULL },
		{ DTAP_D, "int x; BEG|", TEXT_PROBE, "BEG" },
		{ DTAP_D, "#pragma D option q|", TEXT_PRAGMA, NULL },
		{ DTAP_STAP, "|", TEXT_TOP, NULL },
		{ DTAP_STAP, "probe begin, sysc|", TEXT_PROBE, "sysc" },
		{ DTAP_STAP, "probe a.b = timer.s(1|", TEXT_PROBE, "timer.s(1" },
		{ DTAP_STAP, "probe process(\"a b|", TEXT_NOTHING, NULL },
		{ DTAP_STAP, "probe begin { x|", TEXT_CODE, NULL },
		{ DTAP_STAP, "probe begin { # x|", TEXT_NOTHING, NULL },
		{ DTAP_STAP, "probe begin { $#|", TEXT_CODE, NULL },
		{ DTAP_STAP, "probe begin { }\nglob|", TEXT_TOP, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t off = strcspn(rows[i].text, "|");
		struct text_span probe = { 0, 0 };
		char *text = strdup(rows[i].text);
		enum text_where where;

		memmove(text + off, text + off + 1, strlen(text + off));
		where = text_where(text_of(text), rows[i].language, off, &probe);
		if (where != rows[i].where)
			print_error("%s\n", rows[i].text);
		assert_int_equal(where, rows[i].where);
		if (rows[i].probe) {
			assert_int_equal(probe.to - probe.from, strlen(rows[i].probe));
			assert_memory_equal(text + probe.from, rows[i].probe, strlen(rows[i].probe));
		}
		free(text);
	}
}

/* --- guard.c ------------------------------------------------------------------------------------------ */

static json_t *answer(void *ctx)
{
	return json_pack("[s,i]", ctx, (int)getppid());
}

static json_t *kills_itself(void *ctx)
{
	(void)ctx;
	kill(getpid(), SIGUSR1);
	return json_null();
}

static json_t *has_no_end(void *ctx)
{
	for (volatile int *n = ctx;; ++*n)
		;
	return NULL;
}

static json_t *has_no_answer(void *ctx)
{
	(void)ctx;
	return NULL;
}

static void guards(void **state)
{
	struct strbuf out = { 0 }, why = { 0 }, wanted = { 0 };
	char text[] = "x";
	int n = 0;

	(void)state;
	strbuf_puts(&out, "before ");
	strbuf_printf(&wanted, "before [\"x\",%d]", (int)getpid());
	assert_int_equal(guard_run(answer, text, 60, &out, &why), 0);
	assert_string_equal(strbuf_str(&out), strbuf_str(&wanted));
	assert_true(guard_run(has_no_answer, NULL, 60, &out, &why) < 0);
	assert_true(guard_run(kills_itself, NULL, 60, &out, &why) < 0);
	assert_non_null(strstr(strbuf_str(&why), "signal"));
	strbuf_clear(&why);
	assert_true(guard_run(has_no_end, &n, 1, &out, &why) < 0);
	assert_string_equal(strbuf_str(&why), "it took more than 1 seconds");
	/* Nothing of those that failed. */
	assert_string_equal(strbuf_str(&out), strbuf_str(&wanted));
	assert_int_equal(n, 0);
	strbuf_fini(&out);
	strbuf_fini(&why);
	strbuf_fini(&wanted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(positions), cmocka_unit_test(positions_beyond), cmocka_unit_test(places), cmocka_unit_test(guards),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

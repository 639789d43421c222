/*
 * Splitting a command line, compared with what sh makes of the same words.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "target/words.h"

static const char *const lines[] = {
	"a", " a  b\tc ", "python3 x.py 'one arg' \"two args\"", "a''b 'c'd\"e\"f", "'' \"\"",
	"'a\\b\"c'", "\"a\\b\\\"c\\\\d\\$e\\`f'g\"", "a\\ b \\'c\\' \\\\ \\a", "a\\\nb", "\\\n a \\\n b\\\n", "\"a\\\nb\"",
	"'a\nb'", "'\\'", "x=1 -c'print(1)'", "\xc3\xa9t\xc3\xa9 '\xff'", "a\\\n", "'a\\\nb'",
};

static void as_words(const char *line, struct strbuf *out)
{
	char **v;
	size_t n, i;

	assert_int_equal(words_split(line, &v, &n), 0);
	for (i = 0; i < n; i++)
		strbuf_printf(out, "<%s>", v[i]);
	assert_null(v[n]);
	free(v);
}

static void as_sh(const char *line, struct strbuf *out)
{
	struct strbuf cmd = { 0 };
	FILE *f;
	int c;

	strbuf_printf(&cmd, "for i in %s\ndo printf '<%%s>' \"$i\"\ndone", line);
	f = popen(cmd.s, "r");
	assert_non_null(f);
	while ((c = getc(f)) != EOF)
		strbuf_putc(out, (char)c);
	pclose(f);
	strbuf_fini(&cmd);
}

static void splits_like_sh(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct strbuf ours = { 0 }, theirs = { 0 };

		as_words(lines[i], &ours);
		as_sh(lines[i], &theirs);
		assert_string_equal(strbuf_str(&ours), strbuf_str(&theirs));
		strbuf_fini(&ours);
		strbuf_fini(&theirs);
	}
}

static void nothing_else_is_special(void **state)
{
	struct strbuf ours = { 0 };

	(void)state;
	as_words("", &ours);
	as_words(" \t ", &ours);
	assert_string_equal(strbuf_str(&ours), "");
	as_words("a\nb \n c\n", &ours);	/* a new line is a blank here, no new command */
	assert_string_equal(strbuf_str(&ours), "<a><b><c>");
	strbuf_clear(&ours);
	as_words("$HOME * ~ ;|&><()#`x` {a,b} !", &ours);
	assert_string_equal(strbuf_str(&ours), "<$HOME><*><~><;|&><()#`x`><{a,b}><!>");
	strbuf_fini(&ours);
}

static void open_quotes(void **state)
{
	static const char *const open[] = { "'", "\"", "a 'b", "a \"b'", "a\\", "\"\\", "\"\\\"", "'\\''", "\\" };
	char **v;
	size_t n, i;

	(void)state;
	for (i = 0; i < sizeof(open) / sizeof(open[0]); i++)
		assert_int_equal(words_split(open[i], &v, &n), -EINVAL);
}

/* wordexp(3) with WRDE_NOCMD is the witness: it refuses operators, and changes words with variables and patterns. */
static void wants_shell(void **state)
{
	static const struct {
		const char *line;
		bool want;
	} cases[] = {
		{ "python3 x.py 'quoted arg'", false }, { "python3 x.py >out", true }, { "a | b", true }, { "cd x; y", true },
		{ "a && b", true }, { "a &", true }, { "(a)", true }, { "{ a", true }, { "x `date`", true }, { "$HOME/x", true },
		{ "ls *.py", true }, { "ls ?", true }, { "ls [ab]", true }, { "~/x", true }, { "x \"$HOME\"", true },
		{ "x '$HOME'", false }, { "x \"a|b;c>d*?\"", false }, { "x -c'print(1)'", false }, { "x \\> \\$a", false },
		{ "x \"\\$a\"", false }, { "x 'it'\\''s' >y", true }, { "a=b#c", false }, { "x\\", false }, { "", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(words_want_shell(cases[i].line), cases[i].want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(splits_like_sh),
		cmocka_unit_test(nothing_else_is_special),
		cmocka_unit_test(open_quotes),
		cmocka_unit_test(wants_shell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

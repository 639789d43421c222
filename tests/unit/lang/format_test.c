/* lang/format.c: both languages' conversions, and what is none. */
#include "lang/format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"

static struct arena *arena;

static int setup(void **state)
{
	(void)state;
	arena = arena_new();
	return !arena;
}

static int teardown(void **state)
{
	(void)state;
	arena_free(arena);
	return 0;
}

static struct fmt *parse(enum fmt_lang lang, const char *s)
{
	const char *err = NULL;
	size_t off = 0;
	struct fmt *f = fmt_parse(arena, lang, s, strlen(s), &err, &off);

	if (!f)
		print_error("%s: %s\n", s, err);
	assert_non_null(f);
	return f;
}

static void refused(enum fmt_lang lang, const char *s, size_t at, const char *why)
{
	const char *err = NULL;
	size_t off = 999;

	assert_null(fmt_parse(arena, lang, s, strlen(s), &err, &off));
	assert_string_equal(err, why);
	assert_int_equal(off, at);
}

static void text_only(void **state)
{
	struct fmt *f = parse(FMT_D, "100%% of %%d\n");

	(void)state;
	assert_int_equal(f->n, 1);
	assert_int_equal(f->convs[0].kind, FMT_NONE);
	assert_int_equal(f->convs[0].lit_len, strlen("100% of %d\n"));
	assert_memory_equal(f->convs[0].lit, "100% of %d\n", f->convs[0].lit_len);
	assert_string_equal(f->text, "100%% of %%d\n");
	assert_int_equal(fmt_nargs(f), 0);

	f = parse(FMT_D, "");
	assert_int_equal(f->n, 1);
	assert_int_equal(f->convs[0].lit_len, 0);
}

static void pieces(void **state)
{
	struct fmt *f = parse(FMT_D, "a%%b %-10s|%#06llx%*.*d%@8d end");
	const struct fmt_conv *c = f->convs;

	(void)state;
	assert_int_equal(f->n, 5);
	assert_memory_equal(c[0].lit, "a%b ", 4);
	assert_int_equal(c[0].lit_len, 4);
	assert_int_equal(c[0].kind, FMT_STRING);
	assert_int_equal(c[0].flags, FMT_LEFT);
	assert_true(c[0].has_width);
	assert_int_equal(c[0].width, 10);
	assert_false(c[0].has_prec);
	assert_int_equal(c[0].off, 5);

	assert_memory_equal(c[1].lit, "|", 1);
	assert_int_equal(c[1].lit_len, 1);
	assert_int_equal(c[1].kind, FMT_INT);
	assert_int_equal(c[1].letter, 'x');
	assert_int_equal(c[1].size, 8);
	assert_int_equal(c[1].flags, FMT_ALT | FMT_ZERO);
	assert_int_equal(c[1].width, 6);

	assert_true(c[2].dyn_width);
	assert_true(c[2].dyn_prec);
	assert_int_equal(c[2].lit_len, 0);

	assert_int_equal(c[3].flags, FMT_AGG);
	assert_int_equal(c[3].width, 8);

	assert_int_equal(c[4].kind, FMT_NONE);
	assert_memory_equal(c[4].lit, " end", 4);
	assert_int_equal(fmt_nargs(f), 5);
}

/* DTrace guide, "Output Formatting", conversion formats, and the later additions T k I P. */
static void d_letters(void **state)
{
	static const struct {
		const char *s;
		enum fmt_kind kind;
		char letter;
		uint8_t size;
	} rows[] = {
		{ "%a", FMT_ADDR, 'a', 0 }, { "%A", FMT_ADDR, 'A', 0 }, { "%p", FMT_ADDR, 'p', 0 },
		{ "%c", FMT_INT, 'c', 0 }, { "%C", FMT_INT, 'C', 0 }, { "%wc", FMT_INT, 'c', 4 },
		{ "%lc", FMT_INT, 'c', 4 }, { "%d", FMT_INT, 'd', 0 }, { "%i", FMT_INT, 'i', 0 },
		{ "%hd", FMT_INT, 'd', 2 }, { "%hhu", FMT_INT, 'u', 1 }, { "%lo", FMT_INT, 'o', 8 },
		{ "%lld", FMT_INT, 'd', 8 }, { "%llX", FMT_INT, 'X', 8 }, { "%e", FMT_FLOAT, 'e', 0 },
		{ "%LG", FMT_FLOAT, 'G', 0 }, { "%f", FMT_FLOAT, 'f', 0 }, { "%s", FMT_STRING, 's', 0 },
		{ "%S", FMT_STRING, 'S', 0 }, { "%ws", FMT_UNSUP, 's', 4 }, { "%ls", FMT_UNSUP, 's', 8 },
		{ "%k", FMT_STACK, 'k', 0 }, { "%P", FMT_INT, 'P', 0 }, { "%I", FMT_STRING, 'I', 0 },
		{ "%Y", FMT_TIME, 'Y', 0 }, { "%T", FMT_TIME, 'T', 0 }, { "%l@d", FMT_INT, 'd', 8 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct fmt_conv *c = parse(FMT_D, rows[i].s)->convs;

		assert_int_equal(c->kind, rows[i].kind);
		assert_int_equal(c->letter, rows[i].letter);
		assert_int_equal(c->size, rows[i].size);
	}
}

static void d_flags(void **state)
{
	(void)state;
	assert_int_equal(parse(FMT_D, "%-05d")->convs[0].flags, FMT_ZERO);
	assert_int_equal(parse(FMT_D, "%0-5d")->convs[0].flags, FMT_LEFT);
	assert_int_equal(parse(FMT_D, "%10@d")->convs[0].flags, FMT_AGG);
	assert_int_equal(parse(FMT_D, "%10@d")->convs[0].width, 10);
	assert_int_equal(parse(FMT_D, "%+'#d")->convs[0].flags, FMT_PLUS | FMT_GROUP | FMT_ALT);
	assert_int_equal(parse(FMT_D, "%?p")->convs[0].width, 16);
	assert_int_equal(parse(FMT_D, "%100d")->convs[0].width, 100);
}

static void d_refused(void **state)
{
	(void)state;
	refused(FMT_D, "x %q", 2, "format conversion #1 is undefined: %q");
	refused(FMT_D, "%d %hs", 3, "format conversion #2 is undefined: %hs");
	refused(FMT_D, "%Ld", 0, "format conversion #1 is undefined: %Ld");
	refused(FMT_D, "%", 0, "format conversion #1 name expected before end of format string");
	refused(FMT_D, "ab%-5", 2, "format conversion #1 name expected before end of format string");
	refused(FMT_D, "%ll", 0, "format conversion #1 name expected before end of format string");
	refused(FMT_D, "%2$d", 0, "format conversion #1 uses unsupported positional format (%n$)");
	refused(FMT_D, "%5%", 0, "format conversion #1 cannot be combined with other format flags: %%");
	refused(FMT_D, "%**d", 0, "format conversion #1 has more than one '*' specified for the output width");
	refused(FMT_D, "%1.2.3d", 0, "format conversion #1 has more than one '.' specified");
	refused(FMT_D, "%99999999d", 0, "format conversion #1 has a width of more than 16777216");
	refused(FMT_D, "%.99999999999999999999d", 0, "format conversion #1 has a precision of more than 16777216");
}

static void stp(void **state)
{
	struct fmt *f;

	(void)state;
	f = parse(FMT_STP, "%s: %d %#lx %-8p %*.*s %4m%M%b%%%");
	assert_int_equal(f->n, 9);
	assert_int_equal(f->convs[2].flags, FMT_ALT);
	assert_int_equal(f->convs[3].kind, FMT_ADDR);
	assert_int_equal(f->convs[5].kind, FMT_BYTES);
	assert_int_equal(f->convs[7].letter, 'b');
	assert_int_equal(f->convs[8].lit_len, 2);
	assert_int_equal(fmt_nargs(f), 10);
	refused(FMT_STP, "%lld", 0, "format conversion #1 is undefined: %l");
	refused(FMT_STP, "%Y", 0, "format conversion #1 is undefined: %Y");
	refused(FMT_STP, "%@d", 0, "format conversion #1 is undefined: %@");
	refused(FMT_STP, "%5-d", 0, "format conversion #1 is undefined: %-");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_only), cmocka_unit_test(pieces),	  cmocka_unit_test(d_letters),
		cmocka_unit_test(d_flags),   cmocka_unit_test(d_refused), cmocka_unit_test(stp),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}

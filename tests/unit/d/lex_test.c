#include "d/lex.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "lang/diag.h"

/* One text, tokens on demand. */
struct lexed {
	struct arena *a;
	struct diag diag;
	struct d_prog *prog;
	struct d_macro_state macros;
	bool used[8];
	struct d_lex l;
};

static const char *const argv[] = { "x.d", "42", "-7", "name", "two words", "\"quoted\"", "int" };

static void start(struct lexed *x, const char *text)
{
	struct d_macros m = { .argv = argv, .argc = 7, .target = 99, .pid = 1, .uid = 5 };

	memset(x, 0, sizeof(*x));
	x->a = arena_new();
	diag_init(&x->diag, x->a);
	x->prog = d_prog_new(x->a, &x->diag, &m);
	x->macros.m = m;
	x->macros.used = x->used;
	lex_init(&x->l, x->prog, &x->diag, &x->macros, source_text(x->a, "test", text, strlen(text)));
}

static struct d_token get(struct lexed *x, enum d_tok kind)
{
	struct d_token t;

	lex_token(&x->l, &t);
	assert_string_equal(tok_text(t.kind), tok_text(kind));
	return t;
}

static void stop(struct lexed *x, unsigned int errors)
{
	get(x, TOK_EOF);
	assert_int_equal(x->diag.errors, errors);
	arena_free(x->a);
}

static void integers(void **state)
{
	static const struct {
		const char *text;
		uint64_t value;
		bool decimal, uns;
		unsigned int longs;
	} cases[] = {
		{ "0", 0, false, false, 0 },	  { "10", 10, true, false, 0 },	     { "017", 15, false, false, 0 },
		{ "0x1F", 31, false, false, 0 },  { "1u", 1, true, true, 0 },	     { "2UL", 2, true, true, 1 },
		{ "3ull", 3, true, true, 2 },	  { "4lu", 4, true, true, 1 },	     { "5LL", 5, true, false, 2 },
		{ "18446744073709551615", UINT64_MAX, true, false, 0 },
	};
	struct d_token t;
	struct lexed x;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		start(&x, cases[i].text);
		t = get(&x, TOK_INT);
		assert_true(t.value == cases[i].value);
		assert_int_equal(t.decimal, cases[i].decimal);
		assert_int_equal(t.uns, cases[i].uns);
		assert_int_equal(t.longs, cases[i].longs);
		stop(&x, 0);
	}
}

static void characters(void **state)
{
	struct lexed x;

	(void)state;
	start(&x, "'a' 'ab' '\\n' '\\\"' '\\101' '\\x41' '\\0'");
	assert_int_equal(get(&x, TOK_INT).value, 'a');
	assert_int_equal(get(&x, TOK_INT).value, 'a' << 8 | 'b');
	assert_int_equal(get(&x, TOK_INT).value, '\n');
	assert_int_equal(get(&x, TOK_INT).value, '"');
	assert_int_equal(get(&x, TOK_INT).value, 'A');
	assert_int_equal(get(&x, TOK_INT).value, 'A');
	assert_int_equal(get(&x, TOK_INT).value, 0);
	stop(&x, 0);
}

static void strings(void **state)
{
	struct d_token t;
	struct lexed x;

	(void)state;
	start(&x, "\"\" \"a\\tb\\n\" \"\\\"\\\\\" \"\\q\" \"a\\0b\"");
	assert_string_equal(get(&x, TOK_STR).str, "");
	assert_string_equal(get(&x, TOK_STR).str, "a\tb\n");
	assert_string_equal(get(&x, TOK_STR).str, "\"\\");
	assert_string_equal(get(&x, TOK_STR).str, "\\q");
	t = get(&x, TOK_STR);
	assert_int_equal(t.len, 3);
	assert_memory_equal(t.str, "a\0b", 3);
	stop(&x, 0);
}

static void operators(void **state)
{
	struct lexed x;

	(void)state;
	start(&x, "a+++b<<=c->int ...^^@x@[");
	get(&x, TOK_IDENT);
	get(&x, TOK_INC);
	get(&x, TOK_ADD);
	get(&x, TOK_IDENT);
	get(&x, TOK_SHL_EQ);
	get(&x, TOK_IDENT);
	get(&x, TOK_ARROW);
	assert_string_equal(get(&x, TOK_IDENT).str, "int");	/* a member's name */
	get(&x, TOK_ELLIPSIS);
	get(&x, TOK_LXOR);
	assert_string_equal(get(&x, TOK_AGG).str, "x");
	assert_string_equal(get(&x, TOK_AGG).str, "");
	get(&x, TOK_LBRACKET);
	stop(&x, 0);
}

static void slash(void **state)
{
	struct lexed x;

	(void)state;
	start(&x, "a / b / /* end */ {");
	x.l.pred = true;
	get(&x, TOK_IDENT);
	get(&x, TOK_DIV);
	get(&x, TOK_IDENT);
	get(&x, TOK_END_PRED);
	get(&x, TOK_LBRACE);
	stop(&x, 0);
}

static void macros(void **state)
{
	struct d_token t;
	struct lexed x;

	(void)state;
	start(&x, "$1 $2 $3 $4 $5 $6 $$1 $$4 $target $$target $uid $0");
	assert_int_equal(get(&x, TOK_INT).value, 42);
	t = get(&x, TOK_INT);
	assert_true((int64_t)t.value == -7);
	assert_true(t.from_macro);
	assert_string_equal(get(&x, TOK_IDENT).str, "name");
	assert_string_equal(get(&x, TOK_STR).str, "two words");
	assert_string_equal(get(&x, TOK_STR).str, "quoted");
	get(&x, KEY_INT);
	assert_string_equal(get(&x, TOK_STR).str, "42");
	assert_string_equal(get(&x, TOK_STR).str, "two words");
	assert_int_equal(get(&x, TOK_INT).value, 99);
	assert_string_equal(get(&x, TOK_STR).str, "99");
	assert_int_equal(get(&x, TOK_INT).value, 5);
	assert_string_equal(get(&x, TOK_STR).str, "x.d");
	for (int i = 0; i < 7; i++)
		assert_true(x.used[i]);
	stop(&x, 0);
}

static void positions(void **state)
{
	struct d_token t;
	struct lexed x;

	(void)state;
	start(&x, "a\n\t/* two\nlines */ b\n#line 100 \"other.d\"\nc");
	t = get(&x, TOK_IDENT);
	assert_int_equal(t.pos.line, 1);
	assert_int_equal(t.pos.col, 1);
	t = get(&x, TOK_IDENT);
	assert_int_equal(t.pos.line, 3);
	assert_int_equal(t.pos.col, 10);
	t = get(&x, TOK_IDENT);
	assert_int_equal(t.pos.line, 100);
	assert_string_equal(t.pos.src->name, "other.d");
	stop(&x, 0);
}

static void garbage(void **state)
{
	struct lexed x;

	(void)state;
	start(&x, "\x01\x02\xff\xfe" "a");
	get(&x, TOK_FAIL);	/* all of it once */
	get(&x, TOK_IDENT);
	stop(&x, 1);
}

static void where_descriptions_are(void **state)
{
	static const struct {
		const char *text;
		bool desc;
	} cases[] = {
		{ "BEGIN", true },	{ "syscall::open*:entry", true }, { "int x;", false },	{ "int*x;", false },
		{ "int*:::x", true },	{ "uint64_t x;", false },	  { "12", true },	{ "tick-1s", true },
		{ "inline int", false }, { "struct s", false },		  { "{", false },	{ "*:::x", true },
		{ "self int x;", false }, { "selfish", true },		  { "string:::x", true },
	};
	struct lexed x;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		start(&x, cases[i].text);
		assert_int_equal(lex_at_desc(&x.l), cases[i].desc);
		arena_free(x.a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(integers),  cmocka_unit_test(characters), cmocka_unit_test(strings),
		cmocka_unit_test(operators), cmocka_unit_test(slash),	   cmocka_unit_test(macros),
		cmocka_unit_test(positions), cmocka_unit_test(garbage),	   cmocka_unit_test(where_descriptions_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "type/type.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"

struct fixture {
	struct arena *a;
	struct types *ts;
};

static int setup(void **state)
{
	static struct fixture f;

	f.a = arena_new();
	f.ts = types_new(f.a);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	arena_free(((struct fixture *)*state)->a);
	return 0;
}

static uint64_t off(const struct type *t, const char *name)
{
	uint64_t bits;

	assert_non_null(type_find_member(t, name, &bits));
	return bits;
}

/* The compiler of this test is the witness of the layout. */
static void layout(void **state)
{
	struct mixed { char a; int b; char c; long d; char e[3]; short f; } m;
	struct fixture *f = *state;
	struct type *t = type_new_tagged(f->ts, TYPE_STRUCT, "mixed");
	const struct type *c = type_basic(f->ts, TYPE_B_CHAR);

	assert_int_equal(type_add_member(f->ts, t, "a", c, 0), 0);
	assert_int_equal(type_add_member(f->ts, t, "b", type_basic(f->ts, TYPE_B_INT), 0), 0);
	assert_int_equal(type_add_member(f->ts, t, "c", c, 0), 0);
	assert_int_equal(type_add_member(f->ts, t, "d", type_basic(f->ts, TYPE_B_LONG), 0), 0);
	assert_int_equal(type_add_member(f->ts, t, "e", type_array(f->ts, c, 3, true), 0), 0);
	assert_int_equal(type_add_member(f->ts, t, "f", type_basic(f->ts, TYPE_B_SHORT), 0), 0);
	assert_int_equal(type_add_member(f->ts, t, "a", c, 0), -EEXIST);
	assert_false(type_is_complete(t));
	type_finish(t);
	assert_int_equal(type_size(t), sizeof(m));
	assert_int_equal(type_align(t), _Alignof(struct mixed));
	assert_int_equal(off(t, "b"), offsetof(struct mixed, b) * 8);
	assert_int_equal(off(t, "d"), offsetof(struct mixed, d) * 8);
	assert_int_equal(off(t, "e"), offsetof(struct mixed, e) * 8);
	assert_int_equal(off(t, "f"), offsetof(struct mixed, f) * 8);
}

static void bit_fields(void **state)
{
	struct bits { int a : 3; unsigned int b : 30; char c; long d : 40; int : 0; int e : 1; };
	struct fixture *f = *state;
	struct type *t = type_new_tagged(f->ts, TYPE_STRUCT, NULL);
	const struct type *i = type_basic(f->ts, TYPE_B_INT);

	type_add_member(f->ts, t, "a", i, 3);
	type_add_member(f->ts, t, "b", type_basic(f->ts, TYPE_B_UINT), 30);
	type_add_member(f->ts, t, "c", type_basic(f->ts, TYPE_B_CHAR), 0);
	type_add_member(f->ts, t, "d", type_basic(f->ts, TYPE_B_LONG), 40);
	type_break_bits(t, i);
	type_add_member(f->ts, t, "e", i, 1);
	assert_int_equal(type_add_member(f->ts, t, "g", i, 33), -ERANGE);
	type_finish(t);
	assert_int_equal(off(t, "a"), 0);
	assert_int_equal(off(t, "b"), 32);
	assert_int_equal(off(t, "c"), 64);
	assert_int_equal(off(t, "d"), 72);
	assert_int_equal(off(t, "e"), 128);
	assert_int_equal(type_size(t), sizeof(struct bits));
}

static void anonymous(void **state)
{
	struct fixture *f = *state;
	struct type *in = type_new_tagged(f->ts, TYPE_UNION, NULL), *t = type_new_tagged(f->ts, TYPE_STRUCT, "o");
	const struct type *i = type_basic(f->ts, TYPE_B_INT);

	type_add_member(f->ts, in, "x", i, 0);
	type_add_member(f->ts, in, "y", type_basic(f->ts, TYPE_B_LONG), 0);
	type_finish(in);
	type_add_member(f->ts, t, "a", i, 0);
	assert_int_equal(type_add_member(f->ts, t, NULL, in, 0), 0);
	type_finish(t);
	assert_int_equal(off(t, "x"), 64);
	assert_int_equal(off(t, "y"), 64);
	assert_int_equal(type_size(t), 16);
	assert_ptr_equal(type_find_tag(f->ts, t->kind, "o"), t);
}

static void conversions(void **state)
{
	static const struct {
		enum type_basic a, b, want;
	} cases[] = {
		{ TYPE_B_CHAR, TYPE_B_CHAR, TYPE_B_INT },     { TYPE_B_USHORT, TYPE_B_CHAR, TYPE_B_INT },
		{ TYPE_B_INT, TYPE_B_UINT, TYPE_B_UINT },     { TYPE_B_LONG, TYPE_B_UINT, TYPE_B_LONG },
		{ TYPE_B_ULONG, TYPE_B_INT, TYPE_B_ULONG },   { TYPE_B_LONG, TYPE_B_ULONG, TYPE_B_ULONG },
		{ TYPE_B_LLONG, TYPE_B_ULONG, TYPE_B_ULLONG }, { TYPE_B_LLONG, TYPE_B_LONG, TYPE_B_LLONG },
		{ TYPE_B_BOOL, TYPE_B_BOOL, TYPE_B_INT },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct type *a = type_basic(f->ts, cases[i].a), *b = type_basic(f->ts, cases[i].b);

		assert_ptr_equal(type_arith(f->ts, a, b), type_basic(f->ts, cases[i].want));
		assert_ptr_equal(type_arith(f->ts, b, a), type_basic(f->ts, cases[i].want));
	}
	assert_ptr_equal(type_promote(f->ts, type_basic(f->ts, TYPE_B_ULONG), 5), type_basic(f->ts, TYPE_B_INT));
	assert_ptr_equal(type_promote(f->ts, type_basic(f->ts, TYPE_B_UINT), 32), type_basic(f->ts, TYPE_B_UINT));
}

static void same(void **state)
{
	struct fixture *f = *state;
	const struct type *i = type_basic(f->ts, TYPE_B_INT), *c = type_basic(f->ts, TYPE_B_CHAR);
	const struct type *number = type_typedef(f->ts, "number", i);

	assert_true(type_same(type_ptr(f->ts, number), type_ptr(f->ts, type_qualify(f->ts, i, TYPE_CONST))));
	assert_false(type_same(type_ptr(f->ts, i), type_ptr(f->ts, c)));
	assert_true(type_same(type_array(f->ts, i, 3, true), type_array(f->ts, number, 3, true)));
	assert_false(type_same(type_array(f->ts, i, 3, true), type_array(f->ts, i, 4, true)));
	assert_ptr_equal(type_typedef(f->ts, "number", i), number);
	assert_null(type_typedef(f->ts, "number", c));
}

static void text(void **state)
{
	struct fixture *f = *state;
	const struct type *i = type_basic(f->ts, TYPE_B_INT), *c = type_basic(f->ts, TYPE_B_CHAR), *params[2];

	params[0] = type_ptr(f->ts, type_qualify(f->ts, c, TYPE_CONST));
	params[1] = i;
	assert_string_equal(type_text(f->a, type_ptr(f->ts, type_func(f->ts, i, params, 2, true))),
			    "int (*)(const char *, int, ...)");
	assert_string_equal(type_text(f->a, type_array(f->ts, type_ptr(f->ts, type_array(f->ts, c, 3, true)), 2, true)),
			    "char (*[2])[3]");
	assert_string_equal(type_text(f->a, type_qualify(f->ts, type_ptr(f->ts, c), TYPE_CONST)), "char *const");
	assert_string_equal(type_text(f->a, type_new_tagged(f->ts, TYPE_ENUM, NULL)), "enum (anon)");
}

/* A source of one structure, "struct far { int a; struct far *next; }", which counts what it is asked. */
static unsigned int found, filled;
static const struct type_source far;

static const struct type *find_far(const struct type_source *s, struct types *in, const char *module, enum type_kind kind,
				   const char *name)
{
	struct type *t;

	found++;
	if (kind != TYPE_STRUCT || strcmp(name, "far") || (module && strcmp(module, "there")))
		return NULL;
	t = type_untabled(in, TYPE_STRUCT, name);
	t->size = 16;
	t->align = 8;
	t->complete = true;
	t->source = s;
	return t;
}

static void fill_far(const struct type_source *s, struct types *in, struct type *t)
{
	(void)s;
	filled++;
	type_put_member(in, t, "a", type_basic(in, TYPE_B_INT), 0, 0);
	type_put_member(in, t, "next", type_ptr(in, t), 64, 0);
}

static const struct type_source far = { find_far, fill_far };

static void sources(void **state)
{
	struct types *ts = ((struct fixture *)*state)->ts;
	const struct type_member *m;
	const struct type *t;
	uint64_t off;

	assert_null(type_import(ts, NULL, TYPE_STRUCT, "far"));	/* nobody is asked yet */
	types_set_source(ts, &far);
	t = type_import(ts, NULL, TYPE_STRUCT, "far");
	assert_non_null(t);
	assert_ptr_equal(type_import(ts, NULL, TYPE_STRUCT, "far"), t);
	assert_null(type_import(ts, NULL, TYPE_UNION, "far"));
	assert_null(type_import(ts, NULL, TYPE_UNION, "far"));
	assert_null(type_import(ts, "elsewhere", TYPE_STRUCT, "far"));
	assert_int_equal(found, 3);
	assert_null(type_find_tag(ts, TYPE_STRUCT, "far"));		/* the script may still declare its own */
	assert_int_equal(type_size(t), 16);
	assert_int_equal(filled, 0);
	m = type_find_member(t, "next", &off);
	assert_non_null(m);
	assert_int_equal(off, 64);
	assert_ptr_equal(type_target(m->type), t);
	assert_non_null(type_find_member(t, "a", &off));
	assert_int_equal(filled, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(layout, setup, teardown),
		cmocka_unit_test_setup_teardown(bit_fields, setup, teardown),
		cmocka_unit_test_setup_teardown(anonymous, setup, teardown),
		cmocka_unit_test_setup_teardown(conversions, setup, teardown),
		cmocka_unit_test_setup_teardown(same, setup, teardown),
		cmocka_unit_test_setup_teardown(text, setup, teardown),
		cmocka_unit_test_setup_teardown(sources, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

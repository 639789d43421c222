#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compile.h"
#include "eval.h"

struct run {
	struct compiled c;
	struct eval e;
};

/* Compile @text, which must be right, and run its clauses in order. */
static void run(struct run *r, const char *text)
{
	compile_text(&r->c, "test", text, strlen(text));
	if (!r->c.prog) {
		for (size_t i = 0; i < r->c.diag.n; i++)
			print_error("%s\n", r->c.diag.msgs[i].text);
		fail_msg("does not compile: %s", text);
	}
	eval_init(&r->e, r->c.prog);
}

static void run_all(struct run *r)
{
	for (uint32_t i = 0; i < r->c.prog->nclauses; i++)
		eval_run(&r->e, r->c.prog->clauses[i]);
}

static void run_free(struct run *r)
{
	compiled_free(&r->c);
}

/* --- integers ---------------------------------------------------------------------------------------- */

/* C and D agree on these: the compiler computes what D must. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Woverflow"
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wshift-negative-value"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wbool-operation"
#pragma GCC diagnostic ignored "-Wparentheses"
typedef int8_t i8;
typedef uint8_t u8;
typedef int16_t i16;
typedef uint16_t u16;
typedef uint32_t u32;
typedef int64_t i64;
typedef uint64_t u64;

static const struct {
	const char *text;
	int64_t value;
} same_as_c[] = {
#define SAME(e) { #e, (int64_t)(e) }
	SAME(7 + 3), SAME(7 - 10), SAME(7 * -3), SAME(-7 / 2), SAME(-7 % 2), SAME(7 / -2), SAME(7 % -2),
	SAME(-7 / 2U), SAME(-7 % 4U), SAME(7U / 2), SAME((i64)-7 / 2U), SAME((u64)-7 / 2), SAME((u64)-7 % 10),
	SAME(6 & 3), SAME(6 | 3), SAME(6 ^ 3), SAME(~6), SAME(!6), SAME(!0), SAME(~0U), SAME(~(u64)0), SAME(~(u8)1),
	SAME(-1U), SAME(-(u8)1), SAME(-(u16)1), SAME(+(i8)-1),
	SAME(1LL << 40), SAME(-16 >> 2), SAME((u32)-16 >> 2), SAME((u64)-16 >> 60), SAME((i8)-128 >> 3),
	SAME((u8)200 << 4), SAME(1U << 31), SAME((i64)1 << 63),
	SAME(1 < 2), SAME(2 <= 2), SAME(3 > 4), SAME(4 >= 5), SAME(5 == 5), SAME(6 != 6),
	SAME(-1 < 1U), SAME((i64)-1 < 1U), SAME(-1 < (u64)1), SAME((i8)-1 < (u8)1), SAME((u8)255 == -1),
	SAME((i16)-1 == (u16)-1), SAME((u32)-1 == -1), SAME((u64)-1 > 0),
	SAME(1 && 0), SAME(1 && 2), SAME(0 || 0), SAME(0 || 3), SAME(1 && 2 || 0), SAME(!(1 && 2)),
	SAME(1 + 2 * 3 - 4 / 2 % 3), SAME((1 + 2) * 3), SAME(1 ? 2 : 3), SAME(0 ? 2 : 3), SAME(1 ? -1 : 1U),
	SAME(1 ? (i64)-1 : 1U),
	SAME((i8)300), SAME((u8)300), SAME((i8)-129), SAME((u8)-1), SAME((i16)70000), SAME((u16)70000),
	SAME((int)0x1ffffffffLL), SAME((u32)-1), SAME((u64)-1), SAME((i64)0xffffffff), SAME((i8)(u16)0xff80),
	SAME((_Bool)256), SAME((_Bool)0), SAME((i64)(u32)(i8)-1), SAME((i64)(i8)(u32)0x80),
	SAME((u8)200 + 100), SAME((i8)100 + 100), SAME((u16)65535 * 2), SAME(2147483647 + 1U),
	SAME(4294967295U + 1U), SAME(4294967295U + 1L), SAME((u32)2000000000 * 4),
	SAME(0x7fffffff), SAME(0x80000000), SAME(2147483648), SAME(0xffffffffffffffff), SAME('a'), SAME('\n'), SAME(010),
	SAME(sizeof (char)), SAME(sizeof (short)), SAME(sizeof (int)), SAME(sizeof (long)), SAME(sizeof (void *)),
	SAME(sizeof (1LL)), SAME(sizeof (1 + (i8)1)), SAME(sizeof (1 == 2)),
#undef SAME
	/* But nothing becomes an int first (type_wider). */
	{ "(u8)200 + (u8)100", 44 }, { "(i8)100 + (i8)100", -56 }, { "(u16)65535 * (u16)2", 65534 },
	{ "(u8)253 + (i8)-3", 250 }, { "sizeof ((i8)1 + (i16)1)", 2 },
};
#pragma GCC diagnostic pop

static const char types[] =
	"typedef int8_t i8; typedef uint8_t u8; typedef int16_t i16; typedef uint16_t u16;"
	"typedef uint32_t u32; typedef int64_t i64; typedef uint64_t u64;\n";

static void integers_as_in_c(void **state)
{
	char text[512];
	struct run r;

	(void)state;
	for (size_t i = 0; i < sizeof(same_as_c) / sizeof(same_as_c[0]); i++) {
		snprintf(text, sizeof(text), "%sBEGIN { trace((int64_t)(%s)); }", types, same_as_c[i].text);
		run(&r, text);
		run_all(&r);
		assert_non_null(r.e.rec);
		if (r.e.fields[0].i != same_as_c[i].value)
			fail_msg("%s is %lld, not %lld", same_as_c[i].text, (long long)r.e.fields[0].i,
				 (long long)same_as_c[i].value);
		run_free(&r);
	}
}

/* The same through variables: nothing is constant, every store cuts to the variable's type. */
static void variables_keep_their_type(void **state)
{
	struct run r;

	(void)state;
	run(&r, "int8_t a; uint16_t b; uint32_t c; int64_t d;"
		"BEGIN { a = arg0; b = arg0; c = arg0; d = arg0; trace(a); trace(b); trace(c); trace(d);"
		"	 trace(a = arg0); trace(b = c = 70000); }");
	r.e.args[0] = 0x1ffffff80;
	run_all(&r);
	assert_int_equal(r.e.fields[0].i, -128);
	assert_int_equal(r.e.fields[1].i, 0xff80);
	assert_int_equal(r.e.fields[2].i, 0xffffff80);
	assert_int_equal(r.e.fields[3].i, 0x1ffffff80);
	assert_int_equal(r.e.fields[4].i, -128);
	assert_int_equal(r.e.fields[5].i, 4464);
	assert_int_equal(r.e.rec->fields[0].width, 1);
	assert_true(r.e.rec->fields[0].sign);
	assert_int_equal(r.e.rec->fields[1].width, 2);
	assert_false(r.e.rec->fields[1].sign);
	run_free(&r);
}

static void increments(void **state)
{
	static const int64_t want[] = { 10, 11, 12, 12, 12, 11, 10, 10, 255, 0, 127, -128 };
	struct run r;

	(void)state;
	run(&r, "uint8_t u; int8_t s;"
		"BEGIN { x = 10; u = 255; s = 127; trace(x++); trace(x); trace(++x); trace(x); trace(x--); trace(x);"
		"	 trace(--x); trace(x); trace(u++); trace(u); trace(s++); trace(s); }");
	run_all(&r);
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		assert_int_equal(r.e.fields[i].i, want[i]);
	run_free(&r);
}

static void assignment_operators(void **state)
{
	static const int64_t want[] = { 15, 12, 48, 9, 3, 96, 24, 27, 18, 23, 44, -128 };
	struct run r;

	(void)state;
	run(&r, "uint8_t u; int8_t s;"
		"BEGIN { x = 10; u = 200; s = 64; trace(x += 5); trace(x -= 3); trace(x *= 4); trace(x /= 5); trace(x %= 6);"
		"	 trace(x <<= 5); trace(x >>= 2); trace(x |= 3); trace(x &= 18); trace(x ^= 5); trace(u += 100);"
		"	 trace(s *= 2); }");
	run_all(&r);
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		assert_int_equal(r.e.fields[i].i, want[i]);
	run_free(&r);
}

static void short_circuit(void **state)
{
	struct run r;

	(void)state;
	run(&r, "BEGIN { n = 0; a = 0 && n++; a = 1 || n++; a = 0 ? n++ : 5; trace(n); trace(a);"
		"	 a = 1 && n++; a = 0 || n++; trace(n); trace(1 ^^ 1); trace(0 ^^ 2); }");
	run_all(&r);
	assert_int_equal(r.e.fields[0].i, 0);
	assert_int_equal(r.e.fields[1].i, 5);
	assert_int_equal(r.e.fields[2].i, 2);
	assert_int_equal(r.e.fields[3].i, 0);
	assert_int_equal(r.e.fields[4].i, 1);
	run_free(&r);
}

static void division_by_zero_faults(void **state)
{
	struct run r;

	(void)state;
	run(&r, "BEGIN { x = 1; trace(1 / arg0); x = 2; }");
	run_all(&r);
	assert_true(r.e.faulted);
	assert_null(r.e.rec);
	run_free(&r);
}

/* --- variables, arrays, strings ---------------------------------------------------------------------- */

static void arrays(void **state)
{
	struct run r;

	(void)state;
	run(&r, "BEGIN { a[\"x\", 1] = 10; a[\"y\", 2]++; a[\"x\", 1] += 5; a[\"y\", 2]--; a[\"y\", 2]--;"
		"	 trace(a[\"x\", 1]); trace(a[\"y\", 2]); trace(a[\"z\", 3]); self->b[1] = \"s\"; trace(self->b[1]);"
		"	 trace(self->b[2] == NULL); }");
	run_all(&r);
	assert_int_equal(r.e.fields[0].i, 15);
	assert_int_equal(r.e.fields[1].i, -1);
	assert_int_equal(r.e.fields[2].i, 0);
	assert_string_equal(r.e.fields[3].s, "s");
	assert_int_equal(r.e.fields[4].i, 1);
	assert_int_equal(r.c.prog->nmaps, 2);
	assert_true(r.c.prog->maps[0]->zero_frees && !r.c.prog->maps[1]->zero_frees);
	assert_int_equal(r.c.prog->maps[0]->cls, IR_GLOBAL);
	assert_int_equal(r.c.prog->maps[1]->cls, IR_THREAD);
	assert_int_equal(r.c.prog->maps[0]->nkeys, 2);
	run_free(&r);
}

static void strings(void **state)
{
	struct run r;

	(void)state;
	run(&r, "BEGIN { s = \"abc\"; trace(s == \"abc\"); trace(s < \"abd\"); trace(s > \"ab\"); trace(s != \"abc\");"
		"	 trace(s == NULL); trace(strjoin(s, \"d\")); trace(arg0 ? s : \"no\"); s = 0; trace(s == NULL);"
		"	 trace(strlen(strjoin(execname, \"x\"))); }");
	run_all(&r);
	assert_int_equal(r.e.fields[0].i, 1);
	assert_int_equal(r.e.fields[1].i, 1);
	assert_int_equal(r.e.fields[2].i, 1);
	assert_int_equal(r.e.fields[3].i, 0);
	assert_int_equal(r.e.fields[4].i, 0);
	assert_string_equal(r.e.fields[5].s, "abcd");
	assert_string_equal(r.e.fields[6].s, "no");
	assert_int_equal(r.e.fields[7].i, 1);
	assert_int_equal(r.e.fields[8].i, 9);
	run_free(&r);
	run(&r, "BEGIN { s = \"a\"; s = NULL; trace(strlen(s)); }");
	run_all(&r);
	assert_true(r.e.faulted);
	run_free(&r);
}

/* What an action recorded stays as it was when the action ran. */
static void values_are_taken_when_the_action_runs(void **state)
{
	struct run r;

	(void)state;
	run(&r, "BEGIN { x = 1; s = \"a\"; trace(x); trace(s); x = 2; s = \"b\"; trace(x); trace(s); }");
	run_all(&r);
	assert_int_equal(r.e.fields[0].i, 1);
	assert_string_equal(r.e.fields[1].s, "a");
	assert_int_equal(r.e.fields[2].i, 2);
	assert_string_equal(r.e.fields[3].s, "b");
	run_free(&r);
}

static void inlines(void **state)
{
	struct run r;

	(void)state;
	run(&r, "enum color { RED, GREEN = 5, BLUE }; inline int LIMIT = 10; inline int8_t small = 300;"
		"inline int twice[int x] = x * 2; inline string name[string s, int n] = n ? s : \"none\";"
		"BEGIN { trace(RED); trace(BLUE); trace(LIMIT + 1); trace(small); trace(twice[twice[3 + 1]]);"
		"	 trace(name[\"a\", 1]); trace(name[\"a\", 0]); }");
	run_all(&r);
	assert_int_equal(r.e.fields[0].i, 0);
	assert_int_equal(r.e.fields[1].i, 6);
	assert_int_equal(r.e.fields[2].i, 11);
	assert_int_equal(r.e.fields[3].i, 44);
	assert_int_equal(r.e.fields[4].i, 16);
	assert_string_equal(r.e.fields[5].s, "a");
	assert_string_equal(r.e.fields[6].s, "none");
	run_free(&r);
}

/* --- memory ------------------------------------------------------------------------------------------ */

struct inner {
	char name[8];
	short a[4];
};

struct outer {
	unsigned int kind : 3;
	int delta : 7;
	unsigned int rest : 22;
	struct inner in;
	struct outer *next;
	union {
		int i;
		uint8_t bytes[8];
	} u;
	uint64_t odd : 5;
	uint64_t wide : 33;
};

static void members(void **state)
{
	static const char text[] =
		"struct inner { char name[8]; short a[4]; };"
		"struct outer { unsigned int kind : 3; int delta : 7; unsigned int rest : 22; struct inner in;"
		"	struct outer *next; union { int i; uint8_t bytes[8]; } u; uint64_t odd : 5; uint64_t wide : 33; };"
		"BEGIN { this->p = (struct outer *)copyin(arg0, sizeof (struct outer)); trace(this->p->kind);"
		"	trace(this->p->delta); trace(this->p->rest); trace(stringof(this->p->in.name));"
		"	trace(this->p->in.a[2]); trace(this->p->next->u.i); trace((*this->p).u.bytes[1]);"
		"	trace((uint64_t)&this->p->in.a[1] - arg0); trace(this->p->next == this->p); trace(this->p->odd);"
		"	trace(this->p->wide); trace(*(short *)((char *)arg0 + offsetof(struct outer, in)));"
		"	trace(this->p->in.name); trace(&this->p->in.a[3] - &this->p->in.a[1]); }";
	struct outer o = { .kind = 5, .delta = -3, .rest = 0x3fffff, .in = { "inner", { 1, 2, -3, 4 } }, .next = &o,
			   .u.i = 0x1234, .odd = 17, .wide = 0x1fedcba98 };
	struct run r;

	(void)state;
	run(&r, text);
	r.e.args[0] = (int64_t)(uintptr_t)&o;
	run_all(&r);
	assert_int_equal(r.e.fields[0].i, 5);
	assert_int_equal(r.e.fields[1].i, -3);
	assert_int_equal(r.e.fields[2].i, 0x3fffff);
	assert_string_equal(r.e.fields[3].s, "inner");
	assert_int_equal(r.e.fields[4].i, -3);
	assert_int_equal(r.e.fields[5].i, 0x1234);
	assert_int_equal(r.e.fields[6].i, 0x12);
	assert_int_equal(r.e.fields[7].i, offsetof(struct outer, in.a[1]));
	assert_int_equal(r.e.fields[8].i, 1);
	assert_int_equal(r.e.fields[9].i, 17);
	assert_int_equal(r.e.fields[10].i, 0x1fedcba98);
	assert_int_equal(r.e.fields[11].i, 'i' | 'n' << 8);
	assert_string_equal(r.e.fields[12].s, "inner");
	assert_memory_equal(&r.e.fields[13].i, "inner\0\0", 8);	/* what it is if it is no text */
	assert_int_equal(r.e.fields[14].i, 2);
	run_free(&r);
}

/* The compiler's own stores are what ours are compared with. */
static void stores(void **state)
{
	static const char text[] =
		"struct inner { char name[8]; short a[4]; };"
		"struct outer { unsigned int kind : 3; int delta : 7; unsigned int rest : 22; struct inner in;"
		"	struct outer *next; union { int i; uint8_t bytes[8]; } u; uint64_t odd : 5; uint64_t wide : 33; };"
		"BEGIN { this->p = (struct outer *)copyin(arg0, sizeof (struct outer)); this->p->kind = 9;"
		"	trace(this->p->delta -= 66); this->p->rest ^= 0x155555; this->p->in.name[1] = 'x'; trace(this->p->in.a[2]--);"
		"	this->p->next = this->p + 1; this->p->u.bytes[3] |= 0x80; this->p->odd--; this->p->wide = -2;"
		"	trace(++*(short *)((char *)arg0 + (offsetof(struct outer, in) + 8))); }";
	struct outer o = { .kind = 5, .delta = -3, .rest = 0x3fffff, .in = { "inner", { 1, 2, -3, 4 } }, .next = NULL,
			   .u.i = 0x1234, .odd = 0, .wide = 0x1fedcba98 }, want = o;
	struct run r;

	(void)state;
	want.kind = 1;
	want.delta = 59;
	want.rest ^= 0x155555;
	want.in.name[1] = 'x';
	want.in.a[2]--;
	want.next = &o + 1;
	want.u.bytes[3] |= 0x80;
	want.odd = 31;
	want.wide = 0x1fffffffe;
	want.in.a[0]++;
	run(&r, text);
	r.e.args[0] = (int64_t)(uintptr_t)&o;
	run_all(&r);
	assert_memory_equal(&o, &want, sizeof(o));
	assert_int_equal(r.e.fields[0].i, 59);
	assert_int_equal(r.e.fields[1].i, -3);
	assert_int_equal(r.e.fields[2].i, 2);
	run_free(&r);
}

static void pointers(void **state)
{
	const int a[] = { 10, 20, 30, 40 };
	struct run r;

	(void)state;
	run(&r, "BEGIN { p = (int *)arg0; trace(*p); trace(p[2]); trace(*(p + 1)); p++; trace(*p); p += 2; trace(*p);"
		"	 trace(p - (int *)arg0); trace(*(int *)copyin(arg0, 4)); trace(*--p); }");
	r.e.args[0] = (int64_t)(uintptr_t)a;
	run_all(&r);
	assert_int_equal(r.e.fields[0].i, 10);
	assert_int_equal(r.e.fields[1].i, 30);
	assert_int_equal(r.e.fields[2].i, 20);
	assert_int_equal(r.e.fields[3].i, 20);
	assert_int_equal(r.e.fields[4].i, 40);
	assert_int_equal(r.e.fields[5].i, 3);
	assert_int_equal(r.e.fields[6].i, 10);
	assert_int_equal(r.e.fields[7].i, 30);
	assert_int_equal(r.e.user_loads, 0);
	run_free(&r);
}

static void args_have_the_probes_types(void **state)
{
	struct run r;

	(void)state;
	run(&r, "sizes123:::all { trace(args[0]); trace(args[1]); trace(args[2]); trace(args[3]); trace(args[4]);"
		"	 trace(args[5]); trace(args[6]); trace(args[7]); }");
	for (int i = 0; i < 8; i++)
		r.e.args[i] = -1;
	run_all(&r);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(r.e.rec->fields[i].width, 1 << i / 2);
		assert_int_equal(r.e.rec->fields[i].sign, i % 2 == 0);
		assert_int_equal(r.e.fields[i].i, i % 2 == 0 ? -1 : i == 7 ? -1 : (1LL << (8 << i / 2)) - 1);
	}
	run_free(&r);
}

/* Pointers that args[] gives are the traced process's. */
static void args_point_into_the_process(void **state)
{
	struct run r;

	(void)state;
	run(&r, "python123:::function-entry { trace(*args[0]); trace(args[0][1]); trace(stringof(args[1])); }");
	r.e.args[0] = (int64_t)(uintptr_t)"ab";
	r.e.args[1] = (int64_t)(uintptr_t)"name";
	run_all(&r);
	assert_int_equal(r.e.fields[0].i, 'a');
	assert_int_equal(r.e.fields[1].i, 'b');
	assert_string_equal(r.e.fields[2].s, "name");
	assert_int_equal(r.e.user_loads, 2);
	run_free(&r);
}

/* --- clauses and actions ----------------------------------------------------------------------------- */

static void one_record_a_clause(void **state)
{
	const struct ir_rec *rec;
	struct run r;

	(void)state;
	run(&r, "BEGIN { printf(\"%d %*s\\n\", 1, 5, \"x\"); @a = count(); trace(2); printf(\"none\"); exit(3);"
		"	 trunc(@a, 4); printa(@a); clear(@a); normalize(@a, 5); denormalize(@a); trunc(@a); }");
	run_all(&r);
	rec = r.e.rec;
	assert_int_equal(r.c.prog->nrecs, 1);
	assert_int_equal(rec->nacts, 10);
	assert_int_equal(rec->acts[0].kind, IR_ACT_PRINTF);
	assert_int_equal(rec->acts[0].nfields, 3);
	assert_non_null(rec->acts[0].fmt);
	assert_int_equal(rec->acts[1].kind, IR_ACT_TRACE);
	assert_int_equal(rec->acts[1].field, 3);
	assert_int_equal(rec->acts[2].nfields, 0);
	assert_int_equal(rec->acts[3].kind, IR_ACT_EXIT);
	assert_int_equal(rec->acts[4].kind, IR_ACT_TRUNC);
	assert_int_equal(rec->acts[4].nfields, 1);
	assert_int_equal(rec->acts[5].kind, IR_ACT_PRINTA);
	assert_null(rec->acts[5].fmt);
	assert_int_equal(rec->acts[5].naggs, 1);
	assert_int_equal(rec->acts[6].kind, IR_ACT_CLEAR);
	assert_int_equal(rec->acts[7].kind, IR_ACT_NORMALIZE);
	assert_int_equal(rec->acts[8].kind, IR_ACT_DENORMALIZE);
	assert_int_equal(rec->acts[9].kind, IR_ACT_TRUNC);
	assert_int_equal(rec->acts[9].nfields, 0);
	assert_true(r.e.exiting);
	assert_int_equal(r.e.fields[4].i, 3);
	run_free(&r);
}

static void nothing_recorded_nothing_written(void **state)
{
	struct run r;

	(void)state;
	run(&r, "BEGIN { x = 1; @a = count(); }");
	run_all(&r);
	assert_int_equal(r.c.prog->nrecs, 0);
	assert_null(r.e.rec);
	assert_non_null(r.e.agg);
	run_free(&r);
}

static void an_empty_clause_shows_the_probe(void **state)
{
	struct run r;

	(void)state;
	run(&r, "BEGIN { } END /0/ { ; }");
	assert_int_equal(r.c.prog->nrecs, 2);
	eval_run(&r.e, r.c.prog->clauses[0]);
	assert_int_equal(r.e.rec->nacts, 1);
	assert_int_equal(r.e.rec->acts[0].kind, IR_ACT_SHOWPROBE);
	eval_run(&r.e, r.c.prog->clauses[1]);
	assert_null(r.e.rec);
	run_free(&r);
}

static void predicates(void **state)
{
	struct run r;

	(void)state;
	run(&r, "BEGIN /arg0 > 1 && execname == \"execname\"/ { trace(1); }");
	run_all(&r);
	assert_null(r.e.rec);
	r.e.args[0] = 2;
	run_all(&r);
	assert_non_null(r.e.rec);
	run_free(&r);
}

static void aggregations(void **state)
{
	struct run r;

	(void)state;
	run(&r, "BEGIN { @[execname, arg0] = lquantize(arg1, 0, 100, 10, 3); }"
		"END { @q = quantize((char)-1); } END { @c[1] = count(); } END { @s = llquantize(5, 10, 0, 3, 20); }");
	r.e.args[0] = 7;
	r.e.args[1] = 8;
	eval_run(&r.e, r.c.prog->clauses[0]);
	assert_string_equal(r.e.agg->name, "");
	assert_int_equal(r.e.agg->fn, IR_A_LQUANTIZE);
	assert_int_equal(r.e.agg->param[0], 0);
	assert_int_equal(r.e.agg->param[1], 100);
	assert_int_equal(r.e.agg->param[2], 10);
	assert_int_equal(r.e.agg->nkeys, 2);
	assert_int_equal(r.e.agg_args[0].i, 8);
	assert_int_equal(r.e.agg_args[1].i, 3);
	assert_string_equal(r.e.agg_args[2].s, "execname");
	assert_int_equal(r.e.agg_args[3].i, 7);
	eval_run(&r.e, r.c.prog->clauses[1]);
	assert_int_equal(r.e.agg_args[0].i, -1);
	assert_int_equal(r.e.agg_args[1].i, 1);
	assert_true(r.e.agg->sign);
	eval_run(&r.e, r.c.prog->clauses[2]);
	assert_int_equal(r.e.agg->fn, IR_A_COUNT);
	assert_int_equal(r.e.agg->keys[0].width, 4);
	assert_int_equal(r.e.agg_args[0].i, 1);
	eval_run(&r.e, r.c.prog->clauses[3]);
	assert_int_equal(r.e.agg->param[3], 20);
	run_free(&r);
}

/* The number of the instruction's action where @op stands first. */
static uint32_t action_of(const struct ir_clause *c, enum ir_op op)
{
	for (uint32_t b = 0; b < c->nblocks; b++)
		for (uint32_t i = 0; i < c->blocks[b]->n; i++)
			if (c->blocks[b]->insns[i].op == op)
				return c->blocks[b]->insns[i].act;
	return UINT32_MAX;
}

/* As DTrace counts them: a printf is one for each value, an aggregation one more than it has keys and value. */
static void actions_are_numbered(void **state)
{
	struct run r;

	(void)state;
	run(&r, "BEGIN /strlen(execname) == 3/ { x = 1; printf(\"%d %d %d\", 1, 2, ~arg0); trace(-arg0); }"
		"END { @[1, 2] = sum(-arg0); y = ~arg0; }");
	assert_int_equal(action_of(r.c.prog->clauses[0], IR_CALL), 0);
	assert_int_equal(action_of(r.c.prog->clauses[0], IR_VST), 1);
	assert_int_equal(action_of(r.c.prog->clauses[0], IR_NOT), 4);
	assert_int_equal(action_of(r.c.prog->clauses[0], IR_NEG), 5);
	assert_int_equal(action_of(r.c.prog->clauses[1], IR_NEG), 4);
	assert_int_equal(action_of(r.c.prog->clauses[1], IR_NOT), 5);
	run_free(&r);
}

/* An if divides its clause: a record before it, one in each branch that records something, one behind it. */
static void ifs_divide_records(void **state)
{
	struct run r;

	(void)state;
	run(&r, "BEGIN { trace(1); trace(2); if (~arg0) { trace(3); if (1) x = 1; } else { printf(\"%d %d\", 1, -arg0); }"
		" trace(4); trace(5); trace(6); }");
	assert_int_equal(r.c.prog->nrecs, 4);
	assert_int_equal(r.c.prog->recs[0]->nacts, 2);
	assert_int_equal(r.c.prog->recs[1]->nacts, 1);
	assert_int_equal(r.c.prog->recs[2]->nacts, 1);
	assert_int_equal(r.c.prog->recs[3]->nacts, 3);
	assert_int_equal(action_of(r.c.prog->clauses[0], IR_NOT), 3);
	assert_int_equal(action_of(r.c.prog->clauses[0], IR_NEG), 8);
	run_free(&r);
}

static void descriptions_are_kept(void **state)
{
	const struct probe_desc *d;
	struct run r;
	size_t n;

	(void)state;
	run(&r, "#pragma D option quiet\n#pragma D option strsize=64\n"
		"BEGIN, python$target::f:function-entry { } tick-1s { }");
	d = d_descs(r.c.d, &n);
	assert_int_equal(n, 3);
	assert_string_equal(d[0].name, "BEGIN");
	assert_string_equal(d[1].prov, "python123");
	assert_string_equal(d[1].func, "f");
	assert_int_equal(r.c.prog->clauses[0]->ndescs, 2);
	assert_int_equal(d_nclauses(r.c.d), 2);
	assert_string_equal(d_option(r.c.d, 0)->name, "quiet");
	assert_string_equal(d_option(r.c.d, 1)->value, "64");
	assert_null(d_option(r.c.d, 2));
	run_free(&r);
}

/* Inlines of inlines double at each step: that ends in a report, not in all of memory. */
static void inlines_cannot_explode(void **state)
{
	char text[4096] = "inline int f0[int x] = x + x;";
	struct compiled c;

	(void)state;
	for (int i = 1; i < 40; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "inline int f%d[int x] = f%d[x] + f%d[x];", i,
			 i - 1, i - 1);
	strcat(text, "BEGIN { trace(f39[1]); }");
	compile_text(&c, "test", text, strlen(text));
	assert_null(c.prog);
	assert_int_equal(c.diag.errors, 1);
	compiled_free(&c);
}

static void inlines_cannot_dive(void **state)
{
	struct compiled c;
	size_t size = 1 << 20, len = 0;
	char *text = malloc(size);

	(void)state;
	len += (size_t)snprintf(text, size, "inline int g0[int x] = x;");
	for (int i = 1; i < 5000; i++)
		len += (size_t)snprintf(text + len, size - len, "inline int g%d[int x] = g%d[x];", i, i - 1);
	len += (size_t)snprintf(text + len, size - len, "BEGIN { trace(g4999[1]); }");
	compile_text(&c, "test", text, len);
	assert_null(c.prog);
	compiled_free(&c);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(integers_as_in_c),
		cmocka_unit_test(variables_keep_their_type),
		cmocka_unit_test(increments),
		cmocka_unit_test(assignment_operators),
		cmocka_unit_test(short_circuit),
		cmocka_unit_test(division_by_zero_faults),
		cmocka_unit_test(arrays),
		cmocka_unit_test(strings),
		cmocka_unit_test(values_are_taken_when_the_action_runs),
		cmocka_unit_test(inlines),
		cmocka_unit_test(members),
		cmocka_unit_test(stores),
		cmocka_unit_test(pointers),
		cmocka_unit_test(args_have_the_probes_types),
		cmocka_unit_test(args_point_into_the_process),
		cmocka_unit_test(one_record_a_clause),
		cmocka_unit_test(nothing_recorded_nothing_written),
		cmocka_unit_test(an_empty_clause_shows_the_probe),
		cmocka_unit_test(predicates),
		cmocka_unit_test(aggregations),
		cmocka_unit_test(actions_are_numbered),
		cmocka_unit_test(ifs_divide_records),
		cmocka_unit_test(descriptions_are_kept),
		cmocka_unit_test(inlines_cannot_explode),
		cmocka_unit_test(inlines_cannot_dive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* src/cmd/serve/tally.c and item.c: what rows have grown by, and items as they wait and are addressed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "cmd/serve/config.h"
#include "cmd/serve/fold.h"
#include "cmd/serve/item.h"
#include "cmd/serve/known.h"
#include "cmd/serve/labels.h"
#include "cmd/serve/tally.h"
#include "dtap.h"

/* The growth of the count @name of the stack @frame, which is @n now. */
static int64_t grown(struct tallies *t, const char *name, const char *frame, int64_t n)
{
	const char *frames[] = { frame, "outer" };
	struct dtap_value key = { .type = DTAP_STACK };
	struct dtap_row row = { .aggregation = name, .function = "count", .keys = &key, .nkeys = 1 }, growth;
	int e;

	key.stack.frames = frames;
	key.stack.n = 2;
	row.value = (struct dtap_value){ .type = DTAP_INT, .i = n };
	e = tallies_grow(t, &row, &growth);
	assert_true(e >= 0);
	assert_int_equal(e, growth.value.i != 0);
	free((void *)growth.buckets);
	return growth.value.i;
}

static void test_readings(void **state)
{
	struct tallies t = { 0 };

	(void)state;
	tallies_begin(&t);
	assert_int_equal(grown(&t, "a", "leaf", 5), 5);
	assert_int_equal(grown(&t, "a", "other", 2), 2);
	assert_int_equal(grown(&t, "b", "leaf", 7), 7);
	tallies_begin(&t);
	assert_int_equal(grown(&t, "a", "leaf", 9), 4);
	assert_int_equal(grown(&t, "b", "leaf", 7), 0);
	tallies_begin(&t);	/* one that was not there for a reading */
	assert_int_equal(grown(&t, "a", "other", 3), 1);
	tallies_fini(&t);
}

/* Two stacks of the same text: their growths are right together, in any order. */
static void test_same_texts(void **state)
{
	struct tallies t = { 0 };

	(void)state;
	tallies_begin(&t);
	assert_int_equal(grown(&t, "a", "leaf", 100) + grown(&t, "a", "leaf", 50), 150);
	for (int i = 0; i < 3; i++) {
		tallies_begin(&t);
		assert_int_equal(grown(&t, "a", "leaf", 50) + grown(&t, "a", "leaf", 100), 0);
	}
	tallies_begin(&t);
	assert_int_equal(grown(&t, "a", "leaf", 51) + grown(&t, "a", "leaf", 102), 3);
	tallies_fini(&t);
}

static int64_t all_of(const struct dtap_row *row)
{
	int64_t n = 0;

	for (size_t i = 0; i < row->nbuckets; i++)
		n += row->buckets[i].count;
	return n;
}

static void test_buckets(void **state)
{
	struct dtap_bucket first[] = { { .from = 1, .count = 3 } };
	struct dtap_bucket second[] = { { .from = 0, .count = 2 }, { .from = 1, .count = 4 } };
	struct dtap_row row = { .aggregation = "q", .function = "quantize", .buckets = first, .nbuckets = 1 }, growth;
	struct tallies t = { 0 };

	(void)state;
	tallies_begin(&t);
	assert_int_equal(tallies_grow(&t, &row, &growth), 1);
	assert_int_equal(all_of(&growth), 3);
	free((void *)growth.buckets);
	row.buckets = second;
	row.nbuckets = 2;
	for (int i = 0; i < 2; i++) {
		tallies_begin(&t);
		assert_int_equal(tallies_grow(&t, &row, &growth), !i);
		assert_int_equal(all_of(&growth), i ? 0 : 3);
		free((void *)growth.buckets);
	}
	tallies_fini(&t);
}

/* A row that has not grown in two readings after its process's end is over; one that is forgotten begins anew. */
static void test_over(void **state)
{
	struct dtap_value key = { .type = DTAP_INT, .i = 7 };
	struct dtap_row row = { .aggregation = "n", .function = "count", .keys = &key, .nkeys = 1, .value = { .type = DTAP_UINT, .u = 5 } };
	struct dtap_row growth;
	struct tallies t = { 0 };

	(void)state;
	for (int i = 0; i < 2; i++) {
		tallies_begin(&t);
		assert_int_equal(tallies_grow(&t, &row, &growth), 1);
		assert_int_equal(growth.value.u, 5);
		tallies_begin(&t);
		assert_int_equal(tallies_grow(&t, &row, &growth), 0);
		assert_false(tallies_is_over(&t, &row));
		row.value.u = 6;	/* one that was on its way */
		tallies_begin(&t);
		assert_int_equal(tallies_grow(&t, &row, &growth), 1);
		tallies_begin(&t);
		assert_int_equal(tallies_grow(&t, &row, &growth), 0);
		assert_false(tallies_is_over(&t, &row));
		tallies_begin(&t);
		assert_int_equal(tallies_grow(&t, &row, &growth), 0);
		assert_true(tallies_is_over(&t, &row));
		tallies_forget(&t, &row);
		row.value.u = 5;
	}
	tallies_fini(&t);
}

/* --- folds --------------------------------------------------------------------------------------------- */

struct seen { size_t n; uint64_t value; int64_t count; const char *release; };

static int see(void *ctx, const struct dtap_row *row, const struct labels *l)
{
	struct seen *s = ctx;

	s->n++;
	s->value += row->value.u;
	for (size_t i = 0; i < row->nbuckets; i++)
		s->count += row->buckets[i].count;
	s->release = l->nvalues ? l->values[0] : "none";
	assert_string_equal(row->keys[1].s, "leaf");
	return 0;
}

static void test_folds(void **state)
{
	char unit[] = "u", r1[] = "r1", r2[] = "r2", *values[][1] = { { r1 }, { r2 }, { r1 } };
	struct dtap_bucket buckets[] = { { .from = 0, .count = 2 }, { .from = 1, .count = 4 } };
	struct dtap_value keys[] = { { .type = DTAP_INT }, { .type = DTAP_STRING, .s = "leaf" } };
	struct folds f = { 0 };
	struct seen s = { 0 };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct labels l = { .unit = unit, .values = values[i], .nvalues = 1 };
		struct dtap_row row = { .aggregation = "n", .function = "sum", .keys = keys, .nkeys = 2,
					.value = { .type = DTAP_UINT, .u = 10 }, .buckets = buckets, .nbuckets = 2 };

		keys[0].i = 100 + i;
		assert_int_equal(folds_add(&f, &row, 0, &l), 0);
	}
	folds_each(&f, see, &s);
	assert_int_equal(s.n, 2);
	assert_int_equal(s.value, 30);
	assert_int_equal(s.count, 18);
	assert_int_equal(folds_unlabel(&f), 0);
	s = (struct seen){ 0 };
	folds_each(&f, see, &s);
	assert_int_equal(s.n, 1);
	assert_int_equal(s.value, 30);
	assert_string_equal(s.release, "none");
	folds_fini(&f);
}

/* The least and the largest of all, signed or not. */
static int see_value(void *ctx, const struct dtap_row *row, const struct labels *l)
{
	(void)l;
	*(int64_t *)ctx = row->value.i;
	return 0;
}

static void test_folded_extremes(void **state)
{
	static const int64_t given[] = { 3, -5, 9, 0 };

	(void)state;
	for (int most = 0; most < 2; most++) {
		struct folds f = { 0 };
		int64_t found = 77;

		for (int i = 0; i < 4; i++) {
			struct dtap_value key = { .type = DTAP_INT, .i = i };
			struct dtap_row row = { .aggregation = "n", .function = most ? "max" : "min", .keys = &key, .nkeys = 1,
						.value = { .type = DTAP_INT, .i = given[i] } };

			assert_int_equal(folds_add(&f, &row, 0, NULL), 0);
		}
		folds_each(&f, see_value, &found);
		assert_int_equal(found, most ? 9 : -5);
		folds_fini(&f);
	}
}

/* --- items --------------------------------------------------------------------------------------------- */

static void test_item(void **state)
{
	struct strbuf variables = { 0 }, bytes = { 0 }, text = { 0 }, out = { 0 };
	struct item i;

	(void)state;
	item_variable(&variables, "script", "a b/..&=");
	item_number(&variables, "from", 12);
	item_variable(&variables, "unit", "");
	strbuf_add(&bytes, "x\0\n1 y\n", 7);
	item_write(strbuf_str(&variables), &bytes, &text);
	item_write("other=1", &bytes, &text);
	assert_true(item_read(text.s, text.len, &i));
	assert_int_equal(i.nbytes, 7);
	assert_memory_equal(i.bytes, bytes.s, 7);
	item_address(&i, "http://h/{script}?n={script}{f={from}}&u={unit}&x={other}", &out);
	assert_string_equal(strbuf_str(&out), "http://h/a%20b%2F..%26%3D?n=a%20b%2F..%26%3D%7Bf=12%7D&u=&x=");
	assert_true(item_read(i.bytes + i.nbytes, (size_t)(text.s + text.len - i.bytes) - i.nbytes, &i));
	assert_ptr_equal(i.bytes + i.nbytes, text.s + text.len);
	for (size_t len = 0; len < text.len - (size_t)(i.nbytes + 10); len++)	/* a part of the first is none */
		if (item_read(text.s, len, &i))
			assert_true(i.bytes + i.nbytes <= text.s + len);
	assert_false(item_read("99999999999999999999 a\nb", 24, &i));
	assert_false(item_read("7", 1, &i));
	assert_false(item_read(" a\nb", 4, &i));
	strbuf_fini(&variables);
	strbuf_fini(&bytes);
	strbuf_fini(&text);
	strbuf_fini(&out);
}

static void test_addresses(void **state)
{
	struct serve_pair release = { "release", "RELEASE" };
	const struct serve_pairs labels = { .v = &release, .n = 1 }, none = { 0 };
	char *why;

	(void)state;
	assert_null(item_mistake("http://h:1/{script}{type}{host={host}}?{release}", &labels));
	assert_null(item_mistake("http://h/{not a place}{}", &none));
	why = item_mistake("http://h/{release}", &none);
	assert_non_null(why);
	free(why);
	why = item_mistake("http://{host}:1", &labels);
	assert_non_null(strstr(why, "in the host"));
	free(why);
}

static size_t count_known(const struct known *k, pid_t from, pid_t to)
{
	size_t n = 0;

	for (pid_t pid = from; pid < to; pid++)
		n += known_process(k, pid) != NULL;
	return n;
}

/* Numbers that no process has. */
enum { NOBODY = 1 << 23 };

static void test_packed(void **state)
{
	char unit[] = "shop.service", interpreter[] = "python3", release[] = "r1", empty[] = "";
	char *values[] = { release, NULL, empty };
	const struct labels l = { .unit = unit, .interpreter = interpreter, .values = values, .nvalues = 3, .user = 7 };
	struct labels *p = labels_pack(&l);

	(void)state;
	assert_string_equal(p->unit, "shop.service");
	assert_string_equal(p->container, "");
	assert_string_equal(p->interpreter, "python3");
	assert_int_equal(p->nvalues, 3);
	assert_string_equal(p->values[0], "r1");
	assert_string_equal(p->values[1], "");
	assert_string_equal(p->values[2], "");
	assert_int_equal(p->user, 7);
	free(p);
}

/* Those that have ended are known until what they have left was read, however many they are. */
static void test_known(void **state)
{
	const struct serve_pairs none = { 0 };
	struct known k = { 0 };

	(void)state;
	for (pid_t i = 0; i < 5000; i++) {
		assert_non_null(known_learn(&k, NOBODY + i, &none));
		if (i % 2)
			known_retire(&k, NOBODY + i, 1000 + (uint64_t)i);
	}
	assert_int_equal(count_known(&k, NOBODY, NOBODY + 5000), 5000);
	known_forget(&k, 1000 + 1001);
	assert_int_equal(count_known(&k, NOBODY, NOBODY + 5000), 4500);
	assert_null(known_process(&k, NOBODY + 999));
	assert_non_null(known_process(&k, NOBODY + 1000));	/* it lives */
	assert_non_null(known_process(&k, NOBODY + 1001));
	/* A later process with the same number. */
	assert_non_null(known_learn(&k, NOBODY + 1001, &none));
	assert_non_null(known_learn(&k, NOBODY + 1003, &none));
	known_retire(&k, NOBODY + 1003, 9000);
	known_forget(&k, 8000);
	assert_int_equal(count_known(&k, NOBODY, NOBODY + 5000), 2502);
	known_forget(&k, 9001);
	assert_null(known_process(&k, NOBODY + 1003));
	assert_non_null(known_process(&k, NOBODY + 1001));
	/* Nobody reads: the last ones. */
	for (pid_t i = 0; i < KNOWN_GONE + 100; i++) {
		known_learn(&k, NOBODY + 10000 + i, &none);
		known_retire(&k, NOBODY + 10000 + i, 10000);
	}
	assert_int_equal(count_known(&k, NOBODY + 10000, NOBODY + 10000 + KNOWN_GONE + 100), KNOWN_GONE);
	assert_null(known_process(&k, NOBODY + 10099));
	known_retire(&k, 1, 20000);		/* not known */
	known_forget(&k, UINT64_MAX);
	assert_int_equal(k.n, 0);
	assert_int_equal(k.by_pid.n, 2501);
	known_fini(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_readings), cmocka_unit_test(test_same_texts), cmocka_unit_test(test_buckets),
		cmocka_unit_test(test_over), cmocka_unit_test(test_folds), cmocka_unit_test(test_folded_extremes),
		cmocka_unit_test(test_item), cmocka_unit_test(test_addresses), cmocka_unit_test(test_known), cmocka_unit_test(test_packed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

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
#include "cmd/serve/item.h"
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_readings), cmocka_unit_test(test_same_texts), cmocka_unit_test(test_buckets),
		cmocka_unit_test(test_item), cmocka_unit_test(test_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

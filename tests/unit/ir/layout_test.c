/*
 * Facts of the tables, keys and records.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "abi/record.h"
#include "ir/layout.h"

static const struct ir_slot str = { .type = IR_STR }, num = { .type = IR_INT, .width = 4, .sign = true };

static void key_classes(void **state)
{
	struct ir_slot two[2] = { str, num };
	uint32_t sizes[IR_KEY_CLASSES];

	(void)state;
	assert_int_equal(ir_key_sizes(NULL, 0, 0, 256, sizes), 1);
	assert_int_equal(sizes[0], 8);
	assert_int_equal(ir_key_sizes(&num, 1, 1, 256, sizes), 1);
	assert_int_equal(sizes[0], 16);
	assert_int_equal(ir_key_sizes(two, 2, 0, 256, sizes), 3);
	assert_int_equal(sizes[0], 40);
	assert_int_equal(sizes[1], 136);
	assert_int_equal(sizes[2], 264);
	assert_int_equal(ir_key_sizes(two, 2, 0, 128, sizes), 2);
	assert_int_equal(sizes[1], 136);
	assert_int_equal(ir_key_sizes(two, 2, 0, 8, sizes), 1);
	assert_int_equal(sizes[0], 16);
}

static void keys_decode(void **state)
{
	struct ir_slot parts[3] = { str, num, str };
	struct ir_value v[3];
	int64_t raw = 0xfffffffe;
	char key[24] = { 0 };

	(void)state;
	memcpy(key, &raw, 8);
	memcpy(key + 8, "ab\0cd", 6);
	assert_int_equal(ir_key_decode(parts, 3, 0, key, sizeof(key), v), 0);
	assert_string_equal(v[0].s, "ab");
	assert_int_equal(v[1].i, -2);
	assert_string_equal(v[2].s, "cd");
	assert_int_equal(ir_key_decode(parts, 3, 0, key, 12, v), -EINVAL);
	assert_int_equal(ir_key_decode(parts, 3, 0, key, 4, v), -EINVAL);
	assert_int_equal(ir_key_decode(parts, 3, 3, key, sizeof(key), v), -EINVAL);
}

static void records_decode(void **state)
{
	struct ir_slot fields[2] = { num, str };
	struct ir_rec rec = { .fields = fields, .nfields = 2 };
	struct { struct abi_record h; uint64_t slots[2]; char text[8]; } r = { .slots = { 5, 48 | 3ull << 32 } };
	struct ir_value v[2];

	(void)state;
	memcpy(r.text, "ab", 3);
	assert_int_equal(ir_rec_max(&rec, 256), 32 + 16 + 256);
	assert_int_equal(ir_rec_decode(&rec, &r, sizeof(r), v), 0);
	assert_int_equal(v[0].i, 5);
	assert_string_equal(v[1].s, "ab");
	r.slots[1] = 55 | 3ull << 32;		/* beyond the end */
	assert_int_equal(ir_rec_decode(&rec, &r, sizeof(r), v), -EINVAL);
	r.slots[1] = 48 | 2ull << 32;		/* no NUL where it ends */
	assert_int_equal(ir_rec_decode(&rec, &r, sizeof(r), v), -EINVAL);
	r.slots[1] = 0xfffffff0 | 0xffull << 32;
	assert_int_equal(ir_rec_decode(&rec, &r, sizeof(r), v), -EINVAL);
	assert_int_equal(ir_rec_decode(&rec, &r, 40, v), -EINVAL);
}

static void words_of_aggregations(void **state)
{
	struct ir_agg l = { .fn = IR_A_LQUANTIZE, .param = { 0, 100, 10 } };
	struct ir_agg bad = { .fn = IR_A_LQUANTIZE, .param = { 0, 100, 0 } };
	struct ir_agg q = { .fn = IR_A_QUANTIZE };

	(void)state;
	assert_int_equal(ir_agg_words(&l), 12);
	assert_int_equal(ir_agg_words(&bad), 0);
	bad.param[2] = 1;
	bad.param[1] = 1 << 20;
	assert_int_equal(ir_agg_words(&bad), 0);
	bad = (struct ir_agg){ .fn = IR_A_LLQUANTIZE, .param = { 10, 0, 40, 10 } };
	assert_int_equal(ir_agg_words(&bad), 0);
	assert_int_equal(ir_agg_words(&q), 127);
}

/* Every bucket begins at its bound, and one less is in the bucket before. */
static void llquantize_buckets(void **state)
{
	static const int64_t params[][4] = { { 10, 0, 3, 10 }, { 10, 3, 6, 20 }, { 2, 0, 10, 2 }, { 2, 0, 10, 8 },
					     { 10, 0, 17, 100 } };

	(void)state;
	for (size_t k = 0; k < sizeof(params) / sizeof(params[0]); k++) {
		struct ir_agg g = { .fn = IR_A_LLQUANTIZE };
		uint32_t words;

		memcpy(g.param, params[k], sizeof(g.param));
		words = ir_agg_words(&g);
		assert_true(words > 2);
		assert_true(ir_llquantize_bound(&g, 0) == INT64_MIN);
		for (uint32_t b = 1; b < words; b++) {
			int64_t bound = ir_llquantize_bound(&g, b);

			assert_int_equal(ir_llquantize_bucket(&g, bound), b);
			assert_int_equal(ir_llquantize_bucket(&g, bound - 1), b - 1);
		}
		assert_int_equal(ir_llquantize_bucket(&g, INT64_MAX), words - 1);
		assert_int_equal(ir_llquantize_bucket(&g, INT64_MIN), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(key_classes),	       cmocka_unit_test(keys_decode),
		cmocka_unit_test(records_decode),      cmocka_unit_test(words_of_aggregations),
		cmocka_unit_test(llquantize_buckets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

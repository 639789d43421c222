#include "out/names.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "abi/python.h"
#include "probe/symbols.h"
#include "vm/record.h"

enum { MAX = 100 << 10 };

/* A stack of the kernel's without frames. */
static int add(struct names *n, uint64_t number)
{
	struct {
		struct abi_record hdr;
		uint64_t slots[2];
	} r = { .hdr = { .size = sizeof(r), .rec = ABI_REC_STACK }, .slots = { number, 0 } };

	return names_add(n, &(struct record){ &r.hdr, sizeof(r) });
}

/* A code object whose file has @length characters. */
static int add_code(struct names *n, uint64_t number, uint32_t length)
{
	static struct abi_code r;

	memset(&r, 0, sizeof(r));
	r.hdr.size = offsetof(struct abi_code, table_bytes);
	r.number = number;
	r.version = 0x030b;
	r.file.bytes = r.file.length = length;
	memset(r.file_text, 'a', length);
	return names_add_code(n, &(struct record){ &r.hdr, r.hdr.size }, false);
}

static void has_an_end(void **state)
{
	struct symbols *symbols = symbols_new();
	struct names *n = names_new(symbols, MAX);
	uint64_t number = 0;
	int err;

	(void)state;
	while (!(err = add(n, ++number)))
		assert_true(number < MAX / 64);
	assert_int_equal(err, -ENOSPC);
	assert_true(number > MAX / 1024);
	assert_int_equal(add(n, number), -ENOSPC);
	assert_int_equal(add_code(n, 1, 10), -ENOSPC);
	/* What is known stays so. */
	assert_int_equal(add(n, 1), 0);
	names_free(n);
	symbols_free(symbols);
}

/* The same one, over and over, is no way around it. */
static void has_an_end_for_one_number(void **state)
{
	struct symbols *symbols = symbols_new();
	struct names *n = names_new(symbols, MAX);
	unsigned int count = 0;

	(void)state;
	while (!add_code(n, 1, ABI_CODE_FILE))
		assert_true(++count < MAX / ABI_CODE_FILE);
	assert_int_equal(add_code(n, 1, ABI_CODE_FILE), -ENOSPC);
	names_free(n);
	symbols_free(symbols);
}

static void may_be_none(void **state)
{
	struct symbols *symbols = symbols_new();
	struct names *n = names_new(symbols, 0);

	(void)state;
	assert_int_equal(add(n, 1), -ENOSPC);
	assert_int_equal(add_code(n, 1, 1), -ENOSPC);
	names_free(n);
	symbols_free(symbols);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(has_an_end),
		cmocka_unit_test(has_an_end_for_one_number),
		cmocka_unit_test(may_be_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

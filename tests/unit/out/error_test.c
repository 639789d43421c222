/* out/error.c: libdtrace's sentences. */
#include "out_test.h"

#include "out/error.h"

static void faults(void **state)
{
	struct out_fault f = { .epid = 1, .id = 3, .prov = "python42", .mod = "python3.9",
			       .func = "_PyEval_EvalFrameDefault", .name = "function-entry", .action = 1, .off = 24,
			       .fault = ABI_FAULT_BADADDR, .value = 0 };
	struct out_sink s;

	(void)state;
	out_open_mem(&s);
	out_fault(&s, "dtrace", &f);
	assert_string_equal(out_text(&s),
			    "dtrace: error on enabled probe ID 1 (ID 3: python42:python3.9:"
			    "_PyEval_EvalFrameDefault:function-entry): invalid address (0x0) in action #1 at "
			    "DIF offset 24\n");
	out_reset(&s);
	f.action = 0;
	f.off = -1;
	f.fault = ABI_FAULT_DIVZERO;
	f.mod = "";
	out_fault(&s, "dtrace", &f);
	assert_string_equal(out_text(&s),
			    "dtrace: error on enabled probe ID 1 (ID 3: python42::_PyEval_EvalFrameDefault:"
			    "function-entry): divide-by-zero in predicate\n");
	assert_string_equal(out_fault_text(1000), "unknown fault");
	out_close(&s);
}

static void drops(void **state)
{
	struct out_sink s;

	(void)state;
	out_open_mem(&s);
	out_drops(&s, "dtrace", ABI_DROP_RECORD, 0, 0, false);
	out_drops(&s, "dtrace", ABI_DROP_RECORD, 12, 0, false);
	out_drops(&s, "dtrace", ABI_DROP_RECORD, 1, 3, false);
	out_drops(&s, "dtrace", ABI_DROP_RECORD, 5, -1, false);
	out_drops(&s, "dtrace", ABI_DROP_AGG, 3, 0, false);
	out_drops(&s, "dtrace", ABI_DROP_DYNVAR, 5, 0, false);
	out_drops(&s, "dtrace", ABI_DROP_DYNVAR, 1, -1, false);
	assert_string_equal(out_text(&s), "dtrace: 12 drops on CPU 0\n"
					  "dtrace: 1 drop on CPU 3\n"
					  "dtrace: 5 drops\n"
					  "dtrace: 3 aggregation drops on CPU 0\n"
					  "dtrace: 5 dynamic variable drops\n"
					  "dtrace: 1 dynamic variable drop\n");
	out_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(faults), cmocka_unit_test(drops) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

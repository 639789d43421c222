/* out/error.c: libdtrace's sentences. */
#include "out_test.h"

#include "out/error.h"

static void faults(void **state)
{
	struct out_fault f = { .clause = 1, .id = 3, .prov = "python42", .mod = "python3.9",
			       .func = "_PyEval_EvalFrameDefault", .name = "function-entry", .pc = 24,
			       .fault = ABI_FAULT_BADADDR, .value = 0 };
	struct out_sink s;

	(void)state;
	out_open_mem(&s);
	out_fault(&s, "dtrace", &f);
	assert_string_equal(out_text(&s),
			    "dtrace: error in dt_clause_1 for probe ID 3 (python42:python3.9:"
			    "_PyEval_EvalFrameDefault:function-entry): invalid address (0x0) at BPF pc 24\n");
	out_reset(&s);
	f.fault = ABI_FAULT_BADINDEX;
	f.value = 8;
	out_fault(&s, "dtrace", &f);
	assert_non_null(strstr(out_text(&s), "index out of bounds (8) at BPF pc 24\n"));
	out_reset(&s);
	f.pc = -1;
	f.fault = ABI_FAULT_DIVZERO;
	f.mod = "";
	out_fault(&s, "dtrace", &f);
	assert_string_equal(out_text(&s),
			    "dtrace: error in dt_clause_1 for probe ID 3 (python42::_PyEval_EvalFrameDefault:"
			    "function-entry): divide-by-zero\n");
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

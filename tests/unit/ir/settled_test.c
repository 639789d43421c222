/*
 * Ends of clauses that arguments 0 and 1 decide: programs as text, and the blocks in which they are settled.
 */
#include "ir/settled.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"

#define DECLARED "var \"n\" global i8 agg \"\" count keys "
#define NAME "r0 = arg 1 r1 = const 256 r2 = call copyinstr r0 r1 r3 = strc \"f\" r4 = strcmp r2 r3 "

/* @want: a letter for each block, s if it is settled; "": the clause returns from none. */
static void expect(const char *text, const char *want)
{
	struct arena *a = arena_new();
	const char *err;
	struct ir_prog *p = ir_read(a, text, &err);
	const bool *settled;

	if (!p || (err = ir_check(p)))
		fail_msg("%s: %s", text, err);
	settled = ir_settled(p->clauses[0], 1 << 0 | 1 << 1, a);
	assert_int_equal(settled != NULL, *want != '\0');
	for (uint32_t k = 0; settled && k < p->clauses[0]->nblocks; k++)
		if (settled[k] != (want[k] == 's'))
			fail_msg("%s: block %u is%s settled", text, k, settled[k] ? "" : " not");
	arena_free(a);
}

static void predicates(void **state)
{
	(void)state;
	expect(DECLARED "clause regs iissii b0: " NAME "br b1 b2 r4 b1: agg 0 ret b2: ret", "s-s");
	expect(DECLARED "clause regs iissii b0: " NAME "br b1 b2 r4 b1: r5 = call strlen r2 br b2 b3 r5 b2: ret b3: agg 0 ret", "sss-");
	expect(DECLARED "clause b0: r0 = const 1 br b1 b2 r0 b1: agg 0 jmp b2 b2: ret", "");
	expect(DECLARED "clause b0: agg 0 ret", "");
	expect("clause b0: ret", "s");
}

static void not_by_arguments(void **state)
{
	static const char *const others[] = {
		"r0 = arg 2", "r0 = vld 0", "r0 = builtin timestamp", "r0 = call rand",
		"r1 = arg 1 r2 = const 1 r3 = add r1 r2 r4 = const 9 r5 = call copyinstr r3 r4 r0 = call strlen r5",
		"r0 = const 1 vst 0 r0", "r1 = arg 0 r0 = uload u8 r1",
	};
	char text[400];

	(void)state;
	for (unsigned k = 0; k < sizeof(others) / sizeof(*others); k++) {
		strcpy(text, DECLARED "clause regs iiiiis b0: ");
		strcat(text, others[k]);
		strcat(text, " br b1 b2 r0 b1: agg 0 ret b2: ret");
		expect(text, "");
	}
	/* Decided before it is asked for something else. */
	expect(DECLARED "clause regs iissii b0: " NAME "br b1 b2 r4 b1: r5 = vld 0 br b2 b3 r5 b2: agg 0 ret b3: ret", "");
	expect(DECLARED "clause regs iissii b0: " NAME "br b1 b2 r4 b1: r5 = vld 0 br b3 b4 r5 b2: ret b3: agg 0 ret b4: ret", "s-s--");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(predicates),
		cmocka_unit_test(not_by_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

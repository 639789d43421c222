/*
 * The checker and the text form: each program is read, checked, printed, and read again.
 */
#include "ir/ir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/strbuf.h"

/* What ir_check says of @text, which must be readable and print as something that prints as itself. */
static void verdict(const char *text, const char *want)
{
	struct arena *a = arena_new();
	struct strbuf one = { 0 }, two = { 0 };
	const char *err;
	struct ir_prog *p = ir_read(a, text, &err), *q;

	if (!p)
		fail_msg("%s: %s", text, err);
	err = ir_check(p);
	if (want && (!err || !strstr(err, want)))
		fail_msg("%s: %s, not %s", text, err ? err : "accepted", want);
	if (!want && err)
		fail_msg("%s: %s", text, err);
	ir_print(p, &one);
	q = ir_read(a, strbuf_str(&one), &err);
	if (!q)
		fail_msg("%s: %s", strbuf_str(&one), err);
	ir_print(q, &two);
	assert_string_equal(strbuf_str(&one), strbuf_str(&two));
	strbuf_fini(&one);
	strbuf_fini(&two);
	arena_free(a);
}

static void loops(void **state)
{
	(void)state;
	verdict("var \"n\" local i8 clause b0: r0 = const 9 vst 0 r0 jmp b1 "
		"b1: turn r1 = vld 0 br b2 b3 r1 b2: r2 = const -1 r3 = vadd 0 r2 jmp b1 b3: ret", NULL);
	verdict("clause b0: jmp b1 b1: jmp b1", "in a loop without TURN");
	verdict("clause b0: r0 = const 1 br b1 b2 r0 b1: r1 = const 2 jmp b0 b2: ret", "in a loop without TURN");
	verdict("clause b0: r0 = const 1 jmp b1 b1: turn br b1 b2 r0 b2: ret", "r0 is not assigned");
	verdict("clause b0: r0 = const 1 turn ret", "not at its block's");
}

static void strings(void **state)
{
	(void)state;
	verdict("clause regs ss b0: r0 = strc \"a\" r1 = call basename r0 r0 = call strjoin r1 r1 ret", NULL);
	verdict("clause regs s b0: r0 = strc \"a\" r0 = call basename r0 ret", "a string made from itself");
}

static void procedures(void **state)
{
	(void)state;
	verdict("nesting 20 var \"n\" frame i8 var \"r\" local i8 clause b0: r0 = const 5 pass 0 r0 enter b2 b1 "
		"b1: ret b2: r1 = vld 0 br b3 b5 r1 b3: r2 = const -1 r3 = add r1 r2 pass 0 r3 enter b2 b4 "
		"b4: r4 = vld 0 r5 = vadd 1 r4 leave b5: leave", NULL);
	verdict("clause b0: r0 = const 5 enter b2 b1 b1: br b3 b3 r0 b2: leave b3: ret", "r0 is not assigned");
	verdict("clause b0: r0 = const 5 enter b2 b1 b1: ret b2: br b3 b3 r0 b3: leave", "r0 is not assigned");
	verdict("var \"n\" local i8 clause b0: r0 = const 5 pass 0 r0 ret", "no call has anew");
	verdict("nesting 0 clause b0: ret", "nesting out of range");
}

static void faults(void **state)
{
	(void)state;
	verdict("clause regs iisi b0: try b2 b1 b1: r0 = const 0 r1 = sdiv r0 r0 endtry ret "
		"b2: r0 = caught 0 r1 = caught 2 r2 = caughtstr r3 = failed raise r2", NULL);
	verdict("clause b0: r0 = const 0 try b2 b1 b1: r1 = sdiv r0 r0 ret b2: br b3 b3 r0 b3: ret",
		"r0 is not assigned");
	verdict("clause b0: r0 = caught 3 ret", "no such part");
	verdict("clause b0: r0 = const 0 fault 15 r0", NULL);
	verdict("clause b0: r0 = const 0 fault 99 r0", "unknown fault");
	verdict("clause b0: budget 1000 spend 3 ret", NULL);
	verdict("clause b0: spend -3 ret", "impossible number");
}

static void arrays(void **state)
{
	(void)state;
	verdict("map \"a\" global keys i8 s value i8 ordered max 2048 map \"b\" global keys s value s wraps max 2 "
		"iter 0 iter 0 sort key 1 down given 1 iter 1 sort value clause regs iiisiss "
		"b0: r0 = const 3 r1 = iter 1 r0 r0 jmp b1 b1: turn r2 = inext 1 br b2 b3 r2 "
		"b2: r3 = ikey 1 1 r4 = ivalue 1 r5 = ikey 2 0 r6 = ivalue 2 jmp b1 b3: idone 1 mclear 0 ret", NULL);
	verdict("map \"a\" global keys i8 value i8 max 9 iter 0 clause b0: ret", "no order");
	verdict("map \"a\" global keys i8 value i8 ordered clause b0: ret", "half ordered");
	verdict("map \"a\" global keys i8 value i8 ordered max 9 iter 0 sort key 1 clause b0: ret", "what there is not");
	verdict("map \"a\" global keys i8 value i8 ordered max 9 iter 0 sort avg clause b0: ret", "what there is not");
	verdict("map \"a\" global keys i8 value i8 ordered max 9 iter 0 given 2 clause b0: ret", "keys that there are not");
}

static void statistics(void **state)
{
	(void)state;
	verdict("map \"s\" global keys stat extremes squares ordered max 1 map \"l\" global keys s stat log ordered max 9 "
		"map \"n\" global keys i8 stat linear 0 100 10 ordered max 9 iter 1 sort avg "
		"rec 0 fields i8 stat 1 clause regs iisi b0: r0 = const 3 stat 0 r0 r1 = scount 0 r1 = svariance 0 "
		"r1 = smax 0 r2 = strc \"x\" stat 1 r0 r2 r3 = savg 1 r2 r3 = sbucket 2 r0 r0 emit 0 r0 r2 ret", NULL);
	verdict("map \"s\" global keys stat ordered max 1 clause b0: r0 = smin 0 ret", "does not keep");
	verdict("map \"s\" global keys stat ordered max 1 clause b0: r0 = mld 0 ret", "value of a statistic");
	verdict("map \"s\" global keys stat linear 0 10 0 ordered max 1 clause b0: ret", "impossible type");
	verdict("map \"s\" global keys value i8 ordered max 1 clause b0: r0 = ssum 0 ret", "no statistic");
}

static void formats(void **state)
{
	(void)state;
	verdict("clause regs iss b0: r0 = const 3 r1 = strc \"x\" r2 = sprintf \"%d %-*s %%\" r0 r0 r1 ret", NULL);
	verdict("clause regs iss b0: r0 = const 3 r1 = strc \"x\" r2 = sprintf \"%d\" r1 ret", "wrong type");
	verdict("clause regs iss b0: r0 = const 3 r2 = sprintf \"%d %d\" r0 ret", "number of operands");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loops),    cmocka_unit_test(procedures), cmocka_unit_test(faults),
		cmocka_unit_test(arrays),   cmocka_unit_test(statistics), cmocka_unit_test(formats),
		cmocka_unit_test(strings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

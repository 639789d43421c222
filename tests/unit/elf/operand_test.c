/*
 * Operands as GCC and clang print them, one line each: text in, what it means out.
 *
 * The meaning is written as  SIZE[s|f] LOC ...  with pt_regs offsets: "4s r16", "8 m152+112", "8 m80+32*8+16",
 * "8 c-5", and "?REASON" behind it when the operand cannot be read.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "arch/arch.h"
#include "base/strbuf.h"

static void describe(struct strbuf *b, const struct arch_operand *op)
{
	strbuf_printf(b, "%u%s ", op->size, op->is_float ? "f" : op->sign ? "s" : "");
	switch (op->loc) {
	case ARCH_LOC_NONE:
		strbuf_puts(b, "none");
		break;
	case ARCH_LOC_CONST:
		strbuf_printf(b, "c%" PRId64, op->value);
		break;
	case ARCH_LOC_REG:
		strbuf_printf(b, "r%u", op->reg->off);
		break;
	case ARCH_LOC_MEM:
		strbuf_puts(b, "m");
		if (op->reg)
			strbuf_printf(b, "%u", op->reg->off);
		if (op->index)
			strbuf_printf(b, "+%u*%u", op->index->off, op->scale);
		strbuf_printf(b, "%+" PRId64, op->value);
		break;
	}
	if (op->sym)
		strbuf_printf(b, " %s:%.*s", op->sym_kind == ARCH_SYM_LO12 ? "lo12" :
			      op->sym_kind == ARCH_SYM_PCREL ? "pcrel" : "addr", (int)op->sym_len, op->sym);
	if (op->why)
		strbuf_puts(b, " ?");
}

struct row {
	const char *args, *want;
};

static const struct row x86_64_rows[] = {
	/* registers of each width */
	{ "8@%rax", "8 r80" }, { "-4@%eax", "4s r80" }, { "2@%ax", "2 r80" }, { "-1@%al", "1s r80" },
	{ "1@%ah", "1 r81" }, { "1@%bh", "1 r41" }, { "1@%ch", "1 r89" }, { "1@%dh", "1 r97" },
	{ "-4@%r13d", "4s r16" }, { "1@%r13b", "1 r16" }, { "2@%r8w", "2 r72" }, { "8@%r15", "8 r0" },
	{ "8@%rsp", "8 r152" }, { "1@%spl", "1 r152" }, { "1@%sil", "1 r104" }, { "1@%dil", "1 r112" },
	{ "8@%rbp", "8 r32" }, { "-2@%bp", "2s r32" }, { "8@%rbx", "8 r40" }, { "8@%rcx", "8 r88" },
	{ "8@%rdx", "8 r96" }, { "8@%r9", "8 r64" }, { "8@%r10", "8 r56" }, { "8@%r11", "8 r48" },
	{ "8@%r12", "8 r24" }, { "8@%r14", "8 r8" },
	/* a register narrower or wider than the size */
	{ "8@%eax", "4 r80" }, { "-4@%al", "1s r80" }, { "-4@%rax", "4s r80" }, { "1@%rdx", "1 r96" },
	/* no size: the register's, or 8 */
	{ "%r13d", "4 r16" }, { "%al", "1 r80" }, { "%rax", "8 r80" }, { "8(%rsp)", "8 m152+8" }, { "$3", "8 c3" },
	/* constants */
	{ "-4@$-5", "4s c-5" }, { "8@$0", "8 c0" }, { "-4@$0x10", "4s c16" }, { "8@$-9223372036854775808",
	  "8 c-9223372036854775808" }, { "8@$18446744073709551615", "8 c-1" }, { "8@$foo", "8 c0 addr:foo" },
	{ "8@$foo+8", "8 c8 addr:foo" }, { "8@$.LC0", "8 c0 addr:.LC0" }, { "8@$0777", "8 c511" },
	/* memory */
	{ "8@112(%rsp)", "8 m152+112" }, { "-4@-228(%rbp)", "4s m32-228" }, { "8@(%rax)", "8 m80+0" },
	{ "8@(%rax,%rbx,8)", "8 m80+40*8+0" }, { "-4@16(%rax,%rbx,4)", "4s m80+40*4+16" },
	{ "8@(%rax,%rbx)", "8 m80+40*1+0" }, { "8@16(,%rcx,8)", "8 m+88*8+16" }, { "8@(,%rcx,2)", "8 m+88*2+0" },
	{ "8@0x601040", "8 m+6295616" }, { "8@0x10(%rdi)", "8 m112+16" }, { "1@-1(%rdi)", "1 m112-1" },
	/* memory at symbols */
	{ "8@foo(%rip)", "8 m128+0 pcrel:foo" }, { "-4@foo+4(%rip)", "4s m128+4 pcrel:foo" },
	{ "4@foo-4(%rip)", "4 m128-4 pcrel:foo" }, { "4@4+foo(%rip)", "4 m128+4 pcrel:foo" },
	{ "4@-4+foo+12(%rip)", "4 m128+8 pcrel:foo" }, { "8@foo", "8 m+0 addr:foo" },
	{ "8@foo+16(,%rax,8)", "8 m+80*8+16 addr:foo" }, { "8@foo(%rax)", "8 m80+0 addr:foo" },
	{ "8@counter.1(%rip)", "8 m128+0 pcrel:counter.1" }, { "8@_ZN3foo3barE(%rip)", "8 m128+0 pcrel:_ZN3foo3barE" },
	/* understood, not readable */
	{ "8@%fs:16", "8 m+16 ?" }, { "8@%gs:(%rax)", "8 m80+0 ?" }, { "-4@%fs:x@tpoff", "4s m+0 addr:x@tpoff ?" },
	{ "4f@%xmm0", "4f r0 ?" }, { "8f@%xmm15", "8f r0 ?" }, { "8@%mm1", "8 r0 ?" }, { "16@%ymm1", "16 r0 ?" },
	{ "8f@%st", "8f r0 ?" }, { "8f@%st(1)", "8f r0 ?" }, { "2@%fs", "2 r0 ?" }, { "8@(%eax)", "8 m80+0 ?" },
	{ "16@(%rax)", "16 m80+0 ?" },
	/* floats in memory and registers are readable as bits */
	{ "8f@-8(%rbp)", "8f m32-8" }, { "4f@%eax", "4f r80" }, { "-8f@(%rax)", "8f m80+0" },
	/* nonsense */
	{ "8@", "8 none ?" }, { "8@%", "8 none ?" }, { "8@%zax", "8 none ?" }, { "3@%rax", "8 none ?" },
	{ "8@%rax)", "8 none ?" }, { "8@(%rax", "8 none ?" }, { "8@(%rax,%rbx,3)", "8 none ?" }, { "@", "8 none ?" },
	{ "8@$", "8 none ?" }, { "8@$99999999999999999999", "8 none ?" }, { "8@4+", "8 none ?" }, { "8@a+b", "8 none ?" },
	{ "8@(%xmm0)", "8 none ?" }, { "8@(%rax,%xmm1,2)", "8 none ?" }, { "8@%st(9", "8 none ?" },
	{ "8@(%rax)x", "8 none ?" }, { "99999999999999999999@%rax", "8 none ?" }, { "-9223372036854775808@%rax", "8s none ?" },
};

static const struct row aarch64_rows[] = {
	{ "8@x0", "8 r0" }, { "-4@w13", "4s r104" }, { "8@sp", "8 r248" }, { "8@x30", "8 r240" }, { "8@lr", "8 r240" },
	{ "8@fp", "8 r232" }, { "-1@w1", "1s r8" }, { "8@xzr", "8 c0" }, { "-4@wzr", "4s c0" }, { "8@w2", "4 r16" },
	{ "x3", "8 r24" }, { "w3", "4 r24" },
	{ "8@[x1]", "8 m8+0" }, { "-4@[sp, 12]", "4s m248+12" }, { "-4@[sp,12]", "4s m248+12" },
	{ "8@[x29, -8]", "8 m232-8" }, { "8@[x29, #-8]", "8 m232-8" }, { "8@[sp,#16]", "8 m248+16" },
	{ "8@[x0, x1]", "8 m0+8*1+0" }, { "8@[x0,x1,lsl 3]", "8 m0+8*8+0" }, { "8@[x0, x1, lsl #2]", "8 m0+8*4+0" },
	{ "8@[x0, xzr]", "8 m0+0" }, { "8@[x0,w1,sxtw 2]", "8 m0+8*4+0 ?" }, { "8@[x0,w1,uxtw]", "8 m0+8*1+0 ?" },
	{ "8@[x0, #:lo12:foo]", "8 m0+0 lo12:foo" }, { "4@[x0,:lo12:foo+8]", "4 m0+8 lo12:foo" },
	{ "-4@-5", "4s c-5" }, { "8@#5", "8 c5" }, { "-4@0x1f", "4s c31" }, { "8@foo", "8 c0 addr:foo" },
	{ "8@foo+8", "8 c8 addr:foo" },
	{ "4f@s0", "4f r0 ?" }, { "8f@d31", "8f r0 ?" }, { "16@q3", "16 r0 ?" }, { "8f@[sp, 8]", "8f m248+8" },
	{ "8@[x0", "8 none ?" }, { "8@[w0]", "8 none ?" }, { "8@[x0, x1, lsl 9]", "8 none ?" }, { "8@[x0]!", "8 none ?" },
	{ "8@", "8 none ?" }, { "8@x31", "8 c0 addr:x31" }, { "8@[x0, y]]", "8 none ?" }, { "8@[]", "8 none ?" },
	{ "8@[x0,x1,foo 3]", "8 none ?" },
};

static void check_rows(const struct arch *arch, const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct arch_operand op;
		struct strbuf b = { 0 };

		assert_int_equal(arch_operands(arch, rows[i].args, &op, 1), 1);
		describe(&b, &op);
		if (strcmp(strbuf_str(&b), rows[i].want))
			fail_msg("%s: %s instead of %s", rows[i].args, strbuf_str(&b), rows[i].want);
		strbuf_fini(&b);
	}
}

static void x86_64(void **state)
{
	(void)state;
	check_rows(&arch_x86_64, x86_64_rows, sizeof(x86_64_rows) / sizeof(x86_64_rows[0]));
}

static void aarch64(void **state)
{
	(void)state;
	check_rows(&arch_aarch64, aarch64_rows, sizeof(aarch64_rows) / sizeof(aarch64_rows[0]));
}

static void lists(void **state)
{
	struct arch_operand ops[3];

	(void)state;
	assert_int_equal(arch_operands(&arch_x86_64, "", ops, 3), 0);
	assert_int_equal(arch_operands(&arch_x86_64, "   ", ops, 3), 0);
	assert_int_equal(arch_operands(&arch_x86_64, " 8@%rax  -4@%edx ", ops, 3), 2);
	assert_int_equal(ops[1].reg->off, 96);
	assert_int_equal(arch_operands(&arch_x86_64, "1@$1 1@$2 1@$3 1@$4 1@$5", ops, 3), 5);
	assert_int_equal(ops[2].value, 3);
	assert_int_equal(arch_operands(&arch_aarch64, "-4@[sp, 12] 8@[x0, x1, lsl 3] 8@x1", ops, 3), 3);
	assert_int_equal(ops[2].reg->off, 8);
	/* One that is not understood leaves the others alone. */
	assert_int_equal(arch_operands(&arch_x86_64, "8@%rax 8@%what 8@%rbx", ops, 3), 3);
	assert_null(ops[0].why);
	assert_non_null(ops[1].why);
	assert_int_equal(ops[1].loc, ARCH_LOC_NONE);
	assert_int_equal(ops[2].reg->off, 40);
	/* A machine without operand syntax. */
	assert_int_equal(arch_operands(NULL, "-4@foo 8@bar", ops, 3), 2);
	assert_non_null(ops[0].why);
	assert_int_equal(ops[0].size, 4);
	assert_true(ops[0].sign);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(x86_64),
		cmocka_unit_test(aarch64),
		cmocka_unit_test(lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * The encoder for A64: each function with edges of its operands, beside the word that the assembler makes of the text.
 * tests/arm64/jit_test.py has an assembler make the words of the same texts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arch/aarch64/enc.h"

static struct code_buf buf;

static uint32_t word_at(size_t off)
{
	uint32_t v;

	assert_false(buf.failed);
	assert_true(off + sizeof(v) <= buf.n);
	memcpy(&v, buf.p + off, sizeof(v));
	return v;
}

#define CHECK(WORD, TEXT, CALL)								\
	do {										\
		buf.n = 0;								\
		CALL;									\
		if (buf.n != 4 || word_at(0) != (WORD))					\
			fail_msg("%s: %zu bytes, %08x", TEXT, buf.n, word_at(0));	\
	} while (0)

static void adds(void **state)
{
	(void)state;
	CHECK(0x91000c41, "add x1, x2, #3", a64_add_imm(&buf, true, A64_ADD, 1, 2, 3, false));
	CHECK(0x113ffc41, "add w1, w2, #4095", a64_add_imm(&buf, false, A64_ADD, 1, 2, 4095, false));
	CHECK(0xd10043ff, "sub sp, sp, #16", a64_add_imm(&buf, true, A64_SUB, A64_SP, A64_SP, 16, false));
	CHECK(0xf140041e, "subs x30, x0, #1, lsl #12", a64_add_imm(&buf, true, A64_SUBS, 30, 0, 1, true));
	CHECK(0x31001cbf, "cmn w5, #7", a64_add_imm(&buf, false, A64_ADDS, A64_ZR, 5, 7, false));
	CHECK(0x8b050083, "add x3, x4, x5", a64_add(&buf, true, A64_ADD, 3, 4, 5));
	CHECK(0x6b1e007f, "cmp w3, w30", a64_add(&buf, false, A64_SUBS, A64_ZR, 3, 30));
	CHECK(0xcb0a03e9, "neg x9, x10", a64_add(&buf, true, A64_SUB, 9, A64_ZR, 10));
	CHECK(0xab100021, "adds x1, x1, x16", a64_add(&buf, true, A64_ADDS, 1, 1, 16));
	CHECK(0x8b3063ff, "add sp, sp, x16", a64_add_sp(&buf, true, A64_ADD, A64_SP, A64_SP, 16));
	CHECK(0xcb2263e1, "sub x1, sp, x2", a64_add_sp(&buf, true, A64_SUB, 1, A64_SP, 2));
}

static void logic(void **state)
{
	(void)state;
	CHECK(0xaa0003e7, "mov x7, x0", a64_logic(&buf, true, A64_ORR, 7, A64_ZR, 0));
	CHECK(0x0a030041, "and w1, w2, w3", a64_logic(&buf, false, A64_AND, 1, 2, 3));
	CHECK(0xca1c03dd, "eor x29, x30, x28", a64_logic(&buf, true, A64_EOR, 29, 30, 28));
	CHECK(0xea0600bf, "tst x5, x6", a64_logic(&buf, true, A64_ANDS, A64_ZR, 5, 6));
	CHECK(0x92401c41, "and x1, x2, #0xff", a64_logic_imm(&buf, true, A64_AND, 1, 2, 0xff));
	CHECK(0x321f7841, "orr w1, w2, #0xfffffffe", a64_logic_imm(&buf, false, A64_ORR, 1, 2, 0xfffffffe));
	CHECK(0xd201f041, "eor x1, x2, #0xaaaaaaaaaaaaaaaa", a64_logic_imm(&buf, true, A64_EOR, 1, 2, 0xaaaaaaaaaaaaaaaa));
	CHECK(0x72001c1f, "tst w0, #0xff", a64_logic_imm(&buf, false, A64_ANDS, A64_ZR, 0, 0xff));
	CHECK(0x927cec63, "and x3, x3, #0xfffffffffffffff0", a64_logic_imm(&buf, true, A64_AND, 3, 3, -16ull));
	CHECK(0x92410463, "and x3, x3, #0x8000000000000001", a64_logic_imm(&buf, true, A64_AND, 3, 3, 0x8000000000000001));
	CHECK(0x12010463, "and w3, w3, #0x80000001", a64_logic_imm(&buf, false, A64_AND, 3, 3, 0x80000001));
}

static void moves(void **state)
{
	(void)state;
	CHECK(0xd2a24681, "movz x1, #0x1234, lsl #16", a64_move(&buf, true, A64_MOVZ, 1, 0x1234, 1));
	CHECK(0x92800022, "movn x2, #1", a64_move(&buf, true, A64_MOVN, 2, 1, 0));
	CHECK(0xf2ffffe3, "movk x3, #0xffff, lsl #48", a64_move(&buf, true, A64_MOVK, 3, 0xffff, 3));
	CHECK(0x528000e4, "movz w4, #7", a64_move(&buf, false, A64_MOVZ, 4, 7, 0));
}

static void computes(void **state)
{
	(void)state;
	CHECK(0x9b037c41, "mul x1, x2, x3", a64_madd(&buf, true, false, 1, 2, 3, A64_ZR));
	CHECK(0x1b039041, "msub w1, w2, w3, w4", a64_madd(&buf, false, true, 1, 2, 3, 4));
	CHECK(0x9ac30841, "udiv x1, x2, x3", a64_two(&buf, true, A64_UDIV, 1, 2, 3));
	CHECK(0x1ac30c41, "sdiv w1, w2, w3", a64_two(&buf, false, A64_SDIV, 1, 2, 3));
	CHECK(0x9ac32041, "lsl x1, x2, x3", a64_two(&buf, true, A64_LSLV, 1, 2, 3));
	CHECK(0x1ac32441, "lsr w1, w2, w3", a64_two(&buf, false, A64_LSRV, 1, 2, 3));
	CHECK(0x9ade2841, "asr x1, x2, x30", a64_two(&buf, true, A64_ASRV, 1, 2, 30));
	CHECK(0x5ac00441, "rev16 w1, w2", a64_one(&buf, false, A64_REV16, 1, 2));
	CHECK(0x5ac00841, "rev w1, w2", a64_one(&buf, false, A64_REV32, 1, 2));
	CHECK(0xdac00c41, "rev x1, x2", a64_one(&buf, true, A64_REV64, 1, 2));
	CHECK(0xd37be841, "lsl x1, x2, #5", a64_bits(&buf, true, A64_UBFM, 1, 2, 59, 58));
	CHECK(0x531f7c41, "lsr w1, w2, #31", a64_bits(&buf, false, A64_UBFM, 1, 2, 31, 31));
	CHECK(0x937ffc41, "asr x1, x2, #63", a64_bits(&buf, true, A64_SBFM, 1, 2, 63, 63));
	CHECK(0x93401c41, "sxtb x1, w2", a64_bits(&buf, true, A64_SBFM, 1, 2, 0, 7));
	CHECK(0x13003c41, "sxth w1, w2", a64_bits(&buf, false, A64_SBFM, 1, 2, 0, 15));
	CHECK(0x93407c41, "sxtw x1, w2", a64_bits(&buf, true, A64_SBFM, 1, 2, 0, 31));
	CHECK(0x53003c41, "uxth w1, w2", a64_bits(&buf, false, A64_UBFM, 1, 2, 0, 15));
}

static void memory(void **state)
{
	(void)state;
	CHECK(0x39401441, "ldrb w1, [x2, #5]", a64_load(&buf, 1, false, 1, 2, 5));
	CHECK(0x39bfffe1, "ldrsb x1, [sp, #4095]", a64_load(&buf, 1, true, 1, A64_SP, 4095));
	CHECK(0x385ff041, "ldurb w1, [x2, #-1]", a64_load(&buf, 1, false, 1, 2, -1));
	CHECK(0x38900041, "ldursb x1, [x2, #-256]", a64_load(&buf, 1, true, 1, 2, -256));
	CHECK(0x3900005e, "strb w30, [x2]", a64_store(&buf, 1, 30, 2, 0));
	CHECK(0x381fd041, "sturb w1, [x2, #-3]", a64_store(&buf, 1, 1, 2, -3));
	CHECK(0x38706841, "ldrb w1, [x2, x16]", a64_load_at(&buf, 1, false, 1, 2, 16));
	CHECK(0x38b06be1, "ldrsb x1, [sp, x16]", a64_load_at(&buf, 1, true, 1, A64_SP, 16));
	CHECK(0x38306841, "strb w1, [x2, x16]", a64_store_at(&buf, 1, 1, 2, 16));
	CHECK(0x79401441, "ldrh w1, [x2, #10]", a64_load(&buf, 2, false, 1, 2, 10));
	CHECK(0x79bfffe1, "ldrsh x1, [sp, #8190]", a64_load(&buf, 2, true, 1, A64_SP, 8190));
	CHECK(0x785ff041, "ldurh w1, [x2, #-1]", a64_load(&buf, 2, false, 1, 2, -1));
	CHECK(0x78900041, "ldursh x1, [x2, #-256]", a64_load(&buf, 2, true, 1, 2, -256));
	CHECK(0x7900005e, "strh w30, [x2]", a64_store(&buf, 2, 30, 2, 0));
	CHECK(0x781fd041, "sturh w1, [x2, #-3]", a64_store(&buf, 2, 1, 2, -3));
	CHECK(0x78706841, "ldrh w1, [x2, x16]", a64_load_at(&buf, 2, false, 1, 2, 16));
	CHECK(0x78b06be1, "ldrsh x1, [sp, x16]", a64_load_at(&buf, 2, true, 1, A64_SP, 16));
	CHECK(0x78306841, "strh w1, [x2, x16]", a64_store_at(&buf, 2, 1, 2, 16));
	CHECK(0xb9401441, "ldr w1, [x2, #20]", a64_load(&buf, 4, false, 1, 2, 20));
	CHECK(0xb9bfffe1, "ldrsw x1, [sp, #16380]", a64_load(&buf, 4, true, 1, A64_SP, 16380));
	CHECK(0xb85ff041, "ldur w1, [x2, #-1]", a64_load(&buf, 4, false, 1, 2, -1));
	CHECK(0xb8900041, "ldursw x1, [x2, #-256]", a64_load(&buf, 4, true, 1, 2, -256));
	CHECK(0xb900005e, "str w30, [x2]", a64_store(&buf, 4, 30, 2, 0));
	CHECK(0xb81fd041, "stur w1, [x2, #-3]", a64_store(&buf, 4, 1, 2, -3));
	CHECK(0xb8706841, "ldr w1, [x2, x16]", a64_load_at(&buf, 4, false, 1, 2, 16));
	CHECK(0xb8b06be1, "ldrsw x1, [sp, x16]", a64_load_at(&buf, 4, true, 1, A64_SP, 16));
	CHECK(0xb8306841, "str w1, [x2, x16]", a64_store_at(&buf, 4, 1, 2, 16));
	CHECK(0xf9401441, "ldr x1, [x2, #40]", a64_load(&buf, 8, false, 1, 2, 40));
	CHECK(0xf97fffe1, "ldr x1, [sp, #32760]", a64_load(&buf, 8, true, 1, A64_SP, 32760));
	CHECK(0xf85ff041, "ldur x1, [x2, #-1]", a64_load(&buf, 8, false, 1, 2, -1));
	CHECK(0xf8500041, "ldur x1, [x2, #-256]", a64_load(&buf, 8, true, 1, 2, -256));
	CHECK(0xf900005e, "str x30, [x2]", a64_store(&buf, 8, 30, 2, 0));
	CHECK(0xf81fd041, "stur x1, [x2, #-3]", a64_store(&buf, 8, 1, 2, -3));
	CHECK(0xf8706841, "ldr x1, [x2, x16]", a64_load_at(&buf, 8, false, 1, 2, 16));
	CHECK(0xf8706be1, "ldr x1, [sp, x16]", a64_load_at(&buf, 8, true, 1, A64_SP, 16));
	CHECK(0xf8306841, "str x1, [x2, x16]", a64_store_at(&buf, 8, 1, 2, 16));
	CHECK(0xf84ff041, "ldur x1, [x2, #255]", a64_load(&buf, 8, false, 1, 2, 255));
	CHECK(0xa90253f3, "stp x19, x20, [sp, #32]", a64_store_pair(&buf, 19, 20, A64_SP, 32));
	CHECK(0xa9605bf5, "ldp x21, x22, [sp, #-512]", a64_load_pair(&buf, 21, 22, A64_SP, -512));
	CHECK(0xa9bc7bfd, "stp x29, x30, [sp, #-64]!", a64_push_pair(&buf, 29, 30, A64_SP, -64));
	CHECK(0xa8dffbfd, "ldp x29, x30, [sp], #504", a64_pop_pair(&buf, 29, 30, A64_SP, 504));
	CHECK(0xc85f7c41, "ldxr x1, [x2]", a64_load_exclusive(&buf, true, false, 1, 2));
	CHECK(0x885ffc41, "ldaxr w1, [x2]", a64_load_exclusive(&buf, false, true, 1, 2));
	CHECK(0x88037c41, "stxr w3, w1, [x2]", a64_store_exclusive(&buf, false, false, 3, 1, 2));
	CHECK(0xc811fd21, "stlxr w17, x1, [x9]", a64_store_exclusive(&buf, true, true, 17, 1, 9));
	CHECK(0xd5033bbf, "dmb ish", a64_dmb_ish(&buf));
}

static void calls(void **state)
{
	(void)state;
	CHECK(0xd63f0200, "blr x16", a64_blr(&buf, 16));
	CHECK(0xd65f03c0, "ret", a64_ret(&buf));
	CHECK(0xd503245f, "bti c", a64_bti_c(&buf));
}

/* Every constant that can be an immediate of a logical instruction (5334 of 64 bits), and what cannot. */
static void immediates(void **state)
{
	static const uint64_t refused[] = { 0, UINT64_MAX, 5, 0x1234, 0xfffffffffffffff5, 0x8000000000000002 };
	unsigned int n = 0;

	(void)state;
	for (unsigned int size = 2; size <= 64; size *= 2)
		for (unsigned int ones = 1; ones < size; ones++)
			for (unsigned int turn = 0; turn < size; turn++) {
				uint64_t mask = size == 64 ? UINT64_MAX : (1ull << size) - 1, v = (1ull << ones) - 1, all = 0;
				uint32_t insn;

				v = turn ? (v >> turn | v << (size - turn)) & mask : v;
				for (unsigned int at = 0; at < 64; at += size)
					all |= v << at;
				buf.n = 0;
				assert_true(a64_logic_imm(&buf, true, A64_ORR, 0, A64_ZR, all));
				insn = word_at(0);
				/* N, imms and immr say size, ones and rotation (DecodeBitMasks). */
				assert_int_equal(insn >> 22 & 1, size == 64);
				assert_int_equal(insn >> 16 & 63, turn);
				assert_int_equal(insn >> 10 & 63, (size == 64 ? 0 : 64 - 2 * size) | (ones - 1));
				n++;
			}
	assert_int_equal(n, 5334);
	for (size_t k = 0; k < sizeof(refused) / sizeof(refused[0]); k++) {
		buf.n = 0;
		assert_false(a64_logic_imm(&buf, true, A64_AND, 0, 0, refused[k]));
		assert_int_equal(buf.n, 0);
	}
}

/* What a sequence of moves leaves in its register. */
static uint64_t moved(void)
{
	uint64_t v = 0;

	for (size_t at = 0; at < buf.n; at += 4) {
		uint32_t insn = word_at(at), shift = (insn >> 21 & 3) * 16;
		uint64_t half = (uint64_t)(insn >> 5 & 0xffff) << shift;

		switch (insn >> 23) {
		case 0x125:	/* movn */
			v = ~half;
			break;
		case 0x1a5:	/* movz */
			v = half;
			break;
		case 0x1e5:	/* movk */
			v = (v & ~(0xffffull << shift)) | half;
			break;
		default:
			fail();
		}
	}
	return v;
}

static void constants(void **state)
{
	static const struct { uint64_t v; unsigned int insns; } rows[] = {
		{ 0, 1 }, { 1, 1 }, { UINT64_MAX, 1 }, { (uint64_t)-2, 1 }, { 0xffff, 1 }, { 0x10000, 1 },
		{ 0x12345678, 2 }, { 0xffffffff12345678, 2 }, { 0x1234567800000000, 2 }, { 0x123400005678ffff, 3 },
		{ 0x123456789abcdef0, 4 }, { 0xffffffffffff0000, 1 }, { 0x0000ffff12345678, 3 },
	};

	(void)state;
	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		buf.n = 0;
		a64_mov_imm(&buf, 3, rows[k].v);
		assert_int_equal(buf.n, 4 * rows[k].insns);
		assert_true(moved() == rows[k].v);
	}
	buf.n = 0;
	a64_mov_imm(&buf, 3, 0x5555555555555555);	/* one instruction: orr x3, xzr, #... */
	assert_int_equal(word_at(0), 0xb200f3e3);
	assert_int_equal(buf.n, 4);
}

static void lands(void **state)
{
	size_t jump;

	(void)state;
	buf.n = 0;
	jump = a64_b(&buf);
	a64_land(&buf, jump, 8);
	assert_int_equal(word_at(0), 0x14000002);
	jump = a64_bl(&buf);
	a64_land(&buf, jump, 0);
	assert_int_equal(word_at(4), 0x97ffffff);
	jump = a64_b_cond(&buf, A64_LO);
	a64_land(&buf, jump, 8);
	assert_int_equal(word_at(8), 0x54000003);
	jump = a64_cbnz(&buf, true, 17);
	a64_land(&buf, jump, 0);
	assert_int_equal(word_at(12), 0xb5ffffb1);
	a64_land(&buf, jump, 12 + (1 << 20) - 4);
	assert_int_equal(word_at(12), 0xb57ffff1);
	a64_land(&buf, 0, (1 << 27) - 4);
	assert_int_equal(word_at(0), 0x15ffffff);
	a64_land(&buf, jump, 12 + (1 << 20));
	assert_true(buf.failed);
	buf.failed = false;
	a64_land(&buf, 0, 1 << 27);
	assert_true(buf.failed);
	buf.failed = false;
}

/* Offsets that have no instruction. */
static void far(void **state)
{
	(void)state;
	buf.n = 0;
	assert_false(a64_load(&buf, 8, false, 0, 1, 32768));
	assert_false(a64_load(&buf, 8, false, 0, 1, -257));
	assert_false(a64_load(&buf, 4, false, 0, 1, 257));
	assert_false(a64_store(&buf, 1, 0, 1, 4096));
	assert_int_equal(buf.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(adds), cmocka_unit_test(logic), cmocka_unit_test(moves), cmocka_unit_test(computes),
		cmocka_unit_test(memory), cmocka_unit_test(calls), cmocka_unit_test(immediates), cmocka_unit_test(constants),
		cmocka_unit_test(lands), cmocka_unit_test(far),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	free(buf.p);
	return failed;
}

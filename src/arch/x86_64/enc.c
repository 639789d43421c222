#include "arch/x86_64/enc.h"

#include <string.h>

static void opcode(struct code_buf *b, bool wide, bool byte_reg, int op, int reg, int rm)
{
	int rex = (wide ? 8 : 0) | (reg & 8 ? 4 : 0) | (rm & 8 ? 1 : 0);

	if (rex || byte_reg)	/* with a REX prefix, byte registers 4 to 7 are spl to dil, not ah to bh */
		code_u8(b, 0x40 | rex);
	if (op > 0xff)
		code_u8(b, op >> 8);
	code_u8(b, op);
}

/* reg, [base + disp32] */
static void modrm(struct code_buf *b, int reg, int base, int32_t disp)
{
	code_u8(b, 0x80 | (reg & 7) << 3 | (base & 7));
	if ((base & 7) == RSP)
		code_u8(b, 0x24);
	code_u32(b, (uint32_t)disp);
}

void x86_rr(struct code_buf *b, bool wide, int op, int reg, int rm)
{
	opcode(b, wide, true, op, reg, rm);
	code_u8(b, 0xc0 | (reg & 7) << 3 | (rm & 7));
}

void x86_rm(struct code_buf *b, bool wide, int op, int reg, int base, int32_t disp)
{
	opcode(b, wide, false, op, reg, base);
	modrm(b, reg, base, disp);
}

void x86_mov(struct code_buf *b, bool wide, int dst, int src)
{
	x86_rr(b, wide, 0x89, src, dst);
}

void x86_mov_imm(struct code_buf *b, int dst, uint64_t v)
{
	if (v <= UINT32_MAX) {
		opcode(b, false, false, 0xb8 | (dst & 7), 0, dst);	/* mov r32, imm32 */
		code_u32(b, (uint32_t)v);
	} else if ((int64_t)v == (int32_t)v) {
		x86_rr(b, true, 0xc7, 0, dst);				/* mov r64, simm32 */
		code_u32(b, (uint32_t)v);
	} else {
		opcode(b, true, false, 0xb8 | (dst & 7), 0, dst);	/* mov r64, imm64 */
		code_bytes(b, &v, sizeof(v));
	}
}

void x86_alu(struct code_buf *b, bool wide, enum x86_alu op, int dst, int src)
{
	x86_rr(b, wide, op * 8 + 1, src, dst);
}

void x86_alu_imm(struct code_buf *b, bool wide, enum x86_alu op, int dst, int32_t v)
{
	x86_rr(b, wide, 0x81, op, dst);
	code_u32(b, (uint32_t)v);
}

void x86_test(struct code_buf *b, bool wide, int a, int c)
{
	x86_rr(b, wide, 0x85, c, a);
}

void x86_shift_cl(struct code_buf *b, bool wide, enum x86_shift op, int dst)
{
	x86_rr(b, wide, 0xd3, op, dst);
}

void x86_shift_imm(struct code_buf *b, bool wide, enum x86_shift op, int dst, int v)
{
	x86_rr(b, wide, 0xc1, op, dst);
	code_u8(b, v);
}

void x86_unary(struct code_buf *b, bool wide, enum x86_unary op, int rm)
{
	x86_rr(b, wide, 0xf7, op, rm);
}

void x86_bswap(struct code_buf *b, bool wide, int reg)
{
	opcode(b, wide, false, 0x0fc8 | (reg & 7), 0, reg);
}

void x86_load(struct code_buf *b, int size, bool sign, int dst, int base, int32_t disp)
{
	static const int zero[9] = { [1] = 0x0fb6, [2] = 0x0fb7, [4] = 0x8b, [8] = 0x8b };
	static const int signs[9] = { [1] = 0x0fbe, [2] = 0x0fbf, [4] = 0x63, [8] = 0x8b };

	x86_rm(b, sign || size == 8, sign ? signs[size] : zero[size], dst, base, disp);
}

void x86_extend(struct code_buf *b, bool wide, int size, int dst, int src)
{
	x86_rr(b, wide, size == 1 ? 0x0fbe : size == 2 ? 0x0fbf : 0x63, dst, src);
}

void x86_store(struct code_buf *b, int size, int base, int32_t disp, int src)
{
	if (size == 2)
		code_u8(b, 0x66);
	opcode(b, size == 8, size == 1, size == 1 ? 0x88 : 0x89, src, base);
	modrm(b, src, base, disp);
}

void x86_push(struct code_buf *b, int reg)
{
	opcode(b, false, false, 0x50 | (reg & 7), 0, reg);
}

void x86_pop(struct code_buf *b, int reg)
{
	opcode(b, false, false, 0x58 | (reg & 7), 0, reg);
}

size_t x86_jmp(struct code_buf *b)
{
	code_u8(b, 0xe9);
	code_u32(b, 0);
	return b->n - 4;
}

size_t x86_jcc(struct code_buf *b, enum x86_cc cc)
{
	code_u8(b, 0x0f);
	code_u8(b, 0x80 | (int)cc);
	code_u32(b, 0);
	return b->n - 4;
}

size_t x86_call(struct code_buf *b)
{
	code_u8(b, 0xe8);
	code_u32(b, 0);
	return b->n - 4;
}

void x86_call_reg(struct code_buf *b, int reg)
{
	opcode(b, false, false, 0xff, 0, reg);
	code_u8(b, 0xd0 | (reg & 7));
}

void x86_land(struct code_buf *b, size_t jump, size_t to)
{
	uint32_t v = (uint32_t)(to - (jump + 4));

	if (!b->failed)
		memcpy(b->p + jump, &v, sizeof(v));
}

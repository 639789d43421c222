#include "arch/aarch64/enc.h"

#include <string.h>

static void word(struct code_buf *b, uint32_t insn)
{
	code_u32(b, insn);
}

static uint32_t sf(bool wide)
{
	return wide ? 1u << 31 : 0;
}

static uint32_t rd_rn(int rd, int rn)
{
	return (uint32_t)rn << 5 | (uint32_t)rd;
}

/* --- registers --------------------------------------------------------------------------------------- */

void a64_add_imm(struct code_buf *b, bool wide, enum a64_add op, int rd, int rn, uint32_t imm12, bool high)
{
	/* sf op S 100010 sh imm12 Rn Rd */
	word(b, sf(wide) | (uint32_t)op << 29 | 0x11000000 | (high ? 1u << 22 : 0) | imm12 << 10 | rd_rn(rd, rn));
}

void a64_add(struct code_buf *b, bool wide, enum a64_add op, int rd, int rn, int rm)
{
	/* sf op S 01011 shift=00 0 Rm imm6=0 Rn Rd */
	word(b, sf(wide) | (uint32_t)op << 29 | 0x0b000000 | (uint32_t)rm << 16 | rd_rn(rd, rn));
}

void a64_add_sp(struct code_buf *b, bool wide, enum a64_add op, int rd, int rn, int rm)
{
	/* sf op S 01011 00 1 Rm option=011 imm3=0 Rn Rd */
	word(b, sf(wide) | (uint32_t)op << 29 | 0x0b206000 | (uint32_t)rm << 16 | rd_rn(rd, rn));
}

void a64_logic(struct code_buf *b, bool wide, enum a64_logic op, int rd, int rn, int rm)
{
	/* sf opc 01010 shift=00 N=0 Rm imm6=0 Rn Rd */
	word(b, sf(wide) | (uint32_t)op << 29 | 0x0a000000 | (uint32_t)rm << 16 | rd_rn(rd, rn));
}

static uint64_t low_bits(unsigned int n)
{
	return n == 64 ? UINT64_MAX : (1ull << n) - 1;
}

/*
 * A number is an immediate of a logical instruction if it is an element of 2, 4, ... 64 bits again and again, and the
 * element a row of ones, rotated (J1.3.3, DecodeBitMasks).  *ret: N, immr and imms.
 */
static bool bit_mask(uint64_t v, uint32_t *ret)
{
	unsigned int size = 64, ones, rotated;

	if (!v || v == UINT64_MAX)
		return false;
	while (size > 2 && (v & low_bits(size / 2)) == (v >> size / 2 & low_bits(size / 2)))
		size /= 2;
	v &= low_bits(size);
	ones = (unsigned int)__builtin_popcountll(v);
	for (rotated = 0; rotated < size && v != low_bits(ones); rotated++)
		v = (v << 1 | v >> (size - 1)) & low_bits(size);	/* undo one rotation to the right */
	if (rotated == size)
		return false;
	*ret = (size == 64 ? 1u << 12 : 0) | rotated << 6 | ((~(size * 2 - 1) & 0x3f) | (ones - 1));
	return true;
}

bool a64_logic_imm(struct code_buf *b, bool wide, enum a64_logic op, int rd, int rn, uint64_t v)
{
	uint32_t mask;

	if (!bit_mask(wide ? v : (v & UINT32_MAX) | v << 32, &mask))
		return false;
	/* sf opc 100100 N immr imms Rn Rd */
	word(b, sf(wide) | (uint32_t)op << 29 | 0x12000000 | mask << 10 | rd_rn(rd, rn));
	return true;
}

void a64_move(struct code_buf *b, bool wide, enum a64_move op, int rd, uint32_t imm16, int at)
{
	/* sf opc 100101 hw imm16 Rd */
	word(b, sf(wide) | (uint32_t)op << 29 | 0x12800000 | (uint32_t)at << 21 | imm16 << 5 | (uint32_t)rd);
}

void a64_mov_imm(struct code_buf *b, int rd, uint64_t v)
{
	unsigned int zeros = 0, ones = 0;
	bool begun = false;
	uint64_t most;

	for (int k = 0; k < 4; k++) {
		zeros += (v >> 16 * k & 0xffff) == 0;
		ones += (v >> 16 * k & 0xffff) == 0xffff;
	}
	most = ones > zeros ? 0xffff : 0;	/* the halfwords that the first instruction sets besides its own */
	if (zeros == 4 || ones == 4) {
		a64_move(b, true, most ? A64_MOVN : A64_MOVZ, rd, 0, 0);
		return;
	}
	if ((most ? ones : zeros) < 3 && a64_logic_imm(b, true, A64_ORR, rd, A64_ZR, v))
		return;
	for (int k = 0; k < 4; k++) {
		uint32_t half = v >> 16 * k & 0xffff;

		if (half == most)
			continue;
		if (begun)
			a64_move(b, true, A64_MOVK, rd, half, k);
		else
			a64_move(b, true, most ? A64_MOVN : A64_MOVZ, rd, most ? ~half & 0xffff : half, k);
		begun = true;
	}
}

void a64_madd(struct code_buf *b, bool wide, bool sub, int rd, int rn, int rm, int ra)
{
	/* sf 00 11011 000 Rm o0 Ra Rn Rd */
	word(b, sf(wide) | 0x1b000000 | (uint32_t)rm << 16 | (sub ? 1u << 15 : 0) | (uint32_t)ra << 10 | rd_rn(rd, rn));
}

void a64_two(struct code_buf *b, bool wide, enum a64_two op, int rd, int rn, int rm)
{
	/* sf 0 0 11010110 Rm opcode Rn Rd */
	word(b, sf(wide) | 0x1ac00000 | (uint32_t)rm << 16 | (uint32_t)op << 10 | rd_rn(rd, rn));
}

void a64_one(struct code_buf *b, bool wide, enum a64_one op, int rd, int rn)
{
	/* sf 1 0 11010110 00000 opcode Rn Rd */
	word(b, sf(wide) | 0x5ac00000 | (uint32_t)op << 10 | rd_rn(rd, rn));
}

void a64_bits(struct code_buf *b, bool wide, enum a64_bits op, int rd, int rn, int immr, int imms)
{
	/* sf opc 100110 N immr imms Rn Rd; N is sf */
	word(b, sf(wide) | (uint32_t)op << 29 | 0x13000000 | (wide ? 1u << 22 : 0) | (uint32_t)immr << 16 |
	     (uint32_t)imms << 10 | rd_rn(rd, rn));
}

/* --- memory ------------------------------------------------------------------------------------------ */

static uint32_t log2_of(int size)
{
	return (uint32_t)__builtin_ctz((unsigned int)size);
}

/* size 111 0 ... opc ...: opc 00 stores, 01 loads with zeros, 10 loads with the sign to 64 bits. */
static uint32_t load_store(int size, uint32_t opc)
{
	return log2_of(size) << 30 | 0x38000000 | opc << 22;
}

static bool at_offset(struct code_buf *b, int size, uint32_t opc, int rt, int rn, int64_t off)
{
	if (off >= 0 && off % size == 0 && off / size < 4096)
		/* size 111 0 01 opc imm12 Rn Rt */
		word(b, load_store(size, opc) | 1u << 24 | (uint32_t)(off / size) << 10 | rd_rn(rt, rn));
	else if (off >= -256 && off < 256)
		/* size 111 0 00 opc 0 imm9 00 Rn Rt */
		word(b, load_store(size, opc) | ((uint32_t)off & 0x1ff) << 12 | rd_rn(rt, rn));
	else
		return false;
	return true;
}

/* size 111 0 00 opc 1 Rm option=011 S=0 10 Rn Rt */
static void at_register(struct code_buf *b, int size, uint32_t opc, int rt, int rn, int rm)
{
	word(b, load_store(size, opc) | 1u << 21 | (uint32_t)rm << 16 | 0x6800 | rd_rn(rt, rn));
}

static uint32_t load_opc(int size, bool sign)
{
	return sign && size < 8 ? 2 : 1;
}

bool a64_load(struct code_buf *b, int size, bool sign, int rt, int rn, int64_t off)
{
	return at_offset(b, size, load_opc(size, sign), rt, rn, off);
}

bool a64_store(struct code_buf *b, int size, int rt, int rn, int64_t off)
{
	return at_offset(b, size, 0, rt, rn, off);
}

void a64_load_at(struct code_buf *b, int size, bool sign, int rt, int rn, int rm)
{
	at_register(b, size, load_opc(size, sign), rt, rn, rm);
}

void a64_store_at(struct code_buf *b, int size, int rt, int rn, int rm)
{
	at_register(b, size, 0, rt, rn, rm);
}

/* opc=10 101 0 mode L imm7 Rt2 Rn Rt; mode 001: post-index, 010: signed offset, 011: pre-index */
static void pair(struct code_buf *b, uint32_t mode, bool load, int rt, int rt2, int rn, int off)
{
	word(b, 0xa8000000 | mode << 23 | (load ? 1u << 22 : 0) | ((uint32_t)(off / 8) & 0x7f) << 15 | (uint32_t)rt2 << 10 |
	     rd_rn(rt, rn));
}

void a64_store_pair(struct code_buf *b, int rt, int rt2, int rn, int off)
{
	pair(b, 2, false, rt, rt2, rn, off);
}

void a64_load_pair(struct code_buf *b, int rt, int rt2, int rn, int off)
{
	pair(b, 2, true, rt, rt2, rn, off);
}

void a64_push_pair(struct code_buf *b, int rt, int rt2, int rn, int off)
{
	pair(b, 3, false, rt, rt2, rn, off);
}

void a64_pop_pair(struct code_buf *b, int rt, int rt2, int rn, int off)
{
	pair(b, 1, true, rt, rt2, rn, off);
}

void a64_load_exclusive(struct code_buf *b, bool wide, bool order, int rt, int rn)
{
	/* 1 sz 001000 0 1 0 11111 o0 11111 Rn Rt */
	word(b, 0x885f7c00 | (wide ? 1u << 30 : 0) | (order ? 1u << 15 : 0) | rd_rn(rt, rn));
}

void a64_store_exclusive(struct code_buf *b, bool wide, bool order, int rs, int rt, int rn)
{
	/* 1 sz 001000 0 0 0 Rs o0 11111 Rn Rt */
	word(b, 0x88007c00 | (wide ? 1u << 30 : 0) | (uint32_t)rs << 16 | (order ? 1u << 15 : 0) | rd_rn(rt, rn));
}

void a64_dmb_ish(struct code_buf *b)
{
	word(b, 0xd5033bbf);
}

/* --- jumps and calls --------------------------------------------------------------------------------- */

static size_t jump(struct code_buf *b, uint32_t insn)
{
	word(b, insn);
	return b->n - sizeof(insn);
}

size_t a64_b(struct code_buf *b)
{
	return jump(b, 0x14000000);			/* 0 00101 imm26 */
}

size_t a64_bl(struct code_buf *b)
{
	return jump(b, 0x94000000);			/* 1 00101 imm26 */
}

size_t a64_b_cond(struct code_buf *b, enum a64_cond cc)
{
	return jump(b, 0x54000000 | (uint32_t)cc);	/* 0101010 0 imm19 0 cond */
}

size_t a64_cbnz(struct code_buf *b, bool wide, int rt)
{
	return jump(b, sf(wide) | 0x35000000 | (uint32_t)rt);	/* sf 011010 1 imm19 Rt */
}

void a64_blr(struct code_buf *b, int rn)
{
	word(b, 0xd63f0000 | (uint32_t)rn << 5);
}

void a64_ret(struct code_buf *b)
{
	word(b, 0xd65f0000 | A64_LR << 5);
}

void a64_bti_c(struct code_buf *b)
{
	word(b, 0xd503245f);				/* a hint: no operation where there is no BTI */
}

void a64_land(struct code_buf *b, size_t from, size_t to)
{
	int64_t words = ((int64_t)to - (int64_t)from) / 4;
	unsigned int bits, at;
	uint32_t insn;

	if (b->failed)
		return;
	memcpy(&insn, b->p + from, sizeof(insn));
	bits = (insn & 0x7c000000) == 0x14000000 ? 26 : 19;
	at = bits == 26 ? 0 : 5;
	if (words < -(1 << (bits - 1)) || words >= 1 << (bits - 1)) {
		b->failed = true;
		return;
	}
	insn &= ~(((1u << bits) - 1) << at);
	insn |= ((uint32_t)words & ((1u << bits) - 1)) << at;
	memcpy(b->p + from, &insn, sizeof(insn));
}

/*
 * The instruction encoder for A64.  Registers are their numbers; 31 is the stack pointer or zero, as each instruction
 * says.  Operations are 64 bits wide with @wide, else 32 (which zeroes the upper half).  Encodings: Arm Architecture
 * Reference Manual for A-profile (DDI 0487), C6.2, under the names in quotes.
 */
#ifndef DTAP_ARCH_AARCH64_ENC_H
#define DTAP_ARCH_AARCH64_ENC_H

#include "arch/codebuf.h"

enum { A64_FP = 29, A64_LR = 30, A64_SP = 31, A64_ZR = 31 };

/* op and S of "ADD", "ADDS", "SUB" and "SUBS". */
enum a64_add { A64_ADD, A64_ADDS, A64_SUB, A64_SUBS };

/* opc of "AND", "ORR", "EOR" and "ANDS". */
enum a64_logic { A64_AND, A64_ORR, A64_EOR, A64_ANDS };

/* opc of "MOVN", "MOVZ" and "MOVK". */
enum a64_move { A64_MOVN = 0, A64_MOVZ = 2, A64_MOVK = 3 };

/* opcode of data processing with two sources. */
enum a64_two { A64_UDIV = 2, A64_SDIV = 3, A64_LSLV = 8, A64_LSRV = 9, A64_ASRV = 10 };

/* opcode of data processing with one source; REV of a 64-bit register is A64_REV64. */
enum a64_one { A64_REV16 = 1, A64_REV32 = 2, A64_REV64 = 3 };

/* opc of bitfield instructions. */
enum a64_bits { A64_SBFM = 0, A64_UBFM = 2 };

/* Conditions (C1.2.4); the lowest bit inverts one. */
enum a64_cond {
	A64_EQ, A64_NE, A64_HS, A64_LO, A64_HI = 8, A64_LS, A64_GE, A64_LT, A64_GT, A64_LE,
};

/* --- registers --------------------------------------------------------------------------------------- */

/* "ADD (immediate)" and its kin: 12 bits, @high: times 4096.  31 is the stack pointer, but as @rd of those that set flags. */
void a64_add_imm(struct code_buf *b, bool wide, enum a64_add op, int rd, int rn, uint32_t imm12, bool high);
/* "ADD (shifted register)": 31 is zero.  "ADD (extended register)", UXTX: 31 is the stack pointer in @rd and @rn. */
void a64_add(struct code_buf *b, bool wide, enum a64_add op, int rd, int rn, int rm);
void a64_add_sp(struct code_buf *b, bool wide, enum a64_add op, int rd, int rn, int rm);
/* "AND (shifted register)". */
void a64_logic(struct code_buf *b, bool wide, enum a64_logic op, int rd, int rn, int rm);
/* "AND (immediate)".  False: @v cannot be encoded, and nothing was written. */
bool a64_logic_imm(struct code_buf *b, bool wide, enum a64_logic op, int rd, int rn, uint64_t v);
/* "MOVZ": 16 bits at bit 16 * @at. */
void a64_move(struct code_buf *b, bool wide, enum a64_move op, int rd, uint32_t imm16, int at);
void a64_mov_imm(struct code_buf *b, int rd, uint64_t v);			/* the shortest sequence; all 64 bits */
/* "MADD", "MSUB": ra plus or minus rn * rm. */
void a64_madd(struct code_buf *b, bool wide, bool sub, int rd, int rn, int rm, int ra);
void a64_two(struct code_buf *b, bool wide, enum a64_two op, int rd, int rn, int rm);
void a64_one(struct code_buf *b, bool wide, enum a64_one op, int rd, int rn);
/* "SBFM", "UBFM". */
void a64_bits(struct code_buf *b, bool wide, enum a64_bits op, int rd, int rn, int immr, int imms);

/* --- memory ------------------------------------------------------------------------------------------ */

/*
 * @size bytes at rn + off, rn being the stack pointer if 31: zero or sign extended to 64 bits.  False: no instruction has
 * this offset, and nothing was written.  "LDR (immediate)", unsigned offset; "LDUR".
 */
bool a64_load(struct code_buf *b, int size, bool sign, int rt, int rn, int64_t off);
bool a64_store(struct code_buf *b, int size, int rt, int rn, int64_t off);
/* At rn + rm: "LDR (register)", LSL #0. */
void a64_load_at(struct code_buf *b, int size, bool sign, int rt, int rn, int rm);
void a64_store_at(struct code_buf *b, int size, int rt, int rn, int rm);
/* Two registers of 64 bits, @off a multiple of 8 from -512 to 504: "STP", "LDP", signed offset. */
void a64_store_pair(struct code_buf *b, int rt, int rt2, int rn, int off);
void a64_load_pair(struct code_buf *b, int rt, int rt2, int rn, int off);
/* "STP", pre-index; "LDP", post-index: rn is changed by @off. */
void a64_push_pair(struct code_buf *b, int rt, int rt2, int rn, int off);
void a64_pop_pair(struct code_buf *b, int rt, int rt2, int rn, int off);
/* "LDXR", "LDAXR" with @order; "STXR", "STLXR": rs is 0 if the memory was written.  32 or 64 bits. */
void a64_load_exclusive(struct code_buf *b, bool wide, bool order, int rt, int rn);
void a64_store_exclusive(struct code_buf *b, bool wide, bool order, int rs, int rt, int rn);
void a64_dmb_ish(struct code_buf *b);						/* "DMB" */

/* --- jumps and calls --------------------------------------------------------------------------------- */

/* Jumps whose targets a64_land sets; return its argument @jump.  "B" and "BL" reach 128 MiB, "B.cond" and "CBNZ" 1 MiB. */
size_t a64_b(struct code_buf *b);
size_t a64_bl(struct code_buf *b);
size_t a64_b_cond(struct code_buf *b, enum a64_cond cc);
size_t a64_cbnz(struct code_buf *b, bool wide, int rt);
void a64_blr(struct code_buf *b, int rn);
void a64_ret(struct code_buf *b);						/* to the link register */
void a64_bti_c(struct code_buf *b);						/* "BTI": a call may lead here */

/* Set the target of @jump to offset @to.  One that is out of reach fails the buffer. */
void a64_land(struct code_buf *b, size_t jump, size_t to);

#endif

/*
 * The instruction encoder for x86-64.  Operations are 64 bits wide with @wide, else
 * 32 (which zeroes the upper half).  Memory operands are a base register and a displacement.  Encodings: Intel
 * SDM, volume 2.
 */
#ifndef DTAP_ARCH_X86_64_ENC_H
#define DTAP_ARCH_X86_64_ENC_H

#include "arch/codebuf.h"

enum x86_reg { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, X8, X9, X10, X11, X12, X13, X14, X15 };

/* The /digit of the opcodes 81 and, times 8 plus 1, the opcode of "op r/m, r". */
enum x86_alu { X86_ADD, X86_OR, X86_AND = 4, X86_SUB, X86_XOR, X86_CMP };

enum x86_shift { X86_SHL = 4, X86_SHR, X86_SAR = 7 };

/* The /digit of the opcode f7. */
enum x86_unary { X86_NEG = 3, X86_DIV = 6, X86_IDIV };

enum x86_cc { X86_B = 2, X86_AE, X86_E, X86_NE, X86_BE, X86_A, X86_L = 12, X86_GE, X86_LE, X86_G };

/* Any instruction with opcode @op, two bytes if it is 0x0f.., and a ModRM of two registers, or register and memory. */
void x86_rr(struct code_buf *b, bool wide, int op, int reg, int rm);
void x86_rm(struct code_buf *b, bool wide, int op, int reg, int base, int32_t disp);

void x86_mov(struct code_buf *b, bool wide, int dst, int src);
void x86_mov_imm(struct code_buf *b, int dst, uint64_t v);			/* the shortest form */
void x86_alu(struct code_buf *b, bool wide, enum x86_alu op, int dst, int src);
void x86_alu_imm(struct code_buf *b, bool wide, enum x86_alu op, int dst, int32_t v);
void x86_test(struct code_buf *b, bool wide, int a, int c);
void x86_shift_cl(struct code_buf *b, bool wide, enum x86_shift op, int dst);
void x86_shift_imm(struct code_buf *b, bool wide, enum x86_shift op, int dst, int v);
void x86_unary(struct code_buf *b, bool wide, enum x86_unary op, int rm);
void x86_bswap(struct code_buf *b, bool wide, int reg);
/* @size bytes, zero or sign extended to 64 bits (movzx, movsx, movsxd, mov). */
void x86_load(struct code_buf *b, int size, bool sign, int dst, int base, int32_t disp);
void x86_extend(struct code_buf *b, bool wide, int size, int dst, int src);	/* sign extend a register */
void x86_store(struct code_buf *b, int size, int base, int32_t disp, int src);
void x86_push(struct code_buf *b, int reg);
void x86_pop(struct code_buf *b, int reg);

/* Jumps and calls with 32-bit offsets, whose targets x86_land sets; return its argument @jump. */
size_t x86_jmp(struct code_buf *b);
size_t x86_jcc(struct code_buf *b, enum x86_cc cc);
size_t x86_call(struct code_buf *b);
void x86_call_reg(struct code_buf *b, int reg);

/* Set the target of @jump to offset @to. */
void x86_land(struct code_buf *b, size_t jump, size_t to);

#endif

/*
 * What each machine must supply for compiled programs: encoders of these instructions, in a file of its own
 * (arch/x86_64/jit.c).  vm/code.c translates programs to them and is independent of the machine.
 *
 * Registers are named by their use.  Other registers are private to the machine's file.  Operations are 64 bits
 * wide with @wide, else 32 bits, which zeroes the upper half of the result; memory is addressed by a register and an
 * offset.
 */
#ifndef DTAP_ARCH_JIT_H
#define DTAP_ARCH_JIT_H

#include "arch/codebuf.h"

enum jit_reg {
	JIT_R0,			/* R0 to R10 are eBPF's; R0 is also the result of a C function */
	JIT_R1, JIT_R2, JIT_R3, JIT_R4, JIT_R5,	/* also the first five arguments of C functions, calling and called */
	JIT_R6, JIT_R7, JIT_R8, JIT_R9, JIT_R10,	/* callee-saved in C */
	JIT_THREAD,		/* callee-saved in C */
	JIT_SP,
	JIT_T1, JIT_T2,		/* temporaries within one eBPF instruction */
	JIT_T3,			/* likewise; also the sixth argument of C functions */
};

enum jit_alu { JIT_ADD, JIT_SUB, JIT_OR, JIT_AND, JIT_XOR, JIT_CMP };

enum jit_shift { JIT_SHL, JIT_SHR, JIT_SAR };

/* U: unsigned, S: signed. */
enum jit_cond { JIT_EQ, JIT_NE, JIT_LTU, JIT_LEU, JIT_GTU, JIT_GEU, JIT_LTS, JIT_LES, JIT_GTS, JIT_GES };

/* --- registers --------------------------------------------------------------------------------------- */

void jit_mov(struct code_buf *b, bool wide, int dst, int src);
void jit_mov_imm(struct code_buf *b, int dst, uint64_t v);			/* all 64 bits */
void jit_alu(struct code_buf *b, bool wide, enum jit_alu op, int dst, int src);
void jit_alu_imm(struct code_buf *b, bool wide, enum jit_alu op, int dst, int32_t v);
void jit_neg(struct code_buf *b, bool wide, int dst);
void jit_mul(struct code_buf *b, bool wide, int dst, int src);
/*
 * Divide by T1; T1 to T3 are clobbered.  x / 0 is 0, x % 0 is x; the smallest number / -1 is itself, % -1 is 0.
 */
void jit_divide(struct code_buf *b, bool wide, bool mod, bool is_signed, int dst);
/* The shift count is taken modulo the width.  T1 is clobbered. */
void jit_shift(struct code_buf *b, bool wide, enum jit_shift op, int dst, int src);
void jit_shift_imm(struct code_buf *b, bool wide, enum jit_shift op, int dst, int v);
void jit_extend(struct code_buf *b, bool wide, int size, int dst, int src);	/* sign extend @size bytes */
/* Keep the lowest @bits, 16, 32 or 64, of a register: byte-swapped; as they are. */
void jit_swap(struct code_buf *b, int bits, int dst);
void jit_cut(struct code_buf *b, int bits, int dst);

/* --- memory ------------------------------------------------------------------------------------------ */

void jit_lea(struct code_buf *b, int dst, int base, int32_t off);
void jit_load(struct code_buf *b, int size, bool sign, int dst, int base, int32_t off);	/* extended to 64 bits */
void jit_store(struct code_buf *b, int size, int base, int32_t off, int src);
void jit_inc(struct code_buf *b, int base, int32_t off);			/* 64 bits */
/* Push two registers, for stack alignment; @low at the lower address. */
void jit_push(struct code_buf *b, int low, int high);
/*
 * Atomic operations on memory at T1: add, or, and, xor; the same with the old value in @src; BPF_XCHG and BPF_CMPXCHG.
 * T2 and T3 are clobbered.
 */
void jit_atomic(struct code_buf *b, bool wide, enum jit_alu op, int src);
void jit_fetch(struct code_buf *b, bool wide, enum jit_alu op, int src);
void jit_xchg(struct code_buf *b, bool wide, int src);
void jit_cmpxchg(struct code_buf *b, bool wide, int src);

/* --- jumps and calls --------------------------------------------------------------------------------- */

/*
 * jit_jump_if tests the flags, which these set, as JIT_SUB and JIT_CMP do.  jit_test sets them for a & c: EQ is true if
 * that is 0.
 */
void jit_test(struct code_buf *b, bool wide, int a, int c);
void jit_test_imm(struct code_buf *b, int a, uint32_t v);
void jit_test_bool(struct code_buf *b, int a);					/* a C bool */
void jit_cmp_mem(struct code_buf *b, int a, int base, int32_t off);		/* with 64 bits of memory */

/* Jumps whose targets jit_land sets; return its argument @jump.  They reach any offset in a program. */
size_t jit_jump(struct code_buf *b);
size_t jit_jump_if(struct code_buf *b, enum jit_cond cc);
size_t jit_call(struct code_buf *b);
void jit_land(struct code_buf *b, size_t jump, size_t to);			/* set @jump's target to offset @to */

void jit_call_c(struct code_buf *b, uint64_t fn);	/* a C function: r1 to r5 and T1 to T3 are clobbered */
void jit_ret(struct code_buf *b);			/* return from jit_call; its address is on top of the stack */
void jit_came_from(struct code_buf *b, int dst);	/* likewise, but only pop that address into @dst */

/*
 * The frame of the whole code, as a C function: saves the callee-saved registers that are in @used (a bit each
 * of r6 to r9; the others are always saved).  jit_leave returns r0.
 */
void jit_enter(struct code_buf *b, uint32_t used);
void jit_leave(struct code_buf *b, uint32_t used);
/* The frame of a program's function, which jit_call calls: saves r6 to r9, and aligns the stack for calls. */
void jit_func_enter(struct code_buf *b);
void jit_func_leave(struct code_buf *b);

/* --- caches ------------------------------------------------------------------------------------------ */

/* The @size bytes at @code were written, by another mapping of the same memory: before they are executed. */
void jit_flush(void *code, size_t size);

#endif

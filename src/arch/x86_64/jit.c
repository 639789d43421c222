/*
 * Compiled programs on x86-64: implements arch/jit.h with the encoder.
 *
 *	r0 rax   r1 rdi   r2 rsi   r3 rdx   r4 rcx   r5 r8      C's result and arguments
 *	r6 rbx   r7 r13   r8 r14   r9 r15   r10 rbp             callee-saved in C, as is r12, the thread
 *	T1 r11   T2 r10   T3 r9
 *
 * All jumps have 32-bit offsets.
 */
#include "arch/jit.h"

#include "arch/x86_64/enc.h"

static const uint8_t regs[] = {
	[JIT_R0] = RAX, [JIT_R1] = RDI, [JIT_R2] = RSI, [JIT_R3] = RDX, [JIT_R4] = RCX, [JIT_R5] = X8,
	[JIT_R6] = RBX, [JIT_R7] = X13, [JIT_R8] = X14, [JIT_R9] = X15, [JIT_R10] = RBP,
	[JIT_THREAD] = X12, [JIT_SP] = RSP, [JIT_T1] = X11, [JIT_T2] = X10, [JIT_T3] = X9,
};

static const uint8_t alus[] = {
	[JIT_ADD] = X86_ADD, [JIT_SUB] = X86_SUB, [JIT_OR] = X86_OR, [JIT_AND] = X86_AND, [JIT_XOR] = X86_XOR,
	[JIT_CMP] = X86_CMP,
};

static const uint8_t shifts[] = { [JIT_SHL] = X86_SHL, [JIT_SHR] = X86_SHR, [JIT_SAR] = X86_SAR };

static const uint8_t conds[] = {
	[JIT_EQ] = X86_E, [JIT_NE] = X86_NE,
	[JIT_LTU] = X86_B, [JIT_LEU] = X86_BE, [JIT_GTU] = X86_A, [JIT_GEU] = X86_AE,
	[JIT_LTS] = X86_L, [JIT_LES] = X86_LE, [JIT_GTS] = X86_G, [JIT_GES] = X86_GE,
};

/* --- registers --------------------------------------------------------------------------------------- */

void jit_mov(struct code_buf *b, bool wide, int dst, int src)
{
	x86_mov(b, wide, regs[dst], regs[src]);
}

void jit_mov_imm(struct code_buf *b, int dst, uint64_t v)
{
	x86_mov_imm(b, regs[dst], v);
}

void jit_alu(struct code_buf *b, bool wide, enum jit_alu op, int dst, int src)
{
	x86_alu(b, wide, alus[op], regs[dst], regs[src]);
}

void jit_alu_imm(struct code_buf *b, bool wide, enum jit_alu op, int dst, int32_t v)
{
	x86_alu_imm(b, wide, alus[op], regs[dst], v);
}

void jit_neg(struct code_buf *b, bool wide, int dst)
{
	x86_unary(b, wide, X86_NEG, regs[dst]);
}

void jit_mul(struct code_buf *b, bool wide, int dst, int src)
{
	x86_rr(b, wide, 0x0faf, regs[dst], regs[src]);			/* imul */
}

static void divide(struct code_buf *b, bool wide, bool mod, bool is_signed, int dst)
{
	x86_mov(b, true, X10, RAX);
	x86_mov(b, true, X9, RDX);
	x86_mov(b, wide, RAX, dst);
	if (is_signed) {
		if (wide)
			code_u8(b, 0x48);
		code_u8(b, 0x99);					/* cqo, cdq */
	} else {
		x86_mov_imm(b, RDX, 0);
	}
	x86_unary(b, wide, is_signed ? X86_IDIV : X86_DIV, X11);
	x86_mov(b, wide, X11, mod ? RDX : RAX);
	x86_mov(b, true, RAX, X10);
	x86_mov(b, true, RDX, X9);
	x86_mov(b, true, dst, X11);
}

void jit_divide(struct code_buf *b, bool wide, bool mod, bool is_signed, int reg)
{
	size_t zero, minus = 0, end, end2 = 0;
	int dst = regs[reg];

	x86_test(b, wide, X11, X11);
	zero = x86_jcc(b, X86_E);
	if (is_signed) {
		x86_alu_imm(b, wide, X86_CMP, X11, -1);
		minus = x86_jcc(b, X86_E);
	}
	divide(b, wide, mod, is_signed, dst);
	end = x86_jmp(b);
	if (is_signed) {
		x86_land(b, minus, b->n);
		if (mod)
			x86_mov_imm(b, dst, 0);
		else
			x86_unary(b, wide, X86_NEG, dst);
		end2 = x86_jmp(b);
	}
	x86_land(b, zero, b->n);
	if (!mod)
		x86_mov_imm(b, dst, 0);
	else if (!wide)
		x86_mov(b, false, dst, dst);
	x86_land(b, end, b->n);
	if (is_signed)
		x86_land(b, end2, b->n);
}

void jit_shift(struct code_buf *b, bool wide, enum jit_shift op, int dst, int src)
{
	if (regs[src] == RCX) {
		x86_shift_cl(b, wide, shifts[op], regs[dst]);
		return;
	}
	x86_mov(b, true, X11, RCX);
	x86_mov(b, true, RCX, regs[src]);
	x86_shift_cl(b, wide, shifts[op], regs[dst] == RCX ? X11 : regs[dst]);
	x86_mov(b, true, RCX, X11);
}

void jit_shift_imm(struct code_buf *b, bool wide, enum jit_shift op, int dst, int v)
{
	x86_shift_imm(b, wide, shifts[op], regs[dst], v);
}

void jit_extend(struct code_buf *b, bool wide, int size, int dst, int src)
{
	x86_extend(b, wide, size, regs[dst], regs[src]);
}

void jit_swap(struct code_buf *b, int bits, int dst)
{
	x86_bswap(b, bits == 64, regs[dst]);
	if (bits == 16)
		x86_shift_imm(b, false, X86_SHR, regs[dst], 16);
}

void jit_cut(struct code_buf *b, int bits, int dst)
{
	if (bits == 16)
		x86_rr(b, false, 0x0fb7, regs[dst], regs[dst]);		/* movzx */
	else if (bits == 32)
		x86_mov(b, false, regs[dst], regs[dst]);
}

/* --- memory ------------------------------------------------------------------------------------------ */

void jit_lea(struct code_buf *b, int dst, int base, int32_t off)
{
	x86_rm(b, true, 0x8d, regs[dst], regs[base], off);
}

void jit_load(struct code_buf *b, int size, bool sign, int dst, int base, int32_t off)
{
	x86_load(b, size, sign, regs[dst], regs[base], off);
}

void jit_store(struct code_buf *b, int size, int base, int32_t off, int src)
{
	x86_store(b, size, regs[base], off, regs[src]);
}

void jit_inc(struct code_buf *b, int base, int32_t off)
{
	x86_rm(b, true, 0xff, 0, regs[base], off);
}

void jit_push(struct code_buf *b, int low, int high)
{
	x86_push(b, regs[high]);
	x86_push(b, regs[low]);
}

void jit_atomic(struct code_buf *b, bool wide, enum jit_alu op, int src)
{
	code_u8(b, 0xf0);						/* lock */
	x86_rm(b, wide, alus[op] * 8 + 1, regs[src], X11, 0);
}

void jit_fetch(struct code_buf *b, bool wide, enum jit_alu op, int src)
{
	size_t again;

	if (op == JIT_ADD) {
		code_u8(b, 0xf0);
		x86_rm(b, wide, 0x0fc1, regs[src], X11, 0);		/* xadd */
		return;
	}
	/* x86 has no instruction for the others. */
	x86_push(b, RAX);
	x86_mov(b, true, X9, regs[src]);
	x86_rm(b, wide, 0x8b, RAX, X11, 0);
	again = b->n;
	x86_mov(b, true, X10, RAX);
	x86_alu(b, wide, alus[op], X10, X9);
	code_u8(b, 0xf0);						/* lock cmpxchg */
	x86_rm(b, wide, 0x0fb1, X10, X11, 0);
	x86_land(b, x86_jcc(b, X86_NE), again);
	x86_mov(b, wide, X10, RAX);
	x86_pop(b, RAX);
	x86_mov(b, true, regs[src], X10);
}

void jit_xchg(struct code_buf *b, bool wide, int src)
{
	x86_rm(b, wide, 0x87, regs[src], X11, 0);
}

void jit_cmpxchg(struct code_buf *b, bool wide, int src)
{
	code_u8(b, 0xf0);
	x86_rm(b, wide, 0x0fb1, regs[src], X11, 0);
	if (!wide)
		x86_mov(b, false, RAX, RAX);	/* when equal, eax is not written, so zero the upper half here */
}

/* --- jumps and calls --------------------------------------------------------------------------------- */

void jit_test(struct code_buf *b, bool wide, int a, int c)
{
	x86_test(b, wide, regs[a], regs[c]);
}

void jit_test_imm(struct code_buf *b, int a, uint32_t v)
{
	x86_rr(b, true, 0xf7, 0, regs[a]);
	code_u32(b, v);
}

void jit_test_bool(struct code_buf *b, int a)
{
	x86_rr(b, false, 0x84, regs[a], regs[a]);
}

void jit_cmp_mem(struct code_buf *b, int a, int base, int32_t off)
{
	x86_rm(b, true, 0x3b, regs[a], regs[base], off);
}

size_t jit_jump(struct code_buf *b)
{
	return x86_jmp(b);
}

size_t jit_jump_if(struct code_buf *b, enum jit_cond cc)
{
	return x86_jcc(b, conds[cc]);
}

size_t jit_call(struct code_buf *b)
{
	return x86_call(b);
}

void jit_land(struct code_buf *b, size_t jump, size_t to)
{
	x86_land(b, jump, to);
}

void jit_call_c(struct code_buf *b, uint64_t fn)
{
	x86_mov_imm(b, RAX, fn);
	x86_call_reg(b, RAX);
}

void jit_ret(struct code_buf *b)
{
	code_u8(b, 0xc3);
}

void jit_came_from(struct code_buf *b, int dst)
{
	x86_pop(b, regs[dst]);
}

/* --- frames ------------------------------------------------------------------------------------------ */

/* Store the registers to save in @kept; returns how many. */
static unsigned int kept_registers(uint32_t used, uint8_t kept[6])
{
	unsigned int n = 0;

	kept[n++] = RBP;
	kept[n++] = X12;
	for (int r = JIT_R6; r <= JIT_R9; r++)
		if (used & 1u << r)
			kept[n++] = regs[r];
	return n;
}

void jit_enter(struct code_buf *b, uint32_t used)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	uint8_t kept[6];
	unsigned int n = kept_registers(used, kept), pad = n % 2 ? 0 : 8;

	code_bytes(b, endbr64, sizeof(endbr64));
	for (unsigned int k = 0; k < n; k++)
		x86_push(b, kept[k]);
	x86_alu_imm(b, true, X86_SUB, RSP, (int32_t)pad);
}

void jit_leave(struct code_buf *b, uint32_t used)
{
	uint8_t kept[6];
	unsigned int n = kept_registers(used, kept), pad = n % 2 ? 0 : 8;

	x86_alu_imm(b, true, X86_ADD, RSP, (int32_t)pad);
	while (n)
		x86_pop(b, kept[--n]);
	code_u8(b, 0xc3);
}

void jit_func_enter(struct code_buf *b)
{
	for (int r = JIT_R6; r <= JIT_R9; r++)
		x86_push(b, regs[r]);
	x86_alu_imm(b, true, X86_SUB, RSP, 8);
}

void jit_func_leave(struct code_buf *b)
{
	x86_alu_imm(b, true, X86_ADD, RSP, 8);
	for (int r = JIT_R9; r >= JIT_R6; r--)
		x86_pop(b, regs[r]);
	code_u8(b, 0xc3);
}

/* --- caches ------------------------------------------------------------------------------------------ */

/* What is executed at an address that was written at another one is up to date (Intel SDM, volume 3, 12.6). */
void jit_flush(void *code, size_t size)
{
	(void)code;
	(void)size;
}

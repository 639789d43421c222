/*
 * Compiled programs on aarch64: implements arch/jit.h with the encoder.
 *
 *	r0 x7    r1 x0    r2 x1    r3 x2    r4 x3    r5 x4      C's arguments; C's result is in x0, too
 *	r6 x19   r7 x20   r8 x21   r9 x22   r10 x23             callee-saved in C, as is x24, the thread
 *	T1 x9    T2 x10   T3 x5
 *
 * x16 and x17 are private to this file.  x29 and x30 make a frame record in each frame (AAPCS64, "The Frame Pointer"), so
 * between a frame's entry and its end x30 is free: jit_call's return address is there, not on the stack.  jit_ret and
 * jit_came_from are for routines that make no calls themselves.
 *
 * Base instructions of Armv8.0 only, so that it runs everywhere.  Atomic operations with a result order all other accesses,
 * as in Linux (Documentation/bpf/standardization, "Atomic operations"; arch/arm64/net/bpf_jit_comp.c does so).
 */
#include "arch/jit.h"

#include "arch/aarch64/enc.h"

enum { RESULT = 0, TEMP = 16, STATUS = 17 };

/* 32 is the stack pointer: what is 31 in most instructions is zero in others. */
enum { STACK = 32 };

static const uint8_t regs[] = {
	[JIT_R0] = 7, [JIT_R1] = 0, [JIT_R2] = 1, [JIT_R3] = 2, [JIT_R4] = 3, [JIT_R5] = 4,
	[JIT_R6] = 19, [JIT_R7] = 20, [JIT_R8] = 21, [JIT_R9] = 22, [JIT_R10] = 23,
	[JIT_THREAD] = 24, [JIT_SP] = STACK, [JIT_T1] = 9, [JIT_T2] = 10, [JIT_T3] = 5,
};

static const uint8_t conds[] = {
	[JIT_EQ] = A64_EQ, [JIT_NE] = A64_NE,
	[JIT_LTU] = A64_LO, [JIT_LEU] = A64_LS, [JIT_GTU] = A64_HI, [JIT_GEU] = A64_HS,
	[JIT_LTS] = A64_LT, [JIT_LES] = A64_LE, [JIT_GTS] = A64_GT, [JIT_GES] = A64_GE,
};

/* As the base of an access, or in additions of immediates. */
static int base_of(int reg)
{
	return regs[reg] == STACK ? A64_SP : regs[reg];
}

/* --- registers --------------------------------------------------------------------------------------- */

void jit_mov(struct code_buf *b, bool wide, int dst, int src)
{
	if (regs[dst] == STACK || regs[src] == STACK)
		a64_add_imm(b, true, A64_ADD, base_of(dst), base_of(src), 0, false);
	else
		a64_logic(b, wide, A64_ORR, regs[dst], A64_ZR, regs[src]);
}

void jit_mov_imm(struct code_buf *b, int dst, uint64_t v)
{
	a64_mov_imm(b, regs[dst], v);
}

static const uint8_t adds[] = { [JIT_ADD] = A64_ADD, [JIT_SUB] = A64_SUBS, [JIT_CMP] = A64_SUBS };
static const uint8_t logics[] = { [JIT_OR] = A64_ORR, [JIT_AND] = A64_AND, [JIT_XOR] = A64_EOR };

static bool is_add(enum jit_alu op)
{
	return op == JIT_ADD || op == JIT_SUB || op == JIT_CMP;
}

/* op of dst and machine register @rm, which is not the stack pointer. */
static void alu(struct code_buf *b, bool wide, enum jit_alu op, int dst, int rm)
{
	if (is_add(op))
		a64_add(b, wide, adds[op], op == JIT_CMP ? A64_ZR : dst, dst, rm);
	else
		a64_logic(b, wide, logics[op], dst, dst, rm);
}

void jit_alu(struct code_buf *b, bool wide, enum jit_alu op, int dst, int src)
{
	alu(b, wide, op, regs[dst], regs[src]);
}

/* dst = base + v; no flags. */
static void add_offset(struct code_buf *b, int dst, int base, int64_t v)
{
	uint64_t size = v < 0 ? -(uint64_t)v : (uint64_t)v;

	if (size < 4096) {
		a64_add_imm(b, true, v < 0 ? A64_SUB : A64_ADD, dst, base, (uint32_t)size, false);
		return;
	}
	a64_mov_imm(b, TEMP, (uint64_t)v);
	a64_add_sp(b, true, A64_ADD, dst, base, TEMP);
}

/*
 * Additions of a negative number are subtractions, and the other way round.  Their flags are the same: only 0 would
 * carry differently, and it is not negative.
 */
static bool add_imm(struct code_buf *b, bool wide, enum jit_alu op, int dst, int32_t v)
{
	uint32_t size = v < 0 ? -(uint32_t)v : (uint32_t)v;
	enum a64_add to = adds[op];
	int rd = op == JIT_CMP ? A64_ZR : dst;

	if (v < 0)
		to = op == JIT_ADD ? A64_SUB : A64_ADDS;
	if (size < 4096)
		a64_add_imm(b, wide, to, rd, dst, size, false);
	else if (size < 1 << 24 && size % 4096 == 0)
		a64_add_imm(b, wide, to, rd, dst, size / 4096, true);
	else
		return false;
	return true;
}

void jit_alu_imm(struct code_buf *b, bool wide, enum jit_alu op, int dst, int32_t v)
{
	uint64_t imm = wide ? (uint64_t)(int64_t)v : (uint32_t)v;

	if (regs[dst] == STACK)
		add_offset(b, A64_SP, A64_SP, op == JIT_SUB ? -(int64_t)v : v);
	else if (is_add(op) ? add_imm(b, wide, op, regs[dst], v) :
		 a64_logic_imm(b, wide, logics[op], regs[dst], regs[dst], imm))
		return;
	else {
		a64_mov_imm(b, TEMP, imm);
		alu(b, wide, op, regs[dst], TEMP);
	}
}

void jit_neg(struct code_buf *b, bool wide, int dst)
{
	a64_add(b, wide, A64_SUB, regs[dst], A64_ZR, regs[dst]);
}

void jit_mul(struct code_buf *b, bool wide, int dst, int src)
{
	a64_madd(b, wide, false, regs[dst], regs[dst], regs[src], A64_ZR);
}

/* The instructions divide as is asked for: x / 0 is 0, and the smallest number / -1 is itself ("UDIV", "SDIV"). */
void jit_divide(struct code_buf *b, bool wide, bool mod, bool is_signed, int dst)
{
	int quotient = mod ? TEMP : regs[dst];

	a64_two(b, wide, is_signed ? A64_SDIV : A64_UDIV, quotient, regs[dst], regs[JIT_T1]);
	if (mod)
		a64_madd(b, wide, true, regs[dst], quotient, regs[JIT_T1], regs[dst]);
}

void jit_shift(struct code_buf *b, bool wide, enum jit_shift op, int dst, int src)
{
	static const uint8_t shifts[] = { [JIT_SHL] = A64_LSLV, [JIT_SHR] = A64_LSRV, [JIT_SAR] = A64_ASRV };

	a64_two(b, wide, shifts[op], regs[dst], regs[dst], regs[src]);
}

void jit_shift_imm(struct code_buf *b, bool wide, enum jit_shift op, int dst, int v)
{
	int bits = wide ? 64 : 32;

	v &= bits - 1;
	if (op == JIT_SHL)
		a64_bits(b, wide, A64_UBFM, regs[dst], regs[dst], (bits - v) & (bits - 1), bits - 1 - v);	/* lsl */
	else
		a64_bits(b, wide, op == JIT_SAR ? A64_SBFM : A64_UBFM, regs[dst], regs[dst], v, bits - 1);	/* asr, lsr */
}

void jit_extend(struct code_buf *b, bool wide, int size, int dst, int src)
{
	a64_bits(b, wide, A64_SBFM, regs[dst], regs[src], 0, 8 * size - 1);		/* sxtb, sxth, sxtw */
}

void jit_swap(struct code_buf *b, int bits, int dst)
{
	a64_one(b, bits == 64, bits == 64 ? A64_REV64 : bits == 32 ? A64_REV32 : A64_REV16, regs[dst], regs[dst]);
	if (bits == 16)
		jit_cut(b, 16, dst);
}

void jit_cut(struct code_buf *b, int bits, int dst)
{
	if (bits == 16)
		a64_bits(b, false, A64_UBFM, regs[dst], regs[dst], 0, 15);		/* uxth */
	else if (bits == 32)
		jit_mov(b, false, dst, dst);
}

/* --- memory ------------------------------------------------------------------------------------------ */

void jit_lea(struct code_buf *b, int dst, int base, int32_t off)
{
	add_offset(b, regs[dst], base_of(base), off);
}

static void load(struct code_buf *b, int size, bool sign, int dst, int base, int32_t off)
{
	if (a64_load(b, size, sign, dst, base, off))
		return;
	a64_mov_imm(b, TEMP, (uint64_t)(int64_t)off);
	a64_load_at(b, size, sign, dst, base, TEMP);
}

static void store(struct code_buf *b, int size, int base, int32_t off, int src)
{
	if (a64_store(b, size, src, base, off))
		return;
	a64_mov_imm(b, TEMP, (uint64_t)(int64_t)off);
	a64_store_at(b, size, src, base, TEMP);
}

void jit_load(struct code_buf *b, int size, bool sign, int dst, int base, int32_t off)
{
	load(b, size, sign, regs[dst] == STACK ? STATUS : regs[dst], base_of(base), off);
	if (regs[dst] == STACK)
		a64_add_imm(b, true, A64_ADD, A64_SP, STATUS, 0, false);
}

void jit_store(struct code_buf *b, int size, int base, int32_t off, int src)
{
	if (regs[src] == STACK)
		a64_add_imm(b, true, A64_ADD, STATUS, A64_SP, 0, false);
	store(b, size, base_of(base), off, regs[src] == STACK ? STATUS : regs[src]);
}

void jit_inc(struct code_buf *b, int base, int32_t off)
{
	load(b, 8, false, STATUS, base_of(base), off);
	a64_add_imm(b, true, A64_ADD, STATUS, STATUS, 1, false);
	store(b, 8, base_of(base), off, STATUS);
}

void jit_push(struct code_buf *b, int low, int high)
{
	a64_push_pair(b, regs[low], regs[high], A64_SP, -16);
}

/* Again until nobody else has written in between. */
static void store_or_again(struct code_buf *b, bool wide, bool order, int rt, size_t again)
{
	a64_store_exclusive(b, wide, order, STATUS, rt, regs[JIT_T1]);
	a64_land(b, a64_cbnz(b, false, STATUS), again);
}

void jit_atomic(struct code_buf *b, bool wide, enum jit_alu op, int src)
{
	size_t again = b->n;

	a64_load_exclusive(b, wide, false, TEMP, regs[JIT_T1]);
	alu(b, wide, op, TEMP, regs[src]);
	store_or_again(b, wide, false, TEMP, again);
}

void jit_fetch(struct code_buf *b, bool wide, enum jit_alu op, int src)
{
	int old = regs[JIT_T2];
	size_t again = b->n;

	a64_load_exclusive(b, wide, false, old, regs[JIT_T1]);
	a64_logic(b, wide, A64_ORR, TEMP, A64_ZR, old);
	alu(b, wide, op, TEMP, regs[src]);
	store_or_again(b, wide, true, TEMP, again);
	a64_dmb_ish(b);
	a64_logic(b, wide, A64_ORR, regs[src], A64_ZR, old);
}

void jit_xchg(struct code_buf *b, bool wide, int src)
{
	int old = regs[JIT_T2];
	size_t again = b->n;

	a64_load_exclusive(b, wide, false, old, regs[JIT_T1]);
	store_or_again(b, wide, true, regs[src], again);
	a64_dmb_ish(b);
	a64_logic(b, wide, A64_ORR, regs[src], A64_ZR, old);
}

void jit_cmpxchg(struct code_buf *b, bool wide, int src)
{
	int old = regs[JIT_T2], r0 = regs[JIT_R0];
	size_t again = b->n, other;

	a64_load_exclusive(b, wide, false, old, regs[JIT_T1]);
	a64_add(b, wide, A64_SUBS, A64_ZR, old, r0);					/* cmp */
	other = a64_b_cond(b, A64_NE);
	store_or_again(b, wide, true, regs[src], again);
	a64_dmb_ish(b);
	a64_land(b, other, b->n);
	a64_logic(b, wide, A64_ORR, r0, A64_ZR, old);
}

/* --- jumps and calls --------------------------------------------------------------------------------- */

void jit_test(struct code_buf *b, bool wide, int a, int c)
{
	a64_logic(b, wide, A64_ANDS, A64_ZR, regs[a], regs[c]);				/* tst */
}

void jit_test_imm(struct code_buf *b, int a, uint32_t v)
{
	if (a64_logic_imm(b, true, A64_ANDS, A64_ZR, regs[a], v))
		return;
	a64_mov_imm(b, TEMP, v);
	a64_logic(b, true, A64_ANDS, A64_ZR, regs[a], TEMP);
}

void jit_test_bool(struct code_buf *b, int a)
{
	a64_logic_imm(b, false, A64_ANDS, A64_ZR, regs[a], 0xff);
}

void jit_cmp_mem(struct code_buf *b, int a, int base, int32_t off)
{
	load(b, 8, false, STATUS, base_of(base), off);
	a64_add(b, true, A64_SUBS, A64_ZR, regs[a], STATUS);
}

size_t jit_jump(struct code_buf *b)
{
	return a64_b(b);
}

/* A conditional jump reaches 1 MiB only: the opposite one skips a jump that reaches all. */
size_t jit_jump_if(struct code_buf *b, enum jit_cond cc)
{
	size_t skip = a64_b_cond(b, conds[cc] ^ 1), jump = a64_b(b);

	a64_land(b, skip, b->n);
	return jump;
}

size_t jit_call(struct code_buf *b)
{
	return a64_bl(b);
}

void jit_land(struct code_buf *b, size_t jump, size_t to)
{
	a64_land(b, jump, to);
}

void jit_call_c(struct code_buf *b, uint64_t fn)
{
	a64_mov_imm(b, TEMP, fn);
	a64_blr(b, TEMP);
	a64_logic(b, true, A64_ORR, regs[JIT_R0], A64_ZR, RESULT);
}

void jit_ret(struct code_buf *b)
{
	a64_ret(b);
}

void jit_came_from(struct code_buf *b, int dst)
{
	a64_logic(b, true, A64_ORR, regs[dst], A64_ZR, A64_LR);
}

/* --- frames ------------------------------------------------------------------------------------------ */

/*
 *	sp, x29 ──► caller's x29, x30
 *	            x23, x24			the entry's frame only
 *	            x19, x20			if in use
 *	            x21, x22
 */
static void enter(struct code_buf *b, int size)
{
	a64_push_pair(b, A64_FP, A64_LR, A64_SP, -size);
	a64_add_imm(b, true, A64_ADD, A64_FP, A64_SP, 0, false);
}

static void leave(struct code_buf *b, int size)
{
	a64_pop_pair(b, A64_FP, A64_LR, A64_SP, size);
	a64_ret(b);
}

enum { ENTRY_FRAME = 64, FUNC_FRAME = 48 };

/* Does a program with the registers @used have to save r6 and r7, or r8 and r9? */
static bool uses(uint32_t used, int reg)
{
	return used & (3u << reg);
}

void jit_enter(struct code_buf *b, uint32_t used)
{
	a64_bti_c(b);
	enter(b, ENTRY_FRAME);
	a64_store_pair(b, regs[JIT_R10], regs[JIT_THREAD], A64_SP, 16);
	if (uses(used, JIT_R6))
		a64_store_pair(b, regs[JIT_R6], regs[JIT_R7], A64_SP, 32);
	if (uses(used, JIT_R8))
		a64_store_pair(b, regs[JIT_R8], regs[JIT_R9], A64_SP, 48);
}

void jit_leave(struct code_buf *b, uint32_t used)
{
	a64_logic(b, true, A64_ORR, RESULT, A64_ZR, regs[JIT_R0]);
	if (uses(used, JIT_R8))
		a64_load_pair(b, regs[JIT_R8], regs[JIT_R9], A64_SP, 48);
	if (uses(used, JIT_R6))
		a64_load_pair(b, regs[JIT_R6], regs[JIT_R7], A64_SP, 32);
	a64_load_pair(b, regs[JIT_R10], regs[JIT_THREAD], A64_SP, 16);
	leave(b, ENTRY_FRAME);
}

void jit_func_enter(struct code_buf *b)
{
	enter(b, FUNC_FRAME);
	a64_store_pair(b, regs[JIT_R6], regs[JIT_R7], A64_SP, 16);
	a64_store_pair(b, regs[JIT_R8], regs[JIT_R9], A64_SP, 32);
}

void jit_func_leave(struct code_buf *b)
{
	a64_load_pair(b, regs[JIT_R8], regs[JIT_R9], A64_SP, 32);
	a64_load_pair(b, regs[JIT_R6], regs[JIT_R7], A64_SP, 16);
	leave(b, FUNC_FRAME);
}

/* --- caches ------------------------------------------------------------------------------------------ */

/*
 * New code must leave the data cache, and what the instruction cache has of its place must go (B2.7.4.2, "Ordering of
 * cache maintenance instructions"; CTR_EL0, D19.2).  The lines are of 4 << n bytes.
 */
void jit_flush(void *code, size_t size)
{
	uintptr_t start = (uintptr_t)code, end = start + size, ctr, data, insn;

	__asm__ volatile("mrs %0, ctr_el0" : "=r"(ctr));
	data = (uintptr_t)4 << (ctr >> 16 & 15);
	insn = (uintptr_t)4 << (ctr & 15);
	for (uintptr_t at = start & ~(data - 1); at < end; at += data)
		__asm__ volatile("dc cvau, %0" : : "r"(at) : "memory");
	__asm__ volatile("dsb ish" : : : "memory");
	for (uintptr_t at = start & ~(insn - 1); at < end; at += insn)
		__asm__ volatile("ic ivau, %0" : : "r"(at) : "memory");
	__asm__ volatile("dsb ish\n\tisb" : : : "memory");
}

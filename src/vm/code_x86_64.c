/*
 * The compiler for x86-64.
 *
 *	r0 rax   r1 rdi   r2 rsi   r3 rdx   r4 rcx   r5 r8      as C has arguments and results
 *	r6 rbx   r7 r13   r8 r14   r9 r15   r10 rbp             kept by C functions
 *	r12 the struct vm_thread; r9, r10, r11 between instructions of ours only
 *
 * Each function is one, with its callee-saved registers pushed; the stack that the program sees is the thread's,
 * so that what it can write is never a return address.  An access that must be compared has its address in r11
 * and calls one of the checks, a short row of comparisons for a size and a direction.  A failed one leaves
 * through the entry's frame, wherever the program is, and the check's return address tells which instruction it
 * was.  All jumps have 32 bits.
 */
#include "vm/prog.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "arch/x86_64/enc.h"

static const uint8_t regs[11] = { RAX, RDI, RSI, RDX, RCX, X8, RBX, X13, X14, X15, RBP };

/* What a called function keeps for its caller. */
static const uint8_t func_kept[] = { RBX, X13, X14, X15 };

#define THREAD(FIELD) ((int32_t)offsetof(struct vm_thread, FIELD))

struct vm_code {
	void *base;
	size_t size;
	uint32_t *at;		/* by instruction: the offset behind its code */
};

struct fix {
	size_t jump;
	uint32_t insn;
	bool call;
};

struct compiler {
	const struct vm_prog *p;
	struct x86_buf b;
	uint32_t *at, *ends;	/* by instruction: where its code starts, ends */
	uint32_t *calls;	/* where a function's starts that begins with it: a loop may lead back to the first, too */
	struct fix *fixes;	/* one for each instruction at most */
	uint32_t nfixes;
	size_t checks[2][9];	/* by direction and size */
	size_t fault, timeout, entry, exit;
};

static void jump_to(struct compiler *c, size_t jump, uint32_t insn)
{
	c->fixes[c->nfixes++] = (struct fix){ jump, insn, false };
}

/* --- the frame of all ---------------------------------------------------------------------------------- */

/* The callee-saved registers that the program uses, to @kept; returns how many. */
static unsigned int kept_registers(const struct vm_prog *p, uint8_t kept[6])
{
	bool used[11] = { false };
	unsigned int n = 0;

	for (uint32_t at = 0; at < p->spec.ninsns; at++)
		used[p->insns[at].dst_reg <= 10 ? p->insns[at].dst_reg : 0] =
			used[p->insns[at].src_reg <= 10 ? p->insns[at].src_reg : 0] = true;
	kept[n++] = RBP;
	kept[n++] = X12;
	for (int r = 6; r <= 9; r++)
		if (used[r])
			kept[n++] = regs[r];
	return n;
}

/* The program itself lies behind it. */
static void emit_entry(struct compiler *c)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	uint8_t kept[6];
	unsigned int n = kept_registers(c->p, kept), pad = n % 2 ? 0 : 8;
	struct x86_buf *b = &c->b;

	c->entry = b->n;
	x86_bytes(b, endbr64, sizeof(endbr64));
	for (unsigned int k = 0; k < n; k++)
		x86_push(b, kept[k]);
	x86_alu_imm(b, true, X86_SUB, RSP, (int32_t)pad);
	x86_mov(b, true, X12, RDI);
	x86_store(b, 8, X12, THREAD(native_sp), RSP);
	x86_rm(b, true, 0x8d, RBP, X12, THREAD(stack) + VM_STACK);	/* lea */
	x86_mov(b, true, RDI, RSI);
}

/* The way out, with the result in rax; that of faults and timeouts. */
static void emit_exit(struct compiler *c)
{
	uint8_t kept[6];
	unsigned int n = kept_registers(c->p, kept), pad = n % 2 ? 0 : 8;
	struct x86_buf *b = &c->b;
	size_t out, to_out;

	c->exit = b->n;
	x86_store(b, 8, X12, THREAD(ret), RAX);
	x86_mov_imm(b, RAX, 0);
	out = b->n;
	x86_alu_imm(b, true, X86_ADD, RSP, (int32_t)pad);
	while (n)
		x86_pop(b, kept[--n]);
	x86_u8(b, 0xc3);						/* ret */
	for (int k = 0; k < 2; k++) {
		*(k ? &c->timeout : &c->fault) = b->n;			/* called: the address says where */
		x86_pop(b, X11);
		x86_store(b, 8, X12, THREAD(native_fault), X11);
		x86_load(b, 8, false, RSP, X12, THREAD(native_sp));
		x86_mov_imm(b, RAX, (uint64_t)(k ? -ETIME : -EFAULT));
		to_out = x86_jmp(b);
		x86_land(b, to_out, out);
	}
}

/* r10 is the start of @all bytes: return if the @size bytes at r11 are inside. */
static void emit_region(struct compiler *c, uint64_t all, unsigned int size)
{
	struct x86_buf *b = &c->b;
	size_t next;

	x86_mov(b, true, X9, X11);
	x86_alu(b, true, X86_SUB, X9, X10);
	x86_mov_imm(b, X10, all - size);
	x86_alu(b, true, X86_CMP, X9, X10);
	next = x86_jcc(b, X86_A);
	x86_u8(b, 0xc3);
	x86_land(b, next, b->n);
}

static bool usable(const struct vm_spec *s, uint32_t k, bool write, unsigned int size)
{
	return s->maps[k].base && s->maps[k].size >= size && !(write && s->maps[k].readonly);
}

/* Is map @k's memory part of another's, so that asking for that one is enough? */
static bool covered(const struct vm_spec *s, uint32_t k, bool write, unsigned int size)
{
	uint64_t base = (uint64_t)(uintptr_t)s->maps[k].base;

	for (uint32_t j = 0; j < s->nmaps; j++) {
		uint64_t other = (uint64_t)(uintptr_t)s->maps[j].base;

		if (j != k && usable(s, j, write, size) && base >= other && base - other <= s->maps[j].size &&
		    s->maps[k].size <= s->maps[j].size - (base - other) && (s->maps[k].size < s->maps[j].size || j < k))
			return true;
	}
	return false;
}

static void emit_check(struct compiler *c, bool write, unsigned int size)
{
	const struct vm_spec *s = &c->p->spec;
	struct x86_buf *b = &c->b;

	c->checks[write][size] = b->n;
	for (uint32_t k = 0; k < s->nmaps; k++) {
		if (!usable(s, k, write, size) || covered(s, k, write, size))
			continue;
		x86_mov_imm(b, X10, (uint64_t)(uintptr_t)s->maps[k].base);
		emit_region(c, s->maps[k].size, size);
	}
	x86_rm(b, true, 0x8d, X10, X12, THREAD(stack));			/* lea */
	emit_region(c, VM_STACK, size);
	if (s->ctx_size >= size && (!write || s->ctx_writable)) {
		x86_load(b, 8, false, X10, X12, THREAD(ctx));
		emit_region(c, s->ctx_size, size);
	}
	x86_land(b, x86_jmp(b), c->fault);
}

/* --- arithmetic -------------------------------------------------------------------------------------- */

static void emit_shift(struct compiler *c, bool wide, enum x86_shift op, int dst, int src)
{
	struct x86_buf *b = &c->b;

	if (src == RCX) {
		x86_shift_cl(b, wide, op, dst);
		return;
	}
	x86_mov(b, true, X11, RCX);
	x86_mov(b, true, RCX, src);
	x86_shift_cl(b, wide, op, dst == RCX ? X11 : dst);
	x86_mov(b, true, RCX, X11);
}

/* The divisor is in r11. */
static void emit_divide(struct compiler *c, bool wide, bool mod, bool is_signed, int dst)
{
	struct x86_buf *b = &c->b;
	size_t zero, minus = 0, end, end2 = 0;

	x86_test(b, wide, X11, X11);
	zero = x86_jcc(b, X86_E);
	if (is_signed) {
		x86_alu_imm(b, wide, X86_CMP, X11, -1);
		minus = x86_jcc(b, X86_E);
	}
	x86_mov(b, true, X10, RAX);
	x86_mov(b, true, X9, RDX);
	x86_mov(b, wide, RAX, dst);
	if (is_signed) {
		if (wide)
			x86_u8(b, 0x48);
		x86_u8(b, 0x99);					/* cqo, cdq */
	} else {
		x86_mov_imm(b, RDX, 0);
	}
	x86_unary(b, wide, is_signed ? X86_IDIV : X86_DIV, X11);
	x86_mov(b, wide, X11, mod ? RDX : RAX);
	x86_mov(b, true, RAX, X10);
	x86_mov(b, true, RDX, X9);
	x86_mov(b, true, dst, X11);
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

static void emit_swap(struct compiler *c, const struct bpf_insn *i, int dst)
{
	struct x86_buf *b = &c->b;

	if (BPF_CLASS(i->code) == BPF_ALU64 || BPF_SRC(i->code) == BPF_TO_BE) {
		x86_bswap(b, i->imm == 64, dst);
		if (i->imm == 16)
			x86_shift_imm(b, false, X86_SHR, dst, 16);
	} else if (i->imm == 16) {
		x86_rr(b, false, 0x0fb7, dst, dst);			/* movzx */
	} else if (i->imm == 32) {
		x86_mov(b, false, dst, dst);
	}
}

static void emit_alu(struct compiler *c, const struct bpf_insn *i)
{
	static const uint8_t plain[16] = { [BPF_ADD >> 4] = X86_ADD, [BPF_SUB >> 4] = X86_SUB, [BPF_OR >> 4] = X86_OR,
					   [BPF_AND >> 4] = X86_AND, [BPF_XOR >> 4] = X86_XOR };
	bool wide = BPF_CLASS(i->code) == BPF_ALU64, reg = BPF_SRC(i->code) == BPF_X;
	int op = BPF_OP(i->code), dst = regs[i->dst_reg], src = regs[i->src_reg];
	enum x86_shift shift = op == BPF_LSH ? X86_SHL : op == BPF_RSH ? X86_SHR : X86_SAR;
	uint64_t imm = wide ? (uint64_t)(int64_t)i->imm : (uint32_t)i->imm;
	struct x86_buf *b = &c->b;

	switch (op) {
	case BPF_MOV:
		if (!reg)
			x86_mov_imm(b, dst, imm);
		else if (i->off)
			x86_extend(b, wide, i->off / 8, dst, src);
		else
			x86_mov(b, wide, dst, src);
		break;
	case BPF_LSH: case BPF_RSH: case BPF_ARSH:
		if (reg)
			emit_shift(c, wide, shift, dst, src);
		else
			x86_shift_imm(b, wide, shift, dst, i->imm);
		break;
	case BPF_MUL: case BPF_DIV: case BPF_MOD:
		if (reg)
			x86_mov(b, true, X11, src);
		else
			x86_mov_imm(b, X11, imm);
		if (op == BPF_MUL)
			x86_rr(b, wide, 0x0faf, dst, X11);		/* imul */
		else
			emit_divide(c, wide, op == BPF_MOD, i->off, dst);
		break;
	case BPF_NEG:
		x86_unary(b, wide, X86_NEG, dst);
		break;
	case BPF_END:
		emit_swap(c, i, dst);
		break;
	default:
		if (reg)
			x86_alu(b, wide, plain[op >> 4], dst, src);
		else
			x86_alu_imm(b, wide, plain[op >> 4], dst, i->imm);
	}
}

/* --- memory ------------------------------------------------------------------------------------------ */

/* src = old value, *r11 op= src: the fetching forms that the machine has no instruction for. */
static void emit_fetch(struct compiler *c, bool wide, enum x86_alu op, int src)
{
	struct x86_buf *b = &c->b;
	size_t again;

	x86_push(b, RAX);
	x86_mov(b, true, X9, src);
	x86_rm(b, wide, 0x8b, RAX, X11, 0);
	again = b->n;
	x86_mov(b, true, X10, RAX);
	x86_alu(b, wide, op, X10, X9);
	x86_u8(b, 0xf0);						/* lock cmpxchg */
	x86_rm(b, wide, 0x0fb1, X10, X11, 0);
	x86_land(b, x86_jcc(b, X86_NE), again);
	x86_mov(b, wide, X10, RAX);
	x86_pop(b, RAX);
	x86_mov(b, true, src, X10);
}

static void emit_atomic(struct compiler *c, const struct bpf_insn *i, bool wide, int src)
{
	int op = i->imm & ~BPF_FETCH;
	enum x86_alu alu = op == BPF_ADD ? X86_ADD : op == BPF_OR ? X86_OR : op == BPF_AND ? X86_AND : X86_XOR;
	struct x86_buf *b = &c->b;

	if (i->imm == BPF_XCHG) {
		x86_rm(b, wide, 0x87, src, X11, 0);
	} else if (i->imm == BPF_CMPXCHG) {
		x86_u8(b, 0xf0);
		x86_rm(b, wide, 0x0fb1, src, X11, 0);
		if (!wide)
			x86_mov(b, false, RAX, RAX);	/* when equal, eax is not written and rax not cut */
	} else if (i->imm == (BPF_ADD | BPF_FETCH)) {
		x86_u8(b, 0xf0);
		x86_rm(b, wide, 0x0fc1, src, X11, 0);			/* xadd */
	} else if (i->imm & BPF_FETCH) {
		emit_fetch(c, wide, alu, src);
	} else {
		x86_u8(b, 0xf0);
		x86_rm(b, wide, alu * 8 + 1, src, X11, 0);
	}
}

static void emit_memory(struct compiler *c, const struct bpf_insn *i, uint32_t at)
{
	bool is_load = BPF_CLASS(i->code) == BPF_LDX;
	bool atomic = BPF_CLASS(i->code) == BPF_STX && BPF_MODE(i->code) == BPF_ATOMIC;
	int dst = regs[i->dst_reg], src = regs[i->src_reg], base = is_load ? src : dst;
	unsigned int size = vm_size(i->code);
	struct x86_buf *b = &c->b;
	int32_t off = i->off;
	size_t good;

	if (atomic || !c->p->notes[at].safe) {
		x86_rm(b, true, 0x8d, X11, base, off);			/* lea */
		base = X11;
		off = 0;
	}
	if (!c->p->notes[at].safe) {
		if (atomic) {
			x86_rr(b, true, 0xf7, 0, X11);			/* test r11, imm */
			x86_u32(b, size - 1);
			good = x86_jcc(b, X86_E);
			x86_land(b, x86_call(b), c->fault);
			x86_land(b, good, b->n);
		}
		x86_land(b, x86_call(b), c->checks[!is_load][size]);
	}
	if (is_load) {
		x86_load(b, (int)size, BPF_MODE(i->code) == VM_MEMSX, dst, base, off);
	} else if (atomic) {
		emit_atomic(c, i, size == 8, src);
	} else if (BPF_CLASS(i->code) == BPF_ST) {
		x86_mov_imm(b, X10, (uint64_t)(int64_t)i->imm);
		x86_store(b, (int)size, base, off, X10);
	} else {
		x86_store(b, (int)size, base, off, src);
	}
}

/* --- jumps and calls --------------------------------------------------------------------------------- */

static void emit_branch(struct compiler *c, const struct bpf_insn *i, uint32_t at)
{
	static const uint8_t ccs[16] = {
		[BPF_JEQ >> 4] = X86_E, [BPF_JNE >> 4] = X86_NE, [BPF_JSET >> 4] = X86_NE, [BPF_JGT >> 4] = X86_A,
		[BPF_JGE >> 4] = X86_AE, [BPF_JLT >> 4] = X86_B, [BPF_JLE >> 4] = X86_BE, [BPF_JSGT >> 4] = X86_G,
		[BPF_JSGE >> 4] = X86_GE, [BPF_JSLT >> 4] = X86_L, [BPF_JSLE >> 4] = X86_LE,
	};
	bool wide = BPF_CLASS(i->code) == BPF_JMP;
	int dst = regs[i->dst_reg], src = regs[i->src_reg];
	struct x86_buf *b = &c->b;

	if (BPF_SRC(i->code) == BPF_K) {
		x86_mov_imm(b, X11, (uint64_t)(int64_t)i->imm);
		src = X11;
	}
	if (BPF_OP(i->code) == BPF_JSET)
		x86_test(b, wide, dst, src);
	else
		x86_alu(b, wide, X86_CMP, dst, src);
	jump_to(c, x86_jcc(b, ccs[BPF_OP(i->code) >> 4]), at + 1 + (uint32_t)i->off);
}

static void emit_call(struct compiler *c, const struct vm_func *from, const struct vm_func *to)
{
	struct x86_buf *b = &c->b;

	x86_alu_imm(b, true, X86_SUB, RBP, (int32_t)from->frame);
	c->fixes[c->nfixes++] = (struct fix){ x86_call(b), to->start, true };
	x86_alu_imm(b, true, X86_ADD, RBP, (int32_t)from->frame);
}

/* On the machine's stack while it runs: the turn, the number of turns, the callback's argument, padding. */
static void emit_loop(struct compiler *c, const struct vm_func *from, const struct vm_func *to)
{
	struct x86_buf *b = &c->b;
	size_t bad, many, none, good, again, top;

	x86_mov_imm(b, RAX, (uint64_t)-EINVAL);
	x86_test(b, true, RCX, RCX);
	bad = x86_jcc(b, X86_NE);
	x86_mov_imm(b, RAX, (uint64_t)-E2BIG);
	x86_mov(b, false, X11, RDI);
	x86_alu_imm(b, false, X86_CMP, X11, VM_MAX_LOOPS);
	many = x86_jcc(b, X86_A);
	x86_mov_imm(b, RAX, 0);
	x86_test(b, false, X11, X11);
	none = x86_jcc(b, X86_E);
	x86_push(b, RDX);
	x86_push(b, RDX);
	x86_push(b, X11);
	x86_push(b, RAX);
	top = b->n;
	x86_load(b, 8, false, X11, X12, THREAD(budget));
	x86_alu_imm(b, true, X86_SUB, X11, (int32_t)to->cost);
	good = x86_jcc(b, X86_AE);
	x86_land(b, x86_call(b), c->timeout);
	x86_land(b, good, b->n);
	x86_store(b, 8, X12, THREAD(budget), X11);
	x86_load(b, 8, false, RDI, RSP, 0);
	x86_load(b, 8, false, RSI, RSP, 16);
	x86_rm(b, true, 0xff, 0, RSP, 0);				/* inc */
	emit_call(c, from, to);
	x86_load(b, 8, false, X11, RSP, 0);
	x86_test(b, true, RAX, RAX);
	again = x86_jcc(b, X86_NE);
	x86_rm(b, true, 0x3b, X11, RSP, 8);				/* cmp */
	x86_land(b, x86_jcc(b, X86_B), top);
	x86_land(b, again, b->n);
	x86_mov(b, true, RAX, X11);
	x86_alu_imm(b, true, X86_ADD, RSP, 32);
	x86_land(b, bad, b->n);
	x86_land(b, many, b->n);
	x86_land(b, none, b->n);
}

/* On the machine's stack while it runs: a struct vm_walk. */
static void emit_each(struct compiler *c, const struct vm_func *from, const struct vm_func *to)
{
	struct x86_buf *b = &c->b;
	size_t bad, good, end, top;

	_Static_assert(sizeof(struct vm_walk) == 32, "what is pushed");
	x86_mov_imm(b, RAX, (uint64_t)-EINVAL);
	x86_test(b, true, RCX, RCX);
	bad = x86_jcc(b, X86_NE);
	x86_push(b, RDX);
	x86_push(b, RCX);
	x86_push(b, RCX);
	x86_push(b, RDI);
	top = b->n;
	x86_mov_imm(b, RDI, (uint64_t)(uintptr_t)c->p);
	x86_mov(b, true, RSI, X12);
	x86_mov(b, true, RDX, RSP);
	x86_mov_imm(b, RCX, to->cost);
	x86_mov_imm(b, RAX, (uint64_t)(uintptr_t)vm_walk_next);
	x86_call_reg(b, RAX);
	x86_test(b, false, RAX, RAX);
	end = x86_jcc(b, X86_E);
	x86_alu_imm(b, false, X86_CMP, RAX, 0);
	good = x86_jcc(b, X86_G);
	x86_land(b, x86_call(b), c->timeout);
	x86_land(b, good, b->n);
	x86_load(b, 8, false, RDI, RSP, offsetof(struct vm_walk, handle));
	x86_load(b, 8, false, RSI, X12, THREAD(args) + 8);
	x86_load(b, 8, false, RDX, X12, THREAD(args) + 16);
	x86_load(b, 8, false, RCX, RSP, offsetof(struct vm_walk, arg));
	emit_call(c, from, to);
	x86_test(b, true, RAX, RAX);
	x86_land(b, x86_jcc(b, X86_E), top);
	x86_land(b, end, b->n);
	x86_load(b, 8, false, RAX, RSP, offsetof(struct vm_walk, turns));
	x86_alu_imm(b, true, X86_ADD, RSP, sizeof(struct vm_walk));
	x86_land(b, bad, b->n);
}

/* Which argument is memory, if that is all that a checked call does not know when loading; else -1. */
static int memory_argument(const struct vm_helper *h, const struct vm_note *note)
{
	int found = -1;

	for (int k = 0; k < 5 && h->args[k] != VM_ARG_NONE; k++) {
		bool memory = h->args[k] == VM_ARG_READ || h->args[k] == VM_ARG_WRITE;

		if (h->args[k] == VM_ARG_KEY || h->args[k] == VM_ARG_VALUE || (memory && found >= 0) ||
		    (h->args[k] == VM_ARG_MAP && note->map == VM_ANY_MAP))
			return -1;
		if (memory)
			found = k;
	}
	return found;
}

static void emit_helper_call(struct compiler *c, const struct vm_helper *h)
{
	x86_mov(&c->b, true, X9, X12);
	x86_mov_imm(&c->b, RAX, (uint64_t)(uintptr_t)h->fn);
	x86_call_reg(&c->b, RAX);
}

/*
 * A call whose argument @k is memory in the last map, which has most of the others in it: no more need be checked.  To
 * the two jumps in @others it goes with all else.  Returns the jump behind what makes the checked call.
 */
static size_t emit_memory_call(struct compiler *c, const struct vm_helper *h, int k, const struct vm_map *map,
			       size_t others[2])
{
	int addr = regs[1 + k], size = regs[2 + k];
	struct x86_buf *b = &c->b;

	x86_mov(b, false, size, size);
	x86_mov_imm(b, X10, map->size);
	x86_alu(b, true, X86_SUB, X10, size);
	others[0] = x86_jcc(b, X86_B);
	x86_mov_imm(b, X11, (uint64_t)(uintptr_t)map->base);
	x86_mov(b, true, X9, addr);
	x86_alu(b, true, X86_SUB, X9, X11);
	x86_alu(b, true, X86_CMP, X9, X10);
	others[1] = x86_jcc(b, X86_A);
	emit_helper_call(c, h);
	return x86_jmp(b);
}

static void emit_helper(struct compiler *c, const struct vm_note *note, uint32_t at)
{
	const struct vm_spec *s = &c->p->spec;
	const struct vm_helper *helper = &s->helpers[note->to];
	struct x86_buf *b = &c->b;
	size_t good, done = 0, others[2];
	int memory;

	if (note->call == VM_CALL_HELPER && !helper->fn) {
		x86_load(b, 8, false, RAX, X12, helper->ret == VM_RET_CTX ? THREAD(ctx) :
			 THREAD(values) + 8 * (int32_t)helper->value);
		return;
	}
	if (note->call == VM_CALL_HELPER) {
		emit_helper_call(c, helper);
		return;
	}
	memory = s->nmaps ? memory_argument(helper, note) : -1;
	if (memory >= 0 && usable(s, s->nmaps - 1, helper->args[memory] == VM_ARG_WRITE, 1)) {
		done = emit_memory_call(c, helper, memory, &s->maps[s->nmaps - 1], others);
		for (int k = 0; k < 2; k++)
			x86_land(b, others[k], b->n);
	}
	for (int k = 0; k < 5; k++)
		x86_store(b, 8, X12, THREAD(args) + 8 * k, regs[1 + k]);
	x86_mov_imm(b, RDI, (uint64_t)(uintptr_t)c->p);
	x86_mov(b, true, RSI, X12);
	x86_mov_imm(b, RDX, at);
	x86_mov_imm(b, RAX, (uint64_t)(uintptr_t)vm_call_checked);
	x86_call_reg(b, RAX);
	x86_rr(b, false, 0x84, RAX, RAX);				/* test al, al */
	good = x86_jcc(b, X86_NE);
	x86_land(b, x86_call(b), c->fault);
	x86_land(b, good, b->n);
	x86_load(b, 8, false, RAX, X12, THREAD(ret));
	if (done)
		x86_land(b, done, b->n);
}

static void emit_jump(struct compiler *c, const struct vm_func *f, const struct bpf_insn *i, uint32_t at)
{
	const struct vm_note *note = &c->p->notes[at];
	struct x86_buf *b = &c->b;

	if (BPF_OP(i->code) == BPF_EXIT && f == c->p->funcs) {
		x86_land(b, x86_jmp(b), c->exit);
	} else if (BPF_OP(i->code) == BPF_EXIT) {
		x86_alu_imm(b, true, X86_ADD, RSP, 8);
		for (size_t k = sizeof(func_kept); k--;)
			x86_pop(b, func_kept[k]);
		x86_u8(b, 0xc3);					/* ret */
	} else if (BPF_OP(i->code) == BPF_JA) {
		jump_to(c, x86_jmp(b), at + 1 + (uint32_t)(BPF_CLASS(i->code) == BPF_JMP32 ? i->imm : i->off));
	} else if (i->code == VM_MAY_GOTO) {
		x86_load(b, 8, false, X11, X12, THREAD(budget));
		x86_alu_imm(b, true, X86_SUB, X11, (int32_t)(f->cost + vm_reserve(&c->p->spec, i)));
		jump_to(c, x86_jcc(b, X86_B), at + 1 + (uint32_t)i->off);
		x86_alu_imm(b, true, X86_ADD, X11, (int32_t)vm_reserve(&c->p->spec, i));
		x86_store(b, 8, X12, THREAD(budget), X11);
	} else if (BPF_OP(i->code) != BPF_CALL) {
		emit_branch(c, i, at);
	} else if (note->call == VM_CALL_FUNC) {
		emit_call(c, f, &c->p->funcs[note->to]);
	} else if (note->call == VM_CALL_LOOP) {
		emit_loop(c, f, &c->p->funcs[note->to]);
	} else if (note->call == VM_CALL_EACH) {
		emit_each(c, f, &c->p->funcs[note->to]);
	} else {
		emit_helper(c, note, at);
	}
}

static void emit_func(struct compiler *c, const struct vm_func *f)
{
	struct x86_buf *b = &c->b;

	c->calls[f->start] = (uint32_t)b->n;
	if (f == c->p->funcs) {
		emit_entry(c);
	} else {
		for (size_t k = 0; k < sizeof(func_kept); k++)
			x86_push(b, func_kept[k]);
		x86_alu_imm(b, true, X86_SUB, RSP, 8);
	}
	for (uint32_t at = f->start; at < f->end; at++) {
		const struct bpf_insn *i = &c->p->insns[at];

		c->at[at] = (uint32_t)b->n;
		switch (BPF_CLASS(i->code)) {
		case BPF_ALU: case BPF_ALU64:
			emit_alu(c, i);
			break;
		case BPF_JMP: case BPF_JMP32:
			emit_jump(c, f, i, at);
			break;
		case BPF_LD:
			x86_mov_imm(b, regs[i->dst_reg], vm_imm64(c->p, i));
			c->ends[at++] = (uint32_t)b->n;
			break;
		default:
			emit_memory(c, i, at);
		}
		c->ends[at] = (uint32_t)b->n;
	}
}

/* --- programs ---------------------------------------------------------------------------------------- */

static int emit_all(struct compiler *c)
{
	emit_exit(c);
	for (unsigned int size = 1; size <= 8; size *= 2) {
		emit_check(c, false, size);
		emit_check(c, true, size);
	}
	for (uint32_t k = 0; k < c->p->nfuncs; k++)
		emit_func(c, &c->p->funcs[k]);
	for (uint32_t k = 0; k < c->nfixes; k++)
		x86_land(&c->b, c->fixes[k].jump, (c->fixes[k].call ? c->calls : c->at)[c->fixes[k].insn]);
	return c->b.failed ? -ENOMEM : 0;
}

int vm_code_new(struct vm_prog *p)
{
	struct compiler c = { .p = p };
	struct vm_code *code = calloc(1, sizeof(*code));
	int err = -ENOMEM;
	void *at;

	c.at = calloc(p->spec.ninsns, sizeof(*c.at));
	c.calls = calloc(p->spec.ninsns, sizeof(*c.calls));
	c.ends = calloc(p->spec.ninsns, sizeof(*c.ends));
	c.fixes = calloc(p->spec.ninsns + 1, sizeof(*c.fixes));
	if (code && c.at && c.calls && c.ends && c.fixes)
		err = emit_all(&c);
	if (!err)
		err = vm_exec_map(c.b.p, c.b.n, &at);
	if (!err) {
		code->size = c.b.n;
		code->base = at;
		p->entry = (int (*)(struct vm_thread *, void *))((uintptr_t)at + c.entry);
		code->at = c.ends;
		c.ends = NULL;
		p->code = code;
		code = NULL;
	}
	free(code);
	free(c.at);
	free(c.calls);
	free(c.ends);
	free(c.fixes);
	free(c.b.p);
	return err;
}

void vm_code_free(struct vm_code *c)
{
	if (!c)
		return;
	munmap(c->base, c->size);
	free(c->at);
	free(c);
}

void vm_code_fault(const struct vm_prog *p, struct vm_thread *t)
{
	const struct vm_code *c = p->code;
	uint64_t start = (uint64_t)(uintptr_t)c->base;

	/* The fault's call returns into the code of its instruction. */
	t->fault_insn = 0;
	while (start + c->at[t->fault_insn] < t->native_fault)
		t->fault_insn++;
}

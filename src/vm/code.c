/*
 * The compiler: translates a program, one instruction at a time, to the operations of arch/jit.h.  It is independent of
 * the machine.
 *
 * Each eBPF function becomes a machine function that saves its callee-saved registers.  The stack that the program
 * sees is in struct vm_thread, so a program can never overwrite a return address.  An access that needs a check at
 * run time puts its address in T1 and calls the check routine for its size and direction, a few comparisons.  A
 * failed check returns from the entry's frame, however deep the calls are; the check's return address tells which
 * instruction failed.
 */
#include "vm/code.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

struct vm_code {
	void *base;
	size_t size;
	uint32_t *at;		/* by instruction: the offset of the end of its code */
};

static void jump_to(struct compiler *c, size_t jump, uint32_t insn)
{
	c->fixes[c->nfixes++] = (struct fix){ jump, insn, false };
}

/* --- entry and exit ------------------------------------------------------------------------------------ */

/* A bit set of the registers that the program uses. */
static uint32_t used_registers(const struct vm_prog *p)
{
	uint32_t used = 0;

	for (uint32_t at = 0; at < p->spec.ninsns; at++)
		used |= 1u << p->insns[at].dst_reg | 1u << p->insns[at].src_reg;
	return used;
}

/* The program's main function follows it. */
static void emit_entry(struct compiler *c)
{
	struct code_buf *b = &c->b;

	c->entry = b->n;
	jit_enter(b, used_registers(c->p));
	jit_mov(b, true, JIT_THREAD, JIT_R1);
	jit_store(b, 8, JIT_THREAD, THREAD(native_sp), JIT_SP);
	jit_lea(b, JIT_R10, JIT_THREAD, THREAD(stack) + VM_STACK);
	jit_mov(b, true, JIT_R1, JIT_R2);
}

/* The exits: with the result in r0; after a fault; after a timeout. */
static void emit_exit(struct compiler *c)
{
	struct code_buf *b = &c->b;
	size_t out, to_out;

	c->exit = b->n;
	jit_store(b, 8, JIT_THREAD, THREAD(ret), JIT_R0);
	jit_mov_imm(b, JIT_R0, 0);
	out = b->n;
	jit_leave(b, used_registers(c->p));
	for (int k = 0; k < 2; k++) {
		*(k ? &c->timeout : &c->fault) = b->n;			/* called: the return address tells where */
		jit_came_from(b, JIT_T1);
		jit_store(b, 8, JIT_THREAD, THREAD(native_fault), JIT_T1);
		jit_load(b, 8, false, JIT_SP, JIT_THREAD, THREAD(native_sp));
		jit_mov_imm(b, JIT_R0, (uint64_t)(k ? -ETIME : -EFAULT));
		to_out = jit_jump(b);
		jit_land(b, to_out, out);
	}
}

/* Emit a return if the @size bytes at T1 are inside the @all bytes at T2. */
static void emit_region(struct compiler *c, uint64_t all, unsigned int size)
{
	struct code_buf *b = &c->b;
	size_t next;

	jit_mov(b, true, JIT_T3, JIT_T1);
	jit_alu(b, true, JIT_SUB, JIT_T3, JIT_T2);
	jit_mov_imm(b, JIT_T2, all - size);
	jit_alu(b, true, JIT_CMP, JIT_T3, JIT_T2);
	next = jit_jump_if(b, JIT_GTU);
	jit_ret(b);
	jit_land(b, next, b->n);
}

/* Is map @k's memory part of another map's, so that checking that one is enough? */
static bool covered(const struct vm_spec *s, uint32_t k, bool write, unsigned int size)
{
	uint64_t base = (uint64_t)(uintptr_t)s->maps[k].base;

	for (uint32_t j = 0; j < s->nmaps; j++) {
		uint64_t other = (uint64_t)(uintptr_t)s->maps[j].base;

		if (j != k && code_usable(s, j, write, size) && base >= other && base - other <= s->maps[j].size &&
		    s->maps[k].size <= s->maps[j].size - (base - other) && (s->maps[k].size < s->maps[j].size || j < k))
			return true;
	}
	return false;
}

static void emit_check(struct compiler *c, bool write, unsigned int size)
{
	const struct vm_spec *s = &c->p->spec;
	struct code_buf *b = &c->b;

	c->checks[write][size] = b->n;
	for (uint32_t k = s->nmaps; k--;) {	/* the last map contains most of the others */
		if (!code_usable(s, k, write, size) || covered(s, k, write, size))
			continue;
		jit_mov_imm(b, JIT_T2, (uint64_t)(uintptr_t)s->maps[k].base);
		emit_region(c, s->maps[k].size, size);
	}
	jit_lea(b, JIT_T2, JIT_THREAD, THREAD(stack));
	emit_region(c, VM_STACK, size);
	if (s->ctx_size >= size && (!write || s->ctx_writable)) {
		jit_load(b, 8, false, JIT_T2, JIT_THREAD, THREAD(ctx));
		emit_region(c, s->ctx_size, size);
	}
	jit_land(b, jit_jump(b), c->fault);
}

/* --- arithmetic -------------------------------------------------------------------------------------- */

static void emit_alu(struct compiler *c, const struct bpf_insn *i)
{
	static const uint8_t plain[16] = { [BPF_ADD >> 4] = JIT_ADD, [BPF_SUB >> 4] = JIT_SUB, [BPF_OR >> 4] = JIT_OR,
					   [BPF_AND >> 4] = JIT_AND, [BPF_XOR >> 4] = JIT_XOR };
	bool wide = BPF_CLASS(i->code) == BPF_ALU64, reg = BPF_SRC(i->code) == BPF_X;
	int op = BPF_OP(i->code), dst = i->dst_reg, src = i->src_reg;
	enum jit_shift shift = op == BPF_LSH ? JIT_SHL : op == BPF_RSH ? JIT_SHR : JIT_SAR;
	uint64_t imm = wide ? (uint64_t)(int64_t)i->imm : (uint32_t)i->imm;
	struct code_buf *b = &c->b;

	switch (op) {
	case BPF_MOV:
		if (!reg)
			jit_mov_imm(b, dst, imm);
		else if (i->off)
			jit_extend(b, wide, i->off / 8, dst, src);
		else
			jit_mov(b, wide, dst, src);
		break;
	case BPF_LSH: case BPF_RSH: case BPF_ARSH:
		if (reg)
			jit_shift(b, wide, shift, dst, src);
		else
			jit_shift_imm(b, wide, shift, dst, i->imm);
		break;
	case BPF_MUL: case BPF_DIV: case BPF_MOD:
		if (reg)
			jit_mov(b, true, JIT_T1, src);
		else
			jit_mov_imm(b, JIT_T1, imm);
		if (op == BPF_MUL)
			jit_mul(b, wide, dst, JIT_T1);
		else
			jit_divide(b, wide, op == BPF_MOD, i->off, dst);
		break;
	case BPF_NEG:
		jit_neg(b, wide, dst);
		break;
	case BPF_END:
		if (!wide && BPF_SRC(i->code) == BPF_TO_LE)
			jit_cut(b, i->imm, dst);
		else
			jit_swap(b, i->imm, dst);
		break;
	default:
		if (reg)
			jit_alu(b, wide, plain[op >> 4], dst, src);
		else
			jit_alu_imm(b, wide, plain[op >> 4], dst, i->imm);
	}
}

/* --- memory ------------------------------------------------------------------------------------------ */

static void emit_atomic(struct compiler *c, const struct bpf_insn *i, bool wide)
{
	int op = i->imm & ~BPF_FETCH;
	enum jit_alu alu = op == BPF_ADD ? JIT_ADD : op == BPF_OR ? JIT_OR : op == BPF_AND ? JIT_AND : JIT_XOR;

	if (i->imm == BPF_XCHG)
		jit_xchg(&c->b, wide, i->src_reg);
	else if (i->imm == BPF_CMPXCHG)
		jit_cmpxchg(&c->b, wide, i->src_reg);
	else if (i->imm & BPF_FETCH)
		jit_fetch(&c->b, wide, alu, i->src_reg);
	else
		jit_atomic(&c->b, wide, alu, i->src_reg);
}

static void emit_memory(struct compiler *c, const struct bpf_insn *i, uint32_t at)
{
	bool is_load = BPF_CLASS(i->code) == BPF_LDX;
	bool atomic = BPF_CLASS(i->code) == BPF_STX && BPF_MODE(i->code) == BPF_ATOMIC;
	int dst = i->dst_reg, src = i->src_reg, base = is_load ? src : dst;
	unsigned int size = vm_size(i->code);
	struct code_buf *b = &c->b;
	int32_t off = i->off;
	size_t good;

	if (atomic || !c->p->notes[at].safe) {
		jit_lea(b, JIT_T1, base, off);
		base = JIT_T1;
		off = 0;
	}
	if (!c->p->notes[at].safe) {
		if (atomic) {
			jit_test_imm(b, JIT_T1, size - 1);
			good = jit_jump_if(b, JIT_EQ);
			jit_land(b, jit_call(b), c->fault);
			jit_land(b, good, b->n);
		}
		jit_land(b, jit_call(b), c->checks[!is_load][size]);
	}
	if (is_load) {
		jit_load(b, (int)size, BPF_MODE(i->code) == VM_MEMSX, dst, base, off);
	} else if (atomic) {
		emit_atomic(c, i, size == 8);
	} else if (BPF_CLASS(i->code) == BPF_ST) {
		jit_mov_imm(b, JIT_T2, (uint64_t)(int64_t)i->imm);
		jit_store(b, (int)size, base, off, JIT_T2);
	} else {
		jit_store(b, (int)size, base, off, src);
	}
}

/* --- jumps and calls --------------------------------------------------------------------------------- */

static void emit_branch(struct compiler *c, const struct bpf_insn *i, uint32_t at)
{
	static const uint8_t ccs[16] = {
		[BPF_JEQ >> 4] = JIT_EQ, [BPF_JNE >> 4] = JIT_NE, [BPF_JSET >> 4] = JIT_NE, [BPF_JGT >> 4] = JIT_GTU,
		[BPF_JGE >> 4] = JIT_GEU, [BPF_JLT >> 4] = JIT_LTU, [BPF_JLE >> 4] = JIT_LEU, [BPF_JSGT >> 4] = JIT_GTS,
		[BPF_JSGE >> 4] = JIT_GES, [BPF_JSLT >> 4] = JIT_LTS, [BPF_JSLE >> 4] = JIT_LES,
	};
	bool wide = BPF_CLASS(i->code) == BPF_JMP;
	int dst = i->dst_reg, src = i->src_reg;
	struct code_buf *b = &c->b;

	if (BPF_SRC(i->code) == BPF_K && BPF_OP(i->code) == BPF_JSET) {
		jit_mov_imm(b, JIT_T1, (uint64_t)(int64_t)i->imm);
		src = JIT_T1;
	}
	if (BPF_OP(i->code) == BPF_JSET)
		jit_test(b, wide, dst, src);
	else if (BPF_SRC(i->code) == BPF_K)
		jit_alu_imm(b, wide, JIT_CMP, dst, i->imm);
	else
		jit_alu(b, wide, JIT_CMP, dst, src);
	jump_to(c, jit_jump_if(b, ccs[BPF_OP(i->code) >> 4]), at + 1 + (uint32_t)i->off);
}

static void emit_jump(struct compiler *c, const struct vm_func *f, const struct bpf_insn *i, uint32_t at)
{
	struct code_buf *b = &c->b;

	if (BPF_OP(i->code) == BPF_EXIT && f == c->p->funcs) {
		jit_land(b, jit_jump(b), c->exit);
	} else if (BPF_OP(i->code) == BPF_EXIT) {
		jit_func_leave(b);
	} else if (BPF_OP(i->code) == BPF_JA) {
		jump_to(c, jit_jump(b), at + 1 + (uint32_t)(BPF_CLASS(i->code) == BPF_JMP32 ? i->imm : i->off));
	} else if (i->code == VM_MAY_GOTO) {
		jit_load(b, 8, false, JIT_T1, JIT_THREAD, THREAD(budget));
		jit_alu_imm(b, true, JIT_SUB, JIT_T1, (int32_t)(f->cost + vm_reserve(&c->p->spec, i)));
		jump_to(c, jit_jump_if(b, JIT_LTU), at + 1 + (uint32_t)i->off);
		jit_alu_imm(b, true, JIT_ADD, JIT_T1, (int32_t)vm_reserve(&c->p->spec, i));
		jit_store(b, 8, JIT_THREAD, THREAD(budget), JIT_T1);
	} else if (BPF_OP(i->code) != BPF_CALL) {
		emit_branch(c, i, at);
	} else {
		code_call(c, f, at);
	}
}

static void emit_func(struct compiler *c, const struct vm_func *f)
{
	struct code_buf *b = &c->b;

	c->calls[f->start] = (uint32_t)b->n;
	if (f == c->p->funcs)
		emit_entry(c);
	else
		jit_func_enter(b);
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
			jit_mov_imm(b, i->dst_reg, vm_imm64(c->p, i));
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
		jit_land(&c->b, c->fixes[k].jump, (c->fixes[k].call ? c->calls : c->at)[c->fixes[k].insn]);
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
		jit_flush(at, c.b.n);
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

	/* The return address is in the code of the instruction that failed. */
	t->fault_insn = 0;
	while (start + c->at[t->fault_insn] < t->native_fault)
		t->fault_insn++;
}

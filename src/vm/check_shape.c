/*
 * The check of a program, first pass: each instruction by itself, functions, jump targets (check.c).
 */
#include "vm/check.h"

#include <errno.h>
#include <stdlib.h>

static bool alu_known(const struct bpf_insn *i)
{
	bool wide = BPF_CLASS(i->code) == BPF_ALU64, reg = BPF_SRC(i->code) == BPF_X;
	int op = BPF_OP(i->code);

	if (op == BPF_END)	/* the source bit selects the byte order; the 64-bit form always swaps */
		return (i->imm == 16 || i->imm == 32 || i->imm == 64) && !i->src_reg && !i->off && !(wide && reg);
	if (op == BPF_NEG)
		return !reg && !i->src_reg && !i->off && !i->imm;
	if (op > BPF_END)
		return false;
	if (reg ? i->imm : i->src_reg)
		return false;
	if (op == BPF_MOV && reg)
		return !i->off || i->off == 8 || i->off == 16 || (wide && i->off == 32);
	if (op == BPF_DIV || op == BPF_MOD)
		return i->off == 0 || i->off == 1;
	return !i->off;
}

static bool jump_known(const struct bpf_insn *i)
{
	bool reg = BPF_SRC(i->code) == BPF_X;

	switch (i->code) {
	case VM_MAY_GOTO:
		return !i->dst_reg && !i->src_reg && (!i->imm || i->imm == VM_LAST);
	case BPF_JMP | BPF_EXIT:
		return !i->dst_reg && !i->src_reg && !i->off && !i->imm;
	case BPF_JMP | BPF_CALL:
		return !i->dst_reg && !i->off && (!i->src_reg || i->src_reg == BPF_PSEUDO_CALL);
	case BPF_JMP | BPF_JA:
		return !i->dst_reg && !i->src_reg && !i->imm;
	case BPF_JMP32 | BPF_JA:
		return !i->dst_reg && !i->src_reg && !i->off;
	}
	if (BPF_OP(i->code) == BPF_CALL || BPF_OP(i->code) == BPF_EXIT || BPF_OP(i->code) == BPF_JA ||
	    BPF_OP(i->code) > BPF_JSLE)
		return false;
	return reg ? !i->imm : !i->src_reg;
}

static bool atomic_known(const struct bpf_insn *i)
{
	if (vm_size(i->code) < 4)
		return false;
	switch (i->imm) {
	case BPF_ADD: case BPF_OR: case BPF_AND: case BPF_XOR:
	case BPF_ADD | BPF_FETCH: case BPF_OR | BPF_FETCH: case BPF_AND | BPF_FETCH: case BPF_XOR | BPF_FETCH:
	case BPF_XCHG: case BPF_CMPXCHG:
		return true;
	}
	return false;
}

static bool known(const struct bpf_insn *i)
{
	switch (BPF_CLASS(i->code)) {
	case BPF_ALU:
	case BPF_ALU64:
		return alu_known(i);
	case BPF_JMP:
	case BPF_JMP32:
		return jump_known(i);
	case BPF_LDX:
		if (BPF_MODE(i->code) == VM_MEMSX)
			return !i->imm && BPF_SIZE(i->code) != BPF_DW;
		return !i->imm && BPF_MODE(i->code) == BPF_MEM;
	case BPF_ST:
		return !i->src_reg && BPF_MODE(i->code) == BPF_MEM;
	case BPF_STX:
		if (BPF_MODE(i->code) == BPF_ATOMIC)
			return atomic_known(i);
		return !i->imm && BPF_MODE(i->code) == BPF_MEM;
	default:
		return is_imm64(i) && !i->off;
	}
}

int vm_written(const struct bpf_insn *i)
{
	switch (BPF_CLASS(i->code)) {
	case BPF_ALU:
	case BPF_ALU64:
	case BPF_LDX:
	case BPF_LD:
		return i->dst_reg;
	case BPF_STX:
		if (BPF_MODE(i->code) != BPF_ATOMIC || !(i->imm & BPF_FETCH))
			return -1;
		return i->imm == BPF_CMPXCHG ? 0 : i->src_reg;
	default:
		return -1;
	}
}

static int imm64_shape(struct check *c, uint32_t at)
{
	const struct bpf_insn *i = &c->p->insns[at], *high = i + 1;
	const struct vm_spec *s = &c->p->spec;

	if (at + 1 == c->n || high->code || high->dst_reg || high->src_reg || high->off)
		return vm_refuse(c, at, "half of a 64-bit load");
	c->second[at + 1] = true;
	switch (i->src_reg) {
	case 0:
		return 0;
	case BPF_PSEUDO_MAP_FD:
		if ((uint32_t)i->imm >= s->nmaps || high->imm)
			return vm_refuse(c, at, "no map %u", (uint32_t)i->imm);
		return 0;
	case BPF_PSEUDO_MAP_VALUE:
		if ((uint32_t)i->imm >= s->nmaps || !s->maps[i->imm].base)
			return vm_refuse(c, at, "no values in map %u", (uint32_t)i->imm);
		if ((uint32_t)high->imm >= s->maps[i->imm].size || high->imm < 0)
			return vm_refuse(c, at, "offset %u is outside of map %u", (uint32_t)high->imm, (uint32_t)i->imm);
		return 0;
	case VM_PSEUDO_FUNC:
		if (high->imm)
			return vm_refuse(c, at, "unknown 64-bit load");
		return 0;
	default:
		return vm_refuse(c, at, "unknown 64-bit load");
	}
}

static int insn_shape(struct check *c, uint32_t at)
{
	const struct bpf_insn *i = &c->p->insns[at];
	int op = BPF_OP(i->code);

	if (!known(i))
		return vm_refuse(c, at, "unknown instruction 0x%02x", i->code);
	if (i->dst_reg > 10 || (!is_imm64(i) && i->src_reg > 10))
		return vm_refuse(c, at, "there is no such register");
	if (vm_written(i) == 10)
		return vm_refuse(c, at, "r10 is read-only");
	if (is_imm64(i))
		return imm64_shape(c, at);
	if ((BPF_CLASS(i->code) == BPF_ALU || BPF_CLASS(i->code) == BPF_ALU64) && BPF_SRC(i->code) == BPF_K) {
		unsigned int bits = BPF_CLASS(i->code) == BPF_ALU ? 32 : 64;

		if ((op == BPF_DIV || op == BPF_MOD) && !i->imm)
			return vm_refuse(c, at, "division by 0");
		if ((op == BPF_LSH || op == BPF_RSH || op == BPF_ARSH) && (uint32_t)i->imm >= bits)
			return vm_refuse(c, at, "shift by %d", i->imm);
	}
	return 0;
}

/* Mark the target of the call or reference at @at as the start of a function. */
static int mark_func(struct check *c, uint32_t at)
{
	int64_t to = (int64_t)at + 1 + c->p->insns[at].imm;

	if (to < 0 || to >= c->n || c->second[to])
		return vm_refuse(c, at, "call of no function");
	c->func_at[to] = 1;
	return 0;
}

static int list_funcs(struct check *c)
{
	struct vm_prog *p = c->p;
	uint32_t k = 0;

	c->func_at[0] = 1;
	for (uint32_t at = 0; at < c->n; at++) {
		if (!c->second[at] && (is_func_call(&p->insns[at]) || is_func_ref(&p->insns[at]))) {
			int err = mark_func(c, at);

			if (err)
				return err;
		}
	}
	for (uint32_t at = 0; at < c->n; at++)
		p->nfuncs += c->func_at[at];
	p->funcs = calloc(p->nfuncs, sizeof(*p->funcs));
	if (!p->funcs)
		return -ENOMEM;
	for (uint32_t at = 0; at < c->n; at++) {
		if (!c->func_at[at])
			continue;
		if (k)
			p->funcs[k - 1].end = at;
		p->funcs[k].start = at;
		c->func_at[at] = ++k;
	}
	p->funcs[k - 1].end = c->n;
	return 0;
}

static int func_shape(struct check *c, const struct vm_func *f)
{
	const struct bpf_insn *insns = c->p->insns;
	uint32_t last = f->end - 1;

	for (uint32_t at = f->start; at < f->end; at++) {
		const struct bpf_insn *i = &insns[at];
		int64_t to;

		if (c->second[at] || (!is_goto(i) && !is_branch(i)))
			continue;
		to = jump_to(i, at);
		if (to < f->start || to >= f->end || c->second[to])
			return vm_refuse(c, at, "jump to no instruction of the function");
	}
	if (c->second[last] || (!is_exit(&insns[last]) && !is_goto(&insns[last])))
		return vm_refuse(c, last, "the function does not end here");
	return 0;
}

int vm_check_shape(struct check *c)
{
	int err = 0;

	for (uint32_t at = 0; !err && at < c->n; at += c->second[at + 1] ? 2 : 1)
		err = insn_shape(c, at);
	if (!err)
		err = list_funcs(c);
	for (uint32_t k = 0; !err && k < c->p->nfuncs; k++)
		err = func_shape(c, &c->p->funcs[k]);
	return err;
}

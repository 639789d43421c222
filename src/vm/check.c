/*
 * The check at load time: what vm.h promises of programs that run.
 *
 * Four steps, each over the whole program:
 *
 *	shape	each instruction by itself: opcode, registers, unused fields; functions, and that jumps stay in
 *		theirs
 *	graph	functions in an order in which callers come before what they call; no recursion, no loops but
 *		through may_goto; costs
 *	flow	what registers hold, function by function in that order.  Instructions have an order, too, in which
 *		each comes after all that lead to it, may_gotos' way on excepted: one pass is enough without
 *		them, else it is repeated until nothing changes
 *	frames	the stack that chains of calls need
 *
 * A register holds nothing yet, a number, or a pointer known to be the stack, the context, a map's value plus
 * a constant; a map; a function.  Where two ways meet with different contents it is a number: numbers may
 * be used as addresses, since such accesses are compared when they run.  Only what must be known when
 * loading (maps for helpers, callbacks) is refused then.  Pointers to the stack and functions are not handed
 * to called functions as such: a frame's offset means another place there, and a function that calls what
 * it was handed could recurse.
 */
#include "vm/prog.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { UNSET, NUMBER, FRAME, CTX, VALUE, SCRATCH, MAP, FUNC };

struct val {
	uint8_t kind;
	uint32_t index;		/* VALUE, MAP: the map; FUNC: the function; NUMBER: 1 if it is known */
	int32_t off;		/* FRAME, CTX, VALUE, SCRATCH; a NUMBER that is known, which is not negative */
};

struct state {
	bool reached;
	struct val r[11];
};

enum mark { NEW, OPEN, DONE };

struct check {
	struct vm_prog *p;
	struct vm_error *err;
	uint32_t n;
	bool *second;		/* the second half of an ld_imm64 */
	uint32_t *func_at;	/* by instruction: 1 + the function that starts there */
	enum mark *marks;	/* by function */
	uint32_t *depth;	/* by function: frames that calls from it nest, it included */
	uint32_t *order, norder;	/* callees before callers */
	uint32_t *seq;		/* for each function from its start on: instructions in an order of execution */
	enum mark *seen;	/* by instruction, while that is found */
	uint32_t *ways;		/* by instruction: the most instructions that lead to it */
	struct state *states;	/* by instruction: before it */
	bool *called;		/* by function */
};

static int refuse(struct check *c, uint32_t insn, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static int refuse(struct check *c, uint32_t insn, const char *fmt, ...)
{
	va_list ap;

	c->err->insn = insn;
	va_start(ap, fmt);
	vsnprintf(c->err->text, sizeof(c->err->text), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static bool is_imm64(const struct bpf_insn *i)
{
	return i->code == (BPF_LD | BPF_IMM | BPF_DW);
}

static bool is_func_ref(const struct bpf_insn *i)
{
	return is_imm64(i) && i->src_reg == VM_PSEUDO_FUNC;
}

static bool is_func_call(const struct bpf_insn *i)
{
	return i->code == (BPF_JMP | BPF_CALL) && i->src_reg == BPF_PSEUDO_CALL;
}

static bool is_exit(const struct bpf_insn *i)
{
	return i->code == (BPF_JMP | BPF_EXIT);
}

static bool is_may_goto(const struct bpf_insn *i)
{
	return i->code == VM_MAY_GOTO;
}

static bool is_goto(const struct bpf_insn *i)
{
	return (BPF_CLASS(i->code) == BPF_JMP || BPF_CLASS(i->code) == BPF_JMP32) && BPF_OP(i->code) == BPF_JA;
}

static bool is_branch(const struct bpf_insn *i)
{
	return (BPF_CLASS(i->code) == BPF_JMP || BPF_CLASS(i->code) == BPF_JMP32) && BPF_OP(i->code) != BPF_CALL &&
	       BPF_OP(i->code) != BPF_EXIT && BPF_OP(i->code) != BPF_JA;
}

/* Where the goto or branch at @at leads. */
static int64_t jump_to(const struct bpf_insn *i, uint32_t at)
{
	return (int64_t)at + 1 + (i->code == (BPF_JMP32 | BPF_JA) ? i->imm : i->off);
}

/* --- shape ------------------------------------------------------------------------------------------- */

static bool alu_known(const struct bpf_insn *i)
{
	bool wide = BPF_CLASS(i->code) == BPF_ALU64, reg = BPF_SRC(i->code) == BPF_X;
	int op = BPF_OP(i->code);

	if (op == BPF_END)	/* the source bit says to which order; with 64 bits it always swaps */
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

/* The register that @i writes by itself (calls aside), or -1. */
static int written(const struct bpf_insn *i)
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
		return refuse(c, at, "half of a 64-bit load");
	c->second[at + 1] = true;
	switch (i->src_reg) {
	case 0:
		return 0;
	case BPF_PSEUDO_MAP_FD:
		if ((uint32_t)i->imm >= s->nmaps || high->imm)
			return refuse(c, at, "no map %u", (uint32_t)i->imm);
		return 0;
	case BPF_PSEUDO_MAP_VALUE:
		if ((uint32_t)i->imm >= s->nmaps || !s->maps[i->imm].base)
			return refuse(c, at, "no values in map %u", (uint32_t)i->imm);
		if ((uint32_t)high->imm >= s->maps[i->imm].size || high->imm < 0)
			return refuse(c, at, "offset %u is outside of map %u", (uint32_t)high->imm, (uint32_t)i->imm);
		return 0;
	case VM_PSEUDO_FUNC:
		if (high->imm)
			return refuse(c, at, "unknown 64-bit load");
		return 0;
	default:
		return refuse(c, at, "unknown 64-bit load");
	}
}

static int insn_shape(struct check *c, uint32_t at)
{
	const struct bpf_insn *i = &c->p->insns[at];
	int op = BPF_OP(i->code);

	if (!known(i))
		return refuse(c, at, "unknown instruction 0x%02x", i->code);
	if (i->dst_reg > 10 || (!is_imm64(i) && i->src_reg > 10))
		return refuse(c, at, "there is no such register");
	if (written(i) == 10)
		return refuse(c, at, "r10 is read-only");
	if (is_imm64(i))
		return imm64_shape(c, at);
	if ((BPF_CLASS(i->code) == BPF_ALU || BPF_CLASS(i->code) == BPF_ALU64) && BPF_SRC(i->code) == BPF_K) {
		unsigned int bits = BPF_CLASS(i->code) == BPF_ALU ? 32 : 64;

		if ((op == BPF_DIV || op == BPF_MOD) && !i->imm)
			return refuse(c, at, "division by 0");
		if ((op == BPF_LSH || op == BPF_RSH || op == BPF_ARSH) && (uint32_t)i->imm >= bits)
			return refuse(c, at, "shift by %d", i->imm);
	}
	return 0;
}

/* Note that a function starts where the call or reference at @at says. */
static int mark_func(struct check *c, uint32_t at)
{
	int64_t to = (int64_t)at + 1 + c->p->insns[at].imm;

	if (to < 0 || to >= c->n || c->second[to])
		return refuse(c, at, "call of no function");
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
			return refuse(c, at, "jump to no instruction of the function");
	}
	if (c->second[last] || (!is_exit(&insns[last]) && !is_goto(&insns[last])))
		return refuse(c, last, "the function does not end here");
	return 0;
}

static int shape(struct check *c)
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

/* --- graph ------------------------------------------------------------------------------------------- */

static uint32_t callee(const struct check *c, uint32_t at)
{
	return c->func_at[at + 1 + (uint32_t)c->p->insns[at].imm] - 1;
}

/* The @k-th instruction that can follow that at @at, or 0 (which follows none). */
static uint32_t follower(const struct check *c, uint32_t at, int k)
{
	const struct bpf_insn *i = &c->p->insns[at];

	if (is_exit(i) || (k == 1 && !is_branch(i)) || k > 1)
		return 0;
	if (k == 1 || is_goto(i))
		return (uint32_t)jump_to(i, at);
	return at + (is_imm64(i) ? 2 : 1);
}

/* The same, but for the way on from a may_goto: what is left has no loops. */
static uint32_t forward(const struct check *c, uint32_t at, int k)
{
	return k == 0 && is_may_goto(&c->p->insns[at]) ? 0 : follower(c, at, k);
}

/* Order what can be reached from @root and was not seen, in front of seq[*done]; depth first. */
static int sort_from(struct check *c, const struct vm_func *f, uint32_t root, uint32_t *first)
{
	uint32_t *stack = &c->seq[f->start], open = 0, done = *first;

	stack[open++] = root;
	c->seen[root] = OPEN;
	while (open) {
		uint32_t at = stack[open - 1], to = 0;

		for (int k = 0; k < 2; k++) {
			uint32_t next = forward(c, at, k);

			if (next && c->seen[next] == OPEN)
				return refuse(c, at, "a loop without may_goto");
			if (next && c->seen[next] == NEW)
				to = next;
		}
		if (to) {
			c->seen[to] = OPEN;
			stack[open++] = to;
		} else {
			c->seen[at] = DONE;
			open--;
			c->seq[--done] = at;
		}
	}
	*first = done;
	return 0;
}

/*
 * Put the instructions of @f in an order in which each comes behind all that lead to it: compilers jump back to
 * shared ends of functions, which is no loop.  It is filled from its end; the part of it not yet filled is the
 * stack.
 */
static int sort(struct check *c, const struct vm_func *f)
{
	uint32_t *stack = &c->seq[f->start], done = f->end;
	int err = sort_from(c, f, f->start, &done);
	bool more = true;

	while (!err && more) {
		more = false;
		for (uint32_t at = f->start; !err && at < f->end; at++) {
			if (c->second[at] || c->seen[at] != DONE || !is_may_goto(&c->p->insns[at]) ||
			    c->seen[at + 1] != NEW)
				continue;
			err = sort_from(c, f, at + 1, &done);
			more = true;
		}
	}
	if (err)
		return err;
	for (uint32_t at = f->start; at < f->end; at++) {
		if (c->seen[at] == NEW && !c->second[at])
			return refuse(c, at, "unreachable");
	}
	/* Second halves are not in it: close the gap. */
	memmove(stack, &c->seq[done], (f->end - done) * sizeof(*stack));
	for (uint32_t k = f->start + f->end - done; k < f->end; k++)
		c->seq[k] = UINT32_MAX;
	return 0;
}

/* The longest way through @f, whose callees are done.  A callback is charged by its loop. */
static int cost_of(struct check *c, struct vm_func *f)
{
	for (uint32_t n = f->start; n < f->end && c->seq[n] != UINT32_MAX; n++) {
		uint32_t at = c->seq[n], ways = c->ways[at] + 1;

		if (is_func_call(&c->p->insns[at]))
			ways += c->p->funcs[callee(c, at)].cost;
		if (ways > VM_MAX_COST)
			return refuse(c, at, "more than %d instructions in a run", VM_MAX_COST);
		for (int k = 0; k < 2; k++) {
			uint32_t to = forward(c, at, k);

			if (to && ways > c->ways[to])
				c->ways[to] = ways;
		}
		f->cost = ways > f->cost ? ways : f->cost;
	}
	return 0;
}

/* @nest frames are open with that of @k. */
static int visit(struct check *c, uint32_t k, unsigned int nest)
{
	struct vm_func *f = &c->p->funcs[k];
	int err;

	c->marks[k] = OPEN;
	c->depth[k] = 1;
	for (uint32_t at = f->start; at < f->end; at++) {
		uint32_t to;

		if (c->second[at] || (!is_func_call(&c->p->insns[at]) && !is_func_ref(&c->p->insns[at])))
			continue;
		to = callee(c, at);
		if (c->marks[to] == OPEN)
			return refuse(c, at, "recursion");
		if (nest == VM_MAX_FRAMES)
			return refuse(c, at, "calls nest deeper than %d", VM_MAX_FRAMES);
		if (c->marks[to] == NEW) {
			err = visit(c, to, nest + 1);
			if (err)
				return err;
		}
		if (c->depth[to] + 1 > c->depth[k])
			c->depth[k] = c->depth[to] + 1;
		if (c->depth[k] > VM_MAX_FRAMES)
			return refuse(c, at, "calls nest deeper than %d", VM_MAX_FRAMES);
	}
	c->marks[k] = DONE;
	c->order[c->norder++] = k;
	err = sort(c, f);
	return err ? err : cost_of(c, f);
}

static int graph(struct check *c)
{
	int err = visit(c, 0, 1);

	if (err)
		return err;
	for (uint32_t k = 0; k < c->p->nfuncs; k++) {
		if (c->marks[k] == NEW)
			return refuse(c, c->p->funcs[k].start, "unreachable");
	}
	return 0;
}

/* --- flow -------------------------------------------------------------------------------------------- */

static const struct val number = { .kind = NUMBER }, unset = { .kind = UNSET };

static bool same(struct val a, struct val b)
{
	return a.kind == b.kind && a.index == b.index && a.off == b.off;
}

/* Whether that changed *into. */
static bool merge_val(struct val *into, struct val v)
{
	struct val old = *into;

	if (into->kind == UNSET || v.kind == UNSET)
		*into = unset;
	else if (!same(*into, v))
		*into = number;
	return !same(old, *into);
}

static bool merge(struct state *into, const struct state *s)
{
	bool changed = false;

	if (!into->reached) {
		*into = *s;
		return true;
	}
	for (int k = 0; k <= 10; k++)
		changed |= merge_val(&into->r[k], s->r[k]);
	return changed;
}

/* As a function that is called sees it. */
static struct val handed(struct val v)
{
	return v.kind == FRAME || v.kind == FUNC ? number : v;
}

static void enter(struct check *c, uint32_t func, struct val args[5])
{
	struct state s = { .reached = true };

	for (int k = 0; k < 5; k++)
		s.r[1 + k] = handed(args[k]);
	s.r[10] = (struct val){ .kind = FRAME };
	merge(&c->states[c->p->funcs[func].start], &s);
}

static int need(struct check *c, uint32_t at, const struct state *s, int reg)
{
	if (s->r[reg].kind == UNSET)
		return refuse(c, at, "r%d has no value", reg);
	return 0;
}

/* A pointer into the frame is kept or used: the frame must reach that far. */
static void use_frame(struct vm_func *f, struct val v)
{
	if (v.kind == FRAME && v.off < 0 && v.off >= -VM_STACK && (uint32_t)-v.off > f->frame)
		f->frame = (uint32_t)-v.off;
}

static int access(struct check *c, struct vm_func *f, uint32_t at, struct val base, bool write)
{
	const struct vm_spec *spec = &c->p->spec;
	const struct bpf_insn *i = &c->p->insns[at];
	bool atomic = BPF_CLASS(i->code) == BPF_STX && BPF_MODE(i->code) == BPF_ATOMIC;
	int64_t size = vm_size(i->code), off = (int64_t)base.off + i->off;
	const struct vm_map *map = base.kind == VALUE ? &spec->maps[base.index] : NULL;

	switch (base.kind) {
	case FRAME:
		if (off < -VM_STACK || off + size > 0)
			return refuse(c, at, "outside of the stack");
		base.off = (int32_t)off;
		use_frame(f, base);
		break;
	case CTX:
		if (off < 0 || off + size > spec->ctx_size)
			return refuse(c, at, "outside of the context");
		if (write && !spec->ctx_writable)
			return refuse(c, at, "the context is read-only");
		break;
	case SCRATCH:
		if (off < 0 || off + size > spec->scratch)
			return refuse(c, at, "outside of the scratch memory");
		break;
	case VALUE:
		if (off < 0 || (uint64_t)(off + size) > map->size)
			return refuse(c, at, "outside of map %u", base.index);
		if (write && map->readonly)
			return refuse(c, at, "map %u is read-only", base.index);
		break;
	case NUMBER:
		c->p->notes[at].safe = false;	/* an earlier pass may have known better */
		return 0;
	default:
		return refuse(c, at, "not a pointer to memory");
	}
	if (atomic && off % size)
		return refuse(c, at, "unaligned atomic operation");
	c->p->notes[at].safe = true;
	return 0;
}

/* dst op= src of 64 bits, where dst may be a pointer. */
static struct val pointer_alu(struct vm_func *f, const struct bpf_insn *i, struct val dst, struct val src)
{
	int64_t off = dst.off;

	if (i->code == (BPF_ALU64 | BPF_MOV | BPF_X) && !i->off)
		return src;
	if (i->code == (BPF_ALU64 | BPF_MOV | BPF_K) && i->imm >= 0)
		return (struct val){ .kind = NUMBER, .index = 1, .off = i->imm };
	if (dst.kind != FRAME && dst.kind != CTX && dst.kind != VALUE && dst.kind != SCRATCH)
		return number;
	if (i->code == (BPF_ALU64 | BPF_ADD | BPF_K))
		off += i->imm;
	else if (i->code == (BPF_ALU64 | BPF_SUB | BPF_K))
		off -= i->imm;
	else
		return number;
	if (off != (int32_t)off)
		return number;
	dst.off = (int32_t)off;
	use_frame(f, dst);
	return dst;
}

static int alu_flow(struct check *c, struct vm_func *f, uint32_t at, struct state *s)
{
	const struct bpf_insn *i = &c->p->insns[at];
	bool reg = BPF_SRC(i->code) == BPF_X && BPF_OP(i->code) != BPF_END;
	int err = reg ? need(c, at, s, i->src_reg) : 0;

	if (!err && BPF_OP(i->code) != BPF_MOV)
		err = need(c, at, s, i->dst_reg);
	if (!err)
		s->r[i->dst_reg] = pointer_alu(f, i, s->r[i->dst_reg], s->r[i->src_reg]);
	return err;
}

static void imm64_flow(struct check *c, uint32_t at, struct state *s)
{
	const struct bpf_insn *i = &c->p->insns[at];
	struct val v = { .kind = NUMBER };

	if (i->src_reg == BPF_PSEUDO_MAP_FD)
		v = (struct val){ .kind = MAP, .index = (uint32_t)i->imm };
	else if (i->src_reg == BPF_PSEUDO_MAP_VALUE)
		v = (struct val){ .kind = VALUE, .index = (uint32_t)i->imm, .off = i[1].imm };
	else if (i->src_reg == VM_PSEUDO_FUNC)
		v = (struct val){ .kind = FUNC, .index = callee(c, at) };
	s->r[i->dst_reg] = v;
}

static const struct vm_helper *find_helper(const struct vm_spec *spec, uint32_t number_of)
{
	for (uint32_t k = 0; k < spec->nhelpers; k++) {
		if (spec->helpers[k].number == number_of)
			return &spec->helpers[k];
	}
	return NULL;
}

/* May the @size bytes at @v be used, whatever the data? */
static bool decided(const struct vm_spec *spec, struct val v, int64_t size, bool write)
{
	int64_t end = v.off + size;

	switch (v.kind) {
	case FRAME:
		return v.off >= -VM_STACK && end <= 0;
	case CTX:
		return v.off >= 0 && end <= spec->ctx_size && (!write || spec->ctx_writable);
	case SCRATCH:
		return v.off >= 0 && end <= spec->scratch;
	case VALUE:
		return v.off >= 0 && (uint64_t)end <= spec->maps[v.index].size && !(write && spec->maps[v.index].readonly);
	default:
		return false;
	}
}

static int helper_flow(struct check *c, uint32_t at, struct state *s)
{
	const struct vm_spec *spec = &c->p->spec;
	struct vm_note *note = &c->p->notes[at];
	const struct vm_helper *h = find_helper(spec, (uint32_t)c->p->insns[at].imm);
	bool have_map = false;

	if (!h)
		return refuse(c, at, "no helper %d", c->p->insns[at].imm);
	note->to = (uint32_t)(h - spec->helpers);
	note->call = VM_CALL_HELPER;
	for (int k = 0; k < 5 && h->args[k] != VM_ARG_NONE; k++) {
		enum vm_arg next = k < 4 ? h->args[k + 1] : VM_ARG_NONE;
		int err = need(c, at, s, 1 + k);

		if (err)
			return err;
		switch (h->args[k]) {
		case VM_ARG_MAP:
			if (s->r[1 + k].kind != MAP && s->r[1 + k].kind != NUMBER)
				return refuse(c, at, "r%d must be a map", 1 + k);
			/* A callback is handed several: the map is found when it runs. */
			note->map = s->r[1 + k].kind == MAP ? s->r[1 + k].index : VM_ANY_MAP;
			if (note->map == VM_ANY_MAP)
				note->call = VM_CALL_CHECKED;
			have_map = true;
			break;
		case VM_ARG_KEY:
		case VM_ARG_VALUE:
			if (!have_map)
				return refuse(c, at, "helper %u has a key without a map", h->number);
			if (note->map == VM_ANY_MAP ||
			    !decided(spec, s->r[1 + k], h->args[k] == VM_ARG_KEY ? spec->maps[note->map].key_size :
				     spec->maps[note->map].value_size, false))
				note->call = VM_CALL_CHECKED;
			break;
		case VM_ARG_READ:
		case VM_ARG_WRITE:
			if (next != VM_ARG_SIZE)
				return refuse(c, at, "helper %u has memory without a size", h->number);
			if (s->r[2 + k].kind != NUMBER || !s->r[2 + k].index ||
			    !decided(spec, s->r[1 + k], s->r[2 + k].off, h->args[k] == VM_ARG_WRITE))
				note->call = VM_CALL_CHECKED;
			break;
		default:
			break;
		}
	}
	if (h->ret == VM_RET_SCRATCH && !spec->scratch)
		return refuse(c, at, "there is no scratch memory");
	if (h->ret == VM_RET_CTX)
		s->r[0] = (struct val){ .kind = CTX };
	else if (h->ret == VM_RET_SCRATCH)
		s->r[0] = (struct val){ .kind = SCRATCH };
	else
		s->r[0] = h->ret == VM_RET_VOID ? unset : number;
	return 0;
}

static int loop_flow(struct check *c, uint32_t at, struct state *s)
{
	struct vm_note *note = &c->p->notes[at];
	struct val args[5] = { number, s->r[3] };
	int err = 0;

	for (int k = 1; !err && k <= 4; k++)
		err = need(c, at, s, k);
	if (err)
		return err;
	if (s->r[2].kind != FUNC)
		return refuse(c, at, "r2 must be a function");
	note->call = VM_CALL_LOOP;
	note->to = s->r[2].index;
	enter(c, note->to, args);
	s->r[0] = number;
	return 0;
}

static int each_flow(struct check *c, uint32_t at, struct state *s)
{
	struct vm_note *note = &c->p->notes[at];
	struct val args[5] = { s->r[1], number, number, s->r[3] };
	int err = 0;

	for (int k = 1; !err && k <= 4; k++)
		err = need(c, at, s, k);
	if (err)
		return err;
	if (s->r[1].kind != MAP)
		return refuse(c, at, "r1 must be a map");
	if (!c->p->spec.next || !c->p->spec.maps[s->r[1].index].walked)
		return refuse(c, at, "map %u cannot be walked", s->r[1].index);
	if (s->r[2].kind != FUNC)
		return refuse(c, at, "r2 must be a function");
	note->call = VM_CALL_EACH;
	note->to = s->r[2].index;
	note->map = s->r[1].index;
	enter(c, note->to, args);
	s->r[0] = number;
	return 0;
}

static int call_flow(struct check *c, uint32_t at, struct state *s)
{
	const struct bpf_insn *i = &c->p->insns[at];
	int err = 0;

	if (is_func_call(i)) {
		c->p->notes[at].call = VM_CALL_FUNC;
		c->p->notes[at].to = callee(c, at);
		enter(c, c->p->notes[at].to, &s->r[1]);
		s->r[0] = number;
	} else if (i->imm == VM_FUNC_LOOP) {
		err = loop_flow(c, at, s);
	} else if (i->imm == VM_FUNC_EACH) {
		err = each_flow(c, at, s);
	} else {
		err = helper_flow(c, at, s);
	}
	for (int k = 1; k <= 5; k++)
		s->r[k] = unset;
	return err;
}

static int store_flow(struct check *c, struct vm_func *f, uint32_t at, struct state *s)
{
	const struct bpf_insn *i = &c->p->insns[at];
	int err = need(c, at, s, i->dst_reg);

	if (!err && BPF_CLASS(i->code) == BPF_STX)
		err = need(c, at, s, i->src_reg);
	if (!err && BPF_MODE(i->code) == BPF_ATOMIC && i->imm == BPF_CMPXCHG)
		err = need(c, at, s, 0);
	if (!err)
		err = access(c, f, at, s->r[i->dst_reg], true);
	if (!err && written(i) >= 0)
		s->r[written(i)] = number;
	return err;
}

static int insn_flow(struct check *c, struct vm_func *f, uint32_t at, struct state *s)
{
	const struct bpf_insn *i = &c->p->insns[at];
	int err;

	switch (BPF_CLASS(i->code)) {
	case BPF_ALU:
	case BPF_ALU64:
		return alu_flow(c, f, at, s);
	case BPF_LD:
		imm64_flow(c, at, s);
		return 0;
	case BPF_LDX:
		err = need(c, at, s, i->src_reg);
		if (!err)
			err = access(c, f, at, s->r[i->src_reg], false);
		s->r[i->dst_reg] = number;
		return err;
	case BPF_ST:
	case BPF_STX:
		return store_flow(c, f, at, s);
	default:
		if (BPF_OP(i->code) == BPF_CALL)
			return call_flow(c, at, s);
		if (is_exit(i))
			return need(c, at, s, 0);
		if (is_goto(i) || is_may_goto(i))
			return 0;
		err = need(c, at, s, i->dst_reg);
		return err || BPF_SRC(i->code) == BPF_K ? err : need(c, at, s, i->src_reg);
	}
}

static int func_flow(struct check *c, struct vm_func *f)
{
	bool again = true;

	if (!c->states[f->start].reached)
		return refuse(c, f->start, "unreachable");
	while (again) {
		again = false;
		for (uint32_t n = f->start; n < f->end && c->seq[n] != UINT32_MAX; n++) {
			uint32_t at = c->seq[n];
			struct state s = c->states[at];
			int err = s.reached ? insn_flow(c, f, at, &s) : 0;

			if (err)
				return err;
			for (int k = 0; s.reached && k < 2; k++) {
				uint32_t to = follower(c, at, k);
				bool changed = to && merge(&c->states[to], &s);

				again |= changed && is_may_goto(&c->p->insns[at]);
			}
		}
	}
	f->frame = (f->frame + 15) / 16 * 16;
	return 0;
}

static int flow(struct check *c)
{
	struct val args[5] = { { .kind = CTX } };
	int err = 0;

	enter(c, 0, args);
	for (uint32_t k = c->norder; !err && k--;)
		err = func_flow(c, &c->p->funcs[c->order[k]]);
	return err;
}

/* --- frames ------------------------------------------------------------------------------------------ */

/* Callees come first, so what each needs with all below it is known when a caller asks. */
static int frames(struct check *c)
{
	for (uint32_t o = 0; o < c->norder; o++) {
		uint32_t k = c->order[o], below = 0;
		const struct vm_func *f = &c->p->funcs[k];

		for (uint32_t at = f->start; at < f->end; at++) {
			uint32_t to;

			if (c->second[at] || (!is_func_call(&c->p->insns[at]) && !is_func_ref(&c->p->insns[at])))
				continue;
			to = callee(c, at);
			below = c->depth[to] > below ? c->depth[to] : below;
		}
		c->depth[k] = f->frame + below;	/* from here on bytes, no longer a number of frames */
		if (c->depth[k] > VM_STACK)
			return refuse(c, f->start, "%u bytes of stack, of which there are %d", c->depth[k], VM_STACK);
	}
	return 0;
}

/* --- loading ----------------------------------------------------------------------------------------- */

static int check_all(struct check *c)
{
	struct vm_prog *p = c->p;
	int err = -ENOMEM;

	c->second = calloc(c->n + 1, sizeof(*c->second));
	c->func_at = calloc(c->n, sizeof(*c->func_at));
	c->ways = calloc(c->n, sizeof(*c->ways));
	c->seq = calloc(c->n, sizeof(*c->seq));
	c->seen = calloc(c->n, sizeof(*c->seen));
	c->states = calloc(c->n, sizeof(*c->states));
	if (!c->second || !c->func_at || !c->ways || !c->seq || !c->seen || !c->states)
		goto out;
	err = shape(c);
	if (err)
		goto out;
	c->marks = calloc(p->nfuncs, sizeof(*c->marks));
	c->depth = calloc(p->nfuncs, sizeof(*c->depth));
	c->order = calloc(p->nfuncs, sizeof(*c->order));
	if (!c->marks || !c->depth || !c->order) {
		err = -ENOMEM;
		goto out;
	}
	err = graph(c);
	if (!err)
		err = flow(c);
	if (!err)
		err = frames(c);
out:
	free(c->second);
	free(c->func_at);
	free(c->ways);
	free(c->seq);
	free(c->seen);
	free(c->states);
	free(c->marks);
	free(c->depth);
	free(c->order);
	return err;
}

int vm_load(const struct vm_spec *spec, struct vm_prog **ret, struct vm_error *err)
{
	struct check c = { .err = err, .n = spec->ninsns };
	int res = -ENOMEM;

	if (!spec->ninsns || spec->ninsns > VM_MAX_INSNS)
		return refuse(&c, 0, "%u instructions", spec->ninsns);
	c.p = calloc(1, sizeof(*c.p));
	if (!c.p)
		return -ENOMEM;
	c.p->spec = *spec;
	if (!c.p->spec.budget)
		c.p->spec.budget = VM_DEFAULT_BUDGET;
	c.p->insns = calloc(spec->ninsns, sizeof(*c.p->insns));
	c.p->notes = calloc(spec->ninsns, sizeof(*c.p->notes));
	if (c.p->insns && c.p->notes) {
		memcpy(c.p->insns, spec->insns, spec->ninsns * sizeof(*c.p->insns));
		c.p->spec.insns = c.p->insns;
		res = check_all(&c);
	}
	if (res) {
		vm_free(c.p);
		return res;
	}
	*ret = c.p;
	return 0;
}

void vm_free(struct vm_prog *p)
{
	if (!p)
		return;
	vm_code_free(p->code);
	free(p->insns);
	free(p->notes);
	free(p->funcs);
	free(p);
}

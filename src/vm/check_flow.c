/*
 * The check of a program, third pass: what registers hold (check.c).
 */
#include "vm/check.h"

static const struct val number = { .kind = NUMBER }, unset = { .kind = UNSET };

static bool same(struct val a, struct val b)
{
	return a.kind == b.kind && a.index == b.index && a.off == b.off;
}

/* Merge @v into *into.  Returns whether that changed it. */
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

/* An argument's value as the called function sees it. */
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
		return vm_refuse(c, at, "r%d has no value", reg);
	return 0;
}

/* A pointer into the frame is stored or used: extend the frame to its offset. */
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
			return vm_refuse(c, at, "outside of the stack");
		base.off = (int32_t)off;
		use_frame(f, base);
		break;
	case CTX:
		if (off < 0 || off + size > spec->ctx_size)
			return vm_refuse(c, at, "outside of the context");
		if (write && !spec->ctx_writable)
			return vm_refuse(c, at, "the context is read-only");
		break;
	case SCRATCH:
		if (off < 0 || off + size > spec->scratch)
			return vm_refuse(c, at, "outside of the scratch memory");
		break;
	case VALUE:
		if (off < 0 || (uint64_t)(off + size) > map->size)
			return vm_refuse(c, at, "outside of map %u", base.index);
		if (write && map->readonly)
			return vm_refuse(c, at, "map %u is read-only", base.index);
		break;
	case ELEM:
		if (off < 0 || off + size > spec->maps[base.index].value_size || (atomic && off % size) ||
		    (write && spec->maps[base.index].readonly)) {
			c->p->notes[at].safe = false;
			return 0;
		}
		break;
	case MAYBE:
	case NUMBER:
		c->p->notes[at].safe = false;	/* an earlier pass over the function may have set it */
		return 0;
	default:
		return vm_refuse(c, at, "not a pointer to memory");
	}
	if (atomic && off % size)
		return vm_refuse(c, at, "unaligned atomic operation");
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
	if (dst.kind != FRAME && dst.kind != CTX && dst.kind != VALUE && dst.kind != SCRATCH && dst.kind != ELEM)
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
		v = (struct val){ .kind = FUNC, .index = vm_callee(c, at) };
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

/* Is it known when loading that the @size bytes at @v are accessible? */
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
	case ELEM:
		return v.off >= 0 && end <= spec->maps[v.index].value_size && !(write && spec->maps[v.index].readonly);
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
		return vm_refuse(c, at, "no helper %d", c->p->insns[at].imm);
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
				return vm_refuse(c, at, "r%d must be a map", 1 + k);
			/* A callback may get one of several maps; then the map is looked up at run time. */
			note->map = s->r[1 + k].kind == MAP ? s->r[1 + k].index : VM_ANY_MAP;
			if (note->map == VM_ANY_MAP)
				note->call = VM_CALL_CHECKED;
			have_map = true;
			break;
		case VM_ARG_KEY:
		case VM_ARG_VALUE:
			if (!have_map)
				return vm_refuse(c, at, "helper %u has a key without a map", h->number);
			if (note->map == VM_ANY_MAP ||
			    !decided(spec, s->r[1 + k], h->args[k] == VM_ARG_KEY ? spec->maps[note->map].key_size :
				     spec->maps[note->map].value_size, false))
				note->call = VM_CALL_CHECKED;
			break;
		case VM_ARG_READ:
		case VM_ARG_WRITE:
			if (next != VM_ARG_SIZE)
				return vm_refuse(c, at, "helper %u has memory without a size", h->number);
			if (s->r[2 + k].kind != NUMBER || !s->r[2 + k].index ||
			    !decided(spec, s->r[1 + k], s->r[2 + k].off, h->args[k] == VM_ARG_WRITE))
				note->call = VM_CALL_CHECKED;
			break;
		default:
			break;
		}
	}
	if (h->ret == VM_RET_SCRATCH && !spec->scratch)
		return vm_refuse(c, at, "there is no scratch memory");
	if (h->ret == VM_RET_CTX)
		s->r[0] = (struct val){ .kind = CTX };
	else if (h->ret == VM_RET_SCRATCH)
		s->r[0] = (struct val){ .kind = SCRATCH };
	else if (h->ret == VM_RET_ELEM && note->map != VM_ANY_MAP)
		s->r[0] = (struct val){ .kind = MAYBE, .index = note->map };
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
		return vm_refuse(c, at, "r2 must be a function");
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
		return vm_refuse(c, at, "r1 must be a map");
	if (!c->p->spec.next || !c->p->spec.maps[s->r[1].index].walked)
		return vm_refuse(c, at, "map %u cannot be walked", s->r[1].index);
	if (s->r[2].kind != FUNC)
		return vm_refuse(c, at, "r2 must be a function");
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
		c->p->notes[at].to = vm_callee(c, at);
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
	if (!err && vm_written(i) >= 0)
		s->r[vm_written(i)] = number;
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

/* What the branch at @at shows of a register where it goes to its @k-th follower. */
static void learn(const struct check *c, uint32_t at, int k, struct state *s)
{
	const struct bpf_insn *i = &c->p->insns[at];
	bool jumps = k == 1;

	if (BPF_CLASS(i->code) != BPF_JMP || BPF_SRC(i->code) != BPF_K || i->imm || !is_branch(i) ||
	    s->r[i->dst_reg].kind != MAYBE || (BPF_OP(i->code) != BPF_JEQ && BPF_OP(i->code) != BPF_JNE))
		return;
	if (jumps == (BPF_OP(i->code) == BPF_JNE))
		s->r[i->dst_reg].kind = ELEM;
	else
		s->r[i->dst_reg] = number;
}

static int func_flow(struct check *c, struct vm_func *f)
{
	bool again = true;

	if (!c->states[f->start].reached)
		return vm_refuse(c, f->start, "unreachable");
	while (again) {
		again = false;
		for (uint32_t n = f->start; n < f->end && c->seq[n] != UINT32_MAX; n++) {
			uint32_t at = c->seq[n];
			struct state s = c->states[at];
			int err = s.reached ? insn_flow(c, f, at, &s) : 0;

			if (err)
				return err;
			for (int k = 0; s.reached && k < 2; k++) {
				uint32_t to = vm_follower(c, at, k);
				struct state there = s;
				bool changed;

				learn(c, at, k, &there);
				changed = to && merge(&c->states[to], &there);

				again |= changed && is_may_goto(&c->p->insns[at]);
			}
		}
	}
	f->frame = (f->frame + 15) / 16 * 16;
	return 0;
}

int vm_check_flow(struct check *c)
{
	struct val args[5] = { { .kind = CTX } };
	int err = 0;

	enter(c, 0, args);
	for (uint32_t k = c->norder; !err && k--;)
		err = func_flow(c, &c->p->funcs[c->order[k]]);
	return err;
}

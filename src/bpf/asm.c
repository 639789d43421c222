#include "bpf/asm.h"

#include "base/arena.h"

uint32_t asm_label(struct assembler *a)
{
	a->labels = arena_grow(a->arena, a->labels, &a->labels_cap, a->nlabels, sizeof(*a->labels));
	a->labels[a->nlabels] = ASM_UNSET;
	return a->nlabels++;
}

void asm_bind(struct assembler *a, uint32_t label)
{
	a->labels[label] = a->n;
}

void asm_line(struct assembler *a, uint32_t clause, struct src_pos pos)
{
	struct ebpf_line *last = a->nlines ? &a->lines[a->nlines - 1] : NULL;

	if (last && last->clause == clause && last->pos.src == pos.src && last->pos.line == pos.line &&
	    last->pos.col == pos.col)
		return;
	if (!last || last->insn != a->n) {
		a->lines = arena_grow(a->arena, a->lines, &a->lines_cap, a->nlines, sizeof(*a->lines));
		last = &a->lines[a->nlines++];
	}
	*last = (struct ebpf_line){ .insn = a->n, .clause = clause, .pos = pos };
}

void asm_raw(struct assembler *a, struct bpf_insn insn)
{
	a->insns = arena_grow(a->arena, a->insns, &a->cap, a->n, sizeof(*a->insns));
	a->insns[a->n++] = insn;
}

static void insn(struct assembler *a, int code, int dst, int src, int off, int32_t v)
{
	asm_raw(a, (struct bpf_insn){ .code = (__u8)code, .dst_reg = (__u8)dst, .src_reg = (__u8)src,
				      .off = (__s16)off, .imm = v });
}

void asm_mov(struct assembler *a, int dst, int src)
{
	if (dst != src)
		insn(a, BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0);
}

void asm_imm(struct assembler *a, int dst, int64_t v)
{
	if (asm_fits(v)) {
		insn(a, BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, (int32_t)v);
	} else if ((uint64_t)v <= UINT32_MAX) {
		insn(a, BPF_ALU | BPF_MOV | BPF_K, dst, 0, 0, (int32_t)v);
	} else {
		insn(a, BPF_LD | BPF_IMM | BPF_DW, dst, 0, 0, (int32_t)v);
		insn(a, 0, 0, 0, 0, (int32_t)(v >> 32));
	}
}

void asm_alu(struct assembler *a, int op, int dst, int src)
{
	insn(a, BPF_ALU64 | op | BPF_X, dst, src, 0, 0);
}

void asm_alui(struct assembler *a, int op, int dst, int32_t v)
{
	insn(a, BPF_ALU64 | op | BPF_K, dst, 0, 0, v);
}

void asm_neg(struct assembler *a, int dst)
{
	insn(a, BPF_ALU64 | BPF_NEG, dst, 0, 0, 0);
}

void asm_ld(struct assembler *a, int size, int dst, int base, int off)
{
	insn(a, BPF_LDX | BPF_MEM | size, dst, base, off, 0);
}

void asm_st(struct assembler *a, int size, int base, int off, int src)
{
	insn(a, BPF_STX | BPF_MEM | size, base, src, off, 0);
}

void asm_sti(struct assembler *a, int size, int base, int off, int32_t v)
{
	insn(a, BPF_ST | BPF_MEM | size, base, 0, off, v);
}

void asm_atomic(struct assembler *a, int op, int size, int base, int off, int src)
{
	insn(a, BPF_STX | BPF_ATOMIC | size, base, src, off, op);
}

/* An instruction that leads to @label, which asm_finish resolves. */
static void jump(struct assembler *a, int code, int dst, int src, int32_t v, uint32_t label)
{
	a->fixes = arena_grow(a->arena, a->fixes, &a->fixes_cap, a->nfixes, sizeof(*a->fixes));
	a->fixes[a->nfixes++] = (struct asm_fix){ .insn = a->n, .label = label };
	insn(a, code, dst, src, 0, v);
}

bool asm_wanted(const struct assembler *a, uint32_t label)
{
	for (uint32_t i = 0; i < a->nfixes; i++)
		if (a->fixes[i].label == label)
			return true;
	return false;
}

void asm_ja(struct assembler *a, uint32_t label)
{
	jump(a, BPF_JMP | BPF_JA, 0, 0, 0, label);
}

void asm_may_goto(struct assembler *a, uint32_t label)
{
	jump(a, BPF_JMP | ASM_JCOND, 0, ASM_MAY_GOTO, 0, label);
}

void asm_last_goto(struct assembler *a, uint32_t label)
{
	jump(a, BPF_JMP | ASM_JCOND, 0, ASM_MAY_GOTO, ASM_LAST, label);
}

void asm_j(struct assembler *a, int op, int dst, int src, uint32_t label)
{
	jump(a, BPF_JMP | op | BPF_X, dst, src, 0, label);
}

void asm_ji(struct assembler *a, int op, int dst, int32_t v, uint32_t label)
{
	jump(a, BPF_JMP | op | BPF_K, dst, 0, v, label);
}

void asm_j32i(struct assembler *a, int op, int dst, int32_t v, uint32_t label)
{
	jump(a, BPF_JMP32 | op | BPF_K, dst, 0, v, label);
}

static void add_reloc(struct assembler *a, uint32_t map)
{
	a->relocs = arena_grow(a->arena, a->relocs, &a->relocs_cap, a->nrelocs, sizeof(*a->relocs));
	a->relocs[a->nrelocs++] = (struct ebpf_reloc){ .insn = a->n, .map = map };
}

void asm_map(struct assembler *a, int dst, uint32_t map)
{
	add_reloc(a, map);
	insn(a, BPF_LD | BPF_IMM | BPF_DW, dst, BPF_PSEUDO_MAP_FD, 0, 0);
	insn(a, 0, 0, 0, 0, 0);
}

void asm_map_value(struct assembler *a, int dst, uint32_t map, uint32_t off)
{
	add_reloc(a, map);
	insn(a, BPF_LD | BPF_IMM | BPF_DW, dst, BPF_PSEUDO_MAP_VALUE, 0, 0);
	insn(a, 0, 0, 0, 0, (int32_t)off);
}

void asm_helper(struct assembler *a, int helper)
{
	insn(a, BPF_JMP | BPF_CALL, 0, 0, 0, helper);
}

void asm_lookup(struct assembler *a, uint32_t map, int slot)
{
	asm_map(a, BPF_REG_1, map);
	asm_mov(a, BPF_REG_2, BPF_REG_10);
	asm_alui(a, BPF_ADD, BPF_REG_2, slot);
	asm_helper(a, BPF_FUNC_map_lookup_elem);
}

static void add_call(struct assembler *a, enum rt_fn fn)
{
	a->calls = arena_grow(a->arena, a->calls, &a->calls_cap, a->ncalls, sizeof(*a->calls));
	a->calls[a->ncalls++] = (struct asm_call){ .insn = a->n, .fn = fn };
}

void asm_rt_addr(struct assembler *a, int dst, enum rt_fn fn)
{
	add_call(a, fn);
	insn(a, BPF_LD | BPF_IMM | BPF_DW, dst, BPF_PSEUDO_FUNC, 0, 0);
	insn(a, 0, 0, 0, 0, 0);
}

void asm_label_addr(struct assembler *a, int dst, uint32_t label)
{
	jump(a, BPF_LD | BPF_IMM | BPF_DW, dst, BPF_PSEUDO_FUNC, 0, label);
	insn(a, 0, 0, 0, 0, 0);
}

void asm_rt(struct assembler *a, enum rt_fn fn)
{
	add_call(a, fn);
	insn(a, BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, 0);
}

void asm_exit(struct assembler *a)
{
	insn(a, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

/* --- jumps ----------------------------------------------------------------------------------------------- */

/* A far conditional jump becomes three instructions: the jump (to the third), a jump over the third, a long jump. */
enum { FAR_INSNS = 3 };

/*
 * The farthest that a jump of 16 bits goes here.  The kernel replaces instructions, calls of helpers above all, by
 * several of its own, and refuses a program whose jumps become too far by that.
 */
enum { NEAR = 1 << 14 };

static bool is_address(const struct bpf_insn *i)
{
	return BPF_CLASS(i->code) == BPF_LD;
}

static bool is_always(const struct bpf_insn *i)
{
	return i->code == (BPF_JMP | BPF_JA);
}

/*
 * Mark in @far the jumps that go farther than NEAR when instruction k is at at[k].  Returns how many are
 * new: a jump that becomes longer can make other jumps far.
 */
static uint32_t find_far(const struct assembler *a, const uint32_t *at, bool *far)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < a->nfixes; k++) {
		const struct asm_fix *f = &a->fixes[k];
		int64_t off = (int64_t)at[a->labels[f->label]] - at[f->insn] - 1;

		if (far[f->insn] || (off >= -NEAR && off <= NEAR) || is_address(&a->insns[f->insn]))
			continue;
		far[f->insn] = true;
		n++;
	}
	return n;
}

static void lay_out(const struct assembler *a, const bool *far, uint32_t *at)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k <= a->n; k++) {
		at[k] = n;
		n += k < a->n && far[k] && !is_always(&a->insns[k]) ? FAR_INSNS : 1;
	}
}

/* Insert the additional instructions and adjust all numbers of instructions. */
static void move(struct assembler *a, const bool *far, const uint32_t *at)
{
	const struct bpf_insn *old = a->insns;
	uint32_t n = a->n;

	a->insns = NULL;
	a->cap = a->n = 0;
	for (uint32_t k = 0; k < n; k++) {
		asm_raw(a, old[k]);
		if (!far[k])
			continue;
		if (is_always(&old[k])) {
			a->insns[a->n - 1].code = BPF_JMP32 | BPF_JA;
			continue;
		}
		a->insns[a->n - 1].off = 1;
		insn(a, BPF_JMP | BPF_JA, 0, 0, 1, 0);
		insn(a, BPF_JMP32 | BPF_JA, 0, 0, 0, 0);
	}
	for (uint32_t k = 0; k < a->nfixes; k++) {
		struct asm_fix *f = &a->fixes[k];
		bool longer = far[f->insn] && !is_always(&old[f->insn]);

		f->insn = at[f->insn] + (longer ? FAR_INSNS - 1 : 0);
	}
	for (uint32_t k = 0; k < a->nlabels; k++)
		if (a->labels[k] != ASM_UNSET)
			a->labels[k] = at[a->labels[k]];
	for (uint32_t k = 0; k < a->ncalls; k++)
		a->calls[k].insn = at[a->calls[k].insn];
	for (uint32_t k = 0; k < a->nrelocs; k++)
		a->relocs[k].insn = at[a->relocs[k].insn];
	for (uint32_t k = 0; k < a->nlines; k++)
		a->lines[k].insn = at[a->lines[k].insn];
}

/* A jump has 16 bits for its distance; farther targets take the unconditional jump with 32 bits (Linux 6.6). */
static void reach(struct assembler *a)
{
	uint32_t *at = arena_alloc(a->arena, (a->n + 1) * sizeof(*at));
	bool *far = arena_alloc(a->arena, (a->n + 1) * sizeof(*far)), any = false;

	lay_out(a, far, at);
	while (find_far(a, at, far)) {
		lay_out(a, far, at);
		any = true;
	}
	if (any)
		move(a, far, at);
}

void asm_finish(struct assembler *a)
{
	if (a->n > INT16_MAX)
		reach(a);
	for (uint32_t k = 0; k < a->nfixes; k++) {
		const struct asm_fix *f = &a->fixes[k];
		int64_t off = (int64_t)a->labels[f->label] - f->insn - 1;
		struct bpf_insn *i = &a->insns[f->insn];

		if (is_address(i) || i->code == (BPF_JMP32 | BPF_JA))
			i->imm = (__s32)off;
		else
			i->off = (__s16)off;
	}
}

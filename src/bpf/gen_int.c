/*
 * Integers: arithmetic, comparison, control flow.
 */
#include "bpf/gen.h"

#include <stdlib.h>

/* --- operands ---------------------------------------------------------------------------------------- */

static int spill_off(const struct loc *l)
{
	return FRAME_SPILLS + 8 * (int)l->v;
}

void gen_load(struct gen *g, int reg, ir_reg r)
{
	const struct loc *l = &g->plan->locs[r];

	switch (l->kind) {
	case LOC_CONST:
		asm_imm(&g->as, reg, l->v);
		break;
	case LOC_REG:
		asm_mov(&g->as, reg, (int)l->v);
		break;
	case LOC_STACK:
		asm_ld(&g->as, BPF_DW, reg, R10, spill_off(l));
		break;
	case LOC_SCRATCH:
		if (SCRATCH_SPILLS + 8 * l->v > INT16_MAX)
			gen_refuse(g, "a clause has too many values at a time");
		asm_ld(&g->as, BPF_DW, reg, R9, SCRATCH_SPILLS + 8 * (int)l->v);
		break;
	default:
		abort();	/* ir_check has seen a definition on every path to a use */
	}
}

int gen_use(struct gen *g, ir_reg r, int tmp)
{
	const struct loc *l = &g->plan->locs[r];

	if (l->kind == LOC_REG)
		return (int)l->v;
	gen_load(g, tmp, r);
	return tmp;
}

bool gen_is_const(const struct gen *g, ir_reg r, int64_t *v)
{
	*v = g->plan->locs[r].v;
	return g->plan->locs[r].kind == LOC_CONST;
}

int64_t gen_constant(struct gen *g, ir_reg r)
{
	int64_t v = 0;

	if (!gen_is_const(g, r, &v))
		gen_refuse(g, "an operand that must be a constant is none");
	return v;
}

void gen_put(struct gen *g, const struct ir_insn *i, int reg)
{
	const struct loc *l = &g->plan->locs[i->dst];

	if (l->kind == LOC_REG)
		asm_mov(&g->as, (int)l->v, reg);
	else if (l->kind == LOC_STACK)
		asm_st(&g->as, BPF_DW, R10, spill_off(l), reg);
	else if (l->kind == LOC_SCRATCH)
		asm_st(&g->as, BPF_DW, R9, SCRATCH_SPILLS + 8 * (int)l->v, reg);
}

void gen_extend(struct gen *g, int reg, unsigned int width, bool sign)
{
	if (width >= 8)
		return;
	asm_alui(&g->as, BPF_LSH, reg, 64 - 8 * (int)width);
	asm_alui(&g->as, sign ? BPF_ARSH : BPF_RSH, reg, 64 - 8 * (int)width);
}

/* --- arithmetic -------------------------------------------------------------------------------------- */

void gen_const(struct gen *g, const struct ir_insn *i)
{
	if (g->plan->locs[i->dst].kind == LOC_CONST)
		return;
	asm_imm(&g->as, R1, i->imm);
	gen_put(g, i, R1);
}

void gen_alu(struct gen *g, const struct ir_insn *i)
{
	static const uint8_t codes[IR_OP_MAX] = {
		[IR_ADD] = BPF_ADD, [IR_SUB] = BPF_SUB, [IR_MUL] = BPF_MUL, [IR_AND] = BPF_AND,
		[IR_OR] = BPF_OR,   [IR_XOR] = BPF_XOR, [IR_SHL] = BPF_LSH, [IR_SHR] = BPF_RSH,
		[IR_SAR] = BPF_ARSH,
	};
	bool shift = i->op == IR_SHL || i->op == IR_SHR || i->op == IR_SAR;
	int64_t v;

	gen_load(g, R1, i->args[0]);
	if (gen_is_const(g, i->args[1], &v) && (shift || asm_fits(v))) {
		asm_alui(&g->as, codes[i->op], R1, shift ? (int32_t)(v & 63) : (int32_t)v);
	} else {
		int y = gen_use(g, i->args[1], R2);

		if (shift) {
			asm_mov(&g->as, R2, y);
			asm_alui(&g->as, BPF_AND, R2, 63);
			y = R2;
		}
		asm_alu(&g->as, codes[i->op], R1, y);
	}
	gen_put(g, i, R1);
}

/*
 * eBPF divides unsigned numbers: a signed division divides the magnitudes, and then gives the result its sign.
 * INT64_MIN is its own magnitude as an unsigned number, which makes the two edge cases right.  No branches: (x ^ s) -
 * s, where s has x's sign in all bits, is x without its sign.
 */

/* Remove @reg's sign, which goes to all bits of @sign. */
static void negate(struct gen *g, int reg, int sign)
{
	struct assembler *as = &g->as;

	asm_mov(as, sign, reg);
	asm_alui(as, BPF_ARSH, sign, 63);
	asm_alu(as, BPF_XOR, reg, sign);
	asm_alu(as, BPF_SUB, reg, sign);
}

void gen_divide(struct gen *g, const struct ir_insn *i)
{
	bool sign = i->op == IR_SDIV || i->op == IR_SMOD, mod = i->op == IR_SMOD || i->op == IR_UMOD;
	struct assembler *as = &g->as;
	int64_t v = 0;

	gen_load(g, R1, i->args[0]);
	gen_load(g, R2, i->args[1]);
	if (!gen_is_const(g, i->args[1], &v))
		v = 0;
	if (!v)
		asm_ji(as, BPF_JEQ, R2, 0, gen_fault(g, ABI_FAULT_DIVZERO, NO_VALUE));
	if (sign) {
		negate(g, R1, R3);
		if (v <= 0) {
			negate(g, R2, R4);
			if (!mod)
				asm_alu(as, BPF_XOR, R3, R4);
		}
	}
	asm_alu(as, mod ? BPF_MOD : BPF_DIV, R1, R2);
	if (sign) {
		asm_alu(as, BPF_XOR, R1, R3);
		asm_alu(as, BPF_SUB, R1, R3);
	}
	gen_put(g, i, R1);
}

void gen_unary(struct gen *g, const struct ir_insn *i)
{
	gen_load(g, R1, i->args[0]);
	if (i->op == IR_NEG)
		asm_neg(&g->as, R1);
	else
		asm_alui(&g->as, BPF_XOR, R1, -1);
	gen_put(g, i, R1);
}

void gen_ext(struct gen *g, const struct ir_insn *i)
{
	gen_load(g, R1, i->args[0]);
	gen_extend(g, R1, i->width, i->sign);
	gen_put(g, i, R1);
}

void gen_mov(struct gen *g, const struct ir_insn *i)
{
	if (g->clause->regs[i->dst] == IR_STR)
		gen_str_to(g, i->args[0], gen_str_dst(g, i));
	else
		gen_put(g, i, gen_use(g, i->args[0], R1));
}

/* --- comparison and control flow ---------------------------------------------------------------------- */

/* Jump to @label if the comparison @i is true. */
static void jump_if(struct gen *g, const struct ir_insn *i, uint32_t label)
{
	static const uint8_t codes[IR_OP_MAX] = {
		[IR_EQ] = BPF_JEQ,   [IR_NE] = BPF_JNE,	 [IR_SLT] = BPF_JSLT,
		[IR_SLE] = BPF_JSLE, [IR_ULT] = BPF_JLT, [IR_ULE] = BPF_JLE,
	};
	int x = gen_use(g, i->args[0], R1);
	int64_t v;

	if (gen_is_const(g, i->args[1], &v) && asm_fits(v))
		asm_ji(&g->as, codes[i->op], x, (int32_t)v, label);
	else
		asm_j(&g->as, codes[i->op], x, gen_use(g, i->args[1], R2), label);
}

void gen_compare(struct gen *g, const struct ir_insn *i)
{
	uint32_t yes = asm_label(&g->as);

	asm_imm(&g->as, R3, 1);
	jump_if(g, i, yes);
	asm_imm(&g->as, R3, 0);
	asm_bind(&g->as, yes);
	gen_put(g, i, R3);
}

static void go_to(struct gen *g, const struct ir_block *b)
{
	if (b != g->next)
		asm_ja(&g->as, g->labels[b->id]);
}

void gen_jmp(struct gen *g, const struct ir_insn *i)
{
	go_to(g, i->target[0]);
}

void gen_br(struct gen *g, const struct ir_insn *i)
{
	static const enum ir_op inverse[IR_OP_MAX] = {
		[IR_EQ] = IR_NE, [IR_NE] = IR_EQ,
	};
	const struct ir_insn *late = g->plan->late[i->args[0]];
	const struct ir_block *yes = i->target[0], *no = i->target[1];

	if (yes == no) {
		go_to(g, yes);
	} else if (!late && yes == g->next) {
		asm_ji(&g->as, BPF_JEQ, gen_use(g, i->args[0], R1), 0, g->labels[no->id]);
	} else if (!late) {
		asm_ji(&g->as, BPF_JNE, gen_use(g, i->args[0], R1), 0, g->labels[yes->id]);
		go_to(g, no);
	} else if (yes == g->next && inverse[late->op]) {
		struct ir_insn not = *late;

		not.op = inverse[late->op];
		jump_if(g, &not, g->labels[no->id]);
	} else if (yes == g->next) {
		/* not (x < y) is y <= x, and the other way round */
		ir_reg swapped[2] = { late->args[1], late->args[0] };
		struct ir_insn not = *late;

		not.args = swapped;
		not.op = late->op == IR_SLT ? IR_SLE : late->op == IR_SLE ? IR_SLT :
			 late->op == IR_ULT ? IR_ULE : IR_ULT;
		jump_if(g, &not, g->labels[no->id]);
	} else {
		jump_if(g, late, g->labels[yes->id]);
		go_to(g, no);
	}
}

void gen_ret(struct gen *g, const struct ir_insn *i)
{
	(void)i;
	if (g->settled && !g->in_error && g->settled[g->block->id]) {
		asm_ld(&g->as, BPF_DW, R1, R10, FRAME_SETTLED);
		asm_alui(&g->as, BPF_ADD, R1, 1);
		asm_st(&g->as, BPF_DW, R10, FRAME_SETTLED, R1);
	}
	asm_ja(&g->as, g->end);
}

void gen_raise(struct gen *g, const struct ir_insn *i)
{
	gen_load(g, R1, i->args[0]);
	asm_st(&g->as, BPF_DW, R10, FRAME_TMP, R1);
	asm_ja(&g->as, gen_fault(g, (enum abi_fault)i->imm, FRAME_TMP));
}

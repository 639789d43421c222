/*
 * Values of the traced language: pyint() and similar functions, which only the agent in the process can read.  A program in the
 * kernel has them from it (gen_away.c).
 */
#include "bpf/gen.h"

/* By function: 1 + the number of its request, or 0. */
static const unsigned char asked[IR_FN_MAX] = {
#define ABI_VALUE(NAME, ...) [IR_FN_PY##NAME] = 1 + ABI_VALUE_##NAME,
#include "abi/values.def"
#undef ABI_VALUE
};

bool gen_asks_value(enum ir_fn fn)
{
	return asked[fn] != 0;
}

enum abi_value gen_value_asked(enum ir_fn fn)
{
	return (enum abi_value)(asked[fn] - 1);
}

/* R2 to R5 of the helper's call: a number comes before a string.  A fault reports the object's address. */
static void ask(struct gen *g, const struct ir_insn *i, uint32_t size)
{
	struct assembler *as = &g->as;
	bool number = i->nargs && g->clause->regs[i->args[0]] == IR_INT;

	if (i->nargs > 1 && g->clause->regs[i->args[1]] == IR_INT)
		gen_load(g, R5, i->args[1]);
	else if (i->nargs > number)
		gen_operand(g, R5, i->args[number]);
	else
		asm_imm(as, R5, 0);
	if (number)
		gen_load(g, R4, i->args[0]);
	else
		asm_imm(as, R4, 0);
	asm_st(as, BPF_DW, R10, FRAME_TMP2, R4);
	asm_imm(as, R3, asked[i->fn] - 1);
	asm_imm(as, R2, size);
}

/* After the call: continue if R0 is not a fault. */
void gen_value_check(struct gen *g)
{
	static const enum abi_fault kinds[] = { ABI_FAULT_VALUE_KIND, ABI_FAULT_VALUE_NONE, ABI_FAULT_VALUE_COMPUTED,
						ABI_FAULT_VALUE_RANGE, ABI_FAULT_VALUE_UNKNOWN, ABI_FAULT_VALUE_CHANGES };
	struct assembler *as = &g->as;
	uint32_t good = asm_label(as);

	asm_ji(as, BPF_JSGE, R0, 0, good);
	for (unsigned int k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
		asm_ji(as, BPF_JEQ, R0, -(int32_t)kinds[k], gen_fault(g, kinds[k], FRAME_TMP2));
	asm_ja(as, gen_fault(g, ABI_FAULT_BADADDR, FRAME_TMP2));
	asm_bind(as, good);
}

/* The instruction after @i if it asks for the integer in the object that @i asks for, and nothing else is between; or NULL. */
static const struct ir_insn *integer_of(const struct gen *g, const struct ir_insn *i)
{
	const struct ir_insn *next = i + 1;

	if ((i->fn != IR_FN_PYARG && i->fn != IR_FN_PYNAMED) || next == g->block->insns + g->block->n ||
	    g->plan->needs & NEED_LOOPS)	/* what an instruction stores in the frame is cleared behind it: gen_tidy() */
		return NULL;
	return next->op == IR_CALL && next->fn == IR_FN_PYINT && next->args[0] == i->dst ? next : NULL;
}

/*
 * Ask for a parameter and its integer at once.  Where that is not as simple as it is mostly, the questions follow one by
 * one, and have the faults.
 */
static void gen_integer(struct gen *g, const struct ir_insn *i, const struct ir_insn *next)
{
	struct assembler *as = &g->as;
	uint32_t no = asm_label(as);

	_Static_assert(FRAME_TMP2 + 8 == FRAME_TMP, "the object, its integer");
	g->answered = asm_label(as);
	ask(g, i, 16);
	asm_mov(as, R1, R10);
	asm_alui(as, BPF_ADD, R1, FRAME_TMP2);
	asm_helper(as, ABI_HELPER_INTEGER);
	asm_ji(as, BPF_JNE, R0, 0, no);
	asm_ld(as, BPF_DW, R1, R10, FRAME_TMP2);
	gen_put(g, i, R1);
	asm_ld(as, BPF_DW, R1, R10, FRAME_TMP);
	gen_put(g, next, R1);
	asm_ja(as, g->answered);
	asm_bind(as, no);
}

void gen_value(struct gen *g, const struct ir_insn *i)
{
	const struct ir_insn *next;
	struct assembler *as = &g->as;
	uint32_t answered = g->answered;

	if (!g->env->user_space) {
		gen_given(g, i);
		return;
	}
	next = integer_of(g, i);
	g->answered = ASM_UNSET;
	if (next)
		gen_integer(g, i, next);
	ask(g, i, 8);
	asm_mov(as, R1, R10);
	asm_alui(as, BPF_ADD, R1, FRAME_TMP);
	asm_helper(as, ABI_HELPER_VALUE);
	gen_value_check(g);
	asm_ld(as, BPF_DW, R1, R10, FRAME_TMP);
	gen_put(g, i, R1);
	if (answered != ASM_UNSET)
		asm_bind(as, answered);
}

void gen_value_str(struct gen *g, const struct ir_insn *i, struct dest to)
{
	if (!g->env->user_space) {
		gen_given_str(g, i, to);
		return;
	}
	ask(g, i, g->prog->strsize);
	gen_dest(g, R1, to);
	asm_helper(&g->as, ABI_HELPER_VALUE);
	gen_value_check(g);
}

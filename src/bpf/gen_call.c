/*
 * Calls of functions: which code each row of ir/funcs.def asks for.
 */
#include "bpf/gen.h"

#include "bpf/rt/put.h"

static gen_fn runtime;

/*
 * The arguments of a function of the runtime library.  A letter each, R1 first: 0 1 2 the operands, d the result's
 * buffer, w the work area (the string there is copied to the result's buffer, and so cut), p the work area as
 * rt/put.h has it (likewise), z strsize.
 */
static const struct {
	gen_fn *gen;
	enum rt_fn rt;
	const char *args;
} calls[IR_FN_MAX] = {
#define RT(FN, ARGS) { runtime, RT_##FN, ARGS }
#define BY(GEN) { gen_##GEN, 0, NULL }
#define IR_FN(NAME, TEXT, RESULT, OPERANDS, EFFECTS, NEEDS, WHERE, CODE, WHAT) [IR_FN_##NAME] = CODE,
#include "ir/funcs.def"
#undef IR_FN
#undef BY
#undef RT
};

void gen_operand(struct gen *g, int reg, ir_reg r)
{
	if (g->clause->regs[r] == IR_STR)
		gen_str(g, reg, r);
	else
		gen_load(g, reg, r);
}

static void runtime(struct gen *g, const struct ir_insn *i)
{
	const char *args = calls[i->fn].args;

	for (int k = 0; args[k]; k++) {
		int reg = R1 + k;

		if (args[k] == 'd')
			gen_dest(g, reg, gen_str_dst(g, i));
		else if (args[k] == 'w' || args[k] == 'p')
			gen_scratch(g, reg, g->priv->work_off);
		else if (args[k] == 'z')
			asm_imm(&g->as, reg, g->prog->strsize);
		else
			gen_operand(g, reg, i->args[args[k] - '0']);
	}
	asm_rt(&g->as, calls[i->fn].rt);
	if (ir_fn_result(i->fn) == IR_INT) {
		gen_put(g, i, R0);
	} else if (args[0] == 'w' || args[0] == 'p') {
		gen_scratch(g, R3, g->priv->work_off + (args[0] == 'p' ? PUT_STATE : 0));
		gen_dest(g, R1, gen_str_dst(g, i));
		gen_copy_str(g, false);
	}
}

void gen_call(struct gen *g, const struct ir_insn *i)
{
	calls[i->fn].gen(g, i);
}

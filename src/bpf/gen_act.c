/*
 * Functions that act on the traced process, and rand(): single helpers of the kernel.
 */
#include "bpf/gen.h"

static void rand31(struct gen *g, const struct ir_insn *i)
{
	asm_helper(&g->as, BPF_FUNC_get_prandom_u32);
	asm_alui(&g->as, BPF_AND, R0, 0x7fffffff);
	gen_put(g, i, R0);
}

static void send_signal(struct gen *g, const struct ir_insn *i)
{
	gen_load(g, R1, i->args[0]);
	asm_helper(&g->as, BPF_FUNC_send_signal);
	gen_put(g, i, R0);
}

bool gen_act(struct gen *g, const struct ir_insn *i)
{
	static const struct {
		enum ir_fn fn;
		void (*gen)(struct gen *g, const struct ir_insn *i);
	} fns[] = {
		{ IR_FN_RAND, rand31 }, { IR_FN_SIGNAL, send_signal },
	};

	for (size_t k = 0; k < sizeof(fns) / sizeof(fns[0]); k++) {
		if (fns[k].fn != i->fn)
			continue;
		if (g->env->user_space)
			gen_refuse(g, "rand() and what acts on a process are for the kernel place: use -x place=kernel");
		else
			fns[k].gen(g, i);
		return true;
	}
	return false;
}

/*
 * Functions of Python by name in the kernel: their filter, the names of those that a pattern has matched, and the values
 * that the agent has read (ABI_FIRE_AWAY in abi/segment.h).
 *
 * The marker's last argument is the address of a struct abi_event on the thread's stack, and the values are in memory that
 * the thread has just written to: no page has to be faulted in.
 */
#include "bpf/gen.h"

#include <stddef.h>

#include "bpf/rt/named.h"
#include "ir/facts.h"

enum { EVENT_ARG = 3 };

#define EVENT(field) (FRAME_EARLY + (int)offsetof(struct abi_event, field))
#define NAMED(field) (FRAME_EARLY + (int)offsetof(struct named_event, field))

void gen_away_filter(struct gen *g, uint32_t out)
{
	struct assembler *as = &g->as;

	_Static_assert(offsetof(struct abi_event, probe) == offsetof(struct named_event, probe) &&
		       offsetof(struct abi_event, given) == offsetof(struct named_event, given), "the same words");
	gen_prologue_values(g, NEED_PROBE);
	gen_operand_value(g, &g->env->args[EVENT_ARG], &out);
	asm_mov(as, R3, R1);
	asm_mov(as, R1, R10);
	asm_alui(as, BPF_ADD, R1, FRAME_EARLY);
	asm_imm(as, R2, sizeof(struct abi_event));
	asm_helper(as, BPF_FUNC_probe_read_user);
	asm_ji(as, BPF_JNE, R0, 0, out);
	asm_ld(as, BPF_DW, R1, R10, EVENT(session));
	asm_imm(as, R2, (int64_t)g->env->away);
	asm_j(as, BPF_JNE, R1, R2, out);
	asm_ld(as, BPF_W, R1, R10, EVENT(probe));
	asm_ld(as, BPF_DW, R2, R10, FRAME_PROBE);
	asm_j(as, BPF_JNE, R1, R2, out);
}

void gen_away_keep(struct gen *g, bool names)
{
	struct assembler *as = &g->as;
	uint32_t most = g->unit->nnamed < EBPF_NAMED_MAX ? g->unit->nnamed : EBPF_NAMED_MAX;

	if (g->env->nwanted) {
		asm_ld(as, BPF_DW, R1, R10, EVENT(given));
		asm_st(as, BPF_DW, R9, SCRATCH_GIVEN, R1);
	}
	if (!names)
		return;
	asm_sti(as, BPF_W, R10, NAMED(first), (int32_t)(g->unit->maps[EBPF_MAP_PROBES].max_entries - g->unit->nnamed));
	asm_sti(as, BPF_W, R10, NAMED(most), (int32_t)most);
	asm_map(as, R1, EBPF_MAP_NAMES);
	asm_map(as, R2, EBPF_MAP_PROBES);
	gen_scratch(g, R3, g->priv->named_off);
	asm_mov(as, R4, R10);
	asm_alui(as, BPF_ADD, R4, FRAME_EARLY);
	asm_map_value(as, R5, EBPF_MAP_CONTROL, offsetof(struct abi_control, named));
	asm_rt(as, RT_NAMED);
	asm_st(as, BPF_DW, R10, FRAME_PROBE, R0);
}

static const struct ebpf_wanted *find_given(const struct gen *g, const struct ir_insn *i)
{
	for (uint32_t k = 0; k < g->env->nwanted && !g->in_error; k++)
		if (g->env->wanted[k].insn == i)
			return &g->env->wanted[k];
	return NULL;
}

bool gen_is_given(const struct gen *g, const struct ir_insn *i)
{
	return find_given(g, i);
}

/* The value that @i is; NULL: it is not given here, and the program is refused. */
static const struct ebpf_wanted *need_given(struct gen *g, const struct ir_insn *i)
{
	const struct ebpf_wanted *w = find_given(g, i);

	if (!w)
		gen_refuse(g, ir_place(i).why);
	return w;
}

/* R3 = the address of the value's struct abi_given, plus @more. */
static void given_at(struct gen *g, const struct ebpf_wanted *w, uint32_t more)
{
	asm_ld(&g->as, BPF_DW, R3, R9, SCRATCH_GIVEN);
	asm_alui(&g->as, BPF_ADD, R3, (int32_t)(w->abi.off + more));
}

/* Read a struct abi_given: the value to FRAME_TMP and FRAME_TMP2; or the fault that it is. */
static void read_given(struct gen *g, const struct ebpf_wanted *w)
{
	struct assembler *as = &g->as;

	_Static_assert(FRAME_TMP == FRAME_TMP2 + (int)offsetof(struct abi_given, value), "both words are read at once");
	given_at(g, w, 0);
	asm_mov(as, R1, R10);
	asm_alui(as, BPF_ADD, R1, FRAME_TMP2);
	asm_imm(as, R2, sizeof(struct abi_given));
	asm_helper(as, BPF_FUNC_probe_read_user);
	asm_ji(as, BPF_JNE, R0, 0, gen_fault(g, ABI_FAULT_BADADDR, NO_VALUE));
	asm_ld(as, BPF_DW, R0, R10, FRAME_TMP2);
	asm_ld(as, BPF_DW, R1, R10, FRAME_TMP);
	asm_st(as, BPF_DW, R10, FRAME_TMP2, R1);
	gen_value_check(g);
}

void gen_given(struct gen *g, const struct ir_insn *i)
{
	const struct ebpf_wanted *w = need_given(g, i);

	if (!w)
		return;
	read_given(g, w);
	asm_ld(&g->as, BPF_DW, R1, R10, FRAME_TMP);
	gen_put(g, i, R1);
}

void gen_given_str(struct gen *g, const struct ir_insn *i, struct dest to)
{
	struct assembler *as = &g->as;
	uint32_t counted = asm_label(as);
	const struct ebpf_wanted *w = need_given(g, i);

	if (!w)
		return;
	read_given(g, w);
	given_at(g, w, offsetof(struct abi_given, value));
	gen_dest(g, R1, to);
	asm_imm(as, R2, g->prog->strsize);
	asm_helper(as, BPF_FUNC_probe_read_user_str);
	/* Older kernels do not count the NUL of an empty string (Linux 6.1). */
	asm_ji(as, BPF_JNE, R0, 0, counted);
	asm_imm(as, R0, 1);
	asm_bind(as, counted);
	asm_ji(as, BPF_JSLT, R0, 1, gen_fault(g, ABI_FAULT_BADADDR, NO_VALUE));
}

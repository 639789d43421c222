#include "bpf/link.h"

#include "base/arena.h"
#include "bpf/asm.h"

/* Where function @fn is in @a; it and what it needs are appended the first time. */
static uint32_t place(struct assembler *a, uint32_t *at, uint32_t fn)
{
	const struct rt_func *f = &rt_funcs[fn];

	if (at[fn] != ASM_UNSET)
		return at[fn];
	at[fn] = a->n;
	for (uint32_t k = 0; k < f->ninsns; k++)
		asm_raw(a, f->insns[k]);
	for (uint32_t k = 0; k < f->nrefs; k++) {
		uint32_t insn = at[fn] + f->refs[k].insn;

		/* A call, and a function's address, count from behind the instruction, or its first half. */
		a->insns[insn].imm = (__s32)(place(a, at, f->refs[k].fn) - insn - 1);
	}
	return at[fn];
}

void link_runtime(struct assembler *a)
{
	uint32_t *at = arena_alloc(a->arena, (rt_nfuncs + 1) * sizeof(*at));

	for (uint32_t k = 0; k < rt_nfuncs; k++)
		at[k] = ASM_UNSET;
	for (uint32_t k = 0; k < a->ncalls; k++) {
		uint32_t to = place(a, at, a->calls[k].fn), insn = a->calls[k].insn;

		a->insns[insn].imm = (__s32)(to - insn - 1);
	}
}

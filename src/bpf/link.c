#include "bpf/link.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "bpf/asm.h"
#include "bpf/rt/iter.h"
#include "bpf/rt/lock.h"
#include "bpf/rt/match.h"
#include "bpf/rt/path.h"
#include "bpf/rt/put.h"
#include "bpf/unit.h"

static const char *const params[] = {
#define RT_FN(NAME, SYMBOL, PARAMS, WHAT) PARAMS,
#include "bpf/rt/rt.def"
#undef RT_FN
};

struct linker {
	struct assembler *as;
	const struct ebpf_unit *unit;
	uint32_t *at;			/* by function: where it is, or ASM_UNSET */
	struct ebpf_func *funcs;
	uint32_t nfuncs;
	size_t funcs_cap;
};

/* The parameter that rt.def calls @letter. */
static struct ebpf_param param(const struct ebpf_unit *u, char letter)
{
	uint32_t room = ir_str_room(u->prog);

	switch (letter) {
	case 's':
		return (struct ebpf_param){ EBPF_PARAM_ANY, 0 };
	case 'd':
		return (struct ebpf_param){ EBPF_PARAM_MEMORY, room };
	case 'w':
		return (struct ebpf_param){ EBPF_PARAM_MEMORY, PUT_STATE + 2 * room + 8 };
	case 'm':
		return (struct ebpf_param){ EBPF_PARAM_MEMORY, 8 * MATCH_WORDS };
	case 'p':
		return (struct ebpf_param){ EBPF_PARAM_MEMORY, sizeof(struct path_work) };
	case 'b':
		return (struct ebpf_param){ EBPF_PARAM_MEMORY, u->maps[EBPF_MAP_ITERS].value_size };
	case 'n':
		return (struct ebpf_param){ EBPF_PARAM_MEMORY, 24 };
	case 'v':
		return (struct ebpf_param){ EBPF_PARAM_MEMORY, 16 };
	case 'V':
		return (struct ebpf_param){ EBPF_PARAM_MEMORY, 32 };
	case 'l':
		return (struct ebpf_param){ EBPF_PARAM_MEMORY, LOCK_LINE * (1 + u->priv->lock_slots) };
	default:
		return (struct ebpf_param){ EBPF_PARAM_NUMBER, 0 };
	}
}

/*
 * Begin a function: record it, and load the parameters that are the same for all calls, so that a check of the function
 * alone knows them, too.
 */
static void begin(struct linker *l, uint32_t fn)
{
	const char *p = fn < RT_NR ? params[fn] : "";
	struct ebpf_func *f;

	if (!*p)
		return;
	l->funcs = arena_grow(l->as->arena, l->funcs, &l->funcs_cap, l->nfuncs, sizeof(*l->funcs));
	f = &l->funcs[l->nfuncs++];
	*f = (struct ebpf_func){ .insn = l->as->n, .name = rt_funcs[fn].name };
	for (; *p; p++) {
		f->params[f->nparams++] = param(l->unit, *p);
		if (*p == 'z')
			asm_imm(l->as, f->nparams, l->unit->prog->strsize);
		else if (*p == 'e')
			asm_imm(l->as, f->nparams, l->unit->priv->iter_max);
		else if (*p == 'k')
			asm_imm(l->as, f->nparams, l->unit->priv->lock_slots);
	}
}

/* Where function @fn is; it and what it needs are appended the first time. */
static uint32_t place(struct linker *l, uint32_t fn)
{
	const struct rt_func *f = &rt_funcs[fn];
	struct assembler *a = l->as;
	uint32_t body;

	if (l->at[fn] != ASM_UNSET)
		return l->at[fn];
	l->at[fn] = a->n;
	begin(l, fn);
	body = a->n;
	for (uint32_t k = 0; k < f->ninsns; k++)
		asm_raw(a, f->insns[k]);
	for (uint32_t k = 0; k < f->nrefs; k++) {
		uint32_t insn = body + f->refs[k].insn;

		/*
		 * The immediate of a call or an address is relative to the end of the instruction, or of its first
		 * half.
		 */
		a->insns[insn].imm = (__s32)(place(l, f->refs[k].fn) - insn - 1);
	}
	return l->at[fn];
}

static int by_insn(const void *x, const void *y)
{
	const struct ebpf_func *a = x, *b = y;

	return a->insn < b->insn ? -1 : a->insn > b->insn;
}

void link_runtime(struct assembler *a, const struct ebpf_unit *u, struct ebpf_prog *p)
{
	struct linker l = { .as = a, .unit = u };

	l.at = arena_alloc(a->arena, (rt_nfuncs + 1) * sizeof(*l.at));
	for (uint32_t k = 0; k < rt_nfuncs; k++)
		l.at[k] = ASM_UNSET;
	for (uint32_t k = 0; k < a->ncalls; k++) {
		uint32_t to = place(&l, a->calls[k].fn), insn = a->calls[k].insn;

		a->insns[insn].imm = (__s32)(to - insn - 1);
	}
	if (l.nfuncs)
		qsort(l.funcs, l.nfuncs, sizeof(*l.funcs), by_insn);
	p->funcs = l.funcs;
	p->nfuncs = l.nfuncs;
}

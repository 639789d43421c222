/*
 * Shared by the interpreter and compiled code: which memory a program may access, helpers with pointer arguments;
 * vm_run.
 */
#include "vm/prog.h"

#include <errno.h>

static bool inside(uint64_t addr, uint64_t size, const void *base, uint64_t all)
{
	return size <= all && addr - (uint64_t)(uintptr_t)base <= all - size;
}

bool vm_reach(const struct vm_prog *p, const struct vm_thread *t, uint64_t addr, uint64_t size, bool write)
{
	if (inside(addr, size, t->stack, VM_STACK))
		return true;
	if ((!write || p->spec.ctx_writable) && inside(addr, size, t->ctx, p->spec.ctx_size))
		return true;
	/* The last map contains most of the others. */
	for (uint32_t k = p->spec.nmaps; k--;) {
		const struct vm_map *m = &p->spec.maps[k];

		if (m->base && !(write && m->readonly) && inside(addr, size, m->base, m->size))
			return true;
	}
	return false;
}

/* The map whose handle is @handle, or NULL. */
static const struct vm_map *map_of(const struct vm_prog *p, uint64_t handle)
{
	for (uint32_t k = 0; handle && k < p->spec.nmaps; k++) {
		if ((uint64_t)(uintptr_t)p->spec.maps[k].handle == handle)
			return &p->spec.maps[k];
	}
	return NULL;
}

static bool args_good(const struct vm_prog *p, struct vm_thread *t, const struct vm_helper *h, uint32_t known)
{
	const struct vm_map *map = known == VM_ANY_MAP ? NULL : &p->spec.maps[known];
	uint64_t *args = t->args;

	for (int k = 0; k < 5 && h->args[k] != VM_ARG_NONE; k++) {
		switch (h->args[k]) {
		case VM_ARG_MAP:
			if (known != VM_ANY_MAP)
				break;
			map = map_of(p, args[k]);
			if (!map)
				return false;
			break;
		case VM_ARG_KEY:
			if (!vm_reach(p, t, args[k], map->key_size, false))
				return false;
			break;
		case VM_ARG_VALUE:
			if (!vm_reach(p, t, args[k], map->value_size, false))
				return false;
			break;
		case VM_ARG_READ:
		case VM_ARG_WRITE:
			args[k + 1] = (uint32_t)args[k + 1];
			if (args[k + 1] && !vm_reach(p, t, args[k], args[k + 1], h->args[k] == VM_ARG_WRITE))
				return false;
			break;
		default:
			break;
		}
	}
	return true;
}

bool vm_call_checked(const struct vm_prog *p, struct vm_thread *t, uint32_t insn)
{
	const struct vm_note *note = &p->notes[insn];
	const struct vm_helper *h = &p->spec.helpers[note->to];

	if (!args_good(p, t, h, note->map))
		return false;
	t->ret = h->fn(t->args[0], t->args[1], t->args[2], t->args[3], t->args[4], t);
	return true;
}

int vm_walk_next(const struct vm_prog *p, struct vm_thread *t, struct vm_walk *w, uint32_t cost)
{
	struct vm_elem e;

	if (!p->spec.next(w->handle, t, w->from, &e))
		return 0;
	/* Skipped elements cost, too. */
	if (t->budget < cost + (e.number - w->from))
		return -ETIME;
	t->budget -= cost + (e.number - w->from);
	w->from = e.number + 1;
	w->turns++;
	t->args[1] = e.key;
	t->args[2] = e.value;
	return 1;
}

uint64_t vm_imm64(const struct vm_prog *p, const struct bpf_insn *i)
{
	const struct vm_map *maps = p->spec.maps;

	switch (i->src_reg) {
	case BPF_PSEUDO_MAP_FD:
		return (uint64_t)(uintptr_t)maps[i->imm].handle;
	case BPF_PSEUDO_MAP_VALUE:
		return (uint64_t)(uintptr_t)maps[i->imm].base + (uint32_t)i[1].imm;
	case VM_PSEUDO_FUNC:
		return (uint64_t)(i - p->insns) + 1 + (uint64_t)(int64_t)i->imm;
	default:
		return (uint64_t)(uint32_t)i[1].imm << 32 | (uint32_t)i->imm;
	}
}

bool vm_gives(const struct vm_prog *p, int32_t value)
{
	for (uint32_t at = p->funcs[0].start; at < p->funcs[0].end; at++) {
		const struct bpf_insn *i = &p->insns[at];

		if (i->code == (BPF_ALU64 | BPF_MOV | BPF_K) && i->dst_reg == BPF_REG_0 && i->imm == value)
			return true;
	}
	return false;
}

int vm_compile(struct vm_prog *p)
{
	return p->code ? 0 : vm_code_new(p);
}

int vm_run(const struct vm_prog *p, struct vm_thread *t, void *ctx, uint64_t *ret)
{
	int err;

	if (!p->code)
		return vm_interpret(p, t, ctx, ret);
	err = vm_enter(p, t, ctx);
	if (err)
		vm_code_fault(p, t);
	else
		*ret = t->ret;
	return err;
}

/*
 * The compiler: calls.  bpf_loop and bpf_for_each_map_elem are compiled to loops that call the callback; their state
 * is on the machine's stack.
 */
#include "vm/code.h"

#include <errno.h>

#include "abi/segment.h"

static void emit_call(struct compiler *c, const struct vm_func *from, const struct vm_func *to)
{
	struct code_buf *b = &c->b;

	jit_alu_imm(b, true, JIT_SUB, JIT_R10, (int32_t)from->frame);
	c->fixes[c->nfixes++] = (struct fix){ jit_call(b), to->start, true };
	jit_alu_imm(b, true, JIT_ADD, JIT_R10, (int32_t)from->frame);
}

/* On the machine's stack: the turn, the number of turns, the callback's argument, padding. */
static void emit_loop(struct compiler *c, const struct vm_func *from, const struct vm_func *to)
{
	struct code_buf *b = &c->b;
	size_t bad, many, none, good, again, top;

	jit_mov_imm(b, JIT_R0, (uint64_t)-EINVAL);
	jit_test(b, true, JIT_R4, JIT_R4);
	bad = jit_jump_if(b, JIT_NE);
	jit_mov_imm(b, JIT_R0, (uint64_t)-E2BIG);
	jit_mov(b, false, JIT_T1, JIT_R1);
	jit_alu_imm(b, false, JIT_CMP, JIT_T1, VM_MAX_LOOPS);
	many = jit_jump_if(b, JIT_GTU);
	jit_mov_imm(b, JIT_R0, 0);
	jit_test(b, false, JIT_T1, JIT_T1);
	none = jit_jump_if(b, JIT_EQ);
	jit_push(b, JIT_R3, JIT_R3);
	jit_push(b, JIT_R0, JIT_T1);
	top = b->n;
	jit_load(b, 8, false, JIT_T1, JIT_THREAD, THREAD(budget));
	jit_alu_imm(b, true, JIT_SUB, JIT_T1, (int32_t)to->cost);
	good = jit_jump_if(b, JIT_GEU);
	jit_land(b, jit_call(b), c->timeout);
	jit_land(b, good, b->n);
	jit_store(b, 8, JIT_THREAD, THREAD(budget), JIT_T1);
	jit_load(b, 8, false, JIT_R1, JIT_SP, 0);
	jit_load(b, 8, false, JIT_R2, JIT_SP, 16);
	jit_inc(b, JIT_SP, 0);
	emit_call(c, from, to);
	jit_load(b, 8, false, JIT_T1, JIT_SP, 0);
	jit_test(b, true, JIT_R0, JIT_R0);
	again = jit_jump_if(b, JIT_NE);
	jit_cmp_mem(b, JIT_T1, JIT_SP, 8);
	jit_land(b, jit_jump_if(b, JIT_LTU), top);
	jit_land(b, again, b->n);
	jit_mov(b, true, JIT_R0, JIT_T1);
	jit_alu_imm(b, true, JIT_ADD, JIT_SP, 32);
	jit_land(b, bad, b->n);
	jit_land(b, many, b->n);
	jit_land(b, none, b->n);
}

/* On the machine's stack: a struct vm_walk. */
static void emit_each(struct compiler *c, const struct vm_func *from, const struct vm_func *to)
{
	struct code_buf *b = &c->b;
	size_t bad, good, end, top;

	_Static_assert(sizeof(struct vm_walk) == 32, "what is pushed");
	jit_mov_imm(b, JIT_R0, (uint64_t)-EINVAL);
	jit_test(b, true, JIT_R4, JIT_R4);
	bad = jit_jump_if(b, JIT_NE);
	jit_push(b, JIT_R4, JIT_R3);
	jit_push(b, JIT_R1, JIT_R4);
	top = b->n;
	jit_mov_imm(b, JIT_R1, (uint64_t)(uintptr_t)c->p);
	jit_mov(b, true, JIT_R2, JIT_THREAD);
	jit_mov(b, true, JIT_R3, JIT_SP);
	jit_mov_imm(b, JIT_R4, to->cost);
	jit_call_c(b, (uint64_t)(uintptr_t)vm_walk_next);
	jit_test(b, false, JIT_R0, JIT_R0);
	end = jit_jump_if(b, JIT_EQ);
	jit_alu_imm(b, false, JIT_CMP, JIT_R0, 0);
	good = jit_jump_if(b, JIT_GTS);
	jit_land(b, jit_call(b), c->timeout);
	jit_land(b, good, b->n);
	jit_load(b, 8, false, JIT_R1, JIT_SP, offsetof(struct vm_walk, handle));
	jit_load(b, 8, false, JIT_R2, JIT_THREAD, THREAD(args) + 8);
	jit_load(b, 8, false, JIT_R3, JIT_THREAD, THREAD(args) + 16);
	jit_load(b, 8, false, JIT_R4, JIT_SP, offsetof(struct vm_walk, arg));
	emit_call(c, from, to);
	jit_test(b, true, JIT_R0, JIT_R0);
	jit_land(b, jit_jump_if(b, JIT_EQ), top);
	jit_land(b, end, b->n);
	jit_load(b, 8, false, JIT_R0, JIT_SP, offsetof(struct vm_walk, turns));
	jit_alu_imm(b, true, JIT_ADD, JIT_SP, sizeof(struct vm_walk));
	jit_land(b, bad, b->n);
}

/* The index of the memory argument, if that is the only one that must be checked at run time; else -1. */
static int memory_argument(const struct vm_helper *h, const struct vm_note *note)
{
	int found = -1;

	for (int k = 0; k < 5 && h->args[k] != VM_ARG_NONE; k++) {
		bool memory = h->args[k] == VM_ARG_READ || h->args[k] == VM_ARG_WRITE;

		if (h->args[k] == VM_ARG_KEY || h->args[k] == VM_ARG_VALUE || (memory && found >= 0) ||
		    (h->args[k] == VM_ARG_MAP && note->map == VM_ANY_MAP))
			return -1;
		if (memory)
			found = k;
	}
	return found;
}

static void emit_helper_call(struct compiler *c, const struct vm_helper *h)
{
	jit_mov(&c->b, true, JIT_T3, JIT_THREAD);
	jit_call_c(&c->b, (uint64_t)(uintptr_t)h->fn);
}

/*
 * A fast path for a call whose only argument to check, @k, is memory: check it against the last map, which contains
 * most of the others.  The two jumps in @others are taken if it is not inside.  Returns the jump over the code of the
 * checked call.
 */
static size_t emit_memory_call(struct compiler *c, const struct vm_helper *h, int k, const struct vm_map *map,
			       size_t others[2])
{
	int addr = JIT_R1 + k, size = JIT_R2 + k;
	struct code_buf *b = &c->b;

	jit_mov(b, false, size, size);
	jit_mov_imm(b, JIT_T2, map->size);
	jit_alu(b, true, JIT_SUB, JIT_T2, size);
	others[0] = jit_jump_if(b, JIT_LTU);
	jit_mov_imm(b, JIT_T1, (uint64_t)(uintptr_t)map->base);
	jit_mov(b, true, JIT_T3, addr);
	jit_alu(b, true, JIT_SUB, JIT_T3, JIT_T1);
	jit_alu(b, true, JIT_CMP, JIT_T3, JIT_T2);
	others[1] = jit_jump_if(b, JIT_GTU);
	emit_helper_call(c, h);
	return jit_jump(b);
}

/* Set in @slow: the jumps of emit_quick_last(), at most. */
enum { QUICK_JUMPS = 6, QUICK_WORDS = 3 };

/* R0 = the element found last in @map if it is live and has the key at R2; else one of the *n jumps in @slow is taken. */
static void emit_quick_last(struct compiler *c, const struct vm_map *map, size_t slow[QUICK_JUMPS], unsigned *n)
{
	struct code_buf *b = &c->b;

	jit_load(b, 8, false, JIT_T1, JIT_THREAD, THREAD(values) + 8 * (int32_t)map->word);
	jit_test(b, true, JIT_T1, JIT_T1);
	slow[(*n)++] = jit_jump_if(b, JIT_EQ);
	jit_load(b, 8, false, JIT_T1, JIT_T1, (int32_t)map->off);
	jit_test(b, true, JIT_T1, JIT_T1);
	slow[(*n)++] = jit_jump_if(b, JIT_EQ);
	jit_load(b, 4, false, JIT_T2, JIT_T1, offsetof(struct abi_elem, state));
	jit_alu_imm(b, false, JIT_CMP, JIT_T2, ABI_ELEM_LIVE);
	slow[(*n)++] = jit_jump_if(b, JIT_NE);
	for (uint32_t k = 0; k < map->key_size; k += 8) {
		jit_load(b, 8, false, JIT_T2, JIT_R2, (int32_t)k);
		jit_cmp_mem(b, JIT_T2, JIT_T1, (int32_t)(sizeof(struct abi_elem) + k));
		slow[(*n)++] = jit_jump_if(b, JIT_NE);
	}
	jit_lea(b, JIT_R0, JIT_T1, (int32_t)(sizeof(struct abi_elem) + map->key_size));
}

/*
 * The call of a helper that finds an element, without the call where the map says how.  The key is known to be readable.
 */
static void emit_find(struct compiler *c, const struct vm_map *map, const struct vm_helper *helper)
{
	struct code_buf *b = &c->b;
	size_t slow[QUICK_JUMPS], done;
	unsigned n = 0;

	if (map->quick == VM_QUICK_FIXED && map->off <= INT32_MAX) {
		jit_load(b, 8, false, JIT_R0, JIT_THREAD, THREAD(values) + 8 * (int32_t)map->word);
		jit_alu_imm(b, true, JIT_ADD, JIT_R0, (int32_t)map->off);
		return;
	}
	if (map->quick != VM_QUICK_LAST || map->off > INT32_MAX || map->key_size % 8 || map->key_size > 8 * QUICK_WORDS) {
		emit_helper_call(c, helper);
		return;
	}
	emit_quick_last(c, map, slow, &n);
	done = jit_jump(b);
	while (n)
		jit_land(b, slow[--n], b->n);
	emit_helper_call(c, helper);
	jit_land(b, done, b->n);
}

static void emit_helper(struct compiler *c, const struct vm_note *note, uint32_t at)
{
	const struct vm_spec *s = &c->p->spec;
	const struct vm_helper *helper = &s->helpers[note->to];
	struct code_buf *b = &c->b;
	size_t good, done = 0, others[2];
	int memory;

	if (note->call == VM_CALL_HELPER && !helper->fn) {
		jit_load(b, 8, false, JIT_R0, JIT_THREAD, helper->ret == VM_RET_CTX ? THREAD(ctx) :
			 THREAD(values) + 8 * (int32_t)helper->value);
		return;
	}
	if (note->call == VM_CALL_HELPER && helper->ret == VM_RET_ELEM) {
		emit_find(c, &s->maps[note->map], helper);
		return;
	}
	if (note->call == VM_CALL_HELPER) {
		emit_helper_call(c, helper);
		return;
	}
	memory = s->nmaps ? memory_argument(helper, note) : -1;
	if (memory >= 0 && code_usable(s, s->nmaps - 1, helper->args[memory] == VM_ARG_WRITE, 1)) {
		done = emit_memory_call(c, helper, memory, &s->maps[s->nmaps - 1], others);
		for (int k = 0; k < 2; k++)
			jit_land(b, others[k], b->n);
	}
	for (int k = 0; k < 5; k++)
		jit_store(b, 8, JIT_THREAD, THREAD(args) + 8 * k, JIT_R1 + k);
	jit_mov_imm(b, JIT_R1, (uint64_t)(uintptr_t)c->p);
	jit_mov(b, true, JIT_R2, JIT_THREAD);
	jit_mov_imm(b, JIT_R3, at);
	jit_call_c(b, (uint64_t)(uintptr_t)vm_call_checked);
	jit_test_bool(b, JIT_R0);
	good = jit_jump_if(b, JIT_NE);
	jit_land(b, jit_call(b), c->fault);
	jit_land(b, good, b->n);
	jit_load(b, 8, false, JIT_R0, JIT_THREAD, THREAD(ret));
	if (done)
		jit_land(b, done, b->n);
}

void code_call(struct compiler *c, const struct vm_func *f, uint32_t at)
{
	const struct vm_note *note = &c->p->notes[at];

	if (note->call == VM_CALL_FUNC)
		emit_call(c, f, &c->p->funcs[note->to]);
	else if (note->call == VM_CALL_LOOP)
		emit_loop(c, f, &c->p->funcs[note->to]);
	else if (note->call == VM_CALL_EACH)
		emit_each(c, f, &c->p->funcs[note->to]);
	else
		emit_helper(c, note, at);
}

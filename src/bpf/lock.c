#include "bpf/gen.h"

#include "bpf/lock.h"

#include "base/arena.h"
#include "bpf/rt/lock.h"
#include "ir/facts.h"

/* --- who uses what ------------------------------------------------------------------------------------ */

/* What is global, as one number: the variables, and behind them the arrays; or NOTHING. */
enum { NOTHING = 0xffffffff };

static uint32_t object_of(const struct ir_prog *prog, const struct ir_insn *i)
{
	const struct ir_map *m = ir_insn_map(i);

	if (ir_op_fact(i->op)->attr == IR_ATTR_VAR)
		return i->var->cls == IR_GLOBAL ? i->var->id : NOTHING;
	return m && m->cls == IR_GLOBAL ? prog->nvars + m->id : NOTHING;
}

static bool writes(const struct ir_insn *i)
{
	switch (i->op) {
	case IR_VST:
	case IR_VADD:
	case IR_MST:
	case IR_MADD:
	case IR_MDEL:
	case IR_MCLEAR:
	case IR_STAT:
		return true;
	default:
		return false;
	}
}

/* Does it take as many steps as it may, so that others see some of them? */
static bool is_long(const struct ir_insn *i)
{
	return i->op == IR_ITER || i->op == IR_MCLEAR || i->op == IR_EMIT;
}

struct object {
	bool event, written;	/* an event uses it; somebody writes to it who does not run alone */
	uint32_t group;		/* another one that is used together with it, or itself */
};

static uint32_t find_group(struct object *v, uint32_t k)
{
	while (v[k].group != k)
		k = v[k].group = v[v[k].group].group;
	return k;
}

typedef void use_fn(void *ctx, const struct ir_insn *i, uint32_t object);

static void each_use(const struct ir_prog *prog, const struct plan *plan, use_fn *fn, void *ctx)
{
	for (uint32_t b = 0; b < plan->nblocks; b++) {
		const struct ir_block *k = plan->blocks[b];

		for (uint32_t j = 0; j < k->n; j++) {
			uint32_t object = object_of(prog, &k->insns[j]);

			if (object != NOTHING)
				fn(ctx, &k->insns[j], object);
		}
	}
}

/* One pass over a clause. */
struct pass {
	struct object *objects;
	const struct ir_clause *clause;
	bool loops;
	uint32_t first;		/* the first object that matters, or NOTHING */
	uint32_t n;		/* operations on such */
};

static void note(void *ctx, const struct ir_insn *i, uint32_t object)
{
	struct pass *p = ctx;

	p->objects[object].event |= p->clause->runs == IR_EVENT;
	p->objects[object].written |= writes(i);
}

static void count(void *ctx, const struct ir_insn *i, uint32_t object)
{
	struct pass *p = ctx;

	if (!p->objects[object].event || !p->objects[object].written)
		return;
	p->n += p->loops || is_long(i) ? 2 : 1;
	if (p->first == NOTHING)
		p->first = object;
	p->objects[find_group(p->objects, object)].group = find_group(p->objects, p->first);
}

static bool may_repeat(const struct plan *plan)
{
	for (uint32_t b = 0; b < plan->nblocks; b++) {
		for (uint32_t j = 0; j < plan->blocks[b]->n; j++) {
			enum ir_op op = plan->blocks[b]->insns[j].op;

			if (op == IR_TURN || op == IR_ENTER)
				return true;
		}
	}
	return false;
}

/* --- the plan ----------------------------------------------------------------------------------------- */

static uint32_t slots_for(uint32_t ncpus)
{
	uint32_t n = 1;

	while (n < LOCK_SLOTS_MAX && (!ncpus || n < ncpus))
		n *= 2;
	return n;
}

uint32_t lock_plan(const struct ir_prog *prog, struct ebpf_private *p, uint32_t ncpus, uint32_t off)
{
	uint32_t nobjects = prog->nvars + prog->nmaps;
	struct object *v = arena_alloc(prog->arena, nobjects * sizeof(*v) + 1);
	uint32_t *used = arena_alloc(prog->arena, prog->nclauses * sizeof(*used) + 1);
	uint32_t *at = arena_alloc(prog->arena, nobjects * sizeof(*at) + 1);	/* by group: where its lock is */
	bool *shared = arena_alloc(prog->arena, nobjects * sizeof(*shared) + 1);

	p->locks = arena_alloc(prog->arena, prog->nclauses * sizeof(*p->locks) + 1);
	if (!prog->exclusive)
		return off;
	for (uint32_t k = 0; k < nobjects; k++)
		v[k].group = k;
	for (uint32_t c = 0; c < prog->nclauses; c++) {
		struct pass pass = { .objects = v, .clause = prog->clauses[c] };

		if (prog->clauses[c]->runs != IR_ALONE)
			each_use(prog, p->plans[c], note, &pass);
	}
	for (uint32_t c = 0; c < prog->nclauses; c++) {
		struct pass pass = { v, prog->clauses[c], may_repeat(p->plans[c]), NOTHING, 0 };

		if (prog->clauses[c]->runs != IR_ALONE)
			each_use(prog, p->plans[c], count, &pass);
		used[c] = pass.first;
		if (pass.n)
			p->locks[c].how = pass.n > 1 ? LOCK_TAKE : LOCK_SHARE;
	}
	p->lock_slots = slots_for(ncpus);
	off = (off + LOCK_LINE - 1) & ~(LOCK_LINE - 1u);
	for (uint32_t c = 0; c < prog->nclauses; c++) {
		uint32_t group = p->locks[c].how ? find_group(v, used[c]) : 0;

		if (p->locks[c].how == LOCK_SHARE)
			shared[group] = true;
		if (p->locks[c].how != LOCK_TAKE || at[group])
			continue;
		at[group] = off + 1;
		off += LOCK_LINE * (1 + p->lock_slots);
	}
	for (uint32_t c = 0; c < prog->nclauses; c++) {
		uint32_t group = p->locks[c].how ? find_group(v, used[c]) : 0;

		if (!p->locks[c].how)
			continue;
		if (!at[group])
			p->locks[c].how = LOCK_NONE;
		else
			p->locks[c].off = at[group] - 1;
		p->locks[c].shared = shared[group];
	}
	return off;
}

/* --- code --------------------------------------------------------------------------------------------- */

/*
 * SystemTap waits for as long everywhere: MAXTRYLOCK times TRYLOCKDELAY.  So do tracepoints here, but for programs on other
 * CPUs alone.  A sample's interrupt may be one that nothing else can interrupt, and the next one comes soon.
 */
enum { WAIT_SAMPLE_NS = 100000 };

/* R2 = how to go in. */
static void load_how(struct gen *g, bool shared)
{
	bool alone = g->env->ctx == EBPF_CTX_PERF || g->env->ctx == EBPF_CTX_TP;
	struct assembler *as = &g->as;

	asm_helper(as, BPF_FUNC_get_smp_processor_id);
	asm_mov(as, R2, R0);
	asm_alui(as, BPF_LSH, R2, LOCK_CPU_SHIFT);
	if (shared || alone)
		asm_alui(as, BPF_OR, R2, (shared ? LOCK_SHARED : 0) | (alone ? LOCK_ALONE : 0));
}

static const struct lock_use *use_of(const struct gen *g, const struct ir_clause *c)
{
	const struct lock_use *use = &g->priv->locks[c->id];

	return use->how == LOCK_NONE || g->env->user_space ? NULL : use;
}

void gen_lock(struct gen *g, const struct ir_clause *c, uint32_t skipped)
{
	const struct lock_use *use = use_of(g, c);
	struct assembler *as = &g->as;
	uint64_t wait = g->prog->lock_wait_ns;
	uint32_t got = asm_label(as);

	if (!use)
		return;
	if (g->env->ctx == EBPF_CTX_PERF && wait > WAIT_SAMPLE_NS)
		wait = WAIT_SAMPLE_NS;
	load_how(g, use->shared);
	asm_map_value(as, R1, EBPF_MAP_ORDER, use->off);
	asm_imm(as, R3, g->priv->lock_slots);
	asm_imm(as, R4, (int64_t)wait);
	asm_rt(as, use->how == LOCK_SHARE ? RT_SHARE : RT_TAKE);
	asm_ji(as, BPF_JNE, R0, 0, got);
	gen_drop(g, ABI_DROP_LOCK);
	asm_ja(as, skipped);
	asm_place(as, got);
}

void gen_unlock(struct gen *g, const struct ir_clause *c)
{
	const struct lock_use *use = use_of(g, c);
	struct assembler *as = &g->as;

	if (!use)
		return;
	if (use->how == LOCK_SHARE) {
		asm_helper(as, BPF_FUNC_get_smp_processor_id);
		asm_mov(as, R2, R0);
	}
	asm_map_value(as, R1, EBPF_MAP_ORDER, use->off);
	if (use->how == LOCK_SHARE) {
		asm_alui(as, BPF_AND, R2, (int32_t)g->priv->lock_slots - 1);
		asm_alui(as, BPF_MUL, R2, LOCK_LINE);
		asm_alu(as, BPF_ADD, R1, R2);
		asm_imm(as, R2, -1);
		asm_atomic(as, BPF_ADD | BPF_FETCH, BPF_DW, R1, LOCK_LINE, R2);
	} else {
		asm_imm(as, R2, 0);
		asm_atomic(as, BPF_XCHG, BPF_DW, R1, 0, R2);
	}
}

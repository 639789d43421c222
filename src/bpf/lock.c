#include "bpf/gen.h"

#include "bpf/lock.h"

#include "base/arena.h"
#include "bpf/rt/lock.h"
#include "ir/facts.h"

/* --- uses of variables -------------------------------------------------------------------------------- */

/* Global variables and arrays are numbered together: the variables first, then the arrays.  NOTHING: neither. */
enum { NOTHING = 0xffffffff };

static uint32_t global_of(const struct ir_prog *prog, const struct ir_insn *i)
{
	const struct ir_map *m = ir_insn_map(i);

	if (ir_op_fact(i->op)->attr == IR_ATTR_VAR)
		return i->var->cls == IR_GLOBAL ? i->var->id : NOTHING;
	return m && m->cls == IR_GLOBAL ? prog->nvars + m->id : NOTHING;
}

struct global {
	bool event, written;	/* an event uses it; a clause writes to it that does not run alone */
	uint32_t group;		/* another one that is used together with it, or itself */
};

static uint32_t find_group(struct global *v, uint32_t k)
{
	while (v[k].group != k)
		k = v[k].group = v[v[k].group].group;
	return k;
}

typedef void use_fn(void *ctx, const struct ir_insn *i, uint32_t global);

static void each_use(const struct ir_prog *prog, const struct plan *plan, use_fn *fn, void *ctx)
{
	struct ir_walk w = ir_walk_blocks(plan->blocks, plan->nblocks);

	for (const struct ir_insn *i; (i = ir_next(&w));) {
		uint32_t global = global_of(prog, i);

		if (global != NOTHING)
			fn(ctx, i, global);
	}
}

/* One pass over a clause. */
struct pass {
	struct global *globals;
	const struct ir_clause *clause;
	bool loops;
	uint32_t first;		/* the first global that matters, or NOTHING */
	uint32_t n;		/* operations on such */
};

static void note(void *ctx, const struct ir_insn *i, uint32_t global)
{
	struct pass *p = ctx;

	p->globals[global].event |= p->clause->runs == IR_EVENT;
	p->globals[global].written |= (ir_effects(i) & (IR_W_VAR | IR_W_MAP)) != 0;
}

static void count(void *ctx, const struct ir_insn *i, uint32_t global)
{
	struct pass *p = ctx;

	if (!p->globals[global].event || !p->globals[global].written)
		return;
	p->n += p->loops || ir_effects(i) & IR_LONG ? 2 : 1;
	if (p->first == NOTHING)
		p->first = global;
	p->globals[find_group(p->globals, global)].group = find_group(p->globals, p->first);
}

static bool may_repeat(const struct plan *plan)
{
	struct ir_walk w = ir_walk_blocks(plan->blocks, plan->nblocks);

	for (const struct ir_insn *i; (i = ir_next(&w));) {
		if (i->op == IR_TURN || i->op == IR_ENTER)
			return true;
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
	uint32_t nglobals = prog->nvars + prog->nmaps;
	struct global *v = arena_alloc(prog->arena, nglobals * sizeof(*v) + 1);
	uint32_t *used = arena_alloc(prog->arena, prog->nclauses * sizeof(*used) + 1);
	uint32_t *at = arena_alloc(prog->arena, nglobals * sizeof(*at) + 1);	/* by group: 1 + where its lock is */
	bool *shared = arena_alloc(prog->arena, nglobals * sizeof(*shared) + 1);

	p->locks = arena_alloc(prog->arena, prog->nclauses * sizeof(*p->locks) + 1);
	p->is_apart = true;
	for (uint32_t k = 0; k < nglobals; k++)
		v[k].group = k;
	for (uint32_t c = 0; c < prog->nclauses; c++) {
		struct pass pass = { .globals = v, .clause = prog->clauses[c] };

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
		p->is_apart &= pass.n <= 1;
	}
	if (!prog->exclusive) {
		for (uint32_t c = 0; c < prog->nclauses; c++)
			p->locks[c].how = LOCK_NONE;
		return off;
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
 * SystemTap waits equally long everywhere: MAXTRYLOCK times TRYLOCKDELAY.  So do tracepoints here, but only for
 * programs on other CPUs.  A sample waits less: its interrupt may be one that nothing else can interrupt, and the next
 * one comes soon.
 */
enum { WAIT_SAMPLE_NS = 100000 };

/* R2 = how to take or share the lock (rt/lock.h). */
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
	asm_bind(as, got);
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

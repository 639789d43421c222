/*
 * The handler of each block's faults, if it is known when the program is generated.  TRYs nest, and in most clauses a
 * block is inside the same TRYs on every path that leads to it.  Procedures are an exception: if one is recursive, each
 * call may be inside other TRYs.
 */
#include "bpf/plan.h"

#include "base/arena.h"
#include "ir/facts.h"

/* Set the innermost TRY at @b's start; false: a different one is known already. */
static bool reach(struct plan *plan, bool *known, const struct ir_block *b, struct region *r)
{
	if (known[b->id])
		return plan->regions[b->id] == r;
	known[b->id] = true;
	plan->regions[b->id] = r;
	return true;
}

/* Set it for the successors of @b, for whose own start it is known. */
static bool go_on(struct plan *plan, bool *known, struct region **made, struct arena *a, const struct ir_block *b)
{
	const struct ir_insn *end = &b->insns[b->n - 1];
	struct region *r = plan->regions[b->id];
	struct ir_block *succ[2];
	unsigned int n = ir_successors(b, succ);

	for (uint32_t k = 0; k < b->n; k++) {
		if (b->insns[k].op != IR_ENDTRY)
			continue;
		if (!r)
			return false;
		r = r->outer;
	}
	if (end->op != IR_TRY) {
		for (unsigned int s = 0; s < n; s++)
			if (!reach(plan, known, succ[s], r))
				return false;
		return true;
	}
	if (!made[b->id]) {
		made[b->id] = arena_new_of(a, struct region);
		*made[b->id] = (struct region){ .insn = end, .outer = r, .number = plan->nregions++ };
	}
	return reach(plan, known, end->target[0], r) && reach(plan, known, end->target[1], made[b->id]);
}

void tries_plan(struct arena *a, const struct ir_clause *c, struct plan *plan)
{
	struct region **made = arena_alloc(a, c->nblocks * sizeof(*made));	/* by block that ends with a TRY */
	bool *known = arena_alloc(a, c->nblocks * sizeof(*known));

	plan->regions = arena_alloc(a, c->nblocks * sizeof(*plan->regions));
	for (uint32_t b = 0; b < plan->nblocks; b++) {
		if (plan->blocks[b]->insns[plan->blocks[b]->n - 1].op == IR_ENTER)
			goto unknown;
	}
	known[plan->blocks[0]->id] = true;
	/* Each block comes after one that leads to it. */
	for (uint32_t b = 0; b < plan->nblocks; b++) {
		if (!known[plan->blocks[b]->id] || !go_on(plan, known, made, a, plan->blocks[b]))
			goto unknown;
	}
	return;
unknown:
	plan->regions = NULL;
	plan->nregions = 0;
}

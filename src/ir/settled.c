#include "ir/settled.h"

#include "base/arena.h"

/* Is every definition of @r one of these arguments? */
static bool is_argument(const struct ir_clause *c, ir_reg r, uint32_t args)
{
	struct ir_walk w = ir_walk_clause(c);

	for (const struct ir_insn *i; (i = ir_next(&w));)
		if (i->dst == r && !(i->op == IR_ARG && i->imm >= 0 && i->imm < 32 && args >> i->imm & 1))
			return false;
	return true;
}

/* Does the result of @i follow from its operands and these arguments alone?  A fault does not matter: it ends the run. */
static bool follows(const struct ir_clause *c, const struct ir_insn *i, uint32_t args)
{
	if (i->op == IR_ARG)
		return i->imm >= 0 && i->imm < 32 && args >> i->imm & 1;
	if (i->op == IR_CALL && i->fn == IR_FN_COPYINSTR)
		return is_argument(c, i->args[0], args);
	if (i->op == IR_CALL)
		return ir_fn_is_pure(i->fn);
	return i->op != IR_BUILTIN && !ir_needs(i) && !(ir_effects(i) & ~(uint32_t)(IR_FAULTS | IR_STEADY | IR_ENDS));
}

static bool all_follow(const struct ir_clause *c, const struct ir_block *b, uint32_t args)
{
	for (uint32_t k = 0; k < b->n; k++)
		if (!follows(c, &b->insns[k], args))
			return false;
	return true;
}

/* Successors of a block that is not settled are not, either.  True: that was new for one. */
static bool spread(const struct ir_block *b, bool *settled)
{
	struct ir_block *out[2];
	unsigned int n = ir_successors(b, out);
	bool changed = false;

	for (unsigned int k = 0; k < n; k++) {
		changed |= settled[out[k]->id];
		settled[out[k]->id] = false;
	}
	return changed;
}

const bool *ir_settled(const struct ir_clause *c, uint32_t args, struct arena *arena)
{
	bool *settled = arena_alloc(arena, c->nblocks * sizeof(*settled)), changed = true, any = false;

	for (uint32_t k = 0; k < c->nblocks; k++)
		settled[c->blocks[k]->id] = all_follow(c, c->blocks[k], args);
	while (changed) {
		changed = false;
		for (uint32_t k = 0; k < c->nblocks; k++)
			if (!settled[c->blocks[k]->id])
				changed |= spread(c->blocks[k], settled);
	}
	for (uint32_t k = 0; k < c->nblocks; k++)
		any |= settled[c->blocks[k]->id] && ir_end(c->blocks[k])->op == IR_RET;
	return any ? settled : NULL;
}

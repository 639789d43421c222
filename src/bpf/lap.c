/*
 * Laps: clauses that add a thread's time since its last event to an element of its calling context.
 *
 *	last = self->last; self->last = timestamp;
 *	@[pid, pystack()] = avg(last ? timestamp - last : 0)
 *
 * and the same with sum(), done only if @last is not 0.  A process of the target place does this at a fraction of a
 * program's cost (agent/lap.c), so such clauses are recognised: not by how they are written, but by what they do.  The
 * clause is executed twice with symbols for values, once for @last 0 and once for another value, and the effects are
 * compared.
 */
#include "bpf/ebpf.h"

#include <string.h>

#include "base/arena.h"
#include "bpf/unit.h"

enum kind { OTHER, CONSTANT, LAST, NOW, SINCE, PID, STACK };	/* SINCE: NOW - LAST */

struct value {
	enum kind kind;
	int64_t n;		/* CONSTANT: it; STACK: the number of frames */
};

struct run {
	const struct ebpf_unit *unit;
	bool running;			/* LAST is not 0 */
	struct value *regs, *vars;	/* by number */
	const struct ir_var *last;	/* the thread's variable, or NULL: not seen yet */
	bool stored;			/* NOW in @last */
	const struct ir_agg *agg;	/* added to, or NULL */
	int64_t frames;
	struct value added;
};

static struct value of(enum kind kind, int64_t n)
{
	return (struct value){ kind, n };
}

static struct value loaded(struct run *r, const struct ir_var *v)
{
	if (v->cls == IR_CLAUSE || v->cls == IR_LOCAL)
		return r->vars[v->id];
	if (v->cls != IR_THREAD || v->slot.type != IR_INT || v->slot.width != 8 || (r->last && r->last != v))
		return of(OTHER, 0);
	r->last = v;
	return r->stored ? of(NOW, 0) : r->running ? of(LAST, 0) : of(CONSTANT, 0);
}

/* False: not part of a lap. */
static bool store(struct run *r, const struct ir_var *v, struct value what)
{
	if (v->cls == IR_CLAUSE || v->cls == IR_LOCAL) {
		r->vars[v->id] = v->slot.type == IR_INT && v->slot.width == 8 ? what : of(OTHER, 0);
		return true;
	}
	if (v != r->last || r->stored || what.kind != NOW)
		return false;
	r->stored = true;
	return true;
}

static struct value stack(const struct run *r, const struct ir_insn *i)
{
	const struct value *which, *frames;

	if (i->nargs != 2)
		return of(OTHER, 0);
	which = &r->regs[i->args[0]];
	frames = &r->regs[i->args[1]];
	return which->kind == CONSTANT && which->n == IR_STACK_FUNCTIONS && frames->kind == CONSTANT ? of(STACK, frames->n) :
												       of(OTHER, 0);
}

static struct value difference(struct value a, struct value b)
{
	return a.kind == NOW && b.kind == LAST ? of(SINCE, 0) : of(OTHER, 0);
}

static bool add(struct run *r, const struct ir_insn *i)
{
	if (r->agg || i->nargs != 3 || i->agg->nkeys != 2 || r->regs[i->args[1]].kind != PID || r->regs[i->args[2]].kind != STACK)
		return false;
	r->agg = i->agg;
	r->added = r->regs[i->args[0]];
	r->frames = r->regs[i->args[2]].n;
	return true;
}

/* Execute one instruction that does not end its block.  False: it is not part of a lap. */
static bool step(struct run *r, const struct ir_insn *i)
{
	struct value v = of(OTHER, 0);

	switch (i->op) {
	case IR_CONST:
		v = of(CONSTANT, i->imm);
		break;
	case IR_MOV:
		v = r->regs[i->args[0]];
		break;
	case IR_BUILTIN:
		v = of(i->bi == IR_B_TIMESTAMP ? NOW : i->bi == IR_B_PID ? PID : OTHER, 0);
		break;
	case IR_VLD:
		v = loaded(r, i->var);
		break;
	case IR_VST:
		return store(r, i->var, r->regs[i->args[0]]);
	case IR_SUB:
		v = difference(r->regs[i->args[0]], r->regs[i->args[1]]);
		break;
	case IR_CALL:
		if (i->fn != IR_FN_STACK)
			return false;
		v = stack(r, i);
		break;
	case IR_AGG:
		return add(r, i);
	default:
		return false;
	}
	r->regs[i->dst] = v;
	return true;
}

/* The block after the last instruction of one; NULL and *ended: none; NULL: that cannot be told. */
static const struct ir_block *next(const struct run *r, const struct ir_insn *i, bool *ended)
{
	struct value v;

	*ended = i->op == IR_RET;
	if (i->op == IR_JMP)
		return i->target[0];
	if (i->op != IR_BR)
		return NULL;
	v = r->regs[i->args[0]];
	if (v.kind != CONSTANT && v.kind != LAST)
		return NULL;
	return i->target[v.kind == CONSTANT && !v.n];
}

/* Execute the clause.  False: it does something else. */
static bool execute(struct run *r, const struct ir_clause *c)
{
	const struct ir_block *b = c->blocks[0];
	bool ended = false;

	for (uint32_t steps = 0; b && steps < c->nblocks; steps++) {
		for (uint32_t k = 0; k + 1 < b->n; k++)
			if (!step(r, &b->insns[k]))
				return false;
		b = next(r, &b->insns[b->n - 1], &ended);
	}
	return ended;
}

static void start(struct run *r, const struct ebpf_unit *u, const struct ir_clause *c, bool running)
{
	*r = (struct run){ .unit = u, .running = running };
	r->regs = arena_alloc(u->prog->arena, (c->nregs + 1) * sizeof(*r->regs));
	r->vars = arena_alloc(u->prog->arena, (u->prog->nvars + 1) * sizeof(*r->vars));
	memset(r->regs, 0, (c->nregs + 1) * sizeof(*r->regs));
	for (uint32_t k = 0; k < u->prog->nvars; k++)
		r->vars[k] = of(u->prog->vars[k]->cls == IR_CLAUSE ? CONSTANT : OTHER, 0);
}

static bool has_added(const struct run *r, enum ir_agg_fn fn, enum kind kind)
{
	return r->stored && r->agg && r->agg->fn == fn && r->added.kind == kind && !r->added.n;
}

enum abi_lap ebpf_is_lap(const struct ebpf_unit *u, const struct ir_clause *c, struct ebpf_lap *ret)
{
	struct run first, later;
	enum abi_lap lap = ABI_LAP_NONE;

	start(&first, u, c, false);
	start(&later, u, c, true);
	if (!execute(&first, c) || !execute(&later, c) || !later.last)
		return ABI_LAP_NONE;
	if (has_added(&later, IR_A_AVG, SINCE) && has_added(&first, IR_A_AVG, CONSTANT) && first.agg == later.agg &&
	    first.frames == later.frames)
		lap = ABI_LAP_ALL;
	else if (has_added(&later, IR_A_SUM, SINCE) && !first.stored && !first.agg)
		lap = ABI_LAP_LATER;
	if (lap && ebpf_agg_maps(u, later.agg, &ret->map) != 1)
		return ABI_LAP_NONE;
	ret->threads = EBPF_MAP_THREADS;
	ret->last = u->priv->var_off[later.last->id];
	ret->frames = (uint32_t)later.frames;
	return lap;
}

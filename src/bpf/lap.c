/*
 * Laps: clauses that add a thread's time since its last event to an element of its calling context.
 *
 *	last = self->last; self->last = timestamp;
 *	@[pid, pystack()] = avg(last ? timestamp - last : 0)
 *
 * and the same with sum(), done only if @last is not 0; and clauses for the time between two events:
 *
 *	self->last = timestamp
 *	/self->last/ @[probefunc] = quantize(timestamp - self->last); self->last = 0
 *
 * without keys, or with such as follow from the process, the probe, and the code object's file and name, arguments 0 and 1.
 * A process of the target place does this at a fraction of a program's cost (agent/lap.c, agent/span.c), so such clauses are
 * recognised: not by how they are written, but by what they do.  The clause is executed twice with symbols for values, once for
 * @last 0 and once for another value, and the effects are compared.
 */
#include "bpf/ebpf.h"

#include <string.h>

#include "base/arena.h"
#include "bpf/unit.h"
#include "ir/facts.h"

/* SINCE: NOW - LAST; TEXT: the address of the file or the name; CODE: what follows from them and the probe. */
enum kind { OTHER, CONSTANT, LAST, NOW, SINCE, PID, STACK, TEXT, CODE };

struct value {
	enum kind kind;
	int64_t n;		/* CONSTANT: it; STACK: the number of frames */
};

struct run {
	const struct ebpf_unit *unit;
	bool running;			/* LAST is not 0 */
	struct value *regs, *vars;	/* by number */
	const struct ir_var *last;	/* the thread's variable, or NULL: not seen yet */
	enum kind stored;		/* in @last: NOW, or CONSTANT, 0; OTHER: nothing */
	const struct ir_agg *agg;	/* added to, or NULL */
	bool by_stack;			/* its keys are the process and a stack, of @frames; else by code, if there are any */
	int64_t frames;
	struct value added;
};

static struct value of(enum kind kind, int64_t n)
{
	return (struct value){ kind, n };
}

/* Is @v the thread's variable? */
static bool is_last(struct run *r, const struct ir_var *v)
{
	if (v->cls != IR_THREAD || v->slot.type != IR_INT || v->slot.width != 8 || (r->last && r->last != v))
		return false;
	r->last = v;
	return true;
}

static struct value loaded(struct run *r, const struct ir_var *v)
{
	if (v->cls == IR_CLAUSE || v->cls == IR_LOCAL)
		return r->vars[v->id];
	if (!is_last(r, v))
		return of(OTHER, 0);
	return of(r->stored ? r->stored : r->running ? LAST : CONSTANT, 0);
}

/* False: not part of a lap. */
static bool store(struct run *r, const struct ir_var *v, struct value what)
{
	if (v->cls == IR_CLAUSE || v->cls == IR_LOCAL) {
		r->vars[v->id] = v->slot.type == IR_INT && v->slot.width == 8 ? what : of(OTHER, 0);
		return true;
	}
	if (!is_last(r, v) || r->stored || (what.kind != NOW && (what.kind != CONSTANT || what.n)))
		return false;
	r->stored = what.kind;
	return true;
}

static bool is_settled(struct value v)
{
	return v.kind == CODE || v.kind == PID || v.kind == CONSTANT;
}

/* Does what is in the @n registers @regs follow from the code? */
static bool are_settled(const struct run *r, const ir_reg *regs, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		if (!is_settled(r->regs[regs[k]]))
			return false;
	return true;
}

static struct value called(const struct run *r, const struct ir_insn *i)
{
	if (i->fn == IR_FN_COPYINSTR && r->regs[i->args[0]].kind == TEXT && r->regs[i->args[1]].kind == CONSTANT)
		return of(CODE, 0);
	return of(ir_fn_is_pure(i->fn) && are_settled(r, i->args, i->nargs) ? CODE : OTHER, 0);
}

static struct value builtin(enum ir_builtin bi)
{
	switch (bi) {
	case IR_B_TIMESTAMP:
		return of(NOW, 0);
	case IR_B_PID:
		return of(PID, 0);
	case IR_B_PROBEPROV: case IR_B_PROBEMOD: case IR_B_PROBEFUNC: case IR_B_PROBENAME:
		return of(CODE, 0);
	default:
		return of(OTHER, 0);
	}
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

static bool is_one(struct value v)
{
	return v.kind == CONSTANT && v.n == 1;
}

static bool add(struct run *r, const struct ir_insn *i)
{
	uint32_t operands = ir_agg_operands(i->agg->fn);
	const ir_reg *keys = i->args + operands;

	if (r->agg || !operands || (operands > 1 && !is_one(r->regs[i->args[1]])))
		return false;
	if (i->agg->nkeys == 2 && r->regs[keys[0]].kind == PID && r->regs[keys[1]].kind == STACK) {
		r->by_stack = true;
		r->frames = r->regs[keys[1]].n;
	} else if (!are_settled(r, keys, i->agg->nkeys)) {
		return false;
	}
	r->agg = i->agg;
	r->added = r->regs[i->args[0]];
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
		v = builtin(i->bi);
		break;
	case IR_ARG:
		v = of(i->imm == 0 || i->imm == 1 ? TEXT : OTHER, 0);
		break;
	case IR_STRC:
		v = of(CODE, 0);
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
		v = i->fn == IR_FN_STACK ? stack(r, i) : called(r, i);
		if (v.kind == OTHER && i->fn != IR_FN_STACK)
			return false;
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

static bool has_added(const struct run *r, enum ir_agg_fn fn, bool by_stack, struct value v)
{
	return r->agg && r->agg->fn == fn && r->by_stack == by_stack && r->added.kind == v.kind && r->added.n == v.n;
}

static bool is_idle(const struct run *r)
{
	return !r->agg && !r->stored;
}

/* How the time is added, by code or without keys; ABI_STOP_WAYS: it is not. */
static enum abi_stop added_span(const struct run *r)
{
	static const struct { enum ir_agg_fn fn; enum abi_stop add; } known[] = {
		{ IR_A_SUM, ABI_STOP_SUM }, { IR_A_AVG, ABI_STOP_AVG }, { IR_A_QUANTIZE, ABI_STOP_QUANTIZE },
	};

	for (size_t k = 0; k < sizeof(known) / sizeof(*known); k++)
		if (has_added(r, known[k].fn, false, of(SINCE, 0)))
			return known[k].add;
	return ABI_STOP_WAYS;
}

static enum abi_known lap_of(const struct run *first, const struct run *later, struct ebpf_known *ret)
{
	ret->frames = (uint32_t)later->frames;
	if (later->stored == NOW && first->stored == NOW) {
		if (!later->agg && !first->agg)
			return ABI_KNOWN_START;
		if (has_added(later, IR_A_AVG, true, of(SINCE, 0)) && has_added(first, IR_A_AVG, true, of(CONSTANT, 0)) &&
		    first->agg == later->agg && first->frames == later->frames)
			return ABI_KNOWN_LAP_ALL;
	}
	if (!is_idle(first))
		return ABI_KNOWN_NONE;
	if (later->stored == NOW && has_added(later, IR_A_SUM, true, of(SINCE, 0)))
		return ABI_KNOWN_LAP_LATER;
	ret->frames = added_span(later);
	if (later->stored == NOW || ret->frames == ABI_STOP_WAYS)
		return ABI_KNOWN_NONE;
	if (!later->stored)
		ret->frames |= ABI_STOP_KEEPS;
	return ABI_KNOWN_STOP;
}

struct ebpf_known lap_known(const struct ebpf_unit *u, const struct ir_clause *c)
{
	struct ebpf_known known = { .threads = EBPF_MAP_THREADS };
	struct run first, later;
	unsigned int maps = 0;

	start(&first, u, c, false);
	start(&later, u, c, true);
	if (!execute(&first, c) || !execute(&later, c) || !later.last)
		return known;
	known.what = lap_of(&first, &later, &known);
	if (known.what && later.agg)
		maps = ebpf_agg_maps(u, later.agg, &known.map);
	if (later.by_stack && maps != 1)
		known.what = ABI_KNOWN_NONE;
	known.classes = later.agg && later.agg->nkeys ? maps : 0;
	known.last = u->priv->var_off[later.last->id];
	return known;
}

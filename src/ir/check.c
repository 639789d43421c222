/*
 * Is a program well formed?  Everything that the code generators rely on is checked here.
 */
#include "ir/ir.h"

#include <string.h>

#include "abi/record.h"
#include "base/arena.h"
#include "ir/facts.h"
#include "lang/desc.h"
#include "lang/format.h"

struct checker {
	const struct ir_prog *prog;
	const struct ir_clause *clause;
	const struct ir_block *block;
	uint32_t at;			/* number of the instruction in the block */
	const char *err;
};

static bool fail(struct checker *c, const char *what)
{
	const struct ir_insn *i = c->block && c->at < c->block->n ? &c->block->insns[c->at] : NULL;

	if (!c->err && i)
		c->err = arena_printf(c->prog->arena, "clause %u, block b%u, instruction %u (%s): %s", c->clause->id,
				      c->block->id, c->at, i->op < IR_OP_MAX ? ir_op_text(i->op) : "?", what);
	else if (!c->err && c->clause)
		c->err = arena_printf(c->prog->arena, "clause %u: %s", c->clause->id, what);
	else if (!c->err)
		c->err = what;
	return false;
}

/* --- declarations ------------------------------------------------------------------------------------- */

static bool slot_ok(const struct ir_slot *s)
{
	return s->type == IR_STR ||
	       (s->type == IR_INT && (s->width == 1 || s->width == 2 || s->width == 4 || s->width == 8));
}

static bool slots_ok(const struct ir_slot *s, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		if (!slot_ok(&s[k]))
			return false;
	}
	return true;
}

static bool check_rec(struct checker *c, const struct ir_rec *r)
{
	if (r->nfields > IR_MAX_FIELDS || !slots_ok(r->fields, r->nfields))
		return fail(c, "a record with an impossible field");
	if (r->clause >= c->prog->nclauses)
		return fail(c, "a record of a clause that there is not");
	if (r->stat && (r->stat->id >= c->prog->nmaps || c->prog->maps[r->stat->id] != r->stat || !r->stat->stat))
		return fail(c, "a record of a statistic that there is not");
	for (uint32_t k = 0; k < r->nacts; k++) {
		const struct ir_act *act = &r->acts[k];

		if ((unsigned int)act->kind >= IR_ACT_MAX || act->field > r->nfields ||
		    act->nfields > r->nfields - act->field)
			return fail(c, "an action on fields that there are not");
	}
	return true;
}

static bool check_iter(struct checker *c, const struct ir_iter *it)
{
	const struct ir_map *m = it->map;

	if (!m || m->id >= c->prog->nmaps || c->prog->maps[m->id] != m || !m->ordered || !m->nkeys)
		return fail(c, "an iteration over what has no order");
	if ((unsigned int)it->sort >= IR_SORT_NR || (it->sort == IR_SORT_KEY && it->column >= m->nkeys) ||
	    (it->sort == IR_SORT_VALUE && m->stat) || (it->sort > IR_SORT_VALUE && !m->stat) ||
	    ((it->sort == IR_SORT_MIN || it->sort == IR_SORT_MAX) && !m->extremes) ||
	    (it->sort == IR_SORT_VARIANCE && !m->squares))
		return fail(c, "an iteration sorted by what there is not");
	return !((uint64_t)it->given >> m->nkeys) || fail(c, "an iteration over keys that there are not");
}

static bool check_declarations(struct checker *c)
{
	const struct ir_prog *p = c->prog;

	if (!p->nesting || p->nesting > IR_MAX_NESTING)
		return fail(c, "nesting out of range");
	if (p->strsize < IR_STRSIZE_MIN || p->strsize > IR_STRSIZE_MAX)
		return fail(c, "strsize out of range");
	for (uint32_t k = 0; k < p->nvars; k++) {
		if (p->vars[k]->id != k || p->vars[k]->cls > IR_FRAME || !slot_ok(&p->vars[k]->slot))
			return fail(c, "a variable of an impossible type");
	}
	for (uint32_t k = 0; k < p->nmaps; k++) {
		const struct ir_map *m = p->maps[k];

		if (m->id != k || m->nkeys > IR_MAX_KEYS || !slots_ok(m->keys, m->nkeys) ||
		    m->cls > IR_THREAD || !(m->stat ? ir_stat_words(m) : (uint32_t)slot_ok(&m->value)))
			return fail(c, "an array of an impossible type");
		if (m->ordered ? !m->max_entries || m->zero_frees || m->cls != IR_GLOBAL : m->wraps || m->stat)
			return fail(c, "an array that is half ordered");
	}
	for (uint32_t k = 0; k < p->niters; k++) {
		if (p->iters[k]->id != k || !check_iter(c, p->iters[k]))
			return fail(c, "an iteration out of order");
	}
	for (uint32_t k = 0; k < p->naggs; k++) {
		const struct ir_agg *g = p->aggs[k];

		if (g->id != k || (unsigned int)g->fn >= IR_A_NR || g->nkeys > IR_MAX_KEYS ||
		    !slots_ok(g->keys, g->nkeys))
			return fail(c, "an aggregation of an impossible type");
		if (!ir_agg_words(g))
			return fail(c, "an aggregation with impossible parameters");
	}
	for (uint32_t k = 0; k < p->nrecs; k++) {
		if (p->recs[k]->id != k || !check_rec(c, p->recs[k]))
			return fail(c, "a record out of order");
	}
	return true;
}

/* --- instructions ------------------------------------------------------------------------------------- */

static bool check_width(const struct ir_insn *i)
{
	return i->width == 1 || i->width == 2 || i->width == 4 || i->width == 8;
}

static bool own_block(const struct checker *c, const struct ir_block *b)
{
	return b && b->id < c->clause->nblocks && c->clause->blocks[b->id] == b;
}

/* Is the map of the right kind for the operation? */
static bool check_map_op(struct checker *c, const struct ir_insn *i)
{
	const struct ir_map *m = i->map;

	switch (i->op) {
	case IR_MLD:
	case IR_MST:
		return !m->stat || fail(c, "the value of a statistic");
	case IR_MADD:
		return (!m->stat && m->value.type == IR_INT) || fail(c, "an addition to what is no integer");
	case IR_STAT:
	case IR_SCOUNT:
	case IR_SSUM:
	case IR_SAVG:
		return m->stat || fail(c, "no statistic");
	case IR_SMIN:
	case IR_SMAX:
		return m->extremes || fail(c, "the statistic does not keep that");
	case IR_SVARIANCE:
		return m->squares || fail(c, "the statistic does not keep that");
	case IR_SBUCKET:
		return m->stat > IR_STAT_PLAIN || fail(c, "the statistic does not keep that");
	case IR_MCLEAR:
		return m->ordered || fail(c, "the array has no order");
	default:
		return true;
	}
}

static bool check_fmt(struct checker *c, const struct fmt *f)
{
	if (!f)
		return fail(c, "no format");
	for (size_t k = 0; k < f->n; k++) {
		if (f->convs[k].kind != FMT_NONE && f->convs[k].kind != FMT_INT && f->convs[k].kind != FMT_STRING &&
		    f->convs[k].kind != FMT_ADDR)
			return fail(c, "a conversion that makes no string");
	}
	return fmt_nargs(f) <= IR_MAX_KEYS || fail(c, "too many conversions");
}

static bool check_attr(struct checker *c, const struct ir_insn *i)
{
	const struct ir_prog *p = c->prog;

	switch (ir_op_fact(i->op)->attr) {
	case IR_ATTR_STR:
		return i->str || fail(c, "no string");
	case IR_ATTR_WIDTH:
		return check_width(i) || fail(c, "an impossible width");
	case IR_ATTR_FN:
		return (unsigned int)i->fn < IR_FN_MAX || fail(c, "an unknown function");
	case IR_ATTR_BI:
		return (unsigned int)i->bi < IR_B_MAX || fail(c, "an unknown builtin");
	case IR_ATTR_VAR:
		if (!i->var || i->var->id >= p->nvars || p->vars[i->var->id] != i->var)
			return fail(c, "a variable of another program");
		if (i->op == IR_PASS && i->var->cls != IR_FRAME)
			return fail(c, "an argument that no call has anew");
		return i->op != IR_VADD || i->var->slot.type == IR_INT || fail(c, "an addition to a string");
	case IR_ATTR_MAP:
		if (!i->map || i->map->id >= p->nmaps || p->maps[i->map->id] != i->map)
			return fail(c, "an array of another program");
		return check_map_op(c, i);
	case IR_ATTR_AGG:
		return (i->agg && i->agg->id < p->naggs && p->aggs[i->agg->id] == i->agg) ||
		       fail(c, "an aggregation of another program");
	case IR_ATTR_REC:
		if (!i->rec || i->rec->id >= p->nrecs || p->recs[i->rec->id] != i->rec)
			return fail(c, "a record of another program");
		return i->rec->clause == c->clause->id || fail(c, "a record of another clause");
	case IR_ATTR_ITER:
	case IR_ATTR_PART:
		if (!i->iter || i->iter->id >= p->niters || p->iters[i->iter->id] != i->iter)
			return fail(c, "an iteration of another program");
		if (i->op == IR_IKEY && i->part >= i->iter->map->nkeys)
			return fail(c, "a part of the key that there is not");
		return i->op != IR_IVALUE || !i->iter->map->stat || fail(c, "the value of a statistic");
	case IR_ATTR_FMT:
		return check_fmt(c, i->fmt);
	case IR_ATTR_BRANCH:
		return (own_block(c, i->target[0]) && own_block(c, i->target[1])) || fail(c, "a block of another clause");
	case IR_ATTR_JUMP:
		return own_block(c, i->target[0]) || fail(c, "a block of another clause");
	case IR_ATTR_IMM:
		if (i->op == IR_ARG && i->imm < 0)
			return fail(c, "a negative argument number");
		if (i->op == IR_FAULT && (i->imm <= ABI_FAULT_NONE || i->imm >= ABI_FAULT_MAX))
			return fail(c, "an unknown fault");
		if ((i->op == IR_BUDGET || i->op == IR_SPEND) && (i->imm < 0 || i->imm > INT32_MAX))
			return fail(c, "an impossible number of statements");
		if (i->op == IR_CAUGHT && (i->imm < IR_CAUGHT_KIND || i->imm > IR_CAUGHT_ACT))
			return fail(c, "a fault has no such part");
		return true;
	case IR_ATTR_NONE:
		break;
	}
	return true;
}

static bool check_operands(struct checker *c, const struct ir_insn *i)
{
	enum ir_type types[IR_MAX_OPERANDS], result;
	uint32_t n;

	ir_insn_types(i, types, &n, &result);
	if (i->nargs != n)
		return fail(c, "the wrong number of operands");
	for (uint32_t k = 0; k < n; k++) {
		if (i->args[k] >= c->clause->nregs)
			return fail(c, "an operand that there is not");
		if (types[k] != IR_VOID && c->clause->regs[i->args[k]] != types[k])
			return fail(c, "an operand of the wrong type");
	}
	if (i->op == IR_MOV)
		result = c->clause->regs[i->args[0]];
	if ((i->dst == IR_NO_REG) != (result == IR_VOID))
		return fail(c, result == IR_VOID ? "a result that there is not" : "no result");
	if (i->dst == IR_NO_REG)
		return true;
	if (i->dst >= c->clause->nregs)
		return fail(c, "a result that there is not");
	for (uint32_t k = 0; k < n && result == IR_STR; k++) {
		if (i->args[k] == i->dst)
			return fail(c, "a string made from itself");
	}
	return c->clause->regs[i->dst] == result || fail(c, "a result of the wrong type");
}

static bool check_block(struct checker *c, const struct ir_block *b)
{
	c->block = b;
	c->at = 0;
	if (!b->n)
		return fail(c, arena_printf(c->prog->arena, "block b%u is empty", b->id));
	for (c->at = 0; c->at < b->n; c->at++) {
		const struct ir_insn *i = &b->insns[c->at];

		if ((unsigned int)i->op >= IR_OP_MAX)
			return fail(c, "an unknown operation");
		if (!check_attr(c, i) || !check_operands(c, i))
			return false;
		if (i->op == IR_TURN && c->at)
			return fail(c, "a loop's head is not at its block's");
		if (!(ir_op_fact(i->op)->effects & IR_ENDS) != (c->at + 1 != b->n))
			return fail(c, c->at + 1 == b->n ? "the block does not end" : "the block ends before its end");
	}
	return true;
}

/* --- assigned before use ------------------------------------------------------------------------------ */

/*
 * Registers that a block reads before it assigns them.  Even in a long clause they are few; only they are kept in sets.
 */
struct crossing {
	uint32_t *number;		/* by register; NOT_CROSSING */
	uint32_t n;
	uint32_t *assigned;		/* by register: 1 + the last block found to assign it */
};

enum { NOT_CROSSING = UINT32_MAX };

static void find_crossing(struct checker *c, struct crossing *x)
{
	const struct ir_clause *cl = c->clause;
	struct arena *a = c->prog->arena;

	x->number = arena_alloc(a, cl->nregs * sizeof(*x->number) + 1);
	x->assigned = arena_alloc(a, cl->nregs * sizeof(*x->assigned) + 1);
	memset(x->number, 0xff, cl->nregs * sizeof(*x->number));
	for (uint32_t b = 0; b < cl->nblocks; b++) {
		for (uint32_t k = 0; k < cl->blocks[b]->n; k++) {
			const struct ir_insn *i = &cl->blocks[b]->insns[k];

			for (uint32_t j = 0; j < i->nargs; j++)
				if (x->assigned[i->args[j]] != b + 1 && x->number[i->args[j]] == NOT_CROSSING)
					x->number[i->args[j]] = x->n++;
			if (i->dst != IR_NO_REG)
				x->assigned[i->dst] = b + 1;
		}
	}
	memset(x->assigned, 0, cl->nregs * sizeof(*x->assigned));
}

static bool in_set(const struct crossing *x, const uint64_t *set, ir_reg r)
{
	return set[x->number[r] / 64] >> (x->number[r] % 64) & 1;
}

static void assign(const struct crossing *x, uint64_t *set, ir_reg r)
{
	if (x->number[r] != NOT_CROSSING)
		set[x->number[r] / 64] |= 1ull << (x->number[r] % 64);
}

/* Report uses of unassigned registers in @b, with @set assigned at its start; *set is changed. */
static bool walk(struct checker *c, struct crossing *crossing, const struct ir_block *b, uint64_t *set)
{
	c->block = b;
	for (uint32_t k = 0; k < b->n; k++) {
		const struct ir_insn *i = &b->insns[k];

		c->at = k;
		for (uint32_t x = 0; x < i->nargs; x++) {
			if (crossing->assigned[i->args[x]] != b->id + 1 && !in_set(crossing, set, i->args[x]))
				return fail(c, arena_printf(c->prog->arena, "r%u is not assigned on every path to it",
							    i->args[x]));
		}
		if (i->dst != IR_NO_REG) {
			crossing->assigned[i->dst] = b->id + 1;
			assign(crossing, set, i->dst);
		}
	}
	return true;
}

/*
 * Compute the registers that are assigned on all paths to each block, then check the uses.  Sets start full and shrink;
 * NULL is full (an unreachable block).
 */
static bool check_assigned(struct checker *c)
{
	const struct ir_clause *cl = c->clause;
	struct arena *a = c->prog->arena;
	struct crossing crossing = { 0 };
	uint32_t words, top = 0;
	uint64_t **in = arena_alloc(a, cl->nblocks * sizeof(*in));
	uint64_t *set;
	bool *queued = arena_alloc(a, cl->nblocks * sizeof(*queued));
	uint32_t *queue = arena_alloc(a, cl->nblocks * sizeof(*queue));

	find_crossing(c, &crossing);
	words = crossing.n / 64 + 1;
	set = arena_alloc(a, words * sizeof(*set));
	in[0] = arena_alloc(a, words * sizeof(**in));
	queue[top++] = 0;
	queued[0] = true;
	while (top) {
		const struct ir_block *b = cl->blocks[queue[--top]];
		struct ir_block *succ[2];
		unsigned int nsucc = ir_successors(b, succ), forgets = ir_forgets(b, succ, nsucc);

		queued[b->id] = false;
		memcpy(set, in[b->id], words * sizeof(*set));
		for (uint32_t k = 0; k < b->n; k++) {
			ir_reg dst = b->insns[k].dst;

			if (dst != IR_NO_REG)
				assign(&crossing, set, dst);
		}
		for (unsigned int s = 0; s < nsucc; s++) {
			uint32_t to = succ[s]->id;
			bool less = !in[to];

			if (!in[to]) {
				in[to] = arena_alloc(a, words * sizeof(**in));
				/* Where no register may be live, none counts as assigned. */
				if (!(forgets >> s & 1))
					memcpy(in[to], set, words * sizeof(*set));
			}
			for (uint32_t w = 0; w < words && !(forgets >> s & 1); w++) {
				less |= (in[to][w] & ~set[w]) != 0;
				in[to][w] &= set[w];
			}
			if (less && !queued[to]) {
				queued[to] = true;
				queue[top++] = to;
			}
		}
	}
	for (uint32_t b = 0; b < cl->nblocks; b++) {
		if (!in[b])
			continue;
		memcpy(set, in[b], words * sizeof(*set));
		if (!walk(c, &crossing, cl->blocks[b], set))
			return false;
	}
	return true;
}

/* Check that every cycle has a block that begins with TURN, or an ENTER. */
static bool check_loops(struct checker *c)
{
	const struct ir_clause *cl = c->clause;
	uint32_t *stack = arena_alloc(c->prog->arena, cl->nblocks * sizeof(*stack));
	uint8_t *next = arena_alloc(c->prog->arena, cl->nblocks);	/* number of visited successors, plus 1 */
	bool *open = arena_alloc(c->prog->arena, cl->nblocks * sizeof(*open));

	c->block = NULL;
	for (uint32_t root = 0; root < cl->nblocks; root++) {
		uint32_t depth = 0;

		if (next[root])
			continue;
		stack[depth++] = root;
		next[root] = 1;
		open[root] = true;
		while (depth) {
			const struct ir_block *b = cl->blocks[stack[depth - 1]];
			struct ir_block *succ[2];
			unsigned int n = ir_successors(b, succ), s = next[b->id] - 1u;

			if (s >= n) {
				open[b->id] = false;
				depth--;
				continue;
			}
			next[b->id]++;
			if (succ[s]->insns[0].op == IR_TURN || b->insns[b->n - 1].op == IR_ENTER)
				continue;
			if (open[succ[s]->id])
				return fail(c, arena_printf(c->prog->arena, "block b%u is in a loop without TURN",
							    succ[s]->id));
			if (!next[succ[s]->id]) {
				next[succ[s]->id] = 1;
				open[succ[s]->id] = true;
				stack[depth++] = succ[s]->id;
			}
		}
	}
	return true;
}

/* Does it name the probe that fires when another clause faults? */
static bool is_of_error(const struct ir_clause *cl)
{
	for (uint32_t k = 0; k < cl->ndescs; k++) {
		const struct probe_desc *d = &cl->descs[k];

		if (!strcmp(d->name, "ERROR") && desc_glob(d->prov, "dtrace"))
			return true;
	}
	return false;
}

/* The code of ERROR's clauses is among that of others, whose faults it has no part in: it catches none. */
static bool check_tries(struct checker *c)
{
	struct ir_walk w = ir_walk_clause(c->clause);

	for (const struct ir_insn *i; (i = ir_next(&w));) {
		if (i->op == IR_TRY && is_of_error(c->clause)) {
			c->block = NULL;
			return fail(c, "a clause of ERROR catches faults");
		}
	}
	return true;
}

static bool check_clause(struct checker *c)
{
	const struct ir_clause *cl = c->clause;

	if (!cl->nblocks)
		return fail(c, "no code");
	for (uint32_t r = 0; r < cl->nregs; r++) {
		if (cl->regs[r] != IR_INT && cl->regs[r] != IR_STR)
			return fail(c, "a register of no type");
	}
	for (uint32_t b = 0; b < cl->nblocks; b++) {
		if (cl->blocks[b]->id != b)
			return fail(c, "a block out of order");
		if (!check_block(c, cl->blocks[b]))
			return false;
	}
	return check_assigned(c) && check_loops(c) && check_tries(c);
}

const char *ir_check(const struct ir_prog *p)
{
	struct checker c = { .prog = p };

	if (!check_declarations(&c))
		return c.err;
	for (uint32_t k = 0; k < p->nclauses; k++) {
		c.clause = p->clauses[k];
		c.block = NULL;
		if (c.clause->id != k || !check_clause(&c))
			return c.err ? c.err : "a clause out of order";
	}
	return NULL;
}

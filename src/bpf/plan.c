#include "bpf/plan.h"

#include <string.h>

#include "abi/record.h"
#include "base/arena.h"
#include "bpf/frame.h"
#include "bpf/rt/path.h"
#include "bpf/rt/match.h"
#include "bpf/rt/put.h"
#include "bpf/rt/stack.h"
#include "bpf/unit.h"
#include "ir/facts.h"
#include "ir/layout.h"

/* Largest copies that copyin makes: of a size known beforehand, of one that is not. */
enum { COPYIN_MAX = 32 * 1024, COPYIN_UNKNOWN = 4096 };

struct planner {
	const struct ir_prog *prog;
	const struct ir_clause *clause;
	struct arena *arena;
	struct ebpf_private *priv;
	struct plan *plan;
	uint32_t *ndefs, *nuses;	/* by register */
	const struct ir_insn **def;	/* by register, of those with one definition */
	uint32_t words;			/* 64-bit words of a set of registers */
	uint64_t **in;			/* by block: registers alive at its start */
	uint32_t *first, *last;		/* by register: its life */
};

/* --- order ------------------------------------------------------------------------------------------- */

/* Reverse postorder from block 0, without recursion: chains of blocks can be long.  @back: procedures come back. */
static void order_from(struct planner *p, bool back)
{
	const struct ir_clause *c = p->clause;
	struct ir_block **post = arena_alloc(p->arena, c->nblocks * sizeof(*post));
	struct ir_block **stack = arena_alloc(p->arena, c->nblocks * sizeof(*stack));
	uint8_t *next = arena_alloc(p->arena, c->nblocks);	/* successors gone through, plus 1; 0: not seen */
	uint32_t depth = 0, n = 0;

	stack[depth++] = c->blocks[0];
	next[0] = 1;
	while (depth) {
		struct ir_block *b = stack[depth - 1], *succ[2];
		unsigned int nsucc = ir_successors(b, succ);

		if (b->insns[b->n - 1].op == IR_ENTER && !back)
			nsucc = 1;
		/* The second target first, so that the first comes right behind its branch. */
		if (next[b->id] <= nsucc) {
			struct ir_block *s = succ[nsucc - next[b->id]++];

			if (!next[s->id]) {
				next[s->id] = 1;
				stack[depth++] = s;
			}
		} else {
			post[n++] = b;
			depth--;
		}
	}
	for (uint32_t k = 0; k < n / 2; k++) {
		struct ir_block *b = post[k];

		post[k] = post[n - 1 - k];
		post[n - 1 - k] = b;
	}
	p->plan->blocks = post;
	p->plan->nblocks = n;
}

/* Nothing behind a call is reached where no procedure ends. */
static void order_blocks(struct planner *p)
{
	order_from(p, false);
	for (uint32_t k = 0; k < p->plan->nblocks; k++) {
		const struct ir_block *b = p->plan->blocks[k];

		if (b->insns[b->n - 1].op == IR_LEAVE) {
			order_from(p, true);
			return;
		}
	}
}

/* --- what is late ------------------------------------------------------------------------------------- */

static void count(struct planner *p)
{
	for (uint32_t b = 0; b < p->plan->nblocks; b++) {
		const struct ir_block *k = p->plan->blocks[b];

		for (uint32_t j = 0; j < k->n; j++) {
			const struct ir_insn *i = &k->insns[j];

			for (uint32_t x = 0; x < i->nargs; x++)
				p->nuses[i->args[x]]++;
			if (i->dst == IR_NO_REG)
				continue;
			p->ndefs[i->dst]++;
			p->def[i->dst] = p->ndefs[i->dst] == 1 ? i : NULL;
		}
	}
}

/* Does @i write to memory that copyin() or alloca() gave? */
static bool writes_memory(const struct ir_insn *i)
{
	return i->op == IR_CALL && (i->fn == IR_FN_BCOPY || i->fn == IR_FN_COPYINTO || i->fn == IR_FN_POKE ||
				    i->fn == IR_FN_POKESTR);
}

/* Does @i change something that another instruction could read? */
static bool stores(const struct ir_insn *i)
{
	switch (i->op) {
	case IR_VST:
	case IR_VADD:
	case IR_MST:
	case IR_MADD:
	case IR_MDEL:
	case IR_AGG:
	case IR_EMIT:
	case IR_EXITING:
	case IR_PASS:
	case IR_MCLEAR:
	case IR_STAT:
	case IR_ITER:
	case IR_INEXT:
	case IR_IDONE:
	case IR_SPEND:
		return true;
	default:
		return writes_memory(i);
	}
}

/* Can @user take operand @k, a string, straight into place? */
static bool takes_in_place(const struct ir_insn *user, uint32_t k)
{
	switch (user->op) {
	case IR_AGG:
	case IR_EMIT:
	case IR_MHAS:
	case IR_MLD:
	case IR_MDEL:
		return true;
	case IR_MST:
	case IR_MADD:
		return k > 0;
	default:
		return false;
	}
}

static bool makes_in_place(const struct ir_insn *i)
{
	return i->op == IR_VLD || (i->op == IR_BUILTIN && i->bi != IR_B_CWD && i->bi != IR_B_ROOT) ||
	       (i->op == IR_CALL && (i->fn == IR_FN_COPYINSTR || i->fn == IR_FN_STRINGOF));
}

static bool is_compare(const struct ir_insn *i)
{
	return i->op >= IR_EQ && i->op <= IR_ULE;
}

/* May @i, the only definition of its register in this block, wait until @user, its only use? */
static bool may_wait(const struct planner *p, const struct ir_insn *i, const struct ir_insn *user, uint32_t operand)
{
	for (uint32_t x = 0; x < i->nargs; x++) {
		if (p->ndefs[i->args[x]] != 1)
			return false;
	}
	if (user->op == IR_BR)
		return is_compare(i);
	return p->clause->regs[i->dst] == IR_STR && makes_in_place(i) && takes_in_place(user, operand);
}

static void find_late(struct planner *p)
{
	for (uint32_t b = 0; b < p->plan->nblocks; b++) {
		const struct ir_block *k = p->plan->blocks[b];
		uint32_t barrier = 0;		/* the first instruction behind the last store */

		for (uint32_t j = 0; j < k->n; j++) {
			const struct ir_insn *user = &k->insns[j];

			for (uint32_t x = 0; x < user->nargs; x++) {
				ir_reg r = user->args[x];
				const struct ir_insn *i = p->def[r];

				if (p->ndefs[r] != 1 || p->nuses[r] != 1 || i < &k->insns[0] || i >= user)
					continue;
				if (p->clause->regs[r] == IR_STR && i < &k->insns[barrier])
					continue;
				if (may_wait(p, i, user, x))
					p->plan->late[r] = i;
			}
			if (stores(user))
				barrier = j + 1;
		}
	}
}

/* --- lives ------------------------------------------------------------------------------------------- */

static bool in_set(const uint64_t *set, ir_reg r)
{
	return set[r / 64] >> (r % 64) & 1;
}

/* Call @fn for each register that generating @i reads. */
static void each_use(struct planner *p, const struct ir_insn *i, uint32_t pos,
		     void (*fn)(struct planner *p, ir_reg r, uint32_t pos))
{
	for (uint32_t x = 0; x < i->nargs; x++) {
		const struct ir_insn *late = p->plan->late[i->args[x]];

		if (late)
			each_use(p, late, pos, fn);
		else
			fn(p, i->args[x], pos);
	}
}

static bool is_late(const struct planner *p, const struct ir_insn *i)
{
	return i->dst != IR_NO_REG && p->plan->late[i->dst] == i;
}

static void extend(struct planner *p, ir_reg r, uint32_t pos)
{
	if (p->first[r] > pos)
		p->first[r] = pos;
	if (p->last[r] < pos)
		p->last[r] = pos;
}

static void set_use(struct planner *p, ir_reg r, uint32_t block)
{
	p->in[block][r / 64] |= 1ull << (r % 64);
}

/* One backward pass over block @b; true when more turned out to be alive at its start. */
static bool flow(struct planner *p, const struct ir_block *b)
{
	uint64_t *in = p->in[b->id], *old = arena_alloc(p->arena, (p->words + 1) * sizeof(*old));
	struct ir_block *succ[2];
	unsigned int nsucc = ir_successors(b, succ);

	memcpy(old, in, p->words * sizeof(*old));
	memset(in, 0, p->words * sizeof(*in));
	for (unsigned int s = 0; s < nsucc; s++) {
		const uint64_t *of = succ[s] == b ? old : p->in[succ[s]->id];

		for (uint32_t w = 0; w < p->words; w++)
			in[w] |= of[w];
	}
	for (uint32_t j = b->n; j-- > 0;) {
		const struct ir_insn *i = &b->insns[j];

		if (is_late(p, i))
			continue;
		if (i->dst != IR_NO_REG)
			in[i->dst / 64] &= ~(1ull << (i->dst % 64));
		each_use(p, i, b->id, set_use);
	}
	return memcmp(old, in, p->words * sizeof(*old)) != 0;
}

static void find_lives(struct planner *p)
{
	const struct plan *plan = p->plan;
	uint32_t pos = 0;
	bool again = true;

	while (again) {
		again = false;
		for (uint32_t b = plan->nblocks; b-- > 0;)
			again |= flow(p, plan->blocks[b]);
	}
	/* Positions: an instruction reads at 2n and writes at 2n + 1; a string is written at 2n, so that it
	 * never shares its buffer with an operand. */
	for (uint32_t b = 0; b < plan->nblocks; b++) {
		const struct ir_block *k = plan->blocks[b];
		struct ir_block *succ[2];
		unsigned int nsucc = ir_successors(k, succ);
		uint32_t end = pos + 2 * k->n - 1;

		for (ir_reg r = 0; r < p->clause->nregs; r++) {
			if (in_set(p->in[k->id], r))
				extend(p, r, pos);
			for (unsigned int s = 0; s < nsucc; s++) {
				if (in_set(p->in[succ[s]->id], r))
					extend(p, r, end);
			}
		}
		for (uint32_t j = 0; j < k->n; j++, pos += 2) {
			const struct ir_insn *i = &k->insns[j];

			if (is_late(p, i))
				continue;
			each_use(p, i, pos, extend);
			if (i->dst != IR_NO_REG)
				extend(p, i->dst, p->clause->regs[i->dst] == IR_STR ? pos : pos + 1);
		}
	}
}

/* Ways back to where the clause has been. */
static bool has_loops(const struct planner *p)
{
	for (uint32_t b = 0; b < p->plan->nblocks; b++) {
		const struct ir_block *k = p->plan->blocks[b];

		for (uint32_t j = 0; j < k->n; j++) {
			enum ir_op op = k->insns[j].op;

			if (op == IR_TURN || op == IR_ENTER || op == IR_ITER || (op == IR_TRY && !p->plan->regions))
				return true;
		}
	}
	return false;
}

static void allocate(struct planner *p)
{
	struct plan *plan = p->plan;
	struct interval *ints = arena_alloc(p->arena, p->clause->nregs * sizeof(*ints) + 1);
	struct interval *strs = arena_alloc(p->arena, p->clause->nregs * sizeof(*strs) + 1);
	uint32_t nints = 0, nstrs = 0;

	for (ir_reg r = 0; r < p->clause->nregs; r++) {
		const struct ir_insn *def = p->ndefs[r] == 1 ? p->def[r] : NULL;
		struct interval life = { r, p->first[r], p->last[r] };

		if (!p->ndefs[r] || plan->late[r])
			continue;
		if (def && def->op == IR_CONST) {
			plan->locs[r] = (struct loc){ LOC_CONST, def->imm };
		} else if (def && def->op == IR_STRC) {
			plan->locs[r] = (struct loc){ LOC_RODATA, unit_rodata(p->prog, p->priv, def->str) };
		} else if (p->clause->regs[r] == IR_STR) {
			strs[nstrs++] = life;
		} else if (p->nuses[r]) {
			ints[nints++] = life;
		}
	}
	if (has_loops(p))
		plan->needs |= NEED_LOOPS;
	plan->nspills = (plan->needs & NEED_LOOPS ? regs_scratch : regs_integers)(p->arena, ints, nints, plan->locs);
	plan->nstrs = regs_strings(p->arena, strs, nstrs, plan->locs);
}

/* --- what it needs ----------------------------------------------------------------------------------- */

static void need_work(struct plan *plan, uint64_t bytes)
{
	if (plan->work < bytes)
		plan->work = bytes > UINT32_MAX / 4 ? UINT32_MAX / 4 : (uint32_t)bytes;
}

/* Memory to build a key of @k in, unless it fits on the stack. */
static void need_key(struct plan *plan, const struct keyed *k)
{
	uint64_t max = k->sizes[k->n - 1];

	/* Behind the largest key lies room for what the zeroing of its tail writes beyond. */
	if (k->strs || max > FRAME_KEY_SIZE || plan->needs & NEED_LOOPS)
		need_work(plan, 2 * max + 64);
}

static void need_copyin(struct planner *p, const struct ir_insn *i)
{
	struct plan *plan = p->plan;
	const struct loc *size = &plan->locs[i->args[i->fn == IR_FN_ALLOCA ? 0 : 1]];
	uint64_t bytes = COPYIN_UNKNOWN;

	if (size->kind == LOC_CONST)
		bytes = size->v < 0 || size->v > COPYIN_MAX ? COPYIN_MAX : (uint64_t)size->v;
	plan->copyins = arena_grow(p->arena, plan->copyins, &plan->copyins_cap, plan->ncopyins,
				   sizeof(*plan->copyins));
	plan->copyins[plan->ncopyins++] = (struct copyin){ i, p->priv->copyin_size, (uint32_t)bytes };
	/* Strings may be read from the copy: a string's worth of bytes behind its end is readable. */
	p->priv->copyin_size += ((uint32_t)bytes + 15) & ~7u;
	if (i->fn == IR_FN_ALLOCA && p->priv->alloca_max < bytes)
		p->priv->alloca_max = (uint32_t)bytes;
	plan->needs |= NEED_SCRATCH;
}

static void need_stack(struct planner *p, enum ir_stack whose)
{
	bool python = whose >= IR_STACK_PYTHON, unwinds = p->priv->unwind && (whose == IR_STACK_USER || whose == IR_STACK_MIXED);

	p->plan->needs |= NEED_SCRATCH | NEED_TIME | NEED_PROBE | NEED_TASK;
	p->priv->python |= python;
	p->priv->unwinds |= unwinds;
	need_work(p->plan, python || unwinds ? sizeof(struct stack_work) :
						sizeof(struct abi_record) + 16 + 8 * PLAN_STACK_FRAMES + 64);
}

/* Whose frames has the stack that @i asks for? */
static enum ir_stack whose_stack(const struct planner *p, const struct ir_insn *i)
{
	const struct loc *whose = &p->plan->locs[i->args[0]];

	return i->fn == IR_FN_STACK && whose->kind == LOC_CONST ? (enum ir_stack)whose->v : IR_STACK_KERNEL;
}

static void need_of_var(struct planner *p, const struct ir_var *v)
{
	if (v->cls == IR_CLAUSE)
		p->plan->needs |= NEED_CLAUSE_VARS | NEED_SCRATCH;
	else if (v->cls == IR_LOCAL || v->cls == IR_FRAME)
		p->plan->needs |= NEED_SCRATCH;
}

static void need_of_builtin(struct planner *p, enum ir_builtin bi)
{
	switch (bi) {
	case IR_B_TIMESTAMP:
	case IR_B_WALLTIMESTAMP:
	case IR_B_VTIMESTAMP:
		p->plan->needs |= NEED_TIME;
		break;
	case IR_B_PID:
	case IR_B_TID:
	case IR_B_PROBEPROV:
		p->plan->needs |= NEED_TASK | NEED_PROBE;
		break;
	case IR_B_CALLER:
	case IR_B_UCALLER:
	case IR_B_STACKDEPTH:
	case IR_B_USTACKDEPTH:
		need_stack(p, IR_STACK_KERNEL);
		break;
	case IR_B_CWD:
	case IR_B_ROOT:
		p->plan->needs |= NEED_FAULT;
		need_work(p->plan, sizeof(struct path_work));
		break;
	case IR_B_EPID:
	case IR_B_ID:
	case IR_B_PROBEMOD:
	case IR_B_PROBEFUNC:
	case IR_B_PROBENAME:
		p->plan->needs |= NEED_PROBE;
		break;
	default:
		break;
	}
}

static void need_of_call(struct planner *p, const struct ir_insn *i)
{
	uint32_t room = ir_str_room(p->prog);

	need_work(p->plan, PUT_STATE + 2 * (uint64_t)room + 64);
	if (i->fn == IR_FN_COPYIN || i->fn == IR_FN_ALLOCA)
		need_copyin(p, i);
	if (writes_memory(i)) {
		p->plan->needs |= NEED_SCRATCH;
		p->priv->copyin_written = true;
		/* So much there is that what is written can be inside. */
		if (p->priv->copyin_size < room + 8)
			p->priv->copyin_size = room + 8;
	}
	if (i->fn == IR_FN_COPYOUT)
		need_work(p->plan, PLAN_COPYOUT);
	if (i->fn == IR_FN_PATH)
		need_work(p->plan, sizeof(struct path_work));
	if (i->fn == IR_FN_STACK || i->fn == IR_FN_ADDR)
		need_stack(p, whose_stack(p, i));
}

enum {
	NEED_FLOW = NEED_STATE | NEED_SCRATCH | NEED_FAULT,
	NEED_ITER = NEED_FLOW | NEED_ITERS | NEED_LOOPS,
};

/* What an operation always needs; those on maps, with their key: below. */
static const uint32_t op_needs[IR_OP_MAX] = {
	[IR_SDIV] = NEED_FAULT,
	[IR_UDIV] = NEED_FAULT,
	[IR_SMOD] = NEED_FAULT,
	[IR_UMOD] = NEED_FAULT,
	[IR_FAULT] = NEED_FAULT,
	[IR_LOAD] = NEED_FAULT,
	[IR_ULOAD] = NEED_FAULT,
	[IR_ARG] = NEED_FAULT,
	[IR_MATCH] = NEED_FAULT,
	[IR_SPRINTF] = NEED_FAULT,
	[IR_CALL] = NEED_FAULT,
	[IR_AGG] = NEED_FAULT,
	[IR_EMIT] = NEED_SCRATCH | NEED_TIME | NEED_PROBE | NEED_TASK | NEED_FAULT,
	[IR_ITER] = NEED_ITER,
	[IR_INEXT] = NEED_ITER,
	[IR_IKEY] = NEED_ITER,
	[IR_IVALUE] = NEED_ITER,
	[IR_IDONE] = NEED_ITER,
	[IR_PASS] = NEED_FLOW | NEED_CALLS | NEED_LOOPS,
	[IR_ENTER] = NEED_FLOW | NEED_CALLS | NEED_LOOPS,
	[IR_LEAVE] = NEED_FLOW | NEED_CALLS | NEED_LOOPS,
	[IR_TURN] = NEED_FLOW | NEED_LOOPS,
	[IR_TRY] = NEED_FLOW,
	[IR_BUDGET] = NEED_FLOW,
	[IR_SPEND] = NEED_FLOW,
	[IR_ENDTRY] = NEED_FLOW,
	[IR_RAISE] = NEED_FLOW,
	[IR_CAUGHT] = NEED_FLOW,
	[IR_CAUGHTSTR] = NEED_FLOW,
};

static void need_of_insn(struct planner *p, const struct ir_insn *i)
{
	struct plan *plan = p->plan;
	uint32_t room = ir_str_room(p->prog);

	plan->needs |= op_needs[i->op];
	switch (i->op) {
	case IR_MATCH:
		need_work(plan, 8 * MATCH_WORDS);
		break;
	case IR_SPRINTF:
		need_work(plan, PUT_STATE + 2 * (uint64_t)room + 64);
		break;
	case IR_CALL:
		need_of_call(p, i);
		break;
	case IR_BUILTIN:
		need_of_builtin(p, i->bi);
		break;
	case IR_EXITING:
		plan->needs |= i->imm ? NEED_GATE : 0;
		break;
	case IR_VLD:
	case IR_VST:
	case IR_VADD:
		need_of_var(p, i->var);
		break;
	case IR_ITER:
	case IR_INEXT:
	case IR_IKEY:
	case IR_IVALUE:
	case IR_IDONE:
		need_work(plan, PUT_STATE + 2 * (uint64_t)room + 64);
		break;
	case IR_TRY:
		plan->needs |= plan->regions ? 0 : NEED_LOOPS;
		break;
	case IR_AGG:
		need_key(plan, &p->priv->aggs[i->agg->id]);
		break;
	case IR_EMIT:
		need_work(plan, (uint64_t)ir_rec_max(i->rec, room) + 64);
		if (i->rec->stat)
			need_key(plan, &p->priv->maps[i->rec->stat->id]);
		break;
	default:
		if (ir_op_fact(i->op)->attr == IR_ATTR_MAP && i->op != IR_MCLEAR) {
			plan->needs |= NEED_FAULT;
			need_key(plan, &p->priv->maps[i->map->id]);
		}
		break;
	}
}

static void find_needs(struct planner *p)
{
	struct plan *plan = p->plan;

	for (uint32_t b = 0; b < plan->nblocks; b++) {
		for (uint32_t j = 0; j < plan->blocks[b]->n; j++)
			need_of_insn(p, &plan->blocks[b]->insns[j]);
	}
	if (plan->nspills || plan->nstrs || plan->work)
		plan->needs |= NEED_SCRATCH;
}

struct plan *plan_new(const struct ir_prog *prog, const struct ir_clause *c, struct ebpf_private *priv)
{
	struct arena *a = prog->arena;
	struct planner p = { .prog = prog, .clause = c, .arena = a, .priv = priv };

	p.plan = arena_new_of(a, struct plan);
	p.plan->locs = arena_alloc(a, c->nregs * sizeof(*p.plan->locs) + 1);
	p.plan->late = arena_alloc(a, c->nregs * sizeof(*p.plan->late) + 1);
	p.ndefs = arena_alloc(a, c->nregs * sizeof(*p.ndefs) + 1);
	p.nuses = arena_alloc(a, c->nregs * sizeof(*p.nuses) + 1);
	p.def = arena_alloc(a, c->nregs * sizeof(*p.def) + 1);
	p.first = arena_alloc(a, c->nregs * sizeof(*p.first) + 1);
	p.last = arena_alloc(a, c->nregs * sizeof(*p.last) + 1);
	memset(p.first, 0xff, c->nregs * sizeof(*p.first));
	p.words = (c->nregs + 63) / 64;
	p.in = arena_alloc(a, c->nblocks * sizeof(*p.in));
	for (uint32_t b = 0; b < c->nblocks; b++)
		p.in[b] = arena_alloc(a, p.words * sizeof(**p.in) + 1);
	order_blocks(&p);
	tries_plan(a, c, p.plan);
	count(&p);
	find_late(&p);
	find_lives(&p);
	allocate(&p);
	find_needs(&p);
	return p.plan;
}

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

/* Largest copies that copyin makes: of a constant size, and of any other. */
enum { COPYIN_MAX = 32 * 1024, COPYIN_UNKNOWN = 4096 };

struct planner {
	const struct ir_prog *prog;
	const struct ir_clause *clause;
	struct arena *arena;
	struct ebpf_private *priv;
	struct plan *plan;
	uint32_t *ndefs, *nuses;	/* by register */
	const struct ir_insn **def;	/* by register, of those with one definition */
	uint32_t *crossing;		/* by register: its number among those read in a block before written there */
	ir_reg *crosses;		/* by such a number: the register */
	uint32_t ncrossing;
	uint32_t *written;		/* by register: 1 + the last block that writes it */
	uint32_t words;			/* 64-bit words of a set of crossing registers */
	uint64_t **in;			/* by block: the crossing registers alive at its start */
	uint64_t *old;			/* such a set, for flow() */
	uint32_t *first, *last;		/* by register: its life */
};

/* --- order ------------------------------------------------------------------------------------------- */

/*
 * Order the reachable blocks in reverse postorder from block 0.  There is no recursion: chains of blocks can be long.
 * @back: procedures return, so the block after an ENTER is reachable.
 */
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
		/* The second target first, so that the first one comes right after its branch. */
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

/*
 * If no procedure returns (no block ends with LEAVE), the block after an ENTER is unreachable.  It is left out: the
 * kernel refuses unreachable code.
 */
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

/* --- late instructions --------------------------------------------------------------------------------- */

static void count(struct planner *p)
{
	struct ir_walk w = ir_walk_blocks(p->plan->blocks, p->plan->nblocks);

	for (const struct ir_insn *i; (i = ir_next(&w));) {
		for (uint32_t x = 0; x < i->nargs; x++)
			p->nuses[i->args[x]]++;
		if (i->dst == IR_NO_REG)
			continue;
		p->ndefs[i->dst]++;
		p->def[i->dst] = p->ndefs[i->dst] == 1 ? i : NULL;
	}
}

/*
 * The instruction that makes register @r, if it is in @k before @user, its only use, and could be executed there as
 * well; or NULL.
 */
static const struct ir_insn *movable(const struct planner *p, const struct ir_block *k, const struct ir_insn *user, ir_reg r)
{
	const struct ir_insn *i = p->def[r];

	if (p->ndefs[r] != 1 || p->nuses[r] != 1 || i < &k->insns[0] || i >= user)
		return NULL;
	for (uint32_t x = 0; x < i->nargs; x++) {
		if (p->ndefs[i->args[x]] != 1)
			return NULL;
	}
	return i;
}

static bool is_compare(const struct ir_insn *i)
{
	return i->op >= IR_EQ && i->op <= IR_ULE;
}

/* The instruction that makes operand @x of @user, a string, if it can be made in place; or NULL. */
static const struct ir_insn *maker(const struct planner *p, const struct ir_block *k, const struct ir_insn *user, uint32_t x)
{
	ir_reg r = user->args[x];
	const struct ir_insn *i;

	if (!(ir_effects(user) & (x ? IR_TAKES | IR_TAKES_KEYS : IR_TAKES)) || p->clause->regs[r] != IR_STR)
		return NULL;
	i = movable(p, k, user, r);
	return i && ir_effects(i) & IR_MAKES ? i : NULL;
}

/*
 * Must an instruction with the effects @e stay where it is, because those between it and its use have the effects
 * @between?
 */
static bool must_stay(uint32_t e, uint32_t between)
{
	_Static_assert(IR_W_VAR == IR_R_VAR << 1 && IR_W_MAP == IR_R_MAP << 1 && IR_W_STATE == IR_R_STATE << 1, "reads, writes");
	if ((e & (IR_R_VAR | IR_R_MAP | IR_R_STATE)) << 1 & between)
		return true;
	/* Either kind of memory can be reached by an address of the other. */
	if (e & IR_MEMORY_READ && between & IR_MEMORY_WRITTEN)
		return true;
	return e & IR_FAULTS && between & (IR_FAULTS | IR_FILLS | IR_WRITES | IR_ACTS);
}

/*
 * Instruction @j of @k can build its strings in place: find the instructions that can be late for it.  Faults stay in
 * order: the first one ends the clause.
 */
static void find_late_strings(struct planner *p, const struct ir_block *k, uint32_t j)
{
	const struct ir_insn *user = &k->insns[j];
	uint32_t between = 0, left = 0, faulting = user->nargs;		/* the first late operand that may fault */

	for (uint32_t x = 0; x < user->nargs; x++)
		left += maker(p, k, user, x) != NULL;
	while (left && j-- > 0) {
		const struct ir_insn *i = &k->insns[j];
		uint32_t e = ir_effects(i), x = user->nargs;

		if (e & IR_MAKES) {
			for (x = 0; x < user->nargs && maker(p, k, user, x) != i;)
				x++;
		}
		left -= x < user->nargs;
		if (x < user->nargs && !must_stay(e, between) && !(e & IR_FAULTS && x > faulting)) {
			p->plan->late[i->dst] = i;
			if (e & IR_FAULTS)
				faulting = x;
		} else {
			between |= e & IR_STEADY ? e & ~(uint32_t)IR_FAULTS : e;
		}
	}
}

static void find_late(struct planner *p)
{
	for (uint32_t b = 0; b < p->plan->nblocks; b++) {
		const struct ir_block *k = p->plan->blocks[b];

		for (uint32_t j = 0; j < k->n; j++) {
			const struct ir_insn *user = &k->insns[j], *i;

			if (ir_effects(user) & (IR_TAKES | IR_TAKES_KEYS))
				find_late_strings(p, k, j);
			if (user->op == IR_BR && (i = movable(p, k, user, user->args[0])) && is_compare(i))
				p->plan->late[i->dst] = i;
		}
	}
}

/* --- lives ------------------------------------------------------------------------------------------- */

/*
 * A long clause has many blocks and registers, and nearly all registers live in one block: only the others are kept in
 * sets.
 */
enum { NOT_CROSSING = UINT32_MAX };

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

static void find_crossing(struct planner *p, ir_reg r, uint32_t block)
{
	if (p->written[r] == block + 1 || p->crossing[r] != NOT_CROSSING)
		return;
	p->crosses[p->ncrossing] = r;
	p->crossing[r] = p->ncrossing++;
}

static void set_use(struct planner *p, ir_reg r, uint32_t block)
{
	uint32_t n = p->crossing[r];

	if (n != NOT_CROSSING)
		p->in[block][n / 64] |= 1ull << (n % 64);
}

/* Number the crossing registers, and make their sets. */
static void make_sets(struct planner *p)
{
	const struct plan *plan = p->plan;

	for (uint32_t b = 0; b < plan->nblocks; b++) {
		const struct ir_block *k = plan->blocks[b];

		for (uint32_t j = 0; j < k->n; j++) {
			const struct ir_insn *i = &k->insns[j];

			if (is_late(p, i))
				continue;
			each_use(p, i, k->id, find_crossing);
			if (i->dst != IR_NO_REG)
				p->written[i->dst] = k->id + 1;
		}
	}
	p->words = (p->ncrossing + 63) / 64;
	p->old = arena_alloc(p->arena, p->words * sizeof(*p->old) + 1);
	for (uint32_t b = 0; b < p->clause->nblocks; b++)
		p->in[b] = arena_alloc(p->arena, p->words * sizeof(**p->in) + 1);
}

/* The registers of @set are alive at @pos. */
static void extend_all(struct planner *p, const uint64_t *set, uint32_t pos)
{
	for (uint32_t w = 0; w < p->words; w++)
		for (uint64_t left = set[w]; left; left &= left - 1)
			extend(p, p->crosses[64 * w + (uint32_t)__builtin_ctzll(left)], pos);
}

/* One backward pass over block @b; true if the registers alive at its start have changed. */
static bool flow(struct planner *p, const struct ir_block *b)
{
	uint64_t *in = p->in[b->id], *old = p->old;
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
		if (i->dst != IR_NO_REG && p->crossing[i->dst] != NOT_CROSSING)
			in[p->crossing[i->dst] / 64] &= ~(1ull << (p->crossing[i->dst] % 64));
		each_use(p, i, b->id, set_use);
	}
	return memcmp(old, in, p->words * sizeof(*old)) != 0;
}

static void find_lives(struct planner *p)
{
	const struct plan *plan = p->plan;
	uint32_t pos = 0;
	bool again = true;

	make_sets(p);
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

		extend_all(p, p->in[k->id], pos);
		for (unsigned int s = 0; s < nsucc; s++)
			extend_all(p, p->in[succ[s]->id], end);
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

/* Can code of the clause run again: loops, procedures, or faults of TRYs that are recorded at run time? */
static bool has_loops(const struct planner *p)
{
	struct ir_walk w = ir_walk_blocks(p->plan->blocks, p->plan->nblocks);

	for (const struct ir_insn *i; (i = ir_next(&w));) {
		if (ir_needs(i) & IR_N_LOOPS || (i->op == IR_TRY && !p->plan->regions))
			return true;
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

	/* After the largest key there is room for what zeroing its tail writes beyond it. */
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
	plan->copyins[plan->ncopyins++] = (struct copyin){ i, plan->copyin_used, (uint32_t)bytes };
	/* Strings may be read from the copy: as many bytes as a string has are readable after its end. */
	plan->copyin_used += ((uint32_t)bytes + (i->fn == IR_FN_ALLOCA ? 7 : 15)) & ~7u;
	if (p->priv->copyin_size < plan->copyin_used)
		p->priv->copyin_size = plan->copyin_used;
	if (i->fn == IR_FN_ALLOCA && p->priv->alloca_max < bytes)
		p->priv->alloca_max = (uint32_t)bytes;
	plan->needs |= NEED_SCRATCH;
}

static void need_stack(struct planner *p, enum ir_stack whose)
{
	bool python = whose >= IR_STACK_PYTHON, unwinds = p->priv->unwind && (whose == IR_STACK_USER || whose == IR_STACK_MIXED);

	p->plan->needs |= NEED_SCRATCH;
	p->plan->kernel_needs |= NEED_TIME | NEED_PROBE | NEED_TASK;	/* for its record: vm/stack.c makes its own */
	p->priv->python |= python;
	p->priv->unwinds |= unwinds;
	need_work(p->plan, python || unwinds ? sizeof(struct stack_work) :
						sizeof(struct abi_record) + 16 + 8 * PLAN_STACK_FRAMES + 64);
}

/* Whose frames does the stack have that @i asks for? */
static enum ir_stack whose_stack(const struct planner *p, const struct ir_insn *i)
{
	const struct loc *whose = i->op == IR_CALL && (i->fn == IR_FN_STACK || i->fn == IR_FN_AWAITERS) ? &p->plan->locs[i->args[0]] : NULL;

	return whose && whose->kind == LOC_CONST ? (enum ir_stack)whose->v : IR_STACK_KERNEL;
}

static void need_of_var(struct planner *p, const struct ir_var *v)
{
	if (v->cls == IR_CLAUSE)
		p->plan->needs |= NEED_CLAUSE_VARS | NEED_SCRATCH;
	else if (v->cls == IR_LOCAL || v->cls == IR_FRAME)
		p->plan->needs |= NEED_SCRATCH;
}

/* The work area that texts are built in. */
static void need_text(struct planner *p, const struct ir_insn *i)
{
	(void)i;
	need_work(p->plan, PUT_STATE + 2 * (uint64_t)ir_str_room(p->prog) + 64);
}

static void need_keys(struct planner *p, const struct ir_insn *i)
{
	if (i->op == IR_AGG)
		need_key(p->plan, &p->priv->aggs[i->agg->id]);
	else if (ir_insn_map(i))
		need_key(p->plan, &p->priv->maps[ir_insn_map(i)->id]);
}

static void need_record(struct planner *p, const struct ir_insn *i)
{
	need_work(p->plan, (uint64_t)ir_rec_max(i->rec, ir_str_room(p->prog)) + 64);
	need_keys(p, i);
}

static void need_groups(struct planner *p, const struct ir_insn *i)
{
	(void)i;
	need_work(p->plan, 8 * MATCH_WORDS);
}

static void need_frames(struct planner *p, const struct ir_insn *i)
{
	need_stack(p, whose_stack(p, i));
}

static void need_components(struct planner *p, const struct ir_insn *i)
{
	(void)i;
	need_work(p->plan, sizeof(struct path_work));
}

static void need_buffer(struct planner *p, const struct ir_insn *i)
{
	(void)i;
	need_work(p->plan, PLAN_COPYOUT);
}

/* What the clause needs for each of enum ir_need. */
static const struct {
	uint32_t of, needs;
	void (*more)(struct planner *p, const struct ir_insn *i);
} needs[] = {
	{ IR_N_TIME, NEED_TIME, NULL },
	{ IR_N_PROBE, NEED_PROBE, NULL },
	{ IR_N_IDS, NEED_TASK, NULL },
	{ IR_N_FLOW, NEED_STATE | NEED_SCRATCH | NEED_FAULT, NULL },
	{ IR_N_LOOPS, NEED_LOOPS, NULL },
	{ IR_N_ITERATION, NEED_ITERS, NULL },
	{ IR_N_PROCEDURES, NEED_CALLS, NULL },
	{ IR_N_KEY, 0, need_keys },
	{ IR_N_RECORD, NEED_SCRATCH, need_record },
	{ IR_N_TEXT, 0, need_text },
	{ IR_N_GROUPS, 0, need_groups },
	{ IR_N_FRAMES, 0, need_frames },
	{ IR_N_COMPONENTS, 0, need_components },
	{ IR_N_BLOCK, NEED_SCRATCH, need_copyin },
	{ IR_N_BUFFER, 0, need_buffer },
};

/* The memory of copyin() and alloca() is written to: it has room for the largest write. */
static void need_written(struct planner *p)
{
	uint32_t room = ir_str_room(p->prog);

	p->plan->needs |= NEED_SCRATCH;
	p->priv->copyin_written = true;
	if (p->priv->copyin_size < room + 8)
		p->priv->copyin_size = room + 8;
}

/* Is there code for a fault of @i?  There is wherever a string is copied, for the verifier (gen_copy_str). */
static bool has_stub(const struct planner *p, const struct ir_insn *i)
{
	bool strings = i->dst != IR_NO_REG && p->clause->regs[i->dst] == IR_STR;

	for (uint32_t x = 0; x < i->nargs; x++)
		strings |= p->clause->regs[i->args[x]] == IR_STR;
	return strings || ir_effects(i) & (IR_FAULTS | IR_FILLS);
}

static void need_of_insn(struct planner *p, const struct ir_insn *i)
{
	struct plan *plan = p->plan;
	uint32_t of = ir_needs(i);

	for (size_t k = 0; k < sizeof(needs) / sizeof(needs[0]); k++) {
		if (!(of & needs[k].of))
			continue;
		plan->needs |= needs[k].needs;
		if (needs[k].more)
			needs[k].more(p, i);
	}
	if (has_stub(p, i))
		plan->needs |= NEED_FAULT;
	if (ir_op_fact(i->op)->attr == IR_ATTR_VAR)
		need_of_var(p, i->var);
	if (ir_effects(i) & IR_W_SCRATCH && !(of & IR_N_BLOCK))
		need_written(p);
	if (i->op == IR_EXITING && i->imm)
		plan->needs |= NEED_GATE;
}

static void find_needs(struct planner *p)
{
	struct ir_walk w = ir_walk_blocks(p->plan->blocks, p->plan->nblocks);
	struct plan *plan = p->plan;

	for (const struct ir_insn *i; (i = ir_next(&w));)
		need_of_insn(p, i);
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
	p.crossing = arena_alloc(a, c->nregs * sizeof(*p.crossing) + 1);
	memset(p.crossing, 0xff, c->nregs * sizeof(*p.crossing));
	p.crosses = arena_alloc(a, c->nregs * sizeof(*p.crosses) + 1);
	p.written = arena_alloc(a, c->nregs * sizeof(*p.written) + 1);
	p.in = arena_alloc(a, c->nblocks * sizeof(*p.in));
	order_blocks(&p);
	tries_plan(a, c, p.plan);
	count(&p);
	find_late(&p);
	find_lives(&p);
	allocate(&p);
	find_needs(&p);
	return p.plan;
}

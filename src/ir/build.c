#include "ir/ir.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "lang/format.h"

struct ir_prog *ir_prog_new(struct arena *a, uint32_t strsize)
{
	struct ir_prog *p = arena_new_of(a, struct ir_prog);

	p->arena = a;
	p->strsize = strsize;
	p->nesting = IR_NESTING;
	return p;
}

struct ir_var *ir_var_new(struct ir_prog *p, const char *name, enum ir_class cls, struct ir_slot slot)
{
	struct ir_var *v = arena_new_of(p->arena, struct ir_var);

	v->id = p->nvars;
	v->name = arena_strdup(p->arena, name);
	v->cls = cls;
	v->slot = slot;
	p->vars = arena_grow(p->arena, p->vars, &p->vars_cap, p->nvars, sizeof(*p->vars));
	p->vars[p->nvars++] = v;
	return v;
}

struct ir_map *ir_map_new(struct ir_prog *p, const char *name, enum ir_class cls)
{
	struct ir_map *m = arena_new_of(p->arena, struct ir_map);

	m->id = p->nmaps;
	m->name = arena_strdup(p->arena, name);
	m->cls = cls;
	p->maps = arena_grow(p->arena, p->maps, &p->maps_cap, p->nmaps, sizeof(*p->maps));
	p->maps[p->nmaps++] = m;
	return m;
}

struct ir_iter *ir_iter_new(struct ir_prog *p, struct ir_map *m)
{
	struct ir_iter *it = arena_new_of(p->arena, struct ir_iter);

	it->id = p->niters;
	it->map = m;
	p->iters = arena_grow(p->arena, p->iters, &p->iters_cap, p->niters, sizeof(*p->iters));
	p->iters[p->niters++] = it;
	return it;
}

struct ir_agg *ir_agg_new(struct ir_prog *p, const char *name, enum ir_agg_fn fn)
{
	struct ir_agg *g = arena_new_of(p->arena, struct ir_agg);

	g->id = p->naggs;
	g->name = arena_strdup(p->arena, name);
	g->fn = fn;
	p->aggs = arena_grow(p->arena, p->aggs, &p->aggs_cap, p->naggs, sizeof(*p->aggs));
	p->aggs[p->naggs++] = g;
	return g;
}

struct ir_clause *ir_clause_new(struct ir_prog *p, struct src_pos pos)
{
	struct ir_clause *c = arena_new_of(p->arena, struct ir_clause);

	c->id = p->nclauses;
	c->pos = pos;
	p->clauses = arena_grow(p->arena, p->clauses, &p->clauses_cap, p->nclauses, sizeof(*p->clauses));
	p->clauses[p->nclauses++] = c;
	return c;
}

struct ir_rec *ir_rec_new(struct ir_prog *p, struct ir_clause *c)
{
	struct ir_rec *r = arena_new_of(p->arena, struct ir_rec);

	r->id = p->nrecs;
	r->clause = c->id;
	p->recs = arena_grow(p->arena, p->recs, &p->recs_cap, p->nrecs, sizeof(*p->recs));
	p->recs[p->nrecs++] = r;
	return r;
}

uint32_t ir_rec_field(struct ir_prog *p, struct ir_rec *r, struct ir_slot slot)
{
	r->fields = arena_grow(p->arena, r->fields, &r->fields_cap, r->nfields, sizeof(*r->fields));
	r->fields[r->nfields] = slot;
	if (r->nacts)
		r->acts[r->nacts - 1].nfields++;
	return r->nfields++;
}

struct ir_act *ir_rec_act(struct ir_prog *p, struct ir_rec *r, enum ir_act_kind kind, struct src_pos pos)
{
	struct ir_act *act;

	r->acts = arena_grow(p->arena, r->acts, &r->acts_cap, r->nacts, sizeof(*r->acts));
	act = &r->acts[r->nacts++];
	memset(act, 0, sizeof(*act));
	act->kind = kind;
	act->field = r->nfields;
	act->pos = pos;
	return act;
}

void ir_build(struct ir_build *b, struct ir_prog *p, struct ir_clause *c)
{
	memset(b, 0, sizeof(*b));
	b->prog = p;
	b->clause = c;
	b->pos = c->pos;
	b->block = ir_block_new(b);
}

struct ir_block *ir_block_new(struct ir_build *b)
{
	struct ir_clause *c = b->clause;
	struct ir_block *block = arena_new_of(b->prog->arena, struct ir_block);

	block->id = c->nblocks;
	c->blocks = arena_grow(b->prog->arena, c->blocks, &c->blocks_cap, c->nblocks, sizeof(*c->blocks));
	c->blocks[c->nblocks++] = block;
	return block;
}

void ir_at(struct ir_build *b, struct ir_block *block)
{
	b->block = block;
}

ir_reg ir_reg_new(struct ir_build *b, enum ir_type type)
{
	struct ir_clause *c = b->clause;

	c->regs = arena_grow(b->prog->arena, c->regs, &c->regs_cap, c->nregs, sizeof(*c->regs));
	c->regs[c->nregs] = type;
	return c->nregs++;
}

/* Append an instruction to the current block, with a copy of @args. */
static struct ir_insn *add(struct ir_build *b, enum ir_op op, ir_reg dst, const ir_reg *args, unsigned int nargs)
{
	struct ir_block *k = b->block;
	struct ir_insn *i;

	k->insns = arena_grow(b->prog->arena, k->insns, &k->cap, k->n, sizeof(*k->insns));
	i = &k->insns[k->n++];
	memset(i, 0, sizeof(*i));
	i->op = op;
	i->dst = dst;
	i->pos = b->pos;
	i->act = b->act;
	i->nargs = nargs;
	if (nargs) {
		i->args = arena_alloc(b->prog->arena, nargs * sizeof(*args));
		memcpy(i->args, args, nargs * sizeof(*args));
	}
	return i;
}

/* The same for operands [first, keys...]. */
static struct ir_insn *add_keyed(struct ir_build *b, enum ir_op op, ir_reg dst, ir_reg first, const ir_reg *keys,
				 unsigned int nkeys)
{
	ir_reg args[1 + IR_MAX_KEYS];

	assert(nkeys <= IR_MAX_KEYS);
	args[0] = first;
	if (nkeys)
		memcpy(args + 1, keys, nkeys * sizeof(*keys));
	return add(b, op, dst, args, 1 + nkeys);
}

ir_reg ir_const(struct ir_build *b, int64_t v)
{
	ir_reg dst = ir_reg_new(b, IR_INT);

	add(b, IR_CONST, dst, NULL, 0)->imm = v;
	return dst;
}

ir_reg ir_strc(struct ir_build *b, const char *s)
{
	ir_reg dst = ir_reg_new(b, IR_STR);

	add(b, IR_STRC, dst, NULL, 0)->str = arena_strdup(b->prog->arena, s);
	return dst;
}

void ir_mov(struct ir_build *b, ir_reg dst, ir_reg src)
{
	add(b, IR_MOV, dst, &src, 1);
}

ir_reg ir_op1(struct ir_build *b, enum ir_op op, ir_reg a)
{
	ir_reg dst = ir_reg_new(b, IR_INT);

	add(b, op, dst, &a, 1);
	return dst;
}

ir_reg ir_op2(struct ir_build *b, enum ir_op op, ir_reg x, ir_reg y)
{
	ir_reg dst = ir_reg_new(b, IR_INT), args[2] = { x, y };

	add(b, op, dst, args, 2);
	return dst;
}

ir_reg ir_ext(struct ir_build *b, ir_reg a, unsigned int width, bool sign)
{
	struct ir_insn *i;
	ir_reg dst;

	if (width >= 8)
		return a;
	dst = ir_reg_new(b, IR_INT);
	i = add(b, IR_EXT, dst, &a, 1);
	i->width = (uint8_t)width;
	i->sign = sign;
	return dst;
}

ir_reg ir_load(struct ir_build *b, enum ir_op op, ir_reg addr, unsigned int width, bool sign)
{
	ir_reg dst = ir_reg_new(b, IR_INT);
	struct ir_insn *i = add(b, op, dst, &addr, 1);

	i->width = (uint8_t)width;
	i->sign = sign;
	return dst;
}

ir_reg ir_builtin(struct ir_build *b, enum ir_builtin bi)
{
	ir_reg dst = ir_reg_new(b, ir_builtin_type(bi));

	add(b, IR_BUILTIN, dst, NULL, 0)->bi = bi;
	return dst;
}

ir_reg ir_arg(struct ir_build *b, unsigned int n)
{
	ir_reg dst = ir_reg_new(b, IR_INT);

	add(b, IR_ARG, dst, NULL, 0)->imm = n;
	return dst;
}

ir_reg ir_call(struct ir_build *b, enum ir_fn fn, const ir_reg *args, unsigned int n)
{
	ir_reg dst = ir_reg_new(b, ir_fn_result(fn));

	add(b, IR_CALL, dst, args, n)->fn = fn;
	return dst;
}

ir_reg ir_vld(struct ir_build *b, struct ir_var *v)
{
	ir_reg dst = ir_reg_new(b, v->slot.type);

	add(b, IR_VLD, dst, NULL, 0)->var = v;
	return dst;
}

void ir_vst(struct ir_build *b, struct ir_var *v, ir_reg val)
{
	add(b, IR_VST, IR_NO_REG, &val, 1)->var = v;
}

ir_reg ir_vadd(struct ir_build *b, struct ir_var *v, ir_reg val)
{
	ir_reg dst = ir_reg_new(b, IR_INT);

	add(b, IR_VADD, dst, &val, 1)->var = v;
	return dst;
}

ir_reg ir_mld(struct ir_build *b, struct ir_map *m, const ir_reg *keys)
{
	ir_reg dst = ir_reg_new(b, m->value.type);

	add(b, IR_MLD, dst, keys, m->nkeys)->map = m;
	return dst;
}

void ir_mst(struct ir_build *b, struct ir_map *m, ir_reg val, const ir_reg *keys)
{
	add_keyed(b, IR_MST, IR_NO_REG, val, keys, m->nkeys)->map = m;
}

ir_reg ir_madd(struct ir_build *b, struct ir_map *m, ir_reg val, const ir_reg *keys)
{
	ir_reg dst = ir_reg_new(b, IR_INT);

	add_keyed(b, IR_MADD, dst, val, keys, m->nkeys)->map = m;
	return dst;
}

ir_reg ir_mhas(struct ir_build *b, struct ir_map *m, const ir_reg *keys)
{
	ir_reg dst = ir_reg_new(b, IR_INT);

	add(b, IR_MHAS, dst, keys, m->nkeys)->map = m;
	return dst;
}

void ir_mdel(struct ir_build *b, struct ir_map *m, const ir_reg *keys)
{
	add(b, IR_MDEL, IR_NO_REG, keys, m->nkeys)->map = m;
}

void ir_agg_add(struct ir_build *b, struct ir_agg *g, const ir_reg *args)
{
	add(b, IR_AGG, IR_NO_REG, args, ir_agg_operands(g->fn) + g->nkeys)->agg = g;
}

void ir_emit(struct ir_build *b, struct ir_rec *r, const ir_reg *args)
{
	add(b, IR_EMIT, IR_NO_REG, args, r->nfields + (r->stat ? r->stat->nkeys : 0))->rec = r;
}

void ir_exiting(struct ir_build *b, bool others_too)
{
	add(b, IR_EXITING, IR_NO_REG, NULL, 0)->imm = others_too;
}

void ir_gate(struct ir_build *b)
{
	add(b, IR_GATE, IR_NO_REG, NULL, 0);
}

void ir_jmp(struct ir_build *b, struct ir_block *to)
{
	add(b, IR_JMP, IR_NO_REG, NULL, 0)->target[0] = to;
}

void ir_br(struct ir_build *b, ir_reg cond, struct ir_block *yes, struct ir_block *no)
{
	struct ir_insn *i = add(b, IR_BR, IR_NO_REG, &cond, 1);

	i->target[0] = yes;
	i->target[1] = no;
}

void ir_ret(struct ir_build *b)
{
	add(b, IR_RET, IR_NO_REG, NULL, 0);
}

void ir_fault(struct ir_build *b, int kind, ir_reg value)
{
	add(b, IR_FAULT, IR_NO_REG, &value, 1)->imm = kind;
}

/* --- for SystemTap ---------------------------------------------------------------------------------------- */

void ir_mclear(struct ir_build *b, struct ir_map *m)
{
	add(b, IR_MCLEAR, IR_NO_REG, NULL, 0)->map = m;
}

void ir_stat(struct ir_build *b, struct ir_map *m, ir_reg val, const ir_reg *keys)
{
	add_keyed(b, IR_STAT, IR_NO_REG, val, keys, m->nkeys)->map = m;
}

ir_reg ir_extract(struct ir_build *b, enum ir_op op, struct ir_map *m, const ir_reg *keys)
{
	ir_reg dst = ir_reg_new(b, IR_INT);

	add(b, op, dst, keys, m->nkeys)->map = m;
	return dst;
}

ir_reg ir_bucket(struct ir_build *b, struct ir_map *m, ir_reg n, const ir_reg *keys)
{
	ir_reg dst = ir_reg_new(b, IR_INT);

	add_keyed(b, IR_SBUCKET, dst, n, keys, m->nkeys)->map = m;
	return dst;
}

ir_reg ir_iter(struct ir_build *b, struct ir_iter *it, ir_reg limit, const ir_reg *given)
{
	ir_reg dst = ir_reg_new(b, IR_INT);

	add_keyed(b, IR_ITER, dst, limit, given, (unsigned int)__builtin_popcount(it->given))->iter = it;
	return dst;
}

ir_reg ir_inext(struct ir_build *b, struct ir_iter *it)
{
	ir_reg dst = ir_reg_new(b, IR_INT);

	add(b, IR_INEXT, dst, NULL, 0)->iter = it;
	return dst;
}

ir_reg ir_ikey(struct ir_build *b, struct ir_iter *it, unsigned int part)
{
	ir_reg dst = ir_reg_new(b, it->map->keys[part].type);
	struct ir_insn *i = add(b, IR_IKEY, dst, NULL, 0);

	i->iter = it;
	i->part = part;
	return dst;
}

ir_reg ir_ivalue(struct ir_build *b, struct ir_iter *it)
{
	ir_reg dst = ir_reg_new(b, it->map->value.type);

	add(b, IR_IVALUE, dst, NULL, 0)->iter = it;
	return dst;
}

void ir_idone(struct ir_build *b, struct ir_iter *it)
{
	add(b, IR_IDONE, IR_NO_REG, NULL, 0)->iter = it;
}

ir_reg ir_sprintf(struct ir_build *b, const struct fmt *f, const ir_reg *args)
{
	ir_reg dst = ir_reg_new(b, IR_STR);

	add(b, IR_SPRINTF, dst, args, (unsigned int)fmt_nargs(f))->fmt = f;
	return dst;
}

ir_reg ir_match(struct ir_build *b, const char *regex, ir_reg s)
{
	ir_reg dst = ir_reg_new(b, IR_INT);

	add(b, IR_MATCH, dst, &s, 1)->str = arena_strdup(b->prog->arena, regex);
	return dst;
}

void ir_turn(struct ir_build *b)
{
	add(b, IR_TURN, IR_NO_REG, NULL, 0);
}

void ir_pass(struct ir_build *b, struct ir_var *v, ir_reg val)
{
	add(b, IR_PASS, IR_NO_REG, &val, 1)->var = v;
}

/* Append an instruction that ends a block and has two targets. */
static void add_fork(struct ir_build *b, enum ir_op op, struct ir_block *first, struct ir_block *second)
{
	struct ir_insn *i = add(b, op, IR_NO_REG, NULL, 0);

	i->target[0] = first;
	i->target[1] = second;
}

void ir_enter(struct ir_build *b, struct ir_block *procedure, struct ir_block *then)
{
	add_fork(b, IR_ENTER, procedure, then);
}

void ir_leave(struct ir_build *b)
{
	add(b, IR_LEAVE, IR_NO_REG, NULL, 0);
}

void ir_try(struct ir_build *b, struct ir_block *caught, struct ir_block *body)
{
	add_fork(b, IR_TRY, caught, body);
}

void ir_endtry(struct ir_build *b)
{
	add(b, IR_ENDTRY, IR_NO_REG, NULL, 0);
}

ir_reg ir_caught(struct ir_build *b, int what)
{
	ir_reg dst = ir_reg_new(b, IR_INT);

	add(b, IR_CAUGHT, dst, NULL, 0)->imm = what;
	return dst;
}

ir_reg ir_caughtstr(struct ir_build *b)
{
	ir_reg dst = ir_reg_new(b, IR_STR);

	add(b, IR_CAUGHTSTR, dst, NULL, 0);
	return dst;
}

void ir_raise(struct ir_build *b, ir_reg text)
{
	add(b, IR_RAISE, IR_NO_REG, &text, 1);
}

void ir_budget(struct ir_build *b, int64_t n)
{
	add(b, IR_BUDGET, IR_NO_REG, NULL, 0)->imm = n;
}

void ir_spend(struct ir_build *b, int64_t n)
{
	add(b, IR_SPEND, IR_NO_REG, NULL, 0)->imm = n;
}

ir_reg ir_failed(struct ir_build *b)
{
	ir_reg dst = ir_reg_new(b, IR_INT);

	add(b, IR_FAILED, dst, NULL, 0);
	return dst;
}

/*
 * Speculations.
 *
 * The tracer keeps the records of speculative clauses, and prints or drops them when the record of a commit or
 * discard comes.  Programs share only which speculations are in use, in two hidden global variables for each: a count
 * of attempts to take it (the first one succeeds), and whether it is active, so that records with an ended
 * speculation or an invalid number are not written at all.
 *
 * Guide: "Speculative Tracing".
 */
#include "d/lower.h"

#include "abi/record.h"
#include "base/arena.h"
#include "d/check.h"

enum { NSPEC_MAX = 64 };

static uint32_t nspec(const struct lower *l)
{
	uint32_t n = l->check->opts->nspec;

	return n > NSPEC_MAX ? NSPEC_MAX : n;
}

static void make_vars(struct lower *l)
{
	const struct ir_slot number = { IR_INT, 8, true };
	uint32_t n = nspec(l);

	if (l->spec_users)
		return;
	l->spec_users = arena_alloc(l->prog->arena, (n + 1) * sizeof(struct ir_var *));
	l->spec_active = arena_alloc(l->prog->arena, (n + 1) * sizeof(struct ir_var *));
	for (uint32_t i = 0; i < n; i++) {
		l->spec_users[i] = ir_var_new(l->prog, "speculation users", IR_GLOBAL, number);
		l->spec_active[i] = ir_var_new(l->prog, "speculation active", IR_GLOBAL, number);
	}
}

ir_reg lower_speculation(struct lower *l)
{
	struct ir_block *done = ir_block_new(&l->b);
	ir_reg id = ir_reg_new(&l->b, IR_INT);
	struct ir_rec *busy;

	make_vars(l);
	for (uint32_t i = 0; i < nspec(l); i++) {
		struct ir_block *mine = ir_block_new(&l->b), *taken = ir_block_new(&l->b);
		ir_reg before = ir_vadd(&l->b, l->spec_users[i], ir_const(&l->b, 1));

		ir_br(&l->b, before, taken, mine);
		ir_at(&l->b, mine);
		ir_vst(&l->b, l->spec_active[i], ir_const(&l->b, 1));
		ir_mov(&l->b, id, ir_const(&l->b, i + 1));
		ir_jmp(&l->b, done);
		ir_at(&l->b, taken);
		ir_vadd(&l->b, l->spec_users[i], ir_const(&l->b, -1));
	}
	busy = ir_rec_new(l->prog, l->b.clause);
	ir_rec_act(l->prog, busy, IR_ACT_SPECBUSY, l->b.pos);
	ir_emit(&l->b, busy, NULL);
	ir_mov(&l->b, id, ir_const(&l->b, 0));
	ir_jmp(&l->b, done);
	ir_at(&l->b, done);
	return id;
}

/* Is speculation @id active? */
static ir_reg active(struct lower *l, ir_reg id)
{
	ir_reg sum = ir_const(&l->b, 0), is;

	for (uint32_t i = 0; i < nspec(l); i++) {
		is = ir_op2(&l->b, IR_EQ, id, ir_const(&l->b, i + 1));
		is = ir_op2(&l->b, IR_AND, is, ir_vld(&l->b, l->spec_active[i]));
		sum = ir_op2(&l->b, IR_OR, sum, is);
	}
	return sum;
}

/* Release speculation @id, if it is active. */
static void release(struct lower *l, ir_reg id)
{
	for (uint32_t i = 0; i < nspec(l); i++) {
		struct ir_block *its = ir_block_new(&l->b), *next = ir_block_new(&l->b);
		ir_reg is = ir_op2(&l->b, IR_EQ, id, ir_const(&l->b, i + 1));

		ir_br(&l->b, ir_op2(&l->b, IR_AND, is, ir_vld(&l->b, l->spec_active[i])), its, next);
		ir_at(&l->b, its);
		ir_vst(&l->b, l->spec_active[i], ir_const(&l->b, 0));
		ir_vadd(&l->b, l->spec_users[i], ir_const(&l->b, -1));
		ir_jmp(&l->b, next);
		ir_at(&l->b, next);
	}
}

/* An id that speculation() cannot have returned is an illegal operation; 0 means that none was free. */
static void known(struct lower *l, ir_reg id)
{
	struct ir_block *good = ir_block_new(&l->b), *bad = ir_block_new(&l->b);

	ir_br(&l->b, ir_op2(&l->b, IR_ULE, id, ir_const(&l->b, l->check->opts->nspec)), good, bad);
	ir_at(&l->b, bad);
	ir_fault(&l->b, ABI_FAULT_ILLOP, id);
	ir_at(&l->b, good);
}

/* After a speculate() without an active speculation, the rest is skipped. */
static void unless_active(struct lower *l)
{
	struct ir_block *go = ir_block_new(&l->b), *end = l->spec_end ? l->spec_end : ir_block_new(&l->b);

	ir_br(&l->b, active(l, l->spec_id), go, end);
	if (!l->spec_end) {
		ir_at(&l->b, end);
		ir_ret(&l->b);
	}
	ir_at(&l->b, go);
}

/* speculate(id), commit(id), discard(id) */
void lower_spec(struct lower *l, struct d_node *call)
{
	enum ir_act_kind kind = (enum ir_act_kind)call->ident->action->what;
	const struct type *t = l->check->t_int;
	ir_reg id;

	make_vars(l);
	if (kind == IR_ACT_SPECULATE) {
		lower_rec_end(l);	/* records after a discard() are not speculative */
		l->spec_id = lower_as(l, call->args[0], t);
		known(l, l->spec_id);
		unless_active(l);
		lower_rec(l);
		return;
	}
	id = lower_as(l, call->args[0], t);
	known(l, id);
	ir_rec_act(l->prog, lower_rec(l), kind, call->pos);
	lower_field(l, id, t);
	release(l, id);
}

void lower_spec_field(struct lower *l)
{
	ir_rec_act(l->prog, l->rec, IR_ACT_SPECULATE, l->b.pos);
	lower_field(l, l->spec_id, l->check->t_int);
}

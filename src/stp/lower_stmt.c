/*
 * Statements.
 */
#include "stp/lower.h"

#include <string.h>

#include "abi/record.h"
#include "base/arena.h"

enum { PAY_AT = 10 };		/* as in SystemTap's translator */

/* --- counting ---------------------------------------------------------------------------------------- */

void stp_lower_count(struct lower *l, unsigned int n, const char *what, struct src_pos pos, bool pay)
{
	l->statements += n;
	l->last_what = what;
	l->last_pos = pos;
	if (!l->statements || (!pay && l->statements < PAY_AT))
		return;
	if (l->counting) {
		stp_lower_near(l, what, pos);
		ir_spend(&l->b, l->statements);
	}
	l->statements = 0;
}

static void count(struct lower *l, const struct stp_stmt *s, unsigned int n, bool pay)
{
	stp_lower_count(l, n, s->what, s->pos, pay);
}

/* --- jumps ------------------------------------------------------------------------------------------- */

/* Leave the TRYs behind the first @tries, and the loops inside of @loop. */
static void stp_lower_leave(struct lower *l, unsigned int tries, const struct stp_lower_loop *loop)
{
	for (unsigned int i = l->tries; i > tries; i--)
		ir_endtry(&l->b);
	for (const struct stp_lower_loop *p = l->loop; p && p != loop; p = p->outer)
		if (p->iter)
			ir_idone(&l->b, p->iter);
}

/* The rest of this block is unreachable; the builder needs a block for it nevertheless. */
static void jump(struct lower *l, struct ir_block *to)
{
	ir_jmp(&l->b, to);
	ir_at(&l->b, ir_block_new(&l->b));
}

static void lower_break(struct lower *l, struct stp_stmt *s)
{
	struct stp_lower_loop *loop = l->loop;

	count(l, s, 1, true);
	stp_lower_leave(l, loop->tries, loop);
	if (s->kind == STP_S_BREAK && loop->iter)
		ir_idone(&l->b, loop->iter);
	jump(l, s->kind == STP_S_BREAK ? loop->out : loop->again);
}

static void lower_next(struct lower *l, struct stp_stmt *s)
{
	count(l, s, 1, true);
	if (l->call) {
		stp_lower_leave(l, l->call->tries, NULL);
		if (!l->call->next)
			l->call->next = ir_block_new(&l->b);
		jump(l, l->call->next);
		return;
	}
	stp_lower_leave(l, 0, NULL);
	stp_lower_end_time(l);
	ir_ret(&l->b);
	ir_at(&l->b, ir_block_new(&l->b));
}

static void lower_return(struct lower *l, struct stp_stmt *s)
{
	bool late = s->expr && l->call->choice && stp_lower_return_late(l, l->call->choice, s->expr);
	ir_reg val = s->expr && !late ? stp_lower_expr(l, s->expr) : IR_NO_REG;

	if (val != IR_NO_REG && l->call->result)
		ir_vst(&l->b, l->call->result, val);
	count(l, s, 1, true);
	stp_lower_leave(l, l->call->tries, NULL);
	jump(l, l->call->end);
}

/* --- branches and loops ------------------------------------------------------------------------------ */

/* Lower @s, which may be NULL, subtract its count at its end, and jump to @to. */
static void lower_branch(struct lower *l, struct ir_block *at, struct stp_stmt *s, struct ir_block *to)
{
	ir_at(&l->b, at);
	if (s) {
		stp_lower_stmt(l, s);
		count(l, s, 0, true);
	}
	ir_jmp(&l->b, to);
}

static bool is_known(const struct stp_node *n, int64_t *value)
{
	bool var = n->kind == STP_NAME && n->var && n->var->known;

	*value = var ? n->var->known_value : n->value;
	return var || n->kind == STP_NUM;
}

/* Is the condition of @s a comparison whose result the call of the function decides? */
static bool is_decided(const struct stp_stmt *s, bool *yes)
{
	const struct stp_node *n = s->expr;
	int64_t a, b;

	if (n->kind != STP_BINARY || (n->op != STP_EQ && n->op != STP_NE) || !is_known(n->l, &a) || !is_known(n->r, &b))
		return false;
	*yes = (a == b) == (n->op == STP_EQ);
	return true;
}

static void lower_if(struct lower *l, struct stp_stmt *s)
{
	struct ir_block *yes, *no, *end;
	bool decided;

	count(l, s, 1, true);
	if (is_decided(s, &decided)) {
		if (decided ? s->yes : s->no)
			stp_lower_stmt(l, decided ? s->yes : s->no);
		return;
	}
	yes = ir_block_new(&l->b);
	end = ir_block_new(&l->b);
	no = s->no ? ir_block_new(&l->b) : end;
	stp_lower_cond(l, s->expr, yes, no);
	lower_branch(l, yes, s->yes, end);
	if (s->no)
		lower_branch(l, no, s->no, end);
	ir_at(&l->b, end);
}

static void lower_for(struct lower *l, struct stp_stmt *s)
{
	struct ir_block *head = ir_block_new(&l->b), *body = ir_block_new(&l->b);
	struct ir_block *again = ir_block_new(&l->b), *out = ir_block_new(&l->b);
	struct stp_lower_loop loop = { .again = again, .out = out, .tries = l->tries, .outer = l->loop };

	if (s->init)
		stp_lower_effect(l, s->init);
	count(l, s, 1, true);
	ir_jmp(&l->b, head);
	ir_at(&l->b, head);
	stp_lower_near(l, s->what, s->pos);
	ir_turn(&l->b);
	count(l, s, 1, false);
	if (s->expr)
		stp_lower_cond(l, s->expr, body, out);
	else
		ir_jmp(&l->b, body);
	l->loop = &loop;
	lower_branch(l, body, s->yes, again);
	l->loop = loop.outer;
	ir_at(&l->b, again);
	if (s->incr)
		stp_lower_effect(l, s->incr);
	ir_jmp(&l->b, head);
	ir_at(&l->b, out);
	l->statements = 0;
}

/* --- try --------------------------------------------------------------------------------------------- */

/* If @r is @which: store the message @text, with the fault's value, in @v and jump to @end. */
static void lower_message(struct lower *l, ir_reg r, int64_t which, const char *text, struct ir_var *v,
			  struct ir_block *end)
{
	struct ir_block *yes = ir_block_new(&l->b), *no = ir_block_new(&l->b);
	ir_reg value;

	ir_br(&l->b, ir_op2(&l->b, IR_EQ, r, stp_lower_const(l, which)), yes, no);
	ir_at(&l->b, yes);
	value = ir_caught(&l->b, IR_CAUGHT_VALUE);
	ir_vst(&l->b, v, stp_lower_sprintf(l, text, &value, strchr(text, '%') ? 1 : 0));
	ir_jmp(&l->b, end);
	ir_at(&l->b, no);
}

/*
 * Store the message of a caught error in @v and jump to @end.  The error's origin is an entry of stp_code.nears from
 * @first on, or in a procedure; these are lowered last, so stp_lower_messages lowers the code that distinguishes
 * origins.
 */
static void lower_caught(struct lower *l, struct ir_var *v, uint32_t first, struct ir_block *end)
{
	struct ir_block *own = ir_block_new(&l->b);
	struct stp_lower_catch *c = arena_new_of(l->arena, struct stp_lower_catch);

	*c = (struct stp_lower_catch){ ir_block_new(&l->b), end, v, first, l->code->nnears, l->catches };
	l->catches = c;
	ir_br(&l->b, ir_op2(&l->b, IR_EQ, ir_caught(&l->b, IR_CAUGHT_KIND), stp_lower_const(l, ABI_FAULT_ERROR)), own, c->block);
	ir_at(&l->b, own);
	ir_vst(&l->b, v, ir_caughtstr(&l->b));
	ir_jmp(&l->b, end);
}

/* Lower the messages of the entries @from to @to of stp_code.nears that have one. */
static void lower_texts(struct lower *l, const struct stp_lower_catch *c, ir_reg act, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		if (l->code->nears[i].text)
			lower_message(l, act, i, l->code->nears[i].text, c->message, c->end);
}

void stp_lower_messages(struct lower *l, uint32_t procs)
{
	uint32_t last = l->code->nnears;
	ir_reg act, kind;

	for (const struct stp_lower_catch *c = l->catches; c; c = c->next) {
		ir_at(&l->b, c->block);
		act = ir_caught(&l->b, IR_CAUGHT_ACT);
		if (c->first < procs)		/* not a try of a procedure */
			lower_texts(l, c, act, c->first, c->last);
		lower_texts(l, c, act, procs, last);
		kind = ir_caught(&l->b, IR_CAUGHT_KIND);
#define STP_FAULT(kind_, text) lower_message(l, kind, ABI_FAULT_##kind_, text, c->message, c->end);
#include "stp/faults.def"
#undef STP_FAULT
		ir_vst(&l->b, c->message, stp_lower_str(l, "unknown fault"));
		ir_jmp(&l->b, c->end);
	}
	l->catches = NULL;
}

static void lower_try(struct lower *l, struct stp_stmt *s)
{
	struct ir_block *body = ir_block_new(&l->b), *caught = ir_block_new(&l->b), *end = ir_block_new(&l->b);
	struct ir_block *told;
	uint32_t first;

	stp_lower_count(l, 0, s->what, s->pos, true);
	stp_lower_near(l, s->what, s->pos);
	first = l->code->nnears;
	ir_try(&l->b, caught, body);
	l->tries++;
	ir_at(&l->b, body);
	stp_lower_stmt(l, s->yes);
	count(l, s->yes, 0, true);
	l->tries--;
	ir_endtry(&l->b);
	ir_jmp(&l->b, end);
	ir_at(&l->b, caught);
	l->statements = 0;
	if (s->value) {
		told = ir_block_new(&l->b);
		lower_caught(l, stp_lower_var(l, s->value->var), first, told);
		ir_at(&l->b, told);
	}
	if (s->no) {
		stp_lower_stmt(l, s->no);
		count(l, s->no, 0, true);
	}
	ir_jmp(&l->b, end);
	ir_at(&l->b, end);
}

/* --- the whole --------------------------------------------------------------------------------------- */

void stp_lower_stmt(struct lower *l, struct stp_stmt *s)
{
	l->b.pos = s->pos;
	switch (s->kind) {
	case STP_S_NULL:
		break;
	case STP_S_BLOCK:
		for (size_t i = 0; i < s->n; i++)
			stp_lower_stmt(l, s->stmts[i]);
		break;
	case STP_S_EXPR:
		stp_lower_effect(l, s->expr);
		count(l, s, 1, false);
		break;
	case STP_S_IF:
		lower_if(l, s);
		break;
	case STP_S_FOR:
		lower_for(l, s);
		break;
	case STP_S_FOREACH:
		stp_lower_foreach(l, s);
		break;
	case STP_S_RETURN:
		lower_return(l, s);
		break;
	case STP_S_DELETE:
		stp_lower_delete(l, s);
		count(l, s, 1, false);
		break;
	case STP_S_NEXT:
		lower_next(l, s);
		break;
	case STP_S_BREAK:
	case STP_S_CONTINUE:
		lower_break(l, s);
		break;
	case STP_S_TRY:
		lower_try(l, s);
		break;
	}
}

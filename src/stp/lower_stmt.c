/*
 * Statements.
 */
#include "stp/lower.h"

#include <string.h>

#include "abi/record.h"
#include "base/arena.h"

enum { PAY_AT = 10 };		/* as SystemTap's translator has it */

/* --- counting ---------------------------------------------------------------------------------------- */

void low_count(struct low *l, unsigned int n, const char *what, struct src_pos pos, bool pay)
{
	l->statements += n;
	l->last_what = what;
	l->last_pos = pos;
	if (!l->statements || (!pay && l->statements < PAY_AT))
		return;
	if (l->counting) {
		low_near(l, what, pos);
		ir_spend(&l->b, l->statements);
	}
	l->statements = 0;
}

static void count(struct low *l, const struct stp_stmt *s, unsigned int n, bool pay)
{
	low_count(l, n, s->what, s->pos, pay);
}

/* --- jumps ------------------------------------------------------------------------------------------- */

/* Control leaves the TRYs behind the first @tries, and the loops from the innermost one to before @loop. */
static void low_leave(struct low *l, unsigned int tries, const struct low_loop *loop)
{
	for (unsigned int i = l->tries; i > tries; i--)
		ir_endtry(&l->b);
	for (const struct low_loop *p = l->loop; p && p != loop; p = p->outer)
		if (p->iter)
			ir_idone(&l->b, p->iter);
}

/* Nothing that follows in this block is reached; the builder needs a block for it nevertheless. */
static void jump(struct low *l, struct ir_block *to)
{
	ir_jmp(&l->b, to);
	ir_at(&l->b, ir_block_new(&l->b));
}

static void lower_break(struct low *l, struct stp_stmt *s)
{
	struct low_loop *loop = l->loop;

	count(l, s, 1, true);
	low_leave(l, loop->tries, loop);
	if (s->kind == STP_S_BREAK && loop->iter)
		ir_idone(&l->b, loop->iter);
	jump(l, s->kind == STP_S_BREAK ? loop->out : loop->again);
}

static void lower_next(struct low *l, struct stp_stmt *s)
{
	count(l, s, 1, true);
	if (l->call) {
		low_leave(l, l->call->tries, NULL);
		if (!l->call->next)
			l->call->next = ir_block_new(&l->b);
		jump(l, l->call->next);
		return;
	}
	low_leave(l, 0, NULL);
	low_end_time(l);
	ir_ret(&l->b);
	ir_at(&l->b, ir_block_new(&l->b));
}

static void lower_return(struct low *l, struct stp_stmt *s)
{
	ir_reg val = s->expr ? low_expr(l, s->expr) : IR_NO_REG;

	if (val != IR_NO_REG && l->call->result)
		ir_vst(&l->b, l->call->result, val);
	count(l, s, 1, true);
	low_leave(l, l->call->tries, NULL);
	jump(l, l->call->end);
}

/* --- branches and loops ------------------------------------------------------------------------------ */

/* @s, which may be NULL, paid for at its end; then go to @to. */
static void lower_branch(struct low *l, struct ir_block *at, struct stp_stmt *s, struct ir_block *to)
{
	ir_at(&l->b, at);
	if (s) {
		low_stmt(l, s);
		count(l, s, 0, true);
	}
	ir_jmp(&l->b, to);
}

static void lower_if(struct low *l, struct stp_stmt *s)
{
	struct ir_block *yes = ir_block_new(&l->b), *end = ir_block_new(&l->b);
	struct ir_block *no = s->no ? ir_block_new(&l->b) : end;

	count(l, s, 1, true);
	low_cond(l, s->expr, yes, no);
	lower_branch(l, yes, s->yes, end);
	if (s->no)
		lower_branch(l, no, s->no, end);
	ir_at(&l->b, end);
}

static void lower_for(struct low *l, struct stp_stmt *s)
{
	struct ir_block *head = ir_block_new(&l->b), *body = ir_block_new(&l->b);
	struct ir_block *again = ir_block_new(&l->b), *out = ir_block_new(&l->b);
	struct low_loop loop = { .again = again, .out = out, .tries = l->tries, .outer = l->loop };

	if (s->init)
		low_effect(l, s->init);
	count(l, s, 1, true);
	ir_jmp(&l->b, head);
	ir_at(&l->b, head);
	low_near(l, s->what, s->pos);
	ir_turn(&l->b);
	count(l, s, 1, false);
	if (s->expr)
		low_cond(l, s->expr, body, out);
	else
		ir_jmp(&l->b, body);
	l->loop = &loop;
	lower_branch(l, body, s->yes, again);
	l->loop = loop.outer;
	ir_at(&l->b, again);
	if (s->incr)
		low_effect(l, s->incr);
	ir_jmp(&l->b, head);
	ir_at(&l->b, out);
	l->statements = 0;
}

/* --- try --------------------------------------------------------------------------------------------- */

/* If @r is @which: the message @text, which may have the fault's value in it, into @v; then go to @end. */
static void lower_message(struct low *l, ir_reg r, int64_t which, const char *text, struct ir_var *v,
			  struct ir_block *end)
{
	struct ir_block *yes = ir_block_new(&l->b), *no = ir_block_new(&l->b);
	ir_reg value;

	ir_br(&l->b, ir_op2(&l->b, IR_EQ, r, low_const(l, which)), yes, no);
	ir_at(&l->b, yes);
	value = ir_caught(&l->b, IR_CAUGHT_VALUE);
	ir_vst(&l->b, v, low_sprintf(l, text, &value, strchr(text, '%') ? 1 : 0));
	ir_jmp(&l->b, end);
	ir_at(&l->b, no);
}

/* The message of the error that was caught, into @v.  Its place is one from @first on, or in a procedure. */
static void lower_caught(struct low *l, struct ir_var *v, uint32_t first)
{
	struct ir_block *end = ir_block_new(&l->b), *own = ir_block_new(&l->b), *other = ir_block_new(&l->b);
	ir_reg kind = ir_caught(&l->b, IR_CAUGHT_KIND), act;
	uint32_t n = l->code->nnears;

	ir_br(&l->b, ir_op2(&l->b, IR_EQ, kind, low_const(l, ABI_FAULT_ERROR)), own, other);
	ir_at(&l->b, own);
	ir_vst(&l->b, v, ir_caughtstr(&l->b));
	ir_jmp(&l->b, end);
	ir_at(&l->b, other);
	act = ir_caught(&l->b, IR_CAUGHT_ACT);
	for (uint32_t i = first; i < n; i++)
		if (l->code->nears[i].text)
			lower_message(l, act, i, l->code->nears[i].text, v, end);
#define STP_FAULT(kind_, text) lower_message(l, kind, ABI_FAULT_##kind_, text, v, end);
#include "stp/faults.def"
#undef STP_FAULT
	ir_vst(&l->b, v, low_str(l, "unknown fault"));
	ir_jmp(&l->b, end);
	ir_at(&l->b, end);
}

static void lower_try(struct low *l, struct stp_stmt *s)
{
	struct ir_block *body = ir_block_new(&l->b), *caught = ir_block_new(&l->b), *end = ir_block_new(&l->b);
	uint32_t first;

	low_count(l, 0, s->what, s->pos, true);
	low_near(l, s->what, s->pos);
	first = l->code->nnears;
	ir_try(&l->b, caught, body);
	l->tries++;
	ir_at(&l->b, body);
	low_stmt(l, s->yes);
	count(l, s->yes, 0, true);
	l->tries--;
	ir_endtry(&l->b);
	ir_jmp(&l->b, end);
	ir_at(&l->b, caught);
	l->statements = 0;
	if (s->value)
		lower_caught(l, low_var(l, s->value->var), first);
	if (s->no) {
		low_stmt(l, s->no);
		count(l, s->no, 0, true);
	}
	ir_jmp(&l->b, end);
	ir_at(&l->b, end);
}

/* --- the whole --------------------------------------------------------------------------------------- */

void low_stmt(struct low *l, struct stp_stmt *s)
{
	l->b.pos = s->pos;
	switch (s->kind) {
	case STP_S_NULL:
		break;
	case STP_S_BLOCK:
		for (size_t i = 0; i < s->n; i++)
			low_stmt(l, s->stmts[i]);
		break;
	case STP_S_EXPR:
		low_effect(l, s->expr);
		count(l, s, 1, false);
		break;
	case STP_S_IF:
		lower_if(l, s);
		break;
	case STP_S_FOR:
		lower_for(l, s);
		break;
	case STP_S_FOREACH:
		low_foreach(l, s);
		break;
	case STP_S_RETURN:
		lower_return(l, s);
		break;
	case STP_S_DELETE:
		low_delete(l, s);
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

/*
 * Expressions.  Operands are evaluated from left to right; && || ?: do not evaluate what they do not need.
 */
#include "stp/lower.h"

#include <string.h>

#include "base/arena.h"
#include "lang/diag.h"

ir_reg stp_lower_const(struct lower *l, int64_t v)
{
	return ir_const(&l->b, v);
}

/* A constant string, cut like all strings. */
ir_reg stp_lower_str(struct lower *l, const char *s)
{
	size_t max = l->prog->strsize - 1;

	return ir_strc(&l->b, strlen(s) > max ? arena_strndup(l->arena, s, max) : s);
}

/* --- truth ------------------------------------------------------------------------------------------- */

void stp_lower_cond(struct lower *l, struct stp_node *n, struct ir_block *yes, struct ir_block *no)
{
	struct ir_block *between;

	switch (n->kind) {
	case STP_LOGIC:
		between = ir_block_new(&l->b);
		stp_lower_cond(l, n->l, n->op == STP_LAND ? between : yes, n->op == STP_LAND ? no : between);
		ir_at(&l->b, between);
		stp_lower_cond(l, n->r, yes, no);
		break;
	case STP_UNARY:
		if (n->op == STP_LNOT) {
			stp_lower_cond(l, n->l, no, yes);
			break;
		}
		/* fall through */
	default:
		ir_br(&l->b, stp_lower_expr(l, n), yes, no);
		break;
	}
}

/* && || and !: 1 or 0 by branches. */
static ir_reg lower_logic(struct lower *l, struct stp_node *n)
{
	struct ir_block *yes = ir_block_new(&l->b), *no = ir_block_new(&l->b), *end = ir_block_new(&l->b);
	ir_reg r = ir_reg_new(&l->b, IR_INT);

	stp_lower_cond(l, n, yes, no);
	ir_at(&l->b, yes);
	ir_mov(&l->b, r, stp_lower_const(l, 1));
	ir_jmp(&l->b, end);
	ir_at(&l->b, no);
	ir_mov(&l->b, r, stp_lower_const(l, 0));
	ir_jmp(&l->b, end);
	ir_at(&l->b, end);
	return r;
}

static ir_reg lower_choice(struct lower *l, struct stp_node *n)
{
	struct ir_block *yes = ir_block_new(&l->b), *no = ir_block_new(&l->b), *end = ir_block_new(&l->b);
	ir_reg r = ir_reg_new(&l->b, n->type == STP_STRINGS ? IR_STR : IR_INT);

	stp_lower_cond(l, n->cond, yes, no);
	ir_at(&l->b, yes);
	ir_mov(&l->b, r, stp_lower_expr(l, n->l));
	ir_jmp(&l->b, end);
	ir_at(&l->b, no);
	ir_mov(&l->b, r, stp_lower_expr(l, n->r));
	ir_jmp(&l->b, end);
	ir_at(&l->b, end);
	return r;
}

/* --- operators --------------------------------------------------------------------------------------- */

/* Lower both operands of @n. */
static void lower_both(struct lower *l, struct stp_node *n, ir_reg vals[2])
{
	struct stp_node *v[2] = { n->l, n->r };

	stp_lower_values(l, v, 2, vals);
}

static ir_reg lower_comparison(struct lower *l, struct stp_node *n)
{
	ir_reg v[2], a, b;

	lower_both(l, n, v);
	a = v[0];
	b = v[1];
	if (n->l->type == STP_STRINGS) {
		a = ir_op2(&l->b, IR_STRCMP, a, b);
		b = stp_lower_const(l, 0);
	}
	switch (n->op) {
	case STP_EQ:
		return ir_op2(&l->b, IR_EQ, a, b);
	case STP_NE:
		return ir_op2(&l->b, IR_NE, a, b);
	case STP_LT:
		return ir_op2(&l->b, IR_SLT, a, b);
	case STP_LE:
		return ir_op2(&l->b, IR_SLE, a, b);
	case STP_GT:
		return ir_op2(&l->b, IR_SLT, b, a);
	default:
		return ir_op2(&l->b, IR_SLE, b, a);
	}
}

ir_reg stp_lower_op(struct lower *l, enum stp_op op, const struct stp_node *at, ir_reg a, ir_reg b)
{
	static const enum ir_op ops[] = {
		[STP_ADD] = IR_ADD, [STP_SUB] = IR_SUB, [STP_MUL] = IR_MUL, [STP_DIV] = IR_SDIV,
		[STP_MOD] = IR_SMOD, [STP_AND] = IR_AND, [STP_OR] = IR_OR, [STP_XOR] = IR_XOR,
		[STP_SHL] = IR_SHL, [STP_SHR] = IR_SAR, [STP_LSHR] = IR_SHR,
	};
	ir_reg both[2] = { a, b };

	if (op == STP_CONCAT)
		return ir_call(&l->b, IR_FN_STRJOIN, both, 2);
	if (op == STP_DIV || op == STP_MOD)
		stp_lower_near(l, at->what, at->pos);
	return ir_op2(&l->b, ops[op], a, b);
}

static ir_reg lower_binary(struct lower *l, struct stp_node *n)
{
	ir_reg v[2];

	if (n->op >= STP_EQ && n->op <= STP_GE)
		return lower_comparison(l, n);
	lower_both(l, n, v);
	return stp_lower_op(l, n->op, n, v[0], v[1]);
}

static ir_reg lower_unary(struct lower *l, struct stp_node *n)
{
	switch (n->op) {
	case STP_LNOT:
		return ir_op2(&l->b, IR_EQ, stp_lower_expr(l, n->l), stp_lower_const(l, 0));
	case STP_NOT:
		return ir_op1(&l->b, IR_NOT, stp_lower_expr(l, n->l));
	case STP_NEG:
		if (n->l->kind == STP_NUM)
			return stp_lower_const(l, (int64_t)-(uint64_t)n->l->value);
		return ir_op1(&l->b, IR_NEG, stp_lower_expr(l, n->l));
	default:
		return stp_lower_expr(l, n->l);
	}
}

/* --- the whole --------------------------------------------------------------------------------------- */

/* Refuse expressions that are parsed and checked but not supported. */
static ir_reg lower_later(struct lower *l, struct stp_node *n)
{
	switch (n->kind) {
	case STP_PERF:
		stp_lower_refuse(l, n, "use timer.profile, or perf(1)", "performance counters are not available");
		break;
	case STP_CONST:
		stp_lower_refuse(l, n, "write the number itself", "@const needs a C compiler");
		break;
	case STP_ENTRY:
		stp_lower_refuse(l, n, "use it in a probe of a function's .return", "@entry has no entry here");
		break;
	case STP_ADDRESS:
		stp_lower_refuse(l, n, NULL, "nothing here has an address");
		break;
	case STP_CAST:
	case STP_DEREF:
		stp_lower_refuse(l, n, n->why ? n->why : "read memory with user_int32(address + offset) and its like",
				 "types of the program are not known here");
		break;
	default:
		stp_lower_refuse(l, n, NULL, "not supported");
		break;
	}
	return stp_lower_dummy(l, n->type);
}

static ir_reg lower_memory(struct lower *l, struct stp_node *n)
{
	int64_t size = n->l->kind == STP_NUM ? n->l->value : 0;

	if (size != 1 && size != 2 && size != 4 && size != 8) {
		stp_lower_refuse(l, n, NULL, "the size must be 1, 2, 4 or 8");
		return stp_lower_const(l, 0);
	}
	stp_lower_near(l, n->what, n->pos);
	return ir_load(&l->b, n->user ? IR_ULOAD : IR_LOAD, stp_lower_expr(l, n->r), (unsigned int)size, false);
}

static ir_reg expr(struct lower *l, struct stp_node *n, bool used)
{
	switch (n->kind) {
	case STP_NUM:
		return stp_lower_const(l, n->value);
	case STP_STR:
		return stp_lower_str(l, n->str);
	case STP_NAME:
	case STP_INDEX:
		return stp_lower_index(l, n);
	case STP_CALL:
		return stp_lower_call(l, n);
	case STP_UNARY:
		return lower_unary(l, n);
	case STP_PRE:
	case STP_POST:
		return stp_lower_crement(l, n, used);
	case STP_BINARY:
		return lower_binary(l, n);
	case STP_LOGIC:
		return lower_logic(l, n);
	case STP_COND:
		return lower_choice(l, n);
	case STP_ASSIGN:
		return stp_lower_assign(l, n, used);
	case STP_IN:
		return stp_lower_in(l, n);
	case STP_MATCH:
		return stp_lower_match(l, n);
	case STP_TARGET:
		return stp_lower_target(l, n);
	case STP_CAST:
	case STP_DEREF:
		return n->source ? stp_lower_target(l, n) : lower_later(l, n);
	case STP_EXTRACT:
		return stp_lower_extract(l, n);
	case STP_PRINT:
		return stp_lower_print(l, n);
	case STP_REGISTER:
		return stp_lower_numbered_register(l, n);
	case STP_MEMORY:
		return lower_memory(l, n);
	default:
		return lower_later(l, n);
	}
}

/* Is the program too large?  That is reported at its end; the rest is not lowered, to save memory. */
static bool too_large(struct lower *l)
{
	return ++l->nodes > LOW_MAX_NODES;
}

ir_reg stp_lower_expr(struct lower *l, struct stp_node *n)
{
	struct src_pos pos = l->b.pos;
	uint32_t act = l->b.act;
	ir_reg r;

	if (too_large(l))
		return stp_lower_dummy(l, n->type);
	l->b.pos = n->pos;
	r = expr(l, n, true);
	if (r == IR_NO_REG)		/* exit() + 1 */
		r = stp_lower_dummy(l, n->type);
	l->b.pos = pos;
	l->b.act = act;
	return r;
}

void stp_lower_effect(struct lower *l, struct stp_node *n)
{
	if (too_large(l))
		return;
	l->b.pos = n->pos;
	expr(l, n, false);
}

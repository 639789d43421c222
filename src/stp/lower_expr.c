/*
 * Expressions.  Operands are evaluated from left to right; what && || ?: leave out is not evaluated.
 */
#include "stp/lower.h"

#include <string.h>

#include "base/arena.h"
#include "lang/diag.h"

ir_reg low_const(struct low *l, int64_t v)
{
	return ir_const(&l->b, v);
}

/* A constant string, cut as all strings are. */
ir_reg low_str(struct low *l, const char *s)
{
	size_t max = l->prog->strsize - 1;

	return ir_strc(&l->b, strlen(s) > max ? arena_strndup(l->arena, s, max) : s);
}

/* --- truth ------------------------------------------------------------------------------------------- */

void low_cond(struct low *l, struct stp_node *n, struct ir_block *yes, struct ir_block *no)
{
	struct ir_block *between;

	switch (n->kind) {
	case STP_LOGIC:
		between = ir_block_new(&l->b);
		low_cond(l, n->l, n->op == STP_LAND ? between : yes, n->op == STP_LAND ? no : between);
		ir_at(&l->b, between);
		low_cond(l, n->r, yes, no);
		break;
	case STP_UNARY:
		if (n->op == STP_LNOT) {
			low_cond(l, n->l, no, yes);
			break;
		}
		/* fall through */
	default:
		ir_br(&l->b, low_expr(l, n), yes, no);
		break;
	}
}

/* 1 or 0 by how the control flow goes. */
static ir_reg lower_logic(struct low *l, struct stp_node *n)
{
	struct ir_block *yes = ir_block_new(&l->b), *no = ir_block_new(&l->b), *end = ir_block_new(&l->b);
	ir_reg r = ir_reg_new(&l->b, IR_INT);

	low_cond(l, n, yes, no);
	ir_at(&l->b, yes);
	ir_mov(&l->b, r, low_const(l, 1));
	ir_jmp(&l->b, end);
	ir_at(&l->b, no);
	ir_mov(&l->b, r, low_const(l, 0));
	ir_jmp(&l->b, end);
	ir_at(&l->b, end);
	return r;
}

static ir_reg lower_choice(struct low *l, struct stp_node *n)
{
	struct ir_block *yes = ir_block_new(&l->b), *no = ir_block_new(&l->b), *end = ir_block_new(&l->b);
	ir_reg r = ir_reg_new(&l->b, n->type == STP_STRINGS ? IR_STR : IR_INT);

	low_cond(l, n->cond, yes, no);
	ir_at(&l->b, yes);
	ir_mov(&l->b, r, low_expr(l, n->l));
	ir_jmp(&l->b, end);
	ir_at(&l->b, no);
	ir_mov(&l->b, r, low_expr(l, n->r));
	ir_jmp(&l->b, end);
	ir_at(&l->b, end);
	return r;
}

/* --- operators --------------------------------------------------------------------------------------- */

/* Both operands of @n. */
static void lower_both(struct low *l, struct stp_node *n, ir_reg vals[2])
{
	struct stp_node *v[2] = { n->l, n->r };

	low_values(l, v, 2, vals);
}

static ir_reg lower_comparison(struct low *l, struct stp_node *n)
{
	ir_reg v[2], a, b;

	lower_both(l, n, v);
	a = v[0];
	b = v[1];
	if (n->l->type == STP_STRINGS) {
		a = ir_op2(&l->b, IR_STRCMP, a, b);
		b = low_const(l, 0);
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

ir_reg low_op(struct low *l, enum stp_op op, const struct stp_node *at, ir_reg a, ir_reg b)
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
		low_near(l, at->what, at->pos);
	return ir_op2(&l->b, ops[op], a, b);
}

static ir_reg lower_binary(struct low *l, struct stp_node *n)
{
	ir_reg v[2];

	if (n->op >= STP_EQ && n->op <= STP_GE)
		return lower_comparison(l, n);
	lower_both(l, n, v);
	return low_op(l, n->op, n, v[0], v[1]);
}

static ir_reg lower_unary(struct low *l, struct stp_node *n)
{
	switch (n->op) {
	case STP_LNOT:
		return ir_op2(&l->b, IR_EQ, low_expr(l, n->l), low_const(l, 0));
	case STP_NOT:
		return ir_op1(&l->b, IR_NOT, low_expr(l, n->l));
	case STP_NEG:
		if (n->l->kind == STP_NUM)
			return low_const(l, (int64_t)-(uint64_t)n->l->value);
		return ir_op1(&l->b, IR_NEG, low_expr(l, n->l));
	default:
		return low_expr(l, n->l);
	}
}

/* --- the whole --------------------------------------------------------------------------------------- */

/* What dtap reads and checks, and does not carry out. */
static ir_reg lower_later(struct low *l, struct stp_node *n)
{
	switch (n->kind) {
	case STP_PERF:
		low_refuse(l, n, "use timer.profile, or perf(1)", "performance counters are not available");
		break;
	case STP_CONST:
		low_refuse(l, n, "write the number itself", "@const needs a C compiler");
		break;
	case STP_REGISTER:
		low_refuse(l, n, "use the context variables of the probe", "registers are not available");
		break;
	case STP_ENTRY:
		low_refuse(l, n, "use it in a probe of a function's .return", "@entry has no entry here");
		break;
	case STP_ADDRESS:
		low_refuse(l, n, NULL, "nothing here has an address");
		break;
	case STP_CAST:
	case STP_DEREF:
		low_refuse(l, n, n->why ? n->why : "read memory with user_int32(address + offset) and its like",
			   "types of the program are not known here");
		break;
	default:
		low_refuse(l, n, NULL, "not supported");
		break;
	}
	return low_dummy(l, n->type);
}

static ir_reg lower_memory(struct low *l, struct stp_node *n)
{
	int64_t size = n->l->kind == STP_NUM ? n->l->value : 0;

	if (size != 1 && size != 2 && size != 4 && size != 8) {
		low_refuse(l, n, NULL, "the size must be 1, 2, 4 or 8");
		return low_const(l, 0);
	}
	low_near(l, n->what, n->pos);
	return ir_load(&l->b, n->user ? IR_ULOAD : IR_LOAD, low_expr(l, n->r), (unsigned int)size, false);
}

static ir_reg expr(struct low *l, struct stp_node *n, bool used)
{
	switch (n->kind) {
	case STP_NUM:
		return low_const(l, n->value);
	case STP_STR:
		return low_str(l, n->str);
	case STP_NAME:
	case STP_INDEX:
		return low_index(l, n);
	case STP_CALL:
		return low_call(l, n);
	case STP_UNARY:
		return lower_unary(l, n);
	case STP_PRE:
	case STP_POST:
		return low_crement(l, n, used);
	case STP_BINARY:
		return lower_binary(l, n);
	case STP_LOGIC:
		return lower_logic(l, n);
	case STP_COND:
		return lower_choice(l, n);
	case STP_ASSIGN:
		return low_assign(l, n, used);
	case STP_IN:
		return low_in(l, n);
	case STP_MATCH:
		return low_match(l, n);
	case STP_TARGET:
		return low_target(l, n);
	case STP_CAST:
	case STP_DEREF:
		return n->source ? low_target(l, n) : lower_later(l, n);
	case STP_EXTRACT:
		return low_extract(l, n);
	case STP_PRINT:
		return low_print(l, n);
	case STP_MEMORY:
		return lower_memory(l, n);
	default:
		return lower_later(l, n);
	}
}

/* The first node too many is reported at the end; the rest is not worth the memory. */
static bool too_large(struct low *l)
{
	return ++l->nodes > LOW_MAX_NODES;
}

ir_reg low_expr(struct low *l, struct stp_node *n)
{
	struct src_pos pos = l->b.pos;
	uint32_t act = l->b.act;
	ir_reg r;

	if (too_large(l))
		return low_dummy(l, n->type);
	l->b.pos = n->pos;
	r = expr(l, n, true);
	if (r == IR_NO_REG)		/* exit() + 1 */
		r = low_dummy(l, n->type);
	l->b.pos = pos;
	l->b.act = act;
	return r;
}

void low_effect(struct low *l, struct stp_node *n)
{
	if (too_large(l))
		return;
	l->b.pos = n->pos;
	expr(l, n, false);
}

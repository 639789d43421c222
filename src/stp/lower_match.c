/*
 * Regular expressions: =~ and !~, and the functions about the last match.
 *
 * Language reference: "Regular expression matching"; tapset reference, "matched", "ngroups".
 */
#include "stp/lower_func.h"

#include "base/arena.h"
#include "lang/diag.h"
#include "lang/regex.h"
#include "stp/lower.h"

ir_reg stp_lower_match(struct lower *l, struct stp_node *n)
{
	struct ir_block *yes, *no, *end;
	const char *why;
	ir_reg r;

	if (l->groups && !regex_compile(l->arena, n->str, true, &why)) {
		diag_error(l->diag, n->pos, "S_REGEX", "semantic error: regex compilation error: %s: string '%s'", why, n->str);
		return stp_lower_const(l, 0);
	}
	stp_lower_near(l, n->what, n->pos);
	l->code->nears[l->b.act].text = "the regular expression takes too long";
	r = ir_match(&l->b, n->str, stp_lower_expr(l, n->l));
	if (l->groups) {
		yes = ir_block_new(&l->b);
		no = ir_block_new(&l->b);
		end = ir_block_new(&l->b);
		ir_br(&l->b, r, yes, no);
		ir_at(&l->b, yes);
		ir_vst(&l->b, l->groups, stp_lower_const(l, n->groups));
		ir_jmp(&l->b, end);
		ir_at(&l->b, no);
		ir_vst(&l->b, l->groups, stp_lower_const(l, 0));
		ir_jmp(&l->b, end);
		ir_at(&l->b, end);
	}
	return n->negated ? ir_op2(&l->b, IR_EQ, r, stp_lower_const(l, 0)) : r;
}

/* Continue if @good is not 0, else fail with @text, which contains @n. */
static void demand(struct lower *l, ir_reg good, const char *text, ir_reg n)
{
	struct ir_block *on = ir_block_new(&l->b), *bad = ir_block_new(&l->b);

	ir_br(&l->b, good, on, bad);
	ir_at(&l->b, bad);
	ir_raise(&l->b, n == IR_NO_REG ? stp_lower_str(l, text) : stp_lower_sprintf(l, text, &n, 1));
	ir_at(&l->b, on);
}

ir_reg stp_func_matched(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	ir_reg groups = ir_vld(&l->b, l->groups), n = call->nargs ? args[0] : stp_lower_const(l, 0);

	demand(l, groups, "Attempted to get subexpression %d from failed match", n);
	demand(l, ir_op2(&l->b, IR_ULT, n, groups), "Attempted to get nonexistent subexpression %d", n);
	return ir_call(&l->b, IR_FN_MATCHED, &n, 1);
}

ir_reg stp_func_ngroups(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	ir_reg groups = ir_vld(&l->b, l->groups);

	(void)call;
	(void)args;
	demand(l, groups, "Attempted to get subexpression count from failed match", IR_NO_REG);
	return groups;
}

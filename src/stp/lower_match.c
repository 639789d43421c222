/*
 * Regular expressions: =~ and !~, and the functions that tell of the last match.
 *
 * Language reference: "Regular expression matching"; tapset reference, "matched", "ngroups".
 */
#include "stp/lower_func.h"

#include "base/arena.h"
#include "lang/diag.h"
#include "lang/regex.h"
#include "stp/lower.h"

/* Groups of @s, the whole among them. */
static int64_t count_groups(const char *s)
{
	int64_t n = 1;

	for (; *s; s++) {
		if (*s == '\\' && s[1]) {
			s++;
		} else if (*s == '[') {
			/* A ] stands for itself at the start of a set. */
			s += s[1] == '^';
			s += s[1] == ']';
			while (s[1] && s[1] != ']')
				s++;
		} else {
			n += *s == '(';
		}
	}
	return n;
}

ir_reg low_match(struct low *l, struct stp_node *n)
{
	struct ir_block *yes, *no, *end;
	const char *why;
	ir_reg r;

	if (!regex_compile(l->arena, n->str, &why)) {
		diag_error(l->diag, n->pos, "S_REGEX", "semantic error: regex compilation error: %s: string '%s'", why, n->str);
		return low_const(l, 0);
	}
	r = ir_match(&l->b, n->str, low_expr(l, n->l));
	if (l->groups) {
		yes = ir_block_new(&l->b);
		no = ir_block_new(&l->b);
		end = ir_block_new(&l->b);
		ir_br(&l->b, r, yes, no);
		ir_at(&l->b, yes);
		ir_vst(&l->b, l->groups, low_const(l, count_groups(n->str)));
		ir_jmp(&l->b, end);
		ir_at(&l->b, no);
		ir_vst(&l->b, l->groups, low_const(l, 0));
		ir_jmp(&l->b, end);
		ir_at(&l->b, end);
	}
	return n->negated ? ir_op2(&l->b, IR_EQ, r, low_const(l, 0)) : r;
}

/* Go on if @good is not 0, else fail with @text, which has @n in it. */
static void demand(struct low *l, ir_reg good, const char *text, ir_reg n)
{
	struct ir_block *on = ir_block_new(&l->b), *bad = ir_block_new(&l->b);

	ir_br(&l->b, good, on, bad);
	ir_at(&l->b, bad);
	ir_raise(&l->b, n == IR_NO_REG ? low_str(l, text) : low_sprintf(l, text, &n, 1));
	ir_at(&l->b, on);
}

ir_reg low_func_matched(struct low *l, struct stp_node *call, const ir_reg *args)
{
	ir_reg groups = ir_vld(&l->b, l->groups), n = call->nargs ? args[0] : low_const(l, 0);

	demand(l, groups, "Attempted to get subexpression %d from failed match", n);
	demand(l, ir_op2(&l->b, IR_ULT, n, groups), "Attempted to get nonexistent subexpression %d", n);
	return ir_call(&l->b, IR_FN_MATCHED, &n, 1);
}

ir_reg low_func_ngroups(struct low *l, struct stp_node *call, const ir_reg *args)
{
	ir_reg groups = ir_vld(&l->b, l->groups);

	(void)call;
	(void)args;
	demand(l, groups, "Attempted to get subexpression count from failed match", IR_NO_REG);
	return groups;
}

/*
 * Stacks and names of addresses.  A program has only their numbers; the tracer knows the names.  So they are records'
 * values, or marks in strings (places.c).
 *
 * Stacks are walked by frame pointers.  Tapset reference, "User-space stack and symbol functions".
 */
#include "stp/lower_func.h"

#include <string.h>

#include "arch/arch.h"
#include "lang/diag.h"
#include "stp/lower.h"

static ir_reg stack(struct lower *l, bool user, int64_t frames)
{
	ir_reg args[2] = { stp_lower_const(l, user), stp_lower_const(l, frames) };

	return ir_call(&l->b, IR_FN_STACK, args, 2);
}

static ir_reg whole_stack(struct lower *l, bool user)
{
	int64_t n = stp_get_limit(l->stp, STP_MAXBACKTRACE);

	return stack(l, user, n < 1 ? 1 : n > 100 ? 100 : n);
}

static bool is_call(const struct stp_node *n, const char *name)
{
	return n->kind == STP_CALL && n->builtin && !strcmp(n->builtin->name, name);
}

/* ucallers(n): the current address and those of n callers; -1: all. */
static ir_reg callers(struct lower *l, const struct stp_node *n)
{
	const struct stp_node *levels = n->args[0];
	bool minus = levels->kind == STP_UNARY && levels->op == STP_NEG && levels->l->kind == STP_NUM && levels->l->value == 1;
	int64_t max = stp_get_limit(l->stp, STP_MAXBACKTRACE);

	if (minus || (levels->kind == STP_NUM && levels->value < 0))
		return whole_stack(l, true);
	if (levels->kind != STP_NUM) {
		stp_lower_refuse(l, n, NULL, "the number of callers must be a constant");
		return stp_lower_const(l, 0);
	}
	return stack(l, true, levels->value + 1 < max ? levels->value + 1 : max);
}

/* The stack that the string @n has a mark of, shown otherwise. */
static ir_reg shown_as(struct lower *l, struct stp_node *n, enum ir_show show)
{
	ir_reg args[2] = { stp_lower_const(l, show), stp_lower_expr(l, n) };

	return stp_lower_sprintf(l, IR_MARK_AS "%x" IR_MARK_AS "%s", args, 2);
}

static bool is_of_variable(const struct stp_node *n)
{
	return n->nargs == 1 && n->args[0]->type == STP_STRINGS && !is_call(n->args[0], "ubacktrace");
}

ir_reg stp_lower_mark(struct lower *l, struct stp_node *n)
{
	enum ir_show show;
	ir_reg args[2];

	if (is_of_variable(n))
		return shown_as(l, n->args[0], (enum ir_show)n->builtin->number);
	stp_lower_shown(l, n, &args[1], &show);
	args[0] = stp_lower_const(l, show);
	return stp_lower_sprintf(l, IR_MARK "%x,%x" IR_MARK_END, args, 2);
}

bool stp_lower_shown(struct lower *l, struct stp_node *n, ir_reg *val, enum ir_show *show)
{
	ir_reg args[2];

	if (n->kind != STP_CALL || !n->builtin)
		return false;
	if (n->builtin->lower == stp_func_words) {
		*val = stp_lower_expr(l, n->args[0]);
		*show = (enum ir_show)(IR_SHOW_WORDS + n->builtin->number);
		return true;
	}
	if (n->builtin->how != STP_BY_SHOW || is_of_variable(n))
		return false;
	*show = (enum ir_show)n->builtin->number;
	if (*show == IR_SHOW_ADDRS) {
		*val = callers(l, n);
		return true;
	}
	if (!n->nargs || is_call(n->args[0], "ubacktrace")) {
		*val = whole_stack(l, true);
		return true;
	}
	if (is_call(n->args[0], "uaddr")) {
		*val = stack(l, true, 1);
		return true;
	}
	args[0] = stp_lower_const(l, n->builtin->name[0] == 'u');
	args[1] = stp_lower_expr(l, n->args[0]);
	*val = ir_call(&l->b, IR_FN_ADDR, args, 2);
	return true;
}

/* As a number it is the program counter. */
ir_reg stp_func_uaddr(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	(void)args;
	return stp_lower_register(l, call, arch_host()->pc);
}

/* Do programs of perf events run here, whose arguments are the program counters of the kernel and of the process? */
static bool at_perf_event(const struct lower *l)
{
	int kind = l->handler->kind;

	return kind == STP_P_TIMER_PROFILE || kind == STP_P_PERF || kind == STP_P_DATA;
}

/* Was it the process that ran, and not the kernel, when the probe fired? */
ir_reg stp_func_user_mode(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	int kind = l->handler->kind;

	(void)call;
	(void)args;
	if (at_perf_event(l))
		return ir_op2(&l->b, IR_NE, ir_arg(&l->b, 1), stp_lower_const(l, 0));
	return stp_lower_const(l, kind == STP_P_FUNCTION || kind == STP_P_INLINE || kind == STP_P_STATEMENT ||
			       kind == STP_P_MARK || kind == STP_P_PLT || kind == STP_P_RETURN || kind == STP_P_PLT_RETURN ||
			       kind == STP_P_PYTHON_CALL || kind == STP_P_PYTHON_RETURN);
}

ir_reg stp_func_addr(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	if (at_perf_event(l))
		return ir_op2(&l->b, IR_OR, ir_arg(&l->b, 0), ir_arg(&l->b, 1));	/* one is 0 */
	return stp_func_uaddr(l, call, args);
}

/* ustack(n): the address of frame n. */
ir_reg stp_func_ustack(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	const struct stp_node *n = call->args[0];
	ir_reg at;

	(void)args;
	if (n->kind != STP_NUM || n->value < 0) {
		stp_lower_refuse(l, call, "write it as a number, from 0", "the number of a frame must be a constant");
		return stp_lower_const(l, 0);
	}
	if (!n->value)
		return stp_func_uaddr(l, call, args);
	at = stp_lower_const(l, n->value);
	return ir_call(&l->b, IR_FN_FRAME, &at, 1);
}

ir_reg stp_func_print_stack(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	(void)args;
	stp_lower_record_shown(l, whole_stack(l, true), (enum ir_show)call->builtin->number, call->pos);
	return IR_NO_REG;
}

ir_reg stp_func_print_backtrace(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	(void)args;
	stp_lower_record_shown(l, whole_stack(l, false), IR_SHOW_FRAMES_FULL, call->pos);
	return IR_NO_REG;
}

ir_reg stp_func_print_usyms(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	if (is_call(call->args[0], "ubacktrace"))
		return stp_func_print_stack(l, call, args);
	stp_lower_record_shown(l, shown_as(l, call->args[0], (enum ir_show)call->builtin->number), IR_SHOW_NUMBER, call->pos);
	return IR_NO_REG;
}

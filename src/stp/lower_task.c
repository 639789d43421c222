/*
 * The builtin functions for facts about a process (abi/task.def): the current one, or one given by the address of its
 * struct task_struct (tapset reference, "Context Functions", task_current and others).
 */
#include "stp/lower_func.h"

#include "abi/segment.h"
#include "stp/lower.h"

static ir_reg self(struct lower *l, enum abi_task what)
{
	ir_reg fact = stp_lower_const(l, what);

	return ir_call(&l->b, IR_FN_SELF, &fact, 1);
}

static ir_reg task(struct lower *l, ir_reg task, enum abi_task what)
{
	ir_reg args[2] = { task, stp_lower_const(l, what) };

	return ir_call(&l->b, IR_FN_TASK, args, 2);
}

static ir_reg execname(struct lower *l, ir_reg of)
{
	ir_reg text = task(l, of, ABI_TASK_EXECNAME);

	return ir_call(&l->b, IR_FN_STRINGOF, &text, 1);
}

ir_reg stp_func_self(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	(void)args;
	return self(l, (enum abi_task)call->builtin->number);
}

ir_reg stp_func_task(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	return task(l, args[0], (enum abi_task)call->builtin->number);
}

ir_reg stp_func_task_text(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	(void)call;
	return execname(l, args[0]);
}

ir_reg stp_func_pexecname(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	(void)call;
	(void)args;
	return execname(l, self(l, ABI_TASK_PARENT));
}

/* The kernel's first 100 priorities are real-time, followed by nice values from -20 on. */
ir_reg stp_func_task_prio(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	(void)call;
	return ir_op2(&l->b, IR_SUB, ir_ext(&l->b, task(l, args[0], ABI_TASK_PRIO), 4, true), stp_lower_const(l, 100));
}

ir_reg stp_func_task_nice(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	(void)call;
	return ir_op2(&l->b, IR_SUB, task(l, args[0], ABI_TASK_STATIC_PRIO), stp_lower_const(l, 120));
}

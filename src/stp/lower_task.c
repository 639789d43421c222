/*
 * The builtin functions that tell facts of a process (abi/task.def): the one at hand, and those whose struct
 * task_struct the script has the address of (tapset reference, "Context Functions", task_current and others).
 */
#include "stp/lower_func.h"

#include "abi/segment.h"
#include "stp/lower.h"

static ir_reg self(struct low *l, enum abi_task what)
{
	ir_reg fact = low_const(l, what);

	return ir_call(&l->b, IR_FN_SELF, &fact, 1);
}

static ir_reg task(struct low *l, ir_reg task, enum abi_task what)
{
	ir_reg args[2] = { task, low_const(l, what) };

	return ir_call(&l->b, IR_FN_TASK, args, 2);
}

static ir_reg execname(struct low *l, ir_reg of)
{
	ir_reg text = task(l, of, ABI_TASK_EXECNAME);

	return ir_call(&l->b, IR_FN_STRINGOF, &text, 1);
}

ir_reg low_func_self(struct low *l, struct stp_node *call, const ir_reg *args)
{
	(void)args;
	return self(l, (enum abi_task)call->builtin->number);
}

ir_reg low_func_task(struct low *l, struct stp_node *call, const ir_reg *args)
{
	return task(l, args[0], (enum abi_task)call->builtin->number);
}

ir_reg low_func_task_text(struct low *l, struct stp_node *call, const ir_reg *args)
{
	(void)call;
	return execname(l, args[0]);
}

ir_reg low_func_pexecname(struct low *l, struct stp_node *call, const ir_reg *args)
{
	(void)call;
	(void)args;
	return execname(l, self(l, ABI_TASK_PARENT));
}

/* Real-time priorities are the kernel's first 100, and the 20 nice values below 0 come before 0. */
ir_reg low_func_task_prio(struct low *l, struct stp_node *call, const ir_reg *args)
{
	(void)call;
	return ir_op2(&l->b, IR_SUB, ir_ext(&l->b, task(l, args[0], ABI_TASK_PRIO), 4, true), low_const(l, 100));
}

ir_reg low_func_task_nice(struct low *l, struct stp_node *call, const ir_reg *args)
{
	(void)call;
	return ir_op2(&l->b, IR_SUB, task(l, args[0], ABI_TASK_STATIC_PRIO), low_const(l, 120));
}

/* SPDX-License-Identifier: MIT */
/*
 * The frame evaluator.
 *
 * While one is installed, calls from Python to Python are not inlined and use the C stack, so it is installed only as
 * long as needed.  If another evaluator was installed on top of it, it cannot be removed: it stays in the chain and
 * passes calls on.
 */
#include "agent/agent.h"
#include "agent/eval.h"
#include "agent/subinterp.h"

static struct pyobj *with_events(struct pythread *thread, void *frame, int throwing)
{
	return hook_eval_run(thread, frame, throwing, agent.eval.next);
}

static struct pyobj *run(struct pythread *thread, void *frame, int throwing)
{
	if (agent.eval.uses & EVAL_FUNCTIONS)
		return hook_function_eval(thread, frame, throwing, agent.eval.uses & EVAL_EVENTS ? with_events : agent.eval.next);
	if (agent.eval.uses & EVAL_EVENTS)
		return hook_eval_run(thread, frame, throwing, agent.eval.next);
	return agent.eval.next(thread, frame, throwing);
}

static __attribute__((noinline)) struct pyobj *evaluate_any(struct pythread *thread, void *frame, int throwing)
{
	if (agent.eval.uses & EVAL_THREADS && threads_seen(thread, frame))
		return threads_run(thread, frame, throwing, run);
	return run(thread, frame, throwing);
}

static struct pyobj *evaluate(struct pythread *thread, void *frame, int throwing)
{
	if (__builtin_expect(agent.eval.uses == EVAL_EVENTS, 1))
		return hook_eval_run(thread, frame, throwing, agent.eval.next);
	if (__builtin_expect(agent.eval.uses == EVAL_FUNCTIONS, 1))
		return hook_function_eval(thread, frame, throwing, agent.eval.next);
	return evaluate_any(thread, frame, throwing);
}

bool eval_used(enum eval_use use)
{
	return agent.eval.uses & use;
}

void eval_use(enum eval_use use, bool on)
{
	struct pyinterp *interp = agent.py.PyInterpreterState_Main();

	agent.eval.uses = on ? agent.eval.uses | use : agent.eval.uses & ~use;
	if (agent.eval.uses && !agent.eval.in_chain) {
		agent.eval.next = agent.py._PyInterpreterState_GetEvalFrameFunc(interp);
		agent.py._PyInterpreterState_SetEvalFrameFunc(interp, evaluate);
		agent.eval.in_chain = true;
	} else if (!agent.eval.uses && agent.eval.in_chain && agent.py._PyInterpreterState_GetEvalFrameFunc(interp) == evaluate) {
		agent.py._PyInterpreterState_SetEvalFrameFunc(interp, agent.eval.next);
		agent.eval.in_chain = false;
	}
}

static capi_evaluator evaluate_first;

static struct pyobj *evaluate_sub(struct pythread *thread, void *frame, int throwing)
{
	return hook_eval_run_sub(thread, frame, throwing, agent.eval.sub_next);
}

/* Where functions by name can be seen, too. */
static struct pyobj *evaluate_named_sub(struct pythread *thread, void *frame, int throwing)
{
	if (agent.functions.evaluates)
		return hook_function_eval_sub(thread, frame, throwing, evaluate_sub);
	return evaluate_sub(thread, frame, throwing);
}

static bool is_ours_sub(capi_evaluator *evaluator)
{
	return evaluator == evaluate_sub || evaluator == evaluate_named_sub;
}

static capi_evaluator *for_uses(unsigned uses)
{
	return uses & EVAL_FUNCTIONS ? evaluate_named_sub : uses ? evaluate_sub : agent.eval.sub_next;
}

/*
 * There is one @sub_next: all subinterpreters have the interpreter's own evaluator, unless another tool has set one, and
 * that interpreter is then left as it is.
 */
void eval_use_sub(unsigned uses)
{
	struct pyinterp *interp = agent.py.PyInterpreterState_Get();
	capi_evaluator *now = agent.py._PyInterpreterState_GetEvalFrameFunc(interp);

	if (uses && !agent.eval.sub_next && !is_ours_sub(now))
		agent.eval.sub_next = now;
	if ((is_ours_sub(now) || (uses && now == agent.eval.sub_next)) && now != for_uses(uses))
		agent.py._PyInterpreterState_SetEvalFrameFunc(interp, for_uses(uses));
}

static struct pyobj *evaluate_first(struct pythread *thread, void *frame, int throwing)
{
	capi_evaluator *next;

	if (agent_thread.busy)
		return agent.eval.sub_next(thread, frame, throwing);
	subinterp_meet();
	next = agent.py._PyInterpreterState_GetEvalFrameFunc(agent.py.PyInterpreterState_Get());
	return (next == evaluate_first ? agent.eval.sub_next : next)(thread, frame, throwing);
}

void eval_expect_sub(struct pyinterp *interp)
{
	capi_evaluator *now = agent.py._PyInterpreterState_GetEvalFrameFunc(interp);

	if (!agent.eval.sub_next && now != evaluate_first)
		agent.eval.sub_next = now;
	if (now == agent.eval.sub_next || is_ours_sub(now))
		agent.py._PyInterpreterState_SetEvalFrameFunc(interp, evaluate_first);
}

void eval_met(unsigned uses)
{
	struct pyinterp *interp = agent.py.PyInterpreterState_Get();

	if (agent.py._PyInterpreterState_GetEvalFrameFunc(interp) == evaluate_first)
		agent.py._PyInterpreterState_SetEvalFrameFunc(interp, for_uses(uses));
}

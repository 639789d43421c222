/* SPDX-License-Identifier: MIT */
/*
 * The frame evaluator.
 *
 * While one is installed, calls from Python to Python are not inlined and use the C stack, so it is there only as
 * long as it must be.  If somebody else's evaluator came on top of it, it cannot be taken out: it stays in their
 * chain and passes on.
 */
#include "agent/agent.h"
#include "agent/eval.h"

static unsigned uses;			/* of enum eval_use */
static bool in_chain;			/* somebody's evaluator or the interpreter calls ours */
static capi_evaluator *next;

static struct pyobj *evaluate(struct pythread *thread, void *frame, int throwing)
{
	if (uses & EVAL_THREADS)
		threads_seen(thread, frame);
	if (uses & EVAL_EVENTS)
		return hook_eval_run(thread, frame, throwing, next);
	return next(thread, frame, throwing);
}

bool eval_used(enum eval_use use)
{
	return uses & use;
}

void eval_use(enum eval_use use, bool on)
{
	struct pyinterp *interp = agent.py.PyInterpreterState_Main();

	uses = on ? uses | use : uses & ~use;
	if (uses && !in_chain) {
		next = agent.py._PyInterpreterState_GetEvalFrameFunc(interp);
		agent.py._PyInterpreterState_SetEvalFrameFunc(interp, evaluate);
		in_chain = true;
	} else if (!uses && in_chain && agent.py._PyInterpreterState_GetEvalFrameFunc(interp) == evaluate) {
		agent.py._PyInterpreterState_SetEvalFrameFunc(interp, next);
		in_chain = false;
	}
}

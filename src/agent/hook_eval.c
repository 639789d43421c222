/* SPDX-License-Identifier: MIT */
/*
 * function-entry and function-return before 3.12: a frame evaluator.
 *
 * It is called where sys.setprofile would report a call and returns where it would report a return, in every
 * thread, and costs a fraction of a profile function.  It sees two things that are no events: the making of a
 * generator object, in 3.11, and a frame that cannot start because the recursion limit is reached.
 *
 * The price is C stack, one evaluation for each Python frame, where 3.11 has none; 3.9 has one anyway.  So when a
 * thread has used a quarter of its stack, the profile function takes over, in all threads, until nobody listens
 * any more.  Evaluations that are going on then say nothing at their end: the profile function does.  The same
 * after hooks have been removed.
 */
#include "agent/agent.h"
#include "agent/cstack.h"
#include "agent/eval.h"
#include "agent/frame.h"
#include "agent/pyframes.h"

static struct frame_layout layout;
static unsigned generation;		/* counts installations and handings over */
static unsigned wanted;
static bool handed_over;

/* Below this address the stack of this thread is no longer ours.  Unknown until the first evaluation. */
static __thread char *stack_limit = (char *)-1;

static char *find_stack_limit(void)
{
	struct cstack s = cstack_bounds();

	return s.low ? s.high - (s.high - s.low) / 4 : NULL;
}

static void hand_over(void)
{
	struct pyobj *type, *value, *traceback;

	agent.py.PyErr_Fetch(&type, &value, &traceback);
	agent_busy = true;
	handed_over = true;
	generation++;
	eval_use(EVAL_EVENTS, false);
	hook_profile_take_over(wanted);
	agent.py.PyErr_Clear();
	agent_busy = false;
	agent.py.PyErr_Restore(type, value, traceback);
}

/* True: this frame's events are not the evaluator's. */
static __attribute__((noinline)) bool stack_ends(char *here)
{
	int saved = errno;

	if (stack_limit == (char *)-1)
		stack_limit = find_stack_limit();
	if (here < stack_limit)
		hand_over();
	errno = saved;
	return here < stack_limit;
}

/*
 * An exception may be set: it enters by throw(), or leaves.  Who walks the stack at the event is to find the frame on
 * top of it, as at the events of other hooks.
 */
static __attribute__((noinline)) void fire_frame(struct pythread *thread, void *frame, bool exception, fire *to)
{
	struct pyobj *type, *value, *traceback;
	struct pyframes_link link;
	struct moment moment;

	frame_moment(&layout, frame, &moment);
	pyframes_link(thread, frame, &link);
	if (__builtin_expect(!exception, 1)) {
		to(&moment);
		pyframes_unlink(&link);
		return;
	}
	agent.py.PyErr_Fetch(&type, &value, &traceback);
	to(&moment);
	pyframes_unlink(&link);
	agent.py.PyErr_Restore(type, value, traceback);
}

static __attribute__((noinline)) struct pyobj *run_any(struct pythread *thread, void *frame, int throwing,
						      capi_evaluator *next)
{
	char *here = __builtin_frame_address(0);
	struct pyobj *result;
	unsigned begun = generation;

	if (agent_busy || (__builtin_expect(here < stack_limit, 0) && stack_ends(here)) ||
	    frame_makes_generator(&layout, frame) || frame_cannot_start(&layout, thread))
		return next(thread, frame, throwing);
	if (!fire_counted(function__entry, frame_code(&layout, frame)) && fire_wanted(function__entry))
		fire_frame(thread, frame, throwing, fire_function__entry);
	/* Who wants to know of returns from now on learns of those of frames to come. */
	if (!fire_wanted(function__return))
		return next(thread, frame, throwing);
	result = next(thread, frame, throwing);
	if (begun == generation && !fire_counted(function__return, frame_code(&layout, frame)) &&
	    fire_wanted(function__return))
		fire_frame(thread, frame, !result, fire_function__return);
	return result;
}

/* Nothing but counting how often functions are entered leaves no frame on the stack. */
struct pyobj *hook_eval_run(struct pythread *thread, void *frame, int throwing, capi_evaluator *next)
{
	if (__builtin_expect(!agent_busy && (char *)__builtin_frame_address(0) >= stack_limit &&
			     !fire_wanted(function__return) && !frame_makes_generator(&layout, frame) &&
			     frame_can_start(&layout, thread) &&
			     fire_counted(function__entry, frame_code(&layout, frame)), 1))
		return next(thread, frame, throwing);
	return run_any(thread, frame, throwing, next);
}

struct pyobj *hook_eval_code(void *frame)
{
	return frame_code(&layout, frame);
}

static bool usable(void)
{
	static enum { UNKNOWN, YES, NO } answer;

	if (answer == UNKNOWN) {
		answer = NO;
		if (agent.py.minor < 12 && cstack_usable() && frame_measure(&layout))
			answer = YES;
		if (answer == YES)
			pyframes_measure();
	}
	return answer == YES;
}

static unsigned update(unsigned wants)
{
	wanted = wants;
	if (handed_over) {
		handed_over = wants;
		return hook_profile_take_over(wants);
	}
	if (wants && !hook_profile_prepare())
		wants = 0;
	if (!wants || !eval_used(EVAL_EVENTS))
		generation++;
	eval_use(EVAL_EVENTS, wants);
	return wants;
}

const struct hook hook_eval = { WANT_function__entry | WANT_function__return, usable, update };

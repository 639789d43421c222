/* SPDX-License-Identifier: MIT */
/*
 * function-entry and function-return before 3.12: a frame evaluator.
 *
 * It is called where sys.setprofile would report a call and returns where it would report a return, in every thread, at
 * a fraction of a profile function's cost.  It is also called in two cases that are not events: when a generator object
 * is created, in 3.11, and for a frame that cannot start because the recursion limit is reached.
 *
 * It uses C stack: one evaluation for each Python frame, where 3.11 needs none; 3.9 needs one anyway.  So when a thread
 * has used a quarter of its stack, the profile function takes over, in all threads, until there are no listeners any
 * more.  Evaluations that are active at that moment do not fire at their end: the profile function does.  The same
 * applies after hooks have been removed.
 */
#include "agent/agent.h"
#include "agent/context.h"
#include "agent/cstack.h"
#include "agent/eval.h"
#include "agent/frame.h"
#include "agent/hook_function.h"
#include "agent/lap.h"
#include "agent/pyframes.h"

static struct frame_layout *const layout = &agent.hook_eval.layout;

static char *find_stack_limit(void)
{
	struct cstack s = cstack_bounds();

	return s.low ? s.high - (s.high - s.low) / 4 : NULL;
}

static void hand_over(void)
{
	struct pyobj *type, *value, *traceback;

	agent.py.PyErr_Fetch(&type, &value, &traceback);
	agent_thread.busy = true;
	if (eval_used(EVAL_EVENTS)) {
		agent.hook_eval.handed_over = true;
		agent.hook_eval.generation++;
		context_stop();
		eval_use(EVAL_EVENTS, false);
		hook_profile_take_over(agent.hook_eval.wanted);
	}
	if (eval_used(EVAL_FUNCTIONS))
		hook_function_hand_over();
	agent.py.PyErr_Clear();
	agent_thread.busy = false;
	agent.py.PyErr_Restore(type, value, traceback);
}

__attribute__((noinline)) bool hook_eval_stack_ends(char *here)
{
	int saved = errno;

	if (agent_thread.stack_limit == STACK_UNKNOWN)
		agent_thread.stack_limit = find_stack_limit();
	if (here < agent_thread.stack_limit)
		hand_over();
	errno = saved;
	return here < agent_thread.stack_limit;
}

/* Code of the moment that a frame is at, and nothing else of it, is needed by most events: the rest is read if it must be. */
static __attribute__((noinline)) void fire_whole(void *frame, struct pyobj *result, struct pyobj *exception, bool entry)
{
	struct moment moment;

	frame_moment(layout, frame, &moment);
	moment.result = result;
	moment.exception = exception;
	fire_moment(&moment, entry);
}

/* The same for who notes contexts. */
static __attribute__((noinline)) void fire_noting(struct pyobj *code, void *frame, struct pyobj *result, bool entry)
{
	context_begin(code, entry);
	if (!lap_take(entry)) {
		if (!fire_quick(code, result, NULL, entry))
			fire_whole(frame, result, NULL, entry);
		lap_learn(entry);
	}
	context_end();
}

static inline bool is_straight(bool entry)
{
	return entry ? engine_is_straight(ABI_MARKER_function__entry) && !marker_wanted(function__entry) :
		       engine_is_straight(ABI_MARKER_function__return) && !marker_wanted(function__return);
}

static int line_of(struct pyobj *code, const void *frame)
{
	return frame_line(layout, code, frame);
}

/*
 * Without an exception.  For who looks at the thread the frame is linked as its innermost one, as it is at the events of other
 * hooks.
 */
static inline __attribute__((always_inline)) void fire_plain(struct pythread *thread, void *frame, struct pyobj *result,
							      bool entry)
{
	struct pyobj *code = frame_code(layout, frame);
	bool linked = agent.engine.frames || agent.marker_mask;
	struct pyframes_link link = { .top = NULL };

	if (linked)
		pyframes_link(thread, frame, &link);
	if (!is_straight(entry) || !fire_straight(code, line_of, frame, result, NULL, entry))
		fire_noting(code, frame, result, entry);
	if (linked)
		pyframes_unlink(&link);
}

/* An exception is set: it enters by throw(), or leaves. */
static __attribute__((noinline)) void fire_raising(struct pythread *thread, void *frame, bool entry)
{
	struct pyobj *type, *value, *traceback;
	struct pyframes_link link = { .top = NULL };

	if (agent.engine.frames || agent.marker_mask)
		pyframes_link(thread, frame, &link);
	agent.py.PyErr_Fetch(&type, &value, &traceback);
	agent_thread.traceback = traceback;
	context_begin(frame_code(layout, frame), entry);
	fire_whole(frame, NULL, fire_exception_object(&type, &value, &traceback), entry);
	context_end();
	agent_thread.traceback = NULL;
	pyframes_unlink(&link);
	agent.py.PyErr_Restore(type, value, traceback);
}

static __attribute__((noinline)) void fire_entry(struct pythread *thread, void *frame, int throwing)
{
	if (__builtin_expect(throwing, 0))
		fire_raising(thread, frame, true);
	else
		fire_plain(thread, frame, NULL, true);
}

static __attribute__((noinline)) void fire_return(struct pythread *thread, void *frame, struct pyobj *result)
{
	if (__builtin_expect(!result, 0))
		fire_raising(thread, frame, false);
	else
		fire_plain(thread, frame, result, false);
}

/* Run the frame, which starts, with its return. */
static __attribute__((noinline)) struct pyobj *run_returning(struct pythread *thread, void *frame, int throwing,
							    capi_evaluator *next)
{
	unsigned begun = agent.hook_eval.generation;
	struct pyobj *result = next(thread, frame, throwing);

	if (begun == agent.hook_eval.generation && !fire_counted(function__return, frame_code(layout, frame)) &&
	    fire_wanted(function__return))
		fire_return(thread, frame, result);
	return result;
}

/* Run a frame that starts.  Its entry is not counted yet. */
static inline struct pyobj *run_starting(struct pythread *thread, void *frame, int throwing, capi_evaluator *next)
{
	if (fire_wanted(function__entry))
		fire_entry(thread, frame, throwing);
	/* Listeners that start later see only the returns of frames that begin later. */
	return fire_wanted(function__return) ? run_returning(thread, frame, throwing, next) : next(thread, frame, throwing);
}

/* Where it is not as clear as hook_eval_run() needs it. */
static __attribute__((noinline)) struct pyobj *run_any(struct pythread *thread, void *frame, int throwing,
						      capi_evaluator *next)
{
	if (agent_thread.busy || hook_eval_near_end((char *)__builtin_frame_address(0)) ||
	    frame_makes_generator(layout, frame) || frame_cannot_start(layout, thread))
		return next(thread, frame, throwing);
	if (fire_counted(function__entry, frame_code(layout, frame)))
		return fire_wanted(function__return) ? run_returning(thread, frame, throwing, next) : next(thread, frame, throwing);
	return run_starting(thread, frame, throwing, next);
}

/* If there are no events of returns, this ends in tail calls and uses no stack. */
struct pyobj *hook_eval_run(struct pythread *thread, void *frame, int throwing, capi_evaluator *next)
{
	if (__builtin_expect(agent_thread.busy || (char *)__builtin_frame_address(0) < agent_thread.stack_limit ||
			     frame_makes_generator(layout, frame) || !frame_can_start(layout, thread), 0))
		return run_any(thread, frame, throwing, next);
	if (!fire_counted(function__entry, frame_code(layout, frame)))
		return run_starting(thread, frame, throwing, next);
	return fire_wanted(function__return) ? run_returning(thread, frame, throwing, next) : next(thread, frame, throwing);
}

/*
 * The profile function could not take over: it is the main interpreter's threads that it knows.  So where the stack ends
 * there are no more events of this interpreter, and calls are inlined again (3.11).
 */
bool hook_eval_ends_sub(const char *here)
{
	if (__builtin_expect(agent_thread.stack_limit == STACK_UNKNOWN, 0))
		agent_thread.stack_limit = find_stack_limit();
	if (__builtin_expect(here >= agent_thread.stack_limit, 1))
		return false;
	eval_use_sub(0);
	return true;
}

struct pyobj *hook_eval_run_sub(struct pythread *thread, void *frame, int throwing, capi_evaluator *next)
{
	struct pyobj *result;

	if (hook_eval_ends_sub(__builtin_frame_address(0)) || agent_thread.busy || frame_makes_generator(layout, frame) ||
	    frame_cannot_start(layout, thread))
		return next(thread, frame, throwing);
	if (fire_wanted(function__entry))
		fire_entry(thread, frame, throwing);
	result = next(thread, frame, throwing);
	if (fire_wanted(function__return))
		fire_return(thread, frame, result);
	return result;
}

struct pyobj *hook_eval_code(void *frame)
{
	return frame_code(layout, frame);
}

static bool usable(void)
{
	if (!agent.hook_eval.asked) {
		agent.hook_eval.asked = true;
		agent.hook_eval.usable = agent.py.minor < 12 && cstack_usable() && frame_measure(layout);
		if (agent.hook_eval.usable)
			pyframes_measure();
	}
	return agent.hook_eval.usable;
}

static unsigned update(unsigned wants)
{
	agent.hook_eval.wanted = wants;
	if (agent.hook_eval.handed_over) {
		agent.hook_eval.handed_over = wants;
		return hook_profile_take_over(wants);
	}
	if (wants && !hook_profile_prepare())
		wants = 0;
	if (!wants || !eval_used(EVAL_EVENTS))
		agent.hook_eval.generation++;
	eval_use(EVAL_EVENTS, wants);
	return wants;
}

const struct hook hook_eval = { WANT_function__entry | WANT_function__return, 0, usable, update };

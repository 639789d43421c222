/* SPDX-License-Identifier: MIT */
/*
 * The only way from a hook to a marker about code and to the engine: a moment, whose arguments are computed only here.
 * errno is kept.  Called with the GIL and without an exception set.
 */
#ifndef AGENT_FIRE_H
#define AGENT_FIRE_H

#include <errno.h>

#include "agent/agent.h"
#include "agent/code.h"
#include "agent/engine.h"

/* A thread's position: in @code, at a line that @line() computes from the other members. */
struct moment {
	struct pyobj *code;
	int (*line)(const struct moment *moment);
	const void *where;	/* a frame, or another value for @line() */
	struct pyobj *result;		/* at a return or a yield, else NULL */
	struct pyobj *exception;	/* at a raise, a throw() or an unwind, else NULL */
};

/*
 * The event's values, for agent/pyval.c; NULL after the event.  They are kept apart: the compiler would copy both with one
 * load from a moment that has just been stored word by word, and such a load waits until the stores are done.
 */
static inline void fire_values(struct pyobj *result, struct pyobj *exception)
{
	__asm__("" : "+r"(result), "+r"(exception));
	agent_thread.result = result;
	agent_thread.exception = exception;
}

/*
 * The exception object in the result of PyErr_Fetch(), or NULL.  Before 3.12 the object may not exist yet: it is then
 * created if a program wants values and if that runs no code of the traced program.
 */
struct pyobj *fire_exception_object(struct pyobj **type, struct pyobj **value, struct pyobj **traceback);

/* fire_function__entry(moment), fire_function__return(moment), fire_line(moment) */
#define FIRE(name)										\
	static inline void fire_##name(const struct moment *moment)				\
	{											\
		bool marker = marker_wanted(name);						\
		int saved = errno, line = 0;							\
												\
		engine_begin_arguments();							\
		if (marker || engine_reads_line(ABI_MARKER_##name))				\
			line = moment->line(moment);						\
		if (marker)									\
			marker_##name(code_file(moment->code), code_name(moment->code), line);	\
		if (engine_wanted(name)) {							\
			fire_values(moment->result, moment->exception);				\
			engine_fire_code(ABI_MARKER_##name, moment->code, line);		\
			fire_values(NULL, NULL);						\
		}										\
		engine_end_arguments();								\
		errno = saved;									\
	}
FIRE(function__entry)
FIRE(function__return)
FIRE(line)
FIRE(thread__start)
#undef FIRE

/*
 * A call of or return from the C function @callable; the moment is the caller's.  @first: the first argument of a call, NULL:
 * not known.
 */
void fire_cfunction(const struct moment *moment, struct pyobj *callable, struct pyobj *first, bool entry);
bool fire_is_cfunction(struct pyobj *callable);
/* exception-raise, or (@caught) exception-caught. */
void fire_exception(const struct moment *moment, struct pyobj *type, bool caught);

/* The thread called @name ends, or NULL: that is not known; its first function is that of the moment. */
void fire_thread__finish(const struct moment *moment, const char *name);

/* The names of a task and its coroutine, or NULL: they cannot be told; the task object. */
struct fire_task { const char *name, *coroutine; struct pyobj *task; };

void fire_task__create(const struct fire_task *task);

/* A step of a task begins, or ends: @how is 0 if the task waits, 1 if its coroutine has returned, 2 if it has raised. */
void fire_task__step__begin(const struct fire_task *task);
void fire_task__step__end(const struct fire_task *task, int how);

/*
 * Count an event of @code, if nothing else is wanted of the marker, or do nothing if that is all that programs would do.
 * True: that is done, and fire_NAME() is not needed.
 */
#define fire_counted(name, code)							\
	(!marker_wanted(name) && (engine_counted(ABI_MARKER_##name, code) || engine_settled(ABI_MARKER_##name, code)))

/*
 * Fire function-entry or function-return the quick way, if nothing but one program wants it, which reads no line.  False:
 * nothing was done, and fire_moment() is needed.
 */
static inline bool fire_quick(struct pyobj *code, struct pyobj *result, struct pyobj *exception, bool entry)
{
	enum abi_marker marker = entry ? ABI_MARKER_function__entry : ABI_MARKER_function__return;
	int *at, saved;
	bool fired;

	if ((entry ? marker_wanted(function__entry) : marker_wanted(function__return)) || !engine_is_quick(marker) ||
	    engine_reads_line(marker))
		return false;
	at = agent_errno();
	saved = *at;
	fired = entry ? engine_try_entry(code, exception, 0) : engine_try_return(code, result, exception, 0);
	*at = saved;
	return fired;
}

/*
 * The same where engine_is_straight() and nobody listens, with the line: @line() computes it from @code and @where.
 */
static inline __attribute__((always_inline)) bool fire_straight(struct pyobj *code,
								 int (*line)(struct pyobj *code, const void *where),
								 const void *where, struct pyobj *result,
								 struct pyobj *exception, bool entry)
{
	int *at = agent_errno(), saved = *at, number = 0;
	bool fired;

	if (engine_reads_line(entry ? ABI_MARKER_function__entry : ABI_MARKER_function__return))
		number = line(code, where);
	fired = entry ? engine_try_entry(code, exception, number) : engine_try_return(code, result, exception, number);
	*at = saved;
	return fired;
}

/* The events of fire_quick() in any case; the quick way if it is only the line that was in its way. */
static inline void fire_moment(const struct moment *moment, bool entry)
{
	enum abi_marker marker = entry ? ABI_MARKER_function__entry : ABI_MARKER_function__return;
	bool marked = entry ? marker_wanted(function__entry) : marker_wanted(function__return);
	int *at = agent_errno(), saved = *at, line;
	bool fired;

	if (!marked && engine_is_quick(marker) && engine_reads_line(marker)) {
		line = moment->line(moment);
		fired = entry ? engine_try_entry(moment->code, moment->exception, line) :
				engine_try_return(moment->code, moment->result, moment->exception, line);
		*at = saved;
		if (fired)
			return;
	}
	(entry ? fire_function__entry : fire_function__return)(moment);
}

/* Does any listener or program want it? */
#define fire_wanted(name) (marker_wanted(name) || engine_wanted(name))

typedef void fire(const struct moment *moment);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Functions by name: which programs probe a code object, decided once for each and stored with it.
 *
 * Patterns name a module, which is __name__ in a frame's globals, and a function's qualified name, which is in its code
 * object.  So a code object whose name matches no pattern needs no further look; for others the module is looked up at
 * each event, since the same code may run in several.  Decisions hold until programs are added or removed
 * (agent.engine.epoch).
 *
 * No code of the program runs here: a dictionary is searched for an exact str.
 */
#ifndef AGENT_FUNCTION_H
#define AGENT_FUNCTION_H

#include <stdbool.h>
#include <string.h>

#include "abi/segment.h"
#include "agent/fire.h"

/* An event of the function of @at, whose globals are @globals. */
struct function_event {
	enum abi_function what;
	struct moment at;
	struct pyobj *globals;
	/* RETURN, YIELD: the value; RAISE, RESUME by throw(): the exception; or NULL. */
	struct pyobj *result, *exception;
	int line;				/* LINE */
};

/* The value stored with code that no program probes in this epoch. */
static inline void *function_nothing(unsigned epoch)
{
	return (void *)((uintptr_t)epoch << 1 | 1);
}

/* The value that function.c has stored with @code, or NULL; _PyCodeObjectExtra is a count and that many pointers. */
static inline void *function_kept(struct pyobj *code)
{
	const struct { ssize_t n; void *v[]; } *extra;
	void *kept = NULL;

	if (__builtin_expect(agent.function.extra_off, 1)) {
		memcpy(&extra, (char *)code + agent.function.extra_off, sizeof(extra));
		return extra && agent.function.index < extra->n ? extra->v[agent.function.index] : NULL;
	}
	if (agent.function.get(code, agent.function.index, &kept))
		agent.py.PyErr_Clear();
	return kept;
}

/* Called with the GIL before the other functions.  False, with a reason (agent_why): not possible in this CPython. */
bool function_usable(void);
/*
 * The same in a subinterpreter, once in each, after function_usable().  False: another tool has the room beside code objects there
 * that the agent has in the main one.
 */
bool function_usable_sub(void);

/*
 * Run the programs for @event.  False: no program wants such events in any module where this code object has run.  With
 * the GIL, no exception set; keeps errno.
 */
bool function_fire(const struct function_event *event);

/*
 * The same for an event that is as most are: the decision about the code is known, and one program wants it, which reads no
 * line.  False: nothing was done, and function_fire() is needed.
 */
bool function_fire_quick(enum abi_function what, struct pyobj *code, struct pyobj *globals, struct pyobj *result,
			 struct pyobj *exception);

/*
 * For a frame's evaluator: the decision about the code in the module of these globals, with the kinds of events that are wanted in
 * *wanted.  NULL: it is not known, or events do not go the quick way.
 */
struct verdict;

const struct verdict *function_verdict(struct pyobj *code, struct pyobj *globals, unsigned *wanted);
/* function_fire_quick() for the entry, by the decision just made: until anything else has run. */
bool function_fire_entry(const struct verdict *v, struct pyobj *code);

/* Kinds of events of this code object that a program may want, in any module; bits. */
unsigned function_fits(struct pyobj *code);

/* Kinds of events of @code that a program wants if its globals are @globals; bits. */
unsigned function_wanted(struct pyobj *code, struct pyobj *globals);

/* Is it known that no program wants any?  Tested at each call. */
static inline bool function_is_nothing(struct pyobj *code)
{
	return function_kept(code) == function_nothing(agent.engine.epoch);
}

/* Are there decisions for the code object, but none for the module of these globals? */
bool function_is_elsewhere(struct pyobj *code, struct pyobj *globals);

#endif

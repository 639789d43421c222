/* SPDX-License-Identifier: MIT */
/*
 * The one way from a hook to a marker about code, and to the engine: a moment, from which arguments are taken only
 * here.  errno is kept.  Called with the GIL and without an exception set.
 */
#ifndef AGENT_FIRE_H
#define AGENT_FIRE_H

#include <errno.h>

#include "agent/agent.h"
#include "agent/code.h"
#include "agent/engine.h"

/* Where a thread is: in @code, at a line that @line finds out from the rest. */
struct moment {
	struct pyobj *code;
	int (*line)(const struct moment *moment);
	const void *where;	/* a frame, or what else @line understands */
};

/* fire_function__entry(moment), fire_function__return(moment), fire_line(moment) */
#define FIRE(name)										\
	static inline void fire_##name(const struct moment *moment)				\
	{											\
		bool marker = marker_wanted(name);						\
		int saved = errno, line = 0;							\
												\
		if (marker || engine_reads_line(WANT_INDEX_##name))				\
			line = moment->line(moment);						\
		if (marker)									\
			marker_##name(code_file(moment->code), code_name(moment->code), line);	\
		if (engine_wanted(name))							\
			engine_fire_code(WANT_INDEX_##name, moment->code, line);		\
		errno = saved;									\
	}
FIRE(function__entry)
FIRE(function__return)
FIRE(line)
FIRE(thread__start)
#undef FIRE

/* A call of or return from the C function @callable; the moment is the caller's. */
void fire_cfunction(const struct moment *moment, struct pyobj *callable, bool entry);
bool fire_is_cfunction(struct pyobj *callable);
void fire_exception(const struct moment *moment, struct pyobj *type);

/* Was all that is wanted of a marker of @code done by counting?  Asked before fire_NAME(). */
#define fire_counted(name, code) (!marker_wanted(name) && engine_counted(WANT_INDEX_##name, code))

/* Does anybody want it? */
#define fire_wanted(name) (marker_wanted(name) || engine_wanted(name))

typedef void fire(const struct moment *moment);

#endif

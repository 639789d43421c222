/* SPDX-License-Identifier: MIT */
/*
 * Calling contexts: a tree of calls, extended at each new call, so that the stack at an event is a node of the tree and
 * need not be walked.
 *
 * While a hook that sees every call supplies function-entry, a note with each frame's node is stored when the frame
 * begins or resumes.  The note is valid until another frame begins at the same address, which causes an event, too; so
 * the node of a new frame is found by its caller's note.  Whenever a note is used, its code and caller are compared
 * with the frame's.  For a generator both can be equal although the outer frames differ, since throw() links a
 * generator that waits for an inner one without an event: so its caller must be the frame that the note names, and so
 * on up to the first frame that is not a generator's.  A frame without a note (begun before the hook, or replaced by
 * another frame's note) is found by walking up to the first frame with one; then notes are stored.
 *
 * This works only at function-entry and function-return.  At other events there may be frames that had no event: a
 * trace or profile function set by the program, and all that it calls.  There, and when the tree is full, the stack is
 * walked.
 *
 * Notes are found by the frame's address and not kept in a stack, because generators, greenlets and threads resume
 * anywhere.
 *
 * All functions need the GIL; nothing is stored while there are interpreters with a GIL of their own.
 */
#ifndef AGENT_CONTEXT_H
#define AGENT_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/state.h"

/*
 * The set of programs has changed: store notes if @wanted, else release them.  Without the layout of frames
 * (pyframes_measured()) there are no notes.
 */
void context_update(bool wanted);

/* Notes are no longer complete: the hook does not see every call. */
void context_stop(void);

/* The thread's innermost frame begins or resumes. */
void context_enter(void);

static inline bool context_on(void)
{
	return agent.context.on;
}

/* Called around an event of @code, in the thread's innermost frame, of the hook that sees every call. */
static inline void context_begin(const struct pyobj *code, bool entry)
{
	if (__builtin_expect(!context_on(), 1))
		return;
	agent.context.at_event = true;
	agent.context.code = (uint64_t)(uintptr_t)code;
	agent.context.entered = NULL;
	if (entry)
		context_enter();
}

static inline void context_end(void)
{
	/* Not written by those who need not: threads without a GIL would take the line from each other at every event. */
	if (__builtin_expect(agent.context.at_event, 0))
		agent.context.at_event = false;
}

/* The node of the thread's innermost frame, if this is an event of the hook, or NULL. */
struct context_node *context_find(void);

#endif

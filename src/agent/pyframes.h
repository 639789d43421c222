/* SPDX-License-Identifier: MIT */
/*
 * Python frames of this thread, for stacks (vm/stack.h).
 *
 * The API returns a frame only as a new object, which must not be created at an event.  So the interpreter's own
 * structures are read, at offsets that probe/pyoffsets.h knows or the interpreter publishes.  The offsets are used only
 * if a walk of a known stack gave the same result as the API.
 */
#ifndef AGENT_PYFRAMES_H
#define AGENT_PYFRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/state.h"

struct pyobj;
struct pythread;
struct abi_code;

enum { PYFRAMES_MAX = 127 };

/*
 * Measure the layout of frames, once; runs Python code.  With the GIL, no exception set, not at an event.  False: it
 * cannot be determined with certainty, and frames are not available.
 */
bool pyframes_measure(void);
bool pyframes_measured(void);	/* the result, without measuring */

/*
 * The innermost @most frames of this thread: for each, two words in @words, as in struct abi_pyframe, and the code
 * object in @codes.  Without @lines the positions in the functions are left out.  If @calls is not 0, it is the room
 * for all entries, and the interpreter's own frames are included, which are local variables of the native functions
 * that run the frames before them: their first word is the frame's address and the code object NULL.  Returns the
 * number of entries.  With the GIL.  @pid is part of the numbers of code objects.
 */
uint32_t pyframes_walk(uint32_t pid, bool lines, uint32_t most, uint32_t calls, uint64_t *words, struct pyobj **codes);

/* The words of one frame, of @code: also of one that stands in a generator or coroutine.  Without flags. */
void pyframes_put(uint32_t pid, bool lines, const char *frame, uint64_t code, uint64_t words[2]);

/*
 * This thread's innermost frame and its code object, whose type has been checked.  False: there is none.  With the GIL.
 */
bool pyframes_top(const char **frame, uint64_t *code);

/* Has the frame begun its first instruction? */
bool pyframes_begun(const char *frame, uint64_t code);

/*
 * The operation of the instruction at which @frame is, which lives in a generator or coroutine (3.11 and later); -1: frames
 * are not known.
 */
int pyframes_instruction(const char *frame);

/* The frame that has called @frame, and its code object.  False: there is none.  With the GIL. */
bool pyframes_caller(const char **frame, uint64_t *code);

/*
 * Fill in @code's record, without the header, in at most @most bytes; returns its size.  Leaves no exception set.  With
 * the GIL.
 */
uint32_t pyframes_tell(struct pyobj *code, uint64_t number, struct abi_code *rec, uint32_t most);

/*
 * While a frame evaluator runs, its frame is not yet, or no longer, the thread's innermost frame.  Make it so until
 * pyframes_unlink().  Code between the two must not release the GIL.
 */
struct pyframes_link { void **top, *was; void **back, *was_back; const char *outer; };

static inline void pyframes_link(struct pythread *thread, void *frame, struct pyframes_link *ret)
{
	const struct abi_python *at = &agent.pyframes.at;

	ret->top = NULL;
	if (!agent.pyframes.known)
		return;
	ret->top = (void **)(void *)((char *)thread + at->frame);
	if (at->cframe_frame != ABI_PYTHON_NONE)
		ret->top = (void **)(void *)((char *)*ret->top + at->cframe_frame);
	ret->was = *ret->top;
	ret->back = NULL;
	if (at->runs == ABI_PYTHON_MARKED) {	/* a frame object has its caller from the start */
		ret->back = (void **)(void *)((char *)frame + at->back);
		ret->was_back = *ret->back;
		*ret->back = ret->was;
	}
	*ret->top = frame;
	ret->outer = agent.pyframes.linked;
	agent.pyframes.linked = frame;
}

static inline void pyframes_unlink(const struct pyframes_link *link)
{
	if (!link->top)
		return;
	agent.pyframes.linked = link->outer;
	*link->top = link->was;
	if (link->back)
		*link->back = link->was_back;
}

#endif

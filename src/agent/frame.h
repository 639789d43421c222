/* SPDX-License-Identifier: MIT */
/*
 * The frame that an evaluator gets before 3.12: a frame object up to 3.10, an internal structure in 3.11.  The API
 * reads only the former, so the layout is measured.
 */
#ifndef AGENT_FRAME_H
#define AGENT_FRAME_H

#include <stdbool.h>

#include "agent/fire.h"

/* Measure it, with the GIL; no code of the program runs.  False: something cannot be determined with certainty. */
bool frame_measure(struct frame_layout *layout);

static inline struct pyobj *frame_code(const struct frame_layout *layout, const void *frame)
{
	return *(struct pyobj **)((char *)frame + layout->code_off);
}

/* The last instruction begun, as an offset in bytes; negative before the first.  Not for a frame object. */
static inline long frame_instr(const struct frame_layout *layout, const void *frame)
{
	return *(char **)((char *)frame + layout->instr_off) - ((char *)frame_code(layout, frame) + layout->first_off);
}

enum { FRAME_CO_GENERATORS = 0x20 | 0x80 | 0x200 };

/* Is the evaluator called to create a generator or coroutine object?  That is not an entry. */
static inline bool frame_makes_generator(const struct frame_layout *layout, const void *frame)
{
	return !layout->object &&
	       *(int *)((char *)frame_code(layout, frame) + layout->flags_off) & FRAME_CO_GENERATORS &&
	       frame_instr(layout, frame) < 0;
}

/* True: the thread's recursion depth lets the frame start; false: it is not certain. */
static inline bool frame_can_start(const struct frame_layout *layout, const struct pythread *thread)
{
	int depth = *(const int *)((const char *)thread + layout->depth_off);

	if (layout->depth_falls)
		return depth > 0;
	return layout->limit_off &&
	       depth < *(const int *)(*(char *const *)((const char *)thread + layout->interp_off) + layout->limit_off);
}

/* Has the thread reached the recursion limit, so that the frame will not start (RecursionError)? */
static inline bool frame_cannot_start(const struct frame_layout *layout, const struct pythread *thread)
{
	int depth = *(const int *)((const char *)thread + layout->depth_off);

	if (layout->depth_falls)
		return depth <= 0;
	return depth >= agent.py.Py_GetRecursionLimit() &&
	       !(layout->overflowed_off && *((const char *)thread + layout->overflowed_off));
}

/*
 * The offset in bytes of the last instruction begun in a frame object, at a trace event of the one that is to run next;
 * negative: none.  Leaves no exception set.
 */
long frame_object_at(struct pyobj *frame);

/*
 * The instruction at offset @at of @code and the next one, each with its argument; zeros where there is none.  In any
 * version; leaves no exception set.  False: not known.
 */
bool frame_instrs(struct pyobj *code, long at, unsigned char instrs[4]);

/* The line of the frame's current position, in @code. */
int frame_line(const struct frame_layout *layout, struct pyobj *code, const void *frame);

/* The moment of the frame's current position. */
void frame_moment(const struct frame_layout *layout, const void *frame, struct moment *moment);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What a frame evaluator is handed, before 3.12: a frame object up to 3.10, an internal structure in 3.11.  The API
 * reads only the first, so the layout is measured.
 */
#ifndef AGENT_FRAME_H
#define AGENT_FRAME_H

#include <stdbool.h>

#include "agent/fire.h"

struct frame_layout {
	bool object;			/* it is a frame object */
	long code_off;			/* in the frame: its code object */
	long instr_off;			/* not an object: pointer to the last instruction begun */
	long first_off, flags_off;	/* in the code object: the first instruction, co_flags */
	long depth_off;			/* in the thread state: int, the depth of recursion, or what remains of it */
	bool depth_falls;		/* it is what remains */
	long overflowed_off;		/* in the thread state: char, depth beyond the limit is allowed; or 0 */
	long interp_off, limit_off;	/* in the thread state: its interpreter; in that: int, the limit of depth; or 0 */
};

/* Measure it with the GIL; nothing of the program runs.  False when something cannot be told for certain. */
bool frame_measure(struct frame_layout *layout);

static inline struct pyobj *frame_code(const struct frame_layout *layout, const void *frame)
{
	return *(struct pyobj **)((char *)frame + layout->code_off);
}

/* The last instruction begun, as an offset in bytes; negative before the first.  Not of an object. */
static inline long frame_instr(const struct frame_layout *layout, const void *frame)
{
	return *(char **)((char *)frame + layout->instr_off) - ((char *)frame_code(layout, frame) + layout->first_off);
}

enum { FRAME_CO_GENERATORS = 0x20 | 0x80 | 0x200 };

/* The evaluator is called to make a generator or coroutine object, which is no entry. */
static inline bool frame_makes_generator(const struct frame_layout *layout, const void *frame)
{
	return !layout->object &&
	       *(int *)((char *)frame_code(layout, frame) + layout->flags_off) & FRAME_CO_GENERATORS &&
	       frame_instr(layout, frame) < 0;
}

/* True: the frame will start, for all that the thread's depth has to do with it; false: it may. */
static inline bool frame_can_start(const struct frame_layout *layout, const struct pythread *thread)
{
	int depth = *(const int *)((const char *)thread + layout->depth_off);

	if (layout->depth_falls)
		return depth > 0;
	return layout->limit_off &&
	       depth < *(const int *)(*(char *const *)((const char *)thread + layout->interp_off) + layout->limit_off);
}

/* The thread is so deep that the frame will not start: RecursionError. */
static inline bool frame_cannot_start(const struct frame_layout *layout, const struct pythread *thread)
{
	int depth = *(const int *)((const char *)thread + layout->depth_off);

	if (layout->depth_falls)
		return depth <= 0;
	return depth >= agent.py.Py_GetRecursionLimit() &&
	       !(layout->overflowed_off && *((const char *)thread + layout->overflowed_off));
}

/* The moment at which the frame is. */
void frame_moment(const struct frame_layout *layout, const void *frame, struct moment *moment);

#endif

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
};

/* Measure it with the GIL; nothing of the program runs.  False when something cannot be told for certain. */
bool frame_measure(struct frame_layout *layout);

/* The evaluator is called to make a generator or coroutine object, which is no entry. */
bool frame_makes_generator(const struct frame_layout *layout, const void *frame);
/* The thread is so deep that the frame will not start: RecursionError. */
bool frame_cannot_start(const struct frame_layout *layout, const struct pythread *thread);
/* The moment at which the frame is. */
void frame_moment(const struct frame_layout *layout, const void *frame, struct moment *moment);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Native frames of this thread, found by the tables of abi/unwind.h; where these have no entry, by the frame pointer.
 *
 * The first frame is the agent's caller: the agent's own functions keep frame pointers.  Only memory between the stack
 * pointer and the end of the thread's stack is read, so an invalid or overwritten table causes wrong addresses at
 * worst.  A thread that runs on a foreign stack has no frames.
 */
#ifndef AGENT_CFRAMES_H
#define AGENT_CFRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/unwind.h"

enum { CFRAMES_MAX = 127 };

/*
 * Store up to @most addresses in @words, innermost first, and each frame's stack pointer in @sps.  @engine: the frame
 * address of a function of the agent on the event's call path.  @ranges may be NULL.  *missing: some code is not
 * covered by @ranges.  Returns their number.
 */
uint32_t cframes_walk(const void *engine, const struct abi_ranges *ranges, const struct abi_unwind *tables, uint32_t most,
		      uint64_t *words, uint64_t *sps, bool *missing);

#endif

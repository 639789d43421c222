/* SPDX-License-Identifier: MIT */
/*
 * Native frames of this thread, by the tables of abi/unwind.h; where these have nothing, by the frame pointer.
 *
 * They begin with whoever called the agent: its own functions keep frame pointers.  Nothing is read but what lies between
 * the stack pointer and the end of the thread's stack, so a table that makes no sense, or that somebody has scribbled
 * over, leads to a wrong address at worst.  A thread that runs on a stack which is not its own has no frames.
 */
#ifndef AGENT_CFRAMES_H
#define AGENT_CFRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/unwind.h"

enum { CFRAMES_MAX = 127 };

/*
 * Up to @most addresses at @words, innermost first, and where each frame begins at @sps.  @engine: the frame address of a
 * function of the agent that the event went through.  @ranges may be NULL.  *missing: code was met of which they have
 * nothing.  Returns how many.
 */
uint32_t cframes_walk(const void *engine, const struct abi_ranges *ranges, const struct abi_unwind *tables, uint32_t most,
		      uint64_t *words, uint64_t *sps, bool *missing);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Spans: the time from one event of a thread to another one, stored and added without running the programs that do it
 * (abi/segment.h, ABI_KNOWN_START and ABI_KNOWN_STOP).
 *
 * What only the program finds, or makes, are elements of the lane: that of the thread's variables and, if the aggregation has keys,
 * that of the code object.  They are learned from the program, which runs when they are not known.  So the program's results do not
 * depend on how often it runs.
 *
 * All functions need the GIL, and an event that goes the quick way (struct engine_quick).
 */
#ifndef AGENT_SPAN_H
#define AGENT_SPAN_H

#include "agent/state.h"
#include "vm/add.h"

struct span {
	enum abi_known what;		/* ABI_KNOWN_NONE: something else */
	enum abi_stop add;
	bool keeps;			/* the time stays */
	uint32_t threads;		/* the map of threads' variables */
	uint32_t time;			/* bytes from a thread's element there to the time */
	/* Of ABI_KNOWN_STOP: the first of the maps that it adds to, and their number if there are keys, else 0. */
	uint16_t map, classes;
	uint32_t used;			/* the number of the word that tells use; 0: there is none */
	uint64_t words;			/* without keys: bytes from the start of the lane to the words that are added to */
};

/* What @f's program does, if all that it says of that is right. */
struct span span_of(const struct shm *s, const struct abi_fire *f);

/* An element that a span with keys adds to: of a code object for which its keys are the same each time. */
struct span_element {
	struct abi_elem *at;		/* NULL: not known */
	uint64_t *words;
	uint32_t given_back;		/* abi_lane.given_back when it was found */
};

/* Where an element is known: by the code object, in a table that has it alive, or by itself; else both are NULL. */
struct span_found {
	const struct add_objects *in;
	const struct pyobj *code;
	const struct span_element *element;
};

/*
 * Before the program runs, and afterwards: the element that it has found.  Not for markers, whose elements are learned as those of
 * counts (vm/add.h).
 */
void span_forget(const struct span *p, const struct shm_run *run);
struct span_element span_element(const struct span *p, const struct shm_run *run);

/* After the program has run: learn where the thread's variables are. */
void span_learn(const struct span *p, const struct shm_run *run);

/* Where the time is.  NULL: the program must run. */
static inline __attribute__((always_inline)) uint64_t *span_time(const struct span *p, const struct shm_run *run)
{
	const struct thread_span *t = &agent_thread.span;
	const struct abi_lane *lane = (const struct abi_lane *)(const void *)run->lane;

	if (__builtin_expect(t->lane != lane || t->epoch != agent.engine.epoch || t->given_back != lane->given_back ||
			     t->element->state != ABI_ELEM_LIVE || !shm_is_active(run->shm), 0))
		return NULL;
	return (uint64_t *)(void *)((char *)t->element + p->time);
}

/* The words to add to.  NULL: the program must run. */
static inline uint64_t *span_words(const struct span *p, const struct shm_run *run, const struct span_found *found)
{
	const struct abi_lane *lane = (const struct abi_lane *)(const void *)run->lane;
	const struct span_element *e = found->element;

	if (!p->classes)
		return (uint64_t *)(void *)(run->lane + p->words);
	if (found->in)
		return add_find_object(found->in, (uint64_t)(uintptr_t)found->code);
	return e && e->at && e->given_back == lane->given_back && e->at->state == ABI_ELEM_LIVE ? e->words : NULL;
}

static inline void span_start(const struct shm_run *run, uint64_t *time)
{
	*time = shm_now(run->shm);
}

/* Add to the element with the value @words. */
static inline void span_stop(const struct span *p, const struct shm_run *run, uint64_t *time, uint64_t *words)
{
	uint64_t ns = shm_now(run->shm) - *time;

	if (!p->keeps)
		*time = 0;
	if (p->used)
		words[p->used] = 1;
	if (p->add == ABI_STOP_QUANTIZE) {
		words[shm_quantize((int64_t)ns)]++;
	} else {
		if (p->add == ABI_STOP_AVG)
			*words++ += 1;
		*words += ns;
	}
}

#endif

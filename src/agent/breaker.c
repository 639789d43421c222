/* SPDX-License-Identifier: MIT */
/*
 * The mark is in struct _ceval_state of the main interpreter (Include/internal/pycore_interp.h of 3.9 to 3.11), whose words are
 * the same in all releases of a version.  Nothing is written unless all that is beside it is as it has to be, and the last one
 * of the queue's calls is the one that was added.
 */
#include "agent/breaker.h"

#include <stddef.h>
#include <stdint.h>

#include "agent/agent.h"

enum { CALLS = 32, LIMIT_MOST = 1 << 30 };	/* NPENDINGCALLS; more calls than a recursion limit can be */

/* From the queue of pending calls back to the recursion limit, which nothing else precedes in the struct. */
enum { LIMIT_BACK = 16 };

/* Up to 3.9 whether threads are traced stands between the limit and the mark.  Behind it: whether the GIL is wanted. */
static const struct place {
	int minor;
	size_t queue, mark;		/* in the interpreter */
} places[] = { { 9, 80, 72 }, { 10, 80, 68 }, { 11, 112, 100 } };

/* struct _pending_calls */
struct queue {
	void *lock;
	int calls_to_do, async_exc;
	struct {
		int (*fn)(void *);
		void *arg;
	} calls[CALLS];
	int first, last;		/* the first one, and where the next is put */
};

static bool is_flag(int value)
{
	return value == 0 || value == 1;
}

static bool is_index(int value)
{
	return value >= 0 && value < CALLS;
}

static bool is_expected(const char *interp, const struct place *p, int (*fn)(void *))
{
	const struct queue *q = (const void *)(interp + p->queue);
	const int *limit = (const void *)(interp + p->queue - LIMIT_BACK), *mark = (const void *)(interp + p->mark);

	return *limit > 0 && *limit < LIMIT_MOST && is_flag(mark[0]) && is_flag(mark[1]) && q->lock && (uintptr_t)q->lock % 8 == 0 &&
	       is_flag(q->calls_to_do) && is_flag(q->async_exc) && is_index(q->first) && is_index(q->last) &&
	       q->calls[(q->last + CALLS - 1) % CALLS].fn == fn;
}

void breaker_set(int (*fn)(void *))
{
	char *interp = (char *)agent.py.PyInterpreterState_Main();

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (places[i].minor == agent.py.minor && is_expected(interp, &places[i], fn))
			__atomic_store_n((int *)(void *)(interp + places[i].mark), 1, __ATOMIC_RELAXED);
}

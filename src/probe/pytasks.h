/*
 * The tasks of asyncio, read from outside: their names, the stacks of their coroutines, and what they wait for.
 *
 * A thread with a frame of asyncio's loop leads to the module asyncio.tasks, which knows all tasks by weak references
 * up to 3.13; from 3.14 on the thread's state has a list of them.  Nothing in these structures has published offsets
 * in all versions: members are found by the types of the objects in them.
 */
#ifndef DTAP_PROBE_PYTASKS_H
#define DTAP_PROBE_PYTASKS_H

#include <stdbool.h>

struct pystack;
struct pystacks_reader;

/* Does the thread run a loop of asyncio's? */
bool pytasks_has(const struct pystack *st);

/* Fill in the tasks of thread @st, which is still where its stack says, in the reader's arena. */
void pytasks_read(struct pystacks_reader *r, struct pystack *st);

#endif

/*
 * What the threads of a Python process wait for, read from outside: the GIL, a lock, or the end of a thread; which
 * thread has the lock; and deadlocks.
 *
 * The lock is found by the futex that the thread waits for.  Up to 3.13 that is in the lock's semaphore, whose address
 * the lock object has (_threadmodule.c); from 3.14 on, and for some locks of 3.13, in a record on the thread's stack,
 * which has the lock's address (parking_lot.c).  An object is a lock only if its type is in pylocks.def.  A Lock has no
 * owner: what can be read is which frames are inside a `with` of it.
 */
#ifndef DTAP_PROBE_PYLOCKS_H
#define DTAP_PROBE_PYLOCKS_H

struct pyoffsets_slots;
struct pystacks;
struct pystacks_reader;

/*
 * Fill in the waits of all threads of @ret, and the locks of their frames, in the reader's arena.  The threads' stacks
 * have been read; that of a thread which has gone to sleep in another place since is read again.
 */
void pylocks_read(struct pystacks_reader *r, const struct pyoffsets_slots *at, struct pystacks *ret);

#endif

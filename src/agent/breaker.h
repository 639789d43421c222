/* SPDX-License-Identifier: MIT */
/*
 * Have the main thread run its pending calls now.
 *
 * Up to 3.11 a pending call that another thread adds is noticed when the interpreter looks up for another reason: its mark,
 * ceval's eval_breaker, is computed for the thread that adds the call, which runs none (bpo-40010).  From 3.13 on the main
 * thread is marked.
 */
#ifndef DTAP_AGENT_BREAKER_H
#define DTAP_AGENT_BREAKER_H

/*
 * @fn has been added to the pending calls: mark the main thread as the interpreter itself would.  The mark is computed anew
 * whenever a thread takes the GIL, as the caller, who need not have it, does next.  Where the mark is not known, nothing happens.
 */
void breaker_set(int (*fn)(void *));

#endif

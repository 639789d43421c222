/* SPDX-License-Identifier: MIT */
/*
 * thread-start and thread-finish without a GIL.
 *
 * To exchange the frame evaluator, as threads.c does at each start of a thread, the interpreter would stop all threads.  So the
 * audit event of a start says what function the thread will begin with, and sys.monitoring tells of that function alone when it
 * begins and when it ends: the world is stopped once for each such function, which is nearly always the one in the module
 * threading.  A thread that begins with something else than a function of Python or a method of one (functools.partial, an
 * object with __call__) has all beginnings of functions looked at from then on.
 */
#ifndef AGENT_THREADCODE_H
#define AGENT_THREADCODE_H

#include "agent/capi.h"

/* As the update() of a struct hook. */
unsigned threadcode_update(unsigned wants);

/* A thread is about to be started; @args: of the audit event, the function first.  In the main interpreter. */
void threadcode_expect(struct pyobj *args);

#endif

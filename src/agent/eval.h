/* SPDX-License-Identifier: MIT */
/*
 * The agent's frame evaluator (PEP 523).  It stands before whatever evaluator there was, in the main interpreter,
 * and has two uses; it is gone when neither is wanted.  With the GIL.
 */
#ifndef AGENT_EVAL_H
#define AGENT_EVAL_H

#include <stdbool.h>

enum eval_use { EVAL_EVENTS = 1, EVAL_THREADS = 2 };

void eval_use(enum eval_use use, bool on);
bool eval_used(enum eval_use use);

/* EVAL_EVENTS in hook_eval.c: run a frame, with its entry and return. */
struct pyobj *hook_eval_run(struct pythread *thread, void *frame, int throwing, capi_evaluator *next);

/* The code object of a frame before 3.12, where the evaluator is usable; the frame's. */
struct pyobj *hook_eval_code(void *frame);

#endif

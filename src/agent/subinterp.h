/* SPDX-License-Identifier: MIT */
/*
 * Subinterpreters (PEP 554, 684, 734): hooks in each of them, for calls, lines and exceptions raised (before 3.12 only
 * calls of Python functions), functions by name (before 3.12 without lines), garbage collections and imports; audit events are of
 * the whole process anyway.
 *
 * A hook belongs to an interpreter, and only a thread that is in it, with its GIL, may install it: another thread could
 * not keep it from ending meanwhile.  So it is done at audit events in it, of which the first comes before its first
 * frame.  One that is there when hooks come is met sooner if it has the main interpreter's GIL: up to 3.11, as all have, before its
 * next frame, since the evaluator of each can be set; from 3.12 on by a pending call.  What it has is noted in the interpreter's own
 * dictionary and ends with it: the agent keeps no object of a subinterpreter and no pointer to one.
 */
#ifndef AGENT_SUBINTERP_H
#define AGENT_SUBINTERP_H

#include <stdbool.h>

struct pyobj;

/*
 * At an audit event, with a GIL: is this thread in a subinterpreter?  Hooks are installed or removed there then, if that
 * has to be.  Keeps the exception that may be set, and errno.
 */
bool subinterp_event(const char *event, struct pyobj *args);

/* The same before the first frame of one that eval_expect_sub() has been called for. */
void subinterp_meet(void);

/*
 * With the main interpreter's GIL, when hooks have changed: if there are subinterpreters, or the module that makes them
 * is there, an audit hook is installed, and those that can be are met soon.
 */
void subinterp_expect(void);

#endif

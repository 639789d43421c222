/* SPDX-License-Identifier: MIT */
/*
 * Qualified names of code objects before 3.11; from 3.11 on, code objects contain them.
 *
 * The code that creates a function has the qualified name as a constant, next to the function's code object; a class's
 * body has its own.  So the names of all code nested in some code are known.  Other code without a known name when it first
 * runs was not nested in code that ran while names were recorded: it is a module, the argument of exec(), or an older
 * function, whose name is taken from the existing function objects.  If there is none, the name is co_name: for a
 * method whose class was created before and that has no function object left, and for unpickled code.
 *
 * Names are stored in the extra memory of code objects.  With the GIL, no exception set; no code of the program runs.
 */
#ifndef AGENT_QUALNAME_H
#define AGENT_QUALNAME_H

#include <stdbool.h>

struct pyobj;

/* False: code objects have no extra memory in this interpreter, or its bytecode differs from what is expected. */
bool qualname_usable(void);
/* What is done with a name when its code object ends. */
void qualname_release(void *name);

/* Record the names of all existing functions. */
void qualname_learn(void);

/* The name of @code, valid as long as @code lives. */
const char *qualname_of(struct pyobj *code);

#endif

/* SPDX-License-Identifier: MIT */
/* Names of types, read without attribute access: a metaclass can override every attribute with code of the program. */
#ifndef AGENT_TYPENAME_H
#define AGENT_TYPENAME_H

struct pyobj;

/* Measure where types store their names: with the GIL, once.  If that fails, all names are "<unknown>". */
void typename_measure(void);

/*
 * The type's __name__ if no metaclass overrides it, in UTF-8; "<unknown>" if there is none.  Valid as long as the type
 * has that name.
 */
const char *typename_of(struct pyobj *type);

#endif

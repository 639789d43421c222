/* SPDX-License-Identifier: MIT */
/*
 * C functions of the interpreter, replaced in place: a builtin's object points to its method definition, which every
 * reference to the builtin shares, so references that the program took earlier are affected, too.
 */
#ifndef AGENT_METHODS_H
#define AGENT_METHODS_H

#include "agent/agent.h"

/*
 * The definition of @module_name.@name, or NULL: it does not exist, is not a builtin, or was not found with certainty.
 * With the GIL.
 */
struct capi_method *methods_find(const char *module_name, const char *name);

/*
 * Let @r's definition, if it has one, call @ours, or no longer.  @ours calls @r->former.  If another agent has replaced it
 * since, ours stays below that, which calls it, and only passes calls on.
 */
void methods_replace(struct method_replaced *r, capi_varargs *ours, bool on);

#endif

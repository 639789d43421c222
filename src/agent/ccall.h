/* SPDX-License-Identifier: MIT */
/*
 * The arguments of a C function that Python code calls, at cfunction-entry.
 *
 * No hook is given them: they are on the calling frame's value stack, of which only the room is known, not how much of
 * it is in use.  Above that there may be what a former call has left, so they are looked for by what is certain of a
 * call - the function, its object, the instruction's number of arguments - and taken only if they can be in one place.
 */
#ifndef AGENT_CCALL_H
#define AGENT_CCALL_H

#include <stdbool.h>
#include <stdint.h>

struct pyobj;
struct shm_run;

/* A call that is about to be made; @code's instruction at the offset @at, a Python integer, or in the frame object @frame. */
struct ccall {
	struct pyobj *code, *callable;
	struct pyobj *first;		/* its first argument, from 3.12 on; NULL: not known */
	const void *at, *frame;		/* one of the two */
};

/* Find out the instructions that call, once.  With the GIL, no exception set, not at an event. */
void ccall_measure(void);

/*
 * Argument @n from 0 of the call, of which the first is the object of a method.  0 and the object's address, or enum
 * abi_fault: ABI_FAULT_VALUE_NONE if there is no such argument, or where it is is not certain.  With the GIL.
 */
int ccall_argument(struct shm_run *r, const struct ccall *call, uint64_t n, uint64_t *ret);

/*
 * The first @most of all arguments at @values.  Their number; negative: where they are is not certain, and only the object of a
 * method is at @values[0], or 0.
 */
int ccall_arguments(struct shm_run *r, const struct ccall *call, uint64_t *values, unsigned most);

#endif

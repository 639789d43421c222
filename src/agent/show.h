/* SPDX-License-Identifier: MIT */
/*
 * A value in the form of repr(), without running a __repr__: instances of the program's own classes all have one form
 * (show.c).
 */
#ifndef AGENT_SHOW_H
#define AGENT_SHOW_H

#include <stdint.h>

struct shm_run;

/*
 * Write the object at @addr to @size bytes at @dst, at least 1, with the NUL.  If it is nested too deep or too large,
 * the text ends in "...".  The number of bytes, or minus enum abi_fault if a part cannot be read.  With the GIL, or in
 * turn (engine.c).
 */
int64_t show_object(struct shm_run *r, uint64_t addr, char *dst, uint32_t size);

/*
 * The parameters of the function at this event: "name='x', count=2, args=(1,)".  One that cannot be read is "?"; self
 * as the first is shortened to <type object at 0x...>.  The number of bytes, never a fault.
 */
int64_t show_parameters(struct shm_run *r, char *dst, uint32_t size);

/*
 * The arguments of a call of a C function: "'x', 2".  The object of a method is the first, shortened to <type object at 0x...>, of
 * files and sockets with what they are open on.  What is not certain is "?".  The number of bytes, never a fault.
 */
struct ccall;
int64_t show_call(struct shm_run *r, const struct ccall *call, char *dst, uint32_t size);

/* The object at @addr, "?" if it cannot be read, "" for address 0.  The number of bytes, never a fault. */
int64_t show_if_any(struct shm_run *r, uint64_t addr, char *dst, uint32_t size);

#endif

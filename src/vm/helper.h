/*
 * Functions that helpers in several files share.
 */
#ifndef DTAP_VM_HELPER_H
#define DTAP_VM_HELPER_H

#include "vm/shm.h"

/*
 * Append a record of @size bytes to the lane's ring; waits for room if the session says so.  0 or -EAGAIN: no room.
 */
int shm_output(struct shm_run *r, const struct shm_map *out, const void *data, uint32_t size);

/* Wake the tracer to read what was output. */
void shm_wake(struct shm_run *r);

/* Count a loss. */
void shm_drop(const struct shm_run *r, enum abi_drop what);

/* ABI_HELPER_STACK, in stack.c. */
uint64_t stack_number(uint64_t map, uint64_t flags, uint64_t frames, uint64_t address, uint64_t unused, struct vm_thread *t);

#endif

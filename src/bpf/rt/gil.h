/*
 * CPython's lock, the GIL: what generated code (gen_gil.c) and the runtime function share.
 */
#ifndef DTAP_BPF_RT_GIL_H
#define DTAP_BPF_RT_GIL_H

#include "abi/record.h"

/* What happens to the lock; also what a program fires for. */
enum gil_what {
	GIL_NOTHING,
	GIL_WAIT,		/* a thread begins to wait for it */
	GIL_TAKE,		/* a thread has taken it */
	GIL_DROP,		/* a thread has given it back */
};

struct gil_event {
	/* Input: the thread and the probe, which are the key of EBPF_MAP_GILS; what the program fires for. */
	abi_u64 thread, probe;
	/* Output: how long the thread has waited, or has had the lock; the lock's address. */
	abi_u64 ns, lock;
	abi_u32 what, mutex_size;	/* input, too: the bytes of a pthread_mutex_t */
};
_Static_assert(sizeof(struct gil_event) == 40, "it is in the frame's FRAME_EARLY");

#endif

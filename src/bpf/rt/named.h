/*
 * Functions of Python that a pattern has matched: what generated code (gen_away.c) and the runtime function share.
 */
#ifndef DTAP_BPF_RT_NAMED_H
#define DTAP_BPF_RT_NAMED_H

#include "abi/record.h"

/* struct abi_event, of which the first word has been looked at. */
struct named_event {
	abi_u32 first, most;		/* the first index in the probe table for such functions, and how many there can be */
	abi_u32 probe, pad;		/* the pattern's */
	abi_u64 module, function;	/* addresses of the names */
	abi_u64 given;
};
_Static_assert(sizeof(struct named_event) == 40, "it is in the frame's FRAME_EARLY");

#endif

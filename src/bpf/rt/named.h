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
/* The key of EBPF_MAP_NAMES, with zeros behind the texts; the work area. */
struct named_key {
	abi_u32 pattern;
	char mod[sizeof(((struct abi_probe *)0)->mod)], func[sizeof(((struct abi_probe *)0)->func)];
};

struct named_work {
	struct named_key key;
	abi_u32 pad;
	struct abi_probe entry;
};

_Static_assert(sizeof(struct named_event) == 40, "it is in the frame's FRAME_EARLY");

#endif

/*
 * Walking a stack: what generated code (gen_walk.c) and the runtime functions share.
 *
 * The work area begins as the record of the stack: addresses come first, frames of Python behind them.
 */
#ifndef DTAP_BPF_RT_STACK_H
#define DTAP_BPF_RT_STACK_H

#include "abi/python.h"

enum {
	STACK_ADDRS = 127,			/* native frames at most */
	STACK_FRAMES = 127,		/* Python's */
	STACK_WORDS = STACK_ADDRS + 2 * STACK_FRAMES,
	STACK_THREADS = 4096,		/* threads and interpreters looked through at most */
};

struct stack_work {
	struct abi_record hdr;
	abi_u64 number, flags;
	abi_u64 words[STACK_WORDS];
	/* What is given: words in use, how many of them are addresses, frames wanted, what pthread_self() returns. */
	abi_u64 pos, addrs, most, self;
	/* The registers; they become those of frame after frame. */
	abi_u64 ip, sp, bp;
	/* Where each native frame begins; unwound: that is known. */
	abi_u64 sps[STACK_ADDRS + 1], unwound;
	/* What comes back: a hash of Python's frames. */
	abi_u64 hash;
	abi_u64 missing;		/* code was met of which nothing is known */
	/* And what changes on the way. */
	abi_u64 interp, thread, frame, first, n;
	abi_u8 frame_bytes[128 + 8], code_bytes[256 + 8];
	struct abi_code code;
};

/* What the runtime function is given: pointers that the verifier has to know. */
struct stack_walk {
	const void *known;		/* struct abi_python, or struct abi_ranges */
	struct stack_work *work;
	void *map, *out;		/* EBPF_MAP_CODES, or what EBPF_MAP_UNWIND has; EBPF_MAP_OUT */
};

#endif

/*
 * Walking a stack: what generated code (gen_walk.c) and the runtime functions share.
 *
 * The work area begins as the record of the stack: addresses come first, frames of Python follow.
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
	/* Input: words in use, how many of them are addresses, frames wanted, the thread's pthread_self(); lines:
	 * the position of each Python frame in its function is part of the stack. */
	abi_u64 pos, addrs, most, self, lines;
	abi_u64 self_room;		/* pthread_self() is at most this less 1 below @self, which is the thread pointer */
	/* The registers of the current frame. */
	abi_u64 ip, sp, bp;
	/* Where the machine has a link register: what it had (abi/unwind.h); loose: @sp is only a lower bound. */
	abi_u64 link, links, loose;
	/* The kernel's struct return_instance of the innermost call whose return a probe waits for, or 0; where its
	 * return address was; offsets in it: of the caller's, of that place and of the address. */
	abi_u64 call, call_slot;
	abi_u32 call_next, call_at, call_address, unused;
	/* Where each native frame begins; unwound: these are known. */
	abi_u64 sps[STACK_ADDRS + 1], unwound;
	/* Output: a hash of Python's frames. */
	abi_u64 hash;
	abi_u64 missing;		/* unknown code was met */
	/* The state of the walk. */
	abi_u64 interp, thread, frame, first, n;
	abi_u8 frame_bytes[128 + 8], code_bytes[256 + 8];
	struct abi_code code;
};

/* The argument of the runtime function: pointers that the verifier must track. */
struct stack_walk {
	const void *known;		/* struct abi_python, or struct abi_ranges */
	struct stack_work *work;
	void *map, *out;		/* EBPF_MAP_CODES, or the value of EBPF_MAP_UNWIND; EBPF_MAP_OUT */
};

#endif

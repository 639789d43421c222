/*
 * Walking Python's frames: what generated code (gen_python.c) and the runtime function share.
 *
 * The work area begins as the record of the stack: addresses come first, frames of Python behind them.
 */
#ifndef DTAP_BPF_RT_PYTHON_H
#define DTAP_BPF_RT_PYTHON_H

#include "abi/python.h"

enum {
	PY_ADDRS = 127,			/* native frames at most */
	PY_FRAMES = 127,		/* Python's */
	PY_WORDS = PY_ADDRS + 2 * PY_FRAMES,
	PY_THREADS = 4096,		/* threads and interpreters looked through at most */
};

struct py_work {
	struct abi_record hdr;
	abi_u64 number, flags;
	abi_u64 words[PY_WORDS];
	/* What is given: words in use, how many of them are addresses, frames wanted, what pthread_self() returns. */
	abi_u64 pos, addrs, most, self;
	/* What comes back: a hash of the frames.  */
	abi_u64 hash;
	/* And what changes on the way. */
	abi_u64 interp, thread, frame, first, n;
	abi_u8 frame_bytes[128 + 8], code_bytes[256 + 8];
	struct abi_code code;
};

/* What the runtime function is given: pointers that the verifier has to know. */
struct py_walk {
	const struct abi_python *py;
	struct py_work *work;
	void *codes, *out;		/* EBPF_MAP_CODES, EBPF_MAP_OUT */
};

#endif

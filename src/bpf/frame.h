/*
 * The stack frame of a program: offsets from R10.
 *
 * The verifier allows 512 bytes over a whole call chain.  The program itself takes FRAME_SIZE; the rest is for the
 * runtime functions and their callbacks.
 */
#ifndef DTAP_BPF_FRAME_H
#define DTAP_BPF_FRAME_H

#include "bpf/plan.h"

enum {
	FRAME_KEY_SIZE = 72,

	FRAME_CTX = -8,			/* the program's context */
	FRAME_TIME = -16,		/* timestamp */
	FRAME_PROBE = -24,		/* index of the probe that fired */
	FRAME_TASK = -32,		/* struct bpf_pidns_info: tid, pid */
	FRAME_TMP = -40,		/* within one instruction */
	FRAME_TMP2 = -48,
	FRAME_POS = -56,		/* bytes of the key or record built so far */
	FRAME_FAULT = -96,		/* what ERROR's arg1 to arg5 are, in that order */
	FRAME_EARLY = FRAME_FAULT,	/* before the clauses: what their filter reads, up to 40 bytes */
	/* A program whose clauses are functions (gen_turn.c) needs no more itself. */
	FRAME_THREAD = -104,		/* a thread's key */
	FRAME_KEY = FRAME_THREAD - FRAME_KEY_SIZE,	/* small keys, the record of a fault, what ITER's walk carries */
	FRAME_LATE = FRAME_KEY - 8,	/* a fault was caught after the time was up */
	FRAME_ELEM = FRAME_LATE - 8,	/* an element, while a record is built */
	FRAME_WALK = FRAME_ELEM - 16,	/* what a walk over a map carries (rt/map.c) */
	/* A clause with loops has none of these: its stack ends here, and leaves more to what it calls. */
	FRAME_SPILLS = FRAME_WALK - 8 * PLAN_STACK_SLOTS,
	FRAME_SIZE = -FRAME_SPILLS,
};

/* The five words at FRAME_FAULT. */
enum { FAULT_EPID, FAULT_ACT, FAULT_OFF, FAULT_KIND, FAULT_VALUE };

#endif

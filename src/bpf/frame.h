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
	FRAME_LOST = -40,		/* by how much the CPU's task clock was behind its clock when the program began */
	FRAME_TMP = -48,		/* temporary, within one IR instruction */
	FRAME_TMP2 = -56,
	FRAME_POS = -64,		/* bytes of the key or record built so far */
	FRAME_SECTION = FRAME_POS,	/* before the clauses: which of them run (struct ebpf_section) */
	FRAME_FAULT = -104,		/* ERROR's arg1 to arg5, in that order */
	FRAME_COST = FRAME_FAULT,	/* after the clauses: struct ebpf_cost */
	FRAME_EARLY = FRAME_FAULT,	/* before the clauses: what the filter reads, up to 40 bytes */
	/* A program whose clauses are functions (gen_turn.c) uses only the words above. */
	FRAME_THREAD = -112,		/* a thread's key */
	FRAME_KEY = FRAME_THREAD - FRAME_KEY_SIZE,	/* small keys, the record of a fault, ITER's context */
	FRAME_LATE = FRAME_KEY - 8,	/* a fault was caught after the time limit */
	FRAME_ELEM = FRAME_LATE - 8,	/* an element, while a record is built */
	FRAME_WALK = FRAME_ELEM - 16,	/* context of a walk over a map (rt/map.c) */
	/*
	 * A clause with loops has no spill slots: its frame ends here, and leaves more stack to the functions it calls.
	 */
	FRAME_SPILLS = FRAME_WALK - 8 * PLAN_STACK_SLOTS,
	FRAME_SIZE = -FRAME_SPILLS,
};

/* The five words at FRAME_FAULT. */
enum { FAULT_PROBE, FAULT_CLAUSE, FAULT_OFF, FAULT_KIND, FAULT_VALUE };

/*
 * Until the first fault the word of the clause's number counts the clauses with a settled end (ir/settled.h), from
 * minus their number, less 1, up to -1, which is no clause.
 */
enum { FRAME_SETTLED = FRAME_FAULT + 8 * FAULT_CLAUSE };

#endif

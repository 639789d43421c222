/*
 * The work area of matching: what rt/match.c goes back to.
 */
#ifndef DTAP_BPF_RT_MATCH_H
#define DTAP_BPF_RT_MATCH_H

/* Words: where it is in the code and the string, how deep the stack is, where it began, what came of it; the slots;
 * the stack, two words an entry. */
enum {
	MATCH_PC, MATCH_POS, MATCH_SP, MATCH_START, MATCH_RESULT,
	MATCH_SAVED,
	MATCH_SLOTS = 64,
	MATCH_STACK = MATCH_SAVED + MATCH_SLOTS,
	MATCH_DEPTH = 1024,
	MATCH_WORDS = MATCH_STACK + 2 * MATCH_DEPTH,
};

/* Of the last match the first slots and the string are kept (unit.h, match_off). */
enum { MATCH_KEPT = 20 };

#endif

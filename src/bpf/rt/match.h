/*
 * The work area of matching (rt/match.c).
 */
#ifndef DTAP_BPF_RT_MATCH_H
#define DTAP_BPF_RT_MATCH_H

enum {
	MATCH_MAX_CODE = 2048,
	MATCH_MAX_SLOTS = 20,
	MATCH_MAX_ROWS = 4096,		/* slots of all instructions and of the match */
};

/*
 * Words.  There are two lists and two sets of rows, for the current position and for the one before it; they change
 * places with each position (MATCH_TURN).
 */
enum {
	MATCH_POS, MATCH_TURN,
	MATCH_N, MATCH_LAST_N,	/* instructions in the list of this position, of the last one */
	MATCH_AT,		/* how many of the last list are done */
	MATCH_BEGUN,		/* the path that begins at this position, the least preferred, was started */
	MATCH_WAY,		/* the next step (match.c); 0: none */
	MATCH_DEPTH,		/* other branches of splits, on the stack */
	MATCH_OVER, MATCH_RESULT,
	MATCH_SAVED,		/* at the end: the slots, numbers of 32 bits, MATCH_UNSET for an empty one */
	MATCH_SEEN = MATCH_SAVED + MATCH_MAX_SLOTS / 2,	/* a bit per instruction: reached at this position */
	MATCH_STACK = MATCH_SEEN + MATCH_MAX_CODE / 64,	/* steps, 32 bits each */
	MATCH_LISTS = MATCH_STACK + MATCH_MAX_CODE / 2,	/* numbers of instructions, 16 bits each */
	MATCH_ROWS = MATCH_LISTS + 2 * MATCH_MAX_CODE / 4,	/* numbers of 32 bits: the slots of each instruction */
	MATCH_WORDS = MATCH_ROWS + MATCH_MAX_ROWS + 16,	/* the verifier assumes a longer last row */
};

#define MATCH_UNSET 0xffffffffu

/* @sizes of rt_match: words of code, all words << 16, bytes of a string << 32, and: */
enum { MATCH_SLOTS_SHIFT = 56, MATCH_ANCHORED_SHIFT = 63 };

/* What is kept of the last match: these words, the slots, and the string (unit.h, match_off). */
enum { MATCH_KEPT = MATCH_MAX_SLOTS / 2 };

#endif

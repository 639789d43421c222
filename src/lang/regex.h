/*
 * Regular expressions of SystemTap's =~ and !~: POSIX extended ones, but with \ as an escape in bracket expressions.
 * They are compiled to code for a machine that follows all alternatives in parallel (bpf/rt/match.c).
 *
 * An instruction is a word: enum regex_op | x << 16 | y << 32.  Sets of bytes, four words each, follow the code.  The
 * last set has the bytes with which a match may begin: all bytes if a match may be empty.
 * The leftmost match is found, and of several that begin there the longest.  If several paths lead to it, the groups
 * are from the path that prefers earlier alternatives and longer repetitions.
 */
#ifndef DTAP_LANG_REGEX_H
#define DTAP_LANG_REGEX_H

#include <stdbool.h>
#include <stdint.h>

struct arena;

enum regex_op {
	REGEX_FAIL,		/* the last instruction */
	REGEX_CHAR,		/* the byte x; this and the next two continue at y */
	REGEX_ANY,		/* any byte */
	REGEX_SET,		/* a byte of the set whose first word has the index x */
	REGEX_SPLIT,		/* continue at x and at y; x is preferred */
	REGEX_JMP,		/* continue at x */
	REGEX_SAVE,		/* store this position in slot x */
	REGEX_BEGIN, REGEX_END,	/* of the string */
	REGEX_MATCH,
};

enum {
	REGEX_GROUPS = 10,	/* groups that can be read; 0 is the whole match */
	REGEX_SLOTS = 2 * REGEX_GROUPS,	/* 2 n and 2 n + 1: the start and end of group n */
	REGEX_MAX_CODE = 2048,
	REGEX_MAX_ROWS = 4096,	/* slots of all instructions and the match */
};

struct regex {
	uint64_t *words;
	uint32_t ncode, nwords;	/* words of code; of code and sets */
	uint32_t ngroups;	/* groups in the expression, with the whole */
	uint32_t nslots;	/* slots that the code stores to; 0: the code only tells whether it matches */
	bool anchored;		/* it matches at the string's start or not at all */
};

/* Compile @text into @a; @groups: with the positions of groups.  NULL on failure, with a message at *err. */
struct regex *regex_compile(struct arena *a, const char *text, bool groups, const char **err);

#endif

/*
 * Regular expressions of SystemTap's =~ and !~: POSIX extended ones, compiled to code for a machine that goes back
 * (bpf/rt/match.c).
 *
 * An instruction is a word: enum regex_op | x << 16 | y << 32.  Sets of bytes, four words each, follow the code.
 * The first match from the left is found; of several that begin there the one that prefers the earlier alternative
 * and the longer repetition.
 */
#ifndef DTAP_LANG_REGEX_H
#define DTAP_LANG_REGEX_H

#include <stdint.h>

struct arena;

enum regex_op {
	REGEX_FAIL,		/* the last of the code */
	REGEX_CHAR,		/* the byte x */
	REGEX_ANY,		/* any byte */
	REGEX_SET,		/* a byte of the set whose first word has the number x */
	REGEX_SPLIT,		/* go on at x, and if that fails at y */
	REGEX_JMP,		/* go on at x */
	REGEX_SAVE,		/* slot x is this position */
	REGEX_BEGIN, REGEX_END,	/* the string's */
	REGEX_PROGRESS,		/* not the position that slot x is */
	REGEX_MATCH,
};

enum {
	REGEX_SLOTS = 64,	/* 2 n and 2 n + 1: where group n begins and ends; 0 is the whole */
	REGEX_GROUPS = 10,
	REGEX_MAX_CODE = 4096,
};

struct regex {
	uint64_t *words;
	uint32_t ncode, nwords;	/* words of code, and with the sets */
};

/* Compile @text into @a.  NULL, and why not at *err. */
struct regex *regex_compile(struct arena *a, const char *text, const char **err);

#endif

/*
 * Shared by names.c, which resolves stacks, and names_text.c, which prints them.  Not for other files.
 */
#ifndef DTAP_OUT_NAMES_PRIV_H
#define DTAP_OUT_NAMES_PRIV_H

#include "base/bytemap.h"
#include "out/names.h"
#include "probe/symbols.h"

struct arena;
struct pycode;

/* A frame: native, or Python's. */
struct frame {
	struct symbol sym;
	const struct pycode *code;	/* set for a Python frame, which has no symbol */
	uint32_t line;
	int32_t instr;			/* bytes of its code before the instruction, in a stack by instructions; -1: not shown */
};

struct stack {
	uint32_t pid;
	bool user, by_instr;
	bool unnamed;			/* of the kernel, and nobody has asked for it yet */
	uint32_t most;			/* unnamed: frames to show; 0: all */
	uint32_t nframes;
	struct frame *frames;
	const uint64_t *same;		/* of names_same(): the first number with these frames; NULL: not asked yet */
};

struct names {
	struct arena *arena;
	struct symbols *symbols;
	struct bytemap stacks;		/* by number */
	struct bytemap codes;		/* struct pycode by number */
	struct bytemap texts;		/* of names_same: pid and text, or a stack's digest -> the number, in the arena */
	uint64_t nstacks;
	uint32_t npages, nrows;		/* used entries of the tables of abi/unwind.h */
	bool numbers;			/* -x noresolve */
	size_t max;			/* bytes of memory */
};

/* Stack @number with its names, or NULL. */
const struct stack *names_stack(const struct names *n, uint64_t number);

/* Is @max reached? */
bool names_full(const struct names *n);

#endif

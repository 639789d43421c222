/*
 * What the parts of pystacks share: a process that is read, and its threads' frames.
 */
#ifndef DTAP_PROBE_PYSTACKS_PRIV_H
#define DTAP_PROBE_PYSTACKS_PRIV_H

#include "abi/python.h"
#include "probe/pyoffsets.h"
#include "probe/pystacks.h"
#include "probe/pyvalue.h"
#include "probe/remote.h"

struct natives;

enum { PYSTACKS_FRAMES = 1 << 12 };	/* the most frames of a thread */

/* A frame as it was read. */
struct pystacks_raw {
	uint64_t addr, code, instr;
	uint64_t entry;		/* an address in the native frame of its evaluator's call; 0: unknown */
	bool first;
};

struct pystacks_reader {
	struct arena *arena;
	struct remote mem;
	struct abi_python py;
	struct pystacks_raw *raw[2];	/* of the last two attempts, PYSTACKS_FRAMES each */
	struct natives *natives;	/* NULL: not needed */
	const struct pyoffsets_slots *slots;	/* for variables; NULL: they are unknown */
	bool locals;			/* all of them are asked for */
	struct pyvalues values;
	struct pycode **codes;		/* code objects read, and their addresses */
	uint64_t *code_addrs;
	size_t ncodes, codes_cap, addrs_cap;
};

/* The code object at @addr, read once; NULL: it cannot be read. */
const struct pycode *pystacks_code(struct pystacks_reader *r, uint64_t addr);

/*
 * The frames of the thread whose state is at @state.  *whole: the chain reached the outermost frame, or the limit;
 * the chain is broken while a frame is being created.
 */
size_t pystacks_walk(const struct pystacks_reader *r, uint64_t state, struct pystacks_raw *v, bool *whole);

/* Read the stack of the thread of @st, which has been read, again, with all that belongs to it. */
void pystacks_read_again(struct pystacks_reader *r, struct pystack *st);

#endif

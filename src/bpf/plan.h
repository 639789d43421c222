/*
 * Where a clause keeps its values: the decisions that are made once per clause, before any program with it
 * is generated.
 *
 * Integers live in R6 to R8, which calls preserve, or in stack slots, or (many of them) in scratch memory.  Those of a
 * clause with loops all live there: the verifier does not track that memory's content, and so has nothing to compare
 * when it comes to an instruction again (gen_flow.c).  Strings never move: each register that holds one has a fixed
 * buffer in scratch memory, shared by registers that are not alive at the same time, or is a constant in the read-only
 * map.  So the verifier always sees constant offsets.  An instruction whose only use can take its result straight into
 * place (a key, a record's field, a branch) is late: it is generated there.
 */
#ifndef DTAP_BPF_PLAN_H
#define DTAP_BPF_PLAN_H

#include "ir/ir.h"

enum loc_kind {
	LOC_NONE,		/* never read, or late */
	LOC_CONST,		/* v: the value */
	LOC_REG,		/* v: R6 to R8 */
	LOC_STACK,		/* v: number of the spill slot */
	LOC_SCRATCH,		/* v: integers: number of the spill slot; strings: of the buffer */
	LOC_RODATA,		/* strings: v is the offset in EBPF_MAP_RODATA */
};

struct loc {
	enum loc_kind kind;
	int64_t v;
};

/* What a clause needs of the program around it. */
enum plan_need {
	NEED_SCRATCH = 1,
	NEED_TIME = 2,
	NEED_PROBE = 4,		/* the index of the probe that fired */
	NEED_TASK = 8,		/* pid and tid as the user knows them */
	NEED_FAULT = 16,	/* it can fault */
	NEED_CLAUSE_VARS = 32,	/* this-> */
	NEED_STATE = 64,	/* the state of gen_flow.c */
	NEED_CALLS = 128,	/* frames of procedures */
	NEED_LOOPS = 256,	/* turns (gen_turn.c); it needs the state, too */
	NEED_ITERS = 512,
	NEED_GATE = 1024,	/* it may end the firing: check after it */
};

struct copyin {
	const struct ir_insn *insn;
	uint32_t off, size;	/* off from the start of the unit's copyin area */
};

/* The code inside a TRY. */
struct region {
	const struct ir_insn *insn;	/* the TRY */
	struct region *outer;		/* the region around it, or NULL */
	uint32_t number;
};

struct plan {
	struct loc *locs;			/* by register */
	const struct ir_insn **late;		/* by register: the late instruction that makes its value; or NULL */
	struct ir_block *const *blocks;		/* the reachable ones, in the order to generate */
	uint32_t nblocks;
	uint32_t needs;				/* enum plan_need */
	uint32_t kernel_needs;		/* the same, for programs in the kernel only */
	struct region **regions;		/* by block: the region of its start; NULL: unknown */
	uint32_t nregions;
	uint32_t nspills;			/* in scratch memory */
	uint32_t nstrs;				/* string buffers */
	uint32_t work;				/* bytes of the work area, for one instruction at a time */
	struct copyin *copyins;
	uint32_t ncopyins;
	size_t copyins_cap;
	uint32_t copyin_used;			/* bytes of the copyin area, which each clause uses from its start */
};

struct ebpf_private;

enum { PLAN_STACK_SLOTS = 8 };
enum { PLAN_COPYOUT = 4096 };		/* bytes that one copyout() may write */
enum { PLAN_STACK_FRAMES = 127 };	/* what the kernel walks at most (kernel.perf_event_max_stack) */

/* Make @c's plan.  @priv has the read-only strings; its copyin area grows. */
struct plan *plan_new(const struct ir_prog *prog, const struct ir_clause *c, struct ebpf_private *priv);

/* --- tries.c ----------------------------------------------------------------------------------------- */

/* Set @plan's regions; its blocks are known. */
void tries_plan(struct arena *a, const struct ir_clause *c, struct plan *plan);

/* --- regs.c ------------------------------------------------------------------------------------------ */

/* One value's life: from the first position it is written at to the last it is read at. */
struct interval {
	ir_reg reg;
	uint32_t start, end;
};

/* Give the @n integer @lives registers or spill slots; sorts @lives.  Returns the spill slots in scratch. */
uint32_t regs_integers(struct arena *a, struct interval *lives, uint32_t n, struct loc *locs);

/* The same, with all in scratch. */
uint32_t regs_scratch(struct arena *a, struct interval *lives, uint32_t n, struct loc *locs);

/* Give the string @lives buffers; returns how many there are. */
uint32_t regs_strings(struct arena *a, struct interval *lives, uint32_t n, struct loc *locs);

#endif

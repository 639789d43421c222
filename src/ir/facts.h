/*
 * The facts in the IR's tables, for the parts that handle every instruction: the printer, the reader, the checker and
 * the code generators.
 */
#ifndef DTAP_IR_FACTS_H
#define DTAP_IR_FACTS_H

#include "ir/ir.h"

/* What an instruction has in addition to its operands (ops.def, "attributes"). */
enum ir_attr {
	IR_ATTR_NONE,
	IR_ATTR_IMM,
	IR_ATTR_STR,
	IR_ATTR_WIDTH,
	IR_ATTR_FN,
	IR_ATTR_BI,
	IR_ATTR_VAR,
	IR_ATTR_MAP,
	IR_ATTR_AGG,
	IR_ATTR_REC,
	IR_ATTR_ITER,
	IR_ATTR_PART,
	IR_ATTR_FMT,
	IR_ATTR_JUMP,
	IR_ATTR_BRANCH,
};

/*
 * What an instruction may do in addition to computing its result.  Memory is either the clause's own (scratch; readable
 * kernel memory counts as scratch) or the traced process's.
 */
enum ir_effect {
	IR_FAULTS = 1 << 0,	/* it may fault */
	IR_FILLS = 1 << 1,	/* it may fault because its map is full: an ordered map that does not wrap */
	IR_STEADY = 1 << 2,	/* whether it faults does not change during a firing */
	IR_R_VAR = 1 << 3,	/* reads, writes: a variable */
	IR_W_VAR = 1 << 4,
	IR_R_MAP = 1 << 5,	/* elements of a map */
	IR_W_MAP = 1 << 6,
	IR_R_SCRATCH = 1 << 7,	/* the clause's memory */
	IR_W_SCRATCH = 1 << 8,
	IR_R_USER = 1 << 9,	/* the traced process's memory */
	IR_W_USER = 1 << 10,
	IR_R_STATE = 1 << 11,	/* iterations, TRYs, the budget, the last match */
	IR_W_STATE = 1 << 12,
	IR_ACTS = 1 << 13,	/* effect outside: a record, aggregation or signal, the end of session or clause */
	IR_ENDS = 1 << 14,	/* it ends a block */
	IR_LONG = 1 << 15,	/* it uses its map in several steps, between which others could change the map */
	IR_TASKS = 1 << 16,	/* it needs data about processes that no BPF helper returns */
	IR_MAKES = 1 << 17,	/* a string result can be written directly to where another instruction needs it */
	IR_TAKES = 1 << 18,	/* it can have each string operand written directly to where it needs it; */
	IR_TAKES_KEYS = 1 << 19,	/* each except the first operand */
	IR_CURRENT = 1 << 20,	/* what it returns is of the thread that the probe interrupts */
	IR_MEMORY_READ = IR_R_SCRATCH | IR_R_USER,
	IR_MEMORY_WRITTEN = IR_W_SCRATCH | IR_W_USER,
	IR_WRITES = IR_W_VAR | IR_W_MAP | IR_W_SCRATCH | IR_W_USER | IR_W_STATE,
};

/* What an instruction needs when it runs.  The code generator provides each once per clause. */
enum ir_need {
	IR_N_TIME = 1 << 0,		/* the firing's time */
	IR_N_PROBE = 1 << 1,		/* the probe that fired */
	IR_N_IDS = 1 << 2,		/* the ids of the process and the thread */
	IR_N_FLOW = 1 << 3,		/* the state of TRYs, of the budget and of caught faults */
	IR_N_LOOPS = 1 << 4,		/* its clause can run an instruction more than once */
	IR_N_ITERATION = 1 << 5,	/* a buffer for a map's elements, and text memory; implies FLOW and LOOPS */
	IR_N_PROCEDURES = 1 << 6,	/* frames of procedures; implies FLOW and LOOPS */
	IR_N_KEY = 1 << 7,		/* memory for the key of its map or aggregation */
	IR_N_RECORD = 1 << 8,		/* memory for its record, and the key of a statistic in it */
	IR_N_TEXT = 1 << 9,		/* memory in which a string is built */
	IR_N_GROUPS = 1 << 10,		/* memory for the groups of a regular expression */
	IR_N_FRAMES = 1 << 11,		/* memory for a stack and its owner */
	IR_N_COMPONENTS = 1 << 12,	/* memory for the components of a path */
	IR_N_BLOCK = 1 << 13,		/* memory that lasts until the end of the clause: copyin's, alloca's */
	IR_N_BUFFER = 1 << 14,		/* a buffer for copying */
};

/* Where an operation can run. */
enum ir_where {
	IR_ANY,
	IR_KERNEL,		/* in programs that the kernel runs */
	IR_TARGET,		/* in programs that run in the traced process */
	IR_STOPPED,		/* in the kernel, for probes whose context is the process's registers */
};

struct ir_place {
	enum ir_where where;
	const char *why;	/* the message for other places; NULL with IR_ANY */
};

struct ir_op_fact {
	const char *text;
	char result;		/* as in ops.def */
	const char *operands;
	enum ir_attr attr;
	uint32_t effects, needs;
};

/* The effects of @i; of CALL and BUILTIN, those of what it calls.  EMIT also faults if its record has a statistic. */
uint32_t ir_effects(const struct ir_insn *i);

/* What @i needs, enum ir_need, and where it can run; includes what CALL and BUILTIN call. */
uint32_t ir_needs(const struct ir_insn *i);
struct ir_place ir_place(const struct ir_insn *i);
struct ir_place ir_fn_place(enum ir_fn fn);

/* The effects of the runtime function @fn, of the builtin @bi. */
uint32_t ir_fn_effects(enum ir_fn fn);

/* Does the result of @fn follow from its operands alone, and does it do nothing else? */
bool ir_fn_is_pure(enum ir_fn fn);
uint32_t ir_builtin_effects(enum ir_builtin bi);

/* May @i fault?  With IR_FILLS, only if its map, which must be set, can be full. */
bool ir_may_fault(const struct ir_insn *i);

/*
 * Iterates over the instructions of clauses:
 *
 *	struct ir_walk w = ir_walk_prog(p);
 *
 *	for (const struct ir_insn *i; (i = ir_next(&w));)
 *		...
 */
struct ir_walk {
	struct ir_clause *const *clauses;	/* the remaining ones */
	uint32_t nclauses;
	struct ir_block *const *blocks;		/* of the current clause */
	uint32_t nblocks, block, insn;
};

static inline struct ir_walk ir_walk_blocks(struct ir_block *const *blocks, uint32_t n)
{
	return (struct ir_walk){ .blocks = blocks, .nblocks = n };
}

static inline struct ir_walk ir_walk_clause(const struct ir_clause *c)
{
	return ir_walk_blocks(c->blocks, c->nblocks);
}

static inline struct ir_walk ir_walk_clauses(struct ir_clause *const *clauses, uint32_t n)
{
	return (struct ir_walk){ .clauses = clauses, .nclauses = n };
}

static inline struct ir_walk ir_walk_prog(const struct ir_prog *p)
{
	return ir_walk_clauses(p->clauses, p->nclauses);
}

/* The next instruction, or NULL after the last. */
static inline struct ir_insn *ir_next(struct ir_walk *w)
{
	for (;;) {
		for (; w->block < w->nblocks; w->block++, w->insn = 0) {
			if (w->insn < w->blocks[w->block]->n)
				return &w->blocks[w->block]->insns[w->insn++];
		}
		if (!w->nclauses)
			return NULL;
		w->blocks = w->clauses[0]->blocks;
		w->nblocks = w->clauses[0]->nblocks;
		w->block = w->insn = 0;
		w->clauses++;
		w->nclauses--;
	}
}

/* The instruction that ends @b. */
static inline const struct ir_insn *ir_end(const struct ir_block *b)
{
	return &b->insns[b->n - 1];
}

/* The name of an iteration's order in the text form. */
const char *ir_sort_text(enum ir_sort sort);

/* The row of @op, which is below IR_OP_MAX. */
const struct ir_op_fact *ir_op_fact(enum ir_op op);

/*
 * The types of the operands that @i takes, given its attributes: *n of them in @types, which has room for
 * IR_MAX_OPERANDS.  IR_VOID: any type.  *result is the result's type, IR_VOID if there is none.  For MOV both are
 * IR_VOID: its result has the type of its operand (ir_check).
 */
enum { IR_MAX_OPERANDS = IR_MAX_FIELDS + IR_MAX_KEYS + 2 };
void ir_insn_types(const struct ir_insn *i, enum ir_type *types, uint32_t *n, enum ir_type *result);

/*
 * The successors of @b; returns how many.  Both targets of a TRY are successors of its block, but the way from a
 * faulting instruction to the handler is no edge.  Both targets of an ENTER are successors, but LEAVE has none.
 */
unsigned int ir_successors(const struct ir_block *b, struct ir_block *out[2]);

/* The successors of @b at whose start no register may be live: bit n for ir_successors's out[n]. */
unsigned int ir_forgets(const struct ir_block *b, struct ir_block *const out[2], unsigned int n);

/*
 * The map whose elements @i looks up, changes or iterates over, or whose statistic it emits; NULL: none.  IKEY and
 * IVALUE have none: INEXT has copied the key and value.
 */
struct ir_map *ir_insn_map(const struct ir_insn *i);

#endif

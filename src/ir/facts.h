/*
 * What the tables of the IR say, for the parts that work on any instruction: the printer, the reader, the
 * checker and the code generators.
 */
#ifndef DTAP_IR_FACTS_H
#define DTAP_IR_FACTS_H

#include "ir/ir.h"

/* What an instruction carries beside its operands (ops.def, "attributes"). */
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

struct ir_op_fact {
	const char *text;
	char result;		/* as in ops.def */
	const char *operands;
	enum ir_attr attr;
	bool ends;		/* ends a block */
};

/* The order of an iteration as the text form has it. */
const char *ir_sort_text(enum ir_sort sort);

/* The row of @op, which is below IR_OP_MAX. */
const struct ir_op_fact *ir_op_fact(enum ir_op op);

/*
 * The types of the operands that @i takes, given what it carries: *n of them in @types, which has room for
 * IR_MAX_OPERANDS.  IR_VOID where any type will do.  *result is IR_VOID when there is none, else the type;
 * for MOV, which takes any, both are IR_VOID and *result is true only of the operand's type (ir_check).
 */
enum { IR_MAX_OPERANDS = IR_MAX_FIELDS + IR_MAX_KEYS + 2 };
void ir_insn_types(const struct ir_insn *i, enum ir_type *types, uint32_t *n, enum ir_type *result);

/* The blocks that control goes to from the end of @b: how many.  A fault's way to where TRY says is not one, TRY's own
 * is; a procedure's way back is not one, ENTER's to behind it is. */
unsigned int ir_successors(const struct ir_block *b, struct ir_block *out[2]);

/* May no register be alive at the start of @b's successors, or some of them: bit n for ir_successors's out[n]. */
unsigned int ir_forgets(const struct ir_block *b, struct ir_block *const out[2], unsigned int n);

/*
 * The map whose elements @i looks up, changes or goes through, a statistic that it emits included; NULL: none.  The key
 * and value that an iteration is at were copied by its INEXT.
 */
struct ir_map *ir_insn_map(const struct ir_insn *i);

#endif

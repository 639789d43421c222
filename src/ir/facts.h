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

const struct ir_op_fact *ir_op_fact(enum ir_op op);

/*
 * The types of the operands that @i takes, given what it carries: *n of them in @types, which has room for
 * IR_MAX_OPERANDS.  IR_VOID where any type will do.  *result is IR_VOID when there is none, else the type;
 * for MOV, which takes any, both are IR_VOID and *result is true only of the operand's type (ir_check).
 */
enum { IR_MAX_OPERANDS = IR_MAX_FIELDS + IR_MAX_KEYS + 2 };

void ir_insn_types(const struct ir_insn *i, enum ir_type *types, uint32_t *n, enum ir_type *result);

#endif

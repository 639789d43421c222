/*
 * Runs a clause of IR as ops.def and funcs.def say, slowly and plainly: what the lowering is tested with.
 *
 * Memory is the test's own, kernel's and user's alike.  Of the runtime library only what needs no thought is
 * here: copyin, copyinstr, stringof, strlen, strjoin, byteat.
 */
#ifndef DTAP_TESTS_D_EVAL_H
#define DTAP_TESTS_D_EVAL_H

#include <stdbool.h>
#include <stdint.h>

#include "ir/ir.h"

enum { EVAL_MAX = 64, EVAL_STR = 64 };

struct eval_value {
	enum ir_type type;
	int64_t i;
	char s[EVAL_STR];
};

struct eval_element {
	const struct ir_map *map;
	struct eval_value keys[4], value;
};

struct eval {
	const struct ir_prog *prog;
	int64_t args[10];			/* of the probe */

	struct eval_value vars[EVAL_MAX];	/* by ir_var's id; kept from one run to the next */
	struct eval_element elements[EVAL_MAX];
	unsigned int nelements;

	/* What the last run did. */
	const struct ir_rec *rec;		/* the record it wrote, or NULL */
	struct eval_value fields[EVAL_MAX];
	const struct ir_agg *agg;		/* the aggregation it added to last, and the operands */
	struct eval_value agg_args[EVAL_MAX];
	bool exiting, faulted;
	unsigned int user_loads;
};

void eval_init(struct eval *e, const struct ir_prog *p);
void eval_run(struct eval *e, const struct ir_clause *c);

#endif

/*
 * Ends of a clause that only some of the probe's arguments decide, such as that of a predicate copyinstr(arg1) == "f".
 *
 * A block is settled if no way to it, and nothing in it, does more than compute from these arguments and from the
 * strings at them.  Where a settled block returns, the clause has done nothing, and will do nothing whenever these
 * arguments are the same.
 */
#ifndef DTAP_IR_SETTLED_H
#define DTAP_IR_SETTLED_H

#include "ir/facts.h"

struct arena;

/* By number of the block: is it settled?  @args: bit n for argument n.  NULL: the clause never returns from one. */
const bool *ir_settled(const struct ir_clause *c, uint32_t args, struct arena *arena);

#endif

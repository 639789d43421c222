/*
 * DTrace's messages about errors while tracing: clauses that faulted, and lost data.  Lines for
 * standard error, each with its newline; @prog is the name at their start ("dtrace").
 */
#ifndef DTAP_OUT_ERROR_H
#define DTAP_OUT_ERROR_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/record.h"

struct ir_near;
struct out_sink;

/* A clause that faulted: ABI_REC_ERROR's slots, and the probe that fired. */
struct out_fault {
	uint32_t clause;		/* from 0, in the script's order */
	uint32_t id;			/* the probe's */
	const char *prov, *mod, *func, *name;
	int64_t pc;			/* the number of the instruction in the program; -1: not known */
	uint32_t fault;			/* enum abi_fault */
	uint64_t value;			/* depends on @fault; a bad address, an index */
	const struct ir_near *near;	/* where in the script; NULL: not known */
	const char *text;		/* of ABI_FAULT_ERROR */
};

/* "dtrace: error in dt_clause_0 for probe ID 1 (dtrace:::BEGIN): ..." */
void out_fault(struct out_sink *s, const char *prog, const struct out_fault *f);

/* "divide-by-zero": the text of a fault, never NULL. */
const char *out_fault_text(uint32_t fault);

/* Kinds of drops: enum abi_drop, and those of the tracer itself. */
enum out_drop {
	OUT_DROP_SPEC = ABI_DROP_MAX,
	OUT_DROP_SPEC_NONE,
	OUT_DROP_CORRUPT,	/* a traced process wrote invalid data */
	OUT_DROP_NAMELESS,	/* no memory left for the names of a stack or code object */
	OUT_DROP_BUDGET,	/* processes were not traced for a while, since that would have cost too much */
	OUT_DROP_MAX
};

/*
 * @n drops of @kind (enum abi_drop or out_drop) since the last such line, on CPU @cpu; -1: on any.  @tags: put the
 * kind's name in brackets in front (-x droptags).
 */
void out_drops(struct out_sink *s, const char *prog, unsigned int kind, uint64_t n, int cpu, bool tags);

/* "record", "aggregation" ...: a word for the kind. */
const char *out_drop_name(unsigned int kind);

/* DTrace's number of the kind, and its text for @n of them. */
int out_drop_number(unsigned int kind);
void out_drop_words(struct out_sink *s, unsigned int kind, uint64_t n);

#endif

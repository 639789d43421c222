/*
 * DTrace's words for what went wrong while tracing: clauses that faulted, and what was lost.  Lines for
 * standard error, each with its newline; @prog is the name in front of them ("dtrace").
 */
#ifndef DTAP_OUT_ERROR_H
#define DTAP_OUT_ERROR_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/record.h"

struct out_sink;

/* A clause that ended early: ABI_REC_ERROR's slots, and the probe that it was for. */
struct out_fault {
	uint32_t epid;
	uint32_t id;			/* the probe's */
	const char *prov, *mod, *func, *name;
	uint32_t action;		/* from 1; 0: the predicate */
	int64_t off;			/* of the instruction; -1: not known */
	uint32_t fault;			/* enum abi_fault */
	uint64_t value;			/* the address of a bad one */
};

void out_fault(struct out_sink *s, const char *prog, const struct out_fault *f);

/* "divide-by-zero": the text of a fault, never NULL. */
const char *out_fault_text(uint32_t fault);

/* What is lost: enum abi_drop, and what the tracer itself loses. */
enum out_drop { OUT_DROP_SPEC = ABI_DROP_MAX, OUT_DROP_SPEC_NONE, OUT_DROP_MAX };

/*
 * @n things of @kind (enum abi_drop or out_drop) were lost since the last such line, on CPU @cpu; -1: on any.  @tags:
 * the kind's name in brackets goes in front (-x droptags).
 */
void out_drops(struct out_sink *s, const char *prog, unsigned int kind, uint64_t n, int cpu, bool tags);

/* DTrace's number of the kind, and its words for @n of them. */
int out_drop_number(unsigned int kind);
void out_drop_words(struct out_sink *s, unsigned int kind, uint64_t n);

#endif

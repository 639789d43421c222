/*
 * DTrace's words for what went wrong while tracing: clauses that faulted, and what was lost.  Lines for
 * standard error, each with its newline; @prog is the name in front of them ("dtrace").
 */
#ifndef DTAP_OUT_ERROR_H
#define DTAP_OUT_ERROR_H

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

/* @n things of @kind were lost since the last such line, on CPU @cpu; -1: on any. */
void out_drops(struct out_sink *s, const char *prog, enum abi_drop kind, uint64_t n, int cpu);

#endif

/*
 * A program of the IR in the target place, with the agent's part played by the test: this process is tracer and target.
 */
#ifndef DTAP_TESTS_IR_INSIDE_H
#define DTAP_TESTS_IR_INSIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/ebpf.h"
#include "place/place.h"

struct inside;

/* The clauses of one program, as for ebpf_compile. */
struct inside_code {
	const struct ebpf_unit *unit;
	struct ir_clause *const *clauses, *const *errors;
	unsigned int nclauses, nerrors;
	const struct abi_probe *probes;		/* the table of probes; the second is ERROR's */
	unsigned int nprobes;
};

/* @compile: by the compiler, else the interpreter runs it.  NULL, and why at *err, which is allocated. */
struct inside *inside_open(const struct inside_code *code, bool compile, char **err);
void inside_close(struct inside *in);	/* accepts NULL */

/* Run it in this thread, which has a lane of its own if it is not the first one.  False: it cannot be run. */
bool inside_run(struct inside *in, const uint64_t ctx[11]);
bool inside_run_often(struct inside *in, const uint64_t ctx[11], int64_t times);

/* What the tracer sees of it. */
struct place *inside_place(struct inside *in);

#endif

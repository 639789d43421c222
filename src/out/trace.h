/*
 * The lines of D's output: what stands in front of a record without -q, what -F makes of it, and how
 * trace() prints a value.  DTrace guide, "Output Formatting" and "dtrace(1M) Utility".
 */
#ifndef DTAP_OUT_TRACE_H
#define DTAP_OUT_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "ir/layout.h"

struct out_sink;

/* One firing of one clause. */
struct out_firing {
	uint32_t cpu;
	uint32_t id;		/* the probe's, as dtrace -l shows it */
	uint32_t epid;		/* the enabled probe's */
	uint32_t rec;		/* which of the clause's records */
	uint64_t time_ns;	/* these and the id tell the clauses of one firing from those of another */
	uint32_t tid;
	const char *prov, *func, *name;
};

/* The state that goes from line to line.  Zero it and set the first three. */
struct out_lines {
	bool quiet;		/* -q */
	bool flow;		/* -F: entries and returns indent */
	unsigned int rawbytes;	/* strings are tables of that many bytes; 0: text */
	bool headed;		/* the column titles were printed */
	struct out_firing last;	/* its names are not looked at */
	unsigned int indent;
};

/*
 * What stands before a record's own output: the titles the first time, then CPU, probe and name.  @next: the
 * firing after this one when it is known, else NULL; under -F it tells the last clause of a return.
 */
void out_line_begin(struct out_sink *s, struct out_lines *l, const struct out_firing *f,
		    const struct out_firing *next);

/* The end of the record's line. */
void out_line_end(struct out_sink *s, const struct out_lines *l);

/* trace(): the value in the column of its size, or bare when quiet. */
void out_trace(struct out_sink *s, const struct ir_value *v, const struct ir_slot *slot, const struct out_lines *l);

/* tracemem(): the @n bytes as a table in hexadecimal and as text. */
void out_bytes(struct out_sink *s, const unsigned char *bytes, size_t n);

/* A value as trace() prints it, with the columns of an aggregation's key. */
void out_key(struct out_sink *s, const struct ir_value *v, const struct ir_slot *slot);

#endif

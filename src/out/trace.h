/*
 * The lines of D's output: the start of a record's line without -q and with -F, and how trace() prints a value.
 * DTrace guide, "Output Formatting" and "dtrace(1M) Utility".
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
	uint64_t time_ns;	/* this, tid and id identify a firing */
	uint32_t tid;
	const char *prov, *func, *name;
};

/* State kept between lines.  Zero it and set the first three. */
struct out_lines {
	bool quiet;		/* -q */
	bool flow;		/* -F: entries and returns indent */
	unsigned int rawbytes;	/* strings are printed as tables of that many bytes; 0: as text */
	bool headed;		/* the column titles were printed */
	struct out_firing last;	/* its names are not used */
	unsigned int indent;
	/* The last column of CPU, probe and name, and what it is of, whose names stay as they are; most lines have the same. */
	char column[128];
	size_t column_len;	/* 0: there is none */
	struct out_firing column_of;
};

/*
 * Print what precedes a record's own output: the titles the first time, then CPU, probe and name.  @next: the
 * firing after this one if it is known, else NULL; -F needs it to find the last clause of a return.
 */
void out_line_begin(struct out_sink *s, struct out_lines *l, const struct out_firing *f,
		    const struct out_firing *next);

/* The end of the record's line. */
void out_line_end(struct out_sink *s, const struct out_lines *l);

/* trace(): the value in a column of its size, or without padding when quiet. */
void out_trace(struct out_sink *s, const struct ir_value *v, const struct ir_slot *slot, const struct out_lines *l);

/* Are the @n bytes of an array of char text for trace(): nothing but what is printed, then nothing but NULs? */
bool out_is_text(const unsigned char *bytes, size_t n);

/* tracemem(): the @n bytes as a table in hexadecimal and as text. */
void out_bytes(struct out_sink *s, const unsigned char *bytes, size_t n);

/* A value as trace() prints it, with the column widths of an aggregation's keys. */
void out_key(struct out_sink *s, const struct ir_value *v, const struct ir_slot *slot);

#endif

/*
 * The state of a running ready-made command, and the interface of a form of result (head.h) to it.
 */
#ifndef DTAP_CMD_READY_RUN_H
#define DTAP_CMD_READY_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cmd/ready/opts.h"
#include "cmd/ready/reads.h"
#include "dtap.h"

enum ready_format {
	READY_AS_TEXT, READY_AS_JSON, READY_AS_CSV, READY_AS_SPEEDSCOPE, READY_AS_FOLDED, READY_AS_HTML, READY_AS_SVG,
	READY_AS_CHROME, READY_AS_PPROF, READY_AS_CALLGRIND, READY_AS_PERFETTO, READY_AS_CPU_FOLDED, READY_AS_CPU_SVG,
};

struct ready_run {
	const struct ready_request *req;
	struct dtap *t;
	struct ready_reads *reads;	/* of commands with @reads, else NULL */
	FILE *out;
	enum ready_format format;
	const char *title;		/* of a picture; NULL: made of the request */
	size_t width;			/* of the terminal; 0: no terminal, lines are not limited */
	bool titled;			/* the titles have been printed */
	size_t shown;			/* rows, so far */
	bool started;			/* else there are no aggregations */
	uint64_t began_ns;		/* CLOCK_MONOTONIC */
	uint64_t interval_ns;		/* between tables; 0: one at the end */
	bool live;			/* redrawn on the whole terminal */
	const char *sort;		/* functions: "calls", "self" or "total" */
	const char *filter;		/* functions: only those with this text in name or file; NULL or "": all */
	void *state;			/* private to the form */
};

/* dtap_aggregations(), of all, or what was read instead; without any if Ctrl-C came before tracing began. */
static inline int ready_aggregations(const struct ready_run *r, int (*row)(void *ctx, const struct dtap_row *row), void *ctx)
{
	if (r->reads)
		return ready_reads_rows(r->reads, row, ctx);
	return r->started ? dtap_aggregations(r->t, NULL, row, ctx) : 0;
}

struct ready_form_ops {
	/* An event's record; NULL: the form has none. */
	void (*record)(struct ready_run *r, const struct dtap_record *rec);
	/* Print the result: at the end, and with -i at each interval.  0 or a negative errno. */
	int (*show)(struct ready_run *r, bool last);
	bool repeats;			/* show() may be called many times */
	void (*fini)(struct ready_run *r);
};

extern const struct ready_form_ops ready_table_ops, ready_events_ops, ready_distribution_ops, ready_tree_ops,
	ready_functions_ops;

#endif

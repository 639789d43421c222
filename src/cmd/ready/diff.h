/*
 * The difference of two call trees, read from files: folded stacks, or the JSON lines of a tree.
 *
 * Nodes are matched by the functions around them, with their files where the format has these; processes are not told
 * apart, since those of another run have other numbers.  Files are untrusted: malformed ones are refused, with the line.
 */
#ifndef DTAP_CMD_READY_DIFF_H
#define DTAP_CMD_READY_DIFF_H

#include <stdbool.h>

#include "cmd/ready/tree.h"

struct strbuf;

enum ready_side { READY_BEFORE, READY_AFTER };

struct ready_difference {
	struct ready_tree tree;
	int64_t sums[2], calls[2];	/* of each side: times or samples, and calls */
	bool is_time[2], is_number[2];	/* the unit of a side; neither is known of folded stacks */
};

/* Read a file into @d, which is zeroed before the first.  0, or a negative errno with a line in @why. */
int ready_difference_read(struct ready_difference *d, enum ready_side side, const char *path, struct strbuf *why);

/*
 * Compute what the printers need.  @folded_is_time: numbers of folded stacks are nanoseconds.  @shares: what was before is
 * scaled to the sum of what is after.  0, or a negative errno with a line in @why.
 */
int ready_difference_end(struct ready_difference *d, bool folded_is_time, bool shares, struct strbuf *why);

void ready_difference_fini(struct ready_difference *d);		/* accepts a zeroed one */

/* Print it to @r->out in the run's format.  0 or a negative errno. */
int ready_difference_print(const struct ready_difference *d, struct ready_run *r);

#endif

/*
 * A call tree, built from aggregations whose key is a stack of Python functions.
 *
 * Two aggregations make it exact without a record for each call: at each entry the time since the thread's last event
 * is added to the caller (kind entry), at each return to the returning function (kind self).  So entries and returns
 * need not be paired, and functions that have not returned count up to the last event.  Stacks that differ only in
 * lines are one node.
 */
#ifndef DTAP_CMD_READY_TREE_H
#define DTAP_CMD_READY_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytemap.h"
#include "cmd/ready/run.h"

struct strbuf;

struct ready_node {
	struct ready_node *parent, *child, *next;	/* child: the first; next: sibling */
	char *function, *file;
	uint64_t pid;
	int64_t calls, self, total;	/* self and total: ns, or samples */
	int64_t cpu_self, cpu_total;	/* of these ns, those on a CPU */
	struct {
		int64_t calls, self, total;
	} was;				/* of differences: before */
};

/* A function of a process: the sum of its nodes. */
struct ready_function {
	const struct ready_node *node;	/* one of them, while the tree exists */
	int64_t v[3], before[3];	/* calls, self, total; total once where a function calls itself */
};

struct ready_tree {
	struct ready_node **nodes;	/* the first is the root; parents come before children */
	size_t n, cap;
	struct bytemap by_name;
	bool has_calls, is_samples, has_cpu;
	bool is_difference;		/* of two runs, whose processes are one */
	size_t processes;
};

/* Read the run's aggregations.  0 or a negative errno. */
int ready_tree_read(struct ready_tree *t, struct ready_run *r);
void ready_tree_fini(struct ready_tree *t);	/* accepts a zeroed one */

/* Make the root of an empty tree.  0 or -ENOMEM. */
int ready_tree_begin(struct ready_tree *t);

/* The child of @parent for that function, created if necessary.  NULL: out of memory. */
struct ready_node *ready_tree_child(struct ready_tree *t, struct ready_node *parent, const char *function, const char *file,
				    uint64_t pid);

/* The tree has values of that kind: for readers, also where nothing was counted. */
void ready_tree_note(struct ready_tree *t, enum ready_kind kind);

/* Add @row, whose key has @stack, and whose value is of that kind, to the tree of @pid (0: of no process alone).  0 or -ENOMEM. */
int ready_tree_add(struct ready_tree *t, enum ready_kind kind, const struct dtap_value *stack, uint64_t pid,
		   const struct dtap_row *row);

/* Compute the totals when all nodes have their own values, and sort children, largest first.  0 or -ENOMEM. */
int ready_tree_end(struct ready_tree *t);

/*
 * Sum up the tree's functions in @m, whose values are struct ready_function on the heap: "before" is what "v" was until now,
 * or in a difference what the nodes were before.  0 or -ENOMEM.
 */
int ready_functions_sum(struct bytemap *m, const struct ready_tree *t);
void ready_functions_fini(struct bytemap *m);

/* Let self and total be CPU time. */
int ready_tree_use_cpu(struct ready_tree *t);

/* The number of functions that enclose it. */
size_t ready_node_depth(const struct ready_node *n);

/* Print it to @r->out in another program's format.  0 or a negative errno. */
int ready_tree_speedscope(const struct ready_tree *t, struct ready_run *r);
int ready_tree_folded(const struct ready_tree *t, struct ready_run *r);
int ready_tree_html(const struct ready_tree *t, struct ready_run *r);
int ready_tree_svg(const struct ready_tree *t, struct ready_run *r);
int ready_tree_pprof(const struct ready_tree *t, struct ready_run *r);
int ready_tree_callgrind(const struct ready_tree *t, struct ready_run *r);

/* What a profile says of itself. */
struct ready_pprof {
	const char *type, *unit;	/* of the nodes' self; NULL: as the tree says */
	uint64_t time_ns, duration_ns;	/* when it begins, of the time of day; 0: no duration */
	const char *const *comments;
	size_t ncomments;
};

/* Append the tree as a profile for pprof: profile.proto, compressed by gzip.  0 or a negative errno. */
int ready_pprof_write(const struct ready_tree *t, const struct ready_pprof *about, struct strbuf *out);

#endif

/*
 * What is known of the processes of a job: of those that are traced, and of those that have ended, until what they have left
 * behind was read.
 */
#ifndef DTAP_CMD_SERVE_KNOWN_H
#define DTAP_CMD_SERVE_KNOWN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bytemap.h"

struct labels;
struct serve_pairs;

/* Of those that have ended so many at most, those that ended last: what is left of the others is shown without labels. */
enum { KNOWN_GONE = 16384 };

/* Zeroed is empty. */
struct known {
	struct bytemap by_pid;		/* struct labels, each one block */
	struct known_gone {
		pid_t pid;
		uint64_t ms;		/* when it ended */
	} *gone;			/* a ring of @cap, a power of two; @n from @first on */
	size_t first, n, cap;
};

/* NULL: nothing. */
const struct labels *known_process(const struct known *k, pid_t pid);

/* Read what there is to know of @pid, in place of what was known.  NULL: out of memory. */
const struct labels *known_learn(struct known *k, pid_t pid, const struct serve_pairs *environment);

/* It has ended, at @ms: its last events and rows come later. */
void known_retire(struct known *k, pid_t pid, uint64_t ms);

/* What those have left that had ended before @ms was read. */
void known_forget(struct known *k, uint64_t ms);

/* All of it; it is empty then. */
void known_fini(struct known *k);

#endif

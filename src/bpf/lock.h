/*
 * Locks on global variables (IR: ir_prog.exclusive): which clauses need one, decided for all clauses of a session
 * together, and the code around each.
 *
 * A variable, an array or a statistic needs a lock if events, which run on several CPUs at a time, use it, and a clause
 * writes to it meanwhile.  Those that one clause uses together have one lock.  A clause with several operations on them
 * takes it; a clause with a single operation, which is atomic, only makes sure that nobody has it.  A lock that no
 * clause takes is left out.
 *
 * User space has no locks: a process could be killed while it holds one.
 */
#ifndef DTAP_BPF_LOCK_H
#define DTAP_BPF_LOCK_H

#include <stdbool.h>
#include <stdint.h>

struct ebpf_private;
struct gen;
struct ir_clause;
struct ir_prog;

enum lock_how { LOCK_NONE, LOCK_SHARE, LOCK_TAKE };

/* What a clause does with its lock. */
struct lock_use {
	uint8_t how;		/* enum lock_how */
	bool shared;		/* TAKE: other clauses SHARE it */
	uint32_t off;		/* of the lock in EBPF_MAP_ORDER */
};

/* Set @p's locks, which begin at @off, and is_apart.  Returns where they end. */
uint32_t lock_plan(const struct ir_prog *prog, struct ebpf_private *p, uint32_t ncpus, uint32_t off);

/* Before and after @c; jump to @skipped if the lock cannot be taken in time. */
void gen_lock(struct gen *g, const struct ir_clause *c, uint32_t skipped);
void gen_unlock(struct gen *g, const struct ir_clause *c);

#endif

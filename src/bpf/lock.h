/*
 * Who has global variables to itself (IR: ir_prog.exclusive): which clauses need that, decided for all of a session's
 * clauses together, and what is generated around each.
 *
 * A variable, an array or a statistic matters when events use it, on several CPUs at a time, and somebody writes to it
 * while they do.  Those that one clause uses together have one lock.  A clause with several operations on them takes it;
 * one with a single operation, which is atomic by itself, only sees to it that nobody has it.  A lock that none takes is
 * none.
 *
 * User space has no locks: a process there could be killed that has one.
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

/* Of a clause. */
struct lock_use {
	uint8_t how;		/* enum lock_how */
	bool shared;		/* TAKE: other clauses SHARE it */
	uint32_t off;		/* of the lock in EBPF_MAP_ORDER */
};

/* Set @p's locks; they begin at @off.  Returns where they end. */
uint32_t lock_plan(const struct ir_prog *prog, struct ebpf_private *p, uint32_t ncpus, uint32_t off);

/* Around @c: to @skipped when it cannot be had. */
void gen_lock(struct gen *g, const struct ir_clause *c, uint32_t skipped);
void gen_unlock(struct gen *g, const struct ir_clause *c);

#endif

/*
 * Stacks that are read from outside, many times a second, for commands whose head has @reads (head.h).
 *
 * Each reading takes the stack of each thread of the traced processes and the CPU time that it has used since the one before
 * (proc_pid_schedstat): that much of the time between them it ran there, the rest it waited there.  So the sums are exact,
 * and the places are those of the readings.  No privilege is needed for one's own processes.
 *
 * For a table it is what threads wait for, as dtap_thread.wait says it: keys named pid, what (lock, GIL, thread), lock, owner and
 * where, values named waits, time and longest.
 */
#ifndef DTAP_CMD_READY_READS_H
#define DTAP_CMD_READY_READS_H

#include <stdint.h>

#include "dtap.h"

struct ready_run;
struct ready_reads;

/* NULL after a message: the option that says how often is out of range, or there is no memory. */
struct ready_reads *ready_reads_new(const struct ready_run *r);

/* dtap_conf.process: which processes are read. */
void ready_reads_process(struct ready_reads *s, const struct dtap_process_event *e);

/* Read them if it is time to.  Returns when it is next, in ms of CLOCK_MONOTONIC. */
uint64_t ready_reads_turn(struct ready_reads *s);

/* The sums, as dtap_aggregations() gives them: for trees the value columns of kinds busy, self and samples, by process and stack. */
int ready_reads_rows(const struct ready_reads *s, int (*row)(void *ctx, const struct dtap_row *row), void *ctx);

/* Accepts NULL. */
void ready_reads_free(struct ready_reads *s);

#endif

/*
 * What processes map from now on, as the kernel tells it: the names of addresses in a process that has ended already, which
 * /proc does not know any more.
 *
 * The kernel writes a record for each executable mapping, program and fork of every process to a ring of each processor
 * (perf_event_open(2), PERF_RECORD_MMAP2, COMM and FORK).  A process that was there before has only its newer mappings here.
 * All users in a tracer share one log, whichever threads they are in: rings take locked memory on each processor.
 */
#ifndef DTAP_PROBE_MAPLOG_H
#define DTAP_PROBE_MAPLOG_H

#include <stdbool.h>
#include <stdint.h>

struct maplog;
struct procs_map;

struct maplog *maplog_open(void);	/* NULL: the kernel refuses, or out of memory */
void maplog_close(struct maplog *l);	/* accepts NULL; the last one ends it */

/* It becomes readable when there is much to read; without maplog_read() then, what follows is lost. */
int maplog_fd(const struct maplog *l);
void maplog_read(struct maplog *l);

/*
 * A number that is another one for each process and program that ever had this pid, and 0 for those that are older than the
 * log.  As of the last maplog_read().
 */
uint64_t maplog_life(const struct maplog *l, uint32_t pid);

/*
 * Call @fn for the executable mappings of process @pid that were made since it began its program, the newest first, until it
 * does not return 0; it must not use the log.  Those of a process that has only forked contain its parent's, as far as they
 * are in the log.
 * 0, what @fn returned, or -ESRCH: it is not in the log, or its end was long ago.
 */
int maplog_each(const struct maplog *l, uint32_t pid, int (*fn)(void *ctx, const struct procs_map *m), void *ctx);

/* The process that @pid was forked from, if it has executed no program since; 0: unknown. */
uint32_t maplog_parent(const struct maplog *l, uint32_t pid);

#endif

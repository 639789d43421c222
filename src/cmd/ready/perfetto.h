/*
 * Events as a Perfetto trace: track events in protobuf, with a track for each thread below that of its process, and below
 * the thread's one for each asyncio task that ran there, by name.
 *
 * A line with an arrow is the begin or end of a slice, one with a duration a whole slice, any other an instant.  The
 * remaining columns are annotations.
 */
#ifndef DTAP_CMD_READY_PERFETTO_H
#define DTAP_CMD_READY_PERFETTO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytemap.h"
#include "base/strbuf.h"
#include "cmd/ready/run.h"

struct perfetto {
	struct strbuf file, packet, message, inner;	/* what is being written, outermost first */
	struct bytemap tracks;				/* the track of {pid, tid, task} */
	struct bytemap threads;				/* struct perfetto_thread of {pid, tid}, on the heap */
	uint64_t ntracks;
	bool begun;
};

/* Write the line @v, whose columns are those of the run's head, to @r->out. */
void perfetto_event(struct perfetto *p, struct ready_run *r, const struct dtap_value *v);
/* A task begins or ends a step; @v: time, process, thread, the task's name. */
void perfetto_step(struct perfetto *p, const struct ready_run *r, const struct dtap_value *v, bool begins);
void perfetto_fini(struct perfetto *p);

#endif

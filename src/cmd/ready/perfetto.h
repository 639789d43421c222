/*
 * Events as a Perfetto trace: track events in protobuf, with a track for each thread below that of its process.
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
	struct bytemap tracks;				/* the track of {pid, tid} */
	uint64_t ntracks;
	bool begun;
};

/* Write the line @v, whose columns are those of the run's head, to @r->out. */
void perfetto_event(struct perfetto *p, struct ready_run *r, const struct dtap_value *v);
void perfetto_fini(struct perfetto *p);

#endif

/*
 * Where a result goes, and in which format: standard output, or -o's file, whose suffix is a row of formats.def.
 *
 * Functions return 0, or the exit code after a message on standard error.
 */
#ifndef DTAP_CMD_READY_OUTPUT_H
#define DTAP_CMD_READY_OUTPUT_H

#include "cmd/ready/run.h"

/* Set @r->format by the request. */
int ready_output_choose(struct ready_run *r);

/* Open @r->out, before anything is traced, so that a bad file name is reported at once. */
int ready_output_open(struct ready_run *r);

/* Close it; a failed write is reported. */
int ready_output_close(struct ready_run *r);

/* What a file with that suffix is, by the first row of formats.def that has it; or NULL. */
const char *ready_output_what(const char *file);

#endif

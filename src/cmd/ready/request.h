/*
 * What a command line asks for: a ready-made command's script, the variant or the additions that options name, and the one for
 * who may not have the kernel's probes (head.h).
 */
#ifndef DTAP_CMD_READY_REQUEST_H
#define DTAP_CMD_READY_REQUEST_H

#include "cmd/ready/opts.h"

/* Of the command argv[0]; @q->arena is set, the rest is zero.  0, or the exit code after a message on standard error. */
int ready_request_read(struct ready_request *q, int argc, char **argv);

#endif

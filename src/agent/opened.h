/* SPDX-License-Identifier: MIT */
/* What a file or socket of Python's is open on: the path, the addresses. */
#ifndef AGENT_OPENED_H
#define AGENT_OPENED_H

#include <stdint.h>

struct object;

/* Measure where files have their descriptors, once.  With the GIL, no exception set, not at an event. */
void opened_measure(void);

/*
 * Write "'/path'" or "127.0.0.1:40000 -> 127.0.0.1:80" to the @size bytes, at least 128, at @text, with the NUL; a longer path
 * is cut.  The length, or 0: it is neither a file nor a socket, it is not open, or where it has its descriptor is not certain.
 * Changes errno.
 */
uint32_t opened_text(const struct object *o, char *text, uint32_t size);

#endif

/*
 * Interpreters that ask for sessions at their start (abi/ask.h): which ones is learnt from the first Python that does.  An
 * interpreter is an executable file and the name by which it was called, since that of a virtual environment is the
 * system's by another name.
 *
 * To bring the agent into such a process from outside takes the tracer milliseconds in which others wait that ask; so it is
 * left alone until it should have asked.
 */
#ifndef DTAP_SESSION_ASKERS_H
#define DTAP_SESSION_ASKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ASKERS = 64 };

/* Zeroed is empty. */
struct askers {
	struct { uint64_t dev, ino, name; } v[ASKERS];	/* a ring */
	size_t n;
};

/* Process @pid has asked. */
void askers_add(struct askers *a, uint32_t pid);

/* Will process @pid, which has just executed its program, ask?  A guess: with -S it does not. */
bool askers_will(const struct askers *a, uint32_t pid);

#endif

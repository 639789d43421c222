/*
 * The variables of the frames of a thread, read from outside: parameters, locals, and those shared with other
 * functions, as far as they have values.  Frames of modules and classes have none of these.
 *
 * The reader's slots are known.
 */
#ifndef DTAP_PROBE_PYLOCALS_H
#define DTAP_PROBE_PYLOCALS_H

#include <stdint.h>

struct pystack;
struct pystack_frame;
struct pystacks_reader;

/* Fill in the locals of all frames of @st, in the reader's arena. */
void pylocals_read(const struct pystacks_reader *r, struct pystack *st);

/* Variable @i of the frame @f; 0: it has no value. */
uint64_t pylocals_value(const struct pystacks_reader *r, const struct pystack_frame *f, uint64_t i);

/* The name that threading has for the thread whose frames are @st's; NULL: none is known. */
const char *pylocals_thread_name(const struct pystacks_reader *r, const struct pystack *st);

#endif

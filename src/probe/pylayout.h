/*
 * How the frames of a CPython are found in its memory from outside, for programs in the kernel (abi/python.h).
 *
 * The offsets are pyoffsets.h's.  They are checked: what is published must make sense, and a walk goes no further than
 * a code object that does not say that it is one.
 */
#ifndef DTAP_PROBE_PYLAYOUT_H
#define DTAP_PROBE_PYLAYOUT_H

#include <stdint.h>

#include "abi/python.h"

struct obj;

/*
 * What is known of the CPython in @o, loaded @bias bytes from its own addresses.  -ENOENT: there is none in it;
 * -ENOTSUP: one of another version, or built in another way (free-threaded).
 */
int pylayout_find(struct obj *o, uint64_t bias, struct abi_python *ret);

#endif

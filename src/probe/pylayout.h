/*
 * How programs in the kernel find the frames of a CPython in its memory (abi/python.h).
 *
 * The offsets are from pyoffsets.h.  Published ones are checked for plausibility, and a walk ends at an object that
 * is not a code object.
 */
#ifndef DTAP_PROBE_PYLAYOUT_H
#define DTAP_PROBE_PYLAYOUT_H

#include <stdint.h>

#include "abi/python.h"

struct obj;

/*
 * The layout of the CPython in @o, which is loaded @bias bytes from its own addresses.  -ENOENT: @o has none;
 * -ENOTSUP: unknown version or build (free-threaded).
 */
int pylayout_find(struct obj *o, uint64_t bias, struct abi_python *ret);

#endif

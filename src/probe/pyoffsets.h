/*
 * Where a CPython keeps what leads to a thread's frames: of the versions that are known, and of those that publish it.
 *
 * From 3.13 on the interpreter publishes the offsets (_Py_DebugOffsets); before, they are a table, one row a minor
 * version (pyoffsets.def).  Used from outside of a process (pylayout.h) and inside of one (agent/pyframes.h), which both
 * check what they are told in their own way; so this needs nothing of dtap but abi/.
 */
#ifndef DTAP_PROBE_PYOFFSETS_H
#define DTAP_PROBE_PYOFFSETS_H

#include <stdint.h>

#include "abi/python.h"

/* Words of _Py_DebugOffsets, which _PyRuntime begins with, that are looked at. */
enum { PYOFFSETS_WORDS = 96 };

/* Does @version (0x030c for 3.12) publish its offsets? */
int pyoffsets_publishes(uint16_t version);

/*
 * All of *ret but for the addresses, for CPython @version; @words are those published, which only versions that publish
 * them have.  0; -ENOTSUP: another version, one built in another way (free-threaded), or words that make no sense.
 */
int pyoffsets_find(uint16_t version, const uint64_t *words, struct abi_python *ret);

#endif

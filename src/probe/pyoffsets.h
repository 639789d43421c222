/*
 * Offsets in CPython on the way to a thread's frames: of known versions, and of those that publish them.
 *
 * From 3.13 on the interpreter publishes the offsets (_Py_DebugOffsets); older ones are in a table, one row per minor
 * version (pyoffsets.def).  Used from outside of a process (pylayout.h) and in the process (agent/pyframes.h), each
 * with its own checks; so this depends only on abi/.
 */
#ifndef DTAP_PROBE_PYOFFSETS_H
#define DTAP_PROBE_PYOFFSETS_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/python.h"

/* How many words of _Py_DebugOffsets, with which _PyRuntime begins, are read. */
enum { PYOFFSETS_WORDS = 96 };

/* Does @version (0x030c for 3.12) publish its offsets? */
int pyoffsets_publishes(uint16_t version);

/*
 * Fill *ret, except for addresses, for CPython @version; @words are the published ones, if the version publishes
 * them.  0; -ENOTSUP: unknown version or build, or implausible words.
 */
int pyoffsets_find(uint16_t version, const uint64_t *words, struct abi_python *ret);

/* Is it a build without a GIL (PEP 703)? */
bool pyoffsets_free_threaded(const struct abi_python *python);

/* How to find the thread that holds a GIL: one for all interpreters, or one for each. */
struct pyoffsets_gil {
	uint32_t current;	/* in _PyRuntime: pointer to the thread that holds it; ABI_PYTHON_NONE: use the next */
	uint32_t gil;		/* in an interpreter's state: pointer to its GIL, which contains: */
	uint32_t holder, locked;	/* pointer to its last holder, and an int: is it held now? */
	uint32_t cond;		/* in the one that is used: the condition variable that those wait for who want it */
};

/* Errors as from pyoffsets_find(). */
int pyoffsets_gil(uint16_t version, const uint64_t *words, struct pyoffsets_gil *ret);

/* How to find the variables of a frame and its stack of values. */
struct pyoffsets_slots {
	uint32_t first;		/* in a frame: its variables, and directly behind them the stack */
	uint32_t stack;		/* in a frame: pointer to its stack; ABI_PYTHON_NONE: code objects have the number of variables */
	uint32_t blocks;	/* in a frame: f_iblock, or ABI_PYTHON_NONE */
	uint32_t nvars, nstack;	/* in a code object: ints */
	uint32_t handlers;	/* in a code object: pointer to the table of exception handlers; ABI_PYTHON_NONE: there are blocks */
	bool is_tagged;		/* slots have tags in their lower bits */
};

/* Errors as from pyoffsets_find(). */
int pyoffsets_slots(uint16_t version, const uint64_t *words, struct pyoffsets_slots *ret);

#endif

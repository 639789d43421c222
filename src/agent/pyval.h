/* SPDX-License-Identifier: MIT */
/*
 * Python values, read at an event without running any code of the program: no __repr__, no attribute access.
 *
 * An object's address may come from a script, so every byte is read by vm/memory.h.  The layout of each kind of object
 * is measured on specimens when the first program that wants values is loaded; a kind is not read at all if reading its
 * specimens and the API give different results (object.h).
 */
#ifndef AGENT_PYVAL_H
#define AGENT_PYVAL_H

#include "vm/shm.h"

/* For shm_run.values. */
extern const struct shm_values pyval_values;

#endif

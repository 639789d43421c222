/*
 * A lock of global variables: who has them for itself, and (a slot for the CPUs of a remainder each) how many programs
 * are in that need no more than that nobody has.  Each lies in a cache line of its own.
 */
#ifndef DTAP_BPF_RT_LOCK_H
#define DTAP_BPF_RT_LOCK_H

enum { LOCK_LINE = 64, LOCK_SLOTS_MAX = 64 };

/* Words of the first line: 1 + the CPU of who has it, or 0; which slot that one is looking at. */
enum { LOCK_TAKEN, LOCK_AT };

/* How to go in: others share it; nothing else runs on this CPU before this is done; from bit LOCK_CPU_SHIFT on the CPU. */
enum { LOCK_SHARED = 1, LOCK_ALONE = 2, LOCK_CPU_SHIFT = 8 };

#endif

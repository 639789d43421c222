/*
 * A lock of global variables: who has them for itself, and (a slot for the CPUs of a remainder each) how many programs
 * are in that need no more than that nobody has.  Each lies in a cache line of its own.
 */
#ifndef DTAP_BPF_RT_LOCK_H
#define DTAP_BPF_RT_LOCK_H

enum { LOCK_LINE = 64, LOCK_SLOTS_MAX = 64 };

/* Words of the first line: not 0 while somebody has it; which slot that one is looking at. */
enum { LOCK_TAKEN, LOCK_AT };

#endif

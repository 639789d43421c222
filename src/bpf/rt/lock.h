/*
 * A lock of global variables: its holder, and slots (a CPU's slot is its number modulo the slots) with the number of
 * programs that share it.  The holder and each slot have a cache line of their own.
 */
#ifndef DTAP_BPF_RT_LOCK_H
#define DTAP_BPF_RT_LOCK_H

enum { LOCK_LINE = 64, LOCK_SLOTS_MAX = 64 };

/* Words of the first line: 1 + the holder's CPU, or 0; the slot that the holder checks. */
enum { LOCK_TAKEN, LOCK_AT };

/*
 * Flags: other clauses share it; nothing else runs on this CPU before this program ends.  The CPU is in the bits from
 * LOCK_CPU_SHIFT on.
 */
enum { LOCK_SHARED = 1, LOCK_ALONE = 2, LOCK_CPU_SHIFT = 8 };

#endif

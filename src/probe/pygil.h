/*
 * The markers of CPython's lock, the GIL: gil__wait, gil__take and gil__drop.
 *
 * No interpreter has them; they are found where it calls pthread_cond_signal() and pthread_cond_timedwait(), through its
 * procedure linkage table or (-fno-plt) through words of its global offset table, and the program tells the lock's condition variables from others (bpf/rt/gil.c).  Nothing
 * else is needed: neither symbols nor addresses in a process.  So they are the file's, like markers in notes, and fire
 * in the kernel place alone.  A breakpoint is at the call.  One of the linkage table is emulated by the kernel; at the
 * table's entry, which it must execute elsewhere, it would be ten times as dear.
 *
 * A file has none if it is no CPython that dtap knows, is free-threaded (_Py_DecRefShared), has another C library than
 * glibc, or calls it otherwise (linked statically).
 *
 * They are for descriptions that mean them: a pattern of names must begin with "gil".  Each wait for the lock is cheap,
 * but a program takes it often, and a script that wants any marker had no need of the kernel place before.
 */
#ifndef DTAP_PROBE_PYGIL_H
#define DTAP_PROBE_PYGIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/ebpf.h"

struct arena;
struct obj;
struct obj_marker;

/*
 * Add the lock's markers to the @n markers at *markers, those of the notes in @o, a CPython of that version (0: none).
 * Returns how many there are then; the array is in @a.  Their sites are pygil_calls().
 */
size_t pygil_markers(struct obj *o, uint16_t version, struct arena *a, const struct obj_marker **markers, size_t n);

/* The event that @m stands for. */
enum ebpf_gil pygil_event(const struct obj_marker *m);

/* Does @name, a pattern of markers' names, mean them? */
bool pygil_is_meant(const char *name);

/* The offsets in the file of the calls at which @event is seen: returns their number, 0 if some are not known. */
size_t pygil_calls(struct obj *o, enum ebpf_gil event, struct arena *a, uint64_t **ret);

#endif

/*
 * Is what a process has written possible output of the session's programs?  This is the second half of the check, which
 * needs the programs' layouts; vm/reader.h has the first.
 */
#ifndef DTAP_PLACE_CHECKED_H
#define DTAP_PLACE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>

#include "bpf/ebpf.h"
#include "vm/record.h"

struct checked;

/* For the programs of @unit, which must outlive it.  NULL: no memory. */
struct checked *checked_new(const struct ebpf_unit *unit);
void checked_free(struct checked *c);	/* accepts NULL */

/* The size of the largest record that the programs write, bytes. */
size_t checked_record_max(const struct checked *c);

/*
 * Is @r a valid record of this session?  Then its probe is in the table, its fields lie within the record, each string
 * ends in a NUL, a statistic is complete; a fault is one of enum abi_fault; a stack does not exceed the maximum, has
 * the Python frames after its addresses, and a native frame that they refer to is one of these addresses; a code object
 * contains the bytes of its texts that it announces.
 */
bool checked_record(const struct checked *c, const struct record *r);

/* Is @key a valid key of map @map?  Then each of its strings ends in a NUL. */
bool checked_key(const struct checked *c, uint32_t map, const void *key);

#endif

/*
 * The functions that patterns of functions by name have matched, in all segments of a place.  Processes enter them in
 * their segment's probe table; the indexes in records are replaced by numbers in this table, which only the tracer can
 * change.
 */
#ifndef DTAP_PLACE_NAMED_H
#define DTAP_PLACE_NAMED_H

#include <stddef.h>
#include <stdint.h>

#include "abi/record.h"

struct shm;

/* Zero-initialise it, except @first: the number of the session's own probes, which is the first number used here. */
struct named {
	uint32_t first;
	struct abi_probe *v;
	size_t n, cap;
};

/* The numbers of one segment's entries.  Zero-initialise it. */
struct named_here {
	uint32_t *numbers;		/* by the entry's index minus the session's own; 0: not known yet */
	size_t n;
};

/* The number for entry @index of @shm's probe table; 0: there is no such entry, or no memory. */
uint32_t named_number(struct named *all, struct named_here *here, const struct shm *shm, uint32_t index);

/* The entry with number @number, or NULL. */
const struct abi_probe *named_get(const struct named *all, uint32_t number);

void named_fini(struct named *all);
void named_here_fini(struct named_here *here);

#endif

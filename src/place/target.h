/*
 * The target place: programs run in the traced processes themselves, called by the agent there, over shared memory
 * that this process made (abi/segment.h).  No system call per event, no privilege but that of the target's user.
 *
 * What only the tracer fires (BEGIN, END, ERROR, tick) runs here, by the same engine over the same memory.  Only
 * markers of the agent can be armed; getting the segment to the agents is the caller's business.
 */
#ifndef DTAP_PLACE_TARGET_H
#define DTAP_PLACE_TARGET_H

#include "place/place.h"

struct strbuf;

/*
 * Make the memory for @unit, which must outlive the place.  state is ABI_STATE_OFF.  @wait: processes wait for room for
 * their records.  @processes: so many have events at most; 0: any number.
 */
int target_place_new(const struct ebpf_unit *unit, bool wait, unsigned int processes, struct place **ret,
		     struct strbuf *err);

/* What an agent needs: descriptors that stay the place's, there once it is ready. */
struct target_place_fds {
	int image, data, wake;
};

struct target_place_fds target_place_fds(const struct place *p);

#endif

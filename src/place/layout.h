/*
 * The layout of a session's shared memory: from the maps of an ebpf_unit to rows of abi/segment.h.
 */
#ifndef DTAP_PLACE_LAYOUT_H
#define DTAP_PLACE_LAYOUT_H

#include "abi/segment.h"
#include "bpf/ebpf.h"

struct layout {
	struct abi_map *maps;		/* unit->nmaps of them; those in the image have no offset yet */
	uint64_t lanes_off, lane_size, data_size;
	uint32_t nlanes;
};

/*
 * @processes: the largest number of processes that have events, for which there must be lanes; 0: any number.  0,
 * -ENOMEM, or -E2BIG: no room for enough lanes.
 */
int layout_make(const struct ebpf_unit *unit, unsigned int processes, struct layout *ret);
void layout_fini(struct layout *l);

/* Does map number @map have what programs keep for a thread? */
bool layout_is_thread_map(const struct ebpf_unit *unit, uint32_t map);

#endif

/*
 * A record of the output stream in the tracer (abi/record.h has the layout): a private copy, which nobody else can
 * write.  Its consumers read nothing else.
 */
#ifndef DTAP_VM_RECORD_H
#define DTAP_VM_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include "abi/record.h"

struct record {
	const struct abi_record *hdr;	/* aligned to 8; hdr->size is at least the header's and at most @size */
	size_t size;			/* bytes of the copy, header included */
	bool is_foreign;		/* may have been written by a process outside of the tracer's trust domain */
};

/* A record's data after the header. */
static inline const uint64_t *record_slots(const struct record *r)
{
	return (const uint64_t *)(r->hdr + 1);
}

#endif

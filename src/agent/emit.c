/* SPDX-License-Identifier: MIT */
#include "agent/emit.h"

static const struct shm_map *output_of(const struct shm *s)
{
	for (uint32_t k = 0; k < s->nmaps; k++)
		if (s->maps[k].kind == ABI_MAP_OUT)
			return &s->maps[k];
	return NULL;
}

struct shm_record emit_of(const struct shm *s, const struct abi_fire *f)
{
	const uint32_t n = f->rec_nfields, mask = (1u << ABI_FIELD_BITS) - 1;
	struct shm_record rec = { .fields = n, .strsize = f->rec_strsize, .id = f->rec };
	uint64_t size;

	if (f->known != ABI_KNOWN_RECORD || n > ABI_FIELD_MOST || !f->rec_strsize)
		return rec;
	size = sizeof(struct abi_record) + 8 * (uint64_t)n;
	for (uint32_t k = 0; k < n; k++) {
		rec.from[k] = (uint8_t)(f->rec_fields >> (k * ABI_FIELD_BITS) & mask);
		if (rec.from[k] > ABI_FIELD_TID)
			return rec;
		if (rec.from[k] == ABI_FIELD_TEXT0 || rec.from[k] == ABI_FIELD_TEXT1) {
			rec.strings |= (uint64_t)1 << k;
			size += f->rec_strsize;
		}
	}
	size = (size + 7) & ~(uint64_t)7;
	rec.size = (uint32_t)size;
	rec.out = size > UINT32_MAX / 2 ? NULL : output_of(s);
	return rec;
}

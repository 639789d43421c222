/* SPDX-License-Identifier: MIT */
#include "agent/emit.h"

#include <string.h>

static const struct shm_map *output_of(const struct shm *s)
{
	for (uint32_t k = 0; k < s->nmaps; k++)
		if (s->maps[k].kind == ABI_MAP_OUT)
			return &s->maps[k];
	return NULL;
}

struct emit emit_of(const struct shm *s, const struct abi_fire *f)
{
	const uint32_t n = f->rec_nfields, mask = (1u << ABI_FIELD_BITS) - 1;
	struct emit e = { .out = NULL };
	uint64_t size;

	if (f->known != ABI_KNOWN_RECORD || n > ABI_FIELD_MOST || !f->rec_strsize)
		return e;
	size = sizeof(struct abi_record) + 8 * (uint64_t)n;
	for (uint32_t k = 0; k < n; k++) {
		e.fields[k] = (uint8_t)(f->rec_fields >> (k * ABI_FIELD_BITS) & mask);
		if (e.fields[k] > ABI_FIELD_TID)
			return e;
		if (e.fields[k] == ABI_FIELD_TEXT0 || e.fields[k] == ABI_FIELD_TEXT1) {
			e.rec.strings |= 1u << k;
			size += f->rec_strsize;
		}
	}
	size = (size + 7) & ~(uint64_t)7;
	e.rec.fields = n;
	e.rec.size = (uint32_t)size;
	e.rec.strsize = f->rec_strsize;
	e.id = f->rec;
	e.out = size > UINT32_MAX / 2 ? NULL : output_of(s);
	return e;
}

bool emit_record(const struct emit *e, struct shm_run *run, const struct emit_event *event)
{
	enum { SLOTS = sizeof(struct abi_record) / 8 };
	uint64_t words[SLOTS + ABI_FIELD_MOST], *slot = words + SLOTS;

	if (__builtin_expect(!agent_thread.tid || run->running ||
			     ((const struct abi_control *)(const void *)run->shm->data)->state != ABI_STATE_ACTIVE, 0))
		return false;
	shm_set_tid(run, agent_thread.tid);
	words[0] = shm_now_and_cpu(run->shm, &run->cpu);
	words[1] = event->probe << 32 | e->id;
	for (uint32_t k = 0; k < e->rec.fields; k++)
		switch ((enum abi_field)e->fields[k]) {
		case ABI_FIELD_ARG0: case ABI_FIELD_TEXT0:
			slot[k] = event->file;
			break;
		case ABI_FIELD_ARG1: case ABI_FIELD_TEXT1:
			slot[k] = event->name;
			break;
		case ABI_FIELD_ARG2:
			slot[k] = event->line;
			break;
		case ABI_FIELD_TIME:
			slot[k] = words[0];
			break;
		case ABI_FIELD_PID:
			slot[k] = run->thread.values[SHM_TASK] >> 32;
			break;
		case ABI_FIELD_TID:
			slot[k] = agent_thread.tid;
			break;
		default:
			slot[k] = 0;
		}
	return shm_record(run, e->out, words, &e->rec);
}

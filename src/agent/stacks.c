/* SPDX-License-Identifier: MIT */
#include "agent/stacks.h"

#include <stdlib.h>

#include "agent/pyframes.h"
#include "vm/helper.h"
#include "vm/stack.h"

/* Of the last walk: events come one at a time. */
static struct pyobj *codes[PYFRAMES_MAX];
static uint32_t ncodes;

static uint32_t walk(struct shm_run *r, uint32_t flags, uint32_t frames, uint64_t words[STACK_WORDS_MAX], uint32_t *naddrs)
{
	ncodes = 0;
	*naddrs = 0;
	if (flags & ABI_STACK_PYTHON && pyframes_measured())
		ncodes = pyframes_walk((uint32_t)(r->thread.values[SHM_TASK] >> 32), frames, words, codes);
	return 2 * ncodes;
}

static bool tell(struct shm_run *r, const struct shm_map *out)
{
	struct shm_stacks *s = r->stacks;
	struct abi_record *hdr = &s->code.code.hdr;
	const uint64_t *words = s->rec.words;
	uint32_t most = out->max_entries / 4 < STACK_CODE ? out->max_entries / 4 : STACK_CODE;

	for (uint32_t k = 0; k < ncodes; k++) {
		uint64_t number = words[2 * k];

		if (stack_told(s->codes, STACK_TOLD_CODES, number))
			continue;
		*hdr = (struct abi_record){ .rec = ABI_REC_CODE, .tid = (uint32_t)r->thread.values[SHM_TASK],
					    .pid = (uint32_t)(r->thread.values[SHM_TASK] >> 32) };
		hdr->size = pyframes_tell(codes[k], number, &s->code.code, most);
		if (shm_output(r, out, hdr, hdr->size)) {
			shm_drop(r, ABI_DROP_RECORD);
			return false;
		}
		stack_note_told(s->codes, STACK_TOLD_CODES, number);
	}
	return true;
}

static const struct stack_walker walker = { walk, tell };

struct shm_stacks *stacks_new(void)
{
	struct shm_stacks *s = calloc(1, sizeof(*s));

	if (s)
		s->walker = &walker;
	return s;
}

void stacks_free(struct shm_stacks *s)
{
	free(s);
}

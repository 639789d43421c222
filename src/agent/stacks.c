/* SPDX-License-Identifier: MIT */
#include "agent/stacks.h"

#include <stdlib.h>

#include "agent/cframes.h"
#include "agent/engine.h"
#include "agent/pyframes.h"
#include "vm/helper.h"
#include "vm/stack.h"
#include "vm/table.h"

/* Of the last walk: events come one at a time. */
static struct pyobj *codes[STACK_WORDS_MAX / 2];
static uint32_t first_code, ncodes;

/* --- native frames ------------------------------------------------------------------------------------ */

static void ask(struct shm_run *r, const struct shm_map *out, const struct abi_process_key *key)
{
	const struct abi_ask record = {
		.hdr = { .rec = ABI_REC_PROCESS, .tid = (uint32_t)r->thread.values[SHM_TASK],
			 .pid = (uint32_t)(r->thread.values[SHM_TASK] >> 32), .size = sizeof(record) },
		.key = *key,
	};

	if (!shm_output(r, out, &record, sizeof(record)))
		shm_wake(r);
}

/* What the tracer knows of this process; it is asked, once, if that is nothing. */
static struct abi_ranges *find_ranges(struct shm_run *r, const struct shm_map *out, const struct abi_process_key *key)
{
	static const struct abi_ranges none;
	struct abi_ranges *found = shared_table_find(r->shm->ranges, r->shm->data, key);

	if (found)
		return found->n ? found : NULL;
	if (!shared_table_put(r->shm->ranges, r->shm->data, key, &none, BPF_NOEXIST, shm_locker(r)))
		ask(r, out, key);
	return NULL;
}

static uint32_t native(struct shm_run *r, const struct shm_map *out, uint32_t frames, uint64_t *words, uint64_t *sps)
{
	const struct abi_process_key key = shm_own_key();
	const struct abi_unwind *tables = NULL;
	struct abi_ranges *ranges = NULL;
	bool missing;
	uint32_t n;

	if (r->shm->ranges) {
		tables = (const struct abi_unwind *)(const void *)(r->shm->data + r->shm->unwind->off);
		ranges = find_ranges(r, out, &key);
	}
	n = cframes_walk(engine_frame, ranges, tables, frames, words, sps, &missing);
	/* Code that nothing is known of: ask once more, unless it was done since the last answer. */
	if (missing && !__atomic_exchange_n(&ranges->asked, 1, __ATOMIC_RELAXED))
		ask(r, out, &key);
	return n;
}

/* --- both --------------------------------------------------------------------------------------------- */

/* The native frame, of @n that begin at @sps, whose variable is at @addr. */
static uint64_t frame_with(const uint64_t *sps, uint32_t n, uint64_t addr)
{
	uint32_t k = 0;

	while (k + 1 < n && sps[k + 1] <= addr)
		k++;
	return k;
}

static uint32_t walk(struct shm_run *r, const struct shm_map *out, uint32_t flags, uint32_t frames,
		     uint64_t words[STACK_WORDS_MAX], uint32_t *naddrs)
{
	static uint64_t sps[STACK_FRAMES_MAX];

	first_code = *naddrs = flags & ABI_STACK_NATIVE ? native(r, out, frames, words, sps) : 0;
	ncodes = 0;
	if (!(flags & ABI_STACK_PYTHON) || !pyframes_measured())
		return *naddrs;
	words += *naddrs;
	ncodes = pyframes_walk((uint32_t)(r->thread.values[SHM_TASK] >> 32), frames,
			       *naddrs ? (STACK_WORDS_MAX - *naddrs) / 2 : 0, words, codes);
	for (uint32_t k = 0; k < ncodes; k++) {
		uint64_t *call = words + 2 * k;

		if (codes[k])
			continue;
		call[1] = frame_with(sps, *naddrs, call[0]) | (uint64_t)ABI_PYFRAME_CALL << 32;
		call[0] = 0;
	}
	return *naddrs + 2 * ncodes;
}

static bool tell(struct shm_run *r, const struct shm_map *out)
{
	struct shm_stacks *s = r->stacks;
	struct abi_record *hdr = &s->code.code.hdr;
	const uint64_t *words = s->rec.words + first_code;
	uint32_t most = out->max_entries / 4 < STACK_CODE ? out->max_entries / 4 : STACK_CODE;

	for (uint32_t k = 0; k < ncodes; k++) {
		uint64_t number = words[2 * k];

		if (!codes[k] || stack_told(s->codes, STACK_TOLD_CODES, number))
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

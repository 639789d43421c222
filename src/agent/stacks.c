/* SPDX-License-Identifier: MIT */
#include "agent/stacks.h"

#include <stdlib.h>

#include "agent/awaiters.h"
#include "agent/cframes.h"
#include "agent/context.h"
#include "agent/engine.h"
#include "agent/pyframes.h"
#include "vm/helper.h"
#include "vm/memory.h"
#include "vm/stack.h"
#include "vm/table.h"

enum { FUNCTIONS = ABI_STACK_USER | ABI_STACK_PYTHON | ABI_STACK_FUNCTIONS };

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

/* The tracer's ranges of this process; if there are none yet, ask for them, once. */
static struct abi_ranges *find_ranges(struct shm_run *r, const struct shm_map *out, const struct abi_process_key *key)
{
	static const struct abi_ranges none;
	struct abi_ranges *found = shared_table_find(r->shm->ranges, r->shm->data, key, shm_locker(r));

	if (found)
		return found->n ? found : NULL;
	if (!shared_table_put(r->shm->ranges, r->shm->data, key, &none, BPF_NOEXIST, shm_locker(r)))
		ask(r, out, key);
	return NULL;
}

static uint32_t native(struct shm_run *r, const struct shm_map *out, uint32_t frames, uint64_t *words, uint64_t *sps)
{
	const struct abi_process_key key = memory_own_key();
	const struct abi_unwind *tables = NULL;
	struct abi_ranges *ranges = NULL;
	bool missing;
	uint32_t n;

	if (r->shm->ranges) {
		tables = (const struct abi_unwind *)(const void *)(r->shm->data + r->shm->unwind->off);
		ranges = find_ranges(r, out, &key);
	}
	n = cframes_walk(agent.engine.frame, ranges, tables, frames, words, sps, &missing);
	/* Some code is in no range: ask again, unless that was done since the last answer. */
	if (missing && !__atomic_exchange_n(&ranges->asked, 1, __ATOMIC_RELAXED))
		ask(r, out, &key);
	return n;
}

/* --- both --------------------------------------------------------------------------------------------- */

/* The index of the native frame, of @n that begin at @sps, with the local variable at @addr. */
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

	agent.stacks.first_code = *naddrs = flags & ABI_STACK_NATIVE ? native(r, out, frames, words, sps) : 0;
	agent.stacks.ncodes = 0;
	if (!(flags & ABI_STACK_PYTHON) || !pyframes_measured())
		return *naddrs;
	words += *naddrs;
	if (flags & ABI_STACK_AWAITERS) {
		agent.stacks.ncodes = awaiters_walk(r, (uint32_t)(r->thread.values[SHM_TASK] >> 32), !(flags & ABI_STACK_FUNCTIONS),
						    frames, words, agent.stacks.codes);
		return *naddrs + 2 * agent.stacks.ncodes;
	}
	agent.stacks.ncodes = pyframes_walk((uint32_t)(r->thread.values[SHM_TASK] >> 32),
			       !(flags & ABI_STACK_FUNCTIONS), frames, *naddrs ? (STACK_WORDS_MAX - *naddrs) / 2 : 0, words, agent.stacks.codes);
	for (uint32_t k = 0; k < agent.stacks.ncodes; k++) {
		uint64_t *call = words + 2 * k;

		if (agent.stacks.codes[k])
			continue;
		call[1] = frame_with(sps, *naddrs, call[0]) | (uint64_t)ABI_PYFRAME_CALL << 32;
		call[0] = 0;
	}
	return *naddrs + 2 * agent.stacks.ncodes;
}

static bool tell(struct shm_run *r, const struct shm_map *out)
{
	struct shm_stacks *s = r->stacks;
	struct abi_record *hdr = &s->code.code.hdr;
	const uint64_t *words = s->rec.words + agent.stacks.first_code;
	uint32_t most = out->max_entries / 4 < STACK_CODE ? out->max_entries / 4 : STACK_CODE;

	for (uint32_t k = 0; k < agent.stacks.ncodes; k++) {
		uint64_t number = words[2 * k];

		if (!agent.stacks.codes[k] || stack_sent(s->codes, STACK_SENT_CODES, number))
			continue;
		*hdr = (struct abi_record){ .rec = ABI_REC_CODE, .tid = (uint32_t)r->thread.values[SHM_TASK],
					    .pid = (uint32_t)(r->thread.values[SHM_TASK] >> 32) };
		hdr->size = pyframes_tell(agent.stacks.codes[k], number, &s->code.code, most);
		if (shm_output(r, out, hdr, hdr->size)) {
			shm_drop(r, ABI_DROP_RECORD);
			return false;
		}
		stack_note_sent(s->codes, STACK_SENT_CODES, number);
	}
	return true;
}

/* A node is a complete stack; if fewer frames are wanted, the stack is walked. */
static bool find(struct shm_run *r, uint32_t flags, uint32_t frames, uint64_t *number)
{
	struct context_node *node = flags == FUNCTIONS ? context_find() : NULL;

	if (node && node->depth > frames)
		node = NULL;
	agent.stacks.node = node;
	if (!node || node->stacks != r->stacks || node->frames != frames)
		return false;
	*number = node->number;
	return true;
}

static void learn(struct shm_run *r, uint32_t frames, uint64_t number)
{
	struct context_node *node = agent.stacks.node;

	if (!node || frames > UINT16_MAX)
		return;
	node->stacks = r->stacks;
	node->frames = (uint16_t)frames;
	node->number = number;
}

static const struct stack_walker walker = { walk, tell, find, learn };

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

/* SPDX-License-Identifier: MIT */
/* Probe context: nothing is allocated, and no loop but that over the nodes, which runs when elements were given back. */
#include "agent/lap.h"

#include <string.h>

#include "agent/agent.h"
#include "agent/cost.h"

enum { KEY_WORDS = 2 };			/* the process and the stack's number */

static struct lap_state *const laps = &agent.laps;

static const struct abi_lane *lane(void)
{
	return (const struct abi_lane *)(const void *)laps->run->lane;
}

/* --- coming and going --------------------------------------------------------------------------------- */

static void forget(void)
{
	for (uint32_t n = 0; agent.context.nodes && n < agent.context.nnodes; n++)
		memset(agent.context.nodes[n].laps, 0, sizeof(agent.context.nodes[n].laps));
	laps->epoch++;
	laps->given_back = lane()->given_back;
}

bool lap_good(const struct shm *s, const struct abi_fire *f)
{
	const struct shm_map *m = f->lap_map < s->nmaps ? &s->maps[f->lap_map] : NULL;
	uint32_t words = f->known == ABI_KNOWN_LAP_ALL ? 2 : 1;

	return (f->known == ABI_KNOWN_LAP_ALL || f->known == ABI_KNOWN_LAP_LATER) && m && m->kind == ABI_MAP_LANE_HASH &&
	       m->key_size == 8 * KEY_WORDS && m->value_size >= 8 * words && shm_has_thread_word(s, f->lap_threads, f->lap_last);
}

void lap_start(const struct shm_run *run, const struct abi_fire *entry, const struct abi_fire *ret)
{
	if (entry->lap_threads != ret->lap_threads || entry->lap_last != ret->lap_last || entry->lap_frames != ret->lap_frames)
		return;
	laps->at[true] = (struct lap){ (enum abi_known)entry->known, entry->lap_map };
	laps->at[false] = (struct lap){ (enum abi_known)ret->known, ret->lap_map };
	laps->run = run;
	laps->threads = entry->lap_threads;
	laps->last = entry->lap_last;
	laps->frames = entry->lap_frames;
	laps->control = shm_control(run->shm);
	forget();
}

void lap_stop(void)
{
	laps->control = NULL;
}

/* --- events ------------------------------------------------------------------------------------------- */

bool lap_add(bool entry)
{
	const struct lap *l = &laps->at[entry];
	const struct context_node *node;
	struct abi_elem *e;
	uint64_t *words, *time, last, now;

	if (laps->control->state != ABI_STATE_ACTIVE ||
	    agent.marker_mask & (WANT_function__entry | WANT_function__return))
		return false;
	node = agent.context.entered ? agent.context.entered : context_find();
	if (!node)
		return false;
	e = node->laps[entry];
	__builtin_prefetch(node->laps[false], 1);	/* for the return */
	if (__builtin_expect(lane()->given_back != laps->given_back, 0)) {
		forget();
		return false;
	}
	if (!e || e->state != ABI_ELEM_LIVE || agent_thread.last_epoch != laps->epoch ||
	    agent_thread.last->state != ABI_ELEM_LIVE)
		return false;
	time = shm_words(&laps->run->shm->maps[laps->threads], agent_thread.last) + laps->last / 8;
	last = *time;
	words = shm_words(&laps->run->shm->maps[l->map], e);
	cost_pay((struct abi_lane *)(void *)laps->run->lane,
		 cost_hook(entry ? ABI_MARKER_function__entry : ABI_MARKER_function__return) + cost_hook(COST_LAP));
	if (l->what == ABI_KNOWN_LAP_LATER && !last)
		return true;
	now = shm_now(laps->run->shm);
	*time = now;
	if (l->what == ABI_KNOWN_LAP_ALL)
		*words++ += 1;
	*words += last ? now - last : 0;
	return true;
}

void lap_learn_any(bool entry)
{
	const struct lap *l = &laps->at[entry];
	struct context_node *node = context_find();
	struct abi_elem *e = laps->run->recent[l->map].found, *thread = laps->run->recent[laps->threads].found;
	uint64_t key[KEY_WORDS], task;

	if (!node || !e || !thread || node->depth > laps->frames || node->stacks != laps->run->stacks ||
	    node->frames != laps->frames)
		return;
	memcpy(key, e + 1, sizeof(key));
	memcpy(&task, thread + 1, sizeof(task));
	if (e->state != ABI_ELEM_LIVE || key[0] != laps->run->thread.values[SHM_TASK] >> 32 || key[1] != node->number ||
	    thread->state != ABI_ELEM_LIVE || task != laps->run->thread.values[SHM_TASK])
		return;
	node->laps[entry] = e;
	agent_thread.last = thread;
	agent_thread.last_epoch = laps->epoch;
}

/* SPDX-License-Identifier: MIT */
#include "agent/span.h"

#include <string.h>

/* Can what @f adds be added to its maps, of which the first is @m? */
static bool has_words(const struct shm *s, const struct abi_fire *f, const struct shm_map *m, struct span *p)
{
	static const uint32_t words[ABI_STOP_WAYS] = { [ABI_STOP_SUM] = 1, [ABI_STOP_AVG] = 2, [ABI_STOP_QUANTIZE] = 127 };
	uint32_t way = f->lap_frames & ~(uint32_t)ABI_STOP_KEEPS, n = way < ABI_STOP_WAYS ? words[way] : 0;

	if (!n || !shm_good_tables(s, m, f->lap_classes ? f->lap_classes : 1))
		return false;
	for (uint32_t c = 0; c < f->lap_classes; c++)
		if (m[c].kind != ABI_MAP_LANE_HASH || m[c].value_size != 8 * n)
			return false;
	if (!f->lap_classes && (m->kind != ABI_MAP_LANE_ARRAY || (m->value_size != 8 * n && m->value_size != 8 * (n + 1))))
		return false;
	p->add = (enum abi_stop)way;
	p->keeps = f->lap_frames & ABI_STOP_KEEPS;
	p->map = (uint16_t)f->lap_map;
	p->classes = (uint16_t)f->lap_classes;
	p->words = m->off;
	p->used = m->value_size == 8 * n ? 0 : n;
	return true;
}

struct span span_of(const struct shm *s, const struct abi_fire *f)
{
	const struct shm_map *m = f->known == ABI_KNOWN_STOP && f->lap_map < s->nmaps ? &s->maps[f->lap_map] : NULL;
	struct span p = { .what = ABI_KNOWN_NONE };

	if (!shm_has_thread_word(s, f->lap_threads, f->lap_last) ||
	    (f->known != ABI_KNOWN_START && (!m || !has_words(s, f, m, &p))))
		return p;
	p.what = (enum abi_known)f->known;
	p.threads = f->lap_threads;
	p.time = (uint32_t)sizeof(struct abi_elem) + 8 + f->lap_last;
	return p;
}

void span_learn(const struct span *p, const struct shm_run *run)
{
	struct abi_elem *e = run->recent ? run->recent[p->threads].found : NULL;
	uint64_t task;

	if (!e || e->state != ABI_ELEM_LIVE)
		return;
	memcpy(&task, e + 1, sizeof(task));
	if (task == run->thread.values[SHM_TASK])
		agent_thread.span = (struct thread_span){ e, (const struct abi_lane *)(const void *)run->lane, agent.engine.epoch,
							  ((const struct abi_lane *)(const void *)run->lane)->given_back };
}

void span_forget(const struct span *p, const struct shm_run *run)
{
	for (unsigned c = 0; run->recent && c < p->classes; c++)
		run->recent[p->map + c].found = NULL;
}

struct span_element span_element(const struct span *p, const struct shm_run *run)
{
	const struct abi_lane *lane = (const struct abi_lane *)(const void *)run->lane;

	for (unsigned c = 0; run->recent && c < p->classes; c++) {
		struct abi_elem *e = run->recent[p->map + c].found;

		if (e && e->state == ABI_ELEM_LIVE)
			return (struct span_element){ e, shm_words(&run->shm->maps[p->map + c], e), lane->given_back };
	}
	return (struct span_element){ NULL };
}

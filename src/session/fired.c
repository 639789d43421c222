/*
 * Finds the probe that a record belongs to.
 */
#include <string.h>

#include "base/arena.h"
#include "session/private.h"

/* A copy of the pattern's probe @p with the names of the matched function @met. */
static struct probe *met_function(struct session *s, const struct probe *p, const struct abi_probe *met)
{
	struct probe *one = arena_new_of(s->arena, struct probe);

	*one = *p;
	one->mod = arena_strdup(s->arena, met->mod);
	one->func = arena_strdup(s->arena, met->func);
	return one;
}

static struct probe **met_slot(struct session *s, size_t at)
{
	size_t cap = s->met.cap ? s->met.cap : 64;
	struct probe **v;

	while (cap <= at)
		cap *= 2;
	if (cap > s->met.cap) {
		v = arena_alloc(s->arena, cap * sizeof(*v));
		if (s->met.cap)
			memcpy(v, s->met.v, s->met.cap * sizeof(*v));
		s->met.v = v;
		s->met.cap = cap;
	}
	return &s->met.v[at];
}

bool session_fired(struct session *s, uint32_t probe, const struct enabled **en, const struct probe **fired)
{
	const struct abi_probe *met;
	struct probe **slot;
	uint32_t first;

	if (probe < s->on.n) {
		*en = &s->on.v[probe];
		*fired = (*en)->probe;
		return true;
	}
	first = s->unit->maps[EBPF_MAP_PROBES].max_entries - s->unit->nnamed;
	met = s->place->ops->named && probe >= first ? s->place->ops->named(s->place, probe) : NULL;
	if (!met || !met->pattern || met->pattern > s->on.n)
		return false;
	*en = &s->on.v[met->pattern - 1];
	slot = met_slot(s, probe - first);
	if (!*slot)
		*slot = met_function(s, (*en)->probe, met);
	*fired = *slot;
	return true;
}

/* SPDX-License-Identifier: MIT */
/*
 * Values are read as programs in the process read them (pyval.c), all that a fire names: what the program does with them, and
 * whether it gets that far, is not known here.  Reading has no effect on the traced program.
 */
#include "agent/away.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/pyval.h"
#include "vm/shm.h"

/* Where the value ends; 0: it has no room. */
static uint32_t end_of(const struct abi_wanted *w)
{
	if (w->off % 8 || w->off > ABI_GIVEN_MAX || w->size < 8 || w->size > ABI_GIVEN_MAX)
		return 0;
	return w->off + (uint32_t)offsetof(struct abi_given, value) + ((w->size + 7) & ~7u);
}

static bool wanted_good(const struct shm *shm, const struct abi_wanted *w, uint32_t number)
{
	return w->what < ABI_VALUE_MAX && end_of(w) && w->object_from <= number &&
	       (w->name_from == ABI_WANTED_TEXT ? w->name < shm->texts_size : w->name_from <= number);
}

bool away_good(const struct shm *shm, const struct abi_fire *f)
{
	if (f->prog != ABI_FIRE_AWAY || f->wanted > shm->nwanted || f->nwanted > shm->nwanted - f->wanted)
		return false;
	for (uint32_t k = 0; k < f->nwanted; k++)
		if (!wanted_good(shm, &shm->wanted[f->wanted + k], k))
			return false;
	return true;
}

int away_room(const struct shm *shm, void **ret)
{
	uint32_t size = 0;

	for (uint32_t k = 0; k < shm->nwanted; k++)
		size = size < end_of(&shm->wanted[k]) ? end_of(&shm->wanted[k]) : size;
	*ret = size ? calloc(1, size) : NULL;
	return size && !*ret ? -ENOMEM : 0;
}

static struct abi_given *given_at(const struct away_event *e, const struct abi_wanted *w)
{
	return (struct abi_given *)(void *)((char *)e->given + w->off);
}

/* A parameter that value @from has given; false: that is a fault, which becomes the result's. */
static bool take(const struct away_event *e, uint32_t from, struct abi_given *result, uint64_t *parameter)
{
	const struct abi_given *g = given_at(e, &e->run->shm->wanted[e->fire->wanted + from - 1]);

	if (g->ret >= 0)
		*parameter = g->value;
	else
		*result = *g;
	return g->ret >= 0;
}

static void read_value(const struct away_event *e, const struct abi_wanted *w)
{
	struct abi_given *g = given_at(e, w);
	uint64_t object = w->object, name = w->name;

	if (w->name_from == ABI_WANTED_TEXT)
		name = (uint64_t)(uintptr_t)(e->run->shm->texts + w->name);
	if ((w->object_from && !take(e, w->object_from, g, &object)) ||
	    (w->name_from && w->name_from != ABI_WANTED_TEXT && !take(e, w->name_from, g, &name)))
		return;
	memset(&g->value, 0, w->size);
	g->ret = (int64_t)pyval_values.value((uint64_t)(uintptr_t)&g->value, w->size, w->what, object, name, &e->run->thread);
	if (g->ret < 0)
		g->value = object;
}

void away_fire(const struct away_event *e)
{
	const struct abi_image *image = (const struct abi_image *)(const void *)e->run->shm->image;
	const struct abi_event event = {
		.session = image->id, .probe = e->fire->probe, .module = (uint64_t)(uintptr_t)e->module,
		.function = (uint64_t)(uintptr_t)e->qualname, .given = (uint64_t)(uintptr_t)e->given,
	};

	if (!__atomic_load_n(&dtap_function_semaphore, __ATOMIC_RELAXED))
		return;
	for (uint32_t k = 0; k < e->fire->nwanted; k++)
		read_value(e, &e->run->shm->wanted[e->fire->wanted + k]);
	marker_away((const char *)(uintptr_t)e->file, (const char *)(uintptr_t)e->name, e->line, &event);
}

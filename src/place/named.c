#include "place/named.h"

#include <stdlib.h>
#include <string.h>

#include "vm/shm.h"

enum { MIN = 64 };

static bool has_room(struct named_here *here, size_t at)
{
	size_t n = here->n ? here->n : MIN;
	uint32_t *v;

	if (at < here->n)
		return true;
	while (n <= at)
		n *= 2;
	v = realloc(here->numbers, n * sizeof(*v));
	if (!v)
		return false;
	memset(v + here->n, 0, (n - here->n) * sizeof(*v));
	here->numbers = v;
	here->n = n;
	return true;
}

/* Add the new @entry.  Returns its number; 0: no room. */
static uint32_t add(struct named *all, const struct abi_probe *entry)
{
	size_t cap = all->cap ? 2 * all->cap : MIN;
	struct abi_probe *v = all->v;

	if (all->n == ABI_NAMED_MAX)
		return 0;
	if (all->n == all->cap) {
		v = realloc(v, cap * sizeof(*v));
		if (!v)
			return 0;
		all->v = v;
		all->cap = cap;
	}
	v[all->n] = *entry;
	return all->first + (uint32_t)all->n++;
}

uint32_t named_number(struct named *all, struct named_here *here, const struct shm *shm, uint32_t index)
{
	struct abi_probe entry;
	uint32_t at;

	if (!shm_named(shm, index, &entry))
		return 0;
	at = index - shm->nprobes;
	if (!has_room(here, at))
		return 0;
	if (!here->numbers[at])
		here->numbers[at] = add(all, &entry);
	return here->numbers[at];
}

const struct abi_probe *named_get(const struct named *all, uint32_t number)
{
	return number >= all->first && number - all->first < all->n ? &all->v[number - all->first] : NULL;
}

void named_fini(struct named *all)
{
	free(all->v);
}

void named_here_fini(struct named_here *here)
{
	free(here->numbers);
}

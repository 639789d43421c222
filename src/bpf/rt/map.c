/*
 * Walks over maps: callbacks of bpf_for_each_map_elem.  Word 0 of an element is its number (abi/stat.h).
 */
#include "rt.h"

static long (*const rt_delete)(void *map, const void *key) = (void *)3;		/* map_delete_elem */

struct removal {
	u64 number;
	u64 removed;
};

RT long rt_oldest(void *map, const void *key, u64 *value, struct removal *c)
{
	u64 number = *(volatile u64 *)value;

	if (number && number < c->number)
		c->number = number;
	return 0;
}

static inline __attribute__((always_inline)) void delete(void *map, const void *key, struct removal *c)
{
	if (!rt_delete(map, key))
		c->removed++;
}

RT long rt_evict(void *map, const void *key, u64 *value, struct removal *c)
{
	if (*(volatile u64 *)value != c->number)
		return 0;
	delete(map, key, c);
	return 1;
}

RT long rt_clear(void *map, const void *key, u64 *value, struct removal *c)
{
	delete(map, key, c);
	return 0;
}

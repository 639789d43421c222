/*
 * The probe table's entry for a function that a pattern has matched: a copy of the pattern's with the function's names.
 * Programs on all CPUs make entries: who is not the first to enter a function takes the first one's, and leaves an
 * index unused.
 */
#include "rt.h"

#include "named.h"

static void *(*const rt_lookup)(void *map, const void *key) = (void *)1;	/* map_lookup_elem */
static long (*const rt_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*const rt_read_user_str)(void *dst, u32 size, u64 src) = (void *)114;	/* probe_read_user_str */

enum { NEW = 1 };	/* BPF_NOEXIST */

/* Put the string at @addr into @to, of @size bytes, which has zeros behind it. */
#define put(to, addr)								\
	do {									\
		__builtin_memset(to, 0, sizeof(to));				\
		rt_read_user_str(to, sizeof(to), addr);				\
	} while (0)

/* The index of the entry, or of the pattern's if there is no room.  @made: how many there are. */
RT s64 rt_named(void *names, void *probes, struct named_work *w, const struct named_event *e, u64 *made)
{
	u32 pattern = e->probe, index;
	void *entry, *known;
	u64 n;

	w->key.pattern = pattern;
	put(w->key.mod, e->module);
	put(w->key.func, e->function);
	known = rt_lookup(names, &w->key);
	if (known)
		return *(u32 *)known;
	entry = rt_lookup(probes, &pattern);
	if (!entry || rt_copy(&w->entry, sizeof(w->entry), entry) || *made >= e->most)
		return pattern;
	n = __sync_fetch_and_add(made, 1);
	if (n >= e->most)
		return pattern;
	index = e->first + (u32)n;
	w->entry.pattern = 1 + pattern;
	if (rt_copy(w->entry.mod, sizeof(w->entry.mod), w->key.mod) || rt_copy(w->entry.func, sizeof(w->entry.func), w->key.func))
		return pattern;
	/* Complete before anybody finds it. */
	if (rt_update(probes, &index, &w->entry, 0))
		return pattern;
	if (!rt_update(names, &w->key, &index, NEW))
		return index;
	known = rt_lookup(names, &w->key);
	return known ? *(u32 *)known : pattern;
}

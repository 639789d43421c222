#include "elf/ksyms.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

struct ksyms {
	struct arena *arena;
	struct ksym *v;
	size_t n, cap;
};

static int by_addr(const void *x, const void *y)
{
	const struct ksym *a = x, *b = y;

	return (a->addr > b->addr) - (a->addr < b->addr);
}

/* Lines "ffffffff81000000 T name" or "... t name\t[module]"; addresses are 0 if they are hidden. */
struct ksyms *ksyms_read(void)
{
	struct ksyms *k = calloc(1, sizeof(*k));
	char *line = NULL, type, name[256], mod[64];
	size_t cap = 0;
	uint64_t addr;
	FILE *f;

	if (!k)
		return NULL;
	k->arena = arena_new();
	f = fopen("/proc/kallsyms", "re");
	while (f && getline(&line, &cap, f) > 0) {
		int got = sscanf(line, "%" SCNx64 " %c %255s [%63[^]]", &addr, &type, name, mod);

		if (got < 3 || !addr || !strchr("tTwW", type))
			continue;
		k->v = arena_grow(k->arena, k->v, &k->cap, k->n, sizeof(*k->v));
		k->v[k->n++] = (struct ksym){ addr, arena_strdup(k->arena, name),
					      got > 3 ? arena_strdup(k->arena, mod) : "vmlinux" };
	}
	free(line);
	if (f)
		fclose(f);
	if (k->n)
		qsort(k->v, k->n, sizeof(*k->v), by_addr);
	return k;
}

void ksyms_free(struct ksyms *k)
{
	if (!k)
		return;
	arena_free(k->arena);
	free(k);
}

const struct ksym *ksyms_at(const struct ksyms *k, uint64_t addr)
{
	size_t lo = 0, hi;

	for (hi = k->n; lo < hi;) {	/* find the first that starts after the address */
		size_t mid = lo + (hi - lo) / 2;

		if (k->v[mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? &k->v[lo - 1] : NULL;
}

bool ksyms_range(const struct ksyms *k, const char *name, uint64_t *lo, uint64_t *hi)
{
	size_t len = strlen(name), compared = len && name[len - 1] == '*' ? len - 1 : len + 1, i, last = k->n;

	*lo = *hi = 0;
	for (i = 0; i < k->n; i++) {
		if (strncmp(k->v[i].name, name, compared))
			continue;
		if (last == k->n)
			*lo = k->v[i].addr;
		last = i;
	}
	if (last == k->n)
		return false;
	for (i = last; i < k->n && k->v[i].addr == k->v[last].addr;)
		i++;
	*hi = i < k->n ? k->v[i].addr : UINT64_MAX;
	return true;
}

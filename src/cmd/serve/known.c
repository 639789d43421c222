#include "cmd/serve/known.h"

#include <stdbool.h>
#include <stdlib.h>

#include "cmd/serve/labels.h"

static struct labels *find(const struct known *k, pid_t pid)
{
	return bytemap_get(&k->by_pid, &pid, sizeof(pid));
}

const struct labels *known_process(const struct known *k, pid_t pid)
{
	return find(k, pid);
}

static void forget(struct known *k, pid_t pid)
{
	free(bytemap_del(&k->by_pid, &pid, sizeof(pid)));
}

const struct labels *known_learn(struct known *k, pid_t pid, const struct serve_pairs *environment)
{
	struct labels read, *l;

	forget(k, pid);
	labels_read(pid, environment, &read);
	l = labels_pack(&read);
	labels_fini(&read);
	if (l && !bytemap_set(&k->by_pid, &pid, sizeof(pid), l))
		return l;
	free(l);
	return NULL;
}

/* The one that ended first; a later process may have its number. */
static void forget_first(struct known *k)
{
	const struct known_gone *g = &k->gone[k->first];
	const struct labels *l = find(k, g->pid);

	if (l && l->gone_ms && l->gone_ms <= g->ms)
		forget(k, g->pid);
	k->first = (k->first + 1) & (k->cap - 1);
	k->n--;
}

/* Room for one more.  False: out of memory. */
static bool has_room(struct known *k)
{
	size_t cap = k->cap ? 2 * k->cap : 64;
	struct known_gone *v;

	if (k->n == KNOWN_GONE)
		forget_first(k);
	if (k->n < k->cap)
		return true;
	v = calloc(cap, sizeof(*v));
	if (!v)
		return false;
	for (size_t i = 0; i < k->n; i++)
		v[i] = k->gone[(k->first + i) & (k->cap - 1)];
	free(k->gone);
	k->gone = v;
	k->first = 0;
	k->cap = cap;
	return true;
}

void known_retire(struct known *k, pid_t pid, uint64_t ms)
{
	struct labels *l = find(k, pid);

	if (!l)
		return;
	if (!has_room(k)) {
		forget(k, pid);
		return;
	}
	l->gone_ms = ms;
	k->gone[(k->first + k->n++) & (k->cap - 1)] = (struct known_gone){ pid, ms };
}

void known_forget(struct known *k, uint64_t ms)
{
	while (k->n && k->gone[k->first].ms < ms)
		forget_first(k);
}

void known_fini(struct known *k)
{
	struct labels *l;

	for (size_t pos = 0; (l = bytemap_next(&k->by_pid, &pos));)
		free(l);
	bytemap_fini(&k->by_pid);
	free(k->gone);
	*k = (struct known){ 0 };
}

#include "probe/pygil.h"

#include <string.h>

#include "abi/cpython.h"
#include "base/arena.h"
#include "elf/obj.h"
#include "probe/python.h"

enum { WAIT, SIGNAL, CALLS };
enum { EITHER = 1 << WAIT | 1 << SIGNAL };

static const char *const functions[CALLS] = { [WAIT] = "pthread_cond_timedwait", [SIGNAL] = "pthread_cond_signal" };

static const struct event {
	enum ebpf_gil event;
	const char *name;
	unsigned int calls;		/* at which it is seen, bit by bit */
	unsigned int nargs;
} events[] = {
	/* A wait lasts until the lock is taken, whatever wakes the thread up meanwhile. */
	{ EBPF_GIL_WAIT, "gil__wait", EITHER, 1 },
	{ EBPF_GIL_TAKE, "gil__take", EITHER, 2 },
	{ EBPF_GIL_DROP, "gil__drop", 1 << SIGNAL, 2 },
};

enum { EVENTS = sizeof(events) / sizeof(events[0]) };

/* --- the functions that are called ----------------------------------------------------------------------- */

static void note_entry(void *ctx, const char *name, uint64_t addr)
{
	uint64_t *entries = ctx;

	for (int i = 0; i < CALLS; i++)
		if (!strcmp(name, functions[i]))
			entries[i] = addr;
}

/* What the calls refer to: the table's entries, or (-fno-plt) the words that have the functions' addresses. */
static bool find_entries(struct obj *o, uint64_t entries[static CALLS])
{
	memset(entries, 0, CALLS * sizeof(*entries));
	obj_each_plt(o, note_entry, entries);
	if (!entries[WAIT] && !entries[SIGNAL])
		obj_each_got(o, note_entry, entries);
	return entries[WAIT] && entries[SIGNAL];
}

/* --- markers ------------------------------------------------------------------------------------------- */

static bool has_lock(struct obj *o, uint16_t version)
{
	const struct obj_links *links = obj_links(o);
	uint64_t addr;

	if (version < 0x0300 + CPYTHON_FIRST || version > 0x0300 + CPYTHON_LAST || obj_exports(o, "_Py_DecRefShared", &addr))
		return false;
	for (unsigned int i = 0; i < links->nneeded; i++)
		if (!strcmp(links->needed[i], "libc.so.6"))
			return true;
	return false;
}

/* The operands of @nargs arguments: those of a function's first, of which the programs make all (bpf/gen_gil.c). */
static const char *operands(struct arena *a, unsigned int nargs)
{
	const char *first = arch_host()->call_args + (*arch_host()->call_args == '-'), *one;	/* unsigned */

	one = arena_strndup(a, first, strcspn(first, " "));
	return nargs == 1 ? one : arena_printf(a, "%s %s", one, one);
}

size_t pygil_markers(struct obj *o, uint16_t version, struct arena *a, const struct obj_marker **markers, size_t n)
{
	uint64_t entries[CALLS];
	struct obj_marker *all;

	if (!arch_host() || !has_lock(o, version) || !find_entries(o, entries))
		return n;
	all = arena_alloc(a, (n + EVENTS) * sizeof(*all));
	if (n)
		memcpy(all, *markers, n * sizeof(*all));
	*markers = all;
	for (size_t i = 0; i < EVENTS; i++) {
		struct obj_marker m = { .prov = PYTHON_PROVIDER, .name = events[i].name, .addr = entries[SIGNAL],
					.event = events[i].event };

		m.args = operands(a, events[i].nargs);
		if (obj_offset(o, m.addr, false, &m.off))
			all[n++] = m;
	}
	return n;
}

enum ebpf_gil pygil_event(const struct obj_marker *m)
{
	return (enum ebpf_gil)m->event;
}

bool pygil_is_meant(const char *name)
{
	return !strncmp(name, "gil", 3);
}

/* --- their sites --------------------------------------------------------------------------------------- */

struct noting {
	struct obj *o;
	struct arena *a;
	unsigned int wanted, seen;	/* calls, bit by bit */
	uint64_t *v;
	size_t n, cap;
};

static void note_call(void *ctx, size_t target, uint64_t addr)
{
	struct noting *c = ctx;
	uint64_t off;

	c->seen |= 1u << target;
	if (!(c->wanted >> target & 1) || !obj_offset(c->o, addr, true, &off))
		return;
	c->v = arena_grow(c->a, c->v, &c->cap, c->n, sizeof(*c->v));
	c->v[c->n++] = off;
}

size_t pygil_calls(struct obj *o, enum ebpf_gil event, struct arena *a, uint64_t **ret)
{
	struct noting c = { .o = o, .a = a };
	uint64_t entries[CALLS];

	for (size_t i = 0; i < EVENTS; i++)
		if (events[i].event == event)
			c.wanted = events[i].calls;
	if (!find_entries(o, entries) || obj_each_call(o, entries, CALLS, note_call, &c) || c.seen != EITHER)
		return 0;
	*ret = c.v;
	return c.n;
}

#include "session/aggs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytemap.h"
#include "base/strbuf.h"
#include "bpf/ebpf.h"
#include "ir/layout.h"
#include "out/names.h"
#include "place/place.h"

/* The state of one key. */
struct entry {
	uint32_t map;			/* number of the map that has it: its key class */
	size_t key_size;
	bool truncated;			/* not shown until its value changes */
	bool idle;			/* truncated twice without a change in between: can be removed */
	bool seen;			/* it was in the last reading */
	bool used;			/* its element says that it is (ir_agg_tells_use()), or it was cleared */
	struct entry *same;		/* the next entry of the same row */
	struct ir_value *keys;		/* decoded from raw_key */
	void *raw_key;
	uint64_t *total, *base, *shown;	/* words each; all of the entry is one allocation */
};

struct agg_state {
	const struct ir_agg *agg;
	uint32_t words;
	uint64_t normal;
	bool printed;
	bool fresh;			/* was read since aggs_stale() */
	struct bytemap entries;		/* by map number and key */
	struct out_agg_row *rows;		/* of the last reading, with their entries */
	struct entry **row_entries;
	size_t nrows;
};

struct aggs {
	const struct ebpf_unit *unit;
	struct place *place;
	struct agg_state *states;	/* by ir_agg.id */
	struct names *names;
	int (*pull)(void *ctx);
	void *pull_ctx;
};

struct aggs *aggs_new(const struct ebpf_unit *unit, struct place *place)
{
	const struct ir_prog *prog = unit->prog;
	struct aggs *a = calloc(1, sizeof(*a));
	uint32_t i;

	if (!a)
		return NULL;
	a->unit = unit;
	a->place = place;
	a->states = calloc(prog->naggs ? prog->naggs : 1, sizeof(*a->states));
	if (!a->states) {
		free(a);
		return NULL;
	}
	for (i = 0; i < prog->naggs; i++) {
		a->states[i].agg = prog->aggs[i];
		a->states[i].words = ir_agg_words(prog->aggs[i]);
		a->states[i].normal = 1;
	}
	return a;
}

void aggs_free(struct aggs *a)
{
	struct entry *e;
	uint32_t i;
	size_t pos;

	if (!a)
		return;
	for (i = 0; i < a->unit->prog->naggs; i++) {
		for (pos = 0; (e = bytemap_next(&a->states[i].entries, &pos));)
			free(e);
		bytemap_fini(&a->states[i].entries);
		free(a->states[i].rows);
		free(a->states[i].row_entries);
	}
	free(a->states);
	free(a);
}

/* --- values ------------------------------------------------------------------------------------------- */

static bool is_extreme(const struct ir_agg *g)
{
	return g->fn == IR_A_MIN || g->fn == IR_A_MAX;
}

/* Add @more (two words, low first) to the 128-bit @sum, or subtract it. */
static void add128(uint64_t sum[2], const uint64_t more[2])
{
	uint64_t low = sum[0] + more[0];

	sum[1] += more[1] + (low < sum[0]);
	sum[0] = low;
}

static void sub128(uint64_t from[2], const uint64_t less[2])
{
	uint64_t low = from[0] - less[0];

	from[1] -= less[1] + (from[0] < less[0]);
	from[0] = low;
}

/* Merge the value of one CPU into @total. */
static void merge(const struct ir_agg *g, uint32_t words, uint64_t *total, const uint64_t *value)
{
	uint32_t i;

	if (is_extreme(g)) {
		bool less = g->sign ? (int64_t)value[0] < (int64_t)total[0] : value[0] < total[0];

		if (value[1] && (!total[1] || (value[0] != total[0] && less == (g->fn == IR_A_MIN))))
			total[0] = value[0];
		total[1] |= value[1];
		return;
	}
	for (i = 0; i < words; i++)
		if (g->fn != IR_A_STDDEV || i < 2)
			total[i] += value[i];
	if (g->fn == IR_A_STDDEV)
		add128(total + 2, value + 2);
}

/* Compute the values to show: @total relative to @base. */
static void subtract(const struct ir_agg *g, uint32_t words, uint64_t *shown, const uint64_t *total,
		     const uint64_t *base)
{
	uint32_t i;

	memcpy(shown, total, words * sizeof(*shown));
	if (is_extreme(g))
		return;
	for (i = 0; i < words; i++)
		if (g->fn != IR_A_STDDEV || i < 2)
			shown[i] -= base[i];
	if (g->fn == IR_A_STDDEV)
		sub128(shown + 2, base + 2);
}

/* --- reading ------------------------------------------------------------------------------------------ */

/* The state of reading one map. */
struct reading {
	struct agg_state *st;
	uint32_t map;
	size_t key_size, value_size;
	uint32_t strsize;
	int error;
};

static struct entry *entry_new(struct reading *r, const void *key)
{
	struct agg_state *st = r->st;
	const struct ir_agg *g = st->agg;
	size_t words = st->words * sizeof(uint64_t);
	struct entry *e = calloc(1, sizeof(*e) + g->nkeys * sizeof(*e->keys) + 3 * words + r->key_size);

	if (!e) {
		r->error = -ENOMEM;
		return NULL;
	}
	e->keys = (struct ir_value *)(e + 1);
	e->total = (uint64_t *)(e->keys + g->nkeys);
	e->base = e->total + st->words;
	e->shown = e->base + st->words;
	e->raw_key = e->shown + st->words;
	e->map = r->map;
	e->key_size = r->key_size;
	memcpy(e->raw_key, key, r->key_size);
	/* The place has checked the key. */
	r->error = ir_key_decode(g->keys, g->nkeys, 0, e->raw_key, r->key_size, e->keys);
	if (r->error) {
		free(e);
		return NULL;
	}
	return e;
}

/* A key's name in the table: the map's number, then the key. */
static void *table_key(uint32_t map, const void *key, size_t size)
{
	char *p = malloc(sizeof(map) + size);

	if (p) {
		memcpy(p, &map, sizeof(map));
		memcpy(p + sizeof(map), key, size);
	}
	return p;
}

static void read_element(void *ctx, const void *key, const void *value, unsigned int ncpus)
{
	struct reading *r = ctx;
	struct agg_state *st = r->st;
	size_t size = sizeof(r->map) + r->key_size;
	struct entry *e;
	unsigned int cpu;
	void *name;

	if (r->error)
		return;
	name = table_key(r->map, key, r->key_size);
	if (!name) {
		r->error = -ENOMEM;
		return;
	}
	e = bytemap_get(&st->entries, name, size);
	if (!e) {
		e = entry_new(r, key);
		if (e && bytemap_set(&st->entries, name, size, e)) {
			free(e);
			e = NULL;
			r->error = -ENOMEM;
		}
	}
	free(name);
	if (!e)
		return;
	if (!e->seen)	/* a key can come several times in one reading */
		memset(e->total, 0, st->words * sizeof(*e->total));
	for (cpu = 0; cpu < ncpus; cpu++) {
		const uint64_t *words = (const uint64_t *)((const char *)value + cpu * r->value_size);

		merge(st->agg, st->words, e->total, words);
		e->used |= ir_agg_tells_use(st->agg) && words[st->words];
	}
	e->seen = true;
}

/* Was nothing ever added?  An aggregation without keys is an array's element, which exists from the start. */
static bool is_empty(const struct agg_state *st, const struct entry *e)
{
	uint32_t i;

	if (e->used)
		return false;
	for (i = 0; i < st->words; i++)
		if (e->total[i])
			return false;
	return st->agg->nkeys == 0;
}

static int make_rows(struct agg_state *st)
{
	struct out_agg_row *rows = realloc(st->rows, (st->entries.n + 1) * sizeof(*rows));
	struct entry **entries;
	struct entry *e;
	size_t pos = 0;

	if (!rows)
		return -ENOMEM;
	st->rows = rows;
	entries = realloc(st->row_entries, (st->entries.n + 1) * sizeof(struct entry *));
	if (!entries)
		return -ENOMEM;
	st->row_entries = entries;
	st->nrows = 0;
	while ((e = bytemap_next(&st->entries, &pos))) {
		if (is_empty(st, e))
			continue;
		subtract(st->agg, st->words, e->shown, e->total, e->base);
		if (e->truncated) {
			if (!e->seen || !memcmp(e->total, e->base, st->words * sizeof(*e->base)))
				continue;
			e->truncated = e->idle = false;
		}
		st->row_entries[st->nrows] = e;
		st->rows[st->nrows++] = (struct out_agg_row){ e->keys, e->shown };
	}
	return 0;
}

void aggs_set_names(struct aggs *a, struct names *names, int (*pull)(void *ctx), void *ctx)
{
	a->names = names;
	a->pull = pull;
	a->pull_ctx = ctx;
}

/* Replace numbers in @e's keys by the first ones with the same names; false: none were replaced. */
static bool same_names(struct aggs *a, const struct ir_agg *g, struct entry *e)
{
	bool any = false;
	uint32_t i;

	for (i = 0; i < g->nkeys; i++) {
		enum ir_show show = (enum ir_show)g->keys[i].show;

		if (show != IR_SHOW_SYM && show != IR_SHOW_MOD && show != IR_SHOW_STACK)
			continue;
		e->keys[i].i = (int64_t)names_same(a->names, show, (uint64_t)e->keys[i].i);
		any = true;
	}
	return any;
}

/* The bytes of @e's keys; equal keys have equal bytes. */
static void key_bytes(const struct ir_agg *g, const struct entry *e, struct strbuf *out)
{
	uint32_t i;

	strbuf_clear(out);
	for (i = 0; i < g->nkeys; i++) {
		if (e->keys[i].type == IR_STR)
			strbuf_add(out, e->keys[i].s, strlen(e->keys[i].s) + 1);
		else
			strbuf_add(out, (const char *)&e->keys[i].i, sizeof(e->keys[i].i));
	}
}

/* Join rows whose keys have the same names. */
static int join_rows(struct aggs *a, struct agg_state *st)
{
	struct bytemap rows = { 0 };
	struct strbuf key = { 0 };
	size_t i, n = 0;
	int err = 0;

	for (i = 0; i < st->nrows && !err; i++) {
		struct entry *e = st->row_entries[i], *first;

		e->same = NULL;
		if (!same_names(a, st->agg, e)) {
			n++;
			continue;
		}
		key_bytes(st->agg, e, &key);
		first = bytemap_get(&rows, key.s, key.len);
		if (first) {
			merge(st->agg, st->words, first->shown, e->shown);
			e->same = first->same;
			first->same = e;
			continue;
		}
		err = bytemap_set(&rows, key.s, key.len, e);
		st->rows[n] = st->rows[i];
		st->row_entries[n++] = e;
	}
	st->nrows = n;
	bytemap_fini(&rows);
	strbuf_fini(&key);
	return err;
}

/* Is the map of the key @e more than half full, so that its memory is needed? */
static bool is_wanted(const struct aggs *a, const struct agg_state *st, const struct entry *e)
{
	return st->entries.n > a->unit->maps[e->map].max_entries / 2;
}

/* Remove @e.  False: there is no memory. */
static bool forget(struct aggs *a, struct agg_state *st, struct entry *e)
{
	void *name = table_key(e->map, e->raw_key, e->key_size);

	if (!name)
		return false;
	a->place->ops->map_delete(a->place, e->map, e->raw_key);
	bytemap_del(&st->entries, name, sizeof(e->map) + e->key_size);
	free(name);
	free(e);
	return true;
}

/*
 * Remove keys that were truncated twice without a change, where memory is needed.  A concurrent event may be lost
 * with its key, if its program has found the element already.  If out of memory, keys stay until the next time.
 */
static void forget_idle(struct aggs *a, struct agg_state *st)
{
	struct entry *e, **idle = malloc(st->entries.n * sizeof(struct entry *) + 1);
	size_t pos = 0, n = 0;

	while (idle && (e = bytemap_next(&st->entries, &pos)))
		if (e->truncated && e->idle && st->agg->nkeys && is_wanted(a, st, e))
			idle[n++] = e;
	while (n && forget(a, st, idle[n - 1]))
		n--;
	free(idle);
}

void aggs_forget(struct aggs *a, const struct ir_agg *g, const struct ir_value *const *keys, size_t n)
{
	struct agg_state *st = &a->states[g->id];

	if (!n || !g->nkeys)
		return;
	for (size_t i = 0; i < n; i++) {
		struct entry *same, *e = (struct entry *)(uintptr_t)keys[i] - 1;	/* entry_new(): the keys are behind it */

		for (; e; e = same) {
			same = e->same;
			forget(a, st, e);
		}
	}
	st->nrows = 0;
	st->fresh = false;
}

/* Read the maps of @st's aggregation. */
static int read_maps(struct aggs *a, struct agg_state *st)
{
	struct reading r = { .st = st, .strsize = a->unit->prog->strsize };
	uint32_t first, i, n = ebpf_agg_maps(a->unit, st->agg, &first);
	struct entry *e;
	size_t pos = 0;
	int err;

	while ((e = bytemap_next(&st->entries, &pos)))
		e->seen = false;
	for (i = 0; i < n; i++) {
		const struct ebpf_map *m = &a->unit->maps[first + i];

		r.map = first + i;
		r.key_size = m->key_size;
		r.value_size = (m->value_size + 7) & ~7u;
		err = a->place->ops->map_each(a->place, first + i, read_element, &r);
		if (err || r.error)
			return err ? err : r.error;
	}
	return 0;
}

void aggs_stale(struct aggs *a)
{
	uint32_t i;

	for (i = 0; i < a->unit->prog->naggs; i++)
		a->states[i].fresh = false;
}

long aggs_read(struct aggs *a, const struct ir_agg *g, const struct out_agg_row **rows)
{
	struct agg_state *st = &a->states[g->id];
	bool fresh = st->fresh;
	int err = fresh ? 0 : read_maps(a, st);

	if (!err && a->names && !fresh)
		err = a->pull(a->pull_ctx);
	if (!err)
		err = make_rows(st);
	if (!err && a->names)
		err = join_rows(a, st);
	if (err)
		return err;
	if (!fresh)
		forget_idle(a, st);	/* now, while the reading is recent */
	st->fresh = true;
	*rows = st->rows;
	return (long)st->nrows;
}

/* --- clear, trunc, normalize -------------------------------------------------------------------------- */

/* Make the current values of @e the base of later ones. */
static int rebase(struct aggs *a, struct agg_state *st, struct entry *e)
{
	int err = 0;

	if (is_extreme(st->agg)) {
		err = a->place->ops->map_delete(a->place, e->map, e->raw_key);
		memset(e->total, 0, st->words * sizeof(*e->total));
	}
	memcpy(e->base, e->total, st->words * sizeof(*e->base));
	return err == -ENOENT ? 0 : err;
}

int aggs_clear(struct aggs *a, const struct ir_agg *g)
{
	struct agg_state *st = &a->states[g->id];
	struct entry *en;
	size_t i;
	int err = 0, e;

	for (i = 0; i < st->nrows; i++) {
		for (en = st->row_entries[i]; en; en = en->same) {
			e = rebase(a, st, en);
			if (e)
				err = e;
			en->used = true;	/* has a row, also where the extreme of no keys was forgotten */
			memset(en->shown, 0, st->words * sizeof(uint64_t));
		}
	}
	return err;
}

int aggs_trunc(struct aggs *a, const struct ir_agg *g, const size_t *index, size_t n)
{
	struct agg_state *st = &a->states[g->id];
	struct entry *old;
	size_t i, pos = 0;
	int err = 0, e;

	while ((old = bytemap_next(&st->entries, &pos)))
		old->idle = old->truncated;
	for (i = 0; i < n; i++) {
		struct entry *en;

		for (en = st->row_entries[index[i]]; en; en = en->same) {
			e = rebase(a, st, en);
			if (e)
				err = e;
			en->truncated = true;
			en->idle = false;
		}
	}
	return err;
}

void aggs_normalize(struct aggs *a, const struct ir_agg *g, uint64_t n)
{
	a->states[g->id].normal = n ? n : 1;
}

uint64_t aggs_normal(const struct aggs *a, const struct ir_agg *g)
{
	return a->states[g->id].normal;
}

void aggs_set_printed(struct aggs *a, const struct ir_agg *g)
{
	a->states[g->id].printed = true;
}

bool aggs_printed(const struct aggs *a, const struct ir_agg *g)
{
	return a->states[g->id].printed;
}

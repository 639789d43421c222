/*
 * The maps of a session, and the layout of their values.
 */
#include "bpf/unit.h"

#include <stdio.h>
#include <string.h>

#include "abi/python.h"
#include "abi/record.h"
#include "base/arena.h"
#include "bpf/rt/iter.h"
#include "bpf/rt/match.h"
#include "bpf/rt/named.h"
#include "ir/facts.h"
#include "lang/format.h"
#include "lang/regex.h"

enum {
	VALUE_MAX = 1 << 20,		/* largest value or key of a map that this file creates, in bytes */
	HASH_ELEMENT = 48,		/* the kernel's own bytes per element of a hash table */
	ONE_READY = 256,		/* of larger elements the kernel keeps one ready per CPU
					 * (kernel/bpf/memalloc.c) */
	BEFOREHAND_MAX = 4 << 20,
	AGG_BEFOREHAND_MAX = 32 << 20,
	PERCPU_VALUE_MAX = 32 * 1024,	/* PCPU_MIN_UNIT_SIZE: what the kernel allows for a per-CPU value */
	SCRATCH_MAX = 4 << 20,
	ITERS_MAX = 64 << 20,		/* bytes of all buffers for iterations */
	ITER_BUFFERS = 8,
	COPYIN_GUARD = 64,
	SCRATCH_SLOTS_UNKNOWN = 64,	/* scratch slots if the number of CPUs is unknown */
	ORDERED_SLACK = 64,		/* the kernel counts elements per CPU, so not quite exactly */
	ELEMENT_OVERHEAD = 64,		/* the kernel's part of a hash element, about */
	STACKS = 16384,			/* each is sent to the tracer once, unless it was evicted */
	CODES = 32768,			/* the same of Python's code objects */
	PROCESSES = 512,		/* whose mappings or Python frames are known */
	COSTS = 16384,			/* processes with events since the tracer last looked */
	KEPT = 16384,			/* threads whose stacks are kept */
	GILS = 16384,			/* threads that wait for an interpreter's lock, or have it, by probe */
	VTIMES = 8192,			/* threads whose vtimestamp never goes back, unless evicted */
	DIRECT_MAX = 56,		/* maps that a program names; the kernel's limit is 64 (MAX_USED_MAPS) */
	FULL_SIZE_MAX = 64,		/* maps that have all of aggsize or dynvarsize each */
};

static uint32_t align8(uint32_t n)
{
	return (n + 7) & ~7u;
}

static uint32_t power_of_two(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p *= 2;
	return p;
}

static void set_map(struct ebpf_map *m, enum bpf_map_type type, uint32_t key_size, uint32_t value_size,
		    uint32_t max_entries, uint32_t flags, const char *name)
{
	m->type = type;
	m->key_size = key_size;
	m->value_size = value_size;
	m->max_entries = max_entries;
	m->map_flags = flags;
	snprintf(m->name, sizeof(m->name), "%.*s", (int)sizeof(m->name) - 1, name);
}

/* How many elements of that size @bytes hold.  Of very many maps, @nmaps, each has less. */
static uint32_t entries(uint32_t bytes, uint32_t nmaps, uint32_t key_size, uint32_t value_size)
{
	uint64_t share = nmaps > FULL_SIZE_MAX ? (uint64_t)bytes * FULL_SIZE_MAX / nmaps : bytes;
	uint32_t n = (uint32_t)(share / (key_size + value_size + ELEMENT_OVERHEAD));

	return n < 16 ? 16 : n;
}

uint32_t unit_rodata(const struct ir_prog *prog, struct ebpf_private *p, const char *s)
{
	size_t len = strnlen(s, prog->strsize - 1);
	struct rodata_str *str;

	for (uint32_t k = 0; k < p->nstrs; k++) {
		if (!strncmp(p->strs[k].s, s, len) && strlen(p->strs[k].s) == len)
			return p->strs[k].off;
	}
	p->strs = arena_grow(prog->arena, p->strs, &p->strs_cap, p->nstrs, sizeof(*p->strs));
	str = &p->strs[p->nstrs++];
	str->s = arena_strndup(prog->arena, s, len);
	str->off = p->rodata_size;
	p->rodata_size += align8((uint32_t)len + 1);
	return str->off;
}

/* --- the IR's own ------------------------------------------------------------------------------------- */


/* Number the maps of the keys @k, from *next on. */
static void number_keyed(struct keyed *k, const struct ir_prog *prog, const struct ir_slot *keys, uint32_t nkeys,
			 uint32_t hidden, uint32_t *next)
{
	k->n = ir_key_sizes(keys, nkeys, hidden, ir_str_room(prog), k->sizes);
	k->ints = hidden;
	for (uint32_t i = 0; i < nkeys; i++) {
		if (keys[i].type == IR_STR)
			k->strs++;
		else
			k->ints++;
	}
	k->first = *next;
	*next += k->n;
}

/*
 * Without preallocation the kernel takes large elements from a cache that has one per CPU, and refills it when
 * interrupts are on.  A tracepoint that fires with interrupts off, such as signal_generate, would get no second one: a
 * map with a size of its own, if it is small, is preallocated.
 */
static uint32_t element_flags(const struct ir_map *m, uint32_t key, uint32_t value)
{
	uint64_t size = (uint64_t)key + value + HASH_ELEMENT;

	return m->max_entries && size > ONE_READY && size * m->max_entries <= BEFOREHAND_MAX ? 0 : BPF_F_NO_PREALLOC;
}

/*
 * Of elements that have a value for each CPU it keeps one or two ready, whatever their size: a clause, or several at one event,
 * that sees two new keys with interrupts off would lose one.  Where that is possible they are preallocated, which takes a
 * microsecond each.
 */
static uint32_t percpu_flags(const struct ebpf_sizes *sizes, uint32_t n, uint32_t key, uint32_t value)
{
	uint64_t size = key + HASH_ELEMENT + (uint64_t)value * sizes->ncpus;

	return sizes->uninterrupted && sizes->ncpus && size * n <= AGG_BEFOREHAND_MAX ? 0 : BPF_F_NO_PREALLOC;
}

static const char *plan_arrays(struct ebpf_unit *u, const struct ebpf_sizes *sizes)
{
	const struct ir_prog *prog = u->prog;

	for (uint32_t i = 0; i < prog->nmaps; i++) {
		const struct ir_map *m = prog->maps[i];
		const struct keyed *k = &u->priv->maps[i];
		uint32_t value = ir_map_value_size(m, ir_str_room(prog));

		for (unsigned int c = 0; c < k->n; c++) {
			char name[32];

			if (k->sizes[c] > VALUE_MAX)
				return arena_printf(prog->arena, "the keys of the array %s are too large: lower strsize",
						    m->name);
			snprintf(name, sizeof(name), "array%u_%u", i, c);
			set_map(&u->maps[k->first + c], BPF_MAP_TYPE_HASH, k->sizes[c], value,
				m->max_entries ? m->max_entries + (m->ordered ? ORDERED_SLACK : 0) :
						 entries(sizes->dynvarsize, prog->nmaps, k->sizes[c], value),
				element_flags(m, k->sizes[c], value), name);
		}
	}
	return NULL;
}

static const char *plan_aggs(struct ebpf_unit *u, const struct ebpf_sizes *sizes, uint32_t *largest)
{
	const struct ir_prog *prog = u->prog;

	for (uint32_t i = 0; i < prog->naggs; i++) {
		const struct ir_agg *g = prog->aggs[i];
		const struct keyed *k = &u->priv->aggs[i];
		uint32_t value = (ir_agg_words(g) + ir_agg_tells_use(g)) * 8;

		if (!ir_agg_words(g) || value > PERCPU_VALUE_MAX)
			return arena_printf(prog->arena, "the aggregation @%s has impossible parameters", g->name);
		if (*largest < value)
			*largest = value;
		for (unsigned int c = 0; c < k->n; c++) {
			struct ebpf_map *m = &u->maps[k->first + c];
			char name[32];
			uint32_t n;

			if (k->sizes[c] > VALUE_MAX)
				return arena_printf(prog->arena, "the keys of the aggregation @%s are too large: "
						    "lower strsize", g->name);
			snprintf(name, sizeof(name), "agg%u_%u", i, c);
			n = entries(sizes->aggsize, prog->naggs, k->sizes[c], value);
			if (g->nkeys)
				set_map(m, BPF_MAP_TYPE_PERCPU_HASH, k->sizes[c], value, n,
					percpu_flags(sizes, n, k->sizes[c], value), name);
			else
				set_map(m, BPF_MAP_TYPE_PERCPU_ARRAY, 4, value, 1, 0, name);
		}
	}
	return NULL;
}

/* --- more maps than a program may name ------------------------------------------------------------------- */

static bool alike(const struct ebpf_map *a, const struct ebpf_map *b)
{
	return a->type == b->type && a->key_size == b->key_size && a->value_size == b->value_size &&
	       a->map_flags == b->map_flags;
}

/* Is @number one of an array that is iterated over?  Walks name its map. */
static bool is_ordered(const struct ebpf_unit *u, uint32_t number)
{
	for (uint32_t i = 0; i < u->prog->nmaps; i++) {
		const struct keyed *k = &u->priv->maps[i];

		if (u->prog->maps[i]->ordered && number >= k->first && number < k->first + k->n)
			return true;
	}
	return false;
}

/* Put map @first and those after it that are like it, of the first @n, into a map of maps, if they are several. */
static void group(struct ebpf_unit *u, struct ebpf_private *p, uint32_t first, uint32_t n)
{
	uint32_t *inner = arena_alloc(u->prog->arena, n * sizeof(*inner)), count = 0;
	struct ebpf_map *outer = &u->maps[u->nmaps];

	for (uint32_t k = first; k < n; k++) {
		if (!p->places[k].outer && alike(&u->maps[k], &u->maps[first]) && !is_ordered(u, k))
			inner[count++] = k;
	}
	if (count < 2)
		return;
	for (uint32_t k = 0; k < count; k++)
		p->places[inner[k]] = (struct map_place){ u->nmaps, k };
	set_map(outer, BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, count, 0, "maps");
	outer->inner = inner;
	u->nmaps++;
	if (p->nindexes < count)
		p->nindexes = count;
}

/*
 * The kernel has a limit on the maps of a program.  Beyond it those of arrays and aggregations that are alike are put
 * into maps of maps, and programs look them up there.
 */
static void group_maps(struct ebpf_unit *u, struct ebpf_private *p)
{
	uint32_t used = 0, n = u->nmaps;

	for (uint32_t k = 0; k < n; k++)
		used += u->maps[k].type != BPF_MAP_TYPE_UNSPEC;
	for (uint32_t k = EBPF_MAP_FIRST; used > DIRECT_MAX && k < n; k++) {
		if (!p->places[k].outer && !is_ordered(u, k))
			group(u, p, k, n);
	}
}

/* --- variables ---------------------------------------------------------------------------------------- */

/* Give the variables of class @cls and type @type offsets from *size on. */
static const char *lay_out_vars(struct ebpf_unit *u, uint32_t *off, enum ir_class cls, enum ir_type type,
			      uint32_t each, uint32_t *size)
{
	for (uint32_t i = 0; i < u->prog->nvars; i++) {
		const struct ir_var *v = u->prog->vars[i];

		if (v->cls != cls || v->slot.type != type)
			continue;
		off[i] = *size;
		*size += each;
		if (*size > VALUE_MAX)
			return arena_printf(u->prog->arena, "the variables take too much memory at %s: lower strsize",
					    v->name);
	}
	return NULL;
}

static const char *plan_vars(struct ebpf_unit *u, struct ebpf_private *p, const struct ebpf_sizes *sizes)
{
	uint32_t room = ir_str_room(u->prog), globals = 0;
	const char *err;

	err = lay_out_vars(u, p->var_off, IR_GLOBAL, IR_INT, 8, &globals);
	if (!err)
		err = lay_out_vars(u, p->var_off, IR_GLOBAL, IR_STR, room, &globals);
	if (!err)
		err = lay_out_vars(u, p->var_off, IR_THREAD, IR_INT, 8, &p->threads_size);
	if (!err)
		err = lay_out_vars(u, p->var_off, IR_THREAD, IR_STR, room, &p->threads_size);
	if (err)
		return err;
	if (globals)
		set_map(&u->maps[EBPF_MAP_GLOBALS], BPF_MAP_TYPE_ARRAY, 4, globals, 1, BPF_F_MMAPABLE, "globals");
	if (p->threads_size)
		set_map(&u->maps[EBPF_MAP_THREADS], BPF_MAP_TYPE_HASH, 8, p->threads_size,
			entries(sizes->dynvarsize, 1, 8, p->threads_size), BPF_F_NO_PREALLOC, "threads");
	return NULL;
}

/* --- scratch ------------------------------------------------------------------------------------------ */

enum { NOBODY, SEVERAL = UINT32_MAX };

/* The user of each variable: NOBODY, a clause's number plus one, SEVERAL. */
static uint32_t *find_users(const struct ir_prog *prog)
{
	uint32_t *users = arena_alloc(prog->arena, (prog->nvars + 1) * sizeof(*users));

	memset(users, 0, prog->nvars * sizeof(*users));
	for (uint32_t c = 0; c < prog->nclauses; c++) {
		struct ir_walk w = ir_walk_clause(prog->clauses[c]);

		for (const struct ir_insn *i; (i = ir_next(&w));) {
			if (i->op != IR_VLD && i->op != IR_VST && i->op != IR_VADD)
				continue;
			if (users[i->var->id] != c + 1)
				users[i->var->id] = users[i->var->id] == NOBODY ? c + 1 : SEVERAL;
		}
	}
	return users;
}

/*
 * Lay out the IR_LOCAL variables of @type, of @room bytes each.  Clauses run one after the other, and their variables
 * have no value when they begin, so variables of a single clause share their place with those of others.
 */
static const char *lay_out_locals(struct ebpf_unit *u, struct ebpf_private *p, const uint32_t *users, enum ir_type type,
				uint32_t room, uint32_t *off)
{
	uint32_t *ends = arena_alloc(u->prog->arena, (u->prog->nclauses + 1) * sizeof(*ends)), furthest;

	for (int shared = 1; shared >= 0; shared--) {
		if (shared)
			furthest = *off;
		for (uint32_t c = 0; c <= u->prog->nclauses; c++)
			ends[c] = furthest;
		for (uint32_t i = 0; i < u->prog->nvars; i++) {
			const struct ir_var *v = u->prog->vars[i];
			uint32_t *end = &ends[users[i] == SEVERAL ? 0 : users[i]];

			if (v->cls != IR_LOCAL || v->slot.type != type || shared != (users[i] == SEVERAL))
				continue;
			p->var_off[i] = *end;
			*end += room;
			if (furthest < *end)
				furthest = *end;
			if (furthest > VALUE_MAX)
				return arena_printf(u->prog->arena, "the variables take too much memory at %s: lower strsize",
						    v->name);
		}
	}
	*off = furthest;
	return NULL;
}

/* The raised text, and the frames: one for the clause itself, one for each call, and one more: arguments are PASSed
 * before the call turns out to be one too many. */
static const char *plan_frames(struct ebpf_unit *u, struct ebpf_private *p, uint32_t needs, uint32_t *off)
{
	uint32_t frames = needs & NEED_CALLS ? u->prog->nesting + 2 : 1;
	const char *err;

	p->raise_off = *off;
	if (needs & NEED_STATE)
		*off += p->str_buf;
	p->frame_size = 8;
	err = lay_out_vars(u, p->var_off, IR_FRAME, IR_INT, 8, &p->frame_size);
	if (!err)
		err = lay_out_vars(u, p->var_off, IR_FRAME, IR_STR, p->str_buf, &p->frame_size);
	if (err)
		return err;
	p->frames_off = *off;
	if ((uint64_t)frames * p->frame_size > SCRATCH_MAX)
		return "the variables of procedures take too much memory: lower the nesting of calls, or strsize";
	*off += frames * p->frame_size;
	return NULL;
}

/* State of iterations: unit.h's words, the given parts of keys, the key and the value of an element. */
static void lay_out_iters(struct ebpf_unit *u, struct ebpf_private *p, uint32_t *off)
{
	for (uint32_t i = 0; i < u->prog->niters; i++) {
		const struct ir_map *m = u->prog->iters[i]->map;
		struct iter_layout *layout = &p->iters[i];

		layout->off = *off;
		*off += 8 * ITER_WORDS;
		for (uint32_t k = 0; k < m->nkeys; k++) {
			if (u->prog->iters[i]->given >> k & 1)
				*off += m->keys[k].type == IR_STR ? p->str_buf : 8;
		}
		layout->key = *off;
		*off += p->maps[m->id].sizes[p->maps[m->id].n - 1] + 8;
		layout->value = *off;
		*off += m->value.type == IR_STR ? p->str_buf : 8;
	}
}

/* The buffers of iterations: ITER_BUFFERS, enough for nested ones on two CPUs, or as many as fit in ITERS_MAX. */
static const char *plan_iters(struct ebpf_unit *u, struct ebpf_private *p)
{
	uint64_t size;

	if (!u->prog->niters)
		return NULL;
	for (uint32_t i = 0; i < u->prog->niters; i++) {
		if (p->iter_max < u->prog->iters[i]->map->max_entries)
			p->iter_max = u->prog->iters[i]->map->max_entries;
	}
	size = ITER_HEADER + ((uint64_t)p->iter_max << ITER_ENTRY_SHIFT);
	if (size > ITERS_MAX / 2)
		return "an array that is iterated over is too large: lower MAXMAPENTRIES";
	p->iter_buffers = ITER_BUFFERS;
	while (p->iter_buffers * size > ITERS_MAX)
		p->iter_buffers--;
	set_map(&u->maps[EBPF_MAP_ITERS], BPF_MAP_TYPE_ARRAY, 4, (uint32_t)size, p->iter_buffers, 0, "iters");
	return NULL;
}

static const char *plan_scratch(struct ebpf_unit *u, struct ebpf_private *p, const struct ebpf_sizes *sizes)
{
	uint32_t spills = 0, work = 0, strs = 0, needs = sizes->gil || sizes->nnamed || u->asks_values ? NEED_SCRATCH : 0, off;
	const uint32_t *users;
	const char *err;
	uint64_t size;

	for (uint32_t i = 0; i < u->prog->nclauses; i++) {
		const struct plan *plan = p->plans[i];

		needs |= plan->needs;
		if (spills < plan->nspills)
			spills = plan->nspills;
		if (work < plan->work)
			work = plan->work;
		if (strs < plan->nstrs)
			strs = plan->nstrs;
	}
	if (!(needs & NEED_SCRATCH))
		return NULL;
	users = find_users(u->prog);
	off = SCRATCH_SPILLS + 8 * spills;
	err = lay_out_vars(u, p->var_off, IR_CLAUSE, IR_INT, 8, &off);
	if (!err)
		err = lay_out_locals(u, p, users, IR_INT, 8, &off);
	if (err)
		return err;
	p->state_off = off;
	if (needs & NEED_STATE)
		off += 8 * STATE_WORDS;
	p->work_off = off;
	size = (uint64_t)off + align8(work);
	p->strs_off = (uint32_t)size;
	size += (uint64_t)strs * p->str_buf;
	if (size > SCRATCH_MAX)
		goto too_large;
	off = (uint32_t)size;
	err = lay_out_vars(u, p->var_off, IR_CLAUSE, IR_STR, p->str_buf, &off);
	if (!err)
		err = lay_out_locals(u, p, users, IR_STR, p->str_buf, &off);
	if (!err)
		err = plan_frames(u, p, needs, &off);
	if (err)
		return err;
	lay_out_iters(u, p, &off);
	p->match_off = off;
	if (p->matched)
		off += 8 * MATCH_KEPT + p->str_buf;
	p->named_off = off = (uint32_t)align8(off);
	if (sizes->nnamed)
		off += sizeof(struct named_work);
	p->copyin_guard = p->alloca_max ? COPYIN_GUARD : 0;
	p->copyin_off = (uint32_t)align8(off) + p->copyin_guard;
	size = (uint64_t)p->copyin_off + p->copyin_guard + (p->copyin_written ? 2 : 1) * (uint64_t)p->copyin_size + ir_str_room(u->prog);
	if (size > SCRATCH_MAX)
		goto too_large;
	p->scratch_slots = sizes->ncpus ? power_of_two(2 * sizes->ncpus) : SCRATCH_SLOTS_UNKNOWN;
	if (p->scratch_slots < 2 * SCRATCH_TRIES)
		p->scratch_slots = 2 * SCRATCH_TRIES;
	set_map(&u->maps[EBPF_MAP_SCRATCH], BPF_MAP_TYPE_ARRAY, 4, ((uint32_t)size + 63) & ~63u, p->scratch_slots, 0,
		"scratch");
	return NULL;
too_large:
	return "the program's strings take too much scratch memory: lower strsize";
}

/* The strings, then zeros: enough that any string can be read for strsize bytes, and any new value or rest of a key
 * can be copied from them. */
static void plan_rodata(struct ebpf_unit *u, struct ebpf_private *p, uint32_t zeros)
{
	char *init;

	p->zeros_off = p->rodata_size;
	p->zeros_size = align8(zeros) + 64;
	p->index_off = p->zeros_off + p->zeros_size;
	init = arena_alloc(u->prog->arena, p->index_off + 4 * p->nindexes);
	for (uint32_t k = 0; k < p->nindexes; k++)
		memcpy(init + p->index_off + 4 * k, &k, sizeof(k));
	for (uint32_t k = 0; k < p->nstrs; k++)
		strcpy(init + p->strs[k].off, p->strs[k].s);
	for (uint32_t k = 0; k < p->nregexes; k++)
		memcpy(init + p->regexes[k].off, p->regexes[k].re->words, 8 * p->regexes[k].re->nwords);
	set_map(&u->maps[EBPF_MAP_RODATA], BPF_MAP_TYPE_ARRAY, 4, p->index_off + 4 * p->nindexes, 1, BPF_F_RDONLY_PROG,
		"rodata");
	u->maps[EBPF_MAP_RODATA].init = init;
}

static uint32_t max(uint32_t x, uint32_t y)
{
	return x > y ? x : y;
}

static void add_literals(const struct ir_prog *prog, struct ebpf_private *p, const struct fmt *f)
{
	for (size_t k = 0; k < f->n; k++)
		unit_rodata(prog, p, arena_strndup(prog->arena, f->convs[k].lit, f->convs[k].lit_len));
}

static void add_regex(const struct ir_prog *prog, struct ebpf_private *p, const char *text, const char **err)
{
	struct rodata_regex *re;
	const char *why;

	for (uint32_t k = 0; k < p->nregexes; k++) {
		if (!strcmp(p->regexes[k].text, text))
			return;
	}
	p->regexes = arena_grow(prog->arena, p->regexes, &p->regexes_cap, p->nregexes, sizeof(*p->regexes));
	re = &p->regexes[p->nregexes];
	re->text = text;
	re->off = p->rodata_size;
	re->re = regex_compile(prog->arena, text, p->matched, &why);
	if (!re->re) {
		*err = arena_printf(prog->arena, "the regular expression %s: %s", text, why);
		return;
	}
	p->rodata_size += 8 * re->re->nwords;
	p->nregexes++;
}

static bool asks_what_matched(const struct ir_insn *i)
{
	return i->op == IR_CALL && i->fn == IR_FN_MATCHED;
}

static bool uses(const struct ir_prog *prog, bool (*is)(const struct ir_insn *i))
{
	struct ir_walk w = ir_walk_prog(prog);

	for (const struct ir_insn *i; (i = ir_next(&w));) {
		if (is(i))
			return true;
	}
	return false;
}

/* Add the constant strings, also for registers with several definitions, which plans leave out. */
static void add_strings(const struct ir_prog *prog, struct ebpf_private *p, const char **err)
{
	struct ir_walk w = ir_walk_prog(prog);

	p->matched = uses(prog, asks_what_matched);
	for (const struct ir_insn *i; (i = ir_next(&w));) {
		if (i->op == IR_STRC)
			unit_rodata(prog, p, i->str);
		if (i->op == IR_SPRINTF)
			add_literals(prog, p, i->fmt);
		if (i->op == IR_MATCH)
			add_regex(prog, p, i->str, err);
	}
}

static bool has_loops(const struct ir_prog *prog, const struct ebpf_private *p)
{
	for (uint32_t i = 0; i < prog->nclauses; i++) {
		if (p->plans[i]->needs & NEED_LOOPS)
			return true;
	}
	return false;
}

static bool has_ordered(const struct ir_prog *prog)
{
	for (uint32_t i = 0; i < prog->nmaps; i++) {
		if (prog->maps[i]->ordered)
			return true;
	}
	return false;
}

static bool makes_stack(const struct ir_insn *i)
{
	return i->op == IR_CALL && (i->fn == IR_FN_STACK || i->fn == IR_FN_ADDR || i->fn == IR_FN_AWAITERS);
}

static bool asks_values(const struct ir_insn *i)
{
	return i->op == IR_CALL && (gen_asks_value(i->fn) || i->fn == IR_FN_AWAITERS);
}

static bool asks_tasks(const struct ir_insn *i)
{
	return i->op == IR_CALL && (i->fn == IR_FN_PYTASK || i->fn == IR_FN_PYCORO || i->fn == IR_FN_AWAITERS);
}

static bool is_for_target(const struct ir_insn *i)
{
	return ir_place(i).where == IR_TARGET;
}

static bool reads_vtimestamp(const struct ir_insn *i)
{
	return i->op == IR_BUILTIN && i->bi == IR_B_VTIMESTAMP;
}

/* The kinds of stacks that clauses ask for, each once. */
static void find_kept(const struct ir_prog *prog, struct ebpf_private *p)
{
	struct kept_form form;

	for (uint32_t c = 0; c < prog->nclauses; c++) {
		struct ir_walk w = ir_walk_clause(prog->clauses[c]);

		for (const struct ir_insn *i; (i = ir_next(&w));) {
			uint32_t k = 0;

			if (!gen_stack_form(p->plans[prog->clauses[c]->id], i, &form))
				continue;
			while (k < p->nkept && (p->kept[k].whose != form.whose || p->kept[k].frames != form.frames))
				k++;
			if (k < p->nkept)
				continue;
			p->kept = arena_grow(prog->arena, p->kept, &p->kept_cap, p->nkept, sizeof(*p->kept));
			p->kept[p->nkept++] = form;
		}
	}
}

/* Give the maps of arrays and aggregations their numbers, and make room for all. */
static void number_maps(struct ebpf_unit *u, struct ebpf_private *p, uint32_t *zeros)
{
	const struct ir_prog *prog = u->prog;
	uint32_t next = EBPF_MAP_FIRST;

	for (uint32_t i = 0; i < prog->nmaps; i++) {
		const struct ir_map *m = prog->maps[i];

		number_keyed(&p->maps[i], prog, m->keys, m->nkeys, m->cls == IR_THREAD, &next);
		*zeros = max(*zeros, max(p->maps[i].sizes[p->maps[i].n - 1], ir_map_value_size(m, ir_str_room(prog))));
	}
	for (uint32_t i = 0; i < prog->naggs; i++) {
		const struct ir_agg *g = prog->aggs[i];

		number_keyed(&p->aggs[i], prog, g->keys, g->nkeys, 0, &next);
		*zeros = max(*zeros, p->aggs[i].sizes[p->aggs[i].n - 1]);
	}
	u->nmaps = next;
	u->maps = arena_alloc(prog->arena, (next + next / 2) * sizeof(*u->maps));	/* each group has two or more */
	p->places = arena_alloc(prog->arena, next * sizeof(*p->places));
}

/* The maps with fixed numbers: those of every session, and those that the clauses need. */
static void set_common_maps(struct ebpf_unit *u, struct ebpf_private *p, const struct ebpf_sizes *sizes, uint32_t *zeros)
{
	const struct ir_prog *prog = u->prog;
	uint32_t order;

	set_map(&u->maps[EBPF_MAP_CONTROL], BPF_MAP_TYPE_ARRAY, 4, sizeof(struct abi_control), 1, BPF_F_MMAPABLE,
		"control");
	set_map(&u->maps[EBPF_MAP_PROBES], BPF_MAP_TYPE_ARRAY, 4, sizeof(struct abi_probe),
		(sizes->nprobes ? sizes->nprobes : 1) + sizes->nnamed, 0, "probes");
	u->nnamed = sizes->nnamed;
	if (sizes->nnamed)
		set_map(&u->maps[EBPF_MAP_NAMES], BPF_MAP_TYPE_HASH, sizeof(struct named_key), 4, EBPF_NAMED_MAX, 0, "names");
	set_map(&u->maps[EBPF_MAP_OUT], BPF_MAP_TYPE_RINGBUF, 0, 0, sizes->bufsize, 0, "out");
	if (has_loops(prog, p))
		set_map(&u->maps[EBPF_MAP_CALLS], BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 1, 0, "calls");
	order = lock_plan(prog, p, sizes->ncpus, has_ordered(prog) ? 16 * prog->nmaps : 0);
	u->is_apart = p->is_apart;
	if (order)
		set_map(&u->maps[EBPF_MAP_ORDER], BPF_MAP_TYPE_ARRAY, 4, order, 1, 0, "order");
	if (sizes->syscalls)
		set_map(&u->maps[EBPF_MAP_SYSCALLS], BPF_MAP_TYPE_ARRAY, 4, sizeof(struct ebpf_syscall),
			2 * EBPF_SYSCALLS, 0, "syscalls");
	if (uses(prog, makes_stack))
		set_map(&u->maps[EBPF_MAP_STACKS], BPF_MAP_TYPE_LRU_HASH, 8, 8, STACKS, 0, "stacks");
	if (p->unwinds) {
		set_map(&u->maps[EBPF_MAP_RANGES], BPF_MAP_TYPE_LRU_HASH, sizeof(struct abi_process_key),
			sizeof(struct abi_ranges), PROCESSES, 0, "ranges");
		set_map(&u->maps[EBPF_MAP_UNWIND], BPF_MAP_TYPE_ARRAY, 4, sizeof(struct abi_unwind), 1, BPF_F_MMAPABLE,
			"unwind");
		*zeros = max(*zeros, sizeof(struct abi_ranges));
	}
	if (p->python) {
		set_map(&u->maps[EBPF_MAP_PYTHONS], BPF_MAP_TYPE_LRU_HASH, sizeof(struct abi_process_key),
			sizeof(struct abi_python), PROCESSES, 0, "pythons");
		set_map(&u->maps[EBPF_MAP_CODES], BPF_MAP_TYPE_LRU_HASH, 8, 8, CODES, 0, "codes");
		*zeros = max(*zeros, sizeof(struct abi_python));
	}
	u->asks_values = uses(prog, asks_values);
	u->asks_tasks = uses(prog, asks_tasks);
	u->is_for_target = uses(prog, is_for_target);
	if (sizes->switched) {
		find_kept(prog, p);
		set_map(&u->maps[EBPF_MAP_KEPT], BPF_MAP_TYPE_LRU_HASH, 8, 8 + 8 * p->nkept, KEPT, 0, "kept");
		set_map(&u->maps[EBPF_MAP_KEEPS], BPF_MAP_TYPE_LRU_HASH, 8, 8, PROCESSES, 0, "keeps");
		*zeros = max(*zeros, 8 + 8 * p->nkept);
	}
	if (sizes->costs)
		set_map(&u->maps[EBPF_MAP_COSTS], BPF_MAP_TYPE_LRU_HASH, 4, sizeof(struct ebpf_cost), COSTS, 0, "costs");
	if (sizes->gil)
		set_map(&u->maps[EBPF_MAP_GILS], BPF_MAP_TYPE_LRU_HASH, 16, 8, GILS, 0, "gils");
	if (uses(prog, reads_vtimestamp))
		set_map(&u->maps[EBPF_MAP_VTIMES], BPF_MAP_TYPE_LRU_HASH, 8, 24, VTIMES, 0, "vtimes");
}

struct ebpf_unit *ebpf_unit_new(const struct ir_prog *prog, const struct ebpf_sizes *sizes, const char **err)
{
	struct arena *a = prog->arena;
	struct ebpf_unit *u = arena_new_of(a, struct ebpf_unit);
	struct ebpf_private *p = arena_new_of(a, struct ebpf_private);
	uint32_t zeros = ir_str_room(prog);

	u->prog = prog;
	u->priv = p;
	p->str_buf = ir_str_room(prog) + 8;
	p->var_off = arena_alloc(a, prog->nvars * sizeof(*p->var_off) + 1);
	p->maps = arena_alloc(a, prog->nmaps * sizeof(*p->maps) + 1);
	p->aggs = arena_alloc(a, prog->naggs * sizeof(*p->aggs) + 1);
	p->iters = arena_alloc(a, prog->niters * sizeof(*p->iters) + 1);
	p->plans = arena_alloc(a, prog->nclauses * sizeof(*p->plans) + 1);
	number_maps(u, p, &zeros);
	p->unwind = sizes->unwind;
	*err = NULL;
	add_strings(prog, p, err);
	if (*err)
		return NULL;
	for (uint32_t i = 0; i < prog->nclauses; i++)
		p->plans[i] = plan_new(prog, prog->clauses[i], p);

	set_common_maps(u, p, sizes, &zeros);
	*err = plan_arrays(u, sizes);
	if (!*err)
		*err = plan_aggs(u, sizes, &zeros);
	if (!*err)
		*err = plan_vars(u, p, sizes);
	if (!*err)
		*err = plan_iters(u, p);
	if (!*err)
		*err = plan_scratch(u, p, sizes);
	if (*err)
		return NULL;
	group_maps(u, p);
	plan_rodata(u, p, max(max(zeros, p->alloca_max), p->threads_size));
	return u;
}

unsigned int ebpf_agg_maps(const struct ebpf_unit *u, const struct ir_agg *g, uint32_t *first)
{
	*first = u->priv->aggs[g->id].first;
	return u->priv->aggs[g->id].n;
}

unsigned int ebpf_map_maps(const struct ebpf_unit *u, const struct ir_map *m, uint32_t *first)
{
	*first = u->priv->maps[m->id].first;
	return u->priv->maps[m->id].n;
}

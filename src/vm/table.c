#include "vm/table_priv.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A sum of independent products, so a processor computes them side by side; zero words add nothing. */
static uint32_t table_hash(const void *key, uint32_t size)
{
	const uint8_t *p = key;
	uint64_t h = 0, w;

	for (uint32_t k = 0; k < size / 8; k++) {
		memcpy(&w, p + 8 * k, 8);
		if (k && k % 32 == 0)
			h = h << 5 | h >> 59;
		h += w * table_factors[k % 32];
	}
	return table_mix(h);
}

static void set_state(struct abi_elem *e, enum abi_elem_state state)
{
	__atomic_store_n(&e->state, state, __ATOMIC_RELEASE);
}

/* NULL: zeros */
static void set_value(const struct shm_map *m, struct abi_elem *e, const void *value)
{
	if (value)
		memcpy(table_value(m, e), value, m->value_size);
	else
		memset(table_value(m, e), 0, m->value_size);
}

static void fill(const struct shm_map *m, struct abi_elem *e, uint32_t hash, const void *key, const void *value)
{
	e->hash = hash;
	memcpy(table_key(e), key, m->key_size);
	set_value(m, e, value);
}

/* --- a lane's ---------------------------------------------------------------------------------------- */

/*
 * More than any table that was written by these functions alone has in a row; what was scribbled on is not followed for
 * longer, so that it costs the program little.
 */
enum { STEPS = 2048 };

/* The element of @key, live or dead, or NULL; *slot is where in the index it is or would be. */
static struct abi_elem *probe(const struct shm_map *m, uint8_t *lane, const void *key, uint32_t hash, uint32_t *slot)
{
	const uint32_t *index = table_index(m, lane);
	uint32_t at = hash & m->mask;

	for (uint32_t k = 0; k <= m->mask && k < STEPS; k++, at = (at + 1) & m->mask) {
		struct abi_elem *e;

		*slot = at;
		if (!index[at])
			return NULL;
		e = table_elem(m, lane, index[at]);
		if (e && e->hash == hash && table_same_key(m, e, key))
			return e;
	}
	*slot = UINT32_MAX;
	return NULL;
}

void *lane_table_find(const struct shm_map *m, uint8_t *lane, const void *key)
{
	uint32_t slot;
	struct abi_elem *e = probe(m, lane, key, table_hash(key, m->key_size), &slot);

	return e && e->state == ABI_ELEM_LIVE ? table_value(m, e) : NULL;
}

static void set_changing(uint8_t *lane, uint32_t v)
{
	struct abi_lane *l = (struct abi_lane *)lane;

	/* The owner may be killed at any instruction; the compiler must keep this one where it is. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&l->changing, v, __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* Take index word @hole away, moving those behind it that would not be found any more. */
static void close_hole(const struct shm_map *m, uint8_t *lane, uint32_t hole)
{
	uint32_t *index = table_index(m, lane), at = hole;

	for (uint32_t k = 0; k < m->mask && k < STEPS; k++) {
		struct abi_elem *e;

		at = (at + 1) & m->mask;
		if (!index[at])
			break;
		e = table_elem(m, lane, index[at]);
		/* Its own place is behind the hole, cyclically: it stays. */
		if (e && ((at - e->hash) & m->mask) < ((at - hole) & m->mask))
			continue;
		index[hole] = index[at];
		hole = at;
	}
	index[hole] = 0;
}

static void give_back(const struct shm_map *m, uint8_t *lane, struct abi_elem *e)
{
	struct abi_table *t = table_header(m, lane);
	uint32_t n = (uint32_t)(((uint8_t *)e - (lane + m->off + m->elems_off)) / m->stride);

	set_state(e, ABI_ELEM_FREE);
	((struct abi_lane *)lane)->given_back++;
	e->next = t->free;
	t->free = n + 1;
	t->live--;
}

/* The table is full: make those free that the tracer removed. */
static void recycle_dead(const struct shm_map *m, uint8_t *lane)
{
	uint32_t slot;

	/* Once for all that were removed: a full table costs no search for each key that does not fit. */
	if (!__atomic_exchange_n(&table_header(m, lane)->dead, 0, __ATOMIC_ACQUIRE))
		return;
	for (uint32_t n = 0; n < m->max_entries; n++) {
		struct abi_elem *e = table_elem_at(m, lane, n);

		if (e->state == ABI_ELEM_DEAD && probe(m, lane, table_key(e), e->hash, &slot) == e) {
			close_hole(m, lane, slot);
			give_back(m, lane, e);
		}
	}
}

static struct abi_elem *take(const struct shm_map *m, uint8_t *lane, uint32_t *n)
{
	struct abi_table *t = table_header(m, lane);
	struct abi_elem *e;

	if (!t->free && t->used < m->max_entries) {
		*n = t->used;
		return table_elem_at(m, lane, *n);
	}
	e = table_elem(m, lane, t->free);
	if (e) {
		*n = t->free - 1;
		t->free = e->next;
	}
	return e;
}

int lane_table_put(const struct shm_map *m, uint8_t *lane, const void *key, const void *value, uint64_t flags)
{
	uint32_t hash = table_hash(key, m->key_size), slot, n;
	struct abi_elem *e = probe(m, lane, key, hash, &slot);
	struct abi_table *t = table_header(m, lane);

	if (e) {
		if (flags == BPF_NOEXIST && e->state == ABI_ELEM_LIVE)
			return -EEXIST;
		set_value(m, e, value);
		set_state(e, ABI_ELEM_LIVE);
		return 0;
	}
	set_changing(lane, 1);
	e = slot == UINT32_MAX ? NULL : take(m, lane, &n);
	if (!e) {
		recycle_dead(m, lane);
		probe(m, lane, key, hash, &slot);
		e = slot == UINT32_MAX ? NULL : take(m, lane, &n);
	}
	if (e) {
		fill(m, e, hash, key, value);
		set_state(e, ABI_ELEM_LIVE);
		table_index(m, lane)[slot] = n + 1;
		t->live++;
		if (n == t->used)
			__atomic_store_n(&t->used, n + 1, __ATOMIC_RELEASE);
	}
	set_changing(lane, 0);
	return e ? 0 : -E2BIG;
}

int lane_table_del(const struct shm_map *m, uint8_t *lane, const void *key)
{
	uint32_t slot;
	struct abi_elem *e = probe(m, lane, key, table_hash(key, m->key_size), &slot);
	bool live = e && e->state == ABI_ELEM_LIVE;

	if (e) {
		set_changing(lane, 1);
		close_hole(m, lane, slot);
		give_back(m, lane, e);
		set_changing(lane, 0);
	}
	return live ? 0 : -ENOENT;
}

int lane_table_kill(const struct shm_map *m, uint8_t *lane, const void *key)
{
	uint32_t slot, live = ABI_ELEM_LIVE;
	struct abi_elem *e = probe(m, lane, key, table_hash(key, m->key_size), &slot);
	uint64_t *words;

	if (!e || !__atomic_compare_exchange_n(&e->state, &live, ABI_ELEM_DEAD, false, __ATOMIC_ACQ_REL,
					       __ATOMIC_RELAXED))
		return -ENOENT;
	words = (uint64_t *)table_value(m, e);
	for (uint32_t k = 0; k < m->value_size / 8; k++)
		__atomic_store_n(&words[k], 0, __ATOMIC_RELAXED);
	__atomic_store_n(&table_header(m, lane)->dead, 1, __ATOMIC_RELEASE);
	return 0;
}

void lane_table_repair(const struct shm_map *m, uint8_t *lane)
{
	uint32_t *index = table_index(m, lane), slot;
	struct abi_table *t = table_header(m, lane);

	((struct abi_lane *)lane)->given_back++;
	memset(index, 0, ((size_t)m->mask + 1) * sizeof(*index));
	if (t->used > m->max_entries)
		t->used = m->max_entries;
	/* One that was being filled lies right behind the last. */
	if (t->used < m->max_entries && table_elem_at(m, lane, t->used)->state == ABI_ELEM_LIVE)
		t->used++;
	t->free = t->live = 0;
	for (uint32_t n = 0; n < t->used; n++) {
		struct abi_elem *e = table_elem_at(m, lane, n);

		if (e->state != ABI_ELEM_FREE && !probe(m, lane, table_key(e), e->hash, &slot) && slot != UINT32_MAX) {
			index[slot] = n + 1;
			t->live++;
		} else {
			e->state = ABI_ELEM_FREE;
			e->next = t->free;
			t->free = n + 1;
		}
	}
}

/* --- shared ------------------------------------------------------------------------------------------ */

/*
 * A process may be killed between any two instructions of these functions, or stand still there for longer than others
 * wait for its lock.  So what decides is done by compare-and-swap: that an element comes into a chain, that it is
 * deleted, that it leaves the chain.  The lock only keeps writers from disturbing each other.
 *
 * An element is live from when it is in a chain; whoever finds it there before its maker has said so says so.  One that
 * was left half way is lost, but neither found nor walked over, and its key can be made again.
 */
enum {
	SPINS = 2000,		/* looks at a lock before asking whether its owner lives */
	BUSY_ROUNDS = 10,	/* of that before sleeping in between ... */
	ROUNDS = 2000,		/* ... and before taking it by force, some 0.3 s: an owner that lives is hardly kept from
				   running for so long */
	RESTARTS = 8,
};

/* Has thread @owner ended, as far as thread @tid can ask? */
static bool is_dead(uint32_t owner, uint32_t tid)
{
	return !((owner | tid) & SHM_OTHER_PIDS) && syscall(SYS_tkill, (int)owner, 0) < 0 && errno == ESRCH;
}

static bool lock(const struct shm_map *m, uint8_t *base, uint32_t bucket, uint32_t tid)
{
	uint32_t *word = (uint32_t *)(base + m->off + m->locks_off) + bucket, owner;

	for (int round = 0; round < ROUNDS; round++) {
		for (int k = 0; k < (round < BUSY_ROUNDS ? SPINS : 1); k++) {
			owner = 0;
			if (__atomic_compare_exchange_n(word, &owner, tid, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
				return true;
#if defined(__x86_64__)
			__builtin_ia32_pause();
#endif
		}
		/* The chain is sound at every moment, so what a dead owner left is taken over as it is. */
		if ((owner == tid || is_dead(owner, tid)) &&
		    __atomic_compare_exchange_n(word, &owner, tid, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return true;
		if (round < BUSY_ROUNDS)
			syscall(SYS_sched_yield);
		else
			nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
	}
	return __atomic_compare_exchange_n(word, &owner, tid, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void unlock(const struct shm_map *m, uint8_t *base, uint32_t bucket, uint32_t tid)
{
	uint32_t *word = (uint32_t *)(base + m->off + m->locks_off) + bucket;

	__atomic_compare_exchange_n(word, &tid, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

static bool change_state(struct abi_elem *e, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(&e->state, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Is @e, found in a chain, live? */
static bool is_live(struct abi_elem *e)
{
	uint32_t state = __atomic_load_n(&e->state, __ATOMIC_ACQUIRE);

	return state == ABI_ELEM_LIVE || (state == ABI_ELEM_NEW && change_state(e, ABI_ELEM_NEW, ABI_ELEM_LIVE));
}

/* *link: the word that refers to the element found. */
static struct abi_elem *follow(const struct shm_map *m, uint8_t *base, const void *key, uint32_t hash, uint32_t **link)
{
	uint32_t *at = &table_index(m, base)[hash & m->mask];

	for (int restart = 0; restart < RESTARTS; restart++) {
		bool strayed = false;

		*link = at;
		/* A longer chain is a ring. */
		for (uint32_t k = 0; k < m->max_entries && k < STEPS; k++) {
			struct abi_elem *e = table_elem(m, base, __atomic_load_n(*link, __ATOMIC_ACQUIRE));

			if (!e)
				return NULL;
			if (e->hash == hash && table_same_key(m, e, key) && is_live(e))
				return e;
			/* Taken out and used again meanwhile: this is another bucket's chain now. */
			strayed = ((e->hash ^ hash) & m->mask) != 0;
			if (strayed)
				break;
			*link = &e->next;
		}
		if (!strayed)
			return NULL;
	}
	return NULL;
}

void *shared_table_find(const struct shm_map *m, uint8_t *base, const void *key)
{
	uint32_t *link;
	struct abi_elem *e = follow(m, base, key, table_hash(key, m->key_size), &link);

	return e ? table_value(m, e) : NULL;
}

/* Unused elements first, so that one given back rests for long: somebody may still hold its address. */
static struct abi_elem *take_shared(const struct shm_map *m, uint8_t *base, uint32_t *n)
{
	struct abi_table *t = table_header(m, base);
	uint32_t used = __atomic_load_n(&t->used, __ATOMIC_RELAXED);
	uint64_t top = __atomic_load_n(&t->free_tagged, __ATOMIC_ACQUIRE), next;
	struct abi_elem *e;

	while (used < m->max_entries) {
		if (__atomic_compare_exchange_n(&t->used, &used, used + 1, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			*n = used;
			return table_elem_at(m, base, used);
		}
	}
	do {
		e = table_elem(m, base, (uint32_t)top);
		if (!e)
			return NULL;
		next = ((top >> 32) + 1) << 32 | __atomic_load_n(&e->next, __ATOMIC_RELAXED);
	} while (!__atomic_compare_exchange_n(&t->free_tagged, &top, next, true, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
	*n = (uint32_t)top - 1;
	return e;
}

static void give_back_shared(const struct shm_map *m, uint8_t *base, struct abi_elem *e, uint32_t ref)
{
	struct abi_table *t = table_header(m, base);
	uint64_t top = __atomic_load_n(&t->free_tagged, __ATOMIC_RELAXED), next;

	do {
		__atomic_store_n(&e->next, (uint32_t)top, __ATOMIC_RELAXED);
		next = ((top >> 32) + 1) << 32 | ref;
	} while (!__atomic_compare_exchange_n(&t->free_tagged, &top, next, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
}

/* Put @e into the chain of @bucket, whose first was *first.  False: it is another one now. */
static bool chain(const struct shm_map *m, uint8_t *base, uint32_t bucket, uint32_t first, struct abi_elem *e, uint32_t ref)
{
	__atomic_store_n(&e->next, first, __ATOMIC_RELAXED);
	return __atomic_compare_exchange_n(&table_index(m, base)[bucket], &first, ref, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

int shared_table_put(const struct shm_map *m, uint8_t *base, const void *key, const void *value, uint64_t flags,
		     uint32_t tid)
{
	uint32_t hash = table_hash(key, m->key_size), bucket = hash & m->mask, *link, first, n = 0;
	struct abi_elem *e, *made = NULL;
	int err = 0;

	if (!lock(m, base, bucket, tid))
		return -EBUSY;
	do {
		first = __atomic_load_n(&table_index(m, base)[bucket], __ATOMIC_ACQUIRE);
		e = follow(m, base, key, hash, &link);
		if (e)
			break;
		if (!made) {
			made = take_shared(m, base, &n);
			if (!made)
				break;
			fill(m, made, hash, key, value);
			set_state(made, ABI_ELEM_NEW);
		}
	} while (!chain(m, base, bucket, first, made, n + 1));
	if (!e && made) {
		change_state(made, ABI_ELEM_NEW, ABI_ELEM_LIVE);
	} else if (!e) {
		err = -E2BIG;
	} else {
		if (flags == BPF_NOEXIST)
			err = -EEXIST;
		else
			memcpy(table_value(m, e), value, m->value_size);
		if (made) {
			set_state(made, ABI_ELEM_FREE);
			give_back_shared(m, base, made, n + 1);
		}
	}
	unlock(m, base, bucket, tid);
	return err;
}

/* Take element @ref, which was deleted, out of its chain.  False: it is not found there, and is lost. */
static bool unchain(const struct shm_map *m, uint8_t *base, uint32_t bucket, uint32_t *link, uint32_t ref)
{
	uint32_t next = __atomic_load_n(&table_elem(m, base, ref)->next, __ATOMIC_ACQUIRE), seen = ref;

	if (__atomic_compare_exchange_n(link, &seen, next, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return true;
	link = &table_index(m, base)[bucket];
	for (uint32_t k = 0; k < m->max_entries && k < STEPS; k++) {
		uint32_t at = __atomic_load_n(link, __ATOMIC_ACQUIRE);
		struct abi_elem *e = table_elem(m, base, at);

		if (!e)
			return false;
		if (at == ref && __atomic_compare_exchange_n(link, &at, next, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return true;
		link = &e->next;
	}
	return false;
}

int shared_table_del(const struct shm_map *m, uint8_t *base, const void *key, uint32_t tid)
{
	uint32_t hash = table_hash(key, m->key_size), bucket = hash & m->mask, *link, ref;
	bool deleted = false, out = false;
	struct abi_elem *e;

	if (!lock(m, base, bucket, tid))
		return -EBUSY;
	e = follow(m, base, key, hash, &link);
	if (e) {
		ref = (uint32_t)(((uint8_t *)e - (base + m->off + m->elems_off)) / m->stride) + 1;
		deleted = change_state(e, ABI_ELEM_LIVE, ABI_ELEM_FREE);
		out = deleted && unchain(m, base, bucket, link, ref);
	}
	unlock(m, base, bucket, tid);
	if (out)
		give_back_shared(m, base, e, ref);
	return deleted ? 0 : -ENOENT;
}

/* --- reading ----------------------------------------------------------------------------------------- */

bool table_next(const struct shm_map *m, uint8_t *base, uint64_t from, struct vm_elem *ret)
{
	uint32_t used = __atomic_load_n(&table_header(m, base)->used, __ATOMIC_ACQUIRE);

	for (uint64_t n = from; n < used && n < m->max_entries; n++) {
		struct abi_elem *e = table_elem_at(m, base, (uint32_t)n);

		if (__atomic_load_n(&e->state, __ATOMIC_ACQUIRE) != ABI_ELEM_LIVE)
			continue;
		*ret = (struct vm_elem){ n, (uint64_t)(uintptr_t)table_key(e), (uint64_t)(uintptr_t)table_value(m, e) };
		return true;
	}
	return false;
}

void table_each(const struct shm_map *m, const uint8_t *at,
		void (*each)(void *ctx, const void *key, const void *value), void *ctx)
{
	const struct abi_table *t = (const struct abi_table *)at;
	uint32_t used = __atomic_load_n(&t->used, __ATOMIC_ACQUIRE);

	for (uint32_t n = 0; n < used && n < m->max_entries; n++) {
		const struct abi_elem *e =
			(const struct abi_elem *)(at + m->elems_off + (uint64_t)n * m->stride);

		if (__atomic_load_n(&e->state, __ATOMIC_ACQUIRE) == ABI_ELEM_LIVE)
			each(ctx, e + 1, (const uint8_t *)(e + 1) + m->key_size);
	}
}

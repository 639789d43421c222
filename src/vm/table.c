#include "vm/table_priv.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "vm/calls.h"

static void set_state(struct abi_elem *e, enum abi_elem_state state)
{
	__atomic_store_n(&e->state, state, __ATOMIC_RELEASE);
}

/* Copy to where others may be reading: words are written whole. */
static void put_words(void *to, const void *from, size_t n)
{
	uint64_t *words = to, w;
	size_t k;

	for (k = 0; k < n / 8; k++) {
		memcpy(&w, (const uint8_t *)from + 8 * k, 8);
		__atomic_store_n(&words[k], w, __ATOMIC_RELAXED);
	}
	for (k *= 8; k < n; k++)
		__atomic_store_n((uint8_t *)to + k, ((const uint8_t *)from)[k], __ATOMIC_RELAXED);
}

/* @value NULL: zeros. */
static void set_value(const struct shm_map *m, struct abi_elem *e, const void *value)
{
	if (value)
		put_words(table_value(m, e), value, m->value_size);
	else
		memset(table_value(m, e), 0, m->value_size);
}

static void fill(const struct shm_map *m, struct abi_elem *e, uint32_t hash, const void *key, const void *value)
{
	__atomic_store_n(&e->hash, hash, __ATOMIC_RELAXED);
	put_words(table_key(e), key, m->key_size);
	set_value(m, e, value);
}

/* --- a lane's ---------------------------------------------------------------------------------------- */

/*
 * The most index words or links that are followed.  A table that only these functions wrote never needs as many; in a
 * corrupt one the limit bounds the time that a lookup takes.
 */
enum { STEPS = 2048 };

/* The element of @key, live or dead, or NULL; *slot is where in the index it is or would be. */
static struct abi_elem *probe(const struct shm_map *m, uint8_t *lane, const void *key, uint32_t hash, uint32_t *slot)
{
	const uint32_t *index = table_index(m, lane);
	uint32_t mask = table_mask(m, lane), at = hash & mask;

	for (uint32_t k = 0; k <= mask && k < STEPS; k++, at = (at + 1) & mask) {
		uint32_t ref = table_word(&index[at]);
		struct abi_elem *e;

		*slot = at;
		if (!ref)
			return NULL;
		e = table_elem(m, lane, ref);
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

	/* The owner may be killed at any instruction, so the compiler must not move this store. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&l->changing, v, __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* Clear index word @hole.  Words after it that a search would no longer reach are moved forward. */
static void close_hole(const struct shm_map *m, uint8_t *lane, uint32_t hole)
{
	uint32_t *index = table_index(m, lane), mask = table_mask(m, lane), at = hole;

	for (uint32_t k = 0; k < mask && k < STEPS; k++) {
		struct abi_elem *e;
		uint32_t ref;

		at = (at + 1) & mask;
		ref = table_word(&index[at]);
		if (!ref)
			break;
		e = table_elem(m, lane, ref);
		/* Its search begins after the hole (cyclically): it stays. */
		if (e && ((at - e->hash) & mask) < ((at - hole) & mask))
			continue;
		index[hole] = ref;
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

/* Free the elements that the tracer removed.  False: there is nothing new. */
static bool recycle_dead(const struct shm_map *m, uint8_t *lane)
{
	struct abi_table *t = table_header(m, lane);
	uint32_t used = table_word(&t->used), slot;

	/* One pass frees all of them.  Until the tracer removes more, a key costs no pass. */
	if (!__atomic_load_n(&t->dead, __ATOMIC_RELAXED) || !__atomic_exchange_n(&t->dead, 0, __ATOMIC_ACQUIRE))
		return false;
	for (uint32_t n = 0; n < used && n < m->max_entries; n++) {
		struct abi_elem *e = table_elem_at(m, lane, n);

		if (e->state == ABI_ELEM_DEAD && probe(m, lane, table_key(e), e->hash, &slot) == e) {
			close_hole(m, lane, slot);
			give_back(m, lane, e);
		}
	}
	return true;
}

static bool is_zero(const struct shm_map *m, struct abi_elem *e)
{
	const uint64_t *words = (const uint64_t *)(void *)table_value(m, e);
	uint64_t all = 0;

	for (uint32_t k = 0; k < m->value_size / 8; k++)
		all |= __atomic_load_n(&words[k], __ATOMIC_RELAXED);
	return !all;
}

bool lane_table_free_zeros(const struct shm_map *m, uint8_t *lane)
{
	uint32_t used = table_word(&table_header(m, lane)->used), slot;
	bool any = false;

	set_changing(lane, 1);
	for (uint32_t n = 0; n < used && n < m->max_entries; n++) {
		struct abi_elem *e = table_elem_at(m, lane, n);

		if (e->state == ABI_ELEM_LIVE && is_zero(m, e) && probe(m, lane, table_key(e), e->hash, &slot) == e) {
			close_hole(m, lane, slot);
			give_back(m, lane, e);
			any = true;
		}
	}
	set_changing(lane, 0);
	return any;
}

static struct abi_elem *take(const struct shm_map *m, uint8_t *lane, uint32_t *n)
{
	struct abi_table *t = table_header(m, lane);
	uint32_t free = table_word(&t->free), used = table_word(&t->used);
	struct abi_elem *e;

	if (!free && used < m->max_entries) {
		*n = used;
		return table_elem_at(m, lane, used);
	}
	e = table_elem(m, lane, free);
	if (e) {
		*n = free - 1;
		t->free = e->next;
	}
	return e;
}

/*
 * Use more of the index if half of what is used of it is taken.  False: it stays as it is.  The owner may be killed at any
 * instruction: all words that are not 0 are within the mask, before and after.
 */
static bool grow(const struct shm_map *m, uint8_t *lane)
{
	struct abi_table *t = table_header(m, lane);
	uint32_t *index = table_index(m, lane), mask = table_mask(m, lane), used = table_word(&t->used), slot;

	if (mask == m->mask || t->live <= mask / 2)
		return false;
	/* lane_table_kill() relies on "changing" before it relies on the index. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memset(index, 0, ((size_t)mask + 1) * sizeof(*index));
	__atomic_store_n(&t->mask, (mask + 1) * ABI_TABLE_GROWTH - 1, __ATOMIC_RELEASE);
	for (uint32_t n = 0; n < used && n < m->max_entries; n++) {
		struct abi_elem *e = table_elem_at(m, lane, n);

		if (table_is_indexed(e) && !probe(m, lane, table_key(e), e->hash, &slot) && slot != UINT32_MAX)
			index[slot] = n + 1;
	}
	return true;
}

int lane_table_set(const struct shm_map *m, struct abi_elem *e, const void *value, uint64_t flags)
{
	if (flags == BPF_NOEXIST && e->state == ABI_ELEM_LIVE)
		return -EEXIST;
	set_value(m, e, value);
	set_state(e, ABI_ELEM_LIVE);
	return 0;
}

/* A new element for @key, which has no element, and whose place in the index is @slot.  NULL: no room. */
static struct abi_elem *create(const struct shm_map *m, uint8_t *lane, const void *key, uint32_t hash, uint32_t slot,
			       const void *value)
{
	struct abi_table *t = table_header(m, lane);
	struct abi_elem *e;
	uint32_t n;

	set_changing(lane, 1);
	/* Before memory that was never used, that of removed elements. */
	if ((slot == UINT32_MAX || !table_word(&t->free)) && recycle_dead(m, lane))
		probe(m, lane, key, hash, &slot);
	if (grow(m, lane))
		probe(m, lane, key, hash, &slot);
	e = slot == UINT32_MAX ? NULL : take(m, lane, &n);
	if (e) {
		fill(m, e, hash, key, value);
		set_state(e, ABI_ELEM_LIVE);
		table_index(m, lane)[slot] = n + 1;
		t->live++;
		if (n == t->used)
			__atomic_store_n(&t->used, n + 1, __ATOMIC_RELEASE);
	}
	set_changing(lane, 0);
	return e;
}

int lane_table_put(const struct shm_map *m, uint8_t *lane, const void *key, const void *value, uint64_t flags)
{
	uint32_t hash = table_hash(key, m->key_size), slot;
	struct abi_elem *e = probe(m, lane, key, hash, &slot);

	if (e)
		return lane_table_set(m, e, value, flags);
	return create(m, lane, key, hash, slot, value) ? 0 : -E2BIG;
}

void *lane_table_get(const struct shm_map *m, uint8_t *lane, const void *key)
{
	uint32_t hash = table_hash(key, m->key_size), slot;
	struct abi_elem *e = probe(m, lane, key, hash, &slot);

	if (!e)
		e = create(m, lane, key, hash, slot, NULL);
	else if (e->state != ABI_ELEM_LIVE)
		lane_table_set(m, e, NULL, BPF_ANY);
	return e ? table_value(m, e) : NULL;
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

bool lane_table_mark_dead(struct abi_elem *e)
{
	bool live = e->state == ABI_ELEM_LIVE;

	set_state(e, ABI_ELEM_DEAD);
	return live;
}

void lane_table_expect_dead(const struct shm_map *m, uint8_t *lane)
{
	__atomic_store_n(&table_header(m, lane)->dead, 1, __ATOMIC_RELEASE);
}

void lane_table_bury(const struct shm_map *m, uint8_t *lane, struct abi_elem *e)
{
	if (e->state == ABI_ELEM_DEAD)
		lane_table_del(m, lane, table_key(e));
}

static bool kill_element(const struct shm_map *m, uint8_t *lane, struct abi_elem *e)
{
	uint32_t live = ABI_ELEM_LIVE;
	uint64_t *words = (uint64_t *)table_value(m, e);

	if (!__atomic_compare_exchange_n(&e->state, &live, ABI_ELEM_DEAD, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return false;
	for (uint32_t k = 0; k < m->value_size / 8; k++)
		__atomic_store_n(&words[k], 0, __ATOMIC_RELAXED);
	lane_table_expect_dead(m, lane);
	return true;
}

/* The element of @key, which the index may not lead to now. */
static struct abi_elem *find_without_index(const struct shm_map *m, uint8_t *lane, const void *key, uint32_t hash)
{
	uint32_t used = __atomic_load_n(&table_header(m, lane)->used, __ATOMIC_ACQUIRE);

	for (uint32_t n = 0; n < used && n < m->max_entries; n++) {
		struct abi_elem *e = table_elem_at(m, lane, n);

		if (__atomic_load_n(&e->state, __ATOMIC_ACQUIRE) == ABI_ELEM_LIVE && e->hash == hash && table_same_key(m, e, key))
			return e;
	}
	return NULL;
}

int lane_table_kill(const struct shm_map *m, uint8_t *lane, const void *key)
{
	const struct abi_lane *l = (const struct abi_lane *)lane;
	uint32_t hash = table_hash(key, m->key_size), mask = table_mask(m, lane), slot;
	uint32_t changing = __atomic_load_n(&l->changing, __ATOMIC_ACQUIRE);
	struct abi_elem *e = probe(m, lane, key, hash, &slot);

	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (!e && (changing || __atomic_load_n(&l->changing, __ATOMIC_RELAXED) || table_mask(m, lane) != mask))
		e = find_without_index(m, lane, key, hash);
	return e && kill_element(m, lane, e) ? 0 : -ENOENT;
}

void lane_table_kill_all(const struct shm_map *m, uint8_t *lane)
{
	uint32_t used = __atomic_load_n(&table_header(m, lane)->used, __ATOMIC_ACQUIRE);

	for (uint32_t n = 0; n < used && n < m->max_entries; n++)
		kill_element(m, lane, table_elem_at(m, lane, n));
}

void lane_table_repair(const struct shm_map *m, uint8_t *lane)
{
	uint32_t *index = table_index(m, lane), slot, used;
	struct abi_table *t = table_header(m, lane);

	((struct abi_lane *)lane)->given_back++;
	memset(index, 0, ((size_t)table_mask(m, lane) + 1) * sizeof(*index));
	used = table_word(&t->used);
	if (used > m->max_entries)
		used = m->max_entries;
	/* An element may have become live without being counted yet. */
	if (used < m->max_entries && table_elem_at(m, lane, used)->state == ABI_ELEM_LIVE)
		used++;
	t->used = used;
	t->free = t->live = 0;
	for (uint32_t n = 0; n < used; n++) {
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
 * A process may be killed or stopped between any two instructions of these functions, even while it holds a lock that
 * others wait for.  So each step that other processes rely on is one compare-and-swap: adding an element to a chain,
 * deleting it, and removing it from the chain.  The lock only makes conflicts between writers rare.
 *
 * An element is live as soon as it is in a chain.  A process that finds one in state ABI_ELEM_NEW there sets
 * ABI_ELEM_LIVE itself.  An element whose owner died before it was in a chain is lost: it is not found and not
 * iterated, and its key can be added again.
 */
enum {
	SPINS = 2000,		/* attempts to take a lock before checking whether its owner is alive */
	BUSY_ROUNDS = 10,	/* rounds of attempts without sleeping in between */
	ROUNDS = 2000,		/* rounds before the lock is taken from its owner, after about 0.3 s: a live owner is
				   hardly ever kept from running for so long */
	RESTARTS = 256,
};

/* Has thread @owner ended?  False if thread @tid cannot tell. */
static bool is_dead(uint32_t owner, uint32_t tid)
{
	return !((owner | tid) & SHM_OTHER_PIDS) && calls_may(ABI_CALLS_SIGNAL) && syscall(SYS_tkill, (int)owner, 0) < 0 && errno == ESRCH;
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
		/* The chain is valid at every moment, so a dead owner's lock is taken over without repair. */
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

/*
 * Had @e, to which a chain led, left the chain before its @next was read, so that @next does not belong to the chain?  It
 * may be free, about to enter a chain, or in one again.  If it is not @live, it may also still be in the chain, because
 * the process that was removing it was killed.
 */
static bool has_left(const struct shm_map *m, const struct abi_elem *e, uint32_t hash, uint32_t next, bool live)
{
	return (live && __atomic_load_n(&e->state, __ATOMIC_ACQUIRE) != ABI_ELEM_LIVE) ||
	       ((__atomic_load_n(&e->hash, __ATOMIC_RELAXED) ^ hash) & m->mask) != 0 ||
	       __atomic_load_n(&e->next, __ATOMIC_RELAXED) != next;
}

/*
 * The live element of @key, or NULL; *link is the word that refers to it.  Without the bucket's lock it may also be that the
 * chain changes faster than it is followed, which tells nothing: NULL, and *link is NULL.
 */
static struct abi_elem *follow(const struct shm_map *m, uint8_t *base, const void *key, uint32_t hash, bool is_locked,
			       uint32_t **link)
{
	uint32_t *at = &table_index(m, base)[hash & m->mask];

	for (int restart = 0; restart < RESTARTS; restart++) {
		uint32_t ref = __atomic_load_n(at, __ATOMIC_ACQUIRE);
		bool strayed = false;

		*link = at;
		/* A chain cannot have more elements than the table: it would be a cycle. */
		for (uint32_t k = 0; k < m->max_entries && k < STEPS; k++) {
			struct abi_elem *e = table_elem(m, base, ref);

			if (!e)
				return NULL;
			if (__atomic_load_n(&e->hash, __ATOMIC_RELAXED) == hash && table_same_key(m, e, key) && is_live(e))
				return e;
			*link = &e->next;
			ref = __atomic_load_n(*link, __ATOMIC_ACQUIRE);
			strayed = has_left(m, e, hash, ref, !is_locked || restart + 1 < RESTARTS);
			if (strayed)
				break;
		}
		if (!strayed)
			return NULL;
	}
	*link = NULL;
	return NULL;
}

void *shared_table_find(const struct shm_map *m, uint8_t *base, const void *key, uint32_t tid)
{
	uint32_t hash = table_hash(key, m->key_size), *link;
	struct abi_elem *e = follow(m, base, key, hash, false, &link);

	if (!e && !link && lock(m, base, hash & m->mask, tid)) {
		e = follow(m, base, key, hash, true, &link);
		unlock(m, base, hash & m->mask, tid);
	}
	return e ? table_value(m, e) : NULL;
}

/*
 * Take elements that were never used first, then freed ones: another process may still hold a freed element's
 * address, so it should not be reused soon.
 */
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

/* Add @e at the head of @bucket's chain, which was @first.  False: another element is the head now. */
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
		e = follow(m, base, key, hash, true, &link);
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
			put_words(table_value(m, e), value, m->value_size);
		if (made) {
			set_state(made, ABI_ELEM_FREE);
			give_back_shared(m, base, made, n + 1);
		}
	}
	unlock(m, base, bucket, tid);
	return err;
}

/* Remove the deleted element @ref from its chain.  False: it is not there, and it is lost. */
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
	e = follow(m, base, key, hash, true, &link);
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

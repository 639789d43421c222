#include "vm/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "vm/reader_priv.h"
#include "vm/table_priv.h"

int reader_new(const struct shm *s, int data_fd, size_t record_max, struct reader **ret)
{
	struct reader *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->shm = s;
	r->punch_fd = data_fd;
	r->lanes = 1;		/* the tracer's */
	r->record_max = (record_max + 7) & ~(size_t)7;
	r->rings = calloc(s->nlanes, sizeof(*r->rings));
	r->record = malloc(r->record_max);
	for (uint32_t k = 0; k < s->nmaps; k++) {
		if (s->maps[k].kind == ABI_MAP_OUT)
			r->out = &s->maps[k];
	}
	if (!r->rings || !r->record) {
		reader_free(r);
		return -ENOMEM;
	}
	*ret = r;
	return 0;
}

void reader_free(struct reader *r)
{
	if (!r)
		return;
	free(r->rings);
	free(r->record);
	free(r);
}

static struct abi_data *data_of(const struct reader *r)
{
	return (struct abi_data *)(void *)r->shm->data;
}

/* 1 + the number of the last lane that is owned or has records. */
static uint32_t last_lane(const struct reader *r)
{
	uint32_t n = r->shm->nlanes;

	for (; n > r->lanes; n--) {
		const struct abi_lane *l = (const struct abi_lane *)(const void *)shm_lane(r->shm, n - 1);

		if (__atomic_load_n(&l->owner, __ATOMIC_RELAXED) || __atomic_load_n(&l->head, __ATOMIC_RELAXED))
			break;
	}
	return n;
}

/*
 * How many lanes to read.  Processes publish the number, but a lane once seen in use is read whatever they publish
 * later.  Now and then, and always after an impossible number, all lanes are checked, which makes their memory
 * resident.
 */
enum { LOOKS = 64 };

static uint32_t lanes_used(struct reader *r)
{
	uint32_t high = __atomic_load_n(&data_of(r)->lanes_high, __ATOMIC_ACQUIRE);

	r->corrupt |= high < r->lanes || high > r->shm->nlanes;
	if (r->corrupt || ++r->looks % LOOKS == 0)
		high = last_lane(r);
	if (high > r->lanes)
		r->lanes = high;
	return r->lanes;
}

uint32_t reader_lanes(struct reader *r)
{
	return lanes_used(r);
}

void reader_lane(const struct reader *r, uint32_t n, struct reader_lane *ret)
{
	const struct abi_lane *l = (const struct abi_lane *)(const void *)shm_lane(r->shm, n);

	ret->owner = __atomic_load_n(&l->owner, __ATOMIC_RELAXED);
	ret->events = __atomic_load_n(&l->events, __ATOMIC_RELAXED);
	ret->spent_ps = __atomic_load_n(&l->spent_ps, __ATOMIC_RELAXED);
}

/* --- records ------------------------------------------------------------------------------------------ */

struct draining {
	struct reader *r;
	uint64_t from_ns, until_ns;	/* @until_ns: the time when it was last read */
	int (*record)(void *ctx, const struct record *rec);
	void *ctx;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* @bytes: the reader's private copy. */
static int one_record(void *ctx, void *bytes, size_t size)
{
	struct draining *d = ctx;
	struct abi_record *hdr = bytes;
	const struct record rec = { hdr, size };

	if (hdr->size < sizeof(*hdr) || hdr->size > size) {
		d->r->bad++;
		return 0;
	}
	if (hdr->time_ns < d->from_ns)
		hdr->time_ns = d->from_ns;
	if (hdr->time_ns > d->until_ns)
		d->until_ns = now_ns() + READER_AHEAD_NS;
	if (hdr->time_ns > d->until_ns)
		hdr->time_ns = d->until_ns;
	return d->record(d->ctx, &rec);
}

int reader_drain(struct reader *r, uint64_t from_ns, int (*record)(void *ctx, const struct record *rec), void *ctx)
{
	struct draining d = { r, from_ns, from_ns, record, ctx };
	uint32_t lanes, first = r->next;
	int n, all = 0;

	__atomic_store_n(&data_of(r)->woken, 0, __ATOMIC_SEQ_CST);
	lanes = r->out ? lanes_used(r) : 0;
	for (uint32_t k = 0; k < lanes; k++) {
		uint32_t number = (first + k) % lanes;

		n = drain_lane(r, number, one_record, &d);
		if (n < 0) {
			/* A lane that always has more records must not keep the others from being read. */
			r->next = number + 1;
			return n;
		}
		all += n;
	}
	return all;
}

/* --- maps --------------------------------------------------------------------------------------------- */

enum { TRIES = 4 };

/*
 * Copy the key and value of @e.  1: done; 0: it is not in use; -1: its hash does not match its key, and it is not being
 * written.
 */
static int copy_element(const struct shm_map *m, const struct abi_elem *e, uint64_t *copy)
{
	for (int k = 0; k < TRIES; k++) {
		uint32_t hash;

		if (__atomic_load_n(&e->state, __ATOMIC_ACQUIRE) != ABI_ELEM_LIVE)
			return 0;
		hash = __atomic_load_n(&e->hash, __ATOMIC_RELAXED);
		reader_copy(copy, (const uint8_t *)(e + 1), m->key_size + (size_t)m->value_size);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (table_hash(copy, m->key_size) == hash)
			return 1;
	}
	return -1;
}

static void each_of_table(struct reader *r, const struct shm_map *m, const uint8_t *at, uint64_t *copy,
			  void (*each)(void *ctx, const void *key, const void *value), void *ctx)
{
	uint32_t used = __atomic_load_n(&((const struct abi_table *)(const void *)at)->used, __ATOMIC_ACQUIRE);

	for (uint32_t n = 0; n < used && n < m->max_entries; n++) {
		int good = copy_element(m, (const struct abi_elem *)(const void *)(at + m->elems_off + (uint64_t)n * m->stride),
					copy);

		if (good > 0)
			each(ctx, copy, (const uint8_t *)copy + m->key_size);
		else if (good < 0)
			r->bad++;
	}
}

static void each_of_array(const struct shm_map *m, const uint8_t *at, uint32_t n, uint64_t *copy,
			  void (*each)(void *ctx, const void *key, const void *value), void *ctx)
{
	for (uint32_t k = 0; k < n; k++) {
		__builtin_memcpy(copy, &k, sizeof(k));
		reader_copy(copy + 1, at + (uint64_t)k * m->value_size, m->value_size);
		each(ctx, copy, copy + 1);
	}
}

int reader_each(struct reader *r, uint32_t map, void (*each)(void *ctx, const void *key, const void *value), void *ctx)
{
	const struct shm *s = r->shm;
	const struct shm_map *m = &s->maps[map];
	uint32_t lanes = lanes_used(r);
	uint64_t *copy = malloc(8 + (size_t)m->key_size + m->value_size + 8);

	if (!copy)
		return -ENOMEM;
	switch (m->kind) {
	case ABI_MAP_SHARED_HASH:
		each_of_table(r, m, s->data + m->off, copy, each, ctx);
		break;
	case ABI_MAP_IMAGE:
	case ABI_MAP_ARRAY:
		each_of_array(m, (m->kind == ABI_MAP_ARRAY ? s->data : s->image) + m->off, m->max_entries, copy, each, ctx);
		break;
	case ABI_MAP_LANE_ARRAY:
		for (uint32_t n = 0; n < lanes; n++)
			each_of_array(m, shm_lane(s, n) + m->off, 1, copy, each, ctx);
		break;
	case ABI_MAP_LANE_HASH:
		for (uint32_t n = 0; n < lanes; n++)
			each_of_table(r, m, shm_lane(s, n) + m->off, copy, each, ctx);
		break;
	default:
		break;
	}
	free(copy);
	return 0;
}

/* --- other data --------------------------------------------------------------------------------------- */

void reader_control(const struct reader *r, struct abi_control *ret)
{
	reader_copy(ret, (const uint8_t *)&data_of(r)->control, sizeof(*ret));
}

uint64_t reader_bad(struct reader *r)
{
	uint64_t n = r->bad;

	r->bad = 0;
	return n;
}

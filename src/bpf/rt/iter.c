/*
 * Iterations: elements are collected from a map in any order, and sorted by a word or a string, otherwise by their
 * number, which is the order of their creation.
 */
#include "rt.h"

#include "abi/stat.h"
#include "iter.h"

struct entry {
	u64 number, key, value;
	s64 sort;
};

struct collect {
	u8 *buf;
	u64 max, cls, off, nth;
	char *work;
	u64 strsize;
};

/* State that changes from call to call is here and not on the stack, where the verifier follows each value it takes. */
struct header {
	u64 taken, n;
	/* Heap sort, one level of sifting an entry down at a time: the largest of [start, end) moves to 0, and from
	 * there to the end. */
	u64 start, end, at;
	u64 index;
};

#define INLINE static inline __attribute__((always_inline))

INLINE struct entry *entry(u8 *buf, u64 k)
{
	return (struct entry *)(buf + ITER_HEADER + (k << ITER_ENTRY_SHIFT));
}

INLINE long collect(const u8 *key, const u8 *value, struct collect *c, s64 sort)
{
	struct header *h = (struct header *)c->buf;
	u64 number = *(volatile u64 *)value, n = h->n;
	struct entry *e;

	if (!number)
		return 0;
	if (n >= c->max)
		return 1;
	e = entry(c->buf, n);
	e->number = number << 2 | c->cls;
	e->key = (u64)key;
	e->value = (u64)value;
	e->sort = sort;
	h->n = n + 1;
	return 0;
}

INLINE const u64 *words(const u8 *value)
{
	return (const u64 *)(value + ABI_ELEMENT_VALUE);
}

RT long rt_collect(void *map, const u8 *key, const u8 *value, struct collect *c)
{
	return collect(key, value, c, 0);
}

RT long rt_collect_key(void *map, const u8 *key, const u8 *value, struct collect *c)
{
	return collect(key, value, c, *(const s64 *)(key + c->off));
}

RT long rt_collect_word(void *map, const u8 *key, const u8 *value, struct collect *c)
{
	return collect(key, value, c, *(const s64 *)(value + c->off));
}

RT long rt_collect_text(void *map, const u8 *key, const u8 *value, struct collect *c)
{
	return collect(key, value, c, (s64)words(value));
}

struct pass {
	char *work;
	u64 size, at;
};

/* Each string has to be copied to learn where the next begins. */
static long pass_string(u32 k, struct pass *p)
{
	long n = rt_copy_str(p->work, (u32)p->size, (const void *)p->at);

	if (n > 0)
		p->at += (u64)n;
	return 0;
}

/* The key's nth string. */
RT long rt_collect_key_text(void *map, const u8 *key, const u8 *value, struct collect *c)
{
	struct pass p = { c->work, c->strsize, (u64)key + c->off };

	/* Never none of it: Linux 6.18 takes out a callback that is the last function and never called, and trips over that. */
	if (c->nth)
		rt_loop((u32)c->nth, pass_string, &p, 0);
	return collect(key, value, c, (s64)p.at);
}

RT long rt_collect_avg(void *map, const u8 *key, const u8 *value, struct collect *c)
{
	return collect(key, value, c, words(value)[ABI_STAT_COUNT] ? rt_avg(words(value)) : 0);
}

RT long rt_collect_variance(void *map, const u8 *key, const u8 *value, struct collect *c)
{
	return collect(key, value, c, words(value)[ABI_STAT_COUNT] ? rt_variance(words(value)) : 0);
}

/* --- sorting ------------------------------------------------------------------------------------------ */

enum { NOWHERE = ~0u };

struct sort {
	u8 *buf;
	u64 max, how;
	char *work;
	u64 size;
};

/*
 * @k, made unknown to the verifier: with known values, kernels before 6.8 follow paths that cannot be taken, and refuse
 * what they find there.
 */
INLINE u64 unknown(struct sort *c, u64 k)
{
	volatile struct header *h = (struct header *)c->buf;

	h->index = k;
	return h->index;
}

INLINE u64 before(struct sort *c, u64 i, u64 j)
{
	const struct entry *x, *y;
	s64 differ;

	i = unknown(c, i);
	j = unknown(c, j);
	if (i >= c->max || j >= c->max)
		return 0;
	x = entry(c->buf, i);
	y = entry(c->buf, j);
	if (c->how & SORT_STRINGS) {
		u64 size = c->size, other = room(size) + 8;

		rt_copy_str(c->work, (u32)size, (const void *)x->sort);
		rt_copy_str(c->work + other, (u32)size, (const void *)y->sort);
		differ = rt_strcmp(c->work, c->work + other, size);
	} else {
		differ = x->sort < y->sort ? -1 : x->sort > y->sort;
	}
	if (!differ)
		return x->number >> 2 < y->number >> 2;
	return (differ < 0) != (c->how & SORT_DOWN);
}

INLINE void swap(struct sort *c, u64 i, u64 j)
{
	struct entry *x, *y, tmp;

	i = unknown(c, i);
	j = unknown(c, j);
	if (i >= c->max || j >= c->max)
		return;
	x = entry(c->buf, i);
	y = entry(c->buf, j);
#define SWAP(FIELD) (tmp.FIELD = x->FIELD, x->FIELD = y->FIELD, y->FIELD = tmp.FIELD)
	SWAP(number);
	SWAP(key);
	SWAP(value);
	SWAP(sort);
}

static long sink(u32 k, struct sort *c)
{
	struct header *h = (struct header *)c->buf;
	u64 child;

	if (h->at == NOWHERE) {
		if (h->start) {
			h->at = --h->start;
		} else {
			if (h->end <= 1)
				return 1;
			swap(c, 0, --h->end);
			h->at = 0;
		}
	}
	child = 2 * h->at + 1;
	if (child >= h->end) {
		h->at = NOWHERE;
		return 0;
	}
	if (child + 1 < h->end && before(c, child, child + 1))
		child++;
	if (before(c, h->at, child)) {
		swap(c, h->at, child);
		h->at = child;
	} else {
		h->at = NOWHERE;
	}
	return 0;
}

RT long rt_sort(u8 *buf, u64 max, u64 how, char *work, u64 size)
{
	struct header *h = (struct header *)buf;
	struct sort c = { buf, max, how, work, size };
	u64 n = h->n;

	h->start = n / 2;
	h->end = n;
	h->at = NOWHERE;

	/* At most 2 n entries sink, each at most 22 levels. */
	rt_loop(n < 1 << 17 ? (u32)n * 46 : 1 << 23, sink, &c, 0);
	return 0;
}

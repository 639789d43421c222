/*
 * The layout of a table in memory, for the files that search it: table.c, and add.c on its fast path.
 */
#ifndef DTAP_VM_TABLE_PRIV_H
#define DTAP_VM_TABLE_PRIV_H

#include <string.h>

#include "vm/table.h"

/* Odd and without pattern: the fractional digits of pi, with the lowest bit set. */
static const uint64_t table_factors[32] = {
	0x243f6a8885a308d3, 0x13198a2e03707345, 0xa4093822299f31d1, 0x082efa98ec4e6c89, 0x452821e638d01377,
	0xbe5466cf34e90c6d, 0xc0ac29b7c97c50dd, 0x3f84d5b5b5470917, 0x9216d5d98979fb1b, 0xd1310ba698dfb5ad,
	0x2ffd72dbd01adfb7, 0xb8e1afed6a267e97, 0xba7c9045f12c7f99, 0x24a19947b3916cf7, 0x0801f2e2858efc17,
	0x636920d871574e69, 0xa458fea3f4933d7f, 0x0d95748f728eb659, 0x718bcd5882154aef, 0x7b54a41dc25a59b5,
	0x9c30d5392af26013, 0xc5d1b023286085f1, 0xca417918b8db38ef, 0x8e79dcb0603a180f, 0x6c9e0e8bb01e8a3f,
	0xd71577c1bd314b27, 0x78af2fda55605c61, 0xe65525f3aa55ab95, 0x5748986263e81441, 0x55ca396a2aab10b7,
	0xb4cc5c341141e8cf, 0xa15486af7c72e993,
};

static inline uint32_t table_mix(uint64_t h)
{
	h ^= h >> 32;
	h *= 0x9e3779b97f4a7c15;
	return (uint32_t)(h >> 32);
}

/* A sum of independent products, which a processor computes in parallel; zero words add nothing. */
static inline uint32_t table_hash(const void *key, uint32_t size)
{
	const uint8_t *p = key;
	uint64_t h = 0, w, second;

	/* The sizes of most keys: the same sums without a loop. */
	if (size == 8) {
		memcpy(&w, p, 8);
		return table_mix(w * table_factors[0]);
	}
	if (size == 16) {
		memcpy(&w, p, 8);
		memcpy(&second, p + 8, 8);
		return table_mix(w * table_factors[0] + second * table_factors[1]);
	}
	for (uint32_t k = 0; k < size / 8; k++) {
		memcpy(&w, p + 8 * k, 8);
		if (k && k % 32 == 0)
			h = h << 5 | h >> 59;
		h += w * table_factors[k % 32];
	}
	return table_mix(h);
}

static inline struct abi_table *table_header(const struct shm_map *m, uint8_t *base)
{
	return (struct abi_table *)(base + m->off);
}

static inline uint32_t *table_index(const struct shm_map *m, uint8_t *base)
{
	return (uint32_t *)(base + m->off + sizeof(struct abi_table));
}

/* Of a lane's table: what a hash is cut to.  Never more than the index has, whatever is in the header. */
static inline uint32_t table_mask(const struct shm_map *m, uint8_t *lane)
{
	return (__atomic_load_n(&table_header(m, lane)->mask, __ATOMIC_RELAXED) | (ABI_TABLE_FIRST - 1)) & m->mask;
}

static inline struct abi_elem *table_elem_at(const struct shm_map *m, uint8_t *base, uint32_t n)
{
	return (struct abi_elem *)(base + m->off + m->elems_off + (uint64_t)n * m->stride);
}

/*
 * Read a word that other processes can write at any time.  It is read once, so that the value checked is the value
 * used.
 */
static inline uint32_t table_word(const uint32_t *at)
{
	return __atomic_load_n(at, __ATOMIC_RELAXED);
}

/* The element that a link or an index word @ref (1 + its number) refers to, or NULL. */
static inline struct abi_elem *table_elem(const struct shm_map *m, uint8_t *base, uint32_t ref)
{
	return ref - 1 < m->max_entries ? table_elem_at(m, base, ref - 1) : NULL;
}

/* Of a lane's table: is it in the index, where its key finds it? */
static inline bool table_is_indexed(const struct abi_elem *e)
{
	return e->state == ABI_ELEM_LIVE || e->state == ABI_ELEM_DEAD;
}

static inline uint8_t *table_key(struct abi_elem *e)
{
	return (uint8_t *)(e + 1);
}

static inline uint8_t *table_value(const struct shm_map *m, struct abi_elem *e)
{
	return (uint8_t *)(e + 1) + m->key_size;
}

static inline bool table_same_key(const struct shm_map *m, struct abi_elem *e, const void *key)
{
	/* Others may be writing the key: words are read whole. */
	const uint64_t *have = (const void *)table_key(e);
	const uint8_t *want = key;
	uint32_t last = m->key_size / 8 - 1;
	uint64_t b, d;

	if (last <= 1) {	/* 8 or 16 bytes: the last word twice, or both */
		memcpy(&b, want, 8);
		memcpy(&d, want + 8 * last, 8);
		return !((__atomic_load_n(&have[0], __ATOMIC_RELAXED) ^ b) | (__atomic_load_n(&have[last], __ATOMIC_RELAXED) ^ d));
	}
	for (uint32_t k = 0; k <= last; k++) {
		memcpy(&b, want + 8 * k, 8);
		if (__atomic_load_n(&have[k], __ATOMIC_RELAXED) != b)
			return false;
	}
	return true;
}

#endif

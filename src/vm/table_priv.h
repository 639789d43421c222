/*
 * How a table lies in memory, for the files that walk it: table.c, and add.c in a hurry.
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

static inline struct abi_table *table_header(const struct shm_map *m, uint8_t *base)
{
	return (struct abi_table *)(base + m->off);
}

static inline uint32_t *table_index(const struct shm_map *m, uint8_t *base)
{
	return (uint32_t *)(base + m->off + sizeof(struct abi_table));
}

static inline struct abi_elem *table_elem_at(const struct shm_map *m, uint8_t *base, uint32_t n)
{
	return (struct abi_elem *)(base + m->off + m->elems_off + (uint64_t)n * m->stride);
}

/* The element that a link or an index word @ref (1 + its number) means, or NULL. */
static inline struct abi_elem *table_elem(const struct shm_map *m, uint8_t *base, uint32_t ref)
{
	return ref - 1 < m->max_entries ? table_elem_at(m, base, ref - 1) : NULL;
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
	const uint8_t *have = table_key(e), *want = key;
	uint64_t a, b;

	for (uint32_t k = 0; k < m->key_size; k += 8) {
		memcpy(&a, have + k, 8);
		memcpy(&b, want + k, 8);
		if (a != b)
			return false;
	}
	return true;
}

#endif

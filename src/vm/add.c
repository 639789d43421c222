/*
 * Adding to what stands under a string: @[copyinstr(arg1)] = count() and its like, in one step.
 *
 * What it does is what the program could do by itself: read the string, make a key of it, find or make the element in
 * the lane's table of the key's class (ir/layout.h), add.  Done here it needs no copy of the string and no zeros behind
 * it.  A string of up to 31 bytes that came with the event is looked at in two registers: it may be read beyond its NUL
 * as long as its page does not end.  That makes 5 ns of 70.
 */
#include "vm/add.h"

#include <errno.h>
#include <string.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "vm/table_priv.h"

enum { SHORT = 32, PAGE = 4096 };

/* The string's bytes and zeros to SHORT.  False: it is longer, or lies at the end of a page. */
#if defined(__x86_64__)
__attribute__((no_sanitize("address"))) static inline bool load_short(const char *s, uint64_t w[4])
{
	static const uint8_t masks[2 * SHORT] __attribute__((aligned(32))) = { [0 ... SHORT - 1] = 0xff };
	const __m128i zero = _mm_setzero_si128();
	__m128i low, high;
	uint32_t nuls;

	if (((uintptr_t)s & (PAGE - 1)) > PAGE - SHORT)
		return false;
	low = _mm_loadu_si128((const __m128i *)s);
	high = _mm_loadu_si128((const __m128i *)(s + 16));
	nuls = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(low, zero)) |
	       (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(high, zero)) << 16;
	if (!nuls)
		return false;
	s = (const char *)masks + SHORT - __builtin_ctz(nuls);
	_mm_storeu_si128((__m128i *)w, _mm_and_si128(low, _mm_loadu_si128((const __m128i *)s)));
	_mm_storeu_si128((__m128i *)(w + 2), _mm_and_si128(high, _mm_loadu_si128((const __m128i *)(s + 16))));
	return true;
}
#else
static inline bool load_short(const char *s, uint64_t w[4])
{
	(void)s;
	(void)w;
	return false;
}
#endif

static inline bool is_known(const struct shm_run *r, uint64_t address)
{
	for (uint32_t k = 0; k < r->nstrings; k++)
		if (r->strings[k] == address)
			return true;
	return false;
}

/* The words under @w, or NULL. */
static inline uint64_t *find_short(const struct shm_map *m, uint8_t *lane, const uint64_t w[4])
{
	uint32_t hash = table_mix(w[0] * table_factors[0] + w[1] * table_factors[1] + w[2] * table_factors[2] +
				  w[3] * table_factors[3]);
	const uint32_t *index = table_index(m, lane);
	uint32_t at = hash & m->mask;

	for (int k = 0; k < 64 && index[at]; k++, at = (at + 1) & m->mask) {
		struct abi_elem *e = table_elem(m, lane, index[at]);
		uint64_t have[4];

		if (!e || e->hash != hash)
			continue;
		memcpy(have, table_key(e), SHORT);
		if (!((have[0] ^ w[0]) | (have[1] ^ w[1]) | (have[2] ^ w[2]) | (have[3] ^ w[3])))
			return e->state == ABI_ELEM_LIVE ? (uint64_t *)table_value(m, e) : NULL;
	}
	return NULL;
}

/* Find or make the element of @key, which is as long as keys of @m are. */
static uint64_t *get(const struct shm_map *m, uint8_t *lane, const void *key)
{
	uint64_t *words = lane_table_find(m, lane, key);

	if (!words && !lane_table_put(m, lane, key, NULL, BPF_ANY))
		words = lane_table_find(m, lane, key);
	return words;
}

/* Any string, the slow way. */
__attribute__((noinline)) static int64_t get_any(struct shm_run *r, const struct shm_map *m, uint32_t classes,
						 uint64_t address, uint64_t **words)
{
	uint64_t buf[ABI_ADD_STRING_MAX / 8 + 1];
	uint64_t size = m[classes - 1].key_size, n;
	uint32_t c = 0;

	if (is_known(r, address)) {
		n = strnlen((const char *)(uintptr_t)address, size - 1);
		memcpy(buf, (const void *)(uintptr_t)address, n);
		((char *)buf)[n++] = '\0';
	} else {
		n = shm_read_string(r, (char *)buf, size, address);
		if ((int64_t)n < 1)
			return -EFAULT;
	}
	while (n > m[c].key_size)
		c++;
	memset((char *)buf + n, 0, m[c].key_size - n);
	*words = get(&m[c], r->lane, buf);
	return *words ? 0 : -E2BIG;
}

uint64_t add_by_string(uint64_t map, uint64_t address, uint64_t classes, uint64_t word, uint64_t value,
		       struct vm_thread *t)
{
	const struct shm_map *m = (const struct shm_map *)(uintptr_t)map;
	struct shm_run *r = t->user;
	uint64_t *words = NULL, w[4];
	int64_t err;

	if (__builtin_expect(is_known(r, address) && m->key_size == SHORT && load_short((const char *)(uintptr_t)address, w), 1))
		words = find_short(m, r->lane, w);
	if (__builtin_expect(!words, 0)) {
		err = shm_good_classes(r->shm, m, (uint32_t)classes) ?
			get_any(r, m, (uint32_t)classes, address, &words) : -EINVAL;
		if (err)
			return (uint64_t)err;
	}
	if (word >= m->value_size / 8)
		return 0;
	words[word] += value;
	return 0;
}

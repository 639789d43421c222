/*
 * Adding to an aggregation's element whose key is a string, @[copyinstr(arg1)] = count() for example, in one step.
 *
 * The program could do the same by itself: read the string, make a key of it, find or create the element in the
 * lane's table for the key's size class (ir/layout.h), add.  Doing it here saves copying the string and padding it
 * with zeros.  A string of up to 31 bytes that came with the event is compared in two registers: bytes after its NUL
 * may be read up to the end of the page.
 *
 * The names in events have few addresses, and the same address mostly means the same string.  So a cache maps
 * addresses to elements.  A hit is confirmed by comparing the string with the element's key: that needs no hash, and
 * the processor can execute ahead.
 */
#include "vm/add.h"

#include <errno.h>
#include <string.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "vm/memory.h"
#include "vm/table_priv.h"

enum { SHORT = 32, PAGE = 4096 };

/* Load the string, zero-padded to SHORT bytes.  False: it is longer, or too close to the end of a page. */
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

/* --- by address --- */

static inline struct shm_cached *cached_at(const struct shm_run *r, const struct shm_map *m, uint64_t address)
{
	uint64_t h = (address ^ (uint64_t)(uintptr_t)m) * 0x9e3779b97f4a7c15;

	return &r->cache[h >> 51];
}
_Static_assert(SHM_CACHED == 1 << (64 - 51), "bits of the hash");

#if defined(__x86_64__)
/* Does the string at @s equal the key of 32 bytes at @key, which is zero after its NUL? */
__attribute__((no_sanitize("address"))) static inline bool same_short(const char *s, const uint8_t *key)
{
	const __m128i zero = _mm_setzero_si128();
	__m128i low = _mm_loadu_si128((const __m128i *)key), high = _mm_loadu_si128((const __m128i *)(key + 16));
	uint32_t nuls, same;

	if (((uintptr_t)s & (PAGE - 1)) > PAGE - SHORT)
		return !strcmp(s, (const char *)key);
	nuls = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(low, zero)) |
	       (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(high, zero)) << 16;
	same = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(low, _mm_loadu_si128((const __m128i *)s))) |
	       (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(high, _mm_loadu_si128((const __m128i *)(s + 16)))) << 16;
	if (!nuls)
		return false;
	nuls ^= nuls - 1;	/* the bits up to the first NUL */
	return (same & nuls) == nuls;
}
#endif

static inline bool same_string(const struct shm_map *m, const char *s, const uint8_t *key)
{
#if defined(__x86_64__)
	if (m->key_size == SHORT)
		return same_short(s, key);
#endif
	return !strncmp(s, (const char *)key, m->key_size);
}

/* For add_learn_found(). */
static inline void note_found(const struct shm_run *r, const struct shm_map *m, struct abi_elem *e)
{
	if (__builtin_expect(r->recent != NULL, 1))
		r->recent[m - r->shm->maps].found = e;
}

static inline uint64_t *find_cached(const struct shm_run *r, const struct shm_map *m, uint64_t classes, uint64_t address)
{
	const struct shm_cached *c = cached_at(r, m, address);
	uint64_t class = c->map - (uint64_t)(m - r->shm->maps);
	struct abi_elem *e;

	if (c->address != address || class >= classes)
		return NULL;
	m += class;
	e = table_elem(m, r->lane, c->elem + 1);
	if (!e || e->state != ABI_ELEM_LIVE || !same_string(m, (const char *)(uintptr_t)address, table_key(e)))
		return NULL;
	note_found(r, m, e);
	return (uint64_t *)table_value(m, e);
}

/* Remember @e, of map @m, in one of the entries of @owner. */
static struct add_pair keep(const struct shm_run *r, const struct add_objects *a, uint64_t owner, const struct shm_map *m,
			    struct abi_elem *e, struct add_pair *forgotten)
{
	struct shm_object *o = add_objects_at(a, owner);
	struct add_pair pair = { 0 };

	/* The first of the two entries is found faster, so it is replaced only half of the time. */
	if (o->owner && o->owner != owner && (o[1].owner == owner || !o[1].owner || !(owner >> 9 & 1)))
		o++;
	memcpy(&pair.object, (const char *)(uintptr_t)owner + a->ref, sizeof(pair.object));
	if (a->others)
		memcpy(&pair.other, (const char *)(uintptr_t)owner + a->other, sizeof(pair.other));
	*forgotten = (struct add_pair){ o->object, r->others[o - a->objects] };
	*o = (struct shm_object){ owner, pair.object, (uint8_t *)e, ((const struct abi_lane *)r->lane)->given_back,
				  (uint16_t)(sizeof(*e) + m->key_size), a->map };
	r->others[o - a->objects] = pair.other;
	return pair;
}

void add_forget_found(const struct shm_run *r, const struct add_objects *a, uint32_t classes)
{
	for (uint32_t c = 0; c < classes; c++)
		r->recent[a->map + c].found = NULL;
}

struct add_pair add_learn_found(const struct shm_run *r, const struct add_objects *a, uint32_t classes, uint64_t owner,
				struct add_pair *forgotten)
{
	*forgotten = (struct add_pair){ 0 };
	for (uint32_t c = 0; c < classes; c++) {
		struct abi_elem *e = r->recent[a->map + c].found;

		if (e && e->state == ABI_ELEM_LIVE)
			return keep(r, a, owner, &r->shm->maps[a->map + c], e, forgotten);
	}
	return (struct add_pair){ 0 };
}

struct add_pair add_learn_object(const struct shm_run *r, const struct add_objects *a, uint32_t classes, uint64_t owner,
				 uint64_t address, struct add_pair *forgotten)
{
	const struct shm_map *first = &r->shm->maps[a->map], *m;
	const struct shm_cached *c = cached_at(r, first, address);
	uint64_t class = c->map - (uint64_t)a->map;
	struct abi_elem *e;

	*forgotten = (struct add_pair){ 0 };
	if (!address || c->address != address || class >= classes)
		return (struct add_pair){ 0 };
	m = first + class;
	e = table_elem(m, r->lane, c->elem + 1);
	/* The cache entry may be out of date: another string may be at that address now. */
	if (!e || e->state != ABI_ELEM_LIVE || !same_string(m, (const char *)(uintptr_t)address, table_key(e)))
		return (struct add_pair){ 0 };
	return keep(r, a, owner, m, e, forgotten);
}
_Static_assert(ABI_MAX_MAPS <= UINT16_MAX && ABI_ADD_STRING_MAX + sizeof(struct abi_elem) + 8 <= UINT16_MAX,
	       "fields of struct shm_object");

/*
 * Remember that the string at @address belongs to the element with the value @words, of one of the tables from @m on.
 */
static void remember(const struct shm_run *r, const struct shm_map *m, uint32_t classes, uint64_t address,
		     const uint64_t *words)
{
	for (uint32_t k = 0; k < classes; k++) {
		uint64_t off = (uint64_t)((const uint8_t *)words - (r->lane + m[k].off + m[k].elems_off));

		if (off < (uint64_t)m[k].max_entries * m[k].stride) {
			*cached_at(r, m, address) = (struct shm_cached){ address, (uint32_t)(off / m[k].stride),
									 (uint32_t)(&m[k] - r->shm->maps) };
			return;
		}
	}
}

/* --- the helper --- */

/* The general case, for any string. */
__attribute__((noinline)) static int64_t get_any(struct shm_run *r, const struct shm_map *m, uint32_t classes,
						 uint64_t address, uint64_t **words)
{
	uint64_t buf[ABI_ADD_STRING_MAX / 8 + 1];
	int64_t n = memory_read_string(r, (char *)buf, m[classes - 1].key_size, address);
	uint32_t c = 0;

	if (n < 1)
		return -EFAULT;
	while (n > m[c].key_size)
		c++;
	memset((char *)buf + n, 0, m[c].key_size - (uint64_t)n);
	*words = lane_table_get(&m[c], r->lane, buf);
	return *words ? 0 : -E2BIG;
}

__attribute__((noinline)) static int64_t find_slowly(struct shm_run *r, const struct shm_map *m, uint32_t classes,
						  uint64_t address, bool known, uint64_t **words)
{
	uint64_t w[4];
	int64_t err;

	if (!shm_good_classes(m, classes))
		return -EINVAL;
	if (known && m->key_size == SHORT && load_short((const char *)(uintptr_t)address, w)) {
		*words = lane_table_get(m, r->lane, w);
		err = *words ? 0 : -E2BIG;
	} else {
		err = get_any(r, m, classes, address, words);
	}
	if (!err && known && r->cache)
		remember(r, m, classes, address, *words);
	return err;
}

uint64_t add_by_string(uint64_t map, uint64_t address, uint64_t classes, uint64_t word, uint64_t value,
		       struct vm_thread *t)
{
	const struct shm_map *m = (const struct shm_map *)(uintptr_t)map;
	struct shm_run *r = t->user;
	bool known = memory_is_known(r, address);
	uint64_t *words = NULL;
	int64_t err;

	if (__builtin_expect(known && r->cache, 1))
		words = find_cached(r, m, classes, address);
	if (__builtin_expect(!words, 0)) {
		err = find_slowly(r, m, (uint32_t)classes, address, known, &words);
		if (err)
			return (uint64_t)err;
	}
	if (word >= m->value_size / 8)
		return 0;
	words[word] += value;
	return 0;
}

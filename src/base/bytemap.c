#include "base/bytemap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* FNV-1a, 64 bits: keys are short and not chosen by an attacker. */
static uint64_t hash_bytes(const void *key, size_t len)
{
	const unsigned char *p = key;
	uint64_t h = 0xcbf29ce484222325;
	size_t i;

	for (i = 0; i < len; i++)
		h = (h ^ p[i]) * 0x100000001b3;
	return h;
}

/* The slot with the key, or the free one where it belongs.  There is always a free slot. */
static struct bytemap_slot *find(const struct bytemap *m, const void *key, size_t len, uint64_t hash)
{
	size_t i = (size_t)hash & (m->cap - 1);

	while (m->slots[i].key && (m->slots[i].hash != hash || m->slots[i].len != len ||
				   memcmp(m->slots[i].key, key, len)))
		i = (i + 1) & (m->cap - 1);
	return &m->slots[i];
}

void *bytemap_get(const struct bytemap *m, const void *key, size_t len)
{
	struct bytemap_slot *s;

	if (!m->n)
		return NULL;
	s = find(m, key, len, hash_bytes(key, len));
	return s->key ? s->value : NULL;
}

static int grow(struct bytemap *m)
{
	struct bytemap bigger = { .cap = m->cap ? m->cap * 2 : 16, .n = m->n };
	size_t i;

	bigger.slots = calloc(bigger.cap, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (i = 0; i < m->cap; i++)
		if (m->slots[i].key)
			*find(&bigger, m->slots[i].key, m->slots[i].len, m->slots[i].hash) = m->slots[i];
	free(m->slots);
	*m = bigger;
	return 0;
}

int bytemap_set(struct bytemap *m, const void *key, size_t len, void *value)
{
	uint64_t hash = hash_bytes(key, len);
	struct bytemap_slot *s;

	if (m->n >= m->cap / 4 * 3 && grow(m))
		return -ENOMEM;
	s = find(m, key, len, hash);
	if (!s->key) {
		s->key = malloc(len ? len : 1);
		if (!s->key)
			return -ENOMEM;
		memcpy(s->key, key, len);
		s->len = len;
		s->hash = hash;
		m->n++;
	}
	s->value = value;
	return 0;
}

void *bytemap_del(struct bytemap *m, const void *key, size_t len)
{
	struct bytemap_slot *s, moved;
	size_t i;
	void *value;

	if (!m->n)
		return NULL;
	s = find(m, key, len, hash_bytes(key, len));
	if (!s->key)
		return NULL;
	value = s->value;
	free(s->key);
	s->key = NULL;
	m->n--;
	/* Keys between the gap and the next free slot may have been displaced by the removed one: reinsert them. */
	for (i = (size_t)(s - m->slots + 1) & (m->cap - 1); m->slots[i].key; i = (i + 1) & (m->cap - 1)) {
		moved = m->slots[i];
		m->slots[i].key = NULL;
		*find(m, moved.key, moved.len, moved.hash) = moved;
	}
	return value;
}

void *bytemap_next(const struct bytemap *m, size_t *pos)
{
	while (*pos < m->cap) {
		const struct bytemap_slot *s = &m->slots[(*pos)++];

		if (s->key)
			return s->value;
	}
	return NULL;
}

void bytemap_fini(struct bytemap *m)
{
	size_t i;

	for (i = 0; i < m->cap; i++)
		free(m->slots[i].key);
	free(m->slots);
	memset(m, 0, sizeof(*m));
}

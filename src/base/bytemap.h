/*
 * A hash table from byte strings to pointers, on the heap.  Keys are copied; values stay the caller's.
 * Zero-initialise it; bytemap_fini releases it.
 */
#ifndef DTAP_BASE_BYTEMAP_H
#define DTAP_BASE_BYTEMAP_H

#include <stddef.h>
#include <stdint.h>

struct bytemap_slot {
	void *key;		/* NULL: free */
	size_t len;
	uint64_t hash;
	void *value;
};

struct bytemap {
	struct bytemap_slot *slots;
	size_t cap, n;		/* cap is 0 or a power of two */
};

/* The value under the @len bytes at @key, or NULL. */
void *bytemap_get(const struct bytemap *m, const void *key, size_t len);

/* Set it; a value that was there is replaced.  0 or -ENOMEM: nothing changed. */
int bytemap_set(struct bytemap *m, const void *key, size_t len, void *value);

/* Remove the key and return what it had, or NULL. */
void *bytemap_del(struct bytemap *m, const void *key, size_t len);

/* The values one after the other: start with *@pos 0; NULL at the end.  The table must not change meanwhile. */
void *bytemap_next(const struct bytemap *m, size_t *pos);

void bytemap_fini(struct bytemap *m);

#endif

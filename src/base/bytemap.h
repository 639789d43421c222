/*
 * A hash table on the heap that maps byte strings to pointers.  Keys are copied; the caller owns the values.
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

/* The value of the key, @len bytes at @key, or NULL. */
void *bytemap_get(const struct bytemap *m, const void *key, size_t len);

/* Set the key's value; replaces an old one.  0, or -ENOMEM: nothing changed. */
int bytemap_set(struct bytemap *m, const void *key, size_t len, void *value);

/* Remove the key and return its value, or NULL. */
void *bytemap_del(struct bytemap *m, const void *key, size_t len);

/* Iterate over the values: start with *@pos 0; NULL at the end.  The table must not change meanwhile. */
void *bytemap_next(const struct bytemap *m, size_t *pos);

void bytemap_fini(struct bytemap *m);

#endif

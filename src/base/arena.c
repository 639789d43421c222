#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/oom.h"

enum { BLOCK_MIN = 16 * 1024, ALIGN = alignof(max_align_t) };

struct block {
	struct block *next;
	size_t used, size;	/* bytes of data */
	alignas(max_align_t) char data[];
};

struct arena {
	struct block *blocks;
	size_t used;
};

struct arena *arena_new(void)
{
	struct arena *a = calloc(1, sizeof(*a));

	if (!a)
		oom();
	return a;
}

void arena_free(struct arena *a)
{
	struct block *b, *next;

	if (!a)
		return;
	for (b = a->blocks; b; b = next) {
		next = b->next;
		free(b);
	}
	free(a);
}

static struct block *block_new(size_t size)
{
	struct block *b = NULL;

	if (size <= SIZE_MAX - sizeof(*b))
		b = malloc(sizeof(*b) + size);
	if (!b)
		oom();
	b->used = 0;
	b->size = size;
	return b;
}

void *arena_alloc(struct arena *a, size_t size)
{
	struct block *b = a->blocks;
	void *p;

	if (size > SIZE_MAX - ALIGN)
		oom();
	size = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	if (!b || b->size - b->used < size) {
		b = block_new(size > BLOCK_MIN ? size : BLOCK_MIN);
		/* A large object gets a block of its own after the current one, whose remaining space stays usable. */
		if (a->blocks && size > BLOCK_MIN / 4) {
			b->next = a->blocks->next;
			a->blocks->next = b;
		} else {
			b->next = a->blocks;
			a->blocks = b;
		}
	}
	p = b->data + b->used;
	b->used += size;
	a->used += size;
	return memset(p, 0, size);
}

size_t arena_used(const struct arena *a)
{
	return a->used;
}

char *arena_strndup(struct arena *a, const char *s, size_t len)
{
	char *p = arena_alloc(a, len + 1);

	memcpy(p, s, len);
	return p;
}

char *arena_strdup(struct arena *a, const char *s)
{
	return arena_strndup(a, s, strlen(s));
}

char *arena_vprintf(struct arena *a, const char *fmt, va_list ap)
{
	va_list again;
	int len;
	char *p;

	va_copy(again, ap);
	len = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (len < 0)
		return arena_strdup(a, "");
	p = arena_alloc(a, (size_t)len + 1);
	vsnprintf(p, (size_t)len + 1, fmt, ap);
	return p;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap;
	char *p;

	va_start(ap, fmt);
	p = arena_vprintf(a, fmt, ap);
	va_end(ap);
	return p;
}

void *arena_grow(struct arena *a, void *items, size_t *cap, size_t n, size_t size)
{
	size_t want;
	void *p;

	if (n < *cap)
		return items;
	want = *cap ? *cap * 2 : 8;
	if (want > SIZE_MAX / size)
		oom();
	p = arena_alloc(a, want * size);
	if (n)
		memcpy(p, items, n * size);
	*cap = want;
	return p;
}

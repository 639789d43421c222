#include "session/spec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SPECS_MAX = 64 };	/* as many as there are numbers */

/* Records back to back, each behind its size as 8 bytes. */
struct spec {
	char *bytes;
	size_t len, cap;
};

struct specs {
	struct spec v[SPECS_MAX];
	size_t specsize;
	uint64_t drops;
};

struct specs *specs_new(size_t specsize)
{
	struct specs *s = calloc(1, sizeof(*s));

	if (s)
		s->specsize = specsize;
	return s;
}

void specs_free(struct specs *s)
{
	for (int i = 0; s && i < SPECS_MAX; i++)
		free(s->v[i].bytes);
	free(s);
}

static struct spec *find(struct specs *s, int64_t id)
{
	return id >= 1 && id <= SPECS_MAX ? &s->v[id - 1] : NULL;
}

int specs_keep(struct specs *s, int64_t id, const void *rec, size_t size)
{
	struct spec *sp = find(s, id);
	uint64_t n = size;
	size_t cap;
	char *p;

	if (!sp)
		return 0;
	if (sp->len + sizeof(n) + size > s->specsize) {
		s->drops++;
		return 0;
	}
	if (sp->cap - sp->len < sizeof(n) + size) {
		cap = (sp->cap ? 2 * sp->cap : 4096) + size;
		p = realloc(sp->bytes, cap);
		if (!p)
			return -ENOMEM;
		sp->bytes = p;
		sp->cap = cap;
	}
	memcpy(sp->bytes + sp->len, &n, sizeof(n));
	memcpy(sp->bytes + sp->len + sizeof(n), rec, size);
	sp->len += sizeof(n) + ((size + 7) & ~(size_t)7);
	return 0;
}

int specs_end(struct specs *s, int64_t id, int (*fn)(void *ctx, const void *rec, size_t size), void *ctx)
{
	struct spec *sp = find(s, id);
	size_t at = 0;
	uint64_t n;
	int e = 0;

	while (sp && fn && at < sp->len && !e) {
		memcpy(&n, sp->bytes + at, sizeof(n));
		e = fn(ctx, sp->bytes + at + sizeof(n), (size_t)n);
		at += sizeof(n) + (((size_t)n + 7) & ~(size_t)7);
	}
	if (sp)
		sp->len = 0;
	return e;
}

uint64_t specs_drops(struct specs *s)
{
	uint64_t n = s->drops;

	s->drops = 0;
	return n;
}

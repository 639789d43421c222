#include "session/spec.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "vm/record.h"

enum { SPECS_MAX = 64 };	/* the highest number of a speculation */

/* Records one after the other, each preceded by 8 bytes with its size; their highest bit: is_foreign. */
#define FOREIGN ((uint64_t)1 << 63)

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

int specs_keep(struct specs *s, int64_t id, const struct record *rec)
{
	struct spec *sp = find(s, id);
	size_t size = rec->size, cap;
	uint64_t n = size | (rec->is_foreign ? FOREIGN : 0);
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
	memcpy(sp->bytes + sp->len + sizeof(n), rec->hdr, size);
	sp->len += sizeof(n) + ((size + 7) & ~(size_t)7);
	return 0;
}

int specs_end(struct specs *s, int64_t id, int (*fn)(void *ctx, const struct record *rec), void *ctx)
{
	struct spec *sp = find(s, id);
	size_t at = 0;
	uint64_t n;
	bool is_foreign;
	int e = 0;

	while (sp && fn && at < sp->len && !e) {
		memcpy(&n, sp->bytes + at, sizeof(n));
		is_foreign = n & FOREIGN;
		n &= ~FOREIGN;
		e = fn(ctx, &(struct record){ (const struct abi_record *)(const void *)(sp->bytes + at + sizeof(n)), (size_t)n,
					      is_foreign });
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

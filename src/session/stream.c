#include "session/stream.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "abi/record.h"

int stream_add(struct stream *s, const struct record *rec)
{
	const struct abi_record *hdr = rec->hdr;
	size_t size = rec->size, cap;
	struct stream_item *items;
	char *bytes;

	if (size < sizeof(*hdr) || hdr->size > size)
		return -EINVAL;
	if (s->n == s->items_cap) {
		cap = s->items_cap ? s->items_cap * 2 : 256;
		items = realloc(s->items, cap * sizeof(*items));
		if (!items)
			return -ENOMEM;
		s->items = items;
		s->items_cap = cap;
	}
	if (s->cap - s->len < size) {
		for (cap = s->cap ? s->cap : 16 * 1024; cap - s->len < size;)
			cap *= 2;
		bytes = realloc(s->bytes, cap);
		if (!bytes)
			return -ENOMEM;
		s->bytes = bytes;
		s->cap = cap;
	}
	memcpy(s->bytes + s->len, hdr, size);
	s->items[s->n++] = (struct stream_item){ hdr->time_ns, s->order++, s->len, size, rec->is_foreign };
	s->len += (size + 7) & ~(size_t)7;
	return 0;
}

static int by_time(const void *x, const void *y)
{
	const struct stream_item *a = x, *b = y;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

/* Are the records in order already?  They usually are if one thread is traced. */
static bool in_order(const struct stream *s)
{
	for (size_t i = 1; i < s->n; i++)
		if (by_time(&s->items[i - 1], &s->items[i]) > 0)
			return false;
	return true;
}

/* Close the gaps between the bytes of the records. */
static void compact(struct stream *s)
{
	size_t i, len = 0;
	char *bytes;

	if (!s->n) {
		s->len = 0;
		return;
	}
	for (i = 0; i < s->n; i++)
		len += (s->items[i].size + 7) & ~(size_t)7;
	bytes = malloc(len);
	if (!bytes)		/* the gaps remain */
		return;
	for (i = 0, len = 0; i < s->n; i++) {
		memcpy(bytes + len, s->bytes + s->items[i].off, s->items[i].size);
		s->items[i].off = len;
		len += (s->items[i].size + 7) & ~(size_t)7;
	}
	free(s->bytes);
	s->bytes = bytes;
	s->len = s->cap = len;
}

/* Remove the first @n records and move the others to the front. */
static void forget(struct stream *s, size_t n)
{
	s->n -= n;
	memmove(s->items, s->items + n, s->n * sizeof(*s->items));
	compact(s);
}

int stream_keep_last(struct stream *s, size_t bytes)
{
	enum { CPUS_MAX = 4096 };
	size_t *used = calloc(CPUS_MAX, sizeof(*used)), i, to = s->n;

	if (!used)
		return -ENOMEM;
	for (i = s->n; i-- > 0;) {
		struct abi_record hdr;
		size_t *mine;

		memcpy(&hdr, s->bytes + s->items[i].off, sizeof(hdr));
		mine = &used[hdr.cpu % CPUS_MAX];
		if (*mine > bytes || s->items[i].size > bytes - *mine) {
			*mine = bytes + 1;	/* older records are dropped, too */
			continue;
		}
		*mine += s->items[i].size;
		s->items[--to] = s->items[i];
	}
	s->n -= to;
	memmove(s->items, s->items + to, s->n * sizeof(*s->items));
	compact(s);
	free(used);
	return 0;
}

static struct record record_at(const struct stream *s, size_t i)
{
	return (struct record){ (const struct abi_record *)(const void *)(s->bytes + s->items[i].off), s->items[i].size,
				s->items[i].is_foreign };
}

int stream_take(struct stream *s, uint64_t until_ns, stream_fn *each, void *ctx)
{
	struct record rec, next;
	size_t i;
	int ret = 0;

	if (!s->n)
		return 0;
	if (!in_order(s))
		qsort(s->items, s->n, sizeof(*s->items), by_time);
	for (i = 0; i < s->n && !ret && s->items[i].time_ns <= until_ns; i++) {
		rec = record_at(s, i);
		if (i + 1 < s->n)
			next = record_at(s, i + 1);
		ret = each(ctx, &rec, i + 1 < s->n ? &next : NULL);
	}
	forget(s, i);
	return ret;
}

void stream_fini(struct stream *s)
{
	free(s->bytes);
	free(s->items);
	memset(s, 0, sizeof(*s));
}

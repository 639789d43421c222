#include "lang/similar.h"

#include <string.h>

#include "base/strbuf.h"

unsigned int similar_distance(const char *a, const char *b)
{
	unsigned int row[64], n = (unsigned int)strnlen(b, 63), above, left;

	for (unsigned int k = 0; k <= n; k++)
		row[k] = k;
	for (unsigned int i = 0; a[i] && i < 63; i++) {
		above = row[0];
		row[0] = left = i + 1;
		for (unsigned int k = 1; k <= n; k++) {
			unsigned int best = above + (a[i] != b[k - 1]);

			above = row[k];
			if (above + 1 < best)
				best = above + 1;
			if (left + 1 < best)
				best = left + 1;
			row[k] = left = best;
		}
	}
	return row[n];
}

struct similar similar_to(const char *name)
{
	return (struct similar){ .name = name };
}

void similar_add(struct similar *s, const char *candidate)
{
	unsigned int far = similar_distance(candidate, s->name), at = 0;

	for (unsigned int k = 0; k < s->n; k++)
		if (!strcmp(s->best[k], candidate))
			return;
	while (at < s->n && s->far[at] <= far)
		at++;
	if (at == SIMILAR_MAX)
		return;
	s->n += s->n < SIMILAR_MAX;
	memmove(s->best + at + 1, s->best + at, (s->n - at - 1) * sizeof(*s->best));
	memmove(s->far + at + 1, s->far + at, (s->n - at - 1) * sizeof(*s->far));
	s->best[at] = candidate;
	s->far[at] = far;
}

void similar_print(const struct similar *s, struct strbuf *out)
{
	for (unsigned int i = 0; i < s->n; i++)
		strbuf_printf(out, "%s%s", i ? ", " : "", s->best[i]);
}

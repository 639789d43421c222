/*
 * "no match (similar marks: audit, line)": what the script may have meant.
 */
#include "probe/points_priv.h"

#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "lang/similar.h"

enum { NSIMILAR = 5 };

const char *points_similar(struct points_search *s, const char *what, const char *pattern,
			   const char *(*name)(const void *ctx, size_t i), const void *ctx)
{
	const char *best[NSIMILAR], *one, *ret;
	unsigned int far[NSIMILAR], n = 0;
	struct strbuf b = { 0 };

	for (size_t i = 0; (one = name(ctx, i)); i++) {
		unsigned int d = similar_distance(one, pattern), at = 0;
		bool again = false;

		for (unsigned int k = 0; k < n && !again; k++)
			again = !strcmp(best[k], one);
		while (at < n && far[at] <= d)
			at++;
		if (again || at == NSIMILAR)
			continue;
		n += n < NSIMILAR;
		memmove(best + at + 1, best + at, (n - at - 1) * sizeof(*best));
		memmove(far + at + 1, far + at, (n - at - 1) * sizeof(*far));
		best[at] = one;
		far[at] = d;
	}
	if (!n)
		return "no match";
	strbuf_printf(&b, "no match (similar %s: ", what);
	for (unsigned int i = 0; i < n; i++)
		strbuf_printf(&b, "%s%s", i ? ", " : "", best[i]);
	strbuf_putc(&b, ')');
	ret = arena_strdup(s->p->arena, strbuf_str(&b));
	strbuf_fini(&b);
	return ret;
}

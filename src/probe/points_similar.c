/*
 * "no match (similar marks: audit, line)": suggestions for misspelt names.
 */
#include "probe/points_priv.h"

#include "base/arena.h"
#include "base/strbuf.h"
#include "lang/similar.h"

const char *points_similar(struct points_search *s, const char *what, const char *pattern,
			   const char *(*name)(const void *ctx, size_t i), const void *ctx)
{
	struct similar similar = similar_to(pattern);
	struct strbuf b = { 0 };
	const char *one, *ret;

	for (size_t i = 0; (one = name(ctx, i)); i++)
		similar_add(&similar, one);
	if (!similar.n)
		return "no match";
	strbuf_printf(&b, "no match (similar %s: ", what);
	similar_print(&similar, &b);
	strbuf_putc(&b, ')');
	ret = arena_strdup(s->p->arena, strbuf_str(&b));
	strbuf_fini(&b);
	return ret;
}

#include "cmd/lsp/check.h"

#include <string.h>

#include "base/arena.h"
#include "probe/probe.h"

enum { MOST_ERRORS = 200 };

void check(struct verdict *c, struct lsp *s, const struct lsp_doc *doc)
{
	*c = (struct verdict){ .arena = arena_new() };
	diag_init(&c->diag, c->arena);
	c->diag.max = MOST_ERRORS;
	c->src = source_text(c->arena, doc->path, doc->text, doc->len);
	if (doc->too_long) {
		c->unchecked = "it is larger than 16 MiB, which no script is, or all documents are than 512 MiB";
		return;
	}
	if (doc->language == DTAP_STAP)
		check_stap(c, s, lsp_text(doc), strstr(doc->path, "/tapset/") || strstr(doc->path, ".stpm"));
	else
		check_d(c, s, lsp_text(doc), strstr(doc->path, "/dlib/"));
}

void verdict_free(struct verdict *c)
{
	probe_set_free(c->probes);
	arena_free(c->arena);
}

/*
 * Is an argument of the script ($1) on the line of @m?  Both languages put it in as it stands, be it a number, a name or
 * a point, and the one given here is a number.
 */
static bool depends_on_argument(const struct diag_msg *m)
{
	const char *line;
	size_t len;

	if (!m->pos.line)
		return false;
	line = source_line(m->pos.src, m->pos.line, &len);
	for (size_t i = 0; i + 1 < len; i++)
		if (line[i] == '$' && line[i + 1] >= '1' && line[i + 1] <= '9' && !(i && line[i - 1] == '$'))
			return true;
	return false;
}

enum check_weight check_weight(const struct verdict *c, const struct lsp *s, const struct diag_msg *m)
{
	static const char anywhere[] = "probe description :::";

	if (m->level == DIAG_WARNING)
		return source_is_in(m->pos.src, c->src) ? CHECK_WARNING : CHECK_NONE;
	/* The arguments of a provider that is unknown here. */
	if (c->strangers && !strcmp(m->tag, "D_ARGS_MULTI"))
		return CHECK_NONE;
	/* dtrace -w permits it; a program that is not running now may have such a marker. */
	if (!s->destructive && !strcmp(m->tag, "D_DESTRUCTIVE"))
		return CHECK_WARNING;
	if (!strcmp(m->tag, "D_PDESC_ZERO") && !strncmp(m->text, anywhere, strlen(anywhere)))
		return CHECK_WARNING;
	if (depends_on_argument(m))
		return CHECK_WARNING;
	return CHECK_ERROR;
}

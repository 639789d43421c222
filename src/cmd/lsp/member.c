/*
 * Members of structures of D, for completion behind "->" and ".".
 *
 * A document that is being typed is not whole, so the front end gets what stands before the cursor, with a member that no
 * structure has in place of the one that is typed, and with brackets, clause or predicate closed.  It reports that there is
 * no such member; the type of what the member would be of is then known.
 */
#include "cmd/lsp/answer.h"

#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "cmd/lsp/check.h"
#include "d/check.h"

#define NO_MEMBER "no_structure_has_this_member"

enum { OPEN_MAX = 256, INNER_MAX = 8 };

/* Where the comment, string or character at @off ends; @off itself if there is none. */
static size_t skip_text(struct text t, size_t off)
{
	size_t i = off;
	char quote = t.s[i];

	if (quote == '/' && i + 1 < t.len && t.s[i + 1] == '*') {
		for (i += 2; i + 1 < t.len && !(t.s[i] == '*' && t.s[i + 1] == '/'); i++)
			;
		return i + 2 < t.len ? i + 2 : t.len;
	}
	if (quote != '"' && quote != '\'')
		return off;
	for (i++; i < t.len && t.s[i] != quote && t.s[i] != '\n'; i++)
		i += t.s[i] == '\\';
	return i < t.len ? i + 1 : t.len;
}

/* Append what closes the brackets that are open at the end of @t.  Outside of braces it is a predicate.  False: too many. */
static bool close_brackets(struct text t, struct strbuf *out)
{
	char open[OPEN_MAX];
	size_t n = 0, end;
	bool in_braces = false;

	for (size_t i = 0; i < t.len; i = end > i ? end : i + 1) {
		end = skip_text(t, i);
		if (end > i)
			continue;
		if (strchr("([{", t.s[i]) && t.s[i]) {
			if (n == OPEN_MAX)
				return false;
			open[n++] = t.s[i];
		} else if (t.s[i] && strchr(")]}", t.s[i]) && n) {
			n--;
		}
	}
	while (n) {
		char c = open[--n];

		strbuf_puts(out, c == '(' ? ")" : c == '[' ? "]" : ";}");
		in_braces |= c == '{';
	}
	if (!in_braces)
		strbuf_puts(out, "/{}");
	return true;
}

static const struct d_node *find_node(const struct d_node *n)
{
	const struct d_node *found = NULL;

	if (!n)
		return NULL;
	if (n->kind == D_MEMBER && !strcmp(n->name, NO_MEMBER))
		return n;
	found = find_node(n->lhs);
	found = found ? found : find_node(n->rhs);
	found = found ? found : find_node(n->base);
	found = found ? found : find_node(n->cond);
	for (size_t i = 0; !found && i < n->nargs; i++)
		found = find_node(n->args[i]);
	return found;
}

static const struct d_node *find_in_block(const struct d_block *b)
{
	const struct d_node *found = NULL;

	for (size_t i = 0; b && !found && i < b->n; i++) {
		found = find_node(b->stmts[i]->expr);
		found = found ? found : find_in_block(b->stmts[i]->yes);
		found = found ? found : find_in_block(b->stmts[i]->no);
	}
	return found;
}

static const struct type *type_of(const struct verdict *c)
{
	const struct d_node *n = NULL;
	const struct type *t;

	for (size_t i = 0; c->d && !n && i < c->d->nitems; i++)
		if (c->d->items[i].kind == D_ITEM_CLAUSE) {
			n = find_node(c->d->items[i].clause->pred);
			n = n ? n : find_in_block(c->d->items[i].clause->body);
		}
	t = n && n->base ? n->base->type : NULL;
	if (t && n->arrow)
		t = type_is_ptr(t) ? type_target(t) : NULL;
	t = t ? type_strip(t) : NULL;
	return t && type_is_sou(t) ? type_load(t) : NULL;
}

static void each(const struct type *t, unsigned int depth, void (*fn)(void *ctx, const char *name, const char *type), void *ctx)
{
	struct strbuf b = { 0 };

	for (size_t i = 0; i < t->nmembers; i++) {
		const struct type_member *m = &t->members[i];
		const struct type *inner = m->name ? NULL : type_strip(m->type);

		strbuf_clear(&b);
		if (m->name) {
			type_print(&b, m->type, m->name);
			fn(ctx, m->name, strbuf_str(&b));
		} else if (type_is_sou(inner) && depth < INNER_MAX) {
			each(type_load(inner), depth + 1, fn, ctx);
		}
	}
	strbuf_fini(&b);
}

void answer_each_member(struct lsp *s, const struct answer_at *at, void (*fn)(void *ctx, const char *name, const char *type),
			void *ctx)
{
	struct text before = { at->doc->text, at->word.from };
	struct lsp_doc whole = *at->doc;
	struct strbuf b = { 0 };
	const struct type *t;
	struct verdict c;

	strbuf_add(&b, before.s, before.len);
	strbuf_puts(&b, NO_MEMBER);
	if (!at->doc->too_long && !memchr(before.s, '\0', before.len) && close_brackets(before, &b)) {
		whole.text = (char *)strbuf_str(&b);
		whole.len = b.len;
		check(&c, s, &whole);
		t = type_of(&c);
		if (t)
			each(t, 0, fn, ctx);
		verdict_free(&c);
	}
	strbuf_fini(&b);
}

/*
 * Variables of scripts: by the front end's tree where it got so far, else as they are written.
 */
#include "cmd/lsp/answer.h"

#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "cmd/lsp/check.h"
#include "d/check.h"
#include "stp/ast.h"

/* --- D ------------------------------------------------------------------------------------------------ */

/* What is looked for in a tree of D. */
struct search {
	const char *name;
	enum ident_space space;
	unsigned int line;		/* MEMBER: the cursor's */
	const struct d_ident *found;
	const struct d_node *member;
};

static bool is_variable(const struct d_ident *id)
{
	return id && (id->kind == ID_SCALAR || id->kind == ID_ARRAY || id->kind == ID_AGG || id->kind == ID_PARAM);
}

static void search_node(struct search *s, const struct d_node *n)
{
	if (!n || s->found)
		return;
	if (is_variable(n->ident) && n->ident->space == s->space && !strcmp(n->ident->name, s->name))
		s->found = n->ident;
	if (n->kind == D_MEMBER && n->type && !strcmp(n->name, s->name) && n->pos.line == s->line)
		s->member = n;
	search_node(s, n->lhs);
	search_node(s, n->rhs);
	search_node(s, n->base);
	search_node(s, n->cond);
	for (size_t i = 0; i < n->nargs; i++)
		search_node(s, n->args[i]);
}

static void search_block(struct search *s, const struct d_block *b)
{
	for (size_t i = 0; b && i < b->n; i++) {
		search_node(s, b->stmts[i]->expr);
		search_block(s, b->stmts[i]->yes);
		search_block(s, b->stmts[i]->no);
	}
}

static const struct {
	const char *text;
	enum ident_space space;
} spaces[] = { { "self->", SPACE_SELF }, { "this->", SPACE_THIS }, { "@", SPACE_AGG }, { "", SPACE_GLOBAL } };

enum { NSPACES = sizeof(spaces) / sizeof(spaces[0]) };

/* By what stands before the word. */
static size_t space_of(const struct answer_at *at)
{
	size_t i = 0;

	for (; i + 1 < NSPACES; i++) {
		size_t len = strlen(spaces[i].text);

		if (at->word.from >= len && !memcmp(at->doc->text + at->word.from - len, spaces[i].text, len))
			break;
	}
	return i;
}

/* Only what is checked has types: after mistakes of the grammar there are none. */
static struct search search_d(const struct verdict *c, const struct answer_at *at)
{
	struct search s = { .name = at->name, .space = spaces[space_of(at)].space };

	s.line = 1;
	for (size_t i = 0; i < at->word.from; i++)
		s.line += at->doc->text[i] == '\n';
	for (size_t i = 0; c->d && i < c->d->nitems; i++)
		if (c->d->items[i].kind == D_ITEM_CLAUSE) {
			search_node(&s, c->d->items[i].clause->pred);
			search_block(&s, c->d->items[i].clause->body);
		}
	return s;
}

static void put_keys(struct strbuf *out, const struct d_ident *id)
{
	for (size_t i = 0; id->keyed && i < id->nkeys; i++) {
		strbuf_puts(out, i ? ", " : "[");
		if (id->keys[i])
			type_print(out, id->keys[i], NULL);
	}
	strbuf_puts(out, id->keyed && id->nkeys ? "]" : "");
}

static void d_type(const struct verdict *c, const struct answer_at *at, struct strbuf *out)
{
	struct search s = search_d(c, at);
	const struct d_ident *id = s.found;
	struct strbuf name = { 0 };

	if (id && id->kind == ID_AGG) {
		strbuf_printf(out, "@%s", id->name);
		put_keys(out, id);
		if (id->fn)
			strbuf_printf(out, " = %s()", id->fn->name);
	} else if (id && id->type) {
		strbuf_printf(&name, "%s%s", spaces[space_of(at)].text, id->name);
		put_keys(&name, id);
		type_print(out, id->type, strbuf_str(&name));
	} else if (!id && s.member) {
		type_print(out, s.member->type, s.member->name);
	}
	strbuf_fini(&name);
}

/* --- SystemTap ---------------------------------------------------------------------------------------- */

static bool is_before(const struct verdict *c, struct src_pos pos, struct src_pos cursor, struct src_pos last)
{
	return pos.src == c->src && (pos.line < cursor.line || (pos.line == cursor.line && pos.col <= cursor.col)) &&
	       (!last.src || pos.line > last.line || (pos.line == last.line && pos.col >= last.col));
}

/* The variable of that name in the function or handler that the cursor is in, or a global one. */
static const struct stp_var *stap_variable(const struct verdict *c, const struct answer_at *at)
{
	struct src_pos cursor = { c->src, 1, 1 }, last = { 0 };
	const struct stp_var *v = NULL;

	for (size_t i = 0; i < at->word.from; i++) {
		cursor.line += at->doc->text[i] == '\n';
		cursor.col = at->doc->text[i] == '\n' ? 1 : cursor.col + 1;
	}
	for (const struct stp_func *f = c->stap->funcs; f; f = f->next)
		if (is_before(c, f->pos, cursor, last)) {
			last = f->pos;
			v = stp_var_find(&f->params, at->name);
			v = v ? v : stp_var_find(&f->locals, at->name);
		}
	for (const struct stp_handler *h = c->stap->handlers; h; h = h->next)
		if (is_before(c, h->pos, cursor, last)) {
			last = h->pos;
			v = stp_var_find(&h->locals, at->name);
		}
	return v ? v : stp_var_find(&c->stap->globals, at->name);
}

static void stap_type(const struct verdict *c, const struct answer_at *at, struct strbuf *out)
{
	const struct stp_var *v = stap_variable(c, at);

	if (!v || v->type == STP_UNKNOWN)
		return;
	strbuf_printf(out, "%s%s", v->is_global ? "global " : "", v->name);
	for (int i = 0; i < v->arity && v->index_types; i++)
		strbuf_printf(out, "%s%s", i ? ", " : "[", stp_type_text(v->index_types[i]));
	strbuf_printf(out, "%s:%s", v->arity > 0 && v->index_types ? "]" : "", stp_type_text(v->type));
}

/* --- both --------------------------------------------------------------------------------------------- */

void answer_variable_type(const struct verdict *c, const struct answer_at *at, struct strbuf *out)
{
	if (at->doc->language == DTAP_STAP && c->stap && at->before != '$' && at->before != '@')
		stap_type(c, at, out);
	else if (at->doc->language == DTAP_D && c->d)
		d_type(c, at, out);
}

struct text_span answer_variable(const struct verdict *c, const struct answer_at *at)
{
	struct src_pos pos = { 0 };
	struct text_span none = { 0 };

	if (at->doc->language == DTAP_STAP && c->stap && at->before != '$' && at->before != '@') {
		const struct stp_var *v = stap_variable(c, at);

		pos = v ? v->pos : pos;
	} else if (at->doc->language == DTAP_D && c->d) {
		struct search s = search_d(c, at);

		pos = s.found ? s.found->pos : pos;
	}
	if (pos.src != c->src || !pos.line)
		return none;
	return text_token(lsp_text(at->doc), text_offset_of(lsp_text(at->doc), pos.line, pos.col));
}

/* Is something assigned to the word that ends at @off: "=", "+=", "++", "<<<", or an index? */
static bool is_assigned(struct text t, size_t off)
{
	static const char *const marks[] = { "++", "--", "<<<", "+=", "-=", "*=", "/=", "|=", "&=", ".=", "[" };

	while (off < t.len && (t.s[off] == ' ' || t.s[off] == '\t'))
		off++;
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (t.len - off >= strlen(marks[i]) && !memcmp(t.s + off, marks[i], strlen(marks[i])))
			return true;
	return off < t.len && t.s[off] == '=' && t.s[off + 1] != '=';
}

void answer_each_variable(const struct answer_at *at, const char *prefix, void (*fn)(void *ctx, const char *name), void *ctx)
{
	struct text t = lsp_text(at->doc);
	size_t len = strlen(prefix);
	struct text_span w;
	char name[128];

	for (size_t i = 0; i < t.len; i = w.to > i ? w.to : i + 1) {
		w = (struct text_span){ i, i };
		if (!text_is_word(t.s[i]))
			continue;
		w = text_word(t, i);
		if (w.from == at->word.from || w.to - w.from >= sizeof(name) || (t.s[w.from] >= '0' && t.s[w.from] <= '9'))
			continue;
		if (len ? w.from < len || memcmp(t.s + w.from - len, prefix, len) :
			  (w.from && strchr("@$.>`", t.s[w.from - 1])) || !is_assigned(t, w.to))
			continue;
		memcpy(name, t.s + w.from, w.to - w.from);
		name[w.to - w.from] = '\0';
		fn(ctx, name);
	}
}

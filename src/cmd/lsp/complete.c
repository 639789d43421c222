/*
 * Completion: what may stand at the cursor, by the text before it.  The document need not be whole, so nothing of it
 * is compiled.
 */
#include "cmd/lsp/answer.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/bytemap.h"
#include "base/strbuf.h"
#include "cmd/lsp/check.h"
#include "cmd/lsp/words.h"

/* LSP: CompletionItemKind. */
enum item_kind { ITEM_FUNCTION = 3, ITEM_FIELD = 5, ITEM_VARIABLE = 6, ITEM_PROPERTY = 10, ITEM_KEYWORD = 14, ITEM_STRUCT = 22, ITEM_EVENT = 23,
		 ITEM_OPERATOR = 24 };

/* The items so far, all for the same bytes of the document. */
struct list {
	json_t *items, *range;
	const char *typed;	/* those bytes, up to the cursor */
	struct bytemap seen;
};

static void add(struct list *l, const char *label, enum item_kind kind, const char *detail, const char *doc)
{
	json_t *item;

	if (strncmp(label, l->typed, strlen(l->typed)) || bytemap_get(&l->seen, label, strlen(label)))
		return;
	bytemap_set(&l->seen, label, strlen(label), l);
	item = json_pack("{s:o,s:i,s:{s:O,s:o}}", "label", lsp_string(label), "kind", (int)kind, "textEdit", "range", l->range,
			 "newText", lsp_string(label));
	if (detail && *detail)
		json_object_set_new(item, "detail", lsp_string(detail));
	if (doc && *doc)
		json_object_set_new(item, "documentation", lsp_string(doc));
	json_array_append_new(l->items, item);
}

static void add_variable(void *ctx, const char *name)
{
	add(ctx, name, ITEM_VARIABLE, NULL, "A variable of the script.");
}

static void add_own_context(void *ctx, const char *name)
{
	add(ctx, name, ITEM_VARIABLE, NULL, "A context variable that the script has elsewhere, too.");
}

static void add_member(void *ctx, const char *name, const char *type)
{
	add(ctx, name, ITEM_FIELD, type, NULL);
}

static void add_probe(void *ctx, const char *desc, const char *args, const char *doc)
{
	add(ctx, desc, ITEM_EVENT, args, doc);
}

/* Is a row of words.def's what may stand here? */
static bool fits(const struct word_row *w, const struct answer_at *at)
{
	static const char *const declaring[] = { "probe", "function", "global", "private" };
	bool declares = false;

	for (size_t i = 0; i < sizeof(declaring) / sizeof(declaring[0]) && at->doc->language == DTAP_STAP; i++)
		declares = declares || !strcmp(w->name, declaring[i]);
	switch (at->where) {
	case TEXT_PROBE:
		return w->kind == WORD_POINT;
	case TEXT_PRAGMA:
		return w->kind == WORD_OPTION;
	case TEXT_TOP:
		return declares;
	case TEXT_CODE:
		return at->before == '@' ? w->kind == WORD_OPERATOR :
					   !declares && w->kind <= WORD_KEYWORD;
	case TEXT_NOTHING:
		break;
	}
	return false;
}

static void add_words(struct list *l, const struct answer_at *at)
{
	static const enum item_kind kinds[] = {
		[WORD_VARIABLE] = ITEM_VARIABLE, [WORD_FUNCTION] = ITEM_FUNCTION, [WORD_KEYWORD] = ITEM_KEYWORD,
		[WORD_POINT] = ITEM_EVENT, [WORD_OPTION] = ITEM_PROPERTY, [WORD_OPERATOR] = ITEM_OPERATOR,
	};
	struct strbuf b = { 0 };
	struct word_row w;

	for (size_t i = 0; word_row(at->doc->language, i, &w); i++) {
		if (w.refused || !fits(&w, at))
			continue;
		strbuf_clear(&b);
		word_signature(at->doc->language, &w, &b);
		add(l, w.name, kinds[w.kind], strbuf_str(&b), w.doc);
	}
	strbuf_fini(&b);
}

static void add_index(struct list *l, const struct index *x, const struct answer_at *at)
{
	static const enum item_kind kinds[] = {
		[INDEX_FUNCTION] = ITEM_FUNCTION, [INDEX_ALIAS] = ITEM_EVENT, [INDEX_MACRO] = ITEM_OPERATOR,
		[INDEX_GLOBAL] = ITEM_VARIABLE, [INDEX_INLINE] = ITEM_VARIABLE, [INDEX_TYPE] = ITEM_STRUCT,
		[INDEX_TRANSLATOR] = ITEM_STRUCT,
	};

	for (size_t i = 0; i < x->n; i++) {
		const struct index_item *it = &x->items[i];
		bool wanted = at->where == TEXT_PROBE ? it->kind == INDEX_ALIAS :
			      at->where == TEXT_CODE && it->kind != INDEX_ALIAS && (it->kind == INDEX_MACRO) == (at->before == '@');

		/* What is private, or begins with _, is the library's own. */
		if (wanted && !(it->path && (it->is_private || *it->name == '_')))
			add(l, it->name, kinds[it->kind], it->line, it->doc);
	}
}

/* Does @text stand before the word? */
static bool is_after(const struct answer_at *at, const char *text)
{
	size_t len = strlen(text);

	return at->word.from >= len && !memcmp(at->doc->text + at->word.from - len, text, len);
}

/* The text from the last declaration before @off that begins a line up to @off. */
static struct text_span last_declaration(struct text t, size_t off)
{
	static const char *const words[] = { "probe", "function" };
	struct text_span found = { 0, 0 };

	for (size_t i = 0; i < off; i++) {
		if (i && t.s[i - 1] != '\n')
			continue;
		while (i < off && (t.s[i] == ' ' || t.s[i] == '\t'))
			i++;
		for (size_t k = 0; k < sizeof(words) / sizeof(words[0]); k++) {
			size_t len = strlen(words[k]);

			if (t.len - i > len && !memcmp(t.s + i, words[k], len) && !text_is_word(t.s[i + len]))
				found = (struct text_span){ i, off };
		}
	}
	return found;
}

/* What is written behind "$", of which the second one of "$$" is a part of the name. */
static void add_context(struct list *l, const struct answer_at *at)
{
	static const struct {
		enum dtap_language language;
		const char *point, *name, *doc;
	} rows[] = {
#define CONTEXT(language, point, name, doc) { DTAP_##language, point, name, doc },
#include "cmd/lsp/context.def"
#undef CONTEXT
	};
	struct text t = lsp_text(at->doc);
	bool twice = is_after(at, "$$");
	struct text_span d = last_declaration(t, at->word.from);
	bool anywhere = at->doc->language == DTAP_D || t.s[d.from] == 'f';

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool has = *rows[i].name == '$';

		if (rows[i].language == at->doc->language && has == twice &&
		    (anywhere || memmem(t.s + d.from, d.to - d.from, rows[i].point, strlen(rows[i].point))))
			add(l, rows[i].name + has, ITEM_VARIABLE, NULL, rows[i].doc);
	}
	if (!twice)
		answer_each_variable(at, "$", add_own_context, l);
}

static void add_code(struct list *l, struct lsp *s, const struct answer_at *at, const struct index *own)
{
	bool d = at->doc->language == DTAP_D;

	if (d && (is_after(at, "self->") || is_after(at, "this->") || at->before == '@')) {
		answer_each_variable(at, at->before == '@' ? "@" : is_after(at, "self->") ? "self->" : "this->", add_variable, l);
		return;
	}
	if (at->before == '$')
		add_context(l, at);
	else if (d && (is_after(at, "->") || at->before == '.'))
		answer_each_member(s, at, add_member, l);
	if (at->before == '$' || is_after(at, "->") || (d && at->before == '.'))
		return;
	if (at->before != '@')
		answer_each_variable(at, "", add_variable, l);
	add_index(l, own, at);
	add_words(l, at);
	add_index(l, lsp_library(s, at->doc->language), at);
}

json_t *lsp_completion(struct lsp *s, const struct lsp_doc *doc, size_t off)
{
	struct list l = { .items = json_array() };
	struct text_span piece = { off, off };
	struct index own = { .arena = arena_new() };
	struct answer_at at;
	char *typed;

	answer_at(&at, doc, off);
	if (text_where(lsp_text(doc), doc->language, off, &piece) != TEXT_PROBE)
		piece = (struct text_span){ at.word.from, off };
	typed = arena_strndup(own.arena, doc->text + piece.from, piece.to - piece.from);
	l.typed = typed;
	l.range = answer_range(lsp_text(doc), piece);
	index_text(&own, doc->language, NULL, lsp_text(doc));
	if (at.where == TEXT_CODE) {
		add_code(&l, s, &at, &own);
	} else if (at.where != TEXT_NOTHING) {
		add_index(&l, &own, &at);
		add_words(&l, &at);
		add_index(&l, lsp_library(s, doc->language), &at);
	}
	if (at.where == TEXT_PROBE && doc->language == DTAP_D)
		check_each_probe(add_probe, &l);
	bytemap_fini(&l.seen);
	json_decref(l.range);
	arena_free(own.arena);
	free(at.name);
	return json_pack("{s:b,s:o}", "isIncomplete", 0, "items", l.items);
}

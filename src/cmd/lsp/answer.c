/*
 * Diagnostics, hover and definition.  Completion is in complete.c.
 */
#include "cmd/lsp/answer.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/oom.h"
#include "base/strbuf.h"
#include "cmd/lsp/check.h"
#include "cmd/lsp/words.h"

/* LSP: DiagnosticSeverity. */
enum severity { SEVERITY_ERROR = 1, SEVERITY_WARNING, SEVERITY_INFORMATION };

json_t *lsp_string(const char *s)
{
	json_t *j = json_string(s);
	char *plain;

	if (j)
		return j;
	plain = strdup(s);
	if (!plain)
		oom();
	for (char *p = plain; *p; p++)
		*p = (unsigned char)*p < 0x80 ? *p : '?';
	j = json_string(plain);
	free(plain);
	return j;
}

static json_t *position(struct text t, size_t off)
{
	struct text_pos p = text_pos(t, off);

	return json_pack("{s:I,s:I}", "line", (json_int_t)p.line, "character", (json_int_t)p.unit);
}

json_t *answer_range(struct text t, struct text_span s)
{
	return json_pack("{s:o,s:o}", "start", position(t, s.from), "end", position(t, s.to));
}

/* A word of points and descriptions: a.b.c in SystemTap, everything between blanks and commas in D. */
static struct text_span probe_word(const struct lsp_doc *doc, size_t off)
{
	const char *more = doc->language == DTAP_STAP ? "." : ":$*?-[]!`.";
	struct text_span w = { off, off };

	while (w.from && (text_is_word(doc->text[w.from - 1]) || (doc->text[w.from - 1] && strchr(more, doc->text[w.from - 1]))))
		w.from--;
	while (w.to < doc->len && (text_is_word(doc->text[w.to]) || (doc->text[w.to] && strchr(more, doc->text[w.to]))))
		w.to++;
	return w;
}

void answer_at(struct answer_at *at, const struct lsp_doc *doc, size_t off)
{
	struct text_span piece;

	*at = (struct answer_at){ .doc = doc, .off = off };
	at->where = text_where(lsp_text(doc), doc->language, off, &piece);
	at->word = at->where == TEXT_PROBE ? probe_word(doc, off) : text_word(lsp_text(doc), off);
	at->name = strndup(doc->text + at->word.from, at->word.to - at->word.from);
	if (!at->name)
		oom();
	at->before = at->word.from ? doc->text[at->word.from - 1] : '\0';
}

/* --- diagnostics -------------------------------------------------------------------------------------- */

static json_t *diagnostic(struct text t, struct text_span at, enum severity severity, const char *tag, const char *message)
{
	json_t *d = json_pack("{s:o,s:i,s:s,s:o}", "range", answer_range(t, at), "severity", (int)severity, "source", "dtap",
			      "message", lsp_string(message));

	if (d && tag)
		json_object_set_new(d, "code", lsp_string(tag));
	return d;
}

static json_t *message_of(const struct verdict *c, struct text t, const struct diag_msg *m, enum check_weight weight)
{
	struct text_span at = { 0, 0 };
	struct strbuf b = { 0 };
	json_t *d;

	if (m->pos.src == c->src && m->pos.line)
		at = text_token(t, text_offset_of(t, m->pos.line, m->pos.col));
	else if (m->pos.src && m->pos.line)	/* of a library, or a text that #line names */
		strbuf_printf(&b, "%s:%u:%u: ", m->pos.src->name, m->pos.line, m->pos.col);
	strbuf_puts(&b, m->text);
	if (m->hint)
		strbuf_printf(&b, "\n%s", m->hint);
	d = diagnostic(t, at, weight == CHECK_ERROR ? SEVERITY_ERROR : SEVERITY_WARNING, m->tag, strbuf_str(&b));
	strbuf_fini(&b);
	return d;
}

json_t *lsp_diagnostics(struct lsp *s, const struct lsp_doc *doc)
{
	json_t *list = json_array();
	struct text t = lsp_text(doc);
	struct strbuf b = { 0 };
	struct verdict c;

	check(&c, s, doc);
	for (size_t i = 0; i < c.diag.n; i++) {
		enum check_weight weight = check_weight(&c, s, &c.diag.msgs[i]);

		if (weight != CHECK_NONE)
			json_array_append_new(list, message_of(&c, t, &c.diag.msgs[i], weight));
	}
	if (c.unchecked)
		strbuf_printf(&b, "This script is not checked: %s.", c.unchecked);
	else if (c.diag.errors > c.diag.max)
		strbuf_printf(&b, "There are %u more errors.", c.diag.errors - c.diag.max);
	if (b.len)
		json_array_append_new(list, diagnostic(t, (struct text_span){ 0, 0 }, SEVERITY_INFORMATION, NULL, strbuf_str(&b)));
	strbuf_fini(&b);
	verdict_free(&c);
	return json_pack("{s:s,s:I,s:o}", "uri", doc->uri, "version", doc->version, "diagnostics", list);
}

/* --- hover -------------------------------------------------------------------------------------------- */

/* What is shown: how something is written, and what it is. */
struct shown {
	struct strbuf code, doc;
};

static void show(struct shown *to, const char *code, const char *doc)
{
	if (to->code.len && !strcmp(strbuf_str(&to->code), code))
		return;
	strbuf_printf(&to->code, "%s%s", to->code.len ? "\n" : "", code);
	if (!to->doc.len)
		strbuf_puts(&to->doc, doc);
}

static bool is_of(const struct answer_at *at, enum index_kind kind)
{
	return at->where == TEXT_PROBE ? kind == INDEX_ALIAS || at->doc->language == DTAP_D :
					 kind != INDEX_ALIAS && (kind == INDEX_MACRO) == (at->before == '@');
}

static void show_items(struct shown *to, const struct index *x, const struct answer_at *at)
{
	const struct index_item *it;
	size_t pos = 0;

	while ((it = index_find(x, at->name, &pos)))
		if (is_of(at, it->kind))
			show(to, it->line, it->doc);
}

/* A point of points.def by what its first words are. */
static bool begins_point(const char *pattern, const char *name)
{
	size_t len = strlen(name);

	return !strncmp(pattern, name, len) && strchr(".(", pattern[len]);
}

static void show_words(struct shown *to, const struct answer_at *at)
{
	struct strbuf b = { 0 };
	struct word_row w;

	for (size_t i = 0; word_row(at->doc->language, i, &w); i++) {
		bool point = w.kind == WORD_POINT;

		if (at->doc->language == DTAP_STAP && point != (at->where == TEXT_PROBE))
			continue;
		if ((w.kind == WORD_OPTION) != (at->where == TEXT_PRAGMA) || (w.kind == WORD_OPERATOR) != (at->before == '@'))
			continue;
		if (strcmp(w.name, at->name) && !(point && !to->code.len && begins_point(w.name, at->name)))
			continue;
		strbuf_clear(&b);
		word_signature(at->doc->language, &w, &b);
		show(to, strbuf_str(&b), w.doc);
	}
	strbuf_fini(&b);
}

/* The description that @at is on, by its provider without a process, and its name. */
struct described {
	struct shown *to;
	const char *written;
};

static void show_probe(void *ctx, const char *desc, const char *args, const char *doc)
{
	struct described *d = ctx;
	const char *name = strrchr(desc, ':'), *wanted = strrchr(d->written, ':');
	size_t prov = strspn(desc, "abcdefghijklmnopqrstuvwxyz");
	struct strbuf b = { 0 };

	if (d->to->code.len || strcmp(name ? name + 1 : desc, wanted ? wanted + 1 : d->written))
		return;
	if (name && wanted && (strncmp(desc, d->written, prov) || strspn(d->written, "abcdefghijklmnopqrstuvwxyz") != prov))
		return;
	strbuf_printf(&b, "%s(%s)", desc, args);
	show(d->to, strbuf_str(&b), doc);
	strbuf_fini(&b);
}

static void show_all(struct shown *to, struct lsp *s, const struct answer_at *at)
{
	struct index own = { .arena = arena_new() };
	struct described d = { to, at->name };
	struct verdict c;

	if (at->where != TEXT_PROBE && at->where != TEXT_PRAGMA) {
		check(&c, s, at->doc);
		answer_variable_type(&c, at, &to->code);
		verdict_free(&c);
	}
	if (!to->code.len) {
		index_text(&own, at->doc->language, NULL, lsp_text(at->doc));
		show_items(to, &own, at);
	}
	if (!to->code.len)
		show_items(to, lsp_library(s, at->doc->language), at);
	if (!to->code.len && at->where == TEXT_PROBE && at->doc->language == DTAP_D)
		check_each_probe(show_probe, &d);
	if (!to->code.len)
		show_words(to, at);
	arena_free(own.arena);
}

json_t *lsp_hover(struct lsp *s, const struct lsp_doc *doc, size_t off)
{
	struct strbuf b = { 0 };
	struct shown to = { 0 };
	struct answer_at at;
	json_t *ret;

	answer_at(&at, doc, off);
	if (*at.name && at.where != TEXT_NOTHING)
		show_all(&to, s, &at);
	if (s->markdown)
		strbuf_printf(&b, "```%s\n%s\n```\n%s", doc->language == DTAP_STAP ? "stap" : "d", strbuf_str(&to.code),
			      strbuf_str(&to.doc));
	else
		strbuf_printf(&b, "%s\n%s", strbuf_str(&to.code), strbuf_str(&to.doc));
	ret = to.code.len ? json_pack("{s:{s:s,s:o},s:o}", "contents", "kind", s->markdown ? "markdown" : "plaintext", "value",
				      lsp_string(strbuf_str(&b)), "range", answer_range(lsp_text(doc), at.word)) :
			    json_null();
	strbuf_fini(&to.code);
	strbuf_fini(&to.doc);
	strbuf_fini(&b);
	free(at.name);
	return ret;
}

/* --- definition --------------------------------------------------------------------------------------- */

/* A path as a URI: RFC 3986, "Reserved Characters". */
static void put_uri(struct strbuf *out, const char *path)
{
	strbuf_puts(out, "file://");
	for (; *path; path++) {
		if (text_is_word(*path) || strchr("/-.~", *path))
			strbuf_putc(out, *path);
		else
			strbuf_printf(out, "%%%02X", (unsigned int)(unsigned char)*path);
	}
}

static void add_location(json_t *list, const char *uri, struct text t, struct text_span at)
{
	json_array_append_new(list, json_pack("{s:s,s:o}", "uri", uri, "range", answer_range(t, at)));
}

static void add_items(json_t *list, const struct index *x, const struct answer_at *at)
{
	const struct index_item *it;
	struct strbuf uri = { 0 };
	size_t pos = 0;

	while ((it = index_find(x, at->name, &pos))) {
		if (!is_of(at, it->kind))
			continue;
		strbuf_clear(&uri);
		if (it->path)
			put_uri(&uri, it->path);
		add_location(list, it->path ? strbuf_str(&uri) : at->doc->uri, it->text, it->at);
	}
	strbuf_fini(&uri);
}

json_t *lsp_definition(struct lsp *s, const struct lsp_doc *doc, size_t off)
{
	struct index own = { .arena = arena_new() };
	struct text_span first;
	json_t *list = json_array();
	struct answer_at at;
	struct verdict c;

	answer_at(&at, doc, off);
	if (*at.name && at.where != TEXT_NOTHING) {
		index_text(&own, doc->language, NULL, lsp_text(doc));
		add_items(list, &own, &at);
		if (!json_array_size(list) && at.where != TEXT_PROBE) {
			check(&c, s, doc);
			first = answer_variable(&c, &at);
			if (first.to > first.from)
				add_location(list, doc->uri, lsp_text(doc), first);
			verdict_free(&c);
		}
		if (!json_array_size(list))
			add_items(list, lsp_library(s, doc->language), &at);
	}
	arena_free(own.arena);
	free(at.name);
	return list;
}

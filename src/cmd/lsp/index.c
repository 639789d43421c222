#include "cmd/lsp/index.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/ends.h"
#include "lang/source.h"

enum { MOST_FILES = 4096, LONGEST_LINE = 400, LONGEST_DOC = 2000 };

/* --- comments ----------------------------------------------------------------------------------------- */

/* Append the text of a comment between @from and @to to @out: without stars, with blanks for newlines. */
static const char *comment_text(struct arena *a, struct text t, size_t from, size_t to)
{
	char *out, *p;
	bool blank = true;	/* what was written last, and at the start */

	if (to - from > LONGEST_DOC)
		to = from + LONGEST_DOC;
	out = p = arena_alloc(a, to - from + 1);
	for (size_t i = from; i < to; i++) {
		char c = t.s[i];

		if (c == '\n' || c == '\t' || c == '\r' || c == '\0')
			c = ' ';
		/* The star that begins a line. */
		if (c == '*' && i > from && blank && (i + 1 == to || strchr(" \t\n*", t.s[i + 1])))
			continue;
		if (c == ' ' && blank)
			continue;
		blank = c == ' ';
		*p++ = c;
	}
	while (p > out && p[-1] == ' ')
		p--;
	*p = '\0';
	return out;
}

/* The comment that ends on the line before @off, where a line begins; "" if there is none. */
static const char *comment_before(struct arena *a, struct text t, size_t off)
{
	size_t end = off, from;

	if (!end)
		return "";
	end--;	/* the newline */
	while (end && (t.s[end - 1] == ' ' || t.s[end - 1] == '\t' || t.s[end - 1] == '\r'))
		end--;
	if (end < 4 || t.s[end - 1] != '/' || t.s[end - 2] != '*')
		return "";
	for (from = end - 3; from && !(t.s[from] == '*' && t.s[from - 1] == '/'); from--)
		;
	if (!from || (from > 1 && t.s[from - 2] != '\n'))	/* a comment behind other code is about that */
		return "";
	if (from + 4 < end && t.s[from + 2] == '-' && t.s[from + 3] == '-')	/* a heading */
		return "";
	return comment_text(a, t, from + 1, end - 2);
}

/* The first sentence of the comment that begins the file. */
static const char *first_sentence(struct arena *a, struct text t)
{
	const char *end, *text, *stop;

	if (t.len < 4 || memcmp(t.s, "/*", 2))
		return "";
	end = memmem(t.s + 2, t.len - 2, "*/", 2);
	if (!end)
		return "";
	text = comment_text(a, t, 2, (size_t)(end - t.s));
	stop = strstr(text, ". ");
	return stop ? arena_strndup(a, text, (size_t)(stop - text) + 1) : text;
}

/* --- declarations ------------------------------------------------------------------------------------- */

/* The state while the declaration at the start of a line is read. */
struct reader {
	struct index *x;
	struct text t;
	const char *path, *about;	/* about: the file */
	size_t line, at;		/* where the line begins; what is read next */
	bool is_private;
};

static void blanks(struct reader *r)
{
	while (r->at < r->t.len && (r->t.s[r->at] == ' ' || r->t.s[r->at] == '\t'))
		r->at++;
}

/* Read the word @w and the blanks behind it. */
static bool word(struct reader *r, const char *w)
{
	size_t len = strlen(w);

	if (r->t.len - r->at < len || memcmp(r->t.s + r->at, w, len) ||
	    (r->at + len < r->t.len && text_is_word(r->t.s[r->at + len])))
		return false;
	r->at += len;
	blanks(r);
	return true;
}

/* The declaration up to its body or value as one line. */
static const char *whole_line(struct reader *r)
{
	char *out = arena_alloc(r->x->arena, LONGEST_LINE + 4), *p = out;
	size_t depth = 0;

	for (size_t i = r->line; i < r->t.len && p < out + LONGEST_LINE; i++) {
		unsigned char c = (unsigned char)r->t.s[i];

		depth += c == '(' || c == '[';
		depth -= (c == ')' || c == ']') && depth;
		if (c == '{' || (c == '%' && i + 1 < r->t.len && strchr("({", r->t.s[i + 1])) || (!depth && (c == ';' || c == '\n')) || !c)
			break;
		if (c == '/' && i + 1 < r->t.len && (r->t.s[i + 1] == '*' || r->t.s[i + 1] == '/'))
			break;
		if (c == '\n' || c == '\t' || c == '\r')
			c = ' ';
		if (c == ' ' && p > out && p[-1] == ' ')
			continue;
		*p++ = (char)c;
	}
	while (p > out && p[-1] == ' ')
		p--;
	*p = '\0';
	return out;
}

/* Add the item with the name between @from and @to. */
static void add(struct reader *r, enum index_kind kind, size_t from, size_t to)
{
	struct index *x = r->x;
	const char *doc;

	if (to <= from)
		return;
	doc = comment_before(x->arena, r->t, r->line);
	x->items = arena_grow(x->arena, x->items, &x->cap, x->n, sizeof(*x->items));
	x->items[x->n++] = (struct index_item){
		.kind = kind, .name = arena_strndup(x->arena, r->t.s + from, to - from), .path = r->path, .text = r->t,
		.at = { from, to }, .is_private = r->is_private, .line = whole_line(r), .doc = *doc ? doc : r->about,
	};
}

/* Add the word that comes next; false: there is none. */
static bool add_word(struct reader *r, enum index_kind kind)
{
	struct text_span w = text_word(r->t, r->at);

	if (w.from != r->at || w.to == w.from)
		return false;
	add(r, kind, w.from, w.to);
	r->at = w.to;
	return true;
}

/* a.b.c = or +=: an alias. */
static void read_alias(struct reader *r)
{
	size_t from = r->at, to = from;

	while (to < r->t.len && (text_is_word(r->t.s[to]) || r->t.s[to] == '.'))
		to++;
	r->at = to;
	blanks(r);
	r->at += r->at < r->t.len && r->t.s[r->at] == '+';
	if (r->at < r->t.len && r->t.s[r->at] == '=')
		add(r, INDEX_ALIAS, from, to);
}

/* a, b[10], c = 5 */
static void read_globals(struct reader *r)
{
	while (add_word(r, INDEX_GLOBAL)) {
		while (r->at < r->t.len && !strchr(",\n;", r->t.s[r->at]))
			r->at++;
		if (r->at == r->t.len || r->t.s[r->at] != ',')
			return;
		r->at++;
		blanks(r);
	}
}

static void read_stap(struct reader *r)
{
	r->is_private = word(r, "private");
	if (word(r, "function"))
		add_word(r, INDEX_FUNCTION);
	else if (word(r, "probe"))
		read_alias(r);
	else if (word(r, "global"))
		read_globals(r);
	else if (word(r, "@define"))
		add_word(r, INDEX_MACRO);
	else if (r->is_private)
		read_globals(r);
}

/* The last word before one of the marks @ends, from here on: the declared name. */
static void last_word(struct reader *r, enum index_kind kind, const char *ends)
{
	struct text_span w = { 0, 0 };

	for (; r->at < r->t.len && r->t.s[r->at] && !strchr(ends, r->t.s[r->at]); r->at++)
		if (text_is_word(r->t.s[r->at])) {
			w = text_word(r->t, r->at);
			r->at = w.to - 1;
		}
	if (r->at < r->t.len && r->t.s[r->at])
		add(r, kind, w.from, w.to);
}

/* The name of a typedef stands at its end, maybe behind the members of a structure. */
static void read_typedef(struct reader *r)
{
	size_t tag = r->at, depth = 0;

	while (r->at < r->t.len && r->t.s[r->at] && (depth || r->t.s[r->at] != ';')) {
		depth += r->t.s[r->at] == '{';
		depth -= r->t.s[r->at] == '}' && depth;
		if (r->t.s[r->at] == '}' && !depth)
			tag = r->at;
		r->at++;
	}
	r->at = tag;
	last_word(r, INDEX_TYPE, ";[(");
}

static void read_d(struct reader *r)
{
	size_t from;

	if (word(r, "inline")) {
		last_word(r, INDEX_INLINE, "=[;");
	} else if (word(r, "translator")) {
		last_word(r, INDEX_TRANSLATOR, "<{;");
	} else if (word(r, "typedef")) {
		from = r->at;
		if (word(r, "struct") || word(r, "union") || word(r, "enum"))
			add_word(r, INDEX_TYPE);
		r->at = from;
		read_typedef(r);
	} else if (word(r, "struct") || word(r, "union") || word(r, "enum")) {
		from = r->at;
		r->at = text_word(r->t, from).to;
		blanks(r);
		if (r->at < r->t.len && (r->t.s[r->at] == '{' || r->t.s[r->at] == '\n')) {
			r->at = from;
			add_word(r, INDEX_TYPE);
		}
	}
}

void index_text(struct index *x, enum dtap_language language, const char *path, struct text t)
{
	const char *about = first_sentence(x->arena, t), *nl;

	for (size_t line = 0; line < t.len; line = (size_t)(nl - t.s) + 1) {
		struct reader r = { .x = x, .t = t, .path = path, .about = path ? about : "", .line = line, .at = line };

		if (language == DTAP_STAP)
			read_stap(&r);
		else
			read_d(&r);
		nl = memchr(t.s + line, '\n', t.len - line);
		if (!nl)
			return;
	}
}

/* --- folders ------------------------------------------------------------------------------------------ */

static void one_dir(struct index *x, enum dtap_language language, const char *dir)
{
	struct dirent **entries;
	int n = scandir(dir, &entries, NULL, alphasort);

	for (int i = 0; i < n; i++) {
		const char *name = entries[i]->d_name;
		bool wanted = language == DTAP_STAP ? ends_with(name, ".stp") || ends_with(name, ".stpm") : ends_with(name, ".d");
		char *path = wanted ? arena_printf(x->arena, "%s/%s", dir, name) : NULL;
		struct source *src;

		if (wanted && x->files < MOST_FILES && !source_read(x->arena, path, &src)) {
			index_text(x, language, path, (struct text){ src->text, src->len });
			x->files++;
		}
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
}

void index_dir(struct index *x, enum dtap_language language, const char *dir)
{
	one_dir(x, language, dir);
	if (language != DTAP_STAP)
		return;
	one_dir(x, language, arena_printf(x->arena, "%s/%s", dir, x->arch));
	one_dir(x, language, arena_printf(x->arena, "%s/linux", dir));
	one_dir(x, language, arena_printf(x->arena, "%s/linux/%s", dir, x->arch));
}

const struct index_item *index_find(const struct index *x, const char *name, size_t *pos)
{
	while (*pos < x->n) {
		const struct index_item *it = &x->items[(*pos)++];

		if (!strcmp(it->name, name))
			return it;
	}
	return NULL;
}

#include "cmd/ready/head.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"

enum { TEXT_MAX = 1 << 20, WORDS_MAX = 5 };

/* The state while a file's head is read. */
struct reading {
	struct arena *a;
	struct ready_head *h;
	const char *path;
	struct strbuf about;
	unsigned int line;
	struct strbuf *err;
};

static int __attribute__((format(printf, 2, 3))) mistake(struct reading *r, const char *fmt, ...)
{
	va_list ap;

	strbuf_printf(r->err, "%s:%u: ", r->path, r->line);
	va_start(ap, fmt);
	strbuf_vprintf(r->err, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* --- directives ---------------------------------------------------------------------------------------- */

/* The index of @word in @words, or @n after a message. */
static size_t one_of(struct reading *r, const char *what, const char *word, const char *const *words, size_t n)
{
	size_t i = 0;

	while (i < n && strcmp(word, words[i]))
		i++;
	if (i < n)
		return i;
	mistake(r, "there is no %s '%s', but", what, word);
	for (i = 0; i < n; i++)
		strbuf_printf(r->err, "%s %s", i ? "," : "", words[i]);
	return n;
}

static int kind_of(struct reading *r, const char *word, enum ready_kind *kind)
{
	static const char *const names[] = {
#define READY_KIND(NAME, name, what) name,
#include "cmd/ready/kinds.def"
#undef READY_KIND
	};
	size_t i = one_of(r, "kind", word, names, READY_KINDS);

	*kind = (enum ready_kind)i;
	return i < READY_KINDS ? 0 : -EINVAL;
}

static int add_column(struct reading *r, char **words, bool is_key, const char *of, const char *by)
{
	struct ready_head *h = r->h;
	struct ready_column *c;

	if (h->ncolumns == READY_COLUMNS)
		return mistake(r, "there are more than %d columns", READY_COLUMNS);
	h->columns = arena_grow(r->a, h->columns, &h->columns_cap, h->ncolumns, sizeof(*h->columns));
	c = &h->columns[h->ncolumns++];
	*c = (struct ready_column){ .name = words[0], .title = words[1], .is_key = is_key, .of = of, .by = by };
	h->nkeys += is_key;
	return kind_of(r, words[2], &c->kind);
}

static int set_summary(struct reading *r, char **words)
{
	r->h->summary = words[0];
	return 0;
}

static int set_output(struct reading *r, char **words)
{
	static const char *const names[] = { "table", "events", "distribution", "tree", "functions" };
	size_t i = one_of(r, "output", words[0], names, READY_FORMS);

	r->h->form = (enum ready_form)i;
	return i < READY_FORMS ? 0 : -EINVAL;
}

static int add_key(struct reading *r, char **words)
{
	return add_column(r, words, true, NULL, NULL);
}

static int add_value(struct reading *r, char **words)
{
	return add_column(r, words, false, words[0], NULL);
}

static int add_level(struct reading *r, char **words)
{
	int e = add_column(r, words, false, words[0], NULL);

	if (!e)
		r->h->columns[r->h->ncolumns - 1].is_level = true;
	return e;
}

static int add_ratio(struct reading *r, char **words)
{
	return add_column(r, words, false, words[3], words[4]);
}

static int add_rate(struct reading *r, char **words)
{
	int e = add_column(r, words, false, words[3], NULL);

	if (!e)
		r->h->columns[r->h->ncolumns - 1].per_second = true;
	return e;
}

static int add_field(struct reading *r, char **words)
{
	return add_column(r, words, false, NULL, NULL);
}

static int set_sort(struct reading *r, char **words)
{
	r->h->sort_name = words[0];
	return 0;
}

static int set_live(struct reading *r, char **words)
{
	double s = strtod(words[0], NULL);

	if (!(s >= 0.01 && s < 1e6))
		return mistake(r, "@live: takes a number of seconds");
	r->h->live_ns = (uint64_t)(s * 1e9);
	return 0;
}

static int set_functions(struct reading *r, char **words)
{
	static const char *const names[] = { "none", "optional", "required" };
	size_t i = one_of(r, "way with functions,", words[0], names, 3);

	r->h->functions = (enum ready_functions)i;
	return i < 3 ? 0 : -EINVAL;
}

static int set_otherwise(struct reading *r, char **words)
{
	r->h->otherwise = words[0];
	return 0;
}

static int set_note(struct reading *r, char **words)
{
	r->h->note = words[0];
	return 0;
}

static int set_reads(struct reading *r, char **words)
{
	r->h->reads = words[0];
	return 0;
}

static int set_needs(struct reading *r, char **words)
{
	static const char *const names[] = { "kernel" };

	r->h->needs_kernel = true;
	return one_of(r, "need", words[0], names, 1) ? -EINVAL : 0;
}

static int new_option(struct reading *r, const struct ready_option *option, const char *kind)
{
	struct ready_head *h = r->h;
	struct ready_option *o;
	int e;

	for (size_t i = 0; i < h->noptions; i++)
		if (!strcmp(h->options[i].name, option->name))
			return mistake(r, "option %s is there twice", option->name);
	h->options = arena_grow(r->a, h->options, &h->options_cap, h->noptions, sizeof(*h->options));
	o = &h->options[h->noptions++];
	*o = *option;
	e = kind_of(r, kind, &o->kind);
	if (!e && o->kind != READY_INT && o->kind != READY_TEXT && !((o->is_variant || o->is_addition) && o->kind == READY_BOOL))
		return mistake(r, "an option's kind is int or text%s", o->is_variant ? ", that of a variant may be bool" : "");
	return e;
}

static int add_option(struct reading *r, char **words)
{
	return new_option(r, &(struct ready_option){ .name = words[0], .preset = words[2], .what = words[3] }, words[1]);
}

static int add_variant(struct reading *r, char **words)
{
	return new_option(r, &(struct ready_option){ .name = words[0], .what = words[2], .is_variant = true }, words[1]);
}

static int add_addition(struct reading *r, char **words)
{
	return new_option(r, &(struct ready_option){ .name = words[0], .preset = "0", .what = words[1], .is_addition = true }, "bool");
}

static const struct directive {
	const char *name;
	int nwords;		/* the last one is the rest of the line if @rest */
	bool rest;
	int (*take)(struct reading *r, char **words);
} directives[] = {
	{ "summary", 1, true, set_summary },	{ "output", 1, false, set_output },
	{ "key", 3, false, add_key },		{ "value", 3, false, add_value },
	{ "level", 3, false, add_level },	{ "ratio", 5, false, add_ratio },
	{ "rate", 4, false, add_rate },		{ "field", 3, false, add_field },
	{ "sort", 1, false, set_sort },		{ "functions", 1, false, set_functions },
	{ "needs", 1, false, set_needs },	{ "live", 1, false, set_live },
	{ "option", 4, true, add_option },	{ "variant", 3, true, add_variant },
	{ "addition", 2, true, add_addition },	{ "otherwise", 1, false, set_otherwise },
	{ "note", 1, true, set_note },		{ "reads", 1, false, set_reads },
};

/* Parse "@NAME: WORDS"; @line starts after the @. */
static int take_directive(struct reading *r, char *line)
{
	char *colon = strchr(line, ':'), *words[WORDS_MAX] = { NULL }, *rest;
	const struct directive *d = directives, *end = d + sizeof(directives) / sizeof(directives[0]);
	int n = 0;

	if (colon)
		*colon = '\0';
	while (d < end && strcmp(d->name, line))
		d++;
	if (!colon || d == end)
		return mistake(r, "there is no line '@%s%s' in the head of a command", line, colon ? ":" : "");
	for (rest = colon + 1; n < d->nwords; n++) {
		rest += strspn(rest, " \t");
		if (!*rest)
			break;
		words[n] = rest;
		if (d->rest && n == d->nwords - 1) {
			n++;
			rest = words[n - 1] + strlen(words[n - 1]);
			break;
		}
		rest += strcspn(rest, " \t");
		if (*rest)
			*rest++ = '\0';
	}
	if (n < d->nwords || rest[strspn(rest, " \t")])
		return mistake(r, "@%s: takes %d word%s", d->name, d->nwords, d->nwords == 1 ? "" : "s");
	return d->take(r, words);
}

/* --- the file ------------------------------------------------------------------------------------------ */

/* Parse one line of the first comment, without the " * " before it. */
static int take_line(struct reading *r, char *line)
{
	size_t len;

	line += strspn(line, " \t");
	if (*line == '*')
		line++;
	if (*line == ' ')
		line++;
	for (len = strlen(line); len && isspace((unsigned char)line[len - 1]); )
		line[--len] = '\0';
	if (*line == '@')
		return take_directive(r, line + 1);
	if (len || r->about.len)
		strbuf_printf(&r->about, "%s\n", line);
	return 0;
}

static int take_comment(struct reading *r, const char *script)
{
	const char *begin = strstr(script, "/*"), *end = begin ? strstr(begin, "*/") : NULL;
	char *text, *line;
	int e = 0;

	if (!end)
		return mistake(r, "a command begins with a comment that says what it is: /* @summary: ... */");
	for (const char *s = script; s < begin; s++)
		r->line += *s == '\n';
	text = arena_strndup(r->a, begin + 2, (size_t)(end - begin - 2));
	for (; !e && text; r->line++) {
		line = strsep(&text, "\n");
		e = take_line(r, line);
	}
	return e;
}

static int find_sort(struct reading *r)
{
	struct ready_head *h = r->h;

	h->sort = h->ncolumns;
	if (h->form == READY_FUNCTION_TABLE)
		return 0;	/* its columns are not the head's */
	for (size_t i = 0; h->sort_name && i < h->ncolumns; i++)
		if (!strcmp(h->columns[i].name, h->sort_name))
			h->sort = i;
	if (h->sort_name && h->sort == h->ncolumns)
		return mistake(r, "@sort: there is no column '%s'", h->sort_name);
	return 0;
}

/* The option that says how often stacks are read. */
static int find_reads(struct reading *r)
{
	struct ready_head *h = r->h;

	if (!h->reads)
		return 0;
	if (h->form != READY_TREE && h->form != READY_TABLE)
		return mistake(r, "@reads: is for the outputs tree and table");
	for (size_t i = 0; i < h->noptions; i++)
		if (!strcmp(h->options[i].name, h->reads) && h->options[i].kind == READY_INT)
			return 0;
	return mistake(r, "@reads: there is no @option '%s' of the kind int", h->reads);
}

static int check(struct reading *r)
{
	struct ready_head *h = r->h;
	int e;

	r->line = 1;
	if (!h->summary)
		return mistake(r, "the head has no line '@summary:'");
	for (size_t i = 0; i < h->ncolumns; i++)
		if (h->form < READY_TREE && h->columns[i].kind > READY_STACK)
			return mistake(r, "column '%s' is of a kind for trees", h->columns[i].name);
	e = find_reads(r);
	return e ? e : find_sort(r);
}

static int read_text(struct reading *r, const char **ret)
{
	FILE *f = fopen(r->path, "re");
	struct strbuf text = { 0 };
	char piece[4096];
	int e = f ? 0 : -errno;

	for (size_t n = 1; f && n && text.len <= TEXT_MAX; ) {
		n = fread(piece, 1, sizeof(piece), f);
		strbuf_add(&text, piece, n);
	}
	if (f && ferror(f))
		e = errno ? -errno : -EIO;
	else if (text.len > TEXT_MAX)
		e = -EFBIG;
	if (f)
		fclose(f);
	if (e)
		strbuf_printf(r->err, "cannot read %s: %s", r->path, strerror(-e));
	*ret = arena_strdup(r->a, strbuf_str(&text));
	strbuf_fini(&text);
	return e;
}

/* The description, without empty lines at its end. */
static const char *about(const struct reading *r)
{
	const char *text = strbuf_str(&r->about);
	size_t n = r->about.len;

	while (n > 1 && text[n - 1] == '\n' && text[n - 2] == '\n')
		n--;
	return arena_strndup(r->a, text, n);
}

int ready_head_read(struct arena *a, const char *name, const char *path, struct ready_head *h, struct strbuf *err)
{
	struct reading r = { .a = a, .h = h, .path = path, .line = 1, .err = err };
	int e;

	*h = (struct ready_head){ .name = arena_strdup(a, name), .path = arena_strdup(a, path) };
	e = read_text(&r, &h->text);
	if (!e)
		e = take_comment(&r, h->text);
	if (!e)
		e = check(&r);
	h->about = about(&r);
	strbuf_fini(&r.about);
	return e;
}

int ready_head_extend(struct arena *a, const char *path, struct ready_head *h, struct strbuf *err)
{
	struct reading r = { .a = a, .h = h, .path = path, .line = 1, .err = err };
	const char *text;
	int e = read_text(&r, &text);

	if (!e)
		e = take_comment(&r, text);
	if (!e)
		e = check(&r);
	h->more = arena_printf(a, "%s%s", h->more ? h->more : "", text);
	h->about = arena_printf(a, "%s%s%s", h->about, *h->about && r.about.len ? "\n" : "", about(&r));
	strbuf_fini(&r.about);
	return e;
}

void ready_head_inherit(struct arena *a, struct ready_head *variant, const struct ready_option *o)
{
	for (size_t i = 0; i < variant->noptions; i++)
		if (!strcmp(variant->options[i].name, o->name))
			return;
	variant->options = arena_grow(a, variant->options, &variant->options_cap, variant->noptions, sizeof(*variant->options));
	variant->options[variant->noptions++] = *o;
}

const struct ready_column *ready_column(const struct ready_head *h, const char *name)
{
	for (size_t i = 0; i < h->ncolumns; i++)
		if (!strcmp(h->columns[i].name, name))
			return &h->columns[i];
	return NULL;
}

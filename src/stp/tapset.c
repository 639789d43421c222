#include "stp/tapset.h"

#include <ctype.h>
#include <dirent.h>
#include <fnmatch.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/ends.h"
#include "base/file.h"
#include "base/bytemap.h"
#include "lang/source.h"
#include "stp/stp.h"

enum { MAX_FILES = 4096, MAX_NAME = 256 };

/* A declaration of a file: an alias, a function, globals, a macro, or a probe. */
struct decl {
	size_t from, to;	/* its bytes, up to the next declaration */
	struct def *defs;
	bool probe;		/* without a name: needed when its file is */
	bool needed;
};

struct def {
	const char *name;	/* "f", "python.function.entry", "@m" */
	bool alias, function;
	struct def *next;	/* of the declaration */
};

struct tapset_file {
	const struct source *src;
	unsigned int level;	/* 0: the script, else the folder's number; smaller levels hide larger ones */
	bool is_macros;		/* .stpm */
	bool needed, given;
	struct decl *decls;
	size_t ndecls, cap;
};

struct stp_tapset {
	struct arena *arena;
	const char *arch;
	unsigned int levels;
	struct tapset_file *files;	/* scripts, too */
	size_t nfiles, cap;
	size_t seen;
	struct tapset_file *current;
	/* Freed by stp_tapset_next after the last file: */
	struct bytemap used;	/* identifiers and macros in needed declarations */
	struct bytemap nearest[2];	/* [is an alias]: the level of a name's nearest definition */
	const char **patterns;	/* components of probe points with a * in them */
	size_t npatterns, patterns_cap;
	bool all;
};

/* --- words -------------------------------------------------------------------------------------------- */

enum { WORD = 1, SPECIAL = 2 };

/* Character classes: part of a word; start of something else that must be recognised. */
static const unsigned char kinds[256] = {
	['0' ... '9'] = WORD, ['A' ... 'Z'] = WORD, ['a' ... 'z'] = WORD, ['_'] = WORD,
	['#'] = SPECIAL, ['/'] = SPECIAL, ['%'] = SPECIAL, ['"'] = SPECIAL, ['{'] = SPECIAL, ['}'] = SPECIAL, ['@'] = SPECIAL,
};

static bool is_word(char c)
{
	return kinds[(unsigned char)c] == WORD;
}

/* The first character from @s on that is of one of the kinds @stop. */
static const char *pass_over(const char *s, const char *end, unsigned int stop)
{
	while (s < end && !(kinds[(unsigned char)*s] & stop))
		s++;
	return s;
}

/* The length of the word at @s; 0 if no word begins here. */
static size_t word_at(const char *s, const char *end)
{
	const char *at = s;

	while (at < end && is_word(*at))
		at++;
	return (size_t)(at - s);
}

static bool is(const char *s, size_t len, const char *word)
{
	return len == strlen(word) && !memcmp(s, word, len);
}

static const char *behind(const char *s, const char *end, const char *mark)
{
	const char *at = memmem(s, (size_t)(end - s), mark, strlen(mark));

	return at ? at + strlen(mark) : end;
}

static const char *behind_string(const char *s, const char *end)
{
	for (s++; s < end && *s != '"'; s++)
		if (*s == '\\')
			s++;
	return s < end ? s + 1 : end;
}

/*
 * Skip a comment, string or embedded code.  Returns @s if it is none of them.  $# and @# are numbers of arguments,
 * not comments.
 */
static const char *skip(const char *begin, const char *s, const char *end)
{
	switch (*s) {
	case '#':
		return s > begin && (s[-1] == '$' || s[-1] == '@') ? s : behind(s, end, "\n");
	case '/':
		if (end - s > 1 && s[1] == '*')
			return behind(s + 2, end, "*/");
		return end - s > 1 && s[1] == '/' ? behind(s, end, "\n") : s;
	case '%':
		return end - s > 1 && s[1] == '{' ? behind(s, end, "%}") : s;
	case '"':
		return behind_string(s, end);
	default:
		return s;
	}
}

/* --- what a file defines ------------------------------------------------------------------------------ */

static struct decl *add_decl(struct stp_tapset *t, struct tapset_file *f, size_t from)
{
	struct decl *d;

	if (f->ndecls)
		f->decls[f->ndecls - 1].to = from;
	f->decls = arena_grow(t->arena, f->decls, &f->cap, f->ndecls, sizeof(*f->decls));
	d = &f->decls[f->ndecls++];
	*d = (struct decl){ .from = from, .to = f->src->len };
	return d;
}

static void define(struct stp_tapset *t, const struct tapset_file *f, struct decl *d, const char *name, bool alias)
{
	struct def *def = arena_new_of(t->arena, struct def);
	size_t len = strlen(name);
	uintptr_t nearest = (uintptr_t)bytemap_get(&t->nearest[alias], name, len);

	*def = (struct def){ .name = name, .alias = alias, .next = d->defs };
	d->defs = def;
	/* Stored as level + 1: 0 means none. */
	if (!nearest || nearest > f->level + 1)
		bytemap_set(&t->nearest[alias], name, len, (void *)(uintptr_t)(f->level + 1));
}

/* Define the aliases between @s, which is after "probe", and @end: names followed by = or +=. */
static void read_aliases(struct stp_tapset *t, const struct tapset_file *f, struct decl *d, const char *s, const char *end)
{
	char name[MAX_NAME];
	size_t len = 0, n;
	const char *to;

	for (; s < end; s += n) {
		n = word_at(s, end);
		to = n ? s : skip(f->src->text, s, end);
		if (to > s) {
			n = (size_t)(to - s);
		} else if (isspace((unsigned char)*s)) {
			n = 1;
		} else if (n || *s == '.') {
			n += !n;
			if (len + n < sizeof(name))
				memcpy(name + len, s, n);
			len += n;
		} else if (*s == '+') {
			n = 1;
		} else if (*s == '=' && len && len < sizeof(name)) {
			n = 1;
			define(t, f, d, arena_strndup(t->arena, name, len), true);
			len = 0;
		} else {
			return;
		}
	}
}

/* global a, b[10], c = 5: define each word after "global" or a comma. */
static void read_globals(struct stp_tapset *t, const struct tapset_file *f, struct decl *d, const char *s, const char *end)
{
	bool name = true;
	size_t n;

	for (; s < end; s += n) {
		const char *to = skip(f->src->text, s, end);

		n = to > s ? (size_t)(to - s) : word_at(s, end);
		if (to == s && n && name) {
			define(t, f, d, arena_strndup(t->arena, s, n), false);
			name = false;
		}
		name = name || *s == ',';
		n += !n;
	}
}

static const char *next_word(const struct tapset_file *f, const char *s, const char *end, size_t *len)
{
	for (; s < end; s++) {
		const char *to = skip(f->src->text, s, end);

		if (to > s) {
			s = to - 1;
			continue;
		}
		*len = word_at(s, end);
		if (*len || !isspace((unsigned char)*s))
			return s;
	}
	*len = 0;
	return end;
}

/* Find what kind of declaration @d is, and what it defines. */
static void read_decl(struct stp_tapset *t, const struct tapset_file *f, struct decl *d)
{
	const char *s = f->src->text + d->from, *end = f->src->text + d->to;
	bool macro = *s == '@';
	size_t len;

	s = next_word(f, s + macro, end, &len);
	if (macro) {
		s = next_word(f, s + len, end, &len);
		define(t, f, d, arena_printf(t->arena, "@%.*s", (int)len, s), false);
		return;
	}
	if (is(s, len, "private"))
		s = next_word(f, s + len, end, &len);
	if (is(s, len, "probe")) {
		read_aliases(t, f, d, s + len, end);
		d->probe = !d->defs;
	} else if (is(s, len, "function")) {
		s = next_word(f, s + len, end, &len);
		define(t, f, d, arena_strndup(t->arena, s, len), false);
		d->defs->function = true;
	} else {
		read_globals(t, f, d, is(s, len, "global") ? s + len : s, end);
	}
}

/* The end of the macro that begins at @s: after the %) of its %(. */
static const char *behind_macro(const struct tapset_file *f, const char *s, const char *end)
{
	unsigned int depth = 0;

	for (; (s = pass_over(s, end, SPECIAL)) < end; s++) {
		const char *to = skip(f->src->text, s, end);

		if (to > s) {
			s = to - 1;
		} else if (*s == '%' && end - s > 1 && s[1] == '(') {
			depth++;
			s++;
		} else if (*s == '%' && end - s > 1 && s[1] == ')') {
			s++;
			if (depth <= 1)
				return s + 1;
			depth--;
		}
	}
	return end;
}

static bool begins_decl(const char *s, size_t len)
{
	switch (*s) {
	case 'p':
		return is(s, len, "private") || is(s, len, "probe");
	case 'g':
		return is(s, len, "global");
	case 'f':
		return is(s, len, "function");
	default:
		return false;
	}
}

/* Does a declaration begin between @s and @end? */
static bool has_decl(const struct tapset_file *f, const char *s, const char *end)
{
	for (size_t len; s < end; s += len ? len : 1) {
		const char *to = skip(f->src->text, s, end);

		len = to > s ? (size_t)(to - s) : word_at(s, end);
		if (to == s && begins_decl(s, len))
			return true;
	}
	return false;
}

/*
 * Cut the file into declarations: each begins with one of a few words outside of braces.  False: not possible,
 * because a preprocessor condition contains declarations, or the braces do not match.
 */
static bool cut(struct stp_tapset *t, struct tapset_file *f)
{
	const char *text = f->src->text, *s = text, *end = text + f->src->len, *to;
	bool private = false;	/* the last word was "private" */
	unsigned int depth = 0;
	size_t len;

	for (; (s = pass_over(s, end, depth ? SPECIAL : SPECIAL | WORD)) < end; s = to) {
		if (is_word(*s)) {
			len = word_at(s, end);
			to = s + len;
			if (begins_decl(s, len)) {
				/* x.function(...) is part of a point. */
				if (!private && !(s > text && s[-1] == '.'))
					add_decl(t, f, (size_t)(s - text));
				private = is(s, len, "private");
			} else {
				private = false;
			}
			continue;
		}
		to = skip(text, s, end);
		if (to > s)
			continue;
		to = s + 1;
		if (*s == '@' && !depth && is(s + 1, word_at(s + 1, end), "define")) {
			add_decl(t, f, (size_t)(s - text));
			to = behind_macro(f, s, end);
		} else if (*s == '{') {
			depth++;
		} else if (*s == '}') {
			if (!depth--)
				return false;
		} else if (*s == '%' && !depth && end - s > 1 && s[1] == '(') {
			to = behind_macro(f, s, end);
			if (has_decl(f, s, to))
				return false;
		}
	}
	return !depth;
}

/* Treat the whole file as one declaration of all that it defines. */
static void take_whole(struct stp_tapset *t, struct tapset_file *f)
{
	struct tapset_file parts = *f;
	struct decl *whole;
	const char *text = f->src->text, *s = text, *end = text + f->src->len, *to;

	f->ndecls = parts.ndecls = 0;
	parts.decls = NULL;
	parts.cap = 0;
	for (; s < end; s = to) {
		size_t len = word_at(s, end);

		to = skip(text, s, end);
		if (to > s)
			continue;
		to = s + (len ? len : 1);
		if (begins_decl(s, len) || (*s == '@' && is(s + 1, word_at(s + 1, end), "define")))
			add_decl(t, &parts, (size_t)(s - text));
		if (*s == '@')
			to += word_at(to, end);
	}
	whole = add_decl(t, f, 0);
	for (size_t i = 0; i < parts.ndecls; i++) {
		read_decl(t, &parts, &parts.decls[i]);
		for (struct def *d = parts.decls[i].defs, *next; d; d = next) {
			next = d->next;
			d->next = whole->defs;
			whole->defs = d;
		}
	}
}

static void read_file(struct stp_tapset *t, struct tapset_file *f)
{
	if (!cut(t, f)) {
		take_whole(t, f);
		return;
	}
	for (size_t i = 0; i < f->ndecls; i++)
		read_decl(t, f, &f->decls[i]);
}

static struct tapset_file *add_file(struct stp_tapset *t, const struct source *src, unsigned int level)
{
	struct tapset_file *f;

	t->files = arena_grow(t->arena, t->files, &t->cap, t->nfiles, sizeof(*t->files));
	f = &t->files[t->nfiles++];
	memset(f, 0, sizeof(*f));
	f->src = src;
	f->level = level;
	return f;
}

struct stp_tapset *stp_tapset_new(struct arena *a, const char *arch)
{
	struct stp_tapset *t = arena_new_of(a, struct stp_tapset);

	t->arena = a;
	t->arch = arch;
	return t;
}

/* --- folders ------------------------------------------------------------------------------------------ */

static void add_dir(struct stp_tapset *t, const char *dir, const char *skip)
{
	struct dirent **entries;
	int n = scandir(dir, &entries, NULL, alphasort);

	for (int i = 0; i < n; i++) {
		const char *name = entries[i]->d_name;
		struct source *src = NULL;
		char *path;

		if ((ends_with(name, ".stp") || ends_with(name, ".stpm")) && t->seen < MAX_FILES) {
			path = arena_printf(t->arena, "%s/%s", dir, name);
			if (!file_same_path(path, skip) && !source_read(t->arena, path, &src)) {
				struct tapset_file *f = add_file(t, src, t->levels);

				f->is_macros = ends_with(name, ".stpm");
				read_file(t, f);
				t->seen++;
			}
		}
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
}

void stp_tapset_dir(struct stp_tapset *t, const char *dir, const char *skip)
{
	t->levels++;
	add_dir(t, dir, skip);
	add_dir(t, arena_printf(t->arena, "%s/%s", dir, t->arch), skip);
	add_dir(t, arena_printf(t->arena, "%s/linux", dir), skip);
	add_dir(t, arena_printf(t->arena, "%s/linux/%s", dir, t->arch), skip);
}

/* --- what is used ------------------------------------------------------------------------------------- */

static void use_word(struct stp_tapset *t, const char *s, size_t len)
{
	bytemap_set(&t->used, s, len, (void *)(uintptr_t)s);
}

/* Note the names used in a text: words, @macros, and patterns in points like x.* and x.y*, but not products. */
static void use(struct stp_tapset *t, const struct source *src, size_t from, size_t before)
{
	const char *begin = src->text + from, *s = begin, *end = src->text + before, *to;

	for (; s < end; s = to) {
		size_t len = 0;
		bool star = false;

		to = skip(begin, s, end);
		if (to > s)
			continue;
		for (; s + len < end && (is_word(s[len]) || s[len] == '*'); len++)
			star |= s[len] == '*';
		to = s + (len ? len : 1);
		if (star && (len > 1 || (s > begin && (s[-1] == '.' || s[-1] == '{')))) {
			t->patterns = arena_grow(t->arena, t->patterns, &t->patterns_cap, t->npatterns, sizeof(*t->patterns));
			/* ** may stand for several components. */
			t->patterns[t->npatterns++] = memmem(s, len, "**", 2) ? "*" : arena_strndup(t->arena, s, len);
		}
		for (size_t at = 0, n; star && at < len; at += n ? n : 1) {	/* a*b may be a product of variables */
			n = word_at(s + at, s + len);
			if (n)
				use_word(t, s + at, n);
		}
		if (!len || star)
			continue;
		use_word(t, s, len);
		if (s > begin && s[-1] == '@')
			use_word(t, s - 1, len + 1);
	}
}

/* Does some point name this component of an alias's name? */
static bool is_named(const struct stp_tapset *t, const char *s, size_t len)
{
	char name[MAX_NAME];

	if (bytemap_get(&t->used, s, len))
		return true;
	if (!t->npatterns || len >= sizeof(name))
		return false;
	memcpy(name, s, len);
	name[len] = '\0';
	for (size_t i = 0; i < t->npatterns; i++)
		if (!fnmatch(t->patterns[i], name, 0))
			return true;
	return false;
}

static bool is_used(const struct stp_tapset *t, const struct def *d)
{
	const char *s = d->name, *end;
	bool first = true;

	if (t->all)
		return true;
	if (!d->alias)
		return bytemap_get(&t->used, s, strlen(s));
	for (;; s = end + 1, first = false) {
		end = strchrnul(s, '.');
		if (first ? !bytemap_get(&t->used, s, (size_t)(end - s)) : !is_named(t, s, (size_t)(end - s)))
			return false;
		if (!*end)
			return true;
	}
}

/* Does a level nearer than @level define it? */
static bool is_hidden(const struct stp_tapset *t, const char *name, bool alias, unsigned int level)
{
	uintptr_t nearest = (uintptr_t)bytemap_get(&t->nearest[alias], name, strlen(name));

	return nearest && nearest <= level;
}

void stp_tapset_script(struct stp_tapset *t, const struct source *src)
{
	struct tapset_file *f = add_file(t, src, 0);

	read_file(t, f);
	f->needed = f->given = true;
	use(t, src, 0, src->len);
}

void stp_tapset_argument(struct stp_tapset *t, const struct source *src)
{
	use(t, src, 0, src->len);
}

void stp_tapset_all(struct stp_tapset *t)
{
	t->all = true;
}

static void need(struct stp_tapset *t, struct tapset_file *f, struct decl *d)
{
	d->needed = true;
	use(t, f->src, d->from, d->to);
	if (f->needed)
		return;
	f->needed = true;
	for (size_t i = 0; i < f->ndecls; i++)	/* the probes of a needed file are needed */
		if (f->decls[i].probe && !f->decls[i].needed)
			need(t, f, &f->decls[i]);
}

/* Mark needed declarations, repeated until none is added. */
static void find_needed(struct stp_tapset *t)
{
	bool more = true;

	while (more) {
		more = false;
		for (size_t i = 0; i < t->nfiles; i++) {
			struct tapset_file *f = &t->files[i];

			for (size_t k = 0; f->level && k < f->ndecls; k++) {
				const struct def *d = f->decls[k].needed ? NULL : f->decls[k].defs;

				while (d && (!is_used(t, d) || is_hidden(t, d->name, d->alias, f->level)))
					d = d->next;
				if (!d)
					continue;
				need(t, f, &f->decls[k]);
				more = true;
			}
		}
	}
}

/* For lists: all but probes. */
static bool is_wanted(const struct stp_tapset *t, const struct decl *d)
{
	return t->all ? !d->probe : d->needed;
}

/* The text of @f with declarations that are not needed replaced by blanks. */
static const struct source *needed_text(const struct stp_tapset *t, const struct tapset_file *f)
{
	struct source *src;
	char *text;

	text = arena_strndup(t->arena, f->src->text, f->src->len);
	for (size_t i = 0; i < f->ndecls; i++)
		for (size_t at = f->decls[i].from; !is_wanted(t, &f->decls[i]) && at < f->decls[i].to; at++)
			if (text[at] != '\n')
				text[at] = ' ';
	src = arena_new_of(t->arena, struct source);
	*src = *f->src;
	src->text = text;
	return src;
}

const struct source *stp_tapset_next(struct stp_tapset *t)
{
	struct tapset_file *next = NULL;

	if (!t->current)
		find_needed(t);
	for (size_t i = 0; i < t->nfiles; i++) {
		struct tapset_file *f = &t->files[i];

		if (f->needed && !f->given && (!next || f->is_macros > next->is_macros))
			next = f;
	}
	t->current = next;
	if (!next) {
		bytemap_fini(&t->used);
		bytemap_fini(&t->nearest[false]);
		bytemap_fini(&t->nearest[true]);
		return NULL;
	}
	next->given = true;
	next->src = needed_text(t, next);
	return next->src;
}

static bool hidden(void *ctx, const char *name, bool alias)
{
	const struct stp_tapset *t = ctx;

	return is_hidden(t, name, alias, t->current->level);
}

bool stp_tapset_add(struct stp_tapset *t, struct stp *stp)
{
	return stp_add_library(stp, t->current->src, hidden, t);
}

static void each_def(const struct stp_tapset *t, bool alias, void (*fn)(void *ctx, const char *name), void *ctx)
{
	for (size_t i = 0; i < t->nfiles; i++)
		for (size_t k = 0; k < t->files[i].ndecls; k++)
			for (const struct def *d = t->files[i].decls[k].defs; d; d = d->next)
				if (alias ? d->alias : d->function)
					fn(ctx, d->name);
}

void stp_tapset_functions(struct stp_tapset *t, void (*fn)(void *ctx, const char *name), void *ctx)
{
	each_def(t, false, fn, ctx);
}

void stp_tapset_aliases(struct stp_tapset *t, void (*fn)(void *ctx, const char *name), void *ctx)
{
	each_def(t, true, fn, ctx);
}

size_t stp_tapset_files(const struct stp_tapset *t)
{
	return t->seen;
}

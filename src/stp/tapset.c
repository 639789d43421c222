#include "stp/tapset.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/bytemap.h"
#include "lang/source.h"
#include "stp/lex.h"
#include "stp/stp.h"

enum { MAX_FILES = 4096 };

struct def {
	const char *name;	/* "f", "python.function.entry", "@m" */
	bool alias, function;
};

struct file {
	const struct source *src;
	struct stp_toks toks;
	unsigned int level;	/* 0: the script, else the number of its folder; smaller hides larger */
	bool is_macros;		/* .stpm */
	bool needed, given;
	struct def *defs;
	size_t ndefs, defs_cap;
};

struct stp_tapset {
	struct arena *arena;
	const char *arch;
	unsigned int levels;
	struct file *files;	/* scripts too */
	size_t nfiles, cap;
	size_t seen;
	struct file *current;
	struct bytemap used;	/* identifiers and macros of what is needed; freed with the process's arena users */
	bool star;		/* some probe point has a * in it */
	bool all;
};

/* --- what a file defines ------------------------------------------------------------------------------ */

static struct def *define(struct stp_tapset *t, struct file *f, const char *name, bool alias)
{
	f->defs = arena_grow(t->arena, f->defs, &f->defs_cap, f->ndefs, sizeof(*f->defs));
	f->defs[f->ndefs] = (struct def){ name, alias, false };
	return &f->defs[f->ndefs++];
}

static bool is(const struct stp_tok *t, enum stp_tok_kind kind, const char *text)
{
	return t->kind == kind && !strcmp(t->text, text);
}

/* Behind "probe": the names up to each = or +=, which are aliases. */
static const struct stp_tok *read_aliases(struct stp_tapset *ts, struct file *f, const struct stp_tok *t)
{
	for (;;) {
		char name[256] = "";
		size_t len = 0;

		for (; t->kind == STP_IDENT || t->kind == STP_KEYWORD || is(t, STP_OP, "."); t++)
			if (len + t->len < sizeof(name))
				len += (size_t)snprintf(name + len, sizeof(name) - len, "%s", t->text);
		if (!is(t, STP_OP, "=") && !is(t, STP_OP, "+="))
			return t;
		define(ts, f, arena_strdup(ts->arena, name), true);
		t++;
	}
}

static void read_defs(struct stp_tapset *ts, struct file *f)
{
	const struct stp_tok *t = f->toks.v;
	unsigned int depth = 0;
	bool globals = false;	/* between "global" and the next declaration */

	while (t->kind != STP_EOF) {
		if (is(t, STP_OP, "{"))
			depth++;
		else if (is(t, STP_OP, "}") && depth)
			depth--;
		if (t->kind == STP_KEYWORD || *t->text == '@')
			globals = is(t, STP_KEYWORD, "global") || is(t, STP_KEYWORD, "private");
		if (is(t, STP_OP, "@define") && t[1].kind == STP_IDENT) {
			define(ts, f, arena_printf(ts->arena, "@%s", t[1].text), false);
		} else if (!depth && is(t, STP_KEYWORD, "probe")) {
			t = read_aliases(ts, f, t + 1);
			continue;
		} else if (!depth && is(t, STP_KEYWORD, "function") && t[1].kind == STP_IDENT) {
			define(ts, f, t[1].text, false)->function = true;
		} else if (!depth && globals && t[1].kind == STP_IDENT) {	/* global a, b[10], c = 5 */
			define(ts, f, t[1].text, false);
		}
		t++;
	}
}

static struct file *add_file(struct stp_tapset *t, const struct source *src, unsigned int level)
{
	struct file *f;

	t->files = arena_grow(t->arena, t->files, &t->cap, t->nfiles, sizeof(*t->files));
	f = &t->files[t->nfiles++];
	memset(f, 0, sizeof(*f));
	f->src = src;
	f->level = level;
	return f;
}

static void read_file(struct stp_tapset *t, struct file *f)
{
	static const struct stp_args none;

	stp_lex(t->arena, f->src, &none, &f->toks);
	read_defs(t, f);
}

struct stp_tapset *stp_tapset_new(struct arena *a, const char *arch)
{
	struct stp_tapset *t = arena_new_of(a, struct stp_tapset);

	t->arena = a;
	t->arch = arch;
	return t;
}

/* --- folders ------------------------------------------------------------------------------------------ */

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n > m && !strcmp(s + n - m, end);
}

static bool same_file(const char *a, const char *b)
{
	struct stat x, y;

	return b && !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

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
			if (!same_file(path, skip) && !source_read(t->arena, path, &src)) {
				add_file(t, src, t->levels)->is_macros = ends_with(name, ".stpm");
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

static void use(struct stp_tapset *t, const struct file *f)
{
	for (const struct stp_tok *k = f->toks.v; k->kind != STP_EOF; k++) {
		if (k->kind == STP_IDENT || k->kind == STP_KEYWORD || (k->kind == STP_OP && *k->text == '@'))
			bytemap_set(&t->used, k->text, k->len, (void *)(uintptr_t)k->text);
		/* x.* and x.y*, but no product. */
		if (is(k, STP_OP, "*") && k > f->toks.v &&
		    (is(k - 1, STP_OP, ".") || (k > f->toks.v + 1 && is(k - 2, STP_OP, "."))))
			t->star = true;
	}
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
		if (!bytemap_get(&t->used, s, (size_t)(end - s)) && (first || !t->star))
			return false;
		if (!*end)
			return true;
	}
}

/* Does something nearer than @level define it? */
static bool is_hidden(const struct stp_tapset *t, const char *name, bool alias, unsigned int level)
{
	for (size_t i = 0; i < t->nfiles; i++) {
		const struct file *f = &t->files[i];

		for (size_t k = 0; f->level < level && k < f->ndefs; k++)
			if (f->defs[k].alias == alias && !strcmp(f->defs[k].name, name))
				return true;
	}
	return false;
}

void stp_tapset_script(struct stp_tapset *t, const struct source *src)
{
	struct file *f = add_file(t, src, 0);

	read_file(t, f);
	f->needed = f->given = true;
	use(t, f);
}

void stp_tapset_all(struct stp_tapset *t)
{
	t->all = true;
}

/* The word at @s, which ends before @end: its length, 0 when none begins here. */
static size_t word_at(const char *s, const char *end)
{
	const char *at = s;

	while (at < end && (isalnum((unsigned char)*at) || *at == '_'))
		at++;
	return (size_t)(at - s);
}

static bool is_word(const char *s, size_t len, const char *word)
{
	return len == strlen(word) && !memcmp(s, word, len);
}

/*
 * Could the file define something that is used?  Told by the words behind "probe", "function" and the like, without
 * reading it in earnest: most files of a tapset are not needed.  May say yes where the answer is no.
 */
static bool may_be_needed(const struct stp_tapset *t, const struct file *f)
{
	const char *s = f->src->text, *end = s + f->src->len;
	bool list = false;	/* words of a line that declares globals */
	bool next = false;	/* the first word behind a keyword */
	bool head = false;	/* between "probe" and what it does: another alias may stand behind = */
	char macro[128];
	size_t len;

	for (; s < end; s += len ? len : 1) {
		len = word_at(s, end);
		if (!len) {
			list = list && *s != '\n';
			head = head && *s != '{';
			next = next || (head && *s == '=');
			continue;
		}
		if (next && len + 1 < sizeof(macro)) {
			macro[0] = '@';
			memcpy(macro + 1, s, len);
			if (bytemap_get(&t->used, macro, len + 1))
				return true;
		}
		if ((next || list) && bytemap_get(&t->used, s, len))
			return true;
		next = is_word(s, len, "probe") || is_word(s, len, "function") || is_word(s, len, "define");
		head = head || is_word(s, len, "probe");
		list = list || is_word(s, len, "global") || is_word(s, len, "private");
	}
	return false;
}

/* Mark the files that are needed, until no more become so. */
static void find_needed(struct stp_tapset *t)
{
	bool more = true;

	while (more) {
		more = false;
		for (size_t i = 0; i < t->nfiles; i++) {
			struct file *f = &t->files[i];

			if (!f->toks.v && (t->all || may_be_needed(t, f)))
				read_file(t, f);
			for (size_t k = 0; !f->needed && k < f->ndefs; k++)
				f->needed = is_used(t, &f->defs[k]) &&
					    !is_hidden(t, f->defs[k].name, f->defs[k].alias, f->level);
			if (f->needed && !f->given) {
				f->given = true;
				use(t, f);
				more = true;
			}
		}
	}
	for (size_t i = 0; i < t->nfiles; i++)
		t->files[i].given = !t->files[i].level;
}

const struct source *stp_tapset_next(struct stp_tapset *t)
{
	struct file *next = NULL;

	if (!t->current)
		find_needed(t);
	for (size_t i = 0; i < t->nfiles; i++) {
		struct file *f = &t->files[i];

		if (f->needed && !f->given && (!next || f->is_macros > next->is_macros))
			next = f;
	}
	t->current = next;
	if (!next) {
		bytemap_fini(&t->used);
		return NULL;
	}
	next->given = true;
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

static void each_def(struct stp_tapset *t, bool alias, void (*fn)(void *ctx, const char *name), void *ctx)
{
	for (size_t i = 0; i < t->nfiles; i++) {
		if (!t->files[i].toks.v)
			read_file(t, &t->files[i]);
		for (size_t k = 0; k < t->files[i].ndefs; k++)
			if (alias ? t->files[i].defs[k].alias : t->files[i].defs[k].function)
				fn(ctx, t->files[i].defs[k].name);
	}
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

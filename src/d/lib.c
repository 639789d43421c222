#include "d/lib.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "d/parser.h"
#include "lang/source.h"

enum { MAX_LIBS = 256, MAX_NAME = 64 };

struct lib {
	const struct source *src;
	const char *base;		/* "procfs.d" */
	struct lib_name {
		const char *name;
		enum d_lib_kind kind;
	} *names;			/* that it declares */
	size_t nnames, cap;
};

struct d_libs {
	struct arena *arena;
	struct lib libs[MAX_LIBS];
	size_t n;
};

struct d_libs *d_libs_new(struct arena *a)
{
	struct d_libs *l = arena_new_of(a, struct d_libs);

	l->arena = a;
	return l;
}

/* --- what a library declares ------------------------------------------------------------------------- */

struct scan {
	struct arena *arena;
	struct lib *lib;
	const char *p, *end;
	char word[MAX_NAME], last[MAX_NAME], before[MAX_NAME];	/* the words seen, newest first */
	unsigned int depth;
	unsigned int enum_depth;	/* of the braces of an enum, 0: outside */
	bool named;			/* the declaration at hand has declared its name */
};

static void declare(struct scan *s, const char *name, enum d_lib_kind kind)
{
	struct lib *l = s->lib;

	if (!*name)
		return;
	l->names = arena_grow(s->arena, l->names, &l->cap, l->nnames, sizeof(*l->names));
	l->names[l->nnames++] = (struct lib_name){ arena_strdup(s->arena, name), kind };
}

static bool is_tagged(const char *word)
{
	return !strcmp(word, "struct") || !strcmp(word, "union") || !strcmp(word, "enum");
}

static bool skip_to(struct scan *s, const char *what)
{
	const char *at = memmem(s->p, (size_t)(s->end - s->p), what, strlen(what));

	s->p = at ? at + strlen(what) : s->end;
	return at;
}

static void scan_word(struct scan *s)
{
	size_t n = 0;

	while (s->p + n < s->end && (isalnum((unsigned char)s->p[n]) || s->p[n] == '_'))
		n++;
	memcpy(s->before, s->last, sizeof(s->last));
	memcpy(s->last, s->word, sizeof(s->word));
	snprintf(s->word, sizeof(s->word), "%.*s", (int)n, s->p);
	s->p += n;
	if (s->depth && s->depth == s->enum_depth && !s->named) {
		declare(s, s->word, D_LIB_VALUE);
		s->named = true;
	}
}

static void scan_mark(struct scan *s, char c)
{
	switch (c) {
	case '{':
		s->depth++;
		if (!strcmp(s->word, "enum") || !strcmp(s->last, "enum"))
			s->enum_depth = s->depth;
		if (is_tagged(s->last))
			declare(s, s->word, D_LIB_TYPE);
		s->named = false;
		break;
	case '}':
		if (s->depth == s->enum_depth)
			s->enum_depth = 0;
		s->depth -= s->depth > 0;
		*s->word = '\0';	/* "struct a { int b; };" declares no b */
		break;
	case ',':
		s->named = s->depth != s->enum_depth && s->named;
		break;
	case '=':
	case '[':
	case ';':
		if (!s->depth && !s->named)
			declare(s, s->word, c == ';' ? D_LIB_TYPE : D_LIB_VALUE);
		s->named = !s->depth || s->depth == s->enum_depth;
		if (c == ';' && !s->depth)
			s->named = false;
		break;
	}
}

/* The names of types, tags, enumerators and inlines.  Too many do no harm: such a library is parsed for nothing. */
static void find_names(struct d_libs *l, struct lib *lib)
{
	struct scan s = { .arena = l->arena, .lib = lib, .p = lib->src->text, .end = lib->src->text + lib->src->len };

	while (s.p < s.end) {
		if (s.end - s.p > 1 && s.p[0] == '/' && s.p[1] == '*') {
			s.p += 2;
			skip_to(&s, "*/");
		} else if (*s.p == '"') {
			s.p++;
			skip_to(&s, "\"");
		} else if (*s.p == '#') {
			skip_to(&s, "\n");
		} else if (isalpha((unsigned char)*s.p) || *s.p == '_') {
			scan_word(&s);
		} else {
			scan_mark(&s, *s.p++);
		}
	}
}

/* --- folders ----------------------------------------------------------------------------------------- */

static int is_lib(const struct dirent *e)
{
	size_t n = strlen(e->d_name);

	return n > 2 && !strcmp(e->d_name + n - 2, ".d") && e->d_name[0] != '.';
}

void d_libs_dir(struct d_libs *l, const char *dir)
{
	struct dirent **entries = NULL;
	int n = scandir(dir, &entries, is_lib, alphasort);

	for (int i = 0; i < n; i++) {
		struct source *src = NULL;

		if (l->n < MAX_LIBS && !source_read(l->arena, arena_printf(l->arena, "%s/%s", dir, entries[i]->d_name), &src)) {
			struct lib *lib = &l->libs[l->n++];

			lib->src = src;
			lib->base = arena_strdup(l->arena, entries[i]->d_name);
			find_names(l, lib);
		}
		free(entries[i]);
	}
	free(entries);
}

/* --- use --------------------------------------------------------------------------------------------- */

void d_libs_use(struct d_prog *p, struct d_libs *l)
{
	p->state->libs = l;
	p->state->lib_done = arena_alloc(p->arena, MAX_LIBS * sizeof(bool));
}

static void use(struct d_prog *p, struct lib *lib);

/* "#pragma D depends_on KIND NAME" of @lib: is it there?  A library is then parsed first. */
static bool depends(struct d_prog *p, const char *kind, const char *name)
{
	static const char *const modules[] = { "vmlinux", "kernel", "genunix", "unix" };
	static const char *const providers[] = {
		"dtrace", "profile", "tick", "syscall", "proc", "sched", "rawtp", "pid", "python", "usdt",
	};
	struct d_libs *l = p->state->libs;

	if (!strcmp(kind, "library")) {
		for (size_t i = 0; i < l->n; i++)
			if (!strcmp(l->libs[i].base, name)) {
				use(p, &l->libs[i]);
				return true;
			}
		return false;
	}
	for (size_t i = 0; !strcmp(kind, "module") && i < sizeof(modules) / sizeof(modules[0]); i++)
		if (!strcmp(modules[i], name))
			return true;
	for (size_t i = 0; !strcmp(kind, "provider") && i < sizeof(providers) / sizeof(providers[0]); i++)
		if (!strcmp(providers[i], name))
			return true;
	return false;
}

/* All its depends_on, which stand in lines of their own. */
static bool depends_all(struct d_prog *p, const struct lib *lib)
{
	const char *s = lib->src->text, *end = s + lib->src->len, *nl;
	char line[160], kind[16], name[MAX_NAME];

	for (; s < end; s = nl + 1) {
		nl = memchr(s, '\n', (size_t)(end - s));
		nl = nl ? nl : end;
		if (*s != '#')
			continue;
		snprintf(line, sizeof(line), "%.*s", (int)(nl - s), s);
		if (sscanf(line, "#pragma D depends_on %15s %63s", kind, name) == 2 && !depends(p, kind, name))
			return false;
	}
	return true;
}

static void use(struct d_prog *p, struct lib *lib)
{
	bool *done = &p->state->lib_done[lib - p->state->libs->libs];

	if (*done)
		return;
	*done = true;
	if (!depends_all(p, lib))
		return;
	p->state->in_lib++;
	d_parse(p, lib->src, D_SPEC_FILE);
	p->state->in_lib--;
}

bool d_libs_need(struct d_prog *p, const char *name, enum d_lib_kind kind)
{
	struct d_libs *l = p->state->libs;

	for (size_t i = l ? l->n : 0; i-- > 0;) {
		struct lib *lib = &l->libs[i];

		for (size_t k = 0; !p->state->lib_done[i] && k < lib->nnames; k++)
			if (lib->names[k].kind == kind && !strcmp(lib->names[k].name, name)) {
				use(p, lib);
				return true;
			}
	}
	return false;
}

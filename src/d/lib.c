#include "d/lib.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "d/parser.h"
#include "lang/diag.h"
#include "lang/source.h"

enum { MAX_LIBS = 256, MAX_NAME = 64, NAME_BITS = 4096 };

struct lib {
	const struct source *src;
	const char *base;		/* "procfs.d" */
	struct lib_name {
		const char *name;
		enum d_lib_kind kind;
	} *names;			/* that it declares */
	size_t nnames, cap;
	bool all;			/* parsed even if not used */
	bool open;			/* being parsed, or a library that it depends on is */
};

struct d_libs {
	struct arena *arena;
	struct lib libs[MAX_LIBS];
	size_t n;
	uint64_t declared[NAME_BITS / 64];	/* a bit for the hash of each name: most words of a script are in no library */
};

static uint32_t bit_of(const char *name)
{
	uint32_t h = 2166136261;	/* FNV-1a */

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 16777619;
	return h % NAME_BITS;
}

struct d_libs *d_libs_new(struct arena *a)
{
	struct d_libs *l = arena_new_of(a, struct d_libs);

	l->arena = a;
	return l;
}

/* --- what a library declares ------------------------------------------------------------------------- */

/* A word of a library's text. */
struct piece {
	const char *s;
	size_t n;
};

struct scan {
	struct arena *arena;
	struct d_libs *libs;
	struct lib *lib;
	const char *p, *end;
	struct piece word, last;	/* the words seen, newest first */
	unsigned int depth;
	unsigned int enum_depth;	/* depth of the braces of an enum; 0: outside */
	bool named;			/* the current declaration has declared its name */
};

static void declare(struct scan *s, struct piece word, enum d_lib_kind kind)
{
	struct lib *l = s->lib;
	const char *name;

	if (!word.n)
		return;
	name = arena_strndup(s->arena, word.s, word.n);
	l->names = arena_grow(s->arena, l->names, &l->cap, l->nnames, sizeof(*l->names));
	l->names[l->nnames++] = (struct lib_name){ name, kind };
	s->libs->declared[bit_of(name) / 64] |= 1ull << bit_of(name) % 64;
}

static bool is(struct piece word, const char *text)
{
	return word.n == strlen(text) && !memcmp(word.s, text, word.n);
}

static bool is_tagged(struct piece word)
{
	return is(word, "struct") || is(word, "union") || is(word, "enum");
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
	s->last = s->word;
	s->word = (struct piece){ s->p, n };
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
		if (is(s->word, "enum") || is(s->last, "enum"))
			s->enum_depth = s->depth;
		if (is_tagged(s->last))
			declare(s, s->word, D_LIB_TYPE);
		s->named = false;
		break;
	case '}':
		if (s->depth == s->enum_depth)
			s->enum_depth = 0;
		s->depth -= s->depth > 0;
		s->word.n = 0;	/* "struct a { int b; };" declares no b */
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

/*
 * Find the names of types, tags, enumerators and inlines.  Extra names do no harm: the library is then parsed without
 * need.
 */
static void find_names(struct d_libs *l, struct lib *lib)
{
	struct scan s = { .arena = l->arena, .libs = l, .lib = lib, .p = lib->src->text, .end = lib->src->text + lib->src->len };

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

static void add_lib(struct d_libs *l, const char *base, const struct source *src, bool all)
{
	struct lib *lib = &l->libs[l->n++];

	lib->src = src;
	lib->base = base;
	lib->all = all;
	find_names(l, lib);
}

void d_libs_text(struct d_libs *l, const char *name, const char *text)
{
	if (l->n < MAX_LIBS)
		add_lib(l, name, source_text(l->arena, name, text, strlen(text)), false);
}

void d_libs_dir(struct d_libs *l, const char *dir, bool all)
{
	struct dirent **entries = NULL;
	int n = scandir(dir, &entries, is_lib, alphasort);

	for (int i = 0; i < n; i++) {
		struct source *src = NULL;

		if (l->n < MAX_LIBS && !source_read(l->arena, arena_printf(l->arena, "%s/%s", dir, entries[i]->d_name), &src))
			add_lib(l, arena_strdup(l->arena, entries[i]->d_name), src, all);
		free(entries[i]);
	}
	free(entries);
}

/* --- use --------------------------------------------------------------------------------------------- */

static struct lib *lib_find(struct d_libs *l, const char *name)
{
	for (size_t i = 0; l && i < l->n; i++)
		if (!strcmp(l->libs[i].base, name))
			return &l->libs[i];
	return NULL;
}

bool d_libs_have(const struct d_prog *p, const char *kind, const char *name)
{
	static const char *const modules[] = { "vmlinux", "kernel", "genunix", "unix" };
	static const char *const providers[] = {
		"dtrace", "profile", "tick", "syscall", "proc", "sched", "rawtp", "pid", "python", "usdt",
	};

	if (!strcmp(kind, "library"))
		return lib_find(p->state->libs, name);
	for (size_t i = 0; !strcmp(kind, "module") && i < sizeof(modules) / sizeof(modules[0]); i++)
		if (!strcmp(modules[i], name))
			return true;
	for (size_t i = 0; !strcmp(kind, "provider") && i < sizeof(providers) / sizeof(providers[0]); i++)
		if (!strcmp(providers[i], name))
			return true;
	return false;
}

static void use(struct d_prog *p, struct lib *lib);

/* Is the target of "#pragma D depends_on KIND NAME" of @lib there?  If it is a library, parse it. */
static bool depends(struct d_prog *p, const struct lib *lib, const char *kind, const char *name)
{
	struct lib *other = !strcmp(kind, "library") ? lib_find(p->state->libs, name) : NULL;

	if (!d_libs_have(p, kind, name) || (other && other->open)) {
		if (lib->all && !strcmp(kind, "library"))
			diag_error(p->state->diag, (struct src_pos){ lib->src, 1, 1 }, "D_PRAGMA_DEPEND",
				   other ? "library %s depends on itself by way of %s" : "library %s depends on %s, which is "
				   "not there", lib->base, name);
		return false;
	}
	if (other)
		use(p, other);
	return true;
}

/* Check all depends_on of @lib, each of which has its own line. */
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
		if (sscanf(line, "#pragma D depends_on %15s %63s", kind, name) == 2 && !depends(p, lib, kind, name))
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
	lib->open = true;
	if (!depends_all(p, lib)) {
		lib->open = false;
		return;
	}
	lib->open = false;
	p->state->lib_order[p->state->nlib_order++] = (size_t)(lib - p->state->libs->libs);
	p->state->in_lib++;
	d_parse(p, lib->src, D_SPEC_FILE);
	p->state->in_lib--;
}

bool d_libs_need(struct d_prog *p, const char *name, enum d_lib_kind kind)
{
	struct d_libs *l = p->state->libs;
	uint32_t bit = bit_of(name);

	if (!l || !(l->declared[bit / 64] >> bit % 64 & 1))
		return false;
	for (size_t i = l->n; i-- > 0;) {
		struct lib *lib = &l->libs[i];

		for (size_t k = 0; !p->state->lib_done[i] && k < lib->nnames; k++)
			if (lib->names[k].kind == kind && !strcmp(lib->names[k].name, name)) {
				use(p, lib);
				return true;
			}
	}
	return false;
}

void d_libs_use(struct d_prog *p, struct d_libs *l)
{
	p->state->libs = l;
	p->state->lib_done = arena_alloc(p->arena, MAX_LIBS * sizeof(bool));
	p->state->lib_order = arena_alloc(p->arena, MAX_LIBS * sizeof(size_t));
	for (size_t i = 0; l && i < l->n; i++)
		if (l->libs[i].all)
			use(p, &l->libs[i]);
}

const char *d_libs_used(const struct d_prog *p, size_t i)
{
	return i < p->state->nlib_order ? p->state->libs->libs[p->state->lib_order[i]].src->name : NULL;
}

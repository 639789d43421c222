#include "base/paths.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/oom.h"

struct found {
	struct arena *a;
	const char **v;
	size_t n, cap;
};

static void add(struct found *f, const char *path)
{
	struct stat st;

	if (lstat(path, &st)) {
		shortage_note(-errno);
		return;
	}
	f->v = arena_grow(f->a, f->v, &f->cap, f->n, sizeof(*f->v));
	f->v[f->n++] = path;
}

static void walk(struct found *f, const char *dir, const char *rest);

/* @dir and @name, then @tail: the pattern from the slash behind that part on, or "". */
static void go_on(struct found *f, const char *dir, const char *name, const char *tail)
{
	const char *path = arena_printf(f->a, "%s%s", dir, name);

	if (*tail)
		walk(f, path, tail);
	else
		add(f, path);
}

static void read_names(struct found *f, const char *dir, const char *part, const char *tail)
{
	DIR *d = opendir(*dir ? dir : ".");
	struct dirent *e;

	if (!d) {
		shortage_note(-errno);
		return;
	}
	for (errno = 0; (e = readdir(d)); errno = 0)
		if (!fnmatch(part, e->d_name, FNM_PERIOD))
			go_on(f, dir, e->d_name, tail);
	shortage_note(-errno);
	closedir(d);
}

/* Without the backslashes that take a character's meaning away. */
static char *plain(struct arena *a, const char *part)
{
	char *text = arena_strdup(a, part), *to = text;

	for (const char *from = part; *from; from++) {
		if (*from == '\\' && from[1])
			from++;
		*to++ = *from;
	}
	*to = '\0';
	return text;
}

/* @rest of the pattern, below @dir, which is "" at the beginning of a path that is relative. */
static void walk(struct found *f, const char *dir, const char *rest)
{
	size_t slashes = strspn(rest, "/"), len = strcspn(rest + slashes, "/");
	const char *part = arena_strndup(f->a, rest + slashes, len), *tail = rest + slashes + len;

	dir = arena_printf(f->a, "%s%.*s", dir, (int)slashes, rest);
	if (!*part)
		add(f, dir);
	else if (strpbrk(part, "*?["))
		read_names(f, dir, part, tail);
	else
		go_on(f, dir, plain(f->a, part), tail);
}

static int by_name(const void *x, const void *y)
{
	return strcmp(*(const char *const *)x, *(const char *const *)y);
}

static void match(struct found *f, const char *pattern)
{
	size_t before = f->n;

	walk(f, "", pattern);
	if (f->n > before)
		qsort(&f->v[before], f->n - before, sizeof(*f->v), by_name);
}

/* The end of the alternative, or of all of them, that begins at @s: a comma, a brace, or NULL. */
static const char *end_of(const char *s, const char *ends)
{
	for (int depth = 0; *s; s++) {
		if (*s == '\\' && s[1])
			s++;
		else if (!depth && strchr(ends, *s))
			return s;
		else
			depth += (*s == '{') - (*s == '}');
	}
	return NULL;
}

static void match_braces(struct found *f, const char *pattern)
{
	const char *open = end_of(pattern, "{"), *close = open ? end_of(open + 1, "}") : NULL, *from, *to;

	if (!close) {
		match(f, pattern);
		return;
	}
	for (from = open + 1; from <= close; from = to + 1) {
		to = end_of(from, ",}");
		match_braces(f, arena_printf(f->a, "%.*s%.*s%s", (int)(open - pattern), pattern, (int)(to - from), from, close + 1));
	}
}

size_t paths_matching(struct arena *a, const char *pattern, bool braces, const char ***ret)
{
	struct found f = { .a = a };

	if (*pattern)
		(braces ? match_braces : match)(&f, pattern);
	*ret = f.v;
	return f.n;
}

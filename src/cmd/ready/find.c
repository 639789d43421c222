#include "cmd/ready/find.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/self.h"

enum { FOLDERS = 2 };

const char *ready_share(struct arena *a, const char *what)
{
	static const char *const places[] = { "../share/dtap", "../share" };	/* installed; the source tree's */
	const char *path;
	char dir[PATH_MAX];

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && self_dir(dir, sizeof(dir)); i++) {
		path = arena_printf(a, "%s%s/%s", dir, places[i], what);
		if (!access(path, R_OK))
			return path;
	}
	path = arena_printf(a, DTAP_SHAREDIR "/%s", what);
	return access(path, R_OK) ? NULL : path;
}

/* The folders of commands that may exist, with a NULL at the end. */
static void folders(struct arena *a, const char *v[static FOLDERS + 1])
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME"), *share = ready_share(a, "commands");
	size_t n = 0;

	if (config && *config == '/')
		v[n++] = arena_printf(a, "%s/dtap/commands", config);
	else if (home && *home == '/')
		v[n++] = arena_printf(a, "%s/.config/dtap/commands", home);
	if (share)
		v[n++] = share;
	v[n] = NULL;
}

/* Is it a valid name of a command, and so no path? */
static bool is_name(const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)name[i]) && name[i] != '-' && name[i] != '_')
			return false;
	return len && *name != '-';
}

/* Root must not run another user's file, in case sudo(8) has kept HOME. */
static bool is_own(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && (st.st_uid == geteuid() || !st.st_uid);
}

const char *ready_find(struct arena *a, const char *name)
{
	const char *dirs[FOLDERS + 1], *path;

	if (!is_name(name, strlen(name)))
		return NULL;
	folders(a, dirs);
	for (size_t i = 0; dirs[i]; i++) {
		path = arena_printf(a, "%s/%s.d", dirs[i], name);
		if (is_own(path))
			return path;
	}
	return NULL;
}

const char *ready_find_variant(struct arena *a, const char *path, const char *name)
{
	const char *file = arena_printf(a, "%.*s/%s.d", (int)(strlen(path) - strlen(".d")), path, name);

	return is_name(name, strlen(name)) && is_own(file) ? file : NULL;
}

struct list {
	struct arena *a;
	struct entry {
		const char *name, *path;
	} *v;
	size_t n, cap;
};

static void add(struct list *l, const char *dir, const char *file)
{
	size_t len = strlen(file);
	struct entry e;

	if (len < 3 || strcmp(file + len - 2, ".d") || !is_name(file, len - 2))
		return;
	e = (struct entry){ arena_strndup(l->a, file, len - 2), arena_printf(l->a, "%s/%s", dir, file) };
	if (!is_own(e.path))
		return;
	for (size_t i = 0; i < l->n; i++)
		if (!strcmp(l->v[i].name, e.name))
			return;		/* that of an earlier folder has precedence */
	l->v = arena_grow(l->a, l->v, &l->cap, l->n, sizeof(*l->v));
	l->v[l->n++] = e;
}

static int by_name(const void *x, const void *y)
{
	return strcmp(((const struct entry *)x)->name, ((const struct entry *)y)->name);
}

void ready_each(struct arena *a, void (*each)(void *ctx, const char *name, const char *path), void *ctx)
{
	struct list l = { .a = a };
	const char *dirs[FOLDERS + 1];

	folders(a, dirs);
	for (size_t i = 0; dirs[i]; i++) {
		DIR *d = opendir(dirs[i]);

		for (struct dirent *e; d && (e = readdir(d)); )
			add(&l, dirs[i], e->d_name);
		if (d)
			closedir(d);
	}
	if (l.n)
		qsort(l.v, l.n, sizeof(*l.v), by_name);
	for (size_t i = 0; i < l.n; i++)
		each(ctx, l.v[i].name, l.v[i].path);
}

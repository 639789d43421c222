#include "probe/exec.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "elf/obj.h"

struct dirs {
	const char **v;
	size_t n, cap;
};

struct libs {
	struct arena *arena;
	struct dirs dirs;
	const char **v;
	size_t n, cap;
};

static bool is_file(const char *path, bool program)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && (!program || st.st_mode & 0111);
}

static const char *real(struct arena *a, const char *path)
{
	char buf[PATH_MAX];

	return realpath(path, buf) ? arena_strdup(a, buf) : NULL;
}

const char *exec_find(struct arena *a, const char *name, const char *root)
{
	const char *path = getenv("PATH"), *end;
	char *full;

	if (!root)
		root = "";
	if (strchr(name, '/')) {
		full = arena_printf(a, "%s%s", *name == '/' ? root : "", name);
		return is_file(full, false) ? real(a, full) : NULL;
	}
	for (path = path ? path : "/usr/bin:/bin"; *name; path = end + 1) {
		end = strchrnul(path, ':');
		full = arena_printf(a, "%s%.*s/%s", root, (int)(end - path), end > path ? path : ".", name);
		if (is_file(full, true))
			return real(a, full);
		if (!*end)
			break;
	}
	return NULL;
}

/* --- libraries ---------------------------------------------------------------------------------------- */

static void add_dir(struct libs *l, const char *root, const char *dir, size_t len)
{
	if (!len)
		return;
	l->dirs.v = arena_grow(l->arena, l->dirs.v, &l->dirs.cap, l->dirs.n, sizeof(*l->dirs.v));
	l->dirs.v[l->dirs.n++] = arena_printf(l->arena, "%s%.*s", root, (int)len, dir);
}

static void add_list(struct libs *l, const char *root, const char *list)
{
	const char *end;

	for (; list && *list; list = *end ? end + 1 : end) {
		end = strchrnul(list, ':');
		add_dir(l, root, list, (size_t)(end - list));
	}
}

/* ld.so.conf(5): a folder a line, and "include PATTERN". */
static void read_conf(struct libs *l, const char *root, const char *path, unsigned int depth)
{
	FILE *f = fopen(path, "re");
	char line[PATH_MAX];
	glob_t g;

	while (f && fgets(line, sizeof(line), f)) {
		size_t n = strcspn(line, "#\n");

		line[n] = '\0';
		if (!strncmp(line, "include ", 8) && depth < 4) {
			if (!glob(arena_printf(l->arena, "%s%s", root, line + 8), 0, NULL, &g)) {
				for (size_t i = 0; i < g.gl_pathc; i++)
					read_conf(l, root, g.gl_pathv[i], depth + 1);
				globfree(&g);
			}
		} else if (line[0] == '/') {
			add_dir(l, root, line, n);
		}
	}
	if (f)
		fclose(f);
}

static void add_lib(struct libs *l, const char *path)
{
	for (size_t i = 0; i < l->n; i++)
		if (!strcmp(l->v[i], path))
			return;
	l->v = arena_grow(l->arena, l->v, &l->cap, l->n, sizeof(*l->v));
	l->v[l->n++] = path;
}

static void find_needed(struct libs *l, struct obj *o)
{
	const struct obj_links *links = obj_links(o);
	const char *path;

	for (unsigned int i = 0; i < links->nneeded; i++) {
		const char *name = links->needed[i];

		if (strchr(name, '/')) {
			path = real(l->arena, name);
			if (path)
				add_lib(l, path);
			continue;
		}
		for (size_t k = 0; k < l->dirs.n; k++) {
			path = arena_printf(l->arena, "%s/%s", l->dirs.v[k], name);
			path = is_file(path, false) ? real(l->arena, path) : NULL;
			if (path) {
				add_lib(l, path);
				break;
			}
		}
	}
}

size_t exec_libraries(struct arena *a, struct obj *o, const char *root, const char ***ret)
{
	struct libs l = { .arena = a };
	struct obj *lib;
	const char *dir = obj_info(o)->path, *slash = strrchr(dir, '/');

	root = root ? root : "";
	add_list(&l, root, getenv("LD_LIBRARY_PATH"));
	read_conf(&l, root, arena_printf(a, "%s/etc/ld.so.conf", root), 0);
	add_list(&l, root, "/lib64:/usr/lib64:/lib:/usr/lib:/usr/local/lib");
	if (slash)	/* a program that brings its library: PREFIX/bin/python and PREFIX/lib */
		add_list(&l, "", arena_printf(a, "%.*s/../lib", (int)(slash - dir), dir));
	find_needed(&l, o);
	for (size_t i = 0; i < l.n; i++) {
		if (obj_open(l.v[i], &lib, NULL))
			continue;
		find_needed(&l, lib);
		obj_close(lib);
	}
	*ret = l.v;
	return l.n;
}

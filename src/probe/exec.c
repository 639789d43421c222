#include "probe/exec.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/paths.h"
#include "base/strbuf.h"
#include "elf/obj.h"

struct dirs {
	const char **v;
	size_t n, cap;
};

struct libs {
	struct arena *arena;
	const char *root;
	struct dirs rpath, env, usual;	/* DT_RPATH of the program, $LD_LIBRARY_PATH, and ld.so's own folders */
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

enum {
	MAX_FIRST_LINE = 256,	/* bytes that the kernel reads */
	MAX_SCRIPTS = 5,	/* nesting of interpreters */
	MAX_CONF = 1 << 18,	/* bytes of ld.so.conf or a file that it includes */
};

/* The first line of a script, without its #!; NULL: not a script. */
static char *first_line(struct arena *a, const char *path)
{
	char line[MAX_FIRST_LINE];
	struct file *f;
	ssize_t n;

	if (file_open(path, &f, NULL))
		return NULL;
	n = file_pread(f->fd, line, sizeof(line) - 1, 0);
	file_close(f);
	if (n < 2 || memcmp(line, "#!", 2))
		return NULL;
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return arena_strdup(a, line + 2);
}

/* The command among env's arguments: "python3", "-S python3 -u", "PYTHONDEVMODE=1 python3". */
static const char *env_command(char **rest)
{
	const char *word;

	while ((word = strtok_r(NULL, " \t\n", rest))) {
		if (!strncmp(word, "-S", 2) && word[2])
			return word + 2;
		if (*word != '-' && !strchr(word, '='))
			return word;
	}
	return NULL;
}

const char *exec_interpreter(struct arena *a, const char *path, const char *root)
{
	for (unsigned int i = 0; path && i < MAX_SCRIPTS; i++) {
		char *line = first_line(a, path), *rest;
		const char *word = line ? strtok_r(line, " \t\n", &rest) : NULL, *slash;

		if (!line)
			return path;
		slash = word ? strrchr(word, '/') : NULL;
		if (slash && !strcmp(slash, "/env"))
			word = env_command(&rest);
		path = word ? exec_find(a, word, root) : NULL;
	}
	return NULL;
}

/* --- libraries ---------------------------------------------------------------------------------------- */

/* Add a folder of a list; $ORIGIN in it is the folder @origin. */
static void add_dir(struct libs *l, struct dirs *d, const char *dir, size_t len, const char *origin)
{
	static const char *const words[] = { "$ORIGIN", "${ORIGIN}" };
	const char *root = l->root;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t n = strlen(words[i]);

		if (!origin || len < n || strncmp(dir, words[i], n))
			continue;
		dir = arena_printf(l->arena, "%s%.*s", origin, (int)(len - n), dir + n);
		len = strlen(dir);
		root = "";
	}
	if (!len)
		return;
	d->v = arena_grow(l->arena, d->v, &d->cap, d->n, sizeof(*d->v));
	d->v[d->n++] = arena_printf(l->arena, "%s%.*s", root, (int)len, dir);
}

static void add_list(struct libs *l, struct dirs *d, const char *list, const char *origin)
{
	const char *end;

	for (; list && *list; list = *end ? end + 1 : end) {
		end = strchrnul(list, ':');
		add_dir(l, d, list, (size_t)(end - list), origin);
	}
}

/* ld.so.conf(5): one folder per line, and "include PATTERN". */
static void read_conf(struct libs *l, const char *path, unsigned int depth)
{
	struct strbuf text = { 0 };
	char *line, *rest;
	struct file *f;
	const char **v;

	if (file_open(path, &f, NULL))
		return;
	if (file_text(f, MAX_CONF, &text))	/* use what was read so far */
		strbuf_putc(&text, '\n');
	file_close(f);
	for (rest = text.s; rest && (line = strsep(&rest, "\n"));) {
		size_t n = strcspn(line, "#");

		line[n] = '\0';
		if (!strncmp(line, "include ", 8) && depth < 4) {
			size_t found = paths_matching(l->arena, arena_printf(l->arena, "%s%s", l->root, line + 8), false, &v);

			for (size_t i = 0; i < found; i++)
				read_conf(l, v[i], depth + 1);
		} else if (line[0] == '/') {
			add_dir(l, &l->usual, line, n, NULL);
		}
	}
	strbuf_fini(&text);
}

static void add_lib(struct libs *l, const char *path)
{
	for (size_t i = 0; i < l->n; i++)
		if (!strcmp(l->v[i], path))
			return;
	l->v = arena_grow(l->arena, l->v, &l->cap, l->n, sizeof(*l->v));
	l->v[l->n++] = path;
}

static bool find_library(struct libs *l, const struct dirs *dirs, const char *name)
{
	for (size_t i = 0; i < dirs->n; i++) {
		const char *path = arena_printf(l->arena, "%s/%s", dirs->v[i], name);

		path = is_file(path, false) ? real(l->arena, path) : NULL;
		if (path) {
			add_lib(l, path);
			return true;
		}
	}
	return false;
}

static const char *folder(struct arena *a, const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? arena_strndup(a, path, (size_t)(slash - path)) : ".";
}

static void find_needed(struct libs *l, struct obj *o)
{
	const struct obj_links *links = obj_links(o);
	const char *origin = folder(l->arena, obj_info(o)->path), *path;
	struct dirs rpath = { 0 }, runpath = { 0 };

	if (!links->runpath)
		add_list(l, &rpath, links->rpath, origin);
	add_list(l, &runpath, links->runpath, origin);
	for (unsigned int i = 0; i < links->nneeded; i++) {
		const char *name = links->needed[i];

		if (strchr(name, '/')) {
			path = real(l->arena, name);
			if (path)
				add_lib(l, path);
			continue;
		}
		if (!find_library(l, &rpath, name) && !(!links->runpath && find_library(l, &l->rpath, name)) &&
		    !find_library(l, &l->env, name) && !find_library(l, &runpath, name))
			find_library(l, &l->usual, name);
	}
}

size_t exec_libraries(struct arena *a, struct obj *o, const char *root, const char ***ret)
{
	struct libs l = { .arena = a, .root = root ? root : "" };
	const struct obj_links *links = obj_links(o);
	const char *origin = folder(a, obj_info(o)->path);
	struct obj *lib;

	if (!links->runpath)
		add_list(&l, &l.rpath, links->rpath, origin);
	add_list(&l, &l.env, getenv("LD_LIBRARY_PATH"), NULL);
	read_conf(&l, arena_printf(a, "%s/etc/ld.so.conf", l.root), 0);
	add_list(&l, &l.usual, "/lib64:/usr/lib64:/lib:/usr/lib:/usr/local/lib", NULL);
	/* A program with its library beside it: PREFIX/bin/python and PREFIX/lib. */
	add_list(&l, &l.usual, "$ORIGIN/../lib", origin);
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

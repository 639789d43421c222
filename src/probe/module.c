#include "probe/module.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "elf/obj.h"
#include "probe/procs.h"
#include "probe/provider.h"

/* function__entry -> function-entry */
static const char *dash_name(struct arena *a, const char *name)
{
	char *s = arena_strdup(a, name), *to = s;

	for (; *name; name++) {
		if (name[0] == '_' && name[1] == '_') {
			*to++ = '-';
			name++;
		} else {
			*to++ = *name;
		}
	}
	*to = '\0';
	return s;
}

static void fill_marker(struct marker *mk, struct arena *a, struct module *m, struct obj *o,
			const struct obj_marker *om)
{
	const char *func = obj_func_at(o, om->addr, NULL);
	struct site *s = &mk->site;

	mk->prov = arena_strdup(a, om->prov);
	mk->func = func ? arena_strdup(a, func) : "";
	mk->raw = arena_strdup(a, om->name);
	mk->name = dash_name(a, om->name);
	s->path = m->path;
	s->dev = m->dev;
	s->ino = m->ino;
	s->off = om->off;
	s->sem_off = om->sem_off;
	s->args_text = arena_strdup(a, om->args);
	s->nargs = obj_operands(o, om, s->args, PROBE_MAX_ARGS);
	if (s->nargs > PROBE_MAX_ARGS)
		s->nargs = PROBE_MAX_ARGS;
	/* What could not be resolved in the file has its `why`; the name of the symbol goes with the file. */
	for (unsigned int i = 0; i < s->nargs; i++)
		s->args[i].sym = NULL;
}

static void module_read(struct module *m, struct arena *a, const struct procs_map *map)
{
	const struct obj_marker *markers = NULL;
	struct strbuf path = { 0 }, why = { 0 };
	int fd = procs_open(map, &path), err;
	const struct arch *arch;
	struct obj *o = NULL;
	size_t n = 0;

	m->is_unread = fd < 0;
	if (fd < 0) {
		m->why = arena_printf(a, "%s: %s", map->path, strerror(-fd));
		goto out;
	}
	m->why = NULL;
	m->path = arena_strdup(a, strbuf_str(&path));
	err = obj_open_fd(fd, m->path, &o, &why);
	if (!err)
		err = obj_markers(o, &markers, &n, &why);
	if (err) {
		m->why = arena_strdup(a, strbuf_str(&why));
		goto out;
	}
	/* A program of another machine runs in an emulator: its code is data to us. */
	arch = arch_find(obj_info(o)->machine);
	if (arch && arch != arch_host())
		goto out;
	python_facts(o, &m->python);
	if (m->python.is_agent)
		m->name = PYTHON_AGENT;
	if (!n)
		goto out;
	m->markers = arena_alloc(a, n * sizeof(*m->markers));
	for (m->nmarkers = 0; m->nmarkers < n; m->nmarkers++)
		fill_marker(&m->markers[m->nmarkers], a, m, o, &markers[m->nmarkers]);
out:
	obj_close(o);
	strbuf_fini(&path);
	strbuf_fini(&why);
}

/* A path through /proc ends with the process it leads through: take one through @map's instead. */
static void module_keep_path(struct module *m, struct arena *a, const struct procs_map *map)
{
	struct strbuf path = { 0 };
	int fd;

	if (!m->nmarkers || strncmp(m->path, "/proc/", 6) || !access(m->path, F_OK))
		return;
	fd = procs_open(map, &path);
	if (fd >= 0) {
		m->path = arena_strdup(a, strbuf_str(&path));
		for (size_t i = 0; i < m->nmarkers; i++)
			m->markers[i].site.path = m->path;
		close(fd);
	}
	strbuf_fini(&path);
}

struct module *module_get(struct probe_set *set, const struct procs_map *map)
{
	struct module **head = set_modules(set), *m;
	const char *slash;

	for (m = *head; m; m = m->next) {
		if (m->ino == map->ino && m->dev == map->dev) {
			/* That process may have ended before its file could be opened. */
			if (m->is_unread)
				module_read(m, set_arena(set), map);
			else
				module_keep_path(m, set_arena(set), map);
			return m;
		}
	}
	m = arena_new_of(set_arena(set), struct module);
	m->dev = map->dev;
	m->ino = map->ino;
	slash = strrchr(map->path, '/');
	m->name = arena_strdup(set_arena(set), slash ? slash + 1 : map->path);
	module_read(m, set_arena(set), map);
	m->next = *head;
	*head = m;
	return m;
}

struct module *module_open(struct probe_set *set, const char *path)
{
	char *real = realpath(path, NULL);	/* as /proc/PID/maps will have it */
	struct procs_map map = { .path = real };
	struct module *m = NULL;
	struct stat st;

	if (real && !stat(real, &st) && S_ISREG(st.st_mode)) {
		/* As the mappings of processes have them, or the same file would be two modules. */
		if (procs_identify_mapped(real, &map.dev, &map.ino)) {
			map.dev = st.st_dev;
			map.ino = st.st_ino;
		}
		m = module_get(set, &map);
	}
	free(real);
	return m;
}

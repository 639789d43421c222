#include "probe/module.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "elf/obj.h"
#include "probe/procs.h"
#include "probe/pygil.h"
#include "probe/provider.h"
#include "target/maps.h"

enum { TYPE_NAME_MAX = 256 };

/* Types in a file are untrusted text: accept only words and stars. */
static const char *take_type(struct arena *a, const char *type)
{
	static const char chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_ *";
	size_t n = strspn(type, chars);

	return n && n < TYPE_NAME_MAX && !type[n] ? arena_strdup(a, type) : NULL;
}

static const struct marker_type *take_types(struct arena *a, const struct obj_marker *om)
{
	struct marker_type *types = arena_alloc(a, (om->ntyped + 1) * sizeof(*types));

	for (unsigned int i = 0; i < om->ntyped; i++) {
		types[i].native = take_type(a, om->typed[i].native);
		types[i].type = take_type(a, om->typed[i].type);
	}
	return types;
}

static void fill_marker(struct marker *mk, struct arena *a, struct module *m, struct obj *o,
			const struct obj_marker *om)
{
	const char *func = om->func ? om->func : obj_func_of(o, om->addr);
	char *name = arena_strdup(a, om->name);
	struct site *s = &mk->site;

	marker_dash(om->name, name);
	mk->prov = arena_strdup(a, om->prov);
	mk->func = func ? arena_strdup(a, func) : "";
	mk->raw = arena_strdup(a, om->name);
	mk->name = name;
	s->file = m->file;
	s->dev = m->dev;
	s->ino = m->ino;
	s->off = om->off;
	s->sem_off = om->sem_off;
	s->gil = pygil_event(om);
	s->args_text = arena_strdup(a, om->args);
	s->nargs = obj_operands(o, om, s->args, PROBE_MAX_ARGS);
	if (s->nargs > PROBE_MAX_ARGS)
		s->nargs = PROBE_MAX_ARGS;
	/* Unresolved symbols have their `why`; the symbol's name belongs to the file, which may be closed. */
	for (unsigned int i = 0; i < s->nargs; i++)
		s->args[i].sym = NULL;
	mk->types = om->typed ? take_types(a, om) : NULL;
}

/* Read @m's markers and facts from its file. */
static void read_file(struct module *m, struct arena *a, struct file *f)
{
	const struct obj_marker *markers = NULL;
	struct strbuf why = { 0 };
	const struct arch *arch;
	struct obj *o = NULL;
	size_t n = 0;
	int err = obj_open_file(f, &o, &why);

	if (!err)
		err = obj_markers(o, &markers, &n, &why);
	if (err) {
		m->why = arena_strdup(a, strbuf_str(&why));
		goto out;
	}
	/* A program for another machine runs in an emulator and cannot be traced. */
	arch = arch_find(obj_info(o)->machine);
	if (arch && arch != arch_host())
		goto out;
	python_facts(o, &m->python);
	n = pygil_markers(o, m->python.version, a, &markers, n);
	if (m->python.is_agent)
		m->name = PYTHON_AGENT;
	if (!n)
		goto out;
	m->file = file_use(f);
	m->markers = arena_alloc(a, n * sizeof(*m->markers));
	for (m->nmarkers = 0; m->nmarkers < n; m->nmarkers++)
		fill_marker(&m->markers[m->nmarkers], a, m, o, &markers[m->nmarkers]);
out:
	obj_close(o);
	strbuf_fini(&why);
}

/* Read @m again; only the notes about which markers were found are kept. */
static void module_read(struct module *m, struct arena *a, const struct procs_map *map)
{
	const struct module old = *m;
	struct strbuf why = { 0 };
	struct file *f = NULL;
	int err = procs_open(map, &f, &why);

	m->is_unread = err;
	m->why = err ? arena_strdup(a, strbuf_str(&why)) : NULL;
	strbuf_fini(&why);
	if (err)
		return;
	m->file = NULL;
	m->markers = NULL;
	m->nmarkers = 0;
	m->python = (struct python_facts){ 0 };
	read_file(m, a, f);
	file_close(f);
	for (size_t i = 0; i < m->nmarkers; i++)
		for (size_t k = 0; k < old.nmarkers; k++)
			if (!strcmp(m->markers[i].raw, old.markers[k].raw) && !strcmp(m->markers[i].prov, old.markers[k].prov)) {
				m->markers[i].is_used |= old.markers[k].is_used;
				m->markers[i].is_named |= old.markers[k].is_named;
			}
	file_close(old.file);
}

bool module_gil_calls(struct probe_set *set, struct module *m, struct marker *mk)
{
	struct obj *o = NULL;
	uint64_t *calls = NULL;

	if (!mk->is_searched && !obj_open_file(m->file, &o, NULL)) {
		mk->ncalls = pygil_calls(o, mk->site.gil, set_arena(set), &calls);
		mk->calls = calls;
		mk->is_searched = true;
		obj_close(o);
	}
	return mk->ncalls;
}

void modules_close(struct module *m)
{
	for (; m; m = m->next)
		file_close(m->file);
}

struct module *module_get(struct probe_set *set, const struct procs_map *map)
{
	struct module **head = set_modules(set), *m;
	const char *slash;

	for (m = *head; m; m = m->next) {
		if (m->ino == map->ino && m->dev == map->dev) {
			/*
			 * Its process may have ended before the file could be opened; or the file was rewritten in
			 * place.
			 */
			if (m->is_unread || (m->file && file_check(m->file)))
				module_read(m, set_arena(set), map);
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
	char *real = realpath(path, NULL);	/* the path in /proc/PID/maps */
	struct procs_map map = { .pid = (uint32_t)getpid(), .path = real };
	struct module *m = NULL;
	struct file *f;

	if (real && !file_open(real, &f, NULL)) {
		/* Device and inode as in mappings of processes; otherwise the same file would be two modules. */
		if (maps_identify(f, &map.dev, &map.ino)) {
			map.dev = f->dev;
			map.ino = f->ino;
		}
		m = module_get(set, &map);
		file_close(f);
	}
	free(real);
	return m;
}

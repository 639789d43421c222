#include "probe/module.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/oom.h"
#include "base/strbuf.h"
#include "elf/obj.h"
#include "probe/procs.h"
#include "probe/pygil.h"
#include "target/maps.h"

enum { TYPE_NAME_MAX = 256, BUCKETS = 1024 };

/* How many that nobody uses are remembered: without markers they are some 100 bytes, with them some KB and a descriptor. */
enum kind { WITHOUT_MARKERS, WITH_MARKERS, KINDS };
static const size_t idle_max[KINDS] = { 2048, 32 };

struct modules {
	struct module *by_file[BUCKETS];
	struct idle {
		struct module *oldest, *newest;
		size_t n;
	} idle[KINDS];
	size_t n;
};

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

/* What obj_operands() reads of @om. */
static const struct obj_marker *keep_note(struct arena *a, const struct obj_marker *om)
{
	struct obj_marker *note = arena_alloc(a, sizeof(*note));
	struct obj_marker_arg *typed = arena_alloc(a, (om->ntyped + 1) * sizeof(*typed));

	*note = (struct obj_marker){ .args = arena_strdup(a, om->args), .ntyped = om->ntyped, .addr = om->addr };
	for (unsigned int i = 0; i < om->ntyped; i++)
		typed[i].operand = om->typed[i].operand;
	note->typed = om->typed ? typed : NULL;
	return note;
}

static void fill_marker(struct marker *mk, struct arena *a, struct module *m, const struct obj_marker *om)
{
	char *name = arena_strdup(a, om->name);
	struct site *s = &mk->site;

	marker_dash(om->name, name);
	mk->prov = arena_strdup(a, om->prov);
	mk->func = om->func ? arena_strdup(a, om->func) : NULL;
	mk->addr = om->addr;
	mk->raw = arena_strdup(a, om->name);
	mk->name = name;
	s->file = m->file;
	s->dev = m->dev;
	s->ino = m->ino;
	s->off = om->off;
	s->sem_off = om->sem_off;
	s->gil = pygil_event(om);
	mk->note = keep_note(a, om);
	s->args_text = mk->note->args;
	mk->types = om->typed ? take_types(a, om) : NULL;
}

static char *copy(const char *text)
{
	char *ret = strdup(text);

	if (!ret)
		oom();
	return ret;
}

/* Not the file's fault, and not for ever. */
static int trouble_of(int err)
{
	return err == -EIO || is_shortage(err) ? err : 0;
}

/* Read @m's markers and facts from its file. */
static void read_file(struct module *m, struct file *f)
{
	const struct obj_marker *markers = NULL;
	struct strbuf why = { 0 };
	const struct arch *arch;
	struct obj *o = NULL;
	struct arena *a = m->arena ? m->arena : arena_new();
	size_t n = 0;
	int err = obj_open_file(f, &o, &why);

	if (!err) {
		errno = 0;
		err = obj_markers(o, &markers, &n, &why);
	}
	if (err) {
		/* libelf says of what could not be read that it is not there, or wrong. */
		m->trouble = trouble_of(errno == EIO ? -EIO : err);
		m->why = copy(strbuf_str(&why));
		goto out;
	}
	/* A program for another machine runs in an emulator and cannot be traced. */
	arch = arch_find(obj_info(o)->machine);
	if (arch && arch != arch_host())
		goto out;
	m->trouble = trouble_of(python_facts(o, &m->python));
	n = pygil_markers(o, m->python.version, a, &markers, n);
	if (m->python.is_agent)
		m->name = PYTHON_AGENT;
	if (!n)
		goto out;
	m->file = file_use(f);
	m->arena = a;
	m->markers = arena_alloc(a, n * sizeof(*m->markers));
	for (m->nmarkers = 0; m->nmarkers < n; m->nmarkers++)
		fill_marker(&m->markers[m->nmarkers], a, m, &markers[m->nmarkers]);
out:
	if (a != m->arena)
		arena_free(a);
	obj_close(o);
	strbuf_fini(&why);
}

/* Read @m again; only the notes about which markers were found are kept, and the texts that the set has. */
static void module_read(struct module *m, const struct procs_map *map)
{
	const struct module old = *m;
	struct strbuf why = { 0 };
	struct file *f = NULL;
	int err = procs_open(map, &f, &why);

	m->is_unread = err;
	m->trouble = trouble_of(err);
	m->why = err ? copy(strbuf_str(&why)) : NULL;
	free(old.why);
	strbuf_fini(&why);
	if (err)
		return;
	if (!m->is_kept)
		m->arena = NULL;
	m->file = NULL;
	m->markers = NULL;
	m->nmarkers = 0;
	m->is_whole = false;
	m->python = (struct python_facts){ 0 };
	read_file(m, f);
	file_close(f);
	for (size_t i = 0; i < m->nmarkers; i++)
		for (size_t k = 0; k < old.nmarkers; k++)
			if (!strcmp(m->markers[i].raw, old.markers[k].raw) && !strcmp(m->markers[i].prov, old.markers[k].prov)) {
				m->markers[i].is_used |= old.markers[k].is_used;
				m->markers[i].is_named |= old.markers[k].is_named;
			}
	file_close(old.file);
	if (!m->is_kept)
		arena_free(old.arena);
}

static void locate(struct marker *mk, struct obj *o)
{
	struct site *s = &mk->site;

	s->nargs = obj_operands(o, mk->note, s->args, PROBE_MAX_ARGS);
	if (s->nargs > PROBE_MAX_ARGS)
		s->nargs = PROBE_MAX_ARGS;
	/* Unresolved symbols have their `why`; the symbol's name belongs to the file, which is closed. */
	for (unsigned int i = 0; i < s->nargs; i++)
		s->args[i].sym = NULL;
}

/* The file cannot be opened again: the site has its operands, and why none of them can be read. */
static void locate_nothing(struct marker *mk)
{
	struct site *s = &mk->site;
	unsigned int n = mk->note->typed ? mk->note->ntyped : arch_operands(arch_host(), mk->note->args, s->args, PROBE_MAX_ARGS);

	s->nargs = n < PROBE_MAX_ARGS ? n : PROBE_MAX_ARGS;
	for (unsigned int i = 0; i < s->nargs; i++)
		s->args[i] = (struct arch_operand){ .size = 8, .why = "the file could not be read again" };
}

/* Of all markers at once: the file is opened for it. */
static void find_rest(struct module *m)
{
	struct obj *o = NULL;

	if (obj_open_file(m->file, &o, NULL))
		o = NULL;
	for (size_t i = 0; i < m->nmarkers; i++) {
		struct marker *mk = &m->markers[i];
		const char *func = mk->func || !o ? NULL : obj_func_of(o, mk->addr);

		if (!mk->func)
			mk->func = func ? arena_strdup(m->arena, func) : "";
		if (o)
			locate(mk, o);
		else
			locate_nothing(mk);
	}
	m->is_whole = true;
	obj_close(o);
}

static const struct marker *whole(const struct module *m, const struct marker *mk)
{
	if (!m->is_whole)
		find_rest((struct module *)(uintptr_t)m);
	return mk;
}

const char *module_func(const struct module *m, const struct marker *mk)
{
	return whole(m, mk)->func;
}

const struct site *module_site(const struct module *m, const struct marker *mk)
{
	return &whole(m, mk)->site;
}

bool module_in_func(const struct module *m, const struct marker *mk, const char *func)
{
	return !*func || desc_glob(func, module_func(m, mk));
}

bool module_gil_calls(struct module *m, struct marker *mk)
{
	struct obj *o = NULL;
	uint64_t *calls = NULL;

	if (!mk->is_searched && !obj_open_file(m->file, &o, NULL)) {
		mk->ncalls = pygil_calls(o, mk->site.gil, m->arena, &calls);
		mk->calls = calls;
		mk->is_searched = true;
		obj_close(o);
	}
	return mk->ncalls;
}

/* --- who uses it ---------------------------------------------------------------------------------------- */

static struct module **bucket(struct modules *all, uint64_t dev, uint64_t ino)
{
	return &all->by_file[(ino ^ ino >> 10 ^ dev * 31) % BUCKETS];
}

struct modules *modules_new(void)
{
	struct modules *all = calloc(1, sizeof(*all));

	if (!all)
		oom();
	return all;
}

static void free_module(struct module *m)
{
	file_close(m->file);
	arena_free(m->arena);
	free(m->why);
	free(m->own_name);
	free(m);
}

void modules_free(struct modules *all)
{
	struct module *m, *next;

	for (size_t i = 0; all && i < BUCKETS; i++)
		for (m = all->by_file[i]; m; m = next) {
			next = m->next;
			free_module(m);
		}
	free(all);
}

size_t modules_count(const struct modules *all)
{
	return all->n;
}

static struct idle *idle_of(struct modules *all, const struct module *m)
{
	return &all->idle[m->nmarkers ? WITH_MARKERS : WITHOUT_MARKERS];
}

/* Out of the list of those that nobody uses. */
static void awake(struct modules *all, struct module *m)
{
	struct idle *l = idle_of(all, m);

	*(m->before ? &m->before->after : &l->oldest) = m->after;
	*(m->after ? &m->after->before : &l->newest) = m->before;
	m->before = m->after = NULL;
	l->n--;
}

static void forget(struct modules *all, struct module *m)
{
	struct module **at = bucket(all, m->dev, m->ino);

	awake(all, m);
	while (*at != m)
		at = &(*at)->next;
	*at = m->next;
	all->n--;
	free_module(m);
}

struct module *module_use(struct modules *all, struct module *m)
{
	if (!m->users++)
		awake(all, m);
	return m;
}

void module_drop(struct modules *all, struct module *m)
{
	struct idle *l;

	if (!m || --m->users)
		return;
	l = idle_of(all, m);
	m->before = l->newest;
	*(l->newest ? &l->newest->after : &l->oldest) = m;
	l->newest = m;
	if (++l->n > idle_max[l - all->idle])
		forget(all, l->oldest);
}

void module_keep(struct modules *all, struct module *m)
{
	if (m->is_kept)
		return;
	m->is_kept = true;
	module_use(all, m);
}

static struct module *add(struct modules *all, const struct procs_map *map)
{
	struct module *m = calloc(1, sizeof(*m)), **head = bucket(all, map->dev, map->ino);
	const char *slash = strrchr(map->path, '/');

	if (!m)
		oom();
	m->dev = map->dev;
	m->ino = map->ino;
	m->name = m->own_name = copy(slash ? slash + 1 : map->path);
	m->users = 1;
	m->next = *head;
	*head = m;
	all->n++;
	return m;
}

struct module *module_get(struct modules *all, const struct procs_map *map)
{
	struct module *m;

	for (m = *bucket(all, map->dev, map->ino); m; m = m->next) {
		if (m->ino != map->ino || m->dev != map->dev)
			continue;
		module_use(all, m);
		/* Its process may have ended before the file could be opened; or the file was rewritten in place. */
		if (m->is_unread || m->trouble || (m->file && file_check(m->file)))
			module_read(m, map);
		return m;
	}
	m = add(all, map);
	module_read(m, map);
	return m;
}

struct module *module_open(struct modules *all, const char *path)
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
		m = module_get(all, &map);
		file_close(f);
	}
	free(real);
	return m;
}

#include "probe/symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/grow.h"
#include "elf/debug.h"
#include "elf/ksyms.h"
#include "elf/obj.h"
#include "probe/maplog.h"
#include "probe/procs.h"
#include "probe/symbols_priv.h"

enum { ROOM = 1024 };	/* processes, of which all that have not ended are kept */

struct symbols *symbols_new(void)
{
	struct symbols *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->arena = arena_new();
	s->room = ROOM;
	return s;
}

void symbols_free(struct symbols *s)
{
	struct process *p;
	size_t pos = 0;

	if (!s)
		return;
	while ((p = bytemap_next(&s->processes, &pos))) {
		free(p->v);
		free(p);
	}
	bytemap_fini(&s->processes);
	ksyms_free(s->ksyms);
	maplog_close(s->log);
	for (struct object *f = s->objects; f; f = f->next)
		obj_close(f->obj);
	arena_free(s->arena);
	free(s);
}

struct object *symbols_object(struct symbols *s, const struct procs_map *map)
{
	struct file *opened;
	const char *slash;
	struct object *f;

	for (f = s->objects; f; f = f->next)
		if (f->ino == map->ino && f->dev == map->dev)
			return f;
	f = arena_new_of(s->arena, struct object);
	f->dev = map->dev;
	f->ino = map->ino;
	slash = strrchr(map->path, '/');
	f->path = arena_strdup(s->arena, map->path);
	f->name = arena_strdup(s->arena, slash ? slash + 1 : map->path);
	if (!procs_open(map, &opened, NULL)) {
		if (obj_open_file(opened, &f->obj, NULL))
			f->obj = NULL;
		file_close(opened);
	}
	f->next = s->objects;
	s->objects = f;
	return f;
}

struct looking {
	struct symbols *s;
	struct process *p;
};

static int add_mapping(void *ctx, const struct procs_map *map)
{
	struct looking *l = ctx;
	struct process *p = l->p;

	if (!grow_array(&p->v, &p->cap, p->n, sizeof(*p->v)))
		return -ENOMEM;
	p->v[p->n++] = (struct mapping){ map->start, map->end, map->off, symbols_object(l->s, map) };
	return 0;
}

static void replace_mappings(struct process *p, const struct process *new)
{
	free(p->v);
	p->v = new->v;
	p->n = new->n;
	p->cap = new->cap;
}

/* False: the process has ended; what was known is kept. */
bool symbols_look(struct symbols *s, struct process *p)
{
	struct process new = { .pid = p->pid };
	struct looking l = { s, &new };

	if (procs_maps(p->pid, add_mapping, &l) || !new.n) {
		free(new.v);
		return false;
	}
	replace_mappings(p, &new);
	return true;
}

/* Forget those that have ended. */
static void forget_ended(struct symbols *s)
{
	struct bytemap alive = { 0 };
	struct process *p;
	size_t pos = 0;

	while ((p = bytemap_next(&s->processes, &pos))) {
		if (procs_is_alive(p->pid) && !bytemap_set(&alive, &p->pid, sizeof(p->pid), p))
			continue;
		free(p->v);
		free(p);
	}
	bytemap_fini(&s->processes);
	s->processes = alive;
	s->room = 2 * alive.n > ROOM ? 2 * alive.n : ROOM;
}

struct process *symbols_process(struct symbols *s, uint32_t pid)
{
	struct process *p = bytemap_get(&s->processes, &pid, sizeof(pid));

	if (p)
		return p;
	if (s->processes.n >= s->room)
		forget_ended(s);
	p = calloc(1, sizeof(*p));
	if (p && !bytemap_set(&s->processes, &pid, sizeof(pid), p)) {
		p->pid = pid;
		return p;
	}
	free(p);
	return NULL;
}

int symbols_follow(struct symbols *s)
{
	s->log = maplog_open();
	return s->log ? maplog_fd(s->log) : -1;
}

void symbols_followed(struct symbols *s)
{
	maplog_read(s->log);
}

static void add_known(struct looking *l, const struct process *p)
{
	int err = 0;

	for (size_t i = 0; i < p->n && !err; i++) {
		const struct mapping *m = &p->v[i];
		const struct procs_map map = { p->pid, m->start, m->end, m->off, m->object->dev, m->object->ino, m->object->path };

		err = add_mapping(l, &map);
	}
}

/* A process that has only been forked has what its parent had, which may be older than the log. */
static void add_parents(struct symbols *s, struct looking *l)
{
	uint32_t pid = maplog_parent(s->log, l->p->pid);
	const struct process *known = pid ? bytemap_get(&s->processes, &pid, sizeof(pid)) : NULL;
	struct process now = { .pid = pid };

	if (pid && symbols_look(s, &now))
		add_known(l, &now);
	else if (known)
		add_known(l, known);
	free(now.v);
}

/* Take the mappings of a process that has ended from the log. */
static void recall(struct symbols *s, struct process *p)
{
	struct process new = { .pid = p->pid };
	struct looking l = { s, &new };

	maplog_each(s->log, p->pid, add_mapping, &l);
	add_parents(s, &l);
	add_known(&l, p);
	replace_mappings(p, &new);
}

/* Has the process become another one, or another program?  Its mappings are not true any more then. */
static void check_life(struct symbols *s, struct process *p, uint64_t stack)
{
	uint64_t life;

	if (!s->log || p->asked == stack)
		return;
	p->asked = stack;
	maplog_read(s->log);
	life = maplog_life(s->log, p->pid);
	if (life != p->life)
		p->n = 0;
	p->life = life;
}

void symbols_watch(struct symbols *s, uint32_t pid)
{
	struct process *p = symbols_process(s, pid);

	if (p)
		symbols_look(s, p);
}

static const struct mapping *find_mapping(const struct process *p, uint64_t addr)
{
	for (size_t i = 0; i < p->n; i++)
		if (addr >= p->v[i].start && addr < p->v[i].end)
			return &p->v[i];
	return NULL;
}

/* The mapped code that is the last before @addr: a file's data is mapped behind it. */
static const struct mapping *find_before(const struct process *p, uint64_t addr)
{
	const struct mapping *m = NULL;

	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].end <= addr && (!m || p->v[i].end > m->end))
			m = &p->v[i];
	return m;
}

/* The variable at @addr, an address outside of mapped code; *at: the address in the file. */
static bool find_data(const struct process *p, uint64_t addr, const struct mapping **m, uint64_t *at, struct obj_func *ret)
{
	uint64_t middle;

	*m = find_before(p, addr);
	if (!*m || !(*m)->object->obj)
		return false;
	/* Only its middle is sure to be in the segment: that need not begin or end with a page. */
	middle = ((*m)->end - (*m)->start) / 2;
	if (!obj_addr((*m)->object->obj, (*m)->off + middle, at))
		return false;
	*at += addr - (*m)->start - middle;
	return obj_data_find((*m)->object->obj, *at, ret);
}

static bool find_func(const struct mapping *m, uint64_t addr, uint64_t *at, struct obj_func *ret)
{
	return m->object->obj && obj_addr(m->object->obj, addr - m->start + m->off, at) &&
	       obj_func_find(m->object->obj, *at, ret);
}

static void set_module(const struct mapping *m, struct symbol *ret)
{
	ret->mod = m->object->name;
	ret->path = m->object->path;
	ret->mod_off = ret->addr - m->start + m->off;
}

void symbols_user(struct symbols *s, uint32_t pid, uint64_t stack, struct symbol *ret)
{
	struct process *p = symbols_process(s, pid);
	const struct mapping *m;
	struct obj_func found;
	uint64_t addr;
	bool known;

	if (!p)
		return;
	check_life(s, p, stack);
	m = find_mapping(p, ret->addr);
	if (!m && p->looked != stack) {		/* once for a stack */
		p->looked = stack;
		if (!symbols_look(s, p) && s->log)
			recall(s, p);
		m = find_mapping(p, ret->addr);
	}
	known = m ? find_func(m, ret->addr, &addr, &found) : find_data(p, ret->addr, &m, &addr, &found);
	if (m && (known || ret->addr < m->end))
		set_module(m, ret);
	if (!known)
		return;
	ret->obj = m->object->obj;
	ret->obj_addr = addr;
	ret->func = found.name;		/* belongs to the file, which stays open */
	ret->off = addr - found.addr;
	ret->size = found.end - found.addr;
}

void symbols_kernel(struct symbols *s, struct symbol *ret)
{
	const struct ksym *k;

	if (!s->ksyms)
		s->ksyms = ksyms_read();
	k = s->ksyms ? ksyms_at(s->ksyms, ret->addr) : NULL;
	if (!k)
		return;
	ret->mod = ret->path = k->mod;
	ret->func = k->name;
	ret->off = ret->addr - k->addr;
}

bool symbol_source(const struct symbol *sym, bool is_caller, const char **file, int *line)
{
	struct debug *d = sym->obj ? obj_debug(sym->obj) : NULL;

	return d && debug_source_at(d, sym->obj_addr - is_caller, file, line);
}

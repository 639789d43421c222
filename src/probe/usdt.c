/*
 * The usdt provider: the static markers (SDT) of running processes.
 *
 *	provider  the marker's provider with the pid behind it: python1234
 *	module    the base name of the file the marker is in: python3.9
 *	function  the one that contains the site, empty when the file does not say
 *	name      the marker's name with - for each __: function-entry
 *
 * A description names a process ("python1234") or is a pattern, and then all of /proc is looked at.  A
 * pattern that fits every pid of a provider (python*, or none at all) is not bound to the processes of this
 * moment when probes are enabled: the kernel arms a file for everyone who runs it, so one system-wide
 * probe then stands for all, and reaches those that start later.
 *
 * A file is read once and remembered by device and inode, also when it has no markers.
 */
#include "probe/provider.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "elf/obj.h"
#include "probe/procs.h"

extern const struct provider provider_usdt;

/* A marker's site with all that a probe needs of it. */
struct marker {
	const char *prov, *func;
	const char *raw;	/* the name as the note has it */
	const char *name;	/* with dashes */
	struct site site;
};

struct module {
	struct module *next;
	uint64_t dev, ino;
	const char *path, *name;	/* name: the base name of the path in its process */
	struct marker *markers;
	size_t nmarkers;
	const char *why;		/* the file was refused: why, else NULL */
};

/* A description on its way through one process. */
struct look {
	struct finding *f;
	const char *base;	/* the provider without the pid; NULL: f->desc->prov is a pattern */
	size_t base_len;
};

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

	if (fd < 0) {
		m->why = arena_printf(a, "%s: %s", map->path, strerror(-fd));
		goto out;
	}
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
	if (!n || (arch && arch != arch_host()))
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

static struct module *module_get(struct probe_set *set, const struct procs_map *map)
{
	struct module **head = set_modules(set), *m;
	const char *slash;

	for (m = *head; m; m = m->next) {
		if (m->ino == map->ino && m->dev == map->dev) {
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

/* Does the pattern fit provider @base with any pid behind it? */
static bool fits_any_pid(const char *pattern, const char *base)
{
	size_t len = strlen(pattern);

	if (!len)
		return true;
	if (pattern[len - 1] != '*' || (len > 1 && pattern[len - 2] == '\\'))
		return false;
	return desc_glob(pattern, base);
}

static const struct known {
	const char *prov, *name, *types[PROBE_MAX_ARGS + 1];
} known[] = {
#define KNOWN(PROV, NAME, ...) { PROV, NAME, { __VA_ARGS__ } },
#include "probe/known.def"
#undef KNOWN
};

static const struct known *find_known(const struct marker *mk)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		unsigned int n = 0;

		while (known[i].types[n])
			n++;
		if (n == mk->site.nargs && !strcmp(known[i].prov, mk->prov) && !strcmp(known[i].name, mk->raw))
			return &known[i];
	}
	return NULL;
}

static void fill_sig(struct probe_sig *sig, const struct marker *mk)
{
	const struct known *k = find_known(mk);
	const struct site *s = &mk->site;

	sig->nargs = s->nargs;
	for (unsigned int i = 0; i < s->nargs; i++) {
		sig->args[i].size = s->args[i].size > 8 ? 8 : s->args[i].size;
		sig->args[i].sign = s->args[i].sign;
		sig->args[i].is_float = s->args[i].is_float;
		sig->args[i].type = k ? k->types[i] : NULL;
	}
}

static void look_at_marker(struct look *l, uint32_t pid, struct module *m, const struct marker *mk)
{
	const struct probe_desc *desc = l->f->desc;
	bool wide = !l->base && l->f->want == PROBE_ENABLE && fits_any_pid(desc->prov, mk->prov), made;
	struct probe key = { .mod = m->name, .func = mk->func, .name = mk->name, .kind = PROBE_SITES,
			     .pid = wide ? 0 : pid, .pid_suffix = wide };
	char prov[256];
	struct probe *p;

	if (wide)
		snprintf(prov, sizeof(prov), "%s", mk->prov);
	else
		snprintf(prov, sizeof(prov), "%s%" PRIu32, mk->prov, pid);
	if (!l->base && !wide && !desc_glob(desc->prov, prov))
		return;
	key.prov = prov;
	p = set_probe(l->f->set, &key, &made);
	if (made)
		fill_sig(&p->sig, mk);
	probe_add_site(l->f->set, p, set_site(l->f->set, &mk->site));
	found_add(l->f, p);
}

static int look_at_map(void *ctx, const struct procs_map *map)
{
	struct look *l = ctx;
	struct module *m = module_get(l->f->set, map);
	const struct probe_desc *desc = l->f->desc;

	if (m->why && l->base) {
		struct strbuf *why = set_why(l->f->set);

		if (!strstr(strbuf_str(why), m->why))
			strbuf_printf(why, "%s%s", why->len ? "; " : "", m->why);
	}
	if (!m->nmarkers || !desc_glob(desc->mod, m->name))
		return 0;
	for (size_t i = 0; i < m->nmarkers; i++) {
		const struct marker *mk = &m->markers[i];

		if (l->base && (strncmp(mk->prov, l->base, l->base_len) || mk->prov[l->base_len]))
			continue;
		if (desc_glob(desc->name, mk->name) && desc_glob(desc->func, mk->func))
			look_at_marker(l, map->pid, m, mk);
	}
	return 0;
}

static void look_at_any(void *ctx, uint32_t pid)
{
	procs_maps(pid, look_at_map, ctx);
}

/*
 * A provider without pattern: every way to cut it into a base name and a pid, because base names may end
 * in digits.  The longest pid first: of two that exist it is the likelier.
 */
static void find_named(struct finding *f)
{
	const char *prov = f->desc->prov, *longest = prov + strlen(prov), *digits;
	bool matched = false;

	while (longest > prov && isdigit((unsigned char)longest[-1]))
		longest--;
	for (digits = longest; *digits && !matched; digits++) {
		struct look l = { f, prov, (size_t)(digits - prov) };
		unsigned long long pid = strtoull(digits, NULL, 10);
		size_t before = f->out->n;
		int err;

		if (*digits == '0' || digits == prov || pid > INT32_MAX)
			continue;
		err = procs_maps((uint32_t)pid, look_at_map, &l);
		matched = f->out->n > before;
		if (err && digits == longest)
			strbuf_printf(set_why(f->set), "process %llu: %s", pid, strerror(-err));
	}
	if (matched)
		strbuf_clear(set_why(f->set));
}

static void find(struct finding *f)
{
	struct look l = { .f = f };
	int err;

	if (*f->desc->prov && !desc_is_glob(f->desc->prov)) {
		find_named(f);
		return;
	}
	/* "BEGIN" or "tick-1s" alone has its answer already and should not cost a look at every process. */
	if (!*f->desc->prov && *f->desc->name && !desc_is_glob(f->desc->name) && f->out->n > f->before)
		return;
	err = procs_each(look_at_any, &l);
	if (err)
		strbuf_printf(set_why(f->set), "/proc: %s", strerror(-err));
}

const struct provider provider_usdt = { find };

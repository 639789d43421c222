#include "probe/python.h"

#include <errno.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "abi/agent.h"
#include "abi/cpython.h"
#include "abi/marker.h"
#include "abi/segment.h"
#include "base/arena.h"
#include "base/grow.h"
#include "base/now.h"
#include "base/oom.h"
#include "elf/obj.h"
#include "probe/module.h"
#include "probe/procs.h"
#include "probe/provider.h"
#include "probe/pyfunc.h"

static const struct unsound {
	const char *name;
	uint16_t first, last;
	const char *why;
} unsound[] = {
#define UNSOUND(name, first, last, why) { name, first, last, why },
#define EXPORTS(symbol, version)
#include "probe/python.def"
#undef EXPORTS
#undef UNSOUND
};

static const struct exported {
	const char *symbol;
	uint16_t version;
} exported[] = {
#define UNSOUND(name, first, last, why)
#define EXPORTS(symbol, version) { symbol, version },
#include "probe/python.def"
#undef EXPORTS
#undef UNSOUND
};

const char *python_unsound(uint16_t version, const char *name)
{
	for (size_t i = 0; i < sizeof(unsound) / sizeof(unsound[0]); i++) {
		const struct unsound *u = &unsound[i];

		if (version >= u->first && version <= u->last && !strcmp(u->name, name))
			return u->why;
	}
	return NULL;
}

/*
 * Py_Version is a constant: PY_VERSION_HEX in an unsigned long (C API, "API and ABI Versioning").  -EIO: the symbols could not be
 * read, which libelf says like "there are none": the file would seem to be another version, or no Python.
 */
static int version_of(struct obj *o, uint16_t *ret)
{
	uint64_t addr, off, hex;
	int err;

	*ret = 0;
	errno = 0;
	if (obj_exports(o, "Py_Version", &addr)) {
		if (!obj_offset(o, addr, false, &off))
			return 0;
		err = obj_read(o, off, &hex, sizeof(hex));
		if (!err)
			*ret = (uint16_t)(hex >> 16);
		return err;
	}
	for (size_t i = 0; errno != EIO && i < sizeof(exported) / sizeof(exported[0]); i++)
		if (obj_exports(o, exported[i].symbol, &addr)) {
			*ret = exported[i].version;
			return 0;
		}
	return errno == EIO ? -EIO : 0;
}

int python_facts(struct obj *o, struct python_facts *ret)
{
	const char *soname = obj_links(o)->soname;

	ret->is_agent = soname && !strcmp(soname, PYTHON_AGENT);
	ret->version = 0;
	return ret->is_agent ? 0 : version_of(o, &ret->version);
}

static const struct marker *find_marker(const struct module *m, const char *name)
{
	for (size_t i = 0; m && i < m->nmarkers; i++)
		if (!strcmp(m->markers[i].prov, PYTHON_PROVIDER) && !strcmp(m->markers[i].raw, name))
			return &m->markers[i];
	return NULL;
}

const struct marker *python_away(const struct module *agent)
{
	for (size_t i = 0; i < agent->nmarkers; i++)
		if (!strcmp(agent->markers[i].prov, PYTHON_AWAY) && !strcmp(agent->markers[i].raw, "function"))
			return &agent->markers[i];
	return NULL;
}

struct collecting {
	struct python_process *p;
	struct probe_set *set;
};

/* @p becomes the user in the caller's place. */
static void add_module(struct python_process *p, struct module *m)
{
	if (!grow_array(&p->modules, &p->cap, p->nmodules, sizeof(*p->modules)))
		oom();
	p->modules[p->nmodules++] = m;
}

static void drop_modules(struct probe_set *set, struct module **v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		module_drop(set_modules(set), v[i]);
}

static int collect(void *ctx, const struct procs_map *map)
{
	struct collecting *c = ctx;
	struct python_process *p = c->p;
	struct module *m;
	size_t i;

	/* A process that is traced has dozens of these, of which none comes again in another. */
	if (!strcmp(map->path, "/memfd:" ABI_CODE))
		return 0;
	m = module_get(set_modules(c->set), map);
	for (i = 0; i < p->nmodules; i++)
		if (p->modules[i] == m) {
			module_drop(set_modules(c->set), m);
			return 0;
		}
	add_module(p, m);
	return 0;
}

/* Find the interpreter and the agent among the modules. */
static void recognise(struct python_process *p, struct module *agent)
{
	p->agent = NULL;
	p->version = 0;
	for (size_t i = 0; i < p->nmodules; i++) {
		if (p->modules[i]->python.is_agent) {
			/* There can be two, from a site-packages folder and preloaded: prefer this tracer's own. */
			if (p->agent != agent || !agent)
				p->agent = p->modules[i];
		} else if (!p->version) {
			p->version = p->modules[i]->python.version;
		}
	}
	p->loaded = p->agent;
	if (p->version < 0x0300 + CPYTHON_FIRST || p->version > 0x0300 + CPYTHON_LAST)
		p->agent = NULL;
	else if (!p->agent)
		p->agent = agent;
}

enum { PROGRAMS = 512 };	/* programs in the cache; more replace others */

struct python_cache {
	struct {
		uint64_t dev, ino;
		enum probe_is_python is;	/* GONE: an empty row */
	} rows[PROGRAMS];
};

static struct python_cache *get_cache(struct probe_set *set)
{
	struct python_cache **cache = set_python_cache(set);

	if (!*cache)
		*cache = arena_alloc(set_arena(set), sizeof(**cache));
	return *cache;
}

/* Forget what was seen of it, but not the memory for it. */
static void forget(struct python_process *p, struct probe_set *set, uint32_t pid)
{
	drop_modules(set, p->modules, p->nmodules);
	*p = (struct python_process){ .pid = pid, .modules = p->modules, .cap = p->cap };
}

int python_look(struct python_process *p, struct probe_set *set, uint32_t pid)
{
	struct collecting c = { p, set };
	int err;

	forget(p, set, pid);
	err = procs_maps(pid, collect, &c);
	if (!err)
		recognise(p, set_agent(set));
	/* Is a file that could not be read the interpreter? */
	for (size_t i = 0; i < p->nmodules && !p->version; i++)
		if (p->modules[i]->trouble)
			err = p->modules[i]->trouble;
	if (err)	/* nothing is known of it, not even that it lacks something */
		forget(p, set, pid);
	return err;
}

void python_done(struct python_process *p, struct probe_set *set)
{
	forget(p, set, 0);
	free(p->modules);
	*p = (struct python_process){ 0 };
}

enum { SEEN = 1024, SEEN_MS = 1000 };	/* processes that are remembered, for how long; more replace others */

/* What was seen last of many processes. */
struct python_seen {
	uint64_t swept_ms;	/* when those that were too old were forgotten */
	struct seen {
		uint32_t pid;		/* 0: nothing */
		uint64_t dev, ino;	/* of its program */
		uint64_t ms;
		uint32_t hold;		/* of set_hold() */
		struct module **modules;
		size_t n;
	} rows[SEEN];
};

static void empty_row(struct seen *row, struct probe_set *set)
{
	drop_modules(set, row->modules, row->n);
	free(row->modules);
	*row = (struct seen){ 0 };
}

void python_seen_free(struct python_seen *seen)
{
	for (size_t i = 0; seen && i < SEEN; i++)
		free(seen->rows[i].modules);
	free(seen);
}

static struct python_seen *get_seen(struct probe_set *set, uint64_t now)
{
	struct python_seen **at = set_python_seen(set), *seen = *at;

	if (!seen) {
		seen = *at = calloc(1, sizeof(*seen));
		if (!seen)
			oom();
		seen->swept_ms = now;
	}
	for (size_t i = 0; now - seen->swept_ms > SEEN_MS && i < SEEN; i++)
		if (seen->rows[i].pid && now - seen->rows[i].ms > SEEN_MS)
			empty_row(&seen->rows[i], set);
	if (now - seen->swept_ms > SEEN_MS)
		seen->swept_ms = now;
	return seen;
}

static void fill_row(struct seen *row, struct probe_set *set, const struct python_process *p, const struct stat *program)
{
	empty_row(row, set);
	row->modules = calloc(p->nmodules + 1, sizeof(*row->modules));
	if (!row->modules)
		oom();
	for (; row->n < p->nmodules; row->n++)
		row->modules[row->n] = module_use(set_modules(set), p->modules[row->n]);
	row->pid = p->pid;
	row->dev = program->st_dev;
	row->ino = program->st_ino;
	row->ms = now_ms();
	row->hold = set_hold(set);
}

static int look_again(struct python_process *p, struct probe_set *set, uint32_t pid, uint32_t hold)
{
	uint64_t now = now_ms();
	struct seen *row = &get_seen(set, now)->rows[pid % SEEN];
	struct stat st = { 0 };
	char path[32];
	int err;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/exe", pid);
	if (stat(path, &st) && errno != ENOENT)		/* a thread of the kernel has none */
		return python_look(p, set, pid);
	if (row->pid != pid || (hold && row->hold != hold) || row->dev != st.st_dev || row->ino != st.st_ino || now - row->ms > SEEN_MS) {
		err = python_look(p, set, pid);
		if (!err)
			fill_row(row, set, p, &st);
		return err;
	}
	forget(p, set, pid);
	for (size_t i = 0; i < row->n; i++)
		add_module(p, module_use(set_modules(set), row->modules[i]));
	recognise(p, set_agent(set));
	return 0;
}

int python_look_again(struct python_process *p, struct probe_set *set, uint32_t pid)
{
	return look_again(p, set, pid, 0);
}

int python_look_held(struct python_process *p, struct probe_set *set, uint32_t pid)
{
	uint32_t hold = set_hold(set);

	return hold ? look_again(p, set, pid, hold) : python_look(p, set, pid);
}

/* Does the process have a marker of that name outside of the agent? */
static bool has_own(const struct python_process *p, const char *name)
{
	for (size_t i = 0; i < p->nmodules; i++)
		if (!p->modules[i]->python.is_agent && find_marker(p->modules[i], name))
			return true;
	return false;
}

bool python_names_file(const struct probe_desc *desc)
{
	return *desc->mod && !desc_is_glob(desc->mod);
}

bool python_takes(const struct python_process *p, enum python_mode mode, const struct probe_desc *desc,
		  const struct module *m, const char *name)
{
	bool agent = p->agent && find_marker(p->agent, name);

	/* If preloaded, the agent is also in programs that then execute the interpreter. */
	if (m->python.is_agent && m != p->agent)
		return false;
	if (python_names_file(desc))
		return true;
	if (mode == PYTHON_NEVER)
		agent = false;
	else if (mode != PYTHON_ALWAYS && agent)
		agent = !has_own(p, name) || python_unsound(p->version, name);
	return agent ? m == p->agent : !m->python.is_agent;
}

/*
 * The agent has all events of these two, also the calls before it is set up (agent/early.h); its others begin later, or
 * end sooner.
 */
static bool has_same_events(const char *name)
{
	return !strcmp(name, "function__entry") || !strcmp(name, "function__return");
}

/* Are all of its own markers of that name in the same function, so that they are one probe? */
static bool is_one_probe(const struct python_process *p, const char *name)
{
	const char *func = NULL;

	for (size_t i = 0; i < p->nmodules; i++) {
		const struct module *m = p->modules[i];

		for (size_t k = 0; k < m->nmarkers && !m->python.is_agent; k++) {
			if (strcmp(m->markers[k].prov, PYTHON_PROVIDER) || strcmp(m->markers[k].raw, name))
				continue;
			if (func && strcmp(func, module_func(m, &m->markers[k])))
				return false;
			func = module_func(m, &m->markers[k]);
		}
	}
	return func;
}

/* Does it name a process, and neither a file nor a function? */
static bool is_of_process(const struct probe_desc *desc)
{
	return *desc->prov && !desc_is_glob(desc->prov) && !*desc->mod && !*desc->func;
}

int python_twin(const struct python_process *p, enum python_mode mode, const struct probe_desc *desc, const char *name)
{
	if (mode != PYTHON_EITHER || !p->agent || !is_of_process(desc) || !has_same_events(name) ||
	    !find_marker(p->agent, name) || python_unsound(p->version, name) || !is_one_probe(p, name))
		return -1;
	return marker_number(name);
}

/* --- what a tracer asks before it loads the agent ------------------------------------------------------- */

/* Does @desc, apart from its provider, match this marker of the agent? */
static bool describes(const struct probe_desc *desc, const struct module *agent, const struct marker *mk)
{
	return !strcmp(mk->prov, PYTHON_PROVIDER) && desc_glob(desc->mod, agent->name) && desc_glob(desc->name, mk->name) &&
	       module_in_func(agent, mk, desc->func);
}

/* Can the provider match "python" with some pid? */
static bool names_python(const struct probe_desc *desc)
{
	size_t len = strcspn(desc->prov, "*?[\\"), own = strlen(PYTHON_PROVIDER);

	if (desc->prov[len])
		return !strncmp(desc->prov, PYTHON_PROVIDER, len < own ? len : own);
	return !len || (!strncmp(desc->prov, PYTHON_PROVIDER, own) && isdigit((unsigned char)desc->prov[own]));
}

bool probe_wants_python(const struct probe_desc *desc, uint32_t pid)
{
	return desc_pid(desc->prov) == pid && (pyfunc_describes(desc) || names_python(desc));
}

bool probe_agent_named(struct probe_set *set, const struct probe_desc *desc)
{
	const struct module *agent = set_agent(set);

	if (pyfunc_describes(desc))
		return agent;
	if (desc->id || !agent || !names_python(desc))
		return false;
	for (size_t i = 0; i < agent->nmarkers; i++)
		if (describes(desc, agent, &agent->markers[i]))
			return true;
	return false;
}

/* Is it one that the tracer fires? */
static bool is_tracers(const struct probe_desc *desc)
{
	bool own = !strcmp(desc->name, "BEGIN") || !strcmp(desc->name, "END") || !strcmp(desc->name, "ERROR");

	return !desc->id && !*desc->mod && !*desc->func &&
	       ((own && (!*desc->prov || !strcmp(desc->prov, "dtrace"))) ||
		(!strncmp(desc->name, "tick-", 5) && (!*desc->prov || !strcmp(desc->prov, "profile"))));
}

/* Do the agent's markers that @desc matches, one at least, have the events of the interpreter's, or no equal there? */
static bool is_replaced(const struct module *agent, const struct probe_desc *desc, bool *some)
{
	bool any = false;

	for (size_t i = 0; i < agent->nmarkers; i++) {
		const struct marker *mk = &agent->markers[i];

		if (!describes(desc, agent, mk))
			continue;
		if (has_same_events(mk->raw))
			*some = true;
		else if (marker_number(mk->raw) <= ABI_MARKER_audit)	/* CPython's own come first */
			return false;
		any = true;
	}
	return any;
}

bool probe_agent_replaces(struct probe_set *set, const struct probe_desc *descs, size_t n)
{
	const struct module *agent = set_agent(set);
	bool some = false;

	for (size_t i = 0; i < n; i++) {
		if (is_tracers(&descs[i]) || (agent && pyfunc_describes(&descs[i])))
			continue;
		if (!agent || descs[i].id || !is_of_process(&descs[i]) || !names_python(&descs[i]) ||
		    !is_replaced(agent, &descs[i], &some))
			return false;
	}
	return some;
}

/* Does @desc take one of the agent's markers in the process? */
static bool takes_agent(const struct python_process *p, struct probe_set *set, const struct probe_desc *desc)
{
	for (size_t i = 0; p->agent && i < p->agent->nmarkers; i++) {
		const struct marker *mk = &p->agent->markers[i];

		if (describes(desc, p->agent, mk) && (python_takes(p, set_python_mode(set), desc, p->agent, mk->raw) ||
						      python_twin(p, set_python_mode(set), desc, mk->raw) >= 0))
			return true;
	}
	return false;
}

static bool look_at_meant(struct python_process *p, struct probe_set *set, uint32_t pid, const struct probe_desc *desc)
{
	char prov[32];
	int err;

	snprintf(prov, sizeof(prov), PYTHON_PROVIDER "%" PRIu32, pid);
	if (desc->id || !desc_glob(desc->prov, prov))
		return false;
	err = python_look(p, set, pid);
	set_trouble(set, err);
	return !err;
}

bool probe_agent_needed(struct probe_set *set, const char *path, const struct probe_desc *desc)
{
	struct module *m = module_open(set_modules(set), path);
	struct python_process p = { 0 };
	bool needed = true;

	if (m)
		add_module(&p, m);
	if (m && m->python.version) {
		recognise(&p, set_agent(set));
		needed = pyfunc_describes(desc) ? p.agent != NULL : takes_agent(&p, set, desc);
	}
	python_done(&p, set);
	return needed;
}

struct each {
	struct probe_set *set;
	void (*fn)(void *ctx, uint32_t pid);
	void *ctx;
};

static void each_process(void *ctx, uint32_t pid)
{
	struct python_process p = { 0 };
	struct each *e = ctx;

	if (!python_look_again(&p, e->set, pid) && p.agent)
		e->fn(e->ctx, pid);
	python_done(&p, e->set);
}

int probe_agent_each(struct probe_set *set, void (*fn)(void *ctx, uint32_t pid), void *ctx)
{
	struct each e = { set, fn, ctx };

	return procs_each(each_process, &e);
}

/* --- processes that may become Pythons ------------------------------------------------------------------ */

/* Can the program at @path be a Python? */
static enum probe_is_python classify_file(const char *path)
{
	enum probe_is_python is = PROBE_PYTHON_NO;
	const struct obj_links *links;
	struct obj *o = NULL;
	uint16_t version;
	int err = obj_open(path, &o, NULL);

	if (err) {
		errno = -err;
		return is_shortage(err) ? PROBE_PYTHON_UNKNOWN : PROBE_PYTHON_GONE;
	}
	links = obj_links(o);
	for (unsigned int i = 0; i < links->nneeded; i++)
		if (strstr(links->needed[i], "python"))
			is = PROBE_PYTHON_LOADING;
	err = version_of(o, &version);
	if (version)
		is = PROBE_PYTHON_YES;
	obj_close(o);
	errno = -err;
	return err ? PROBE_PYTHON_UNKNOWN : is;
}

static int is_mapped(void *ctx, const struct procs_map *map)
{
	const char *slash = strrchr(map->path, '/');

	(void)ctx;
	return strstr(slash, PYTHON_PROVIDER) ? 1 : 0;
}

/* Most programs executed on a machine are not Python, and they are the same again and again: so they are cached. */
enum probe_is_python probe_is_python(struct probe_set *set, uint32_t pid)
{
	struct python_cache *cache = get_cache(set);
	enum probe_is_python is_python;
	struct python_process p = { 0 };
	char path[32];
	struct stat st;
	size_t i;
	int mapped;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/exe", pid);
	if (stat(path, &st))
		return PROBE_PYTHON_GONE;
	i = (st.st_ino ^ st.st_dev << 3) % PROGRAMS;
	if (!cache->rows[i].is || cache->rows[i].ino != st.st_ino || cache->rows[i].dev != st.st_dev) {
		cache->rows[i].ino = st.st_ino;
		cache->rows[i].dev = st.st_dev;
		cache->rows[i].is = classify_file(path);
		if (cache->rows[i].is == PROBE_PYTHON_UNKNOWN) {
			cache->rows[i].is = PROBE_PYTHON_GONE;	/* the next one looks again */
			return PROBE_PYTHON_UNKNOWN;
		}
	}
	if (cache->rows[i].is == PROBE_PYTHON_YES)
		return PROBE_PYTHON_YES;
	mapped = procs_maps(pid, is_mapped, NULL);
	if (is_shortage(mapped)) {
		errno = -mapped;
		return PROBE_PYTHON_UNKNOWN;
	}
	if (mapped <= 0)
		return mapped < 0 ? PROBE_PYTHON_GONE : cache->rows[i].is;
	python_look(&p, set, pid);
	is_python = p.version ? PROBE_PYTHON_YES : PROBE_PYTHON_LOADING;
	python_done(&p, set);
	return is_python;
}

/* Does the process have a marker of that name outside of the agent that a description matched? */
static bool has_used(const struct python_process *p, const char *name)
{
	for (size_t i = 0; i < p->nmodules; i++) {
		const struct marker *mk = p->modules[i]->python.is_agent ? NULL : find_marker(p->modules[i], name);

		if (mk && mk->is_used)
			return true;
	}
	return false;
}

/* Are there markers of @desc that the agent has, and that are not yet used from the process's own files? */
static bool lacks_used(const struct python_process *p, struct probe_set *set, const struct probe_desc *desc)
{
	if (python_names_file(desc) || set_python_mode(set) == PYTHON_NEVER || !desc_is_glob(desc->prov))
		return false;
	for (size_t i = 0; p->agent && i < p->agent->nmarkers; i++)
		if (describes(desc, p->agent, &p->agent->markers[i]) && !has_used(p, p->agent->markers[i].raw))
			return true;
	return false;
}

/* Does the agent serve @desc in the process; with @later, also for markers of its own files that are not in use? */
static bool serves(struct probe_set *set, uint32_t pid, const struct probe_desc *desc, bool later)
{
	struct python_process p = { 0 };
	bool is;

	if (pyfunc_describes(desc))
		is = pyfunc_is_of(desc, pid) && !python_look(&p, set, pid) && p.agent;
	else
		is = look_at_meant(&p, set, pid, desc) && (takes_agent(&p, set, desc) || (later && lacks_used(&p, set, desc)));
	python_done(&p, set);
	return is;
}

bool probe_agent_serves(struct probe_set *set, uint32_t pid, const struct probe_desc *desc)
{
	return serves(set, pid, desc, false);
}

bool probe_agent_serves_later(struct probe_set *set, uint32_t pid, const struct probe_desc *desc)
{
	return serves(set, pid, desc, true);
}

uint32_t probe_agent_leave(struct probe_set *set, uint32_t pid)
{
	struct python_process p = { 0 };
	uint32_t leave = 0;
	size_t i, j;

	if (!set_uses_own(set))
		return 0;
	python_look(&p, set, pid);
	for (i = 0; i < p.nmodules; i++) {
		const struct module *m = p.modules[i];

		for (j = 0; j < m->nmarkers && !m->python.is_agent; j++) {
			const struct marker *twin = p.agent ? find_marker(p.agent, m->markers[j].raw) : NULL;

			if (!m->markers[j].is_used || strcmp(m->markers[j].prov, PYTHON_PROVIDER) ||
			    (twin && twin->is_named))
				continue;
			if (marker_number(m->markers[j].raw) >= 0)
				leave |= 1u << marker_number(m->markers[j].raw);
		}
	}
	python_done(&p, set);
	return leave;
}

#include "probe/python.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "abi/agent.h"
#include "base/arena.h"
#include "elf/obj.h"
#include "probe/module.h"
#include "probe/procs.h"
#include "probe/provider.h"

/* The versions that the agent serves. */
enum { AGENT_FIRST = 0x0309, AGENT_LAST = 0x030f };

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

/* Py_Version is a constant: PY_VERSION_HEX in an unsigned long (C API, "API and ABI Versioning"). */
static uint16_t version_of(struct obj *o)
{
	uint64_t addr, off, hex;

	if (obj_exports(o, "Py_Version", &addr)) {
		if (!obj_offset(o, addr, false, &off) || obj_read(o, off, &hex, sizeof(hex)))
			return 0;
		return (uint16_t)(hex >> 16);
	}
	for (size_t i = 0; i < sizeof(exported) / sizeof(exported[0]); i++)
		if (obj_exports(o, exported[i].symbol, &addr))
			return exported[i].version;
	return 0;
}

void python_facts(struct obj *o, struct python_facts *ret)
{
	const char *soname = obj_links(o)->soname;

	ret->is_agent = soname && !strcmp(soname, PYTHON_AGENT);
	ret->version = ret->is_agent ? 0 : version_of(o);
}

static const struct marker *find_marker(const struct module *m, const char *name)
{
	for (size_t i = 0; m && i < m->nmarkers; i++)
		if (!strcmp(m->markers[i].prov, PYTHON_PROVIDER) && !strcmp(m->markers[i].raw, name))
			return &m->markers[i];
	return NULL;
}

struct collecting {
	struct python_process *p;
	struct probe_set *set;
};

static int collect(void *ctx, const struct procs_map *map)
{
	struct collecting *c = ctx;
	struct python_process *p = c->p;
	struct module *m = module_get(c->set, map);
	size_t i;

	for (i = 0; i < p->nmodules; i++)
		if (p->modules[i] == m)
			return 0;
	p->modules = arena_grow(set_arena(c->set), p->modules, &p->cap, p->nmodules, sizeof(*p->modules));
	p->modules[p->nmodules++] = m;
	return 0;
}

/* Know the interpreter and the agent among the modules. */
static void recognise(struct python_process *p, struct module *agent)
{
	p->agent = NULL;
	p->version = 0;
	for (size_t i = 0; i < p->nmodules; i++) {
		if (p->modules[i]->python.is_agent) {
			/* There can be two, from a site-packages folder and preloaded: this tracer's own then. */
			if (p->agent != agent || !agent)
				p->agent = p->modules[i];
		} else if (!p->version) {
			p->version = p->modules[i]->python.version;
		}
	}
	p->loaded = p->agent;
	if (p->version < AGENT_FIRST || p->version > AGENT_LAST)
		p->agent = NULL;
	else if (!p->agent)
		p->agent = agent;
}

int python_look(struct python_process *p, struct probe_set *set, uint32_t pid)
{
	struct collecting c = { p, set };
	int err;

	p->pid = pid;
	p->nmodules = 0;
	err = procs_maps(pid, collect, &c);
	recognise(p, set_agent(set));
	return err;
}

/* Has the process a marker of that name that the agent did not bring? */
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

	/* Preloaded, it is in the programs on the way to the interpreter, too. */
	if (m->python.is_agent && m != p->agent)
		return false;
	if (python_names_file(desc))
		return true;
	if (mode == PYTHON_NEVER)
		agent = false;
	else if (mode == PYTHON_AUTO && agent)
		agent = !has_own(p, name) || python_unsound(p->version, name);
	return agent ? m == p->agent : !m->python.is_agent;
}

/* --- what a tracer asks before it loads the agent ------------------------------------------------------- */

/* Does @desc describe this marker of the agent, but for the provider? */
static bool describes(const struct probe_desc *desc, const struct module *agent, const struct marker *mk)
{
	return desc_glob(desc->mod, agent->name) && desc_glob(desc->func, mk->func) && desc_glob(desc->name, mk->name);
}

/* Could the provider be "python" with some pid? */
static bool names_python(const struct probe_desc *desc)
{
	size_t len = strcspn(desc->prov, "*?[\\"), own = strlen(PYTHON_PROVIDER);

	if (desc->prov[len])
		return !strncmp(desc->prov, PYTHON_PROVIDER, len < own ? len : own);
	return !len || (!strncmp(desc->prov, PYTHON_PROVIDER, own) && isdigit((unsigned char)desc->prov[own]));
}

bool probe_agent_named(struct probe_set *set, const struct probe_desc *desc)
{
	const struct module *agent = set_agent(set);

	if (desc->id || !agent || !names_python(desc))
		return false;
	for (size_t i = 0; i < agent->nmarkers; i++)
		if (describes(desc, agent, &agent->markers[i]))
			return true;
	return false;
}

/* Is one of the agent's markers what @desc means in the process? */
static bool takes_agent(const struct python_process *p, struct probe_set *set, const struct probe_desc *desc)
{
	for (size_t i = 0; p->agent && i < p->agent->nmarkers; i++) {
		const struct marker *mk = &p->agent->markers[i];

		if (describes(desc, p->agent, mk) && python_takes(p, set_python_mode(set), desc, p->agent, mk->raw))
			return true;
	}
	return false;
}

bool probe_agent_meant(struct probe_set *set, uint32_t pid, const struct probe_desc *desc)
{
	struct python_process p = { 0 };
	char prov[32];

	snprintf(prov, sizeof(prov), PYTHON_PROVIDER "%" PRIu32, pid);
	if (desc->id || !desc_glob(desc->prov, prov) || python_look(&p, set, pid))
		return false;
	return takes_agent(&p, set, desc);
}

bool probe_agent_needed(struct probe_set *set, const char *path, const struct probe_desc *desc)
{
	struct module *m = module_open(set, path);
	struct python_process p = { .modules = &m, .nmodules = 1 };

	if (!m || !m->python.version)
		return true;
	recognise(&p, set_agent(set));
	return takes_agent(&p, set, desc);
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

	if (!python_look(&p, e->set, pid) && p.agent)
		e->fn(e->ctx, pid);
}

int probe_agent_each(struct probe_set *set, void (*fn)(void *ctx, uint32_t pid), void *ctx)
{
	struct each e = { set, fn, ctx };

	return procs_each(each_process, &e);
}

uint32_t probe_agent_leave(struct probe_set *set, uint32_t pid)
{
	static const char *const names[] = {
#define MARKER(name) #name,
		ABI_AGENT_MARKERS(MARKER)
#undef MARKER
	};
	struct python_process p = { 0 };
	uint32_t leave = 0, bit;
	size_t i, j;

	python_look(&p, set, pid);
	for (i = 0; i < p.nmodules; i++) {
		const struct module *m = p.modules[i];

		for (j = 0; j < m->nmarkers && !m->python.is_agent; j++) {
			const struct marker *twin = p.agent ? find_marker(p.agent, m->markers[j].raw) : NULL;

			if (!m->markers[j].is_used || strcmp(m->markers[j].prov, PYTHON_PROVIDER) ||
			    (twin && twin->is_named))
				continue;
			for (bit = 0; bit < sizeof(names) / sizeof(names[0]); bit++)
				if (!strcmp(names[bit], m->markers[j].raw))
					leave |= 1u << bit;
		}
	}
	return leave;
}

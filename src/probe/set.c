/*
 * The probe set: probes and sites by hash, providers in turn.
 */
#include "probe/probe.h"

#include <errno.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "probe/ktypes.h"
#include "probe/types.h"
#include "probe/module.h"
#include "probe/procs.h"
#include "probe/provider.h"
#include "target/agent.h"

enum { BUCKETS = 4096 };	/* a listing of a large system has some ten thousand probes */

struct probe_set {
	struct arena *arena;
	struct probe **probes;		/* by id - 1 */
	size_t nprobes, probes_cap;
	struct probe *by_name[BUCKETS];
	struct site *by_location[BUCKETS];
	struct modules *modules;
	enum python_mode python_mode;
	struct module *agent;
	const char *agent_path;
	struct python_cache *python;
	struct python_seen *seen;
	struct supplied {
		uint16_t version;
		const char *name;
	} *supplied;			/* supplied by the agent, each once */
	size_t nsupplied, supplied_cap;
	bool uses_own;
	uint32_t hold, nholds;		/* the present probe_hold(), by its number, or 0; how many there were */
	struct pid_file *pid_files;
	struct ktypes *ktypes;
	bool ktypes_tried;
	uint32_t program;		/* pid of the target */
	struct program_types *kept[4];	/* one for each compilation */
	size_t nkept;
	struct strbuf why;
	int trouble;			/* what kept the last finding from its answer, or 0 */
	uint32_t finds;			/* number of the finding, for probe.found */
	bool general_only;
	uint32_t only;			/* searches of all processes look at this one; 0: at all */
};

#define PROVIDER(NAME) extern const struct provider provider_##NAME;
#include "probe/providers.def"
#undef PROVIDER

static const struct provider *const providers[] = {
#define PROVIDER(NAME) &provider_##NAME,
#include "probe/providers.def"
#undef PROVIDER
};

/* FNV-1a, over a string with its NUL. */
static uint32_t hash_string(uint32_t h, const char *s)
{
	do
		h = (h ^ (unsigned char)*s) * 16777619;
	while (*s++);
	return h;
}

static uint32_t hash_u64(uint32_t h, uint64_t v)
{
	for (; v; v >>= 8)
		h = (h ^ (v & 0xff)) * 16777619;
	return h;
}

enum { HASH_START = 0x811c9dc5u };

struct probe *set_probe(struct probe_set *set, const struct probe *key, bool *made)
{
	uint32_t h = hash_string(hash_string(HASH_START, key->prov), key->name);
	struct probe **head = &set->by_name[hash_string(hash_string(h, key->mod), key->func) % BUCKETS];
	struct probe *p;

	*made = false;
	for (p = *head; p; p = p->next) {
		if (p->pid == key->pid && p->pid_suffix == key->pid_suffix && !strcmp(p->name, key->name) &&
		    !strcmp(p->prov, key->prov) && !strcmp(p->mod, key->mod) && !strcmp(p->func, key->func))
			return p;
	}
	p = arena_new_of(set->arena, struct probe);
	*p = *key;
	p->prov = arena_strdup(set->arena, key->prov);
	p->mod = arena_strdup(set->arena, key->mod);
	p->func = arena_strdup(set->arena, key->func);
	p->name = arena_strdup(set->arena, key->name);
	set->probes = arena_grow(set->arena, set->probes, &set->probes_cap, set->nprobes, sizeof(*set->probes));
	set->probes[set->nprobes++] = p;
	p->id = (uint32_t)set->nprobes;
	p->next = *head;
	*head = p;
	*made = true;
	return p;
}

static void keep_file(struct site *s, struct file *f)
{
	file_use(f);
	file_close(s->file);
	s->file = f;
}

struct site *set_site(struct probe_set *set, const struct site *key)
{
	struct site **head = &set->by_location[hash_u64(hash_u64(HASH_START, key->ino), key->off) % BUCKETS];
	uint64_t shared = 0;
	struct site *s;

	for (s = *head; s; s = s->next) {
		if (s->dev != key->dev || s->ino != key->ino || s->off != key->off)
			continue;
		if (s->sem_off)
			shared = s->sem_off;
		else if (key->sem_off)
			s->shared_sem_off = key->sem_off;
		if (s->sem_off == key->sem_off && s->gil == key->gil &&
		    !strcmp(s->args_text, key->args_text)) {
			keep_file(s, key->file);	/* the newest: a changed file is read again */
			return s;
		}
	}
	s = arena_new_of(set->arena, struct site);
	*s = *key;
	s->shared_sem_off = shared;
	file_use(s->file);
	s->next = *head;
	*head = s;
	return s;
}

void probe_add_site(struct probe_set *set, struct probe *p, struct site *s)
{
	for (unsigned int i = 0; i < p->nsites; i++)
		if (p->sites[i] == s)
			return;
	p->sites = arena_grow(set->arena, p->sites, &p->sites_cap, p->nsites, sizeof(struct site *));
	p->sites[p->nsites++] = s;
}

struct arena *set_arena(struct probe_set *set)
{
	return set->arena;
}

struct modules *set_modules(struct probe_set *set)
{
	return set->modules;
}

enum python_mode set_python_mode(const struct probe_set *set)
{
	return set->python_mode;
}

struct module *set_agent(struct probe_set *set)
{
	return set->agent;
}

struct module *set_agent_musl(struct probe_set *set)
{
	struct strbuf path = { 0 };
	struct module *m = NULL;

	if (set->agent_path && agents_object_musl(set->agent_path, &path))
		m = module_open(set->modules, strbuf_str(&path));
	strbuf_fini(&path);
	return m;
}

struct python_cache **set_python_cache(struct probe_set *set)
{
	return &set->python;
}

struct python_seen **set_python_seen(struct probe_set *set)
{
	return &set->seen;
}

const char *probe_set_python(struct probe_set *set, enum python_mode mode, const char *agent)
{
	const char *why;

	set->python_mode = mode;
	module_drop(set->modules, set->agent);
	set->agent = NULL;
	set->agent_path = NULL;
	if (!agent || mode == PYTHON_NEVER)
		return NULL;
	set->agent = module_open(set->modules, agent);
	if (!set->agent || !set->agent->nmarkers || !set->agent->python.is_agent) {
		why = arena_printf(set->arena, "dtap's agent cannot be read: %s",
				   set->agent && set->agent->why ? set->agent->why : agent);
		module_drop(set->modules, set->agent);
		set->agent = NULL;
		set->python_mode = PYTHON_NEVER;
		return why;
	}
	set->agent_path = arena_strdup(set->arena, agent);
	return NULL;
}

void probe_set_either(struct probe_set *set, bool either)
{
	if (set->python_mode == (either ? PYTHON_AUTO : PYTHON_EITHER))
		set->python_mode = either ? PYTHON_EITHER : PYTHON_AUTO;
}

bool probe_is_either(const struct probe_set *set)
{
	return set->python_mode == PYTHON_EITHER;
}

void probe_hold(struct probe_set *set, bool hold)
{
	set->hold = hold ? ++set->nholds : 0;
}

uint32_t set_hold(const struct probe_set *set)
{
	return set->hold;
}

void set_use_own(struct probe_set *set)
{
	set->uses_own = true;
}

bool set_uses_own(const struct probe_set *set)
{
	return set->uses_own;
}

void set_supplies(struct probe_set *set, uint16_t version, const char *name)
{
	struct supplied *v = set->supplied;
	size_t at = 0, i;

	for (i = 0; i < set->nsupplied; i++) {
		if (v[i].version == version && !strcmp(v[i].name, name))
			return;
		if (v[i].version <= version)
			at = i + 1;
	}
	set->supplied = v = arena_grow(set->arena, v, &set->supplied_cap, set->nsupplied, sizeof(*v));
	memmove(&v[at + 1], &v[at], (set->nsupplied++ - at) * sizeof(*v));
	v[at] = (struct supplied){ version, name };
}

/* Names are grouped by interpreter: "a, b and c of Python 3.11, d of Python 3.13". */
void probe_agent_say(const struct probe_set *set, struct strbuf *out)
{
	const struct supplied *v = set->supplied;
	size_t i;

	for (i = 0; i < set->nsupplied; i++) {
		bool first = i == 0 || v[i - 1].version != v[i].version;
		bool last = i + 1 == set->nsupplied || v[i + 1].version != v[i].version;

		strbuf_printf(out, "%s%s", i == 0 ? "" : !first && last ? " and " : ", ", v[i].name);
		if (last)
			strbuf_printf(out, " of Python %d.%d", v[i].version >> 8, v[i].version & 0xff);
	}
}

struct pid_file **set_pid_files(struct probe_set *set)
{
	return &set->pid_files;
}

struct ktypes *set_ktypes(struct probe_set *set)
{
	if (!set->ktypes_tried) {
		set->ktypes_tried = true;
		set->ktypes = ktypes_new();
	}
	if (!set->ktypes && !strstr(strbuf_str(&set->why), "BTF"))
		strbuf_printf(&set->why, "%sthe kernel's type information cannot be read (/sys/kernel/btf/vmlinux,"
			      " CONFIG_DEBUG_INFO_BTF)", set->why.len ? "; " : "");
	return set->ktypes;
}

void probe_set_target(struct probe_set *set, uint32_t pid)
{
	set->program = pid;
}

uint32_t set_program(const struct probe_set *set)
{
	return set->program;
}

void set_keep(struct probe_set *set, struct program_types *p)
{
	if (set->nkept < sizeof(set->kept) / sizeof(set->kept[0]))
		set->kept[set->nkept++] = p;
}

struct strbuf *set_why(struct probe_set *set)
{
	return &set->why;
}

struct probe_set *probe_set_new(void)
{
	/* The order determines the ids, which the guide specifies. */
	static const struct probe first[] = {
		{ .prov = "dtrace", .mod = "", .func = "", .name = "BEGIN", .kind = PROBE_BEGIN },
		{ .prov = "dtrace", .mod = "", .func = "", .name = "END", .kind = PROBE_END },
		{ .prov = "dtrace", .mod = "", .func = "", .name = "ERROR", .kind = PROBE_ERROR },
	};
	struct probe_set *set = calloc(1, sizeof(*set));
	bool made;

	if (!set)
		return NULL;
	set->python_mode = PYTHON_NEVER;
	set->arena = arena_new();
	set->modules = modules_new();
	for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++)
		set_probe(set, &first[i], &made);
	return set;
}

void probe_set_free(struct probe_set *set)
{
	if (!set)
		return;
	strbuf_fini(&set->why);
	ktypes_free(set->ktypes);
	for (size_t i = 0; i < set->nkept; i++)
		program_types_close(set->kept[i]);
	for (size_t i = 0; i < BUCKETS; i++)
		for (const struct site *s = set->by_location[i]; s; s = s->next)
			file_close(s->file);
	python_seen_free(set->seen);
	modules_free(set->modules);
	pid_files_close(set->pid_files);
	arena_free(set->arena);
	free(set);
}

struct probe *probe_get(const struct probe_set *set, uint32_t id)
{
	return id >= 1 && id <= set->nprobes ? set->probes[id - 1] : NULL;
}

void set_trouble(struct probe_set *set, int err)
{
	if (err && err != -ESRCH)
		set->trouble = err;
}

int probe_trouble(const struct probe_set *set)
{
	return set->trouble;
}

const char *probe_why(const struct probe_set *set)
{
	return strbuf_str(&set->why);
}

void found_add(struct finding *f, struct probe *p)
{
	if (p->found == f->set->finds)
		return;
	p->found = f->set->finds;
	f->out->probes = arena_grow(f->set->arena, f->out->probes, &f->out->cap, f->out->n, sizeof(p));
	f->out->probes[f->out->n++] = p;
}

bool found_match(const struct finding *f, const char *prov, const char *mod, const char *func, const char *name)
{
	return desc_glob(f->desc->name, name) && desc_glob(f->desc->prov, prov) && desc_glob(f->desc->mod, mod) &&
	       desc_glob(f->desc->func, func);
}

static int by_id(const void *x, const void *y)
{
	const struct probe *const *a = x, *const *b = y;

	return ((*a)->id > (*b)->id) - ((*a)->id < (*b)->id);
}

static void ask_providers(struct probe_set *set, const struct probe_desc *desc, enum probe_want want,
			  struct probe_list *out)
{
	struct finding f = { set, desc, want, out, out->n };

	set->finds++;
	for (size_t i = 0; i < sizeof(providers) / sizeof(providers[0]); i++)
		if (providers[i]->is_general || !set->general_only)
			providers[i]->find(&f);
	if (out->n > f.before)
		qsort(out->probes + f.before, out->n - f.before, sizeof(*out->probes), by_id);
}

void probe_set_only(struct probe_set *set, uint32_t pid)
{
	set->only = pid;
}

uint32_t set_only(const struct probe_set *set)
{
	return set->only;
}

void probe_set_general(struct probe_set *set)
{
	set->general_only = true;
}

static size_t find_id(struct probe_set *set, uint32_t id, struct probe_list *out)
{
	static const struct probe_desc all = { .prov = "", .mod = "", .func = "", .name = "" };
	struct probe_list ignored = { 0 };
	struct probe *p = probe_get(set, id);

	if (!p) {
		ask_providers(set, &all, PROBE_LIST, &ignored);
		strbuf_clear(&set->why);
		p = probe_get(set, id);
	}
	if (!p)
		return 0;
	out->probes = arena_grow(set->arena, out->probes, &out->cap, out->n, sizeof(p));
	out->probes[out->n++] = p;
	return 1;
}

/* Nothing was found: report a provider that other DTraces have, unless there is a message about the probe itself. */
static void say_later(struct probe_set *set, const struct probe_desc *desc)
{
	static const struct {
		const char *pattern, *what;
	} later[] = {
#define LATER(pattern, what) { pattern, what },
#define LATER_NAME(...)
#include "probe/later.def"
#undef LATER_NAME
#undef LATER
	};
	size_t i;

	for (i = 0; *desc->prov && !strstr(strbuf_str(&set->why), ":::") && i < sizeof(later) / sizeof(later[0]); i++) {
		if (desc_glob(later[i].pattern, desc->prov)) {
			strbuf_clear(&set->why);
			strbuf_puts(&set->why, later[i].what);
		}
	}
}

/* Does @prov end with the pid of a process that is being started, as in "program & dtrace -p $!"? */
static bool names_starting(const char *prov)
{
	const char *digits = prov + strlen(prov);
	unsigned long pid;

	while (digits > prov && isdigit((unsigned char)digits[-1]))
		digits--;
	pid = strtoul(digits, NULL, 10);
	return pid && pid <= INT32_MAX && procs_is_starting((uint32_t)pid);
}

size_t probe_find(struct probe_set *set, const struct probe_desc *desc, enum probe_want want,
		  struct probe_list *out)
{
	const struct timespec moment = { .tv_nsec = 5000000 };
	size_t before = out->n;

	set->trouble = 0;
	if (desc->id) {
		strbuf_clear(&set->why);
		return find_id(set, desc->id, out);
	}
	for (;;) {
		strbuf_clear(&set->why);
		ask_providers(set, desc, want, out);
		if (out->n != before || set->general_only || !names_starting(desc->prov))
			break;
		nanosleep(&moment, NULL);
	}
	if (out->n == before)
		say_later(set, desc);
	return out->n - before;
}

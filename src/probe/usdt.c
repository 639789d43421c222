/*
 * The usdt provider: the static markers (SDT) of running processes.
 *
 *	provider  the marker's provider with the pid behind it: python1234
 *	module    the base name of the file the marker is in: python3.9
 *	function  the one that contains the site, also where a compiler put seldom executed parts elsewhere (elf/cold.c); empty
 *		  when the file does not say
 *	name      the marker's name with - for each __: function-entry
 *
 * A description names a process ("python1234") or is a pattern, for which all of /proc is searched.  A pattern that
 * matches every pid of a provider (python*, or an empty one) is not limited to the current processes when probes are
 * enabled: the kernel arms a file for all processes that run it, so one system-wide probe stands for all, also for
 * those that start later.  The agent's file is then armed, too.
 *
 * python.h chooses between the interpreter's own markers and the agent's.
 */
#include "probe/provider.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "probe/module.h"
#include "probe/procs.h"
#include "probe/pygil.h"
#include "probe/python.h"

extern const struct provider provider_usdt;

/* The state of matching a description against processes. */
struct look {
	struct finding *f;
	const char *base;	/* the provider without the pid; NULL: f->desc->prov is a pattern */
	size_t base_len;
	struct python_process python;	/* the current process */
	bool fresh;		/* nothing seen of it before is told again */
};

/* Does the pattern match provider @base with any pid? */
static bool fits_any_pid(const char *pattern, const char *base)
{
	size_t len = strlen(pattern);

	if (!len)
		return true;
	if (pattern[len - 1] != '*' || (len > 1 && pattern[len - 2] == '\\'))
		return false;
	return desc_glob(pattern, base);
}

/* The number of a marker with documented C types of arguments; -1: another marker, or other arguments. */
static int find_known(const struct marker *mk, const struct site *s)
{
	int number = strcmp(mk->prov, PYTHON_PROVIDER) ? -1 : marker_number(mk->raw);

	return marker_args(number) == s->nargs ? number : -1;
}

static void fill_sig(struct probe_sig *sig, const struct module *m, const struct marker *mk)
{
	const struct site *s = module_site(m, mk);
	int known = find_known(mk, s);

	sig->nargs = s->nargs;
	for (unsigned int i = 0; i < s->nargs; i++) {
		sig->args[i].size = s->args[i].size > 8 ? 8 : s->args[i].size;
		sig->args[i].sign = s->args[i].sign;
		sig->args[i].is_float = s->args[i].is_float;
		sig->args[i].type = marker_type(known, i);
		if (!mk->types)
			continue;
		sig->args[i].type = mk->types[i].native;
		if (mk->types[i].type && mk->types[i].native && strcmp(mk->types[i].type, mk->types[i].native))
			sig->args[i].xlate = mk->types[i].type;
	}
}

/* Markers of Python's lock have sites only when they are to be enabled, since these have to be searched for. */
static void add_sites(struct look *l, struct probe *p, const struct module *m, const struct marker *mk)
{
	struct site site = *module_site(m, mk);

	if (!site.gil)
		probe_add_site(l->f->set, p, set_site(l->f->set, &site));
	for (size_t i = 0; i < mk->ncalls; i++) {
		site.off = mk->calls[i];
		probe_add_site(l->f->set, p, set_site(l->f->set, &site));
	}
}

/* Is @mk one of Python's lock that @l's description does not mean, or whose sites are not known? */
static bool is_hidden(struct look *l, struct module *m, struct marker *mk)
{
	return mk->site.gil && l->f->want == PROBE_ENABLE &&
	       (!pygil_is_meant(l->f->desc->name) || !module_gil_calls(m, mk));
}

/*
 * The function that a marker for any process is said to be in.  Agents of other builds of dtap may have it in another one, or not
 * say in which: it is the same probe, of which a process has one, that of the tracer's own agent.
 */
static const char *func_of(const struct look *l, const struct module *m, const struct marker *mk)
{
	const struct module *agent = m->python.is_agent ? set_agent(l->f->set) : NULL;

	for (size_t i = 0; agent && i < agent->nmarkers; i++)
		if (!strcmp(agent->markers[i].prov, mk->prov) && !strcmp(agent->markers[i].raw, mk->raw))
			return module_func(agent, &agent->markers[i]);
	return module_func(m, mk);
}

static void look_at_marker(struct look *l, struct module *m, struct marker *mk)
{
	const struct probe_desc *desc = l->f->desc;
	bool wide = !l->base && l->f->want == PROBE_ENABLE && fits_any_pid(desc->prov, mk->prov), made;
	struct probe key = { .mod = m->name, .name = mk->name, .kind = PROBE_SITES, .pid = wide ? 0 : l->python.pid, .pid_suffix = wide };
	int number = wide || m->python.is_agent || strcmp(mk->prov, PYTHON_PROVIDER) ?
			     -1 : python_twin(&l->python, set_python_mode(l->f->set), desc, mk->raw);
	uint8_t twin = (uint8_t)(number + 1);
	char prov[256];
	struct probe *p;

	if (wide)
		snprintf(prov, sizeof(prov), "%s", mk->prov);
	else
		snprintf(prov, sizeof(prov), "%s%" PRIu32, mk->prov, l->python.pid);
	if ((!l->base && !wide && !desc_glob(desc->prov, prov)) || is_hidden(l, m, mk))
		return;
	key.prov = prov;
	key.func = wide ? func_of(l, m, mk) : module_func(m, mk);
	module_keep(set_modules(l->f->set), m);
	p = set_probe(l->f->set, &key, &made);
	if (made) {
		fill_sig(&p->sig, m, mk);
		p->twin = twin;
	}
	if (!twin)	/* for one description it has none */
		p->twin = 0;
	add_sites(l, p, m, mk);
	found_add(l->f, p);
	if (l->f->want == PROBE_ENABLE) {
		mk->is_used = true;
		if (!m->python.is_agent && !strcmp(mk->prov, PYTHON_PROVIDER))
			set_use_own(l->f->set);
		mk->is_named = mk->is_named || python_names_file(desc);
		if (m->python.is_agent && l->python.version)
			set_supplies(l->f->set, l->python.version, mk->name);
	}
}

static void look_at_module(struct look *l, struct module *m)
{
	const struct probe_desc *desc = l->f->desc;
	size_t i;

	if (!m->nmarkers || !desc_glob(desc->mod, m->name))
		return;
	for (i = 0; i < m->nmarkers; i++) {
		struct marker *mk = &m->markers[i];

		if (l->base && (strncmp(mk->prov, l->base, l->base_len) || mk->prov[l->base_len]))
			continue;
		if (!desc_glob(desc->name, mk->name) || !module_in_func(m, mk, desc->func) ||
		    (m->python.is_agent && !strcmp(mk->prov, PYTHON_AWAY)))
			continue;
		if (strcmp(mk->prov, PYTHON_PROVIDER) ||
		    python_takes(&l->python, set_python_mode(l->f->set), desc, m, mk->raw))
			look_at_marker(l, m, mk);
	}
}

/* Report unreadable files of a process that the description names. */
static void say_refused(struct look *l)
{
	struct strbuf *why = set_why(l->f->set);

	for (size_t i = 0; i < l->python.nmodules; i++) {
		const char *one = l->python.modules[i]->why;

		if (one && !strstr(strbuf_str(why), one))
			strbuf_printf(why, "%s%s", why->len ? "; " : "", one);
	}
}

static int look_at_process(struct look *l, uint32_t pid)
{
	struct python_process *p = &l->python;
	int err = l->fresh ? python_look(p, l->f->set, pid) :
		  l->base ? python_look_held(p, l->f->set, pid) : python_look_again(p, l->f->set, pid);
	size_t i;

	if (l->base)
		say_refused(l);
	for (i = 0; i < p->nmodules; i++)
		look_at_module(l, p->modules[i]);
	if (p->agent && !p->loaded)
		look_at_module(l, p->agent);
	return err;
}

static void look_at_any(void *ctx, uint32_t pid)
{
	look_at_process(ctx, pid);
}

/*
 * A description of any process includes later ones, with unknown interpreters: so the agent's markers are enabled,
 * too, whether a current process needs them or not.
 */
static void look_at_later(struct look *l)
{
	struct module *agent = set_agent(l->f->set);
	const struct probe_desc *desc = l->f->desc;

	if (l->f->want != PROBE_ENABLE || !agent || !fits_any_pid(desc->prov, PYTHON_PROVIDER))
		return;
	for (size_t i = 0; desc_glob(desc->mod, agent->name) && i < agent->nmarkers; i++)
		if (desc_glob(desc->name, agent->markers[i].name) && module_in_func(agent, &agent->markers[i], desc->func) &&
		    strcmp(agent->markers[i].prov, PYTHON_AWAY))
			look_at_marker(l, agent, &agent->markers[i]);
}

/*
 * A provider without pattern: try every split into a base name and a pid, because base names may end in digits.  The
 * longest pid first: it is more likely.
 */
static void find_named(struct finding *f)
{
	const char *prov = f->desc->prov, *longest = prov + strlen(prov), *digits;
	bool matched = false;

	while (longest > prov && isdigit((unsigned char)longest[-1]))
		longest--;
	for (digits = longest; *digits && !matched; digits++) {
		struct look l = { .f = f, .base = prov, .base_len = (size_t)(digits - prov) };
		unsigned long long pid = strtoull(digits, NULL, 10);
		size_t before = f->out->n;
		int err;

		if (*digits == '0' || digits == prov || pid > INT32_MAX)
			continue;
		err = look_at_process(&l, (uint32_t)pid);
		if (digits == longest)
			set_trouble(f->set, err);
		matched = f->out->n > before;
		if (err && digits == longest && !set_why(f->set)->len)
			strbuf_printf(set_why(f->set), "process %llu: %s", pid, strerror(-err));
		python_done(&l.python, f->set);
	}
	if (matched)
		strbuf_clear(set_why(f->set));
}

bool probe_wants_programs(const struct probe_desc *desc)
{
	static const char *const others[] = { "dtrace", "profile", "tick", "pid1", "syscall", "proc", "sched", "rawtp", "py1",
					      "python1" };

	if (!desc_is_glob(desc->prov))
		return false;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (desc_glob(desc->prov, others[i]))
			return false;
	return true;
}

static void find(struct finding *f)
{
	struct look l = { .f = f };
	int err;

	if (*f->desc->prov && !desc_is_glob(f->desc->prov)) {
		find_named(f);
		return;
	}
	/* "BEGIN" or "tick-1s" alone was found already and needs no search of all processes. */
	if (!*f->desc->prov && *f->desc->name && !desc_is_glob(f->desc->name) && f->out->n > f->before)
		return;
	if (set_only(f->set)) {
		l.fresh = true;
		look_at_process(&l, set_only(f->set));
		python_done(&l.python, f->set);
		return;
	}
	err = procs_each(look_at_any, &l);
	python_done(&l.python, f->set);
	look_at_later(&l);
	if (err)
		strbuf_printf(set_why(f->set), "/proc: %s", strerror(-err));
}

const struct provider provider_usdt = { find };

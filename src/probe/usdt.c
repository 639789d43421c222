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
 * probe then stands for all, and reaches those that start later.  The agent's file, too, is then armed.
 *
 * Of CPython's markers the interpreter's own and the agent's are told apart by python.h.
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
#include "probe/python.h"

extern const struct provider provider_usdt;

/* A description on its way through the processes. */
struct look {
	struct finding *f;
	const char *base;	/* the provider without the pid; NULL: f->desc->prov is a pattern */
	size_t base_len;
	struct python_process python;	/* the one looked at */
};

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

static void look_at_marker(struct look *l, struct module *m, struct marker *mk)
{
	const struct probe_desc *desc = l->f->desc;
	bool wide = !l->base && l->f->want == PROBE_ENABLE && fits_any_pid(desc->prov, mk->prov), made;
	struct probe key = { .mod = m->name, .func = mk->func, .name = mk->name, .kind = PROBE_SITES,
			     .pid = wide ? 0 : l->python.pid, .pid_suffix = wide };
	char prov[256];
	struct probe *p;

	if (wide)
		snprintf(prov, sizeof(prov), "%s", mk->prov);
	else
		snprintf(prov, sizeof(prov), "%s%" PRIu32, mk->prov, l->python.pid);
	if (!l->base && !wide && !desc_glob(desc->prov, prov))
		return;
	key.prov = prov;
	p = set_probe(l->f->set, &key, &made);
	if (made)
		fill_sig(&p->sig, mk);
	probe_add_site(l->f->set, p, set_site(l->f->set, &mk->site));
	found_add(l->f, p);
	if (l->f->want == PROBE_ENABLE) {
		mk->is_used = true;
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
		if (!desc_glob(desc->name, mk->name) || !desc_glob(desc->func, mk->func))
			continue;
		if (strcmp(mk->prov, PYTHON_PROVIDER) ||
		    python_takes(&l->python, set_python_mode(l->f->set), desc, m, mk->raw))
			look_at_marker(l, m, mk);
	}
}

/* A named process's files are worth a word when they cannot be read. */
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
	int err = python_look(p, l->f->set, pid);
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
 * A description of any process means those that start later, too, and who knows which interpreter they will run: the
 * agent's markers are among what is enabled, be there a process that needs them now or not.
 */
static void look_at_later(struct look *l)
{
	struct module *agent = set_agent(l->f->set);
	const struct probe_desc *desc = l->f->desc;

	if (l->f->want != PROBE_ENABLE || !agent || !fits_any_pid(desc->prov, PYTHON_PROVIDER))
		return;
	l->python = (struct python_process){ 0 };
	for (size_t i = 0; desc_glob(desc->mod, agent->name) && i < agent->nmarkers; i++)
		if (desc_glob(desc->name, agent->markers[i].name) && desc_glob(desc->func, agent->markers[i].func))
			look_at_marker(l, agent, &agent->markers[i]);
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
		struct look l = { .f = f, .base = prov, .base_len = (size_t)(digits - prov) };
		unsigned long long pid = strtoull(digits, NULL, 10);
		size_t before = f->out->n;
		int err;

		if (*digits == '0' || digits == prov || pid > INT32_MAX)
			continue;
		err = look_at_process(&l, (uint32_t)pid);
		matched = f->out->n > before;
		if (err && digits == longest && !set_why(f->set)->len)
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
	look_at_later(&l);
	if (err)
		strbuf_printf(set_why(f->set), "/proc: %s", strerror(-err));
}

const struct provider provider_usdt = { find };

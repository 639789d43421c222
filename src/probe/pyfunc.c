/*
 * The py provider: functions of Python by name.
 *
 *	provider  py and the process: py1234, py*
 *	module    Python's name of the module that the function runs in: __name__ of its global variables
 *	function  its qualified name: Order.total, outer.<locals>.inner, <module>
 *	name      entry, return (with a value), raise (left by an exception), yield, resume, line-N
 *
 * Module and function are patterns for the agent in the process: functions come and go with imports, and match when
 * they first run.  So a description that is enabled is one probe, whatever matches it; a record names the function
 * that matched (abi_probe.pattern).  In the kernel a marker of the agent's is the probe's site.  A listing has the
 * functions that exist now (pylist.h).
 */
#include "probe/pyfunc.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/cpython.h"
#include "abi/segment.h"
#include "base/strbuf.h"
#include "probe/module.h"
#include "probe/procs.h"
#include "probe/pylist.h"
#include "probe/provider.h"
#include "probe/python.h"

#define PROV "py"

extern const struct provider provider_pyfunc;

static const char *const names[ABI_FUNCTIONS] = {
	[ABI_FUNCTION_ENTRY] = "entry",
	[ABI_FUNCTION_RETURN] = "return",
	[ABI_FUNCTION_RAISE] = "raise",
	[ABI_FUNCTION_YIELD] = "yield",
	[ABI_FUNCTION_RESUME] = "resume",
	[ABI_FUNCTION_LINE] = "line-",
};

bool pyfunc_describes(const struct probe_desc *desc)
{
	const char *behind = desc->prov + strlen(PROV);

	return !desc->id && !strncmp(desc->prov, PROV, strlen(PROV)) &&
	       (isdigit((unsigned char)*behind) || (*behind && strchr("*?[", *behind)));
}

const char *pyfunc_provider(uint32_t pid, char text[static PYFUNC_PROVIDER])
{
	if (pid)
		snprintf(text, PYFUNC_PROVIDER, PROV "%" PRIu32, pid);
	else
		snprintf(text, PYFUNC_PROVIDER, PROV "*");
	return text;
}

bool pyfunc_is_of(const struct probe_desc *desc, uint32_t pid)
{
	char prov[32];

	pyfunc_provider(pid, prov);
	return pyfunc_describes(desc) && desc_glob(desc->prov, prov);
}

/* The line of "line-42"; 0: another name. */
static uint32_t line_of(const char *name)
{
	const char *digits = name + strlen(names[ABI_FUNCTION_LINE]);
	unsigned long line;
	char *end;

	if (strncmp(name, names[ABI_FUNCTION_LINE], strlen(names[ABI_FUNCTION_LINE])) || !isdigit((unsigned char)*digits))
		return 0;
	line = strtoul(digits, &end, 10);
	return *end || line > INT32_MAX ? 0 : (uint32_t)line;
}

/* The description as patterns. */
static struct pylist_function patterns_of(const struct finding *f)
{
	return (struct pylist_function){ .module = f->desc->mod, .name = f->desc->func, .yields = true };
}

static void add(struct finding *f, uint32_t pid, const struct pylist_function *fn, enum abi_function what, const char *name,
		uint32_t line)
{
	static const char *const types[] = { "char *", "char *", "int" };
	char prov[32] = PROV;
	struct probe key = { .prov = prov, .mod = fn->module, .func = fn->name, .name = name, .kind = PROBE_FUNCTION,
			     .params = fn->params, .nparams = fn->nparams, .pid = pid, .pid_suffix = !pid, .agent_marker = (uint8_t)(1 + ABI_FUNCTION_FIRST + what),
			     .line = line };
	struct probe *p;
	bool made;

	if (pid)
		snprintf(prov, sizeof(prov), PROV "%" PRIu32, pid);
	p = set_probe(f->set, &key, &made);
	if (made) {
		p->sig.nargs = sizeof(types) / sizeof(types[0]);
		for (unsigned int i = 0; i < p->sig.nargs; i++)
			p->sig.args[i] = (struct probe_arg){ .type = types[i], .size = i < 2 ? 8 : 4, .sign = i == 2 };
	}
	found_add(f, p);
}

/* Add the matching events of @fn in process @pid, or (0) in all. */
static void add_events(struct finding *f, uint32_t pid, const struct pylist_function *fn)
{
	uint32_t line = line_of(f->desc->name);

	for (unsigned int k = 0; k < ABI_FUNCTION_LINE; k++) {
		if ((k == ABI_FUNCTION_YIELD || k == ABI_FUNCTION_RESUME) && !fn->yields)
			continue;
		if (desc_glob(f->desc->name, names[k]))
			add(f, pid, fn, (enum abi_function)k, names[k], 0);
	}
	if (line)
		add(f, pid, fn, ABI_FUNCTION_LINE, f->desc->name, line);
}

/* List the matching functions that exist now. */
static void list_names(struct finding *f, uint32_t pid)
{
	struct pylist list;

	if (pylist_read(set_arena(f->set), pid, f->desc->mod, f->desc->func, &list, set_why(f->set)))
		return;
	for (size_t i = 0; i < list.n; i++)
		add_events(f, pid, &list.v[i]);
	if (!list.n && !desc_is_glob(f->desc->prov))
		strbuf_printf(set_why(f->set), "%sprocess %" PRIu32 " has no such function now; one that comes later is met when it "
			      "first runs", set_why(f->set)->len ? "; " : "", pid);
}

static void add_names(struct finding *f, uint32_t pid)
{
	const struct pylist_function patterns = patterns_of(f);

	if (f->want == PROBE_LIST)
		list_names(f, pid);
	else
		add_events(f, pid, &patterns);
}

/* Can a probe have this name? */
static bool good_name(struct finding *f)
{
	struct strbuf *why = set_why(f->set);

	if (line_of(f->desc->name))
		return true;
	for (unsigned int k = 0; k < ABI_FUNCTION_LINE; k++)
		if (desc_glob(f->desc->name, names[k]))
			return true;
	if (!desc_is_glob(f->desc->prov))
		strbuf_printf(why, "%sa function of Python has the probes entry, return, raise, yield, resume and line-N, "
			      "with a number", why->len ? "; " : "");
	return false;
}

struct each {
	struct finding *f;
	struct python_process process;
};

static void look_at(void *ctx, uint32_t pid)
{
	struct each *e = ctx;

	if (pyfunc_is_of(e->f->desc, pid) && !python_look(&e->process, e->f->set, pid) && e->process.agent)
		add_names(e->f, pid);
}

static void find_named(struct finding *f)
{
	uint32_t pid = (uint32_t)strtoul(f->desc->prov + strlen(PROV), NULL, 10);
	struct strbuf *why = set_why(f->set);
	struct each e = { .f = f };
	int err = python_look_held(&e.process, f->set, pid);

	if (!err && e.process.agent) {
		add_names(f, pid);
		goto out;
	}
	strbuf_printf(why, "%sprocess %" PRIu32, why->len ? "; " : "", pid);
	if (err)
		strbuf_printf(why, ": %s", strerror(-err));
	else if (!e.process.version)
		strbuf_puts(why, " runs no CPython that exports its API, which functions by name are found with");
	else
		strbuf_printf(why, " runs Python %d.%d, whose functions are found by name from " CPYTHON_RANGE, e.process.version >> 8,
			      e.process.version & 0xff);
out:
	python_done(&e.process, f->set);
}

static void find(struct finding *f)
{
	struct each e = { .f = f };
	struct strbuf *why = set_why(f->set);
	bool wide;

	if (!pyfunc_describes(f->desc) || !good_name(f))
		return;
	if (!set_agent(f->set)) {
		strbuf_printf(why, "%sfunctions of Python are found by dtap's agent: allow it (-x agent=auto), or count "
			      "python$target:::function-entry by copyinstr(arg1)", why->len ? "; " : "");
		return;
	}
	wide = !strcmp(f->desc->prov, PROV "*");
	if (!desc_is_glob(f->desc->prov))
		find_named(f);
	else if (wide && f->want == PROBE_ENABLE)
		add_names(f, 0);
	else
		procs_each(look_at, &e);
	python_done(&e.process, f->set);
}

/* --- in the kernel ------------------------------------------------------------------------------------ */

struct agents_of {
	struct probe_set *set;
	struct probe *probe;
	struct python_process process;
};

static void add_marker(struct agents_of *a, struct module *agent)
{
	const struct marker *mk = agent ? python_away(agent) : NULL;

	if (!mk)
		return;
	module_keep(set_modules(a->set), agent);
	probe_add_site(a->set, a->probe, set_site(a->set, module_site(agent, mk)));
}

static void add_loaded(void *ctx, uint32_t pid)
{
	struct agents_of *a = ctx;

	if (!python_look(&a->process, a->set, pid) && a->process.loaded)
		add_marker(a, a->process.agent);
}

void probe_add_agents(struct probe_set *set, const struct probe *p)
{
	struct agents_of a = { .set = set, .probe = probe_get(set, p->id) };
	struct module *musl = set_agent_musl(set);

	add_marker(&a, set_agent(set));
	add_marker(&a, musl);
	module_drop(set_modules(set), musl);
	if (p->pid)
		add_loaded(&a, p->pid);
	else
		procs_each(add_loaded, &a);
	python_done(&a.process, set);
}

const struct provider provider_pyfunc = { find };

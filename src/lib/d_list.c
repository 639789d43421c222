#include "lib/d_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "d/attr.h"
#include "lib/lib.h"
#include "probe/probe.h"

static int by_id(const void *a, const void *b)
{
	const struct probe *x = *(struct probe *const *)a, *y = *(struct probe *const *)b;

	return x->id < y->id ? -1 : x->id > y->id;
}

/* The columns of dtrace(1), as the HOWTO shows them. */
static void put_probe(struct strbuf *out, const struct probe *p)
{
	strbuf_printf(out, "%5u %10s %17s %33s %s\n", p->id, p->prov, p->mod, p->func, p->name);
}

/* As DTrace for Linux shows them with -lv; DTrace guide, "Stability". */
static void put_attributes(struct strbuf *out, const struct probe *p)
{
	const struct probe_desc desc = { .prov = p->prov, .mod = p->mod, .func = p->func, .name = p->name };
	struct d_attr args, probe = attr_of_probe(&desc, &args);

	strbuf_puts(out, "\n\tProbe Description Attributes\n");
	attr_put(out, probe);
	strbuf_puts(out, "\n\tArgument Attributes\n");
	attr_put(out, args);
}

static void put_arguments(struct strbuf *out, const struct probe *p)
{
	unsigned int i;

	strbuf_puts(out, "\n\tArgument Types\n");
	if (!p->sig.nargs)
		strbuf_puts(out, "\t\tNone\n");
	for (i = 0; i < p->sig.nargs; i++)
		strbuf_printf(out, "\t\targs[%u]: %s\n", i, probe_arg_type(&p->sig.args[i]));
	if (p->nparams)
		strbuf_puts(out, "\n\tPython Parameters\n");
	for (i = 0; i < p->nparams; i++)
		strbuf_printf(out, "\t\tpyarg(\"%s\")%s%s\n", p->params[i] + strspn(p->params[i], "*"),
			      *p->params[i] == '*' ? ": " : "", *p->params[i] == '*' ? p->params[i] : "");
	strbuf_puts(out, "\n");
}

static void say_missing(struct dtap *t, const struct probe_desc *d)
{
	const char *hint = probe_hint(t->probes, d, t->arena);
	struct strbuf text = { 0 };

	if (d->id)
		strbuf_printf(&text, "%u", d->id);
	else
		strbuf_printf(&text, "%s:%s:%s:%s", d->prov, d->mod, d->func, d->name);
	if (hint)
		lib_error(t, "failed to match %s: No probe matches description (%s)", strbuf_str(&text), hint);
	else
		lib_error(t, "failed to match %s: No probe matches description", strbuf_str(&text));
	strbuf_fini(&text);
}

size_t d_list(struct dtap *t, const struct probe_desc *descs, size_t n, bool verbose, struct strbuf *out)
{
	struct probe_list found = { 0 };
	size_t i, missing = 0;

	for (i = 0; i < n; i++) {
		if (probe_find(t->probes, &descs[i], PROBE_LIST, &found))
			continue;
		missing++;
		say_missing(t, &descs[i]);
	}
	if (found.n)
		qsort(found.probes, found.n, sizeof(struct probe *), by_id);
	strbuf_puts(out, "   ID   PROVIDER            MODULE                          FUNCTION NAME\n");
	for (i = 0; i < found.n; i++) {
		put_probe(out, found.probes[i]);
		if (!verbose)
			continue;
		put_attributes(out, found.probes[i]);
		put_arguments(out, found.probes[i]);
	}
	return missing;
}

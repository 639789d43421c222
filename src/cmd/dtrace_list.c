#include "cmd/dtrace_list.h"

#include <stdio.h>
#include <stdlib.h>

#include "out/sink.h"
#include "probe/probe.h"

static int by_id(const void *a, const void *b)
{
	const struct probe *x = *(struct probe *const *)a, *y = *(struct probe *const *)b;

	return x->id < y->id ? -1 : x->id > y->id;
}

/* The columns of dtrace(1), as the HOWTO shows them. */
static void print_probe(struct out_sink *out, const struct probe *p)
{
	out_format(out, "%5u %10s %17s %33s %s\n", p->id, p->prov, p->mod, p->func, p->name);
}

static void print_arguments(struct out_sink *out, const struct probe *p)
{
	unsigned int i;

	out_puts(out, "\n\tArgument Types\n");
	if (!p->sig.nargs)
		out_puts(out, "\t\tNone\n");
	for (i = 0; i < p->sig.nargs; i++)
		out_format(out, "\t\targs[%u]: %s\n", i, probe_arg_type(&p->sig.args[i]));
	out_puts(out, "\n");
}

size_t dtrace_list(struct arena *a, struct probe_set *set, const struct probe_desc *descs, size_t n, bool verbose,
		   struct out_sink *out)
{
	struct probe_list found = { 0 };
	const char *hint;
	size_t i, missing = 0;

	for (i = 0; i < n; i++) {
		if (probe_find(set, &descs[i], PROBE_LIST, &found))
			continue;
		missing++;
		hint = probe_hint(set, &descs[i], a);
		fprintf(stderr, "dtrace: failed to match ");
		if (descs[i].id)
			fprintf(stderr, "%u", descs[i].id);
		else
			fprintf(stderr, "%s:%s:%s:%s", descs[i].prov, descs[i].mod, descs[i].func,
				descs[i].name);
		fprintf(stderr, ": No probe matches description%s%s%s\n", hint ? " (" : "", hint ? hint : "",
			hint ? ")" : "");
	}
	if (found.n)
		qsort(found.probes, found.n, sizeof(struct probe *), by_id);
	out_puts(out, "   ID   PROVIDER            MODULE                          FUNCTION NAME\n");
	for (i = 0; i < found.n; i++) {
		print_probe(out, found.probes[i]);
		if (verbose)
			print_arguments(out, found.probes[i]);
	}
	return missing;
}

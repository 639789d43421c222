/*
 * The probe set as a compilation's resolver: how many probes does a description have, and do they agree on
 * their arguments?
 */
#include "probe/probe.h"

static bool same_sig(const struct probe_sig *x, const struct probe_sig *y)
{
	if (x->nargs != y->nargs)
		return false;
	for (unsigned int i = 0; i < x->nargs; i++)
		if (!probe_arg_same(&x->args[i], &y->args[i]))
			return false;
	return true;
}

static unsigned int match(void *ctx, const struct probe_desc *desc, struct probe_sig *sig, bool *same)
{
	struct probe_list list = { 0 };
	size_t n = probe_find(ctx, desc, PROBE_ENABLE, &list);
	bool agree = true;

	for (size_t i = 1; i < n && agree; i++)
		agree = same_sig(&list.probes[0]->sig, &list.probes[i]->sig);
	if (n && agree && sig)
		*sig = list.probes[0]->sig;
	if (same)
		*same = n && agree;
	return (unsigned int)n;
}

static const char *hint(void *ctx, const struct probe_desc *desc, struct arena *a)
{
	return probe_hint(ctx, desc, a);
}

struct resolver probe_resolver(struct probe_set *set)
{
	return (struct resolver){ .ctx = set, .match = match, .hint = hint };
}

/*
 * The dtrace provider: BEGIN, END and ERROR, which are in every set.  DTrace guide, "dtrace Provider".
 */
#include "probe/provider.h"

extern const struct provider provider_dtrace;

static void find(struct finding *f)
{
	for (uint32_t id = 1; id <= 3; id++) {
		struct probe *p = probe_get(f->set, id);

		if (found_match(f, p->prov, p->mod, p->func, p->name))
			found_add(f, p);
	}
}

const struct provider provider_dtrace = { find, .is_general = true };

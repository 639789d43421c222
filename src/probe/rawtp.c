/*
 * The rawtp provider: the kernel's raw tracepoints, with their raw arguments.
 *
 *	rawtp:vmlinux::sched_switch
 *
 * Addresses are the kernel's.  Tracepoints of loadable modules are left out.
 */
#include "probe/provider.h"

#include <string.h>

#include "base/arena.h"
#include "probe/ktypes.h"

extern const struct provider provider_rawtp;

static void find_one(void *ctx, const char *name)
{
	struct probe key = { .prov = "rawtp", .mod = "vmlinux", .func = "", .name = name, .kind = PROBE_TP };
	struct finding *f = ctx;
	struct arena *a = set_arena(f->set);
	struct ktypes *k = set_ktypes(f->set);
	struct probe *p;
	char text[96];
	int nargs;
	bool made;

	if (!found_match(f, key.prov, key.mod, key.func, name))
		return;
	nargs = ktypes_args(k, name, NULL);
	if (nargs < 0)
		return;
	p = set_probe(f->set, &key, &made);
	if (made) {
		ktypes_args(k, name, &p->sig);
		p->tp = arena_new_of(a, struct ebpf_tp);
		p->tp->name = p->name;
		p->tp->nargs = p->sig.nargs;
		for (unsigned int i = 0; i < p->sig.nargs; i++) {
			if (ktypes_arg_text(k, name, i, text, sizeof(text)))
				p->sig.args[i].type = arena_strdup(a, text);
			p->tp->args[i] = (struct ebpf_tp_value){ .kind = EBPF_TP_VALUE, .word = (uint8_t)i,
								 .width = p->sig.args[i].size,
								 .sign = p->sig.args[i].sign };
		}
	}
	found_add(f, p);
}

static void find(struct finding *f)
{
	const struct probe_desc *d = f->desc;
	struct ktypes *k;

	/* Tracepoints' names are C identifiers: that excludes most descriptions without a provider. */
	if (!desc_glob(d->prov, "rawtp") || !desc_glob(d->mod, "vmlinux") || !desc_glob(d->func, "") ||
	    strchr(d->name, '-') || (!*d->prov && *d->name && f->out->n > f->before))
		return;
	k = set_ktypes(f->set);
	if (!k)
		return;
	if (*d->name && !desc_is_glob(d->name))
		find_one(f, d->name);
	else
		ktypes_each(k, find_one, f);
}

const struct provider provider_rawtp = { find, .is_general = true };

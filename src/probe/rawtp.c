/*
 * The rawtp provider: the kernel's raw tracepoints, with their raw arguments.
 *
 *	rawtp:sched::sched_switch
 *
 * The module is the group that tracefs has the tracepoint in, as in DTrace for Linux; vmlinux also stands for each of
 * them, and is the module of those in no group.
 *
 * Addresses are the kernel's.  Tracepoints of loadable modules are left out.
 */
#include "probe/provider.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "probe/ktypes.h"

extern const struct provider provider_rawtp;

static const char anywhere[] = "vmlinux";

/* What is looked for, and tracefs' list of its events, "group:name\n" each; "" if it cannot be read. */
struct search {
	struct finding *f;
	const char *events;
};

/* tracefs where nobody has mounted it: a mount that is in no name space, for this one file.  NULL: not permitted. */
static FILE *open_unmounted(void)
{
	int fs = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC), mount = -1, fd = -1;
	FILE *f = NULL;

	if (fs >= 0 && !syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		mount = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, 0);
	if (mount >= 0)
		fd = openat(mount, "available_events", O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		f = fdopen(fd, "r");
	if (fd >= 0 && !f)
		close(fd);
	if (mount >= 0)
		close(mount);
	if (fs >= 0)
		close(fs);
	return f;
}

static const char *read_events(struct arena *a)
{
	FILE *f = fopen("/sys/kernel/tracing/available_events", "re");
	struct strbuf text = { 0 };
	char part[4096];
	const char *ret;
	size_t n;

	if (!f)
		f = open_unmounted();
	while (f && (n = fread(part, 1, sizeof(part), f)) > 0)
		strbuf_add(&text, part, n);
	if (f)
		fclose(f);
	ret = arena_strdup(a, strbuf_str(&text));
	strbuf_fini(&text);
	return ret;
}

static const char *group_of(struct arena *a, const char *events, const char *name)
{
	size_t len = strlen(name);
	const char *line, *colon, *end;

	for (line = events; *line; line = *end ? end + 1 : end) {
		end = line + strcspn(line, "\n");
		colon = memchr(line, ':', (size_t)(end - line));
		if (colon && (size_t)(end - colon - 1) == len && !memcmp(colon + 1, name, len))
			return arena_strndup(a, line, (size_t)(colon - line));
	}
	return anywhere;
}

static void find_one(void *ctx, const char *name)
{
	struct probe key = { .prov = "rawtp", .mod = anywhere, .func = "", .name = name, .kind = PROBE_TP };
	const struct search *s = ctx;
	struct finding *f = s->f;
	struct arena *a = set_arena(f->set);
	struct ktypes *k = set_ktypes(f->set);
	struct probe *p;
	char text[96];
	int nargs;
	bool made;

	if (!desc_glob(f->desc->name, name))
		return;
	key.mod = group_of(a, s->events, name);
	if (!found_match(f, key.prov, key.mod, key.func, name) && !found_match(f, key.prov, anywhere, key.func, name))
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
	struct search s = { f, "" };
	struct ktypes *k;

	/* Tracepoints' names are C identifiers: that excludes most descriptions without a provider. */
	if (!desc_glob(d->prov, "rawtp") || (!*d->prov && !desc_glob(d->mod, anywhere)) || !desc_glob(d->func, "") ||
	    strchr(d->name, '-') || (!*d->prov && *d->name && f->out->n > f->before))
		return;
	k = set_ktypes(f->set);
	if (!k)
		return;
	s.events = read_events(set_arena(f->set));
	if (*d->name && !desc_is_glob(d->name))
		find_one(&s, d->name);
	else
		ktypes_each(k, find_one, &s);
}

const struct provider provider_rawtp = { find, .is_general = true };

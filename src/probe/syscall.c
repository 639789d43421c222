/*
 * The syscall provider: entry and return of each system call.  DTrace guide, "syscall Provider".
 *
 *	syscall:vmlinux:read:entry	arg0 to arg5 as the program passed them; args[] by syscall_args.def
 *	syscall:vmlinux:read:return	arg0 and arg1: what it returns, -1 when it failed; errno then says why
 *					arg2: what the kernel returned, -errno when it failed
 *
 * Names and numbers are those of the architecture; the running kernel may have fewer.  Probes fire in all processes.
 */
#include "probe/provider.h"

#include <string.h>

#include "base/arena.h"

extern const struct provider provider_syscall;

static const struct {
	uint32_t number;
	const char *name;
} calls[] = {
#define SYSCALL(NUMBER, NAME) { NUMBER, #NAME },
#if defined(__x86_64__)
#include "arch/x86_64/syscalls.def"
#elif defined(__aarch64__)
#include "arch/aarch64/syscalls.def"
#else
#error "which system calls are there?"
#endif
#undef SYSCALL
};

enum { NCALLS = sizeof(calls) / sizeof(calls[0]) };

int syscall_number(const char *name)
{
	for (size_t i = 0; i < NCALLS; i++)
		if (!strcmp(calls[i].name, name))
			return (int)calls[i].number;
	return -1;
}

const char *syscall_name(uint32_t number)
{
	for (size_t i = 0; i < NCALLS; i++)
		if (calls[i].number == number)
			return calls[i].name;
	return NULL;
}

/* args[] of the entry of call @name, or six integers. */
static void describe_args(struct arena *a, const char *name, struct probe_sig *sig)
{
	static const struct {
		const char *name, *types;
	} known[] = {
#define SYSCALL_ARGS(NAME, TYPES) { #NAME, TYPES },
#include "probe/syscall_args.def"
#undef SYSCALL_ARGS
	};
	const char *s, *end;
	size_t i = 0;

	while (i < sizeof(known) / sizeof(known[0]) && strcmp(known[i].name, name))
		i++;
	if (i == sizeof(known) / sizeof(known[0])) {
		for (sig->nargs = 0; sig->nargs < 6; sig->nargs++)
			sig->args[sig->nargs] = (struct probe_arg){ .size = 8, .sign = true };
		return;
	}
	for (s = known[i].types; *s; s = end + strspn(end, ", ")) {
		end = strchrnul(s, ',');
		sig->args[sig->nargs++] = (struct probe_arg){ .type = arena_strndup(a, s, (size_t)(end - s)), .size = 8,
							      .sign = true };
	}
}

static void add(struct finding *f, size_t i, bool is_exit)
{
	struct probe key = { .prov = "syscall", .mod = "vmlinux", .func = calls[i].name,
			     .name = is_exit ? "return" : "entry", .kind = PROBE_TP };
	struct probe *p;
	bool made;

	p = set_probe(f->set, &key, &made);
	if (made) {
		p->tp = arena_new_of(set_arena(f->set), struct ebpf_tp);
		p->tp->name = is_exit ? "sys_exit" : "sys_enter";
		p->tp->syscalls = is_exit ? EBPF_TP_EXIT : EBPF_TP_ENTER;
		p->tp->syscall = calls[i].number;
		if (is_exit)
			p->sig.nargs = 2;
		else
			describe_args(set_arena(f->set), p->func, &p->sig);
		for (unsigned int n = 0; is_exit && n < p->sig.nargs; n++)
			p->sig.args[n] = (struct probe_arg){ .size = 8, .sign = true };
	}
	found_add(f, p);
}

static void find(struct finding *f)
{
	const struct probe_desc *d = f->desc;

	if (!desc_glob(d->prov, "syscall") || !desc_glob(d->mod, "vmlinux"))
		return;
	for (size_t i = 0; i < NCALLS; i++) {
		if (!desc_glob(d->func, calls[i].name))
			continue;
		if (desc_glob(d->name, "entry"))
			add(f, i, false);
		if (desc_glob(d->name, "return"))
			add(f, i, true);
	}
}

const struct provider provider_syscall = { find, .is_general = true };

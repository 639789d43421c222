/*
 * The proc and sched providers: events of processes and threads, from the kernel's tracepoints (task.def).
 *
 * A row for which this kernel lacks the tracepoint or a structure has no probe.
 */
#include "probe/provider.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/arch.h"
#include "base/arena.h"
#include "base/strbuf.h"
#include "probe/ktypes.h"

extern const struct provider provider_proc, provider_sched;

static const struct row {
	const char *prov, *name, *tracepoint, *who, *filters, *args, *types;
} rows[] = {
#define TASK(...) { __VA_ARGS__ },
#define TASK_NONE(...)
#include "probe/task.def"
#undef TASK
#undef TASK_NONE
};

static const struct {
	const char *prov, *name, *why;
} missing[] = {
#define TASK(...)
#define TASK_NONE(...) { __VA_ARGS__ },
#include "probe/task.def"
#undef TASK
#undef TASK_NONE
};

/* The types to which args[] are translated, and their inputs. */
static const struct {
	const char *name, *from, *to;
} translated[] = {
	{ "psinfo", "struct task_struct *", "psinfo_t *" },
	{ "lwpsinfo", "struct task_struct *", "lwpsinfo_t *" },
	{ "siginfo", "struct kernel_siginfo *", "siginfo_t *" },
};

/* Read the next item of the list at *p; "" at its end. */
static const char *next_item(const char **p, char *buf, size_t size)
{
	size_t len = strcspn(*p, ",");

	snprintf(buf, size, "%.*s", (int)len, *p);
	*p += len;
	*p += strspn(*p, ", ");
	return buf;
}

static bool describe_value(const struct ktypes *k, const struct ebpf_tp *tp, const char *item, struct ebpf_tp_value *ret);

/* The value @first, but in the system call that @other names, "%call call.argN", that of @other. */
static bool describe_choice(const struct ktypes *k, const struct ebpf_tp *tp, const char *first, const char *other,
			    struct ebpf_tp_value *ret)
{
	struct ebpf_tp_value of_other;
	char name[32];
	size_t len = strcspn(other, " ");

	snprintf(name, sizeof(name), "%.*s", (int)len - 1, other + 1);
	if (!describe_value(k, tp, first, ret) || !describe_value(k, tp, other + len + 1, &of_other))
		return false;
	ret->other_call = (uint32_t)syscall_number(name);
	ret->other_off = of_other.off[0];
	return true;
}

/* Describe the value that a list calls @item.  False: this kernel, or the description of this machine, lacks it. */
static bool describe_value(const struct ktypes *k, const struct ebpf_tp *tp, const char *item, struct ebpf_tp_value *ret)
{
	const char *other = strstr(item, " or ");
	const struct arch *arch = arch_host();
	const char *field;
	char text[128];

	if (other) {
		snprintf(text, sizeof(text), "%.*s", (int)(other - item), item);
		return describe_choice(k, tp, text, other + strlen(" or "), ret);
	}
	if (strncmp(item, "call", strlen("call")))
		return ktypes_value(k, tp->name, item, ret);
	if (item[strlen("call")] == '.')
		field = arch ? arch->kept.syscall_arg_fields[item[strlen("call.arg")] - '0'] : NULL;
	else
		field = arch ? arch->kept.syscall_field : NULL;
	if (!field)
		return false;
	snprintf(text, sizeof(text), "0:pt_regs.%s", field);
	return ktypes_value(k, tp->name, text, ret);
}

/* A number, or that of the system call %name. */
static uint32_t number_of(const char *text, char **end)
{
	char name[32];
	size_t len;

	if (*text != '%')
		return (uint32_t)strtol(text, end, 0);
	len = strcspn(++text, "|");
	*end = (char *)text + len;
	snprintf(name, sizeof(name), "%.*s", (int)len, text);
	return (uint32_t)syscall_number(name);
}

static bool add_filter(const struct ktypes *k, struct ebpf_tp *tp, char *text)
{
	char *op = strpbrk(text, "&!="), *end = op;
	bool differs;

	if (tp->nfilters == EBPF_TP_FILTERS || !op)
		return false;
	if (*op == '&') {
		tp->filters[tp->nfilters].mask = (uint32_t)strtoul(op + 1, &end, 0);
		*op = '\0';
	}
	differs = *end == '!';
	*end = '\0';
	end += differs ? 2 : 1;
	tp->filters[tp->nfilters].want = number_of(end, &end);
	tp->filters[tp->nfilters].differs = differs;
	if (*end == '|') {
		tp->filters[tp->nfilters].has_or = true;
		tp->filters[tp->nfilters].or_want = number_of(end + 1, &end);
	}
	return describe_value(k, tp, text, &tp->filters[tp->nfilters++].value);
}

/*
 * Replace the filter "native" by that of this machine's struct pt_regs; "": no program has other numbers.  False: the
 * machine is not described.
 */
static bool name_filter(char *item, size_t size)
{
	const struct arch *arch = arch_host();

	if (strcmp(item, "native"))
		return true;
	if (!arch || !arch->kept.mode_field)
		*item = '\0';
	else
		snprintf(item, size, "0:pt_regs.%s!=%u", arch->kept.mode_field, arch->kept.mode_32);
	return arch;
}

/* The tracepoint of @row in this kernel; false: it has none. */
static bool describe(const struct ktypes *k, const struct row *row, struct ebpf_tp *tp)
{
	const char *list = row->filters;
	char item[128];
	uint8_t size;
	bool sign;

	tp->name = row->tracepoint;
	if (ktypes_args(k, row->tracepoint, NULL) < 0)
		return false;
	while (*list) {
		next_item(&list, item, sizeof(item));
		if (!name_filter(item, sizeof(item)) || (*item && !add_filter(k, tp, item)))
			return false;
	}
	for (list = row->args; *list; tp->nargs++) {
		next_item(&list, item, sizeof(item));
		if (tp->nargs == EBPF_TP_ARGS || !describe_value(k, tp, item, &tp->args[tp->nargs]))
			return false;
		tp->args[tp->nargs].number = strstr(item, ":task_struct.pid") ? EBPF_TP_THREAD_NUMBER :
					     strstr(item, ":task_struct.tgid") ? EBPF_TP_PROCESS_NUMBER : EBPF_TP_NO_NUMBER;
	}
	if (!row->who)
		return true;
	return ktypes_value(k, tp->name, row->who, &tp->task) &&
	       ktypes_member(k, "task_struct.pid", &tp->task_pid, &size, &sign) &&
	       ktypes_member(k, "task_struct.tgid", &tp->task_tgid, &size, &sign) &&
	       (ktypes_member(k, "task_struct.comm", &tp->task_comm, &size, &sign) || tp->task_comm);
}

/* Set the signature from @types. */
static void describe_args(struct arena *a, const char *types, struct probe_sig *sig)
{
	char item[64], *number;

	while (*types) {
		struct probe_arg *arg = &sig->args[sig->nargs++];

		next_item(&types, item, sizeof(item));
		number = strrchr(item, ' ');
		*number++ = '\0';
		*arg = (struct probe_arg){ .size = 8, .raw = (uint8_t)(1 + atoi(number)) };
		for (size_t i = 0; i < sizeof(translated) / sizeof(translated[0]); i++)
			if (!strcmp(item, translated[i].name)) {
				arg->type = translated[i].from;
				arg->xlate = translated[i].to;
				arg->kernel = true;
			}
		if (!arg->xlate)
			arg->type = arena_strdup(a, item);
		if (!strcmp(item, "int")) {
			arg->size = 4;
			arg->sign = true;
		}
	}
}

/* False: this kernel does not have it. */
static bool find_row(struct finding *f, const struct row *row)
{
	struct probe key = { .prov = row->prov, .mod = "vmlinux", .func = "", .name = row->name, .kind = PROBE_TP };
	struct ebpf_tp tp = { 0 };
	struct ktypes *k;
	struct probe *p;
	bool made;

	if (!found_match(f, row->prov, key.mod, key.func, row->name))
		return true;
	k = set_ktypes(f->set);
	if (!k || !describe(k, row, &tp))
		return false;
	p = set_probe(f->set, &key, &made);
	if (made) {
		p->tp = arena_new_of(set_arena(f->set), struct ebpf_tp);
		*p->tp = tp;
		describe_args(set_arena(f->set), row->types, &p->sig);
	}
	found_add(f, p);
	return true;
}

/* Report why Linux cannot have a probe of Solaris that the description names. */
static void say_missing(struct finding *f, const char *prov)
{
	struct strbuf *why = set_why(f->set);

	for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++) {
		if (strcmp(missing[i].prov, prov) || strcmp(f->desc->name, missing[i].name) ||
		    strcmp(f->desc->prov, prov) || strstr(strbuf_str(why), missing[i].why))
			continue;
		strbuf_clear(why);
		strbuf_printf(why, "%s:::%s: %s", prov, missing[i].name, missing[i].why);
	}
}

static void find_in(struct finding *f, const char *prov)
{
	bool found = false;

	say_missing(f, prov);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strcmp(rows[i].prov, prov))
			continue;
		if (found && !strcmp(rows[i].name, rows[i - 1].name))
			continue;
		found = find_row(f, &rows[i]);
	}
}

static void find_proc(struct finding *f)
{
	find_in(f, "proc");
}

static void find_sched(struct finding *f)
{
	find_in(f, "sched");
}

const struct provider provider_proc = { find_proc, .is_general = true };
const struct provider provider_sched = { find_sched, .is_general = true };

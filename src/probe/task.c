/*
 * The proc and sched providers: what happens to processes and threads, from the kernel's tracepoints (task.def).
 *
 * A row that this kernel has no tracepoint or no structure for is not there.
 */
#include "probe/provider.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "probe/ktypes.h"

extern const struct provider provider_proc, provider_sched;

static const struct row {
	const char *prov, *name, *tracepoint, *who, *filters, *args;
} rows[] = {
#define TASK(...) { __VA_ARGS__ },
#include "probe/task.def"
#undef TASK
};

/* The next of the list at *p, which is moved behind it; "" at its end. */
static const char *next_item(const char **p, char *buf, size_t size)
{
	size_t len = strcspn(*p, ",");

	snprintf(buf, size, "%.*s", (int)len, *p);
	*p += len;
	*p += strspn(*p, ", ");
	return buf;
}

static bool add_filter(const struct ktypes *k, struct ebpf_tp *tp, char *text)
{
	char *op = strpbrk(text, "&!="), *end = op;
	bool differs;
	int number;

	if (tp->nfilters == EBPF_TP_FILTERS || !op)
		return false;
	if (*op == '&') {
		tp->filters[tp->nfilters].mask = (uint32_t)strtoul(op + 1, &end, 0);
		*op = '\0';
	}
	differs = *end == '!';
	*end = '\0';
	end += differs ? 2 : 1;
	number = *end == '%' ? syscall_number(end + 1) : (int)strtol(end, NULL, 0);
	tp->filters[tp->nfilters].want = (uint32_t)number;
	tp->filters[tp->nfilters].differs = differs;
	return ktypes_value(k, tp->name, text, &tp->filters[tp->nfilters++].value);
}

/* The tracepoint of @row as this kernel has it; false when it has not. */
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
		if (!add_filter(k, tp, item))
			return false;
	}
	for (list = row->args; *list; tp->nargs++) {
		next_item(&list, item, sizeof(item));
		if (tp->nargs == EBPF_TP_ARGS || !ktypes_value(k, tp->name, item, &tp->args[tp->nargs]))
			return false;
	}
	if (!row->who)
		return true;
	return ktypes_value(k, tp->name, row->who, &tp->task) &&
	       ktypes_member(k, "task_struct.pid", &tp->task_pid, &size, &sign) &&
	       ktypes_member(k, "task_struct.tgid", &tp->task_tgid, &size, &sign) &&
	       (ktypes_member(k, "task_struct.comm", &tp->task_comm, &size, &sign) || tp->task_comm);
}

static void find_row(struct finding *f, const struct row *row)
{
	struct probe key = { .prov = row->prov, .mod = "vmlinux", .func = "", .name = row->name, .kind = PROBE_TP };
	struct ebpf_tp tp = { 0 };
	struct ktypes *k;
	struct probe *p;
	bool made;

	if (!found_match(f, row->prov, key.mod, key.func, row->name))
		return;
	k = set_ktypes(f->set);
	if (!k || !describe(k, row, &tp))
		return;
	p = set_probe(f->set, &key, &made);
	if (made) {
		p->tp = arena_new_of(set_arena(f->set), struct ebpf_tp);
		*p->tp = tp;
		p->sig.nargs = tp.nargs;
		for (unsigned int i = 0; i < tp.nargs; i++)
			p->sig.args[i] = (struct probe_arg){ .size = tp.args[i].width, .sign = tp.args[i].sign };
	}
	found_add(f, p);
}

static void find_in(struct finding *f, const char *prov)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strcmp(rows[i].prov, prov))
			find_row(f, &rows[i]);
}

static void find_proc(struct finding *f)
{
	find_in(f, "proc");
}

static void find_sched(struct finding *f)
{
	find_in(f, "sched");
}

const struct provider provider_proc = { find_proc };
const struct provider provider_sched = { find_sched };

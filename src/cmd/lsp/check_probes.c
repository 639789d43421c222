/*
 * D's probe descriptions where no process is looked at: the providers of the machine answer for themselves, Python's
 * markers and events are known by their names, and of other providers nothing is known.
 */
#include "cmd/lsp/check.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "abi/marker.h"
#include "base/arena.h"
#include "lang/desc.h"
#include "probe/probe.h"
#include "probe/python.h"

/* Providers of which all probes are known by name, wherever the script runs. */
static const char *const general[] = { "dtrace", "profile", "syscall", "proc", "sched" };

/* Probes that a kernel may not have, and that no other test of their names finds. */
static const struct {
	const char *prov, *name, *types;
} tasks[] = {
#define TASK(prov, name, tracepoint, who, filters, args, types) { prov, name, types },
#define TASK_NONE(...)
#include "probe/task.def"
#undef TASK
#undef TASK_NONE
};

enum { NTASKS = sizeof(tasks) / sizeof(tasks[0]) };

/* What functions of Python have (probe/pyfunc.c). */
static const char *const events[] = { "entry", "return", "raise", "yield", "resume", "line-1" };

/* The marker with number @i as D names it. */
static const char *marker_name(int i, char buf[static 64])
{
	static const char *const names[] = {
#define ABI_MARKER(name, ...) #name,
#include "abi/marker.def"
#undef ABI_MARKER
	};

	snprintf(buf, 64, "%s", names[i]);
	marker_dash(buf, buf);
	return buf;
}

static void marker_sig(int number, struct probe_sig *sig)
{
	sig->nargs = marker_args(number);
	for (unsigned int i = 0; i < sig->nargs; i++) {
		const char *type = marker_type(number, i);

		sig->args[i] = (struct probe_arg){ .type = type, .size = strcmp(type, "int") ? 8 : 4, .sign = !strchr(type, '*') };
	}
}

/* Does the provider of @d, a pattern or with a process's number, name those of processes called @name? */
static bool names(const struct probe_desc *d, const char *name)
{
	size_t len = strlen(name);
	char one[64];

	if (!*d->prov)
		return false;
	if (!strncmp(d->prov, name, len) && isdigit((unsigned char)d->prov[len]))
		return strspn(d->prov + len, "0123456789") == strlen(d->prov + len);
	snprintf(one, sizeof(one), "%s1", name);
	return desc_is_glob(d->prov) && desc_glob(d->prov, one);
}

/* The number of markers and of functions' events that @d matches; *marker: the last one, -1: an event. */
static unsigned int of_python(const struct probe_desc *d, bool any_provider, int *marker, bool *same)
{
	struct probe_sig first = { 0 }, sig = { 0 };
	unsigned int n = 0;
	char name[64];

	*same = true;
	for (int i = 0; i < ABI_MARKERS && (any_provider || names(d, "python")); i++) {
		if (!desc_glob(d->name, marker_name(i, name)))
			continue;
		marker_sig(i, &sig);
		first = n++ ? first : sig;
		*same = *same && !memcmp(&sig, &first, sizeof(sig));
		*marker = i;
	}
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]) && names(d, "py"); i++) {
		bool line = !strncmp(d->name, "line-", 5) && strspn(d->name + 5, "0123456789*?") == strlen(d->name + 5);

		if (!desc_glob(d->name, events[i]) && !(line && events[i][0] == 'l'))
			continue;
		*same = *same && (!n || *marker < 0);
		*marker = n++ ? *marker : ABI_MARKER_function__entry;
	}
	return n;
}

/* Is it written with an argument of the script, of which the value is unknown? */
static bool has_argument(const struct probe_desc *d)
{
	size_t len;
	const char *s = d->pos.src ? source_line(d->pos.src, d->pos.line, &len) : NULL;

	for (size_t i = d->pos.col ? d->pos.col - 1 : 0; s && i + 1 < len && s[i] != '/' && s[i] != '{'; i++)
		if (s[i] == '$' && (isdigit((unsigned char)s[i + 1]) || s[i + 1] == '$'))
			return true;
	return false;
}

static bool is_general(const struct probe_desc *d)
{
	for (size_t i = 0; i < sizeof(general) / sizeof(general[0]); i++)
		if (!strcmp(d->prov, general[i]))
			return true;
	return false;
}

static bool is_task(const struct probe_desc *d)
{
	for (size_t i = 0; i < NTASKS; i++)
		if (!strcmp(d->prov, tasks[i].prov) && desc_glob(d->name, tasks[i].name))
			return true;
	return false;
}

/* Nothing that is known has these names.  May a process have such a probe? */
static bool may_exist(const struct verdict *c, const struct probe_desc *d)
{
	if (*probe_why(c->probes))	/* a provider of other DTraces, an interval that cannot be */
		return false;
	if (*d->prov)
		return !is_general(d) && !names(d, "python") && !names(d, "py");
	return *d->mod || *d->func || desc_is_glob(d->name);
}

static unsigned int match(void *ctx, const struct probe_desc *d, struct probe_sig *sig, bool *same)
{
	struct verdict *c = ctx;
	struct resolver known = probe_resolver(c->probes);
	bool alike = true;
	int marker = -1;
	unsigned int n;

	if (same)
		*same = false;
	n = d->id ? 0 : known.match(known.ctx, d, sig, same);
	if (n)
		return n;
	n = d->id ? 0 : of_python(d, !*d->prov, &marker, &alike);
	if (n) {
		if (same)
			*same = alike;
		if (sig && alike)
			marker_sig(marker, sig);
		return n;
	}
	if (!d->id && !has_argument(d) && !is_task(d) && !may_exist(c, d))
		return 0;
	c->strangers++;
	return 1;
}

static const char *hint(void *ctx, const struct probe_desc *d, struct arena *a)
{
	struct verdict *c = ctx;

	if (names(d, "python"))
		return "Python's markers are function-entry, function-return, line, gc-start, gc-done and others: dtrace(1)";
	return probe_hint(c->probes, d, a);
}

struct resolver check_resolver(struct verdict *c)
{
	return (struct resolver){ .ctx = c, .match = match, .hint = hint };
}

/* --- completion --------------------------------------------------------------------------------------- */

static const char *const fixed[][3] = {
	{ "BEGIN", "", "When the script starts." },
	{ "END", "", "When the script ends." },
	{ "ERROR", "", "When another clause faults." },
	{ "tick-1s", "", "Each second, on one CPU." },
	{ "profile-97", "arg0: the kernel's address, arg1: that of the process", "97 times a second, on each CPU." },
	{ "py$target:MODULE:FUNCTION:entry", "char *file, char *function, int line", "A function of Python is called." },
	{ "py$target:MODULE:FUNCTION:return", "char *file, char *function, int line", "A function of Python returns." },
	{ "py$target:MODULE:FUNCTION:raise", "char *file, char *function, int line", "An exception leaves a function of Python." },
	{ "py$target:MODULE:FUNCTION:yield", "char *file, char *function, int line", "A generator or coroutine stops, to go on later." },
	{ "py$target:MODULE:FUNCTION:resume", "char *file, char *function, int line", "A generator or coroutine goes on." },
	{ "pid$target:MODULE:FUNCTION:entry", "the function's arguments", "A function of C is called." },
	{ "pid$target:MODULE:FUNCTION:return", "arg0: the offset, arg1: the value", "A function of C returns." },
};

static const struct {
	const char *name, *types;
} calls[] = {
#define SYSCALL_ARGS(NAME, TYPES) { #NAME, TYPES },
#include "probe/syscall_args.def"
#undef SYSCALL_ARGS
};

void check_each_probe(void (*fn)(void *ctx, const char *desc, const char *args, const char *doc), void *ctx)
{
	char name[64], desc[128], args[128];

	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		fn(ctx, fixed[i][0], fixed[i][1], fixed[i][2]);
	for (int i = 0; i < ABI_MARKERS; i++) {
		static const char *const arguments[][ABI_MARKER_ARGS] = {
#define ARGUMENT(type, argument) #argument
#define ABI_MARKER(name, n, ...) { ABI_ARGS(n, ARGUMENT, __VA_ARGS__) },
#include "abi/marker.def"
#undef ABI_MARKER
#undef ARGUMENT
		};
		size_t len = 0;

		for (unsigned int k = 0; k < marker_args(i); k++)
			len += (size_t)snprintf(args + len, sizeof(args) - len, "%s%s%s%s", k ? ", " : "", marker_type(i, k),
						strchr(marker_type(i, k), '*') ? "" : " ", arguments[i][k]);
		snprintf(desc, sizeof(desc), "python$target:::%s", marker_name(i, name));
		fn(ctx, desc, args, "A marker of CPython, or of dtap's agent where the interpreter lacks it.");
		snprintf(desc, sizeof(desc), "python*:::%s", name);
		fn(ctx, desc, args, "The same in all Pythons.");
	}
	for (size_t i = 0; i < NTASKS; i++) {
		if (i && !strcmp(tasks[i].name, tasks[i - 1].name) && !strcmp(tasks[i].prov, tasks[i - 1].prov))
			continue;
		snprintf(desc, sizeof(desc), "%s:::%s", tasks[i].prov, tasks[i].name);
		fn(ctx, desc, tasks[i].types, "An event of a process or thread: dtrace(1).");
	}
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		snprintf(desc, sizeof(desc), "syscall::%s:entry", calls[i].name);
		fn(ctx, desc, calls[i].types, "A system call begins.");
		snprintf(desc, sizeof(desc), "syscall::%s:return", calls[i].name);
		fn(ctx, desc, "arg0, arg1: what it returns, -1 for an error", "A system call returns.");
	}
}

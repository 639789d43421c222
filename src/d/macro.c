/*
 * Macro arguments and variables: $1, $$1, $target, $pid ...
 *
 * Guide: "Scripting", "Macro Variables" and "Macro Arguments".
 */
#include "d/lex.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"

void d_macros_init(struct d_macros *m)
{
	memset(m, 0, sizeof(*m));
	m->pid = getpid();
	m->ppid = getppid();
	m->pgid = getpgrp();
	m->sid = getsid(0);
	m->uid = getuid();
	m->euid = geteuid();
	m->gid = getgid();
	m->egid = getegid();
}

static const char *argument(struct d_lex *l, const char *name, const char **why)
{
	struct d_macro_state *s = l->macros;
	unsigned long n = strtoul(name, NULL, 10);	/* if too large: ULONG_MAX, more than any argument's number */

	if (n < s->m.argc) {
		s->used[n] = true;
		return s->m.argv[n];
	}
	if (s->m.defaultargs)
		return "";
	*why = "give it behind the script or after --, or set the option defaultargs";
	return NULL;
}

const char *macro_text(struct d_lex *l, const char *name, bool desc, const char **why)
{
	const struct d_macros *m = &l->macros->m;
	const struct {
		const char *name;
		int64_t value;
	} vars[] = {
		{ "pid", m->pid },   { "ppid", m->ppid }, { "pgid", m->pgid }, { "sid", m->sid },
		{ "uid", m->uid },   { "euid", m->euid }, { "gid", m->gid },   { "egid", m->egid },
		{ "projid", 0 },     { "taskid", 0 },	  { "zoneid", 0 },	/* do not exist on Linux */
	};
	size_t i;

	*why = NULL;
	if (isdigit((unsigned char)*name))
		return argument(l, name, why);
	if (!strcmp(name, "target")) {
		*why = "a target is given by -c or -p";
		return m->target || m->defaultargs || !desc ? arena_printf(l->prog->arena, "%lld", (long long)m->target) : NULL;
	}
	for (i = 0; i < sizeof(vars) / sizeof(vars[0]); i++)
		if (!strcmp(vars[i].name, name))
			return arena_printf(l->prog->arena, "%lld", (long long)vars[i].value);
	return NULL;
}

/*
 * SystemTap's points of Python's functions by name: python3.module("M").function("F"), .call and .return.  Man page
 * stapprobes(3stap), "PYTHON".
 *
 * SystemTap's events are sys.settrace's "call" and "return": resuming a generator is a call, and yielding and leaving
 * by an exception are returns.  So a point has several probes of the py provider (pyfunc.c).  A script that is run is
 * named by its file's name, as well as by __main__.  With a target only it and its children get the agent.
 *
 * A listing has the functions that exist now, in the target or in all Pythons.
 */
#include "probe/points_priv.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "abi/segment.h"
#include "base/arena.h"
#include "base/strbuf.h"
#include "probe/procs.h"
#include "probe/pylist.h"

enum { MOST = 3 };

static const struct event {
	enum abi_function what;
	const char *prov;		/* of the set's probe; users see only the point */
} lines[MOST] = { { ABI_FUNCTION_LINE, "stap" } },
  calls[MOST] = { { ABI_FUNCTION_ENTRY, "stap" }, { ABI_FUNCTION_RESUME, "stap-resume" } },
  returns[MOST] = { { ABI_FUNCTION_RETURN, "stap" }, { ABI_FUNCTION_YIELD, "stap-yield" }, { ABI_FUNCTION_RAISE, "stap-raise" } };

/*
 * A pattern of functions: NAME, NAME@FILE, and for a line of it NAME@FILE:LINE, or NAME@FILE+LINE counted from the function's
 * first one.
 */
struct pattern {
	const char *name, *file;	/* @file: NULL if there is none */
	uint32_t line;
	bool has_line, from_first;
};

/* Returns why it is none, or NULL. */
static const char *take_pattern(struct points *p, const char *text, struct pattern *ret)
{
	const char *at = strchr(text, '@'), *digits = text + strlen(text);
	unsigned long line;

	*ret = (struct pattern){ .name = text };
	if (!at)
		return NULL;
	ret->name = arena_strndup(p->arena, text, (size_t)(at - text));
	while (digits > at + 1 && isdigit((unsigned char)digits[-1]))
		digits--;
	if (*digits && (digits[-1] == ':' || digits[-1] == '+')) {
		line = strtoul(digits, NULL, 10);
		if (line > INT32_MAX)
			return "a line's number is too large";
		ret->has_line = true;
		ret->from_first = digits[-1] == '+';
		ret->line = (uint32_t)line;
		digits--;
	} else {
		digits = text + strlen(text);
	}
	ret->file = arena_strndup(p->arena, at + 1, (size_t)(digits - at - 1));
	return *ret->name && *ret->file ? NULL : "a function's pattern is NAME, NAME@FILE, NAME@FILE:LINE or NAME@FILE+LINE";
}

/* Why the point is refused, or NULL. */
static const char *refusal(const struct points_search *s, const char *function)
{
	if (!strcmp(s->point->comps[0].name, "python2"))
		return "there are no probes in Python 2: write python3.module(...)";
	if (!s->p->conf.agent && !s->p->conf.listing)
		return "functions of Python by name are found by dtap's agent, which is not there or not allowed";
	if (strchr(function, '@') && s->p->conf.listing)
		return "functions are listed by their module and name: leave the file away";
	if (!*function || !*points_text(s->point, "module"))
		return "no match: an empty name";
	return NULL;
}

/* List the functions of process @pid that the point names. */
static void list_functions(void *ctx, uint32_t pid)
{
	struct points_search *s = ctx;
	struct strbuf why = { 0 };
	struct pylist list;

	if (pylist_read(s->p->arena, pid, points_text(s->point, "module"), points_text(s->point, "function"), &list, &why)) {
		if (s->p->conf.pid)
			s->why = arena_strdup(s->p->arena, strbuf_str(&why));
		list.n = 0;
	}
	for (size_t i = 0; i < list.n; i++) {
		struct stp_point *point = points_copy(s->p, s->point);

		points_set(s->p, point, "module", list.v[i].module);
		points_set(s->p, point, "function", list.v[i].name);
		points_add(s, point, NULL);
		s->p->found[s->p->nfound - 1].listed = &list.v[i];
	}
	strbuf_fini(&why);
}

static bool variables(struct stp_source *source, const struct stp_node *target)
{
	static const struct { const char *name; uint32_t which; } rows[] = {
		{ "$$parms", ABI_VARIABLES_PARAMETERS }, { "$$locals", ABI_VARIABLES_LOCALS },
		{ "$$vars", ABI_VARIABLES_PARAMETERS | ABI_VARIABLES_LOCALS },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strcmp(target->name, rows[i].name))
			continue;
		source->kind = STP_SRC_PYTHON_VARS;
		source->arg = rows[i].which | (target->pretty ? ABI_VARIABLES_REPR : 0);
		return true;
	}
	return false;
}

/* $name, $return, followed by ->attribute and [item]; $$parms, $$locals, $$vars. */
bool points_pyfunc_target(struct points *p, bool at_return, const struct stp_node *target, struct stp_source *source,
			  const char **why)
{
	source->type = STP_STRINGS;
	source->readonly = "variables of Python's functions are read-only";
	if (target->is_var || target->addressed) {
		*why = "a variable of Python's function is written as $name, without @var or &";
		return false;
	}
	if (target->nparts > STP_MAX_STEPS) {
		*why = arena_printf(p->arena, "more than %d parts behind a variable", STP_MAX_STEPS);
		return false;
	}
	if (variables(source, target))
		return true;
	source->kind = STP_SRC_PYTHON;
	if (at_return && !strcmp(target->name, "$return"))
		return true;
	if (!strncmp(target->name, "$$", 2)) {
		*why = "a function of Python has $$parms, $$locals and $$vars";
		return false;
	}
	source->text = arena_strdup(p->arena, target->name + 1);
	return true;
}

void points_pyfunc_vars(const struct points_found *f, struct strbuf *out)
{
	for (uint32_t i = 0; i < f->listed->nparams; i++) {
		const char *name = f->listed->params[i] + strspn(f->listed->params[i], "*");

		if (*name != '.')	/* a comprehension's argument has a name that no script can write */
			strbuf_printf(out, " $%s:string", name);
	}
	if (points_comp(f->point, "return"))
		strbuf_puts(out, " $return:string");
}

void points_find_pyfuncs(struct points_search *s, bool at_return)
{
	const char *module = points_text(s->point, "module"), *function = points_text(s->point, "function");
	const struct event *events = at_return ? returns : calls;
	struct pattern pattern;
	struct points *p = s->p;
	struct points_found *found;
	struct probe *probes[MOST], *probe;
	size_t n = 0;

	s->why = refusal(s, function);
	if (!s->why)
		s->why = take_pattern(p, function, &pattern);
	if (!s->why && pattern.has_line && (at_return || points_comp(s->point, "call")))
		s->why = "a line of a function has neither .call nor .return";
	if (s->why)
		return;
	if (pattern.has_line)
		events = lines;
	if (p->conf.listing) {
		s->why = "no such function of Python is there now";
		if (p->conf.pid)
			list_functions(s, p->conf.pid);
		else
			procs_each(list_functions, s);
		return;
	}
	for (size_t i = 0; i < MOST && events[i].prov; i++) {
		struct probe key = { .kind = PROBE_FUNCTION, .mod = module, .func = pattern.name, .by_script = true,
				     .file = pattern.file, .line = pattern.line, .from_first = pattern.from_first,
				     .agent_marker = (uint8_t)(1 + ABI_FUNCTION_FIRST + events[i].what) };

		probe = points_make_as(p, s->point, &key, events[i].prov);
		probes[n++] = probe;
	}
	points_add(s, s->point, probes[0]);
	found = &p->found[p->nfound - 1];
	found->pyfunc = true;
	found->nprobes = n;
	found->probes = arena_alloc(p->arena, n * sizeof(*found->probes));
	memcpy(found->probes, probes, n * sizeof(*probes));
}

bool points_is_pyfunc(const struct stp_point *point)
{
	return !strcmp(point->comps[0].name, "python3");
}

bool points_found_pyfunc(const struct points *p)
{
	for (size_t i = 0; i < p->nfound; i++)
		if (p->found[i].pyfunc)
			return true;
	return false;
}

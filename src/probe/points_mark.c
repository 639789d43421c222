/*
 * process(...).mark("..."): static markers, by the names in their notes.  - in a name means __, as in a provider
 * definition.
 */
#include "probe/points_priv.h"
#include "probe/procs.h"
#include "probe/pygil.h"
#include "probe/python.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "elf/debug.h"
#include "elf/obj.h"

/* gc-start -> gc__start */
static const char *with_underscores(struct arena *a, const char *pattern)
{
	struct strbuf b = { 0 };
	const char *ret;

	if (!strchr(pattern, '-') || strchr(pattern, '['))
		return pattern;
	for (; *pattern; pattern++) {
		if (*pattern == '-')
			strbuf_puts(&b, "__");
		else
			strbuf_putc(&b, *pattern);
	}
	ret = arena_strdup(a, strbuf_str(&b));
	strbuf_fini(&b);
	return ret;
}

static const char *mark_name(const void *file, size_t i)
{
	const struct points_file *f = file;

	return i < f->nmarkers ? f->markers[i].name : NULL;
}

static struct site *make_site(struct points *p, struct points_file *f, const struct obj_marker *m, uint64_t off)
{
	const struct obj_info *info = obj_info(f->obj);
	struct site key = {
		.file = obj_file(f->obj), .dev = info->dev, .ino = info->ino, .off = off, .sem_off = m->sem_off,
		.args_text = arena_strdup(set_arena(p->set), m->args), .gil = pygil_event(m),
	};
	struct obj_marker raw = *m;	/* $arg1 ... are the site's, whatever a provider definition makes of them for D */

	raw.typed = NULL;
	key.nargs = obj_operands(f->obj, &raw, key.args, PROBE_MAX_ARGS);
	if (key.nargs > PROBE_MAX_ARGS)
		key.nargs = PROBE_MAX_ARGS;
	for (unsigned int i = 0; i < key.nargs; i++)	/* the symbol's name belongs to the file */
		key.args[i].sym = NULL;
	return set_site(p->set, &key);
}

/* Inlining gives one marker several sites: only arguments that all sites have are offered. */
static void fill_sig(struct probe *probe)
{
	const struct site *first = probe->sites[0];

	probe->sig.nargs = first->nargs;
	for (unsigned int i = 0; i < first->nargs; i++) {
		probe->sig.args[i].size = first->args[i].size;
		probe->sig.args[i].sign = first->args[i].sign;
		probe->sig.args[i].is_float = first->args[i].is_float;
	}
	for (unsigned int i = 1; i < probe->nsites; i++)
		if (probe->sites[i]->nargs < probe->sig.nargs)
			probe->sig.nargs = probe->sites[i]->nargs;
}

static bool same_mark(const struct obj_marker *a, const struct obj_marker *b)
{
	return !strcmp(a->name, b->name) && !strcmp(a->prov, b->prov);
}

/*
 * The agent's object can be in any process: limit the probe to processes that execute the program in the point.  A
 * point that names a library does not tell which they are.
 */
static const char *find_program(const struct points_search *s, struct probe *probe)
{
	const struct points_file *p = points_open(s->p, s->program);

	if (p->err || !obj_info(p->obj)->interp)
		return NULL;
	if (s->pid || procs_identify(obj_file(p->obj), &probe->exe_dev, &probe->exe_ino))
		probe->exe_ino = 0;
	return s->program;
}

static void add_sites(struct points_search *s, struct probe *probe, struct points_file *f, const struct obj_marker *m)
{
	uint64_t *calls;
	size_t n;

	if (!pygil_event(m)) {
		probe_add_site(s->p->set, probe, make_site(s->p, f, m, m->off));
		return;
	}
	n = pygil_calls(f->obj, pygil_event(m), s->p->arena, &calls);
	for (size_t i = 0; i < n; i++)
		probe_add_site(s->p->set, probe, make_site(s->p, f, m, calls[i]));
}

/* Does the pattern @mark leave @m, of Python's lock, out, or are its calls not known? */
static bool is_hidden(struct points_search *s, struct points_file *f, const struct obj_marker *m, const char *mark)
{
	uint64_t *calls;

	return pygil_event(m) && (!pygil_is_meant(mark) || !pygil_calls(f->obj, pygil_event(m), s->p->arena, &calls));
}

/* Add a point of file @f for marker @first, whose sites are in @from: @f itself, or the agent's object. */
static void add_mark(struct points_search *s, struct points_file *f, struct points_file *from,
		     const struct obj_marker *first)
{
	struct stp_point *point = points_in_file(s, f->path);
	const char *func = first->func ? first->func : obj_func_of(from->obj, first->addr);
	struct probe key = { .kind = PROBE_SITES, .pid = s->pid, .mod = f->path, .func = func };
	const char *program = NULL;
	struct points_found *found;
	struct probe *probe;

	points_set(s->p, point, "mark", first->name);
	if (points_comp(point, "provider"))
		points_set(s->p, point, "provider", first->prov);
	probe = points_make(s->p, point, &key);
	for (size_t i = 0; i < from->nmarkers; i++)
		if (same_mark(&from->markers[i], first))
			add_sites(s, probe, from, &from->markers[i]);
	fill_sig(probe);
	if (from != f) {
		probe->agent_marker = points_agent_marker(first->name);
		program = find_program(s, probe);
	}
	points_add(s, point, probe);
	found = &s->p->found[s->p->nfound - 1];
	found->prov = arena_strdup(s->p->arena, first->prov);
	found->mark = arena_strdup(s->p->arena, first->name);
	found->supplied = from == f ? NULL : f->path;
	found->program = program;
	if (from == f) {
		found->around = f;
		found->around_pc = probe->nsites == 1 ? first->addr : 0;
	}
}

static bool is_first(const struct points_file *f, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (same_mark(&f->markers[k], &f->markers[i]))
			return false;
	return true;
}

/* Add the markers that @f takes from @from. */
static void add_marks(struct points_search *s, struct points_file *f, struct points_file *from, const char *mark)
{
	const char *prov = points_text(s->point, "provider");

	for (size_t i = 0; i < from->nmarkers; i++) {
		const struct obj_marker *m = &from->markers[i];
		bool python = !strcmp(m->prov, PYTHON_PROVIDER), own = from == f;

		if ((!own && !python) || fnmatch(mark, m->name, 0) || (prov && fnmatch(prov, m->prov, 0)) || !is_first(from, i) ||
		    (python && points_python_file(s->p, f, m->name) != from) || is_hidden(s, from, m, mark))
			continue;
		add_mark(s, f, from, m);
	}
}

static void in_file(struct points_search *s, const char *path)
{
	const char *mark = with_underscores(s->p->arena, points_text(s->point, "mark"));
	struct points_file *f = points_open(s->p, path);
	const char *library;
	struct points_file *agent;
	size_t before = s->n;

	if (f->err) {
		s->why = f->why;
		return;
	}
	s->p->python |= f->python != 0;
	add_marks(s, f, f, mark);
	agent = points_agent_for(s->p, f);
	if (agent)
		add_marks(s, f, agent, mark);
	if (s->n > before)
		return;
	s->why = points_similar(s, "marks", mark, mark_name, f);
	if (f->python && !agent)
		s->why = arena_printf(s->p->arena, "%s; dtap's agent, which has what a Python lacks, is not installed", s->why);
	library = s->program == path ? points_linked_python(s->p, f) : NULL;
	if (library)
		s->why = arena_printf(s->p->arena, "%s; the program's Python is in its .library(\"%s\")", s->why,
				      strrchr(library, '/') + 1);
}

void points_find_marks(struct points_search *s)
{
	s->in_file = in_file;
	points_each_file(s);
}

/* A variable of the function around the marker, as in a probe of a statement there. */
static bool around_target(struct points *p, const struct points_found *f, const struct stp_node *target,
			  struct stp_source *source, const char **why)
{
	struct points_found at = *f;

	if (f->supplied || !f->around || !f->around_pc) {
		*why = f->supplied ? "unable to find a local of that name: the marker has $arg1, $arg2 ... alone" :
				     "the marker stands at several places: use a probe of one's .statement, or $arg1, $arg2 ...";
		return false;
	}
	if (!obj_debug(f->around->obj)) {
		*why = arena_printf(p->arena, "unable to find a local of that name: %s has no debuginfo, the marker has $arg1, "
				    "$arg2 ... alone", f->around->path);
		return false;
	}
	at.file = f->around;
	at.pc = f->around_pc;
	return points_debug_target(p, &at, target, source, why);
}

/* $argN, $$name, $$provider, $$vars and $$parms; else a variable of the code around. */
bool points_mark_target(struct points *p, const struct points_found *f, const struct stp_node *target,
			struct stp_source *source, const char **why)
{
	static const char read_only[] = "Expecting lvalue for assignment";
	const char *name = target->name;
	unsigned int nargs = f ? f->probe->sig.nargs : 0;
	struct stp_source *items;
	unsigned long n;
	char *end;

	if (!f) {
		*why = "the marker is not known";
		return false;
	}
	if (target->is_var || (strncmp(name, "$arg", 4) && strncmp(name, "$$", 2)))
		return around_target(p, f, target, source, why);
	if (target->nparts || target->pretty || target->addressed) {
		*why = arena_printf(p->arena, "type definition '%s_%s' not found: write @cast(%s, \"type\")", f->mark, name + 1,
				    name);
		return false;
	}
	source->readonly = read_only;
	if (!strcmp(name, "$$name") || !strcmp(name, "$$provider")) {
		source->kind = STP_SRC_TEXT;
		source->type = STP_STRINGS;
		source->text = name[2] == 'n' ? f->mark : f->prov;
		return true;
	}
	if (!strcmp(name, "$$vars") || !strcmp(name, "$$parms")) {
		source->kind = STP_SRC_LIST;
		source->type = STP_STRINGS;
		source->nnames = nargs;
		source->names = arena_alloc(p->arena, (nargs + 1) * sizeof(*source->names));
		source->items = items = arena_alloc(p->arena, (nargs + 1) * sizeof(*items));
		for (unsigned int i = 0; i < nargs; i++) {
			source->names[i] = arena_printf(p->arena, "$arg%u", i + 1);
			items[i] = (struct stp_source){ .kind = STP_SRC_ARG, .type = STP_LONG, .arg = i };
		}
		return true;
	}
	if (strncmp(name, "$arg", 4)) {
		*why = "the marker has $$name, $$provider, $$vars and $$parms";
		return false;
	}
	n = strtoul(name + 4, &end, 10);
	if (*end || n < 1 || n > nargs) {
		*why = nargs ? arena_printf(p->arena, "the marker %s has $arg1 to $arg%u", f->mark, nargs)
			     : "the marker has no arguments";
		return false;
	}
	for (unsigned int i = 0; i < f->probe->nsites; i++) {
		const struct arch_operand *op = &f->probe->sites[i]->args[n - 1];

		if (op->is_float || op->why) {
			*why = op->why ? op->why : "the argument is a floating-point number";
			return false;
		}
	}
	source->kind = STP_SRC_ARG;
	source->type = STP_LONG;
	source->arg = (uint32_t)n - 1;
	source->readonly = read_only;
	return true;
}

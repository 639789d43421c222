/*
 * process(...).function("..."): functions by their symbols, at entry and at return.
 *
 * The arguments and the result are where the machine's calling convention puts integers; a script has them by
 * int_arg(1) and its like, and $return; names of variables are points_debug.c's.  Where variables are kept in the frame, the
 * probe is behind the function's prologue.
 */
#include "probe/points_priv.h"

#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "elf/debug.h"
#include "elf/obj.h"
#include "probe/provider.h"

enum { REGISTER_ARGS = 6 };

static const char *func_name(const void *file, size_t i)
{
	const struct points_file *f = file;
	struct obj_func of;

	return obj_func(f->obj, i, &of) ? of.name : NULL;
}

/* A probe of @point at the address @pc of the function. */
static void add_at(struct points_search *s, struct points_file *f, const struct obj_func *of, struct stp_point *point,
		   uint64_t pc, bool at_entry)
{
	const struct arch *arch = arch_host();
	const struct obj_info *info = obj_info(f->obj);
	struct probe key = { .kind = PROBE_SITES, .pid = s->pid, .mod = f->path, .func = of->name }, *probe;
	struct site site = { .path = f->path, .dev = info->dev, .ino = info->ino, .ret = s->at_return };
	struct points_found *found;

	if (!obj_offset(f->obj, pc, true, &site.off))
		return;
	site.skips_caller = at_entry && !s->at_return && !pid_is_walked(f->obj, site.off);
	site.args_text = s->statement ? "" : s->at_return ? arch->call_result : arch->call_args;
	site.nargs = arch_operands(arch, site.args_text, site.args, PROBE_MAX_ARGS);
	/* Those on the stack are named by debug information, which needs the place. */
	if (obj_debug(f->obj) && !s->at_return && site.nargs > REGISTER_ARGS)
		site.nargs = REGISTER_ARGS;
	probe = points_make(s->p, point, &key);
	probe_add_site(s->p->set, probe, set_site(s->p->set, &site));
	probe->sig.nargs = site.nargs;
	points_add(s, point, probe);
	found = &s->p->found[s->p->nfound - 1];
	found->file = f;
	found->pc = pc;
}

static void add_func(struct points_search *s, struct points_file *f, const struct obj_func *of)
{
	struct debug *debug = obj_debug(f->obj);
	uint64_t pc = debug && !s->at_return ? debug_body(debug, of->addr) : of->addr;
	struct stp_point *point = points_in_file(s, f->path);

	points_set(s->p, point, "function", of->name);
	add_at(s, f, of, point, pc, pc == of->addr);
}

/* The lines of the function that the point names, each at its first statement. */
static void add_lines(struct points_search *s, struct points_file *f, const struct obj_func *of, const char *file,
		      int declared)
{
	int first = s->relative ? declared + s->first : s->first, last = s->relative ? declared + s->last : s->last;
	int end = debug_last_line(obj_debug(f->obj), of->addr, file);

	for (int line = first < declared ? declared : first; line <= last && line <= end; line++) {
		uint64_t pc = debug_line(obj_debug(f->obj), of->addr, file, line);
		struct stp_point *point;

		if (!pc)
			continue;
		point = points_in_file(s, f->path);
		points_set(s->p, point, "statement", arena_printf(s->p->arena, "%s@%s:%d", of->name, file, line));
		add_at(s, f, of, point, pc, pc == of->addr);
	}
}

/* A function whose name fits: is its source what the point names? */
static void consider(struct points_search *s, struct points_file *f, const struct obj_func *of)
{
	struct debug *debug = s->source || s->statement ? obj_debug(f->obj) : NULL;
	const char *file;
	int declared;

	if (!s->source && !s->statement) {
		add_func(s, f, of);
		return;
	}
	if (!debug) {
		s->why = arena_printf(s->p->arena, "%s has no debuginfo: compile it with -g, or install its debug package",
				      f->path);
		return;
	}
	if (!debug_source(debug, of->addr, &file, &declared) || (s->source && !debug_is_file(file, s->source)))
		return;
	if (s->statement)
		add_lines(s, f, of, file, declared);
	else if (!s->first || (s->first >= declared && s->first <= debug_last_line(debug, of->addr, file)))
		add_func(s, f, of);
}

/* Of several names at one address the last that fits is the best. */
static void in_file(struct points_search *s, const char *path)
{
	bool exported = points_comp(s->point, "exported") != NULL, next = true, fits = false;
	struct points_file *f = points_open(s->p, path);
	struct obj_func of, last = { 0 };
	size_t before = s->n;
	uint64_t addr;

	if (f->err) {
		s->why = f->why;
		return;
	}
	for (size_t i = 0; next; i++) {
		next = obj_func(f->obj, i, &of);
		if (last.name && (!next || of.addr != last.addr)) {
			consider(s, f, &last);
			fits = true;
			last.name = NULL;
		}
		if (next && !of.is_ifunc && of.end > of.addr && !fnmatch(s->name, of.name, 0) &&
		    (!exported || obj_exports(f->obj, of.name, &addr)))
			last = of;
	}
	if (s->n == before && fits)
		s->why = s->why ? s->why : "no function of that name has code of that source file and line";
	else if (s->n == before)
		s->why = points_similar(s, "functions", s->name, func_name, f);
}

/* lines := ":" ( "*" | n [ "-" n ] ) | "+" n */
static bool read_lines(struct points_search *s, const char *text)
{
	char *end;

	s->relative = *text == '+';
	s->last = INT_MAX;
	if (!strcmp(text, ":*"))
		return true;
	if (text[1] < '0' || text[1] > '9')
		return false;
	s->first = s->last = (int)strtol(text + 1, &end, 10);
	if (*end == '-' && end[1] >= '0' && end[1] <= '9')
		s->last = (int)strtol(end + 1, &end, 10);
	return !*end;
}

/* name := function [ "@" file [ lines ] ] */
static bool read_name(struct points_search *s, const char *name)
{
	const char *at = strchr(name, '@'), *lines, *plus;

	s->name = at ? arena_strndup(s->p->arena, name, (size_t)(at - name)) : name;
	if (!at || !strcmp(at, "@*"))
		return true;
	lines = strrchr(at, ':');
	plus = strrchr(at, '+');	/* file names have it as well */
	if (!lines && plus && plus[1] && !plus[1 + strspn(plus + 1, "0123456789")])
		lines = plus;
	s->source = arena_strndup(s->p->arena, at + 1, lines ? (size_t)(lines - at - 1) : strlen(at + 1));
	return !lines || read_lines(s, lines);
}

void points_find_funcs(struct points_search *s, bool at_return)
{
	const char *name = points_text(s->point, "function");

	if (!name) {
		s->why = "functions by address are not supported: name it";
		return;
	}
	if (!read_name(s, name)) {
		s->why = "write function@file:line";
		return;
	}
	s->at_return = at_return;
	s->in_file = in_file;
	points_each_file(s);
}

void points_find_statements(struct points_search *s)
{
	const char *name = points_text(s->point, "statement");

	if (!name || points_comp(s->point, "nearest")) {
		s->why = "statements are named by function, file and line: .statement(\"main@prog.c:10\")";
		return;
	}
	s->statement = true;
	if (!read_name(s, name) || !s->last) {
		s->why = "write function@file:line, with a * for all lines, or function@file+lines";
		return;
	}
	s->in_file = in_file;
	points_each_file(s);
}

bool points_func_target(struct points *p, const struct points_found *f, bool at_return, const struct stp_node *target,
			struct stp_source *source, const char **why)
{
	if (at_return && (!strcmp(target->name, "$return") || !strcmp(target->name, "$$return"))) {
		if (target->name[1] == '$') {
			static const char *names[] = { "$return" };
			static struct stp_source items[] = { { .kind = STP_SRC_ARG, .type = STP_LONG, .arg = 1 } };

			source->items = items;
			source->kind = STP_SRC_LIST;
			source->type = STP_STRINGS;
			source->names = names;
			source->nnames = 1;
			return true;
		}
		source->kind = STP_SRC_ARG;
		source->type = STP_LONG;
		source->arg = 1;	/* arch.h, call_result */
		return true;
	}
	/* At the return: asked by @defined alone, uses were moved to the entry (stp/entry.c); and @var. */
	return points_debug_target(p, f, target, source, why);
}

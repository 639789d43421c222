/*
 * process(...).function("..."): functions by their symbols, at entry and at return.
 *
 * The arguments and the result are where the machine's calling convention puts integers; a script has them by
 * int_arg(1) and its like, and $return; names of variables are points_debug.c's.  Where variables are kept in the frame, the
 * probe is behind the function's prologue.
 */
#include "probe/points_priv.h"

#include <fnmatch.h>
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

static void add_func(struct points_search *s, struct points_file *f, const struct obj_func *of, uint64_t off)
{
	const struct arch *arch = arch_host();
	const struct obj_info *info = obj_info(f->obj);
	struct debug *debug = obj_debug(f->obj);
	uint64_t pc = debug && !s->at_return ? debug_body(debug, of->addr) : of->addr;
	struct stp_point *point = points_in_file(s, f->path);
	struct points_found *found;
	struct probe key = { .kind = PROBE_SITES, .pid = s->pid, .mod = f->path, .func = of->name }, *probe;
	struct site site = { .path = f->path, .dev = info->dev, .ino = info->ino, .off = off, .ret = s->at_return,
			     .skips_caller = !s->at_return && !pid_is_walked(f->obj, off) };

	if (pc != of->addr && obj_offset(f->obj, pc, true, &site.off))
		site.skips_caller = false;
	else
		pc = of->addr;
	site.args_text = s->at_return ? arch->call_result : arch->call_args;
	site.nargs = arch_operands(arch, site.args_text, site.args, PROBE_MAX_ARGS);
	/* Those on the stack are named by debug information, which needs the place. */
	if (debug && !s->at_return && site.nargs > REGISTER_ARGS)
		site.nargs = REGISTER_ARGS;
	points_set(s->p, point, "function", of->name);
	probe = points_make(s->p, point, &key);
	probe_add_site(s->p->set, probe, set_site(s->p->set, &site));
	probe->sig.nargs = site.nargs;
	points_add(s, point, probe);
	found = &s->p->found[s->p->nfound - 1];
	found->file = f;
	found->pc = pc;
}

/* Of several names at one address the last that fits is the best. */
static void in_file(struct points_search *s, const char *path)
{
	bool exported = points_comp(s->point, "exported") != NULL, next = true;
	struct points_file *f = points_open(s->p, path);
	struct obj_func of, last = { 0 };
	size_t before = s->n;
	uint64_t off, addr;

	if (f->err) {
		s->why = f->why;
		return;
	}
	for (size_t i = 0; next; i++) {
		next = obj_func(f->obj, i, &of);
		if (last.name && (!next || of.addr != last.addr)) {
			if (obj_offset(f->obj, last.addr, true, &off))
				add_func(s, f, &last, off);
			last.name = NULL;
		}
		if (next && !of.is_ifunc && of.end > of.addr && !fnmatch(s->name, of.name, 0) &&
		    (!exported || obj_exports(f->obj, of.name, &addr)))
			last = of;
	}
	if (s->n == before)
		s->why = points_similar(s, "functions", s->name, func_name, f);
}

void points_find_funcs(struct points_search *s, bool at_return)
{
	const char *name = points_text(s->point, "function"), *at;

	if (!name) {
		s->why = "functions by address are not supported: name it";
		return;
	}
	at = strchr(name, '@');
	if (at && strcmp(at, "@*")) {
		s->why = "source files need debuginfo, which dtap does not read: name the function without @";
		return;
	}
	s->name = at ? arena_strndup(s->p->arena, name, (size_t)(at - name)) : name;
	s->at_return = at_return;
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

/*
 * process(...).function("..."): functions by their symbols, at entry and at return.
 *
 * Arguments and result are located by the machine's calling convention for integers; scripts read them by int_arg(1)
 * and similar functions, and $return.  points_debug.c has variables by name.  If variables are in the frame, the
 * probe is placed after the function's prologue.
 */
#include "probe/points_walk.h"

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

/* Add a probe of @point at the address @pc of the function; @inlined: of an inlined copy. */
static void add_at(struct points_search *s, struct points_file *f, const char *name, struct stp_point *point, uint64_t pc,
		   bool at_entry, bool inlined)
{
	const struct arch *arch = arch_host();
	const struct obj_info *info = obj_info(f->obj);
	struct probe key = { .kind = PROBE_SITES, .pid = s->pid, .mod = f->path, .func = name }, *probe;
	struct site site = { .file = obj_file(f->obj), .dev = info->dev, .ino = info->ino, .ret = s->at_return };
	struct points_found *found;

	if (!obj_offset(f->obj, pc, true, &site.off))
		return;
	/* Each copy has its variables in other locations, so it needs its own probe. */
	if (inlined)
		key.func = arena_printf(s->p->arena, "%s+%#jx", name, (uintmax_t)pc);
	point->inlined = inlined;
	site.skips_caller = at_entry && !s->at_return && !pid_is_walked(f->obj, site.off);
	site.args_text = s->statement || inlined ? "" : s->at_return ? arch->call_result : arch->call_args;
	site.nargs = arch_operands(arch, site.args_text, site.args, PROBE_MAX_ARGS);
	/* Arguments on the stack are found by debug information, which needs the address. */
	if (obj_debug(f->obj) && !s->at_return && site.nargs > REGISTER_ARGS)
		site.nargs = REGISTER_ARGS;
	probe = points_make(s->p, point, &key);
	probe_add_site(s->p->set, probe, set_site(s->p->set, &site));
	probe->sig.nargs = site.nargs;
	points_add(s, point, probe);
	found = &s->p->found[s->p->nfound - 1];
	found->file = f;
	found->pc = pc;
	found->inlined = inlined ? name : NULL;
}

/* "f@file:line", as far as known. */
static const char *full_name(struct points_search *s, const char *name, const char *file, int line)
{
	return file ? arena_printf(s->p->arena, "%s@%s:%d", name, file, line) : arena_strdup(s->p->arena, name);
}

/* @file may be NULL: unknown. */
static void add_func(struct points_search *s, struct points_file *f, const struct obj_func *of, const char *file, int line)
{
	struct debug *debug = obj_debug(f->obj);
	uint64_t pc = debug && !s->at_return ? debug_body(debug, of->addr) : of->addr;
	struct stp_point *point = points_in_file(s, f->path);

	points_set(s->p, point, "function", full_name(s, of->name, file, line));
	add_at(s, f, of->name, point, pc, pc == of->addr, false);
}

/* .statement("f"): its first instruction. */
static void add_entry(struct points_search *s, struct points_file *f, const struct obj_func *of, const char *file, int line)
{
	struct stp_point *point = points_in_file(s, f->path);

	if (s->source && (!file || !debug_is_file(file, s->source)))
		return;
	points_set(s->p, point, "statement", full_name(s, of->name, file, line));
	add_at(s, f, of->name, point, of->addr, true, false);
}

/* --- callees ------------------------------------------------------------------------------------------ */

/*
 * Variables internal to the resolver: the probe's address; how far the process has the file from the file's addresses; the
 * word at a distance from the stack pointer, or from the frame pointer.
 */
#define PROBE_ADDR "$.pc"
#define BIAS "$.bias"
#define ON_STACK "$.stack"
#define IN_FRAME "$.frame"

static struct stp_node *node(struct points_search *s, enum stp_kind kind, const char *name)
{
	struct stp_node *n = arena_new_of(s->p->arena, struct stp_node);

	n->kind = kind;
	n->pos = s->point->pos;
	n->what = "keyword";
	n->name = name;
	return n;
}

static struct stp_node *binary(struct points_search *s, enum stp_op op, struct stp_node *l, struct stp_node *r)
{
	struct stp_node *n = node(s, STP_BINARY, NULL);

	n->op = op;
	n->l = l;
	n->r = r;
	return n;
}

/* The address of @addr, of the file, in the process: at a return from the file's bias, else from the probe's own at @pc. */
static struct stp_node *in_process(struct points_search *s, uint64_t addr, uint64_t pc)
{
	struct stp_node *n = node(s, STP_NUM, NULL);

	n->value = (int64_t)(s->at_return ? addr : addr - pc);
	return binary(s, STP_ADD, node(s, STP_TARGET, s->at_return ? BIAS : PROBE_ADDR), n);
}

/* A condition: the return address @off bytes from the register that @name says is that of @return_pc. */
static struct stp_node *returns_to(struct points_search *s, const char *name, int64_t off, uint64_t return_pc, uint64_t pc)
{
	return binary(s, STP_EQ, node(s, STP_TARGET, arena_printf(s->p->arena, "%s%jd", name, (intmax_t)off)),
		      in_process(s, return_pc, pc));
}

static struct stp_node *both(struct points_search *s, struct stp_node *l, struct stp_node *r)
{
	struct stp_node *n;

	if (!l)
		return r;
	n = binary(s, STP_LAND, l, r);
	n->kind = STP_LOGIC;
	return n;
}

/*
 * A condition: the callers are those of s->chain.  @name, @off: where the return address to the innermost is.  Its frame
 * ends where the return address to the next one is.
 */
static struct stp_node *called_by_chain(struct points_search *s, struct stp_node *so_far, const char *name, int64_t off,
					uint64_t pc)
{
	for (unsigned int k = s->nchain; k--;) {
		so_far = both(s, so_far, returns_to(s, name, off, s->chain[k].return_pc, pc));
		off += s->chain[k].frame;
	}
	return so_far;
}

static bool word_operand(struct walk *w, const struct points_found *f, const char *name)
{
	const struct arch *arch = arch_host();
	bool frame = !strncmp(name, IN_FRAME, strlen(IN_FRAME));
	long off = strtol(name + strlen(frame ? IN_FRAME : ON_STACK), NULL, 10);

	if (arch->e_machine == EM_X86_64)
		return walk_operand(w, f, arena_printf(w->p->arena, "8@%ld(%%%s)", off, frame ? "rbp" : "rsp"));
	return walk_operand(w, f, frame ? arch->framed_return_addr : arch->return_addr);
}

static bool own_target(struct points *p, const struct points_found *f, const char *name, struct stp_source *source)
{
	struct walk w = { .p = p, .file = f->file, .source = source };
	const struct arch *arch = arch_host();

	if (!strcmp(name, PROBE_ADDR))
		return walk_operand(&w, f, arena_printf(p->arena, "8@%s%s", arch->e_machine == EM_X86_64 ? "%" : "", arch->pc->name));
	return strcmp(name, BIAS) ? word_operand(&w, f, name) : points_debug_bias(f->file, p->arena, source);
}

/* Find a function of the file by its name, also in other units than the caller's. */
static bool find_named(struct points_file *f, const char *name, struct obj_func *of)
{
	for (size_t i = 0; obj_func(f->obj, i, of); i++)
		if (!strcmp(of->name, name) && of->end > of->addr && !of->is_ifunc)
			return true;
	return false;
}

/* The point of the one callee: function("caller@file:line").callee("callee@file:line"), or that with .call or .return. */
static struct stp_point *callee_point(struct points_search *s, const struct points_file *f, const struct debug_callee *c)
{
	struct stp_point *point = points_in_file(s, f->path);
	size_t i = 0;

	while (strncmp(point->comps[i].name, "callee", 6))
		i++;
	point->comps[i].name = "callee";
	points_set(s->p, point, "function", c->caller ? full_name(s, c->caller, c->caller_file, c->caller_line) : s->func);
	points_set(s->p, point, "callee", full_name(s, c->name, c->file, c->line));
	return point;
}

/* A callee that is inlined: it is the right one if the function that it is in was called by the chain. */
static void add_inlined_callee(struct points_search *s, struct points_file *f, const struct debug_callee *c)
{
	struct stp_point *point = callee_point(s, f, c);
	int64_t frame = 0;

	if (s->at_return || (s->nchain && !debug_frame_size(obj_debug(f->obj), c->pc, &frame)))
		return;
	point->filter = called_by_chain(s, NULL, ON_STACK, frame - 8, c->pc);
	add_at(s, f, c->name, point, c->pc, false, true);
}

static void add_called(struct points_search *s, struct points_file *f, const struct debug_callee *c, const struct obj_func *of)
{
	struct debug *debug = obj_debug(f->obj);
	uint64_t pc = s->at_return ? of->addr : debug_body(debug, of->addr);
	bool at_entry = pc == of->addr;
	struct stp_point *point = callee_point(s, f, c);
	int64_t frame = 0;

	if (s->nchain && !debug_frame_size(debug, c->return_pc, &frame))
		return;
	if (s->at_return)	/* the function has just returned, to the address that is the probe's */
		point->filter = called_by_chain(s, binary(s, STP_EQ, node(s, STP_TARGET, PROBE_ADDR),
							  in_process(s, c->return_pc, pc)), ON_STACK, frame - 8, pc);
	else
		point->filter = called_by_chain(s, returns_to(s, at_entry ? ON_STACK : IN_FRAME, at_entry ? 0 : 8, c->return_pc, pc),
						at_entry ? ON_STACK : IN_FRAME, (at_entry ? 0 : 8) + frame, pc);
	add_at(s, f, of->name, point, pc, at_entry, false);
}

static void add_callees(struct points_search *s, struct points_file *f, const struct obj_func *of);

static void add_callee(void *ctx, const struct debug_callee *c)
{
	struct points_search *s = ctx;
	struct points_file *f = points_open(s->p, s->in->path);
	const char *func = s->func;
	unsigned int depth = s->depth;
	struct obj_func of;
	int64_t frame;

	if (!c->return_pc) {
		if (!fnmatch(s->callee, c->name, 0))
			add_inlined_callee(s, f, c);
		return;
	}
	if (!(c->pc ? obj_func_find(f->obj, c->pc, &of) : find_named(f, c->name, &of)))
		return;		/* a library's */
	if (!fnmatch(s->callee, c->name, 0))
		add_called(s, f, c, &of);
	if (depth <= c->depth || s->nchain == POINTS_MAX_CHAIN || arch_host()->e_machine != EM_X86_64 ||
	    !debug_frame_size(obj_debug(f->obj), c->return_pc, &frame))
		return;
	s->chain[s->nchain].return_pc = c->return_pc;
	s->chain[s->nchain++].frame = frame;
	s->depth = depth - c->depth;
	add_callees(s, f, &of);
	s->nchain--;
	s->depth = depth;
	s->func = func;
}

static void add_callees(struct points_search *s, struct points_file *f, const struct obj_func *of)
{
	struct debug *debug = obj_debug(f->obj);
	const char *file = NULL;
	int line = 0;

	s->in = f;
	if (!debug || !debug_source(debug, of->addr, &file, &line))
		file = NULL;
	s->func = full_name(s, of->name, file, line);
	if (debug)
		debug_each_callee(debug, of->addr, s->depth, add_callee, s);
}

static void add_line(struct points_search *s, struct points_file *f, const struct obj_func *of, const char *file, int line,
		     int code)
{
	uint64_t pc = debug_line(obj_debug(f->obj), of->addr, file, code);
	struct stp_point *point;

	if (!pc)
		return;
	point = points_in_file(s, f->path);
	points_set(s->p, point, "statement", full_name(s, of->name, file, line));
	add_at(s, f, of->name, point, pc, pc == of->addr, false);
}

/* A line in the function that no code is of: which lines around it have some? */
static void say_no_line(struct points_search *s, struct points_file *f, const struct obj_func *of, const char *file,
			int declared, int line, int end)
{
	struct debug *debug = obj_debug(f->obj);
	int before = line, behind = line;

	while (before >= declared && !debug_line(debug, of->addr, file, before))
		before--;
	while (behind <= end && !debug_line(debug, of->addr, file, behind))
		behind++;
	if (before < declared || behind > end)
		s->why = arena_printf(s->p->arena, "no line records for %s:%d (try :%d)", file, line,
				      before < declared ? behind : before);
	else
		s->why = arena_printf(s->p->arena, "no line records for %s:%d (try :%d or :%d)", file, line, before, behind);
}

/* Add the lines of the function that the point names, each at its first statement. */
static void add_lines(struct points_search *s, struct points_file *f, const struct obj_func *of, const char *file,
		      int declared)
{
	int end = debug_last_line(obj_debug(f->obj), of->addr, file), base = s->relative ? declared : 0;

	for (unsigned int i = 0; i < s->nlines; i++) {
		int first = base + s->lines[i].first, last = s->lines[i].last == INT_MAX ? end : base + s->lines[i].last;

		if (points_comp(s->point, "nearest")) {
			add_line(s, f, of, file, first, debug_nearest_line(obj_debug(f->obj), of->addr, file, first));
			continue;
		}
		for (int line = first < declared ? declared : first; line <= last && line <= end; line++)
			add_line(s, f, of, file, line, line);
		if (first == last && first > declared && first < end && !debug_line(obj_debug(f->obj), of->addr, file, first))
			say_no_line(s, f, of, file, declared, first, end);
	}
}

static bool has_line(const struct points_search *s, int from, int to)
{
	for (unsigned int i = 0; i < s->nlines; i++)
		if (s->lines[i].first >= from && s->lines[i].first <= to)
			return true;
	return !s->nlines;
}

static void add_label(void *ctx, const struct debug_label *l)
{
	struct points_search *s = ctx;
	struct points_file *f = points_open(s->p, s->in->path);
	struct stp_point *point;

	if (fnmatch(points_text(s->point, "label"), l->name, 0) ||
	    (l->func && s->source && (!l->file || !debug_is_file(l->file, s->source))))
		return;
	point = points_in_file(s, f->path);
	points_set(s->p, point, "function", l->func ? full_name(s, l->func, l->file, l->line) : s->func);
	points_set(s->p, point, "label", l->name);
	add_at(s, f, l->func ? l->func : s->name, point, l->pc, false, l->func != NULL);
}

/* Is @of another name of the function that is called @name?  That function is *ret then. */
static bool is_alias(struct points_file *f, const struct obj_func *of, const char *name, struct obj_func *ret)
{
	return name && strcmp(name, of->name) && find_named(f, name, ret) && ret->addr == of->addr;
}

/* A function with a matching name: does its source match, too? */
static void consider(struct points_search *s, struct points_file *f, const struct obj_func *of)
{
	struct debug *debug = obj_debug(f->obj);
	const char *file = NULL;
	int declared = 0;
	bool known = debug && debug_source(debug, of->addr, &file, &declared);
	struct obj_func named;

	/* Another name of a function, __attribute__((alias)): it is listed by that of its declaration. */
	if (known && is_alias(f, of, debug_name(debug, of->addr), &named))
		of = &named;
	if (s->addr && !s->statement && (s->addr < of->addr || s->addr >= of->end))
		return;
	if (s->callee) {
		if (!s->source || (known && debug_is_file(file, s->source)))
			add_callees(s, f, of);
		return;
	}
	if (s->statement && !s->nlines && !points_comp(s->point, "label")) {
		add_entry(s, f, of, known ? file : NULL, declared);
		return;
	}
	if (!s->source && !s->statement && !s->nlines) {
		add_func(s, f, of, known ? file : NULL, declared);
		return;
	}
	if (!debug) {
		s->why = arena_printf(s->p->arena, "%s has no debuginfo: compile it with -g, or install its debug package",
				      f->path);
		return;
	}
	if (!known || (s->source && !debug_is_file(file, s->source)))
		return;
	if (points_comp(s->point, "label")) {
		s->func = full_name(s, of->name, file, declared);
		s->in = f;
		debug_each_label(debug, of->addr, add_label, s);
	} else if (s->statement) {
		add_lines(s, f, of, file, declared);
	} else if (has_line(s, declared, debug_last_line(debug, of->addr, file))) {
		add_func(s, f, of, file, declared);
	}
}

static void add_inlined(void *ctx, const char *name, uint64_t pc, const char *file, int line)
{
	struct points_search *s = ctx;
	struct points_file *f = points_open(s->p, s->in->path);
	struct stp_point *point;

	if (fnmatch(s->name, name, 0) || (s->source && (!file || !debug_is_file(file, s->source))) || !has_line(s, line, line))
		return;
	point = points_in_file(s, f->path);
	points_set(s->p, point, "function", full_name(s, name, file, line));
	add_at(s, f, name, point, pc, false, true);
}

/* .function("f") includes inlined copies; with .call or .inline it is the function or the copies alone. */
static void consider_inlined(struct points_search *s, struct points_file *f)
{
	const struct stp_point *p = s->point;
	struct debug *debug = obj_debug(f->obj);

	if (debug && points_comp(p, "label")) {
		s->in = f;
		debug_each_copied_label(debug, s->name, add_label, s);
		return;
	}
	if (debug && s->callee && !s->source) {
		s->in = f;
		debug_each_copied_callee(debug, s->name, s->depth, add_callee, s);
		return;
	}
	if (s->statement || s->at_return || s->addr || s->callee || !debug || points_comp(p, "call") || points_comp(p, "exported"))
		return;
	s->in = f;
	debug_each_inlined(debug, add_inlined, s);
}

/*
 * The statement at s->addr, which must be the start of an instruction: otherwise a probe would corrupt the program.
 */
static void at_address(struct points_search *s, struct points_file *f)
{
	struct debug *debug = obj_debug(f->obj);
	struct stp_point *point;
	struct obj_func of;
	uint64_t before = 0;

	if (!obj_func_find(f->obj, s->addr, &of))
		s->why = arena_printf(s->p->arena, "address %#jx is in no function", (uintmax_t)s->addr);
	else if (s->addr != of.addr && (!debug || !debug_is_statement(debug, s->addr, &before)))
		s->why = arena_printf(s->p->arena, "address %#jx does not match the beginning of a statement (try %#jx)",
				      (uintmax_t)s->addr, (uintmax_t)(before > of.addr ? before : of.addr));
	else {
		point = points_in_file(s, f->path);
		add_at(s, f, of.name, point, s->addr, s->addr == of.addr, false);
	}
}

/* Of several names at one address the last match is the best. */
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
	if (s->addr && s->statement) {
		at_address(s, f);
		return;
	}
	for (size_t i = 0; next && !points_comp(s->point, "inline"); i++) {
		next = obj_func(f->obj, i, &of);
		if (last.name && (!next || of.addr != last.addr)) {
			consider(s, f, &last);
			fits = true;
			last.name = NULL;
		}
		if (next && !of.is_ifunc && of.end > of.addr && !fnmatch(s->name, of.name, 0) &&
		    (!exported || of.is_global || obj_exports(f->obj, of.name, &addr)))
			last = of;
	}
	consider_inlined(s, f);
	if (s->n != before || s->why)
		return;
	if (s->callee && fits)
		s->why = "no call of that name is known: calls are where the caller was compiled with -g and -O";
	else if (points_comp(s->point, "inline"))
		s->why = obj_debug(f->obj) ? "no function of that name is inlined" :
			 arena_printf(s->p->arena, "%s has no debuginfo, which tells what is inlined: compile it with -g", f->path);
	else
		s->why = fits ? "no function of that name has code of that source file and line" :
				points_similar(s, "functions", s->name, func_name, f);
}

/* lines := ":" ( "*" | range { "," range } ) | "+" range; range := n [ "-" n ] */
static bool read_lines(struct points_search *s, const char *text)
{
	char *at = (char *)text;

	s->relative = *text == '+';
	if (!strcmp(text, ":*")) {
		s->lines[s->nlines++].last = INT_MAX;
		return true;
	}
	do {
		int first, last;

		if (at[1] < '0' || at[1] > '9' || s->nlines == POINTS_MAX_LINES)
			return false;
		first = last = (int)strtol(at + 1, &at, 10);
		if (*at == '-' && at[1] >= '0' && at[1] <= '9')
			last = (int)strtol(at + 1, &at, 10);
		s->lines[s->nlines].first = first;
		s->lines[s->nlines++].last = last;
	} while (*at == ',');
	return !*at;
}

/* name := function [ "@" file [ lines ] ] */
static bool read_name(struct points_search *s, const char *name)
{
	const char *at = strchr(name, '@'), *lines, *plus;

	s->name = at ? arena_strndup(s->p->arena, name, (size_t)(at - name)) : name;
	if (!at || !strcmp(at, "@*"))
		return true;
	lines = strrchr(at, ':');
	plus = strrchr(at, '+');	/* file names may contain + */
	if (!lines && plus && plus[1] && !plus[1 + strspn(plus + 1, "0123456789")])
		lines = plus;
	s->source = arena_strndup(s->p->arena, at + 1, lines ? (size_t)(lines - at - 1) : strlen(at + 1));
	if (!strcmp(s->source, "*"))
		s->source = NULL;
	return !lines || read_lines(s, lines);
}

/* .function(ADDRESS): the function that contains it; .statement(ADDRESS). */
static bool read_address(struct points_search *s, const char *comp)
{
	const struct stp_comp *c = points_comp(s->point, comp);

	if (!c->arg || c->arg->kind != STP_NUM || points_comp(s->point, "absolute")) {
		s->why = "name the address in the file, as nm(1) shows it: process(\"PATH\").statement(ADDRESS)";
		return false;
	}
	s->name = "*";
	s->addr = (uint64_t)c->arg->value;
	s->in_file = in_file;
	return true;
}

void points_find_funcs(struct points_search *s, bool at_return)
{
	const char *name = points_text(s->point, "function");

	s->at_return = at_return;
	s->statement = points_comp(s->point, "label") != NULL;
	s->in_file = in_file;
	if (!name && !read_address(s, "function"))
		return;
	if (name && !read_name(s, name))
		s->why = "write function@file:line";
	else
		points_each_file(s);
}

/* .callee("g"), .callees, .callees(N): probes of called functions, which check the return address. */
void points_find_callees(struct points_search *s)
{
	const struct stp_comp *depth = points_comp(s->point, "callees");

	s->callee = points_text(s->point, "callee");
	s->callee = s->callee ? s->callee : "*";
	s->callee = arena_strndup(s->p->arena, s->callee, strcspn(s->callee, "@"));	/* as .entry of a .return names it */
	s->at_return = points_comp(s->point, "return") != NULL;
	s->depth = depth && depth->arg && depth->arg->value > 1 ? (unsigned int)depth->arg->value : 1;
	s->in_file = in_file;
	if (depth && depth->arg && (depth->arg->value < 1 || depth->arg->value > POINTS_MAX_CHAIN))
		s->why = depth->arg->value < 1 ? ".callees(N) only acceptable for N >= 1" : ".callees(N): at most 8 calls deep";
	else if (!read_name(s, points_text(s->point, "function")))
		s->why = "write function@file:line";
	else
		points_each_file(s);
}

void points_find_statements(struct points_search *s)
{
	const char *name = points_text(s->point, "statement");

	s->statement = true;
	s->in_file = in_file;
	if (!name && !read_address(s, "statement"))
		return;
	if (name && !read_name(s, name))
		s->why = "write function@file:line, with a * for all lines, or function@file+lines";
	else
		points_each_file(s);
}

/* --- calls of libraries ------------------------------------------------------------------------------- */

static void add_plt(void *ctx, const char *name, uint64_t addr)
{
	struct points_search *s = ctx;
	struct points_file *f = points_open(s->p, s->in->path);
	struct stp_point *point = points_in_file(s, f->path);
	struct stp_comp *c;

	if (fnmatch(s->name, name, 0))
		return;
	c = (struct stp_comp *)points_comp(point, "plt");
	c->arg = arena_new_of(s->p->arena, struct stp_node);
	c->arg->kind = STP_STR;
	points_set(s->p, point, "plt", name);
	add_at(s, f, name, point, addr, true, false);
}

static void plt_in_file(struct points_search *s, const char *path)
{
	struct points_file *f = points_open(s->p, path);
	size_t before = s->n;

	s->in = f;
	if (f->err)
		s->why = f->why;
	else
		obj_each_plt(f->obj, add_plt, s);
	if (s->n == before && !s->why)
		s->why = arena_printf(s->p->arena, "%s calls no such function through a procedure linkage table", path);
}

void points_find_plt(struct points_search *s, bool at_return)
{
	s->name = points_text(s->point, "plt");
	s->name = s->name ? s->name : "*";
	s->at_return = at_return;
	s->in_file = plt_in_file;
	points_each_file(s);
}

bool points_plt_target(const struct stp_point *point, bool at_return, const struct stp_node *target,
		       struct stp_source *source, const char **why)
{
	if (target->nparts || target->pretty || target->addressed) {
		*why = "its type is not known: write @cast(p, \"type\", \"PATH\")";
		return false;
	}
	if (!strcmp(target->name, "$$name")) {
		source->kind = STP_SRC_TEXT;
		source->type = STP_STRINGS;
		source->text = points_text(point, "plt");
		return true;
	}
	if (at_return && !strcmp(target->name, "$return")) {
		source->kind = STP_SRC_ARG;
		source->type = STP_LONG;
		source->arg = 1;	/* arch.h, call_result */
		return true;
	}
	*why = at_return ? "the point has $$name and $return" : "the point has $$name, and int_arg(1) and its like";
	return false;
}

bool points_func_target(struct points *p, const struct points_found *f, bool at_return, const struct stp_node *target,
			struct stp_source *source, const char **why)
{
	struct stp_node whole = { .kind = STP_TARGET, .name = "$return" };
	struct stp_source *item;

	if (f && !strncmp(target->name, "$.", 2))
		return own_target(p, f, target->name, source);
	if (at_return && !strcmp(target->name, "$$return")) {
		static const char *names[] = { "return" };

		if (target->pretty) {
			whole.pretty = target->pretty;
			if (points_debug_result(p, f, &whole, source, why))
				source->text = arena_printf(p->arena, "return=%s", source->text);
			else
				*source = (struct stp_source){ .kind = STP_SRC_TEXT, .type = STP_STRINGS, .text = "" };
			return true;
		}
		item = arena_new_of(p->arena, struct stp_source);
		source->nnames = points_debug_result(p, f, &whole, item, why);
		source->items = item;
		source->kind = STP_SRC_LIST;
		source->type = STP_STRINGS;
		source->names = names;
		return true;
	}
	if (at_return && !strcmp(target->name, "$return"))
		return points_debug_result(p, f, target, source, why);
	/* At the return: only from @defined and @var; other uses were moved to the entry (stp/entry.c). */
	return points_debug_target(p, f, target, source, why);
}

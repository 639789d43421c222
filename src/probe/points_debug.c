/*
 * The variables of functions by debug information: $name, @var and @cast with their members and elements, $$vars.
 *
 * A variable's location begins with a register, a constant, or the program counter (a global variable has a fixed
 * distance from it): that becomes a further operand of the site; the rest is steps through memory.
 */
#include "probe/points_walk.h"

#include <elf.h>
#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "elf/obj.h"
#include "probe/exec.h"
#include "probe/procs.h"

enum { MAX_REGS = 32 };

/* The type that a value points to, for stp_source.target; one for each type of a file. */
struct points_target {
	struct points_file *file;	/* NULL: a type of the kernel */
	Dwarf_Die type;
	const char *name;
	uint32_t ktype;			/* number of the kernel's type */
	struct points_target *next;
};

/* Each compilation unit has its own description of a structure; equal names are the same type. */
static const struct points_target *points_target(struct points *p, struct points_file *file, const Dwarf_Die *type)
{
	struct strbuf name = { 0 };
	struct points_target *t;

	debug_type_name(type, &name);
	if (strstr(strbuf_str(&name), "{...}"))
		strbuf_printf(&name, "%p", type->addr);
	for (t = p->targets; t; t = t->next)
		if (t->file == file && !strcmp(t->name, strbuf_str(&name)))
			break;
	if (!t) {
		t = arena_new_of(p->arena, struct points_target);
		*t = (struct points_target){ file, *type, arena_strdup(p->arena, strbuf_str(&name)), 0, p->targets };
		p->targets = t;
	}
	strbuf_fini(&name);
	return t;
}

const struct points_target *points_kernel_target(struct points *p, uint32_t type)
{
	struct points_target *t;

	for (t = p->targets; t && (t->file || t->ktype != type); t = t->next)
		;
	if (!t) {
		t = arena_new_of(p->arena, struct points_target);
		t->ktype = type;
		t->name = "";
		t->next = p->targets;
		p->targets = t;
	}
	return t;
}

static bool refuse(struct walk *w, const char *why)
{
	w->why = why;
	return false;
}

static bool add_step(struct walk *w, uint8_t width, bool sign, struct stp_node *index, int64_t scale)
{
	struct stp_source *s = w->source;

	if (s->nsteps == STP_MAX_STEPS)
		return refuse(w, "too many steps: keep the value between in a variable and use @cast");
	s->steps[s->nsteps++] = (struct stp_step){ .off = w->off, .index = index, .scale = scale, .width = width,
						   .sign = sign };
	w->off = 0;
	return true;
}

/* The value of @size bytes, or of @bits, in a register. */
static bool from_register(struct walk *w, uint64_t size, unsigned int bit, unsigned int bits)
{
	uint64_t at = (uint64_t)w->off * 8 + bit;
	unsigned int k = 0;

	while (k < w->nparts && at >= w->parts[k].size * 8u)
		at -= w->parts[k++].size * 8u;
	bits = bits ? bits : (unsigned int)size * 8;
	if (k < w->nparts && w->parts[k].reg == DEBUG_NO_REG)
		return refuse(w, "it is in a vector register, or was optimized away");
	if (k == w->nparts || at + bits > w->parts[k].size * 8u || at + bits > 64)
		return refuse(w, "it lies across registers");
	w->source->arg = w->operands[k];
	w->source->readonly = "it is in a register";
	if (bits < 64) {
		w->source->bit = (uint8_t)at;
		w->source->bits = (uint8_t)bits;
	}
	w->off = 0;
	w->nparts = 0;
	return true;
}

/* The value, a pointer, becomes the current address. */
bool walk_deref(struct walk *w, const Dwarf_Die *bare)
{
	if (w->nparts && !from_register(w, 8, 0, 0))
		return false;
	if (w->in_memory && !add_step(w, 8, false, NULL, 0))
		return false;
	w->in_memory = true;
	return debug_target(bare, &w->type) || refuse(w, "it points to no type that is described");
}

struct alternatives {
	struct strbuf text;
	const char *prefix;
	unsigned int n;
};

enum { MAX_ALTERNATIVES = 12 };

static void add_alternative(struct alternatives *a, const char *name)
{
	if (name && a->n++ < MAX_ALTERNATIVES)
		strbuf_printf(&a->text, "%s%s%s", a->text.len ? ", " : "", a->prefix, name);
}

static void member_alternative(void *ctx, const struct debug_member *m)
{
	add_alternative(ctx, m->name);
}

static void var_alternative(void *ctx, const char *name, const Dwarf_Die *type)
{
	(void)type;
	add_alternative(ctx, name);
}

/* "MESSAGE (alternatives: a, b)" */
static const char *with_alternatives(struct points *p, const char *message, struct alternatives *a)
{
	if (a->n)
		message = arena_printf(p->arena, "%s (alternatives: %s%s)", message, strbuf_str(&a->text),
				       a->n > MAX_ALTERNATIVES ? ", ..." : "");
	strbuf_fini(&a->text);
	return message;
}

/* Report that the member does not exist; also for a structure without members, which is only declared. */
static const char *no_member(struct walk *w, const Dwarf_Die *type, const char *name, const char *why)
{
	struct alternatives a = { .prefix = "" };
	struct strbuf of = { 0 };
	const char *message;

	debug_type_name(type, &of);
	debug_each_member(type, member_alternative, &a);
	message = arena_printf(w->p->arena, "unable to find member '%s' for %s%s%s", name, strbuf_str(&of), a.n ? "" : ": ",
			       a.n ? "" : why);
	strbuf_fini(&of);
	return with_alternatives(w->p, message, &a);
}

/* @n comes from debug information or the script, so it can be any number. */
void walk_move(struct walk *w, int64_t n, int64_t size)
{
	w->off = (int64_t)((uint64_t)w->off + (uint64_t)n * (uint64_t)size);
}

void walk_to(struct walk *w, const struct debug_member *m)
{
	w->type = m->type;
	walk_move(w, 1, m->off);
	w->dim = 0;
	w->bits = *m;
}

static const char *no_such_access(struct walk *w, const Dwarf_Die *type, const char *part)
{
	struct strbuf of = { 0 };
	const char *why;

	debug_type_name(type, &of);
	why = arena_printf(w->p->arena, "invalid access '%s' vs. %s", part, strbuf_str(&of));
	strbuf_fini(&of);
	return why;
}

static bool member(struct walk *w, const char *name)
{
	struct debug_shape shape;
	struct debug_member m;
	Dwarf_Die bare;
	const char *why;

	debug_shape(&w->type, &bare, &shape);
	if (shape.kind == DEBUG_POINTER) {
		if (!walk_deref(w, &bare))
			return false;
		debug_shape(&w->type, &bare, &shape);
	}
	if (shape.kind != DEBUG_STRUCT)
		return refuse(w, no_such_access(w, &bare, arena_printf(w->p->arena, "->%s", name)));
	if (!w->in_memory && !w->nparts)
		return refuse(w, "it is a structure that is neither in memory nor in registers");
	m.name = NULL;
	why = debug_member(&bare, name, &m);
	if (why && !m.name)
		return refuse(w, no_member(w, &bare, name, why));
	if (why)
		return refuse(w, arena_printf(w->p->arena, "->%s: %s", name, why));
	walk_to(w, &m);
	return true;
}

/* The number of innermost elements in one element of dimension @dim of the array @bare. */
uint64_t walk_inner_count(const Dwarf_Die *bare, unsigned int dim)
{
	unsigned int n = debug_dims(bare);
	uint64_t all = 1;

	while (++dim < n)
		all *= debug_count(bare, dim);
	return all;
}

/* @any: the type is the element's own. */
static bool element(struct walk *w, struct stp_node *index, bool any)
{
	struct debug_shape shape;
	Dwarf_Die bare, to;
	int64_t size;

	debug_shape(&w->type, &bare, &shape);
	if (any) {
		size = (int64_t)debug_size(&w->type);
	} else if (shape.kind == DEBUG_ARRAY) {
		if (!debug_target(&bare, &to))
			return refuse(w, "the type of the elements is not known");
		size = (int64_t)(debug_size(&to) * walk_inner_count(&bare, w->dim));
		if (++w->dim >= debug_dims(&bare)) {
			w->type = to;
			w->dim = 0;
		}
	} else if (shape.kind == DEBUG_POINTER) {
		if (!walk_deref(w, &bare))
			return false;
		size = (int64_t)debug_size(&w->type);
	} else {
		const char *which = index->kind == STP_NUM ?
					    arena_printf(w->p->arena, "[%lld]", (long long)index->value) : "[...]";

		return refuse(w, no_such_access(w, &bare, which));
	}
	if (!(w->in_memory || w->nparts) || size <= 0)
		return refuse(w, "the size of the elements is not known");
	if (index->kind != STP_NUM && w->nparts)
		return refuse(w, "the array is in registers: write the index as a number");
	if (index->kind != STP_NUM)
		return add_step(w, 0, false, index, size);
	walk_move(w, index->value, size);
	return true;
}

/* Set the target of the value, which has type @type. */
static void set_target(struct walk *w, const Dwarf_Die *type)
{
	w->source->target = points_target(w->p, w->file, type);
}

static void first_member(void *ctx, const struct debug_member *m)
{
	const char **name = ctx;

	if (!*name)
		*name = m->name;
}

static const char *instead_of_struct(struct walk *w, const Dwarf_Die *type)
{
	const char *member = NULL, *why;
	struct strbuf of = { 0 };

	debug_type_name(type, &of);
	debug_each_member(type, first_member, &member);
	why = arena_printf(w->p->arena, "'%s' is being accessed instead of a member%s%s%s", strbuf_str(&of),
			   member ? " such as '->" : "", member ? member : "", member ? "'" : "");
	strbuf_fini(&of);
	return why;
}

/* Load the value at the end of the path. */
bool walk_fetch(struct walk *w, const struct stp_node *target)
{
	struct debug_shape shape;
	Dwarf_Die bare, to;

	if (target->addressed) {
		if (!w->in_memory)
			return refuse(w, "it is kept in a register and has no address");
		if (w->bits.bits)
			return refuse(w, "a bit field has no address");
		set_target(w, &w->type);
		return !w->off || add_step(w, 0, false, NULL, 0);
	}
	debug_shape(&w->type, &bare, &shape);
	switch (shape.kind) {
	case DEBUG_INT:
		break;
	case DEBUG_POINTER:
		if (debug_target(&bare, &to))
			set_target(w, &to);
		break;
	case DEBUG_ARRAY:
		if (!w->in_memory)
			return refuse(w, "it is an array in registers");
		if (w->dim + 1 >= debug_dims(&bare) && debug_target(&bare, &to))
			set_target(w, &to);
		w->source->readonly = "cannot write to array address";
		return !w->off || add_step(w, 0, false, NULL, 0);
	case DEBUG_STRUCT:
		return refuse(w, instead_of_struct(w, &bare));
	case DEBUG_FLOAT:	/* as its bits */
		if (!(w->in_memory || w->nparts) || shape.size > 8)
			return refuse(w, "it is a floating-point number in a register, or one of more than 64 bits");
		break;
	default:
		return refuse(w, "its type is not supported");
	}
	if (w->nparts) {
		w->source->sign = shape.sign;
		return from_register(w, shape.size, w->bits.bit, w->bits.bits);
	}
	if (w->bits.bits) {
		w->source->bit = w->bits.bit;
		w->source->bits = w->bits.bits;
		w->source->sign = shape.sign;
		return add_step(w, w->bits.width, false, NULL, 0);
	}
	if (w->in_memory)
		return add_step(w, (uint8_t)shape.size, shape.sign, NULL, 0);
	if (w->off && !add_step(w, 0, false, NULL, 0))
		return false;
	w->source->width = shape.size < 8 ? (uint8_t)shape.size : 0;
	w->source->sign = shape.sign;
	return true;
}

static bool walk(struct walk *w, const struct stp_node *target)
{
	for (size_t i = 0; i < target->nparts; i++) {
		const struct stp_part *part = &target->parts[i];

		if (part->name ? !member(w, part->name) : !element(w, part->index, target->kind != STP_TARGET && !i))
			return false;
	}
	return target->pretty ? walk_print(w, target->pretty) : walk_fetch(w, target);
}

/* --- where it begins ---------------------------------------------------------------------------------- */

static bool same(const struct arch_operand *a, const struct arch_operand *b)
{
	return a->loc == b->loc && a->reg == b->reg && a->size == b->size && a->value == b->value && !a->why;
}

/* The number of the operand @op of the site, added if new. */
static bool add_operand(struct walk *w, struct site *site, const struct arch_operand *op)
{
	unsigned int i = 0;

	while (i < site->nargs && !same(&site->args[i], op))
		i++;
	if (i == PROBE_MAX_ARGS)
		return refuse(w, "the probe uses variables in too many registers");
	if (i == site->nargs)
		site->args[site->nargs++] = *op;
	w->source->arg = i;
	return true;
}

bool walk_operand(struct walk *w, const struct points_found *f, const char *text)
{
	struct arch_operand op = { 0 };

	w->source->kind = STP_SRC_ARG;
	w->source->type = STP_LONG;
	return arch_operands(arch_host(), text, &op, 1) == 1 && add_operand(w, f->probe->sites[0], &op);
}

/* Is its location a distance from the probe's address? */
static bool is_relative(const struct points_found *f, const struct debug_var *v)
{
	return v->base == DEBUG_ADDR && !v->nsteps && obj_info(f->file->obj)->type != ET_EXEC;
}

/*
 * The thread-local variable @name of @file.  Where a library's block is says a place that the dynamic loader fills: in the
 * library, or in another one, that of the probe, if it uses the variable.
 */
static bool in_thread(struct walk *w, const struct points_found *f, struct points_file *file, const char *name)
{
	static const char unknown[] = "it is thread-local, and its file does not say where its threads have such variables";
	struct arch_operand pc = { .loc = ARCH_LOC_REG, .size = 8, .reg = arch_host()->pc };
	struct stp_tls *block = arena_new_of(w->p->arena, struct stp_tls);
	struct obj_tls tls;

	w->source->kind = STP_SRC_THREAD;
	if (!obj_tls(file->obj, NULL, &tls))
		return refuse(w, unknown);
	if (tls.kind == OBJ_TLS_FIXED) {
		w->off += tls.off;
		return true;
	}
	name = arena_strndup(w->p->arena, name, strcspn(name, "@"));
	if (!f || !f->file || (f->file != file && !obj_tls(f->file->obj, name, &tls)))
		return refuse(w, "where threads have a library's variables is known in probes of files that use them");
	if (f->probe->nsites != 1 || f->probe->sites[0]->ret)
		return refuse(w, "at a return the place of a library's thread-local variables is not known: write "
				 "@entry(@var(\"...\"))");
	/* That of a symbol is the variable's own. */
	w->off = tls.kind == OBJ_TLS_DISTANCE && f->file != file ? 0 : w->off + tls.off;
	block->off = (int64_t)(tls.slot - f->pc);
	block->is_number = tls.kind == OBJ_TLS_NUMBER;
	w->source->tls = block;
	return add_operand(w, f->probe->sites[0], &pc);
}

/* A variable whose address or value is computed of several registers. */
static bool computed(struct walk *w, const struct points_found *f, const struct debug_var *v)
{
	const struct arch *arch = arch_host();
	struct arch_operand regs[MAX_REGS], pc = { .loc = ARCH_LOC_REG, .size = 8, .reg = arch->pc };
	unsigned int n = arch_operands(arch, arch->dwarf_regs, regs, MAX_REGS);
	struct calc_step *steps = arena_alloc(w->p->arena, v->nsteps * sizeof(*steps));

	for (unsigned int i = 0; i < v->nsteps; i++) {
		struct calc_step s = v->steps[i];

		if (s.kind == CALC_ADDR && obj_info(f->file->obj)->type == ET_EXEC) {
			s.kind = CALC_CONST;
		} else if (s.kind == CALC_ADDR) {
			if (f->probe->sites[0]->ret)
				return refuse(w, "at a return the place of global variables is not known");
			if (!add_operand(w, f->probe->sites[0], &pc))
				return false;
			s = (struct calc_step){ CALC_REG, w->source->arg, s.n - (int64_t)f->pc };
		} else if (s.kind == CALC_REG) {
			if (s.reg >= n)
				return refuse(w, "it is in a vector register");
			if (!add_operand(w, f->probe->sites[0], &regs[s.reg]))
				return false;
			s.reg = w->source->arg;
		}
		steps[i] = s;
	}
	w->source->kind = STP_SRC_CALC;
	w->source->calc = steps;
	w->source->ncalc = v->nsteps;
	return true;
}

bool walk_begin(struct walk *w, const struct points_found *f, const struct debug_var *v)
{
	const struct arch *arch = arch_host();
	struct arch_operand regs[MAX_REGS], op = { .loc = ARCH_LOC_CONST, .size = 8 };
	unsigned int n = arch_operands(arch, arch->dwarf_regs, regs, MAX_REGS);
	struct debug_shape shape;
	Dwarf_Die bare;

	w->source->kind = STP_SRC_ARG;
	w->source->type = STP_LONG;
	w->type = v->type;
	w->off = v->off;
	w->in_memory = !v->is_value;
	if (f->probe->nsites != 1)
		return refuse(w, "several functions have this name: their variables cannot be told apart");
	if (f->probe->sites[0]->ret && is_relative(f, v))
		return refuse(w, "at a return the place of global variables is not known: write @entry(@var(\"...\"))");
	debug_shape(&w->type, &bare, &shape);
	if (v->nparts || (v->is_value && v->base == DEBUG_REG && !v->off &&
			  (shape.kind == DEBUG_STRUCT || shape.kind == DEBUG_ARRAY))) {
		w->in_memory = false;
		w->nparts = v->nparts ? v->nparts : 1;
		memcpy(w->parts, v->parts, sizeof(w->parts));
		if (!v->nparts)
			w->parts[0] = (struct debug_part){ (uint16_t)v->reg, 8 };
		for (unsigned int k = 0; k < w->nparts; k++) {
			if (w->parts[k].reg >= n)
				w->parts[k].reg = DEBUG_NO_REG;
			else if (!add_operand(w, f->probe->sites[0], &regs[w->parts[k].reg]))
				return false;
			w->operands[k] = w->source->arg;
		}
		return true;
	}
	if (v->nsteps)
		return computed(w, f, v);
	if (v->base == DEBUG_TLS)
		return in_thread(w, f, f->file, "");
	if (v->base == DEBUG_REG) {
		if (v->reg >= n)
			return refuse(w, "it is in a vector register");
		op = regs[v->reg];
	} else if (is_relative(f, v)) {
		op.loc = ARCH_LOC_REG;
		op.reg = arch->pc;
		w->off -= (int64_t)f->pc;
	}
	return add_operand(w, f->probe->sites[0], &op);
}

static bool one(struct points *p, const struct points_found *f, const struct stp_node *target,
		const struct debug_var *v, struct stp_source *source, const char **why)
{
	struct walk w = { .p = p, .file = f->file, .source = source };

	if (walk_begin(&w, f, v) && walk(&w, target))
		return true;
	*why = w.why;
	return false;
}

bool points_debug_result(struct points *p, const struct points_found *f, const struct stp_node *target,
			 struct stp_source *source, const char **why)
{
	struct debug *d = f && f->file ? obj_debug(f->file->obj) : NULL;
	struct walk w = { .p = p, .file = f ? f->file : NULL, .source = source };
	struct debug_shape shape;
	struct debug_var v;
	const char *file;
	Dwarf_Die bare;
	int line;

	source->kind = STP_SRC_ARG;
	source->type = STP_LONG;
	source->arg = 1;	/* arch.h, call_result */
	if (!d || !debug_result(d, f->pc, &w.type)) {
		bool described = d && debug_source(d, f->pc, &file, &line);

		*why = described ? "the function has no return value" : "the type of the result is not known";
		return !described && !target->nparts && !target->pretty;
	}
	debug_shape(&w.type, &bare, &shape);
	if (shape.kind == DEBUG_FLOAT) {
		*why = "the result is a floating-point number";
		return false;
	}
	if (shape.kind == DEBUG_STRUCT) {
		*why = debug_struct_result(&bare, &v);
		return !*why && one(p, f, target, &v, source, why);
	}
	if (walk(&w, target))
		return true;
	*why = w.why;
	return false;
}

/* --- $$vars and its like ------------------------------------------------------------------------------ */

struct listing {
	struct points *p;
	const struct points_found *f;
	const char *names[WALK_MAX_ITEMS];
	struct stp_source items[WALK_MAX_ITEMS];
	size_t n;
	struct strbuf *out;
};

static void add_item(void *ctx, const char *name, const Dwarf_Die *type)
{
	static const struct stp_node plain = { .kind = STP_TARGET };
	struct listing *l = ctx;
	struct stp_source *item = &l->items[l->n];
	struct debug_var v;
	struct debug_shape shape;
	const char *why;
	Dwarf_Die bare;

	if (l->n == WALK_MAX_ITEMS)
		return;
	debug_shape(type, &bare, &shape);
	if (debug_var(obj_debug(l->f->file->obj), l->f->pc, l->f->inlined, name, &v) || !one(l->p, l->f, &plain, &v, item, &why))
		*item = (struct stp_source){ .kind = STP_SRC_UNKNOWN,
					     .text = shape.kind == DEBUG_STRUCT ? "{...}" : "?" };
	l->names[l->n++] = arena_strdup(l->p->arena, name);
}

static bool list(struct points *p, const struct points_found *f, bool parms, bool locals, struct stp_source *source)
{
	struct listing *l = arena_new_of(p->arena, struct listing);

	l->p = p;
	l->f = f;
	debug_each_var(obj_debug(f->file->obj), f->pc, f->inlined, parms, false, add_item, l);
	debug_each_var(obj_debug(f->file->obj), f->pc, f->inlined, false, locals, add_item, l);
	source->kind = STP_SRC_LIST;
	source->type = STP_STRINGS;
	source->names = l->names;
	source->items = l->items;
	source->nnames = l->n;
	return true;
}

/* --- stap -L ------------------------------------------------------------------------------------------ */

static void show(void *ctx, const char *name, const Dwarf_Die *type)
{
	struct listing *l = ctx;
	struct debug_var v;

	if (debug_var(obj_debug(l->f->file->obj), l->f->pc, l->f->inlined, name, &v))
		return;
	strbuf_printf(l->out, " $%s:", name);
	debug_type_name(type, l->out);
}

void points_debug_vars(const struct points_found *f, struct strbuf *out)
{
	struct listing l = { .f = f, .out = out };

	Dwarf_Die type;

	if (!f->file || !obj_debug(f->file->obj))
		return;
	if (f->probe->sites[0]->ret && debug_result(obj_debug(f->file->obj), f->pc, &type)) {
		strbuf_puts(out, " $return:");
		debug_type_name(&type, out);
	}
	debug_each_var(obj_debug(f->file->obj), f->pc, f->inlined, true, false, show, &l);
	debug_each_var(obj_debug(f->file->obj), f->pc, f->inlined, false, true, show, &l);
}

/* The next name in *@list, which has colons between names, or NULL at its end. */
static const char *next_name(struct points *p, const char **list)
{
	const char *name = *list + (**list == ':');
	size_t n = strcspn(name, ":");

	*list = name + n;
	return n ? arena_strndup(p->arena, name, n) : NULL;
}

/* Does one of the script's @modules name the program or library @file? */
static bool is_file(struct points *p, const struct points_file *file, const char *modules)
{
	const char *name, *slash = strrchr(file->path, '/');

	while ((name = next_name(p, &modules))) {
		const char *path = points_find_program(p, name);

		if ((path && !strcmp(path, file->path)) || !strcmp(name, file->path) || (slash && !strcmp(name, slash + 1)))
			return true;
	}
	return false;
}

/* "name" or "name@file": the variable outside functions. */
static const char *find_global(struct points *p, struct debug *d, const char *name, struct debug_var *v)
{
	const char *at = strchr(name, '@');

	return debug_global(d, at ? arena_strndup(p->arena, name, (size_t)(at - name)) : name, at ? at + 1 : NULL, v);
}

static bool is_program(const struct points_file *file)
{
	const struct obj_info *info = obj_info(file->obj);

	return (info->is_pie || info->type == ET_EXEC) && !obj_links(file->obj)->soname;
}

bool points_debug_bias(const struct points_file *file, struct arena *a, struct stp_source *source)
{
	struct stp_program *program = arena_new_of(a, struct stp_program);

	if (!is_program(file) || procs_identify(obj_file(file->obj), &program->dev, &program->ino))
		return false;
	program->start = obj_code_start(file->obj);
	source->kind = STP_SRC_PROGRAM;
	source->type = STP_LONG;
	source->program = program;
	return true;
}

/* The variable @v of the program @file, which a process may have at any address. */
static bool of_program(struct points *p, struct points_file *file, const struct stp_node *target,
		       const struct debug_var *v, struct stp_source *source, const char **why)
{
	struct walk w = { .p = p, .file = file, .source = source, .type = v->type, .off = v->off, .in_memory = !v->is_value };

	if (v->base != DEBUG_ADDR || v->nparts || v->nsteps || !points_debug_bias(file, p->arena, source)) {
		*why = arena_printf(p->arena, "where %s is in memory is known in probes of that file alone", file->path);
		return false;
	}
	if (walk(&w, target))
		return true;
	*why = w.why;
	return false;
}

/* A thread-local variable of @file, which may be another one than the probe's (@f, or NULL). */
static bool thread_local(struct points *p, const struct points_found *f, struct points_file *file, const struct stp_node *target,
			 const struct debug_var *v, struct stp_source *source, const char **why)
{
	struct walk w = { .p = p, .file = file, .source = source, .type = v->type, .off = v->off, .in_memory = !v->is_value };

	source->type = STP_LONG;
	if (in_thread(&w, f, file, target->name) && walk(&w, target))
		return true;
	*why = w.why;
	return false;
}

bool points_debug_elsewhere(struct points *p, const struct points_found *f, const struct stp_node *target,
			    struct stp_source *source, const char **why)
{
	const char *modules = target->module, *name;

	*why = "no program is named";
	while ((name = next_name(p, &modules))) {
		const char *path = points_find_program(p, name), *missing;
		struct points_file *file = path ? points_open(p, path) : NULL;
		struct debug *d = file && !file->err ? obj_debug(file->obj) : NULL;
		struct debug_var v;

		if (!d) {
			*why = file ? arena_printf(p->arena, "%s has no debuginfo. Missing separate debuginfos, use: "
						   "find-dbgsym-packages %s", name, path) :
				      arena_printf(p->arena, "there is no program %s", name);
			continue;
		}
		missing = find_global(p, d, target->name, &v);
		if (!missing && v.base == DEBUG_TLS)
			return thread_local(p, f, file, target, &v, source, why);
		if (!missing)
			return of_program(p, file, target, &v, source, why);
		*why = arena_printf(p->arena, "%s: %s", target->name, missing);
	}
	return false;
}

/* --- the resolver's ----------------------------------------------------------------------------------- */

bool points_debug_target(struct points *p, const struct points_found *f, const struct stp_node *target,
			 struct stp_source *source, const char **why)
{
	struct debug *d = f && f->file ? obj_debug(f->file->obj) : NULL;
	const char *name = target->name, *missing;
	struct debug_var v;

	if (target->is_var && target->module && *target->module && !(d && is_file(p, f->file, target->module)))
		return points_debug_elsewhere(p, f, target, source, why);
	if (!d) {
		*why = f && f->file ? arena_printf(p->arena, "%s has no debuginfo (compile it with -g, or install its debug "
						   "package): use int_arg(1), pointer_arg(2) ... Missing separate debuginfos, use: "
						   "find-dbgsym-packages %s", f->file->path, f->file->path)
				    : "the point has no debuginfo";
		return false;
	}
	if (!strcmp(name, "$$vars") || !strcmp(name, "$$parms") || !strcmp(name, "$$locals"))
		return target->pretty ? points_list_pretty(p, f, name[2] != 'l', name[2] != 'p', target->pretty, source)
				      : list(p, f, name[2] != 'l', name[2] != 'p', source);
	/* Without a file it is the variable in scope, as of $name, or else of any file. */
	missing = target->is_var && strchr(name, '@') ? "" : debug_var(d, f->pc, f->inlined, name + !target->is_var, &v);
	if (missing && target->is_var)
		missing = find_global(p, d, name, &v);
	if (missing) {
		struct alternatives a = { .prefix = "$" };

		if (!target->is_var)
			debug_each_var(d, f->pc, f->inlined, true, true, var_alternative, &a);
		*why = with_alternatives(p, arena_printf(p->arena, "%s: %s", name, missing), &a);
		return false;
	}
	/* The registers at a return do not tell where the file is. */
	if (target->is_var && is_program(f->file) && f->probe->nsites == 1 && f->probe->sites[0]->ret && is_relative(f, &v))
		return of_program(p, f->file, target, &v, source, why);
	return one(p, f, target, &v, source, why);
}

/* The file named in @cast, else the probe's. */
static struct points_file *cast_file(struct points *p, const struct points_found *f, const char *module)
{
	const char *path;
	struct points_file *file;

	if (!module || !*module)
		return !f ? NULL : f->file ? f->file : f->around;
	path = points_find_program(p, module);
	file = path ? points_open(p, path) : NULL;
	return file && !file->err ? file : NULL;
}

bool points_cast(struct points *p, const struct points_found *f, const struct stp_node *cast, struct stp_source *source,
		 const char **why)
{
	struct points_file *file = points_is_kernel(cast->module) ? NULL : cast_file(p, f, cast->module);
	struct debug *d = file ? obj_debug(file->obj) : NULL;
	struct walk w = { .p = p, .file = file, .source = source, .in_memory = true };
	size_t len = cast->str_len;
	struct debug_shape shape;
	Dwarf_Die bare;

	while (len && strchr("* ", cast->str[len - 1]))
		len--;
	if (points_is_kernel(cast->module))
		return points_kernel_cast(p, cast, arena_strndup(p->arena, cast->str, len), source, why);
	source->kind = STP_SRC_VALUE;
	source->type = STP_LONG;
	if (!d) {
		*why = "no file with debuginfo is named here: write @cast(p, \"struct x\", \"/path/of/program\")";
		return false;
	}
	if (!debug_type(d, arena_strndup(p->arena, cast->str, len), &w.type)) {
		*why = arena_printf(p->arena, "type definition '%s' not found in '%s'", cast->str, file->path);
		return false;
	}
	/* For a pointer to a structure; other targets are loaded. */
	debug_shape(&w.type, &bare, &shape);
	if (!cast->nparts && !cast->pretty && (shape.kind == DEBUG_STRUCT || shape.kind == DEBUG_OTHER)) {
		source->target = points_target(p, file, &w.type);
		source->readonly = "Expecting lvalue for assignment";
		return true;
	}
	if (walk(&w, cast))
		return true;
	*why = w.why;
	return false;
}

bool points_deref(struct points *p, const struct stp_node *deref, struct stp_source *source, const char **why)
{
	const struct points_target *target = deref->l->target;
	struct walk w = { .p = p, .file = target->file, .source = source, .type = target->type, .in_memory = true };

	if (!target->file)
		return points_kernel_deref(p, target->ktype, deref, source, why);
	source->kind = STP_SRC_VALUE;
	source->type = STP_LONG;
	if (walk(&w, deref))
		return true;
	*why = w.why;
	return false;
}

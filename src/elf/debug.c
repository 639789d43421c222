/*
 * Debug information: scopes, variables, the end of a function's prologue, functions inlined into others.
 *
 * Inlined functions are skipped: an address belongs to the function whose code contains it, unless the caller names an
 * inlined one.
 */
#include "elf/debug.h"

#include <dwarf.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/oom.h"
#include "base/strbuf.h"
#include "elf/debug_priv.h"
#include "elf/libdw.h"
#include "elf/priv.h"

/* --- the file ----------------------------------------------------------------------------------------- */

/*
 * libdw returns pointers to strings in the sections without checking that they end.  A section whose last byte is not
 * NUL is replaced by a copy with an additional NUL, before libdw reads it.
 */
static void end_strings(Elf *elf, struct debug *d)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(elf, scn)) && d->nended < DEBUG_ENDED) {
		Elf_Data *data;
		GElf_Shdr shdr;
		char *copy;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type == SHT_NOBITS ||
		    strncmp(obj_section_name(elf, &shdr), ".debug_", 7))
			continue;
		if (shdr.sh_flags & SHF_COMPRESSED && elf_compress(scn, 0, 0) < 0)
			continue;
		data = elf_getdata(scn, NULL);
		if (!data || !data->d_buf || !data->d_size || !((const char *)data->d_buf)[data->d_size - 1])
			continue;
		copy = malloc(data->d_size + 1);
		if (!copy)
			oom();		/* without an end it would be read beyond that */
		memcpy(copy, data->d_buf, data->d_size);
		copy[data->d_size] = '\0';
		data->d_buf = d->ended[d->nended++] = copy;
	}
}

static void open_by_id(const struct obj_info *info, struct debug *d)
{
	struct strbuf path = { 0 };

	if (info->build_id_len < 2)
		return;
	strbuf_printf(&path, "/usr/lib/debug/.build-id/%02x/", info->build_id[0]);
	for (unsigned int i = 1; i < info->build_id_len; i++)
		strbuf_printf(&path, "%02x", info->build_id[i]);
	strbuf_puts(&path, ".debug");
	if (file_open(strbuf_str(&path), &d->file, NULL))
		d->file = NULL;
	strbuf_fini(&path);
	if (!d->file || !limits_begin(d->file))
		return;
	d->elf = elf_begin(d->file->fd, ELF_C_READ, NULL);
	if (d->elf && limits_sections(d->elf, d->file, false) && limits_sections(d->elf, d->file, true)) {
		end_strings(d->elf, d);
		d->dw = libdw.begin_elf(d->elf, DWARF_C_READ, NULL);
	}
}

struct debug *obj_debug(struct obj *o)
{
	struct debug *d;
	GElf_Shdr shdr;

	if (o->debug_tried)
		return o->debug;
	o->debug_tried = true;
	d = libdw_is_there() ? calloc(1, sizeof(*d)) : NULL;
	if (!d)
		return NULL;
	if (limits_sections(o->elf, o->file, true)) {
		end_strings(o->elf, d);
		d->dw = libdw.begin_elf(o->elf, DWARF_C_READ, NULL);
	}
	if (d->dw && !obj_section(o->elf, ".debug_info", &shdr) && !obj_section(o->elf, ".zdebug_info", &shdr)) {
		libdw.end(d->dw);
		d->dw = NULL;
	}
	if (!d->dw)
		open_by_id(obj_info(o), d);
	if (!d->dw) {
		debug_close(d);
		return NULL;
	}
	d->eh = libdw.getcfi_elf(o->elf);
	o->debug = d;
	return d;
}

Dwarf *debug_dwarf(const struct debug *d)
{
	return d->dw;
}

void debug_close(struct debug *d)
{
	if (!d)
		return;
	if (d->eh)
		libdw.cfi_end(d->eh);
	if (d->dw)
		libdw.end(d->dw);
	if (d->elf)
		elf_end(d->elf);
	file_close(d->file);
	while (d->nended)
		free(d->ended[--d->nended]);
	free(d);
}

/* --- scopes ------------------------------------------------------------------------------------------- */

bool debug_find_unit(struct debug *d, uint64_t pc, Dwarf_Die *unit)
{
	Dwarf_CU *cu = NULL;

	while (!libdw.get_units(d->dw, cu, &cu, NULL, NULL, unit, NULL))
		if (libdw.haspc(unit, pc) > 0)
			return true;
	return false;
}

/* Is it an inlined copy without any instruction of its own, which consists only of its entry point @pc? */
static bool is_empty_at(Dwarf_Die *die, uint64_t pc)
{
	Dwarf_Addr entry, base, start, end;
	ptrdiff_t at = 0;

	if (libdw.tag(die) != DW_TAG_inlined_subroutine || libdw.entrypc(die, &entry) || entry != pc)
		return false;
	while ((at = libdw.ranges(die, at, &base, &start, &end)) > 0)
		if (start < end)
			return false;
	return true;
}

static bool find_inner(const Dwarf_Die *outer, uint64_t pc, bool inlined, Dwarf_Die *inner)
{
	if (libdw.child((Dwarf_Die *)outer, inner))
		return false;
	do {
		int tag = libdw.tag(inner);

		if ((tag == DW_TAG_subprogram || tag == DW_TAG_lexical_block || tag == DW_TAG_namespace ||
		     (inlined && tag == DW_TAG_inlined_subroutine)) &&
		    (libdw.haspc(inner, pc) > 0 || is_empty_at(inner, pc)))
			return true;
	} while (!libdw.siblingof(inner, inner));
	return false;
}

static bool is_called(Dwarf_Die *die, const char *name)
{
	const char *its = libdw.diename(die);

	return its && !strcmp(its, name);
}

bool debug_find_scopes(struct debug *d, uint64_t pc, const char *inlined, struct debug_scopes *s)
{
	bool copies = inlined != NULL;

	memset(s, 0, sizeof(*s));
	s->pc = pc;
	if (!debug_find_unit(d, pc, &s->v[0]))
		return false;
	for (s->n = 1; s->n < DEBUG_MAX_SCOPES && find_inner(&s->v[s->n - 1], pc, copies, &s->v[s->n]); s->n++) {
		if (libdw.tag(&s->v[s->n]) == DW_TAG_subprogram)
			s->func = s->frame = s->n;
		if (!copies || libdw.tag(&s->v[s->n]) != DW_TAG_inlined_subroutine || !is_called(&s->v[s->n], inlined))
			continue;
		s->func = s->n;
		copies = false;
	}
	return !copies;
}

/* --- variables ---------------------------------------------------------------------------------------- */

static bool type_of(Dwarf_Die *die, Dwarf_Die *type)
{
	Dwarf_Attribute attr;

	return libdw.attr_integrate(die, DW_AT_type, &attr) && libdw.formref_die(&attr, type);
}

static bool is_var(Dwarf_Die *die)
{
	int tag = libdw.tag(die);

	return tag == DW_TAG_formal_parameter || tag == DW_TAG_variable;
}

static const char *locate(struct debug *d, const struct debug_scopes *s, Dwarf_Die *var, struct debug_var *ret)
{
	Dwarf_Attribute attr;
	Dwarf_Sword value;
	Dwarf_Op *ops;
	size_t n;

	memset(ret, 0, sizeof(*ret));
	if (!type_of(var, &ret->type))
		return "its type is not described";
	if (libdw.attr_integrate(var, DW_AT_const_value, &attr) && !libdw.formsdata(&attr, &value)) {
		ret->off = value;
		ret->is_value = true;
		return NULL;
	}
	if (!libdw.attr_integrate(var, DW_AT_location, &attr))
		return "failed to retrieve location attribute: it was optimized away";
	if (libdw.getlocation_addr(&attr, s->pc, &ops, &n, 1) < 1)
		return "not accessible at this address: it was optimized away, or has no value at this place yet";
	return debug_eval(d, s, &attr, ops, n, ret);
}

bool debug_is_file(const char *path, const char *file)
{
	size_t n = path ? strlen(path) : 0, m = strlen(file), parts = 1;

	if (n && strpbrk(file, "*?[")) {	/* compare as many components of the path as the pattern has */
		for (const char *s = file; *s; s++)
			parts += *s == '/';
		for (; n && parts; n--)
			parts -= path[n - 1] == '/';
		return !fnmatch(file, path + n + !parts, 0);
	}
	return n >= m && !strcmp(path + n - m, file) && (n == m || path[n - m - 1] == '/' || *file == '/');
}

/* The variable @name outside functions in @unit. */
static bool find_global(Dwarf_Die *unit, const char *name, Dwarf_Die *die)
{
	Dwarf_Attribute attr;

	if (libdw.child(unit, die))
		return false;
	do {
		/* A variable that never changes may be a constant without a location. */
		if (libdw.tag(die) == DW_TAG_variable && is_called(die, name) &&
		    (libdw.attr(die, DW_AT_location, &attr) || libdw.attr(die, DW_AT_const_value, &attr)))
			return true;
	} while (!libdw.siblingof(die, die));
	return false;
}

const char *debug_global(struct debug *d, const char *name, const char *file, struct debug_var *ret)
{
	struct debug_scopes s = { .n = 1 };
	size_t shortest = SIZE_MAX;
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit, die, found;

	while ((file || shortest == SIZE_MAX) && !libdw.get_units(d->dw, cu, &cu, NULL, NULL, &unit, NULL)) {
		const char *path = libdw.diename(&unit);
		size_t n = path ? strlen(path) : 0;

		if ((file && !debug_is_file(path, file)) || n >= shortest || !find_global(&unit, name, &die))
			continue;
		shortest = n;
		s.v[0] = unit;
		found = die;
	}
	return shortest == SIZE_MAX ? "no global variable of that name is described" : locate(d, &s, &found, ret);
}

const char *debug_var(struct debug *d, uint64_t pc, const char *inlined, const char *name, struct debug_var *ret)
{
	struct debug_scopes s;
	Dwarf_Die die;

	if (!debug_find_scopes(d, pc, inlined, &s))
		return "no debuginfo describes this function";
	for (int i = s.n; i--;) {
		/* Variables of the functions that a copy is inlined into are not in its scope. */
		if ((i && i < s.func && libdw.tag(&s.v[i]) != DW_TAG_namespace) || libdw.child(&s.v[i], &die))
			continue;
		do {
			if (is_var(&die) && is_called(&die, name) && !libdw.hasattr(&die, DW_AT_declaration) &&
			    (i || libdw.hasattr(&die, DW_AT_location)))
				return locate(d, &s, &die, ret);
		} while (!libdw.siblingof(&die, &die));
	}
	return debug_global(d, name, NULL, ret) ? "no variable of that name is in scope" : NULL;
}

bool debug_result(struct debug *d, uint64_t pc, Dwarf_Die *type)
{
	struct debug_scopes s;

	return debug_find_scopes(d, pc, NULL, &s) && s.func && type_of(&s.v[s.func], type);
}

void debug_each_var(struct debug *d, uint64_t pc, const char *inlined, bool parms, bool locals,
		    void (*fn)(void *ctx, const char *name, const Dwarf_Die *type), void *ctx)
{
	struct debug_scopes s;
	Dwarf_Die die, type;

	if (!debug_find_scopes(d, pc, inlined, &s) || !s.func)
		return;
	for (int i = s.func; i < s.n; i++) {
		if (libdw.child(&s.v[i], &die))
			continue;
		do {
			int tag = libdw.tag(&die);

			if (((tag == DW_TAG_formal_parameter && parms) || (tag == DW_TAG_variable && locals)) &&
			    libdw.diename(&die) && type_of(&die, &type))
				fn(ctx, libdw.diename(&die), &type);
		} while (!libdw.siblingof(&die, &die));
	}
}

/* --- the prologue ------------------------------------------------------------------------------------- */

/* Is the parameter stored below its function's frame base, where the prologue puts it? */
static bool is_in_frame(Dwarf_Die *parm)
{
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;

	return libdw.attr_integrate(parm, DW_AT_location, &attr) && !libdw.getlocation(&attr, &ops, &n) && n == 1 &&
	       ops[0].atom == DW_OP_fbreg && (int64_t)ops[0].number < 0;
}

/* Is the unit optimized?  Assembler code counts as optimized, because its line table does not show a prologue. */
static bool is_optimized(Dwarf_Die *unit)
{
	Dwarf_Attribute attr;
	const char *producer = libdw.attr(unit, DW_AT_producer, &attr) ? libdw.formstring(&attr) : NULL;

	return !producer || strncmp(producer, "GNU C", 5) || strstr(producer, " -O");
}

uint64_t debug_body(struct debug *d, uint64_t entry)
{
	bool any = false, framed = false;
	Dwarf_Addr *at = NULL, body = entry;
	struct debug_scopes s;
	Dwarf_Die die;

	if (!debug_find_scopes(d, entry, NULL, &s) || !s.func)
		return entry;
	if (!libdw.child(&s.v[s.func], &die)) {
		do {
			any |= libdw.tag(&die) == DW_TAG_formal_parameter;
			framed |= libdw.tag(&die) == DW_TAG_formal_parameter && is_in_frame(&die);
		} while (!libdw.siblingof(&die, &die));
	}
	if (!framed && (any || is_optimized(&s.v[0])))
		return entry;
	if (libdw.entry_breakpoints(&s.v[s.func], &at) > 0 && at[0] > entry && libdw.haspc(&s.v[s.func], at[0]) > 0)
		body = at[0];
	free(at);
	return body;
}

/* --- contents of functions ---------------------------------------------------------------------------- */

/* Whose callees are asked for: those of a function, and of what is inlined in it. */
struct calls {
	unsigned int depth;
	void (*fn)(void *ctx, const struct debug_callee *c);
	void *ctx;
};

struct search {
	void (*inlined)(void *ctx, const char *name, uint64_t pc, const char *file, int line);
	void (*label)(void *ctx, const struct debug_label *l);
	const struct calls *calls;
	const char *copied;	/* only labels and calls in inlined copies of functions that match this pattern; or NULL */
	struct debug_label in;	/* the function of the labels */
	void *ctx;
};

/*
 * The start of an inlined copy's code.  The entry address that GCC gives may be before all of its code, where its
 * variables are not valid yet: then it is the first code after that address.
 */
static bool begin_of(Dwarf_Die *die, Dwarf_Addr *pc)
{
	Dwarf_Addr entry, base, start, end, best = UINT64_MAX;
	ptrdiff_t at = 0;

	if (libdw.entrypc(die, &entry))
		return false;
	*pc = entry;
	if (libdw.haspc(die, entry) > 0 || is_empty_at(die, entry))
		return true;
	while ((at = libdw.ranges(die, at, &base, &start, &end)) > 0)
		if (start >= entry && start < best && start < end)
			best = start;
	*pc = best;
	return best != UINT64_MAX;
}

/* The source file and line of a function's declaration; NULL: not known. */
static const char *declared_at(Dwarf_Die *die, int *line)
{
	const char *file = debug_decl_file(die);
	Dwarf_Attribute attr;
	Dwarf_Word n = 0;

	if (!libdw.attr_integrate(die, DW_AT_decl_line, &attr) || libdw.formudata(&attr, &n))
		file = NULL;
	*line = (int)n;
	return file;
}

static void callees(const struct calls *s, const Dwarf_Die *outer, const struct debug_callee *in, int level);

static void search(const struct search *s, const Dwarf_Die *outer, int depth);

/* An inlined copy of a function whose labels or calls are asked for. */
static void search_copy(const struct search *s, Dwarf_Die *copy, const char *name, int depth)
{
	struct search labels = { .label = s->label, .in.func = name, .ctx = s->ctx };
	struct debug_callee caller = { .name = name };

	if (s->label) {
		labels.in.file = declared_at(copy, &labels.in.line);
		search(&labels, copy, depth);
	} else {
		caller.file = declared_at(copy, &caller.line);
		callees(s->calls, copy, &caller, 0);
	}
}

static void search(const struct search *s, const Dwarf_Die *outer, int depth)
{
	Dwarf_Die die;

	if (depth > DEBUG_MAX_SCOPES || libdw.child((Dwarf_Die *)outer, &die))
		return;
	do {
		const char *name = libdw.diename(&die), *file;
		struct debug_label label = s->in;
		Dwarf_Addr pc;
		int line;

		switch (libdw.tag(&die)) {
		case DW_TAG_inlined_subroutine:
			if (s->label && !s->copied)	/* its labels are another function's */
				continue;
			if (s->copied && name && !fnmatch(s->copied, name, 0))
				search_copy(s, &die, name, depth + 1);
			if (!s->inlined || !name || !begin_of(&die, &pc))
				break;
			file = declared_at(&die, &line);
			s->inlined(s->ctx, name, pc, file, line);
			break;
		case DW_TAG_label:
			label.name = name;
			if (s->label && !s->copied && name && !libdw.lowpc(&die, &pc)) {
				label.pc = pc;
				s->label(s->ctx, &label);
			}
			continue;
		case DW_TAG_subprogram:
		case DW_TAG_lexical_block:
		case DW_TAG_namespace:
			break;
		default:
			continue;
		}
		search(s, &die, depth + 1);
	} while (!libdw.siblingof(&die, &die));
}

void debug_each_inlined(struct debug *d,
			void (*fn)(void *ctx, const char *name, uint64_t pc, const char *file, int line), void *ctx)
{
	struct search s = { .inlined = fn, .ctx = ctx };
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;

	while (!libdw.get_units(d->dw, cu, &cu, NULL, NULL, &unit, NULL))
		search(&s, &unit, 0);
}

void debug_each_label(struct debug *d, uint64_t entry, void (*fn)(void *ctx, const struct debug_label *l), void *ctx)
{
	struct search s = { .label = fn, .ctx = ctx };
	struct debug_scopes at;

	if (debug_find_scopes(d, entry, NULL, &at) && at.func)
		search(&s, &at.v[at.func], 0);
}

void debug_each_copied_label(struct debug *d, const char *pattern, void (*fn)(void *ctx, const struct debug_label *l),
			     void *ctx)
{
	struct search s = { .label = fn, .copied = pattern, .ctx = ctx };
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;

	while (!libdw.get_units(d->dw, cu, &cu, NULL, NULL, &unit, NULL))
		search(&s, &unit, 0);
}

/* The address to which a call returns; 0: it does not return, or that is not known. */
static uint64_t return_of(Dwarf_Die *die)
{
	bool gnu = libdw.tag(die) == DW_TAG_GNU_call_site;
	Dwarf_Attribute attr;
	Dwarf_Addr pc;

	if (libdw.hasattr(die, gnu ? DW_AT_GNU_tail_call : DW_AT_call_tail_call) ||
	    !libdw.attr(die, gnu ? DW_AT_low_pc : DW_AT_call_return_pc, &attr) || libdw.formaddr(&attr, &pc))
		return 0;
	return pc;
}

/* The function that is called. */
static bool origin_of(Dwarf_Die *die, Dwarf_Die *func)
{
	Dwarf_Attribute attr;

	return libdw.attr(die, libdw.tag(die) == DW_TAG_GNU_call_site ? DW_AT_abstract_origin : DW_AT_call_origin, &attr) &&
	       libdw.formref_die(&attr, func);
}

static void declared(Dwarf_Die *die, struct debug_callee *c)
{
	c->name = libdw.diename(die);
	c->file = declared_at(die, &c->line);
}

/* @outer: the function, an inlined copy or a block in them; @in: the copy that it is or is in, or NULL. */
static void callees(const struct calls *s, const Dwarf_Die *outer, const struct debug_callee *in, int level)
{
	Dwarf_Die die, func;

	if (level > DEBUG_MAX_SCOPES || libdw.child((Dwarf_Die *)outer, &die))
		return;
	do {
		struct debug_callee c = { .depth = 1 };
		Dwarf_Addr pc;

		if (in) {
			c.caller = in->name;
			c.caller_file = in->file;
			c.caller_line = in->line;
			c.depth = in->depth + 1;
		}

		switch (libdw.tag(&die)) {
		case DW_TAG_inlined_subroutine:
			declared(&die, &c);
			if (!c.name || !begin_of(&die, &pc))
				break;
			c.pc = pc;
			s->fn(s->ctx, &c);
			if (c.depth < s->depth)
				callees(s, &die, &c, level + 1);
			break;
		case DW_TAG_call_site:
		case DW_TAG_GNU_call_site:
			c.return_pc = return_of(&die);
			if (!c.return_pc || !origin_of(&die, &func))
				break;
			declared(&func, &c);
			if (!libdw.entrypc(&func, &pc))
				c.pc = pc;
			if (c.name)
				s->fn(s->ctx, &c);
			break;
		case DW_TAG_lexical_block:
			callees(s, &die, in, level + 1);
			break;
		default:
			break;
		}
	} while (!libdw.siblingof(&die, &die));
}

void debug_each_callee(struct debug *d, uint64_t entry, unsigned int depth,
		       void (*fn)(void *ctx, const struct debug_callee *c), void *ctx)
{
	struct calls s = { depth, fn, ctx };
	struct debug_scopes at;

	if (debug_find_scopes(d, entry, NULL, &at) && at.func)
		callees(&s, &at.v[at.func], NULL, 0);
}

void debug_each_copied_callee(struct debug *d, const char *pattern, unsigned int depth,
			      void (*fn)(void *ctx, const struct debug_callee *c), void *ctx)
{
	const struct calls calls = { depth, fn, ctx };
	struct search s = { .calls = &calls, .copied = pattern };
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;

	while (!libdw.get_units(d->dw, cu, &cu, NULL, NULL, &unit, NULL))
		search(&s, &unit, 0);
}

const char *debug_name(struct debug *d, uint64_t entry)
{
	struct debug_scopes at;

	return debug_find_scopes(d, entry, NULL, &at) && at.func ? libdw.diename(&at.v[at.func]) : NULL;
}

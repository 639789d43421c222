/*
 * Debug information: scopes, places of variables, where a function's prologue ends.
 *
 * Expressions are computed as a register plus a number.  Inlined functions are passed over: what is asked for is the
 * function whose code it is, but where a copy of an inlined one is named.
 */
#include "elf/debug.h"

#include <dwarf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "elf/priv.h"

enum { MAX_SCOPES = 32, MAX_STACK = 8, MAX_DEPTH = 4, ENDED = 16 };

struct debug {
	Dwarf *dw;
	Dwarf_CFI *eh;			/* of the file itself; its own memory */
	Elf *elf;			/* of another file, or NULL */
	int fd;
	char *ended[ENDED];		/* end_strings's copies */
	size_t nended;
};

/* --- the file ----------------------------------------------------------------------------------------- */

/*
 * libdw gives strings as they lie in the sections, and does not look for their ends.  A section whose last byte is no NUL
 * is replaced by a copy with a NUL behind it, before libdw sees it.
 */
static void end_strings(Elf *elf, struct debug *d)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(elf, scn)) && d->nended < ENDED) {
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
			continue;
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
	d->fd = open(strbuf_str(&path), O_RDONLY | O_CLOEXEC);
	strbuf_fini(&path);
	if (d->fd < 0)
		return;
	d->elf = elf_begin(d->fd, ELF_C_READ, NULL);
	if (d->elf) {
		end_strings(d->elf, d);
		d->dw = dwarf_begin_elf(d->elf, DWARF_C_READ, NULL);
	}
}

struct debug *obj_debug(struct obj *o)
{
	struct debug *d;
	GElf_Shdr shdr;

	if (o->debug_tried)
		return o->debug;
	o->debug_tried = true;
	d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	d->fd = -1;
	end_strings(o->elf, d);
	d->dw = dwarf_begin_elf(o->elf, DWARF_C_READ, NULL);
	if (d->dw && !obj_section(o->elf, ".debug_info", &shdr) && !obj_section(o->elf, ".zdebug_info", &shdr)) {
		dwarf_end(d->dw);
		d->dw = NULL;
	}
	if (!d->dw)
		open_by_id(obj_info(o), d);
	if (!d->dw) {
		debug_close(d);
		return NULL;
	}
	d->eh = dwarf_getcfi_elf(o->elf);
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
		dwarf_cfi_end(d->eh);
	if (d->dw)
		dwarf_end(d->dw);
	if (d->elf)
		elf_end(d->elf);
	if (d->fd >= 0)
		close(d->fd);
	while (d->nended)
		free(d->ended[--d->nended]);
	free(d);
}

/* --- scopes ------------------------------------------------------------------------------------------- */

/* What contains an address: the compilation unit, the function, its blocks. */
struct scopes {
	Dwarf_Die v[MAX_SCOPES];
	int n, func;		/* @func: the function's number, 0: none; its variables are asked for */
	int frame;		/* of the function whose frame it is: the same, but of an inlined one */
	uint64_t pc;
};

static bool find_unit(struct debug *d, uint64_t pc, Dwarf_Die *unit)
{
	Dwarf_CU *cu = NULL;

	while (!dwarf_get_units(d->dw, cu, &cu, NULL, NULL, unit, NULL))
		if (dwarf_haspc(unit, pc) > 0)
			return true;
	return false;
}

static bool find_inner(const Dwarf_Die *outer, uint64_t pc, bool inlined, Dwarf_Die *inner)
{
	if (dwarf_child((Dwarf_Die *)outer, inner))
		return false;
	do {
		int tag = dwarf_tag(inner);

		if ((tag == DW_TAG_subprogram || tag == DW_TAG_lexical_block || tag == DW_TAG_namespace ||
		     (inlined && tag == DW_TAG_inlined_subroutine)) &&
		    (dwarf_haspc(inner, pc) > 0))
			return true;
	} while (!dwarf_siblingof(inner, inner));
	return false;
}

static bool is_called(Dwarf_Die *die, const char *name)
{
	const char *its = dwarf_diename(die);

	return its && !strcmp(its, name);
}

static bool find_scopes_in(struct debug *d, uint64_t pc, const char *inlined, struct scopes *s)
{
	bool copies = inlined != NULL;

	memset(s, 0, sizeof(*s));
	s->pc = pc;
	if (!find_unit(d, pc, &s->v[0]))
		return false;
	for (s->n = 1; s->n < MAX_SCOPES && find_inner(&s->v[s->n - 1], pc, copies, &s->v[s->n]); s->n++) {
		if (dwarf_tag(&s->v[s->n]) == DW_TAG_subprogram)
			s->func = s->frame = s->n;
		if (!copies || dwarf_tag(&s->v[s->n]) != DW_TAG_inlined_subroutine || !is_called(&s->v[s->n], inlined))
			continue;
		s->func = s->n;
		copies = false;
	}
	return !copies;
}

static bool find_scopes(struct debug *d, uint64_t pc, struct scopes *s)
{
	return find_scopes_in(d, pc, NULL, s);
}

/* --- location expressions ----------------------------------------------------------------------------- */

struct sum {
	enum debug_base base;
	unsigned int reg;
	int64_t off;
};

struct eval {
	struct debug *d;
	const struct scopes *scopes;
	Dwarf_Attribute *attr;		/* whose expression it is, or NULL */
	unsigned int depth;
	const char *why;
	bool is_reg, is_value;		/* the result is a register, a value */
	struct sum stack[MAX_STACK];
	unsigned int n;
};

static bool run(struct eval *e, const Dwarf_Op *ops, size_t n);

static bool refuse(struct eval *e, const char *why)
{
	e->why = why;
	return false;
}

static bool push(struct eval *e, enum debug_base base, unsigned int reg, int64_t off)
{
	if (e->n == MAX_STACK)
		return refuse(e, "its place is too complicated");
	e->stack[e->n++] = (struct sum){ base, reg, off };
	return true;
}

/* What another expression gives, as an address. */
static bool push_other(struct eval *e, const Dwarf_Op *ops, size_t n, int64_t off)
{
	struct eval other = { .d = e->d, .scopes = e->scopes, .depth = e->depth + 1 };

	if (other.depth > MAX_DEPTH)
		return refuse(e, "its place is too complicated");
	if (!run(&other, ops, n))
		return refuse(e, other.why);
	return push(e, other.stack[0].base, other.stack[0].reg, other.stack[0].off + off);
}

static bool push_cfa(struct eval *e)
{
	Dwarf_CFI *cfis[2] = { e->d->eh, dwarf_getcfi(e->d->dw) };
	bool done = false;

	for (int i = 0; i < 2 && !done; i++) {
		Dwarf_Frame *frame = NULL;
		Dwarf_Op *ops;
		size_t n;

		if (!cfis[i] || dwarf_cfi_addrframe(cfis[i], e->scopes->pc, &frame))
			continue;
		done = !dwarf_frame_cfa(frame, &ops, &n) && n > 0 && push_other(e, ops, n, 0);
		free(frame);
	}
	return done || refuse(e, "the frame of its function is not described");
}

static bool push_frame(struct eval *e, int64_t off)
{
	Dwarf_Attribute attr;
	Dwarf_Addr entry;
	Dwarf_Op *ops;
	size_t n;

	if (!e->scopes->frame ||
	    !dwarf_attr_integrate((Dwarf_Die *)&e->scopes->v[e->scopes->frame], DW_AT_frame_base, &attr) ||
	    dwarf_getlocation_addr(&attr, e->scopes->pc, &ops, &n, 1) < 1)
		return refuse(e, "the frame of its function is not described");
	/* A register is the frame's base only once the prologue has set it up. */
	if (n == 1 && ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31 &&
	    (dwarf_entrypc((Dwarf_Die *)&e->scopes->v[e->scopes->frame], &entry) || entry == e->scopes->pc))
		return refuse(e, "at the entry of its function the frame is not set up yet: use .statement");
	return push_other(e, ops, n, off);
}

static bool run_one(struct eval *e, const Dwarf_Op *op)
{
	struct sum *top = e->n ? &e->stack[e->n - 1] : NULL;
	Dwarf_Attribute of;
	Dwarf_Addr addr;

	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31)
		return push(e, DEBUG_REG, op->atom - DW_OP_breg0, (int64_t)op->number);
	if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31)
		return push(e, DEBUG_CONST, 0, op->atom - DW_OP_lit0);
	if (op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31) {
		e->is_reg = true;
		return push(e, DEBUG_REG, op->atom - DW_OP_reg0, 0);
	}
	switch (op->atom) {
	case DW_OP_addr:
		return push(e, DEBUG_ADDR, 0, (int64_t)op->number);
	case DW_OP_addrx:
	case DW_OP_GNU_addr_index:
		if (!e->attr || dwarf_getlocation_attr(e->attr, op, &of) || dwarf_formaddr(&of, &addr))
			break;
		return push(e, DEBUG_ADDR, 0, (int64_t)addr);
	case DW_OP_bregx:
		return push(e, DEBUG_REG, (unsigned int)op->number, (int64_t)op->number2);
	case DW_OP_fbreg:
		return push_frame(e, (int64_t)op->number);
	case DW_OP_call_frame_cfa:
		return push_cfa(e);
	case DW_OP_const1u: case DW_OP_const1s: case DW_OP_const2u: case DW_OP_const2s: case DW_OP_const4u:
	case DW_OP_const4s: case DW_OP_const8u: case DW_OP_const8s: case DW_OP_constu: case DW_OP_consts:
		return push(e, DEBUG_CONST, 0, (int64_t)op->number);
	case DW_OP_plus_uconst:
		if (!top)
			break;
		top->off += (int64_t)op->number;
		return true;
	case DW_OP_plus:
		if (e->n < 2 || (top[0].base != DEBUG_CONST && top[-1].base != DEBUG_CONST))
			break;
		if (top[-1].base == DEBUG_CONST) {
			top[-1].base = top[0].base;
			top[-1].reg = top[0].reg;
		}
		top[-1].off += top[0].off;
		e->n--;
		return true;
	case DW_OP_minus:
		if (e->n < 2 || top[0].base != DEBUG_CONST)
			break;
		top[-1].off -= top[0].off;
		e->n--;
		return true;
	case DW_OP_stack_value:
		e->is_value = true;
		return true;
	case DW_OP_form_tls_address:
	case DW_OP_GNU_push_tls_address:
		return refuse(e, "it is thread-local");
	case DW_OP_piece:
	case DW_OP_bit_piece:
		return refuse(e, "it is kept in pieces");
	case DW_OP_entry_value:
	case DW_OP_GNU_entry_value:
		return refuse(e, "here only the function's caller had it: probe the function's entry");
	default:
		break;
	}
	return refuse(e, "its place is too complicated");
}

static bool run(struct eval *e, const Dwarf_Op *ops, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!run_one(e, &ops[i]))
			return false;
	return e->n == 1 || refuse(e, n ? "its place is too complicated" : "it was optimized away");
}

/* --- variables ---------------------------------------------------------------------------------------- */

static bool type_of(Dwarf_Die *die, Dwarf_Die *type)
{
	Dwarf_Attribute attr;

	return dwarf_attr_integrate(die, DW_AT_type, &attr) && dwarf_formref_die(&attr, type);
}

static bool is_var(Dwarf_Die *die)
{
	int tag = dwarf_tag(die);

	return tag == DW_TAG_formal_parameter || tag == DW_TAG_variable;
}

/* Registers, each with the piece that is in it; what is elsewhere, or nowhere, is left out. */
static bool in_parts(const Dwarf_Op *ops, size_t n, struct debug_var *ret)
{
	unsigned int reg = DEBUG_NO_REG;
	bool any = false;

	for (size_t i = 0; i < n; i++) {
		if (ops[i].atom >= DW_OP_reg0 && ops[i].atom <= DW_OP_reg31) {
			reg = ops[i].atom - DW_OP_reg0;
			any = true;
			continue;
		}
		if (ops[i].atom == DW_OP_bit_piece)
			return false;
		if (ops[i].atom != DW_OP_piece) {
			reg = DEBUG_NO_REG;
			continue;
		}
		if (ret->nparts == DEBUG_MAX_PARTS || ops[i].number > UINT16_MAX)
			return false;
		ret->parts[ret->nparts++] = (struct debug_part){ (uint16_t)reg, (uint16_t)ops[i].number };
		reg = DEBUG_NO_REG;
	}
	return any && ret->nparts && ops[n - 1].atom == DW_OP_piece;
}

static const char *locate(struct debug *d, const struct scopes *s, Dwarf_Die *var, struct debug_var *ret)
{
	struct eval e = { .d = d, .scopes = s };
	Dwarf_Attribute attr;
	Dwarf_Sword value;
	Dwarf_Op *ops;
	size_t n;

	memset(ret, 0, sizeof(*ret));
	if (!type_of(var, &ret->type))
		return "its type is not described";
	if (dwarf_attr_integrate(var, DW_AT_const_value, &attr) && !dwarf_formsdata(&attr, &value)) {
		ret->off = value;
		ret->is_value = true;
		return NULL;
	}
	if (!dwarf_attr_integrate(var, DW_AT_location, &attr) || dwarf_getlocation_addr(&attr, s->pc, &ops, &n, 1) < 1)
		return "it was optimized away, or has no value at this place yet";
	if (in_parts(ops, n, ret))
		return NULL;
	ret->nparts = 0;
	e.attr = &attr;
	if (!run(&e, ops, n))
		return e.why;
	ret->base = e.stack[0].base;
	ret->reg = e.stack[0].reg;
	ret->off = e.stack[0].off;
	ret->is_value = e.is_reg || e.is_value;
	return NULL;
}

bool debug_is_file(const char *path, const char *file)
{
	size_t n = path ? strlen(path) : 0, m = strlen(file);

	return n >= m && !strcmp(path + n - m, file) && (n == m || path[n - m - 1] == '/' || *file == '/');
}

const char *debug_global(struct debug *d, const char *name, const char *file, struct debug_var *ret)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit, die;

	while (!dwarf_get_units(d->dw, cu, &cu, NULL, NULL, &unit, NULL)) {
		if ((file && !debug_is_file(dwarf_diename(&unit), file)) || dwarf_child(&unit, &die))
			continue;
		do {
			struct scopes s = { .n = 1 };
			Dwarf_Attribute attr;

			s.v[0] = unit;
			if (dwarf_tag(&die) == DW_TAG_variable && is_called(&die, name) &&
			    dwarf_attr(&die, DW_AT_location, &attr))
				return locate(d, &s, &die, ret);
		} while (!dwarf_siblingof(&die, &die));
	}
	return "no global variable of that name is described";
}

const char *debug_var(struct debug *d, uint64_t pc, const char *inlined, const char *name, struct debug_var *ret)
{
	struct scopes s;
	Dwarf_Die die;

	if (!find_scopes_in(d, pc, inlined, &s))
		return "no debuginfo describes this function";
	for (int i = s.n; i--;) {
		if (dwarf_child(&s.v[i], &die))
			continue;
		do {
			if (is_var(&die) && is_called(&die, name) && !dwarf_hasattr(&die, DW_AT_declaration) &&
			    (i || dwarf_hasattr(&die, DW_AT_location)))
				return locate(d, &s, &die, ret);
		} while (!dwarf_siblingof(&die, &die));
	}
	return debug_global(d, name, NULL, ret) ? "no variable of that name is in scope" : NULL;
}

bool debug_result(struct debug *d, uint64_t pc, Dwarf_Die *type)
{
	struct scopes s;

	return find_scopes(d, pc, &s) && s.func && type_of(&s.v[s.func], type);
}

void debug_each_var(struct debug *d, uint64_t pc, const char *inlined, bool parms, bool locals,
		    void (*fn)(void *ctx, const char *name, const Dwarf_Die *type), void *ctx)
{
	struct scopes s;
	Dwarf_Die die, type;

	if (!find_scopes_in(d, pc, inlined, &s) || !s.func)
		return;
	for (int i = s.func; i < s.n; i++) {
		if (dwarf_child(&s.v[i], &die))
			continue;
		do {
			int tag = dwarf_tag(&die);

			if (((tag == DW_TAG_formal_parameter && parms) || (tag == DW_TAG_variable && locals)) &&
			    dwarf_diename(&die) && type_of(&die, &type))
				fn(ctx, dwarf_diename(&die), &type);
		} while (!dwarf_siblingof(&die, &die));
	}
}

/* --- the prologue ------------------------------------------------------------------------------------- */

/* Is the parameter kept below its function's frame base, where the prologue puts it? */
static bool is_in_frame(Dwarf_Die *parm)
{
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;

	return dwarf_attr_integrate(parm, DW_AT_location, &attr) && !dwarf_getlocation(&attr, &ops, &n) && n == 1 &&
	       ops[0].atom == DW_OP_fbreg && (int64_t)ops[0].number < 0;
}

/* What an assembler made has no prologue that its lines would tell of. */
static bool is_optimized(Dwarf_Die *unit)
{
	Dwarf_Attribute attr;
	const char *producer = dwarf_attr(unit, DW_AT_producer, &attr) ? dwarf_formstring(&attr) : NULL;

	return !producer || strncmp(producer, "GNU C", 5) || strstr(producer, " -O");
}

uint64_t debug_body(struct debug *d, uint64_t entry)
{
	bool any = false, framed = false;
	Dwarf_Addr *at = NULL, body = entry;
	struct scopes s;
	Dwarf_Die die;

	if (!find_scopes(d, entry, &s) || !s.func)
		return entry;
	if (!dwarf_child(&s.v[s.func], &die)) {
		do {
			any |= dwarf_tag(&die) == DW_TAG_formal_parameter;
			framed |= dwarf_tag(&die) == DW_TAG_formal_parameter && is_in_frame(&die);
		} while (!dwarf_siblingof(&die, &die));
	}
	if (!framed && (any || is_optimized(&s.v[0])))
		return entry;
	if (dwarf_entry_breakpoints(&s.v[s.func], &at) > 0 && at[0] > entry && dwarf_haspc(&s.v[s.func], at[0]) > 0)
		body = at[0];
	free(at);
	return body;
}

/* --- source lines ------------------------------------------------------------------------------------- */

bool debug_source(struct debug *d, uint64_t entry, const char **file, int *line)
{
	struct scopes s;

	if (!find_scopes(d, entry, &s) || !s.func)
		return false;
	*file = dwarf_decl_file(&s.v[s.func]);
	return *file && !dwarf_decl_line(&s.v[s.func], line);
}

/* Call @fn for each statement of @file that begins in the function. */
static void each_line(struct debug *d, uint64_t entry, const char *file,
		      void (*fn)(void *ctx, int line, uint64_t addr), void *ctx)
{
	struct scopes s;
	Dwarf_Lines *lines;
	size_t n;

	if (!find_scopes(d, entry, &s) || !s.func || dwarf_getsrclines(&s.v[0], &lines, &n))
		return;
	for (size_t i = 0; i < n; i++) {
		Dwarf_Line *l = dwarf_onesrcline(lines, i);
		bool begins = false, ends = true;
		Dwarf_Addr addr;
		int number;

		if (!l || dwarf_linebeginstatement(l, &begins) || dwarf_lineendsequence(l, &ends) || !begins || ends ||
		    dwarf_lineaddr(l, &addr) || dwarf_lineno(l, &number) || dwarf_haspc(&s.v[s.func], addr) <= 0 ||
		    !debug_is_file(dwarf_linesrc(l, NULL, NULL), file))
			continue;
		fn(ctx, number, addr);
	}
}

struct line {
	int line;
	uint64_t addr;
};

static void first_of(void *ctx, int line, uint64_t addr)
{
	struct line *l = ctx;

	if (line == l->line && (!l->addr || addr < l->addr))
		l->addr = addr;
}

static void last_of(void *ctx, int line, uint64_t addr)
{
	struct line *l = ctx;

	(void)addr;
	if (line > l->line)
		l->line = line;
}

uint64_t debug_line(struct debug *d, uint64_t entry, const char *file, int line)
{
	struct line l = { .line = line };

	each_line(d, entry, file, first_of, &l);
	return l.addr;
}

int debug_last_line(struct debug *d, uint64_t entry, const char *file)
{
	struct line l = { 0 };

	each_line(d, entry, file, last_of, &l);
	return l.line;
}

static void nearest_of(void *ctx, int line, uint64_t addr)
{
	struct line *l = ctx;	/* @line: what is wanted, @addr: the best so far */
	int best = (int)l->addr;

	(void)addr;
	if (line >= l->line ? !best || best < l->line || line < best : !best || (best < l->line && line > best))
		l->addr = (uint64_t)line;
}

int debug_nearest_line(struct debug *d, uint64_t entry, const char *file, int line)
{
	struct line l = { .line = line };

	each_line(d, entry, file, nearest_of, &l);
	return (int)l.addr;
}

bool debug_is_statement(struct debug *d, uint64_t pc, uint64_t *before)
{
	Dwarf_Lines *lines;
	Dwarf_Die unit;
	size_t n;

	*before = 0;
	if (!find_unit(d, pc, &unit) || dwarf_getsrclines(&unit, &lines, &n))
		return false;
	for (size_t i = 0; i < n; i++) {
		Dwarf_Line *l = dwarf_onesrcline(lines, i);
		bool begins = false;
		Dwarf_Addr addr;

		if (!l || dwarf_linebeginstatement(l, &begins) || !begins || dwarf_lineaddr(l, &addr) || addr > pc)
			continue;
		if (addr > *before)
			*before = addr;
	}
	return *before == pc;
}

bool debug_source_at(struct debug *d, uint64_t pc, const char **file, int *line)
{
	Dwarf_Line *l;
	Dwarf_Die unit;

	if (!find_unit(d, pc, &unit))
		return false;
	l = dwarf_getsrc_die(&unit, pc);
	*file = l ? dwarf_linesrc(l, NULL, NULL) : NULL;
	return *file && !dwarf_lineno(l, line) && *line > 0;
}

/* --- what is in functions ----------------------------------------------------------------------------- */

struct search {
	void (*inlined)(void *ctx, const char *name, uint64_t pc, const char *file, int line);
	void (*label)(void *ctx, const char *name, uint64_t pc);
	void *ctx;
};

/*
 * Where the code of a copy begins.  What GCC calls its entry may be in front of all its code, where its variables are not
 * yet: then it is the first of it behind.
 */
static bool begin_of(Dwarf_Die *die, Dwarf_Addr *pc)
{
	Dwarf_Addr entry, base, start, end, best = UINT64_MAX;
	ptrdiff_t at = 0;

	if (dwarf_entrypc(die, &entry))
		return false;
	*pc = entry;
	if (dwarf_haspc(die, entry) > 0)
		return true;
	while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0)
		if (start >= entry && start < best && start < end)
			best = start;
	*pc = best;
	return best != UINT64_MAX;
}

static void search(const struct search *s, const Dwarf_Die *outer, int depth)
{
	Dwarf_Die die;

	if (depth > MAX_SCOPES || dwarf_child((Dwarf_Die *)outer, &die))
		return;
	do {
		const char *name = dwarf_diename(&die), *file;
		Dwarf_Attribute attr;
		Dwarf_Word line = 0;
		Dwarf_Addr pc;

		switch (dwarf_tag(&die)) {
		case DW_TAG_inlined_subroutine:
			if (!s->inlined || !name || !begin_of(&die, &pc))
				break;
			file = dwarf_decl_file(&die);
			if (!dwarf_attr_integrate(&die, DW_AT_decl_line, &attr) || dwarf_formudata(&attr, &line))
				file = NULL;
			s->inlined(s->ctx, name, pc, file, (int)line);
			break;
		case DW_TAG_label:
			if (s->label && name && !dwarf_lowpc(&die, &pc))
				s->label(s->ctx, name, pc);
			continue;
		case DW_TAG_subprogram:
		case DW_TAG_lexical_block:
		case DW_TAG_namespace:
			break;
		default:
			continue;
		}
		search(s, &die, depth + 1);
	} while (!dwarf_siblingof(&die, &die));
}

void debug_each_inlined(struct debug *d,
			void (*fn)(void *ctx, const char *name, uint64_t pc, const char *file, int line), void *ctx)
{
	struct search s = { .inlined = fn, .ctx = ctx };
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;

	while (!dwarf_get_units(d->dw, cu, &cu, NULL, NULL, &unit, NULL))
		search(&s, &unit, 0);
}

void debug_each_label(struct debug *d, uint64_t entry, void (*fn)(void *ctx, const char *name, uint64_t pc), void *ctx)
{
	struct search s = { .label = fn, .ctx = ctx };
	struct scopes at;

	if (find_scopes(d, entry, &at) && at.func)
		search(&s, &at.v[at.func], 0);
}

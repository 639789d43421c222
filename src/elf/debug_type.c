/*
 * Debug information: types, their sizes, members and names.
 */
#include "elf/debug.h"

#include <dwarf.h>
#include <string.h>

#include "base/strbuf.h"
#include "elf/libdw.h"

enum { MAX_LINKS = 64 };	/* typedefs of typedefs, structures in structures: damaged information may be cyclic */

static bool follow(Dwarf_Die *die, Dwarf_Die *ret)
{
	Dwarf_Attribute attr;

	return libdw.attr_integrate(die, DW_AT_type, &attr) && libdw.formref_die(&attr, ret);
}

uint64_t debug_size(const Dwarf_Die *type)
{
	Dwarf_Word size;

	return libdw.aggregate_size((Dwarf_Die *)type, &size) ? 0 : size;
}

static void base_shape(Dwarf_Die *type, struct debug_shape *ret)
{
	Dwarf_Attribute attr;
	Dwarf_Word encoding = 0;

	if (libdw.attr_integrate(type, DW_AT_encoding, &attr))
		libdw.formudata(&attr, &encoding);
	ret->kind = encoding == DW_ATE_float || encoding == DW_ATE_complex_float ? DEBUG_FLOAT : DEBUG_INT;
	ret->sign = encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
	if (ret->kind == DEBUG_INT && ret->size != 1 && ret->size != 2 && ret->size != 4 && ret->size != 8)
		ret->kind = DEBUG_OTHER;
}

void debug_shape(const Dwarf_Die *type, Dwarf_Die *bare, struct debug_shape *ret)
{
	Dwarf_Die at = *type, next;

	memset(ret, 0, sizeof(*ret));
	ret->kind = DEBUG_OTHER;
	for (int i = 0; i < MAX_LINKS; i++) {
		int tag = libdw.tag(&at);

		if (tag != DW_TAG_typedef && tag != DW_TAG_const_type && tag != DW_TAG_volatile_type &&
		    tag != DW_TAG_restrict_type && tag != DW_TAG_atomic_type)
			break;
		if (!follow(&at, &next))
			break;
		at = next;
	}
	*bare = at;
	ret->size = debug_size(&at);
	switch (libdw.tag(&at)) {
	case DW_TAG_enumeration_type:
		for (int i = 0; i < MAX_LINKS && follow(&at, &next); i++)
			at = next;
		base_shape(&at, ret);
		break;
	case DW_TAG_base_type:
		base_shape(&at, ret);
		break;
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		ret->kind = DEBUG_POINTER;
		ret->size = ret->size ? ret->size : 8;
		break;
	case DW_TAG_array_type:
		ret->kind = DEBUG_ARRAY;
		ret->size = follow(&at, &next) ? debug_size(&next) : 0;
		break;
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_class_type:
		ret->kind = DEBUG_STRUCT;
		break;
	default:
		break;
	}
}

unsigned int debug_dims(const Dwarf_Die *type)
{
	unsigned int n = 0;
	Dwarf_Die child;

	if (libdw.child((Dwarf_Die *)type, &child))
		return 0;
	do
		n += libdw.tag(&child) == DW_TAG_subrange_type;
	while (!libdw.siblingof(&child, &child));
	return n;
}

bool debug_target(const Dwarf_Die *type, Dwarf_Die *ret)
{
	return follow((Dwarf_Die *)type, ret);
}

/* Locate the bit field @die: from the structure's start in DWARF 4 and 5, earlier from the top of an integer. */
static const char *locate_bits(Dwarf_Die *die, struct debug_member *m)
{
	Dwarf_Word bits, at, first, size = debug_size(&m->type);
	Dwarf_Attribute attr;

	if (!libdw.attr_integrate(die, DW_AT_bit_size, &attr))
		return NULL;
	if (libdw.formudata(&attr, &bits) || !bits || bits > 64)
		return "the bits of the member are not known";
	if (libdw.attr_integrate(die, DW_AT_data_bit_offset, &attr)) {
		if (libdw.formudata(&attr, &at))
			return "the bits of the member are not known";
		at += (Dwarf_Word)m->off * 8;
	} else if (libdw.attr_integrate(die, DW_AT_bit_offset, &attr)) {
		if (libdw.formudata(&attr, &at))
			return "the bits of the member are not known";
		if (libdw.attr_integrate(die, DW_AT_byte_size, &attr))
			libdw.formudata(&attr, &size);
		at = (Dwarf_Word)m->off * 8 + size * 8 - at - bits;
	} else {
		at = (Dwarf_Word)m->off * 8;
	}
	if (at > INT32_MAX)
		return "the bits of the member are not known";
	/* The integer that the program reads, or in a packed structure the smallest one that contains the field. */
	if (size != 1 && size != 2 && size != 4 && size != 8)
		size = 1;
	first = at / (size * 8) * size;
	if (at - first * 8 + bits > size * 8) {
		first = at / 8;
		for (size = 1; size < 8 && at % 8 + bits > size * 8;)
			size *= 2;
	}
	if (at - first * 8 + bits > size * 8)
		return "the bits of the member lie in more than 8 bytes";
	m->off = (int64_t)first;
	m->width = (uint8_t)size;
	m->bit = (uint8_t)(at - first * 8);
	m->bits = (uint8_t)bits;
	return NULL;
}

/* The offset in the structure, bytes: a constant, or in DWARF 2 an expression that adds one. */
static bool member_off(Dwarf_Attribute *attr, Dwarf_Word *off)
{
	Dwarf_Op *ops;
	size_t n;

	if (!libdw.formudata(attr, off))
		return true;
	if (libdw.getlocation(attr, &ops, &n) || n != 1 || ops[0].atom != DW_OP_plus_uconst)
		return false;
	*off = ops[0].number;
	return true;
}

/* False: @die is not a member. */
static bool read_member(Dwarf_Die *die, struct debug_member *m)
{
	Dwarf_Attribute attr;
	Dwarf_Word at = 0;

	memset(m, 0, sizeof(*m));
	if (libdw.tag(die) != DW_TAG_member || !follow(die, &m->type))
		return false;
	m->name = libdw.diename(die);
	if (libdw.attr_integrate(die, DW_AT_data_member_location, &attr) && !member_off(&attr, &at))
		m->why = "the place of the member is not a number";
	m->off = (int64_t)at;
	if (!m->why)
		m->why = locate_bits(die, m);
	return true;
}

static const char *find_member(const Dwarf_Die *type, const char *name, int depth, struct debug_member *ret)
{
	static const char none[] = "it has no such member";
	Dwarf_Die die;

	if (depth > MAX_LINKS || libdw.child((Dwarf_Die *)type, &die))
		return none;
	do {
		struct debug_member m;
		const char *why;

		if (!read_member(&die, &m) || (m.name && strcmp(m.name, name)))
			continue;
		if (m.name) {
			*ret = m;
			return m.why;
		}
		/* Members of an anonymous member belong to the outer structure. */
		why = find_member(&m.type, name, depth + 1, ret);
		if (why == none)
			continue;
		ret->off = (int64_t)((uint64_t)ret->off + (uint64_t)m.off);
		return why ? why : m.why;
	} while (!libdw.siblingof(&die, &die));
	return none;
}

static bool is_named(Dwarf_Die *die, int tag, const char *name)
{
	const char *its = libdw.tag(die) == tag ? libdw.diename(die) : NULL;

	return its && !strcmp(its, name) && !libdw.hasattr(die, DW_AT_declaration);
}

/* The definition, in another unit of the file, of a type that is only declared in its own. */
static bool find_definition(const Dwarf_Die *type, Dwarf_Die *ret)
{
	const char *name = libdw.diename((Dwarf_Die *)type);
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;

	while (name && !libdw.get_units(libdw.cu_getdwarf(type->cu), cu, &cu, NULL, NULL, &unit, NULL)) {
		if (libdw.child(&unit, ret))
			continue;
		do {
			if (is_named(ret, libdw.tag((Dwarf_Die *)type), name))
				return true;
		} while (!libdw.siblingof(ret, ret));
	}
	return false;
}

const char *debug_member(const Dwarf_Die *type, const char *name, struct debug_member *ret)
{
	Dwarf_Die whole;

	if (!libdw.hasattr((Dwarf_Die *)type, DW_AT_declaration))
		return find_member(type, name, 0, ret);
	return find_definition(type, &whole) ? find_member(&whole, name, 0, ret) : "the structure is only declared here";
}

void debug_each_member(const Dwarf_Die *type, void (*fn)(void *ctx, const struct debug_member *m), void *ctx)
{
	struct debug_member m;
	Dwarf_Die die, whole;

	if (libdw.hasattr((Dwarf_Die *)type, DW_AT_declaration) && find_definition(type, &whole))
		type = &whole;
	if (libdw.child((Dwarf_Die *)type, &die))
		return;
	do {
		if (read_member(&die, &m))
			fn(ctx, &m);
	} while (!libdw.siblingof(&die, &die));
}

uint64_t debug_count(const Dwarf_Die *type, unsigned int dim)
{
	Dwarf_Attribute attr;
	Dwarf_Word n;
	Dwarf_Die child;

	if (libdw.child((Dwarf_Die *)type, &child))
		return 0;
	do {
		if (libdw.tag(&child) != DW_TAG_subrange_type || dim--)
			continue;
		if (libdw.attr_integrate(&child, DW_AT_count, &attr) && !libdw.formudata(&attr, &n))
			return n;
		if (libdw.attr_integrate(&child, DW_AT_upper_bound, &attr) && !libdw.formudata(&attr, &n))
			return n < UINT32_MAX ? n + 1 : 0;
		return 0;
	} while (!libdw.siblingof(&child, &child));
	return 0;
}

enum { WORDS = 2 };	/* the most words of a result in registers */
enum { MAX_STEPS = 256 };	/* a structure of two words has fewer members */

/* The contents of a structure's words. */
struct words {
	bool any[WORDS], number[WORDS];	/* the word has a member; one that is not floating-point */
	bool unaligned, wide;		/* a member is unaligned; is a number of more than 8 bytes */
	int64_t off;			/* of the current inner structure in the outermost one */
	int depth, steps;
};

static void see(struct words *w, const Dwarf_Die *type);

/* See @type at @off bytes from here; debug information may contain any number, so the sum may wrap. */
static void see_at(struct words *w, const Dwarf_Die *type, uint64_t off)
{
	int64_t outer = w->off;

	w->off = (int64_t)((uint64_t)w->off + off);
	see(w, type);
	w->off = outer;
}

static void see_member(void *ctx, const struct debug_member *m)
{
	see_at(ctx, &m->type, (uint64_t)m->off);
}

static void see(struct words *w, const Dwarf_Die *type)
{
	struct debug_shape shape;
	uint64_t n = 1, size;
	Dwarf_Die bare, to;

	debug_shape(type, &bare, &shape);
	if (w->depth == MAX_LINKS || w->steps++ == MAX_STEPS)
		return;
	w->depth++;
	size = shape.size;
	if (shape.kind == DEBUG_STRUCT) {
		debug_each_member(&bare, see_member, w);
	} else if (shape.kind == DEBUG_ARRAY && debug_target(&bare, &to)) {
		for (unsigned int k = 0; k < debug_dims(&bare); k++)
			n *= debug_count(&bare, k);
		for (uint64_t k = 0; size && k < n && k < 8 * WORDS; k++)
			see_at(w, &to, k * size);
	} else if (size > 8 || !size) {
		w->wide = true;
	} else if (w->off >= 0 && w->off < 8 * WORDS) {
		w->unaligned |= (uint64_t)w->off % size != 0;
		w->any[w->off / 8] = true;
		w->number[w->off / 8] |= shape.kind != DEBUG_FLOAT;
	}
	w->depth--;
}

/* Is it a C++ class with a non-trivial copy, which is returned by reference? */
static bool is_by_reference(const Dwarf_Die *type)
{
	Dwarf_Attribute attr;
	Dwarf_Word how;

	return libdw.attr((Dwarf_Die *)type, DW_AT_calling_convention, &attr) && !libdw.formudata(&attr, &how) &&
	       how == DW_CC_pass_by_reference;
}

const char *debug_struct_result(const Dwarf_Die *type, struct debug_var *ret)
{
	uint64_t size = debug_size(type);
	struct words w = { .depth = 0 };
	uint16_t next = 0;

#ifndef __x86_64__
	return "the result is a structure, whose place on this machine is not known";
#endif
	memset(ret, 0, sizeof(*ret));
	ret->type = *type;
	ret->base = DEBUG_REG;		/* %rax, which DWARF calls 0; %rdx is 1 */
	if (!size)
		return "the size of the result is not known";
	if (size <= 8 * WORDS)
		see(&w, type);
	if (size > 8 * WORDS || w.unaligned || is_by_reference(type))
		return NULL;		/* in memory, at the address in %rax */
	if (w.wide)
		return "the result has floating-point numbers of more than 64 bits";
	for (unsigned int k = 0; k < (size + 7) / 8; k++) {
		bool sse = w.any[k] && !w.number[k];

		ret->parts[ret->nparts++] = (struct debug_part){ sse || !w.any[k] ? DEBUG_NO_REG : next, 8 };
		next += !sse;
	}
	return NULL;
}

bool debug_is_char(const Dwarf_Die *type)
{
	struct debug_shape shape;
	Dwarf_Attribute attr;
	Dwarf_Word encoding = 0;
	Dwarf_Die bare;

	debug_shape(type, &bare, &shape);
	if (libdw.tag(&bare) == DW_TAG_base_type && libdw.attr_integrate(&bare, DW_AT_encoding, &attr))
		libdw.formudata(&attr, &encoding);
	return encoding == DW_ATE_signed_char || encoding == DW_ATE_unsigned_char;
}

static const struct kind {
	const char *word;
	int tag;
} kinds[] = {
	{ "struct ", DW_TAG_structure_type }, { "union ", DW_TAG_union_type }, { "enum ", DW_TAG_enumeration_type },
	{ "class ", DW_TAG_class_type }, { "", DW_TAG_typedef }, { "", DW_TAG_base_type },
	{ "", DW_TAG_structure_type }, { "", DW_TAG_union_type }, { "", DW_TAG_enumeration_type },
};

/* The first word of @name ("struct", ...) is the kind; a name without one is a typedef, a base type or any type. */
static bool in_unit(Dwarf_Die *unit, const char *name, Dwarf_Die *ret)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t len = strlen(kinds[i].word);

		if (strncmp(name, kinds[i].word, len) || libdw.child(unit, ret))
			continue;
		do {
			if (is_named(ret, kinds[i].tag, name + len))
				return true;
		} while (!libdw.siblingof(ret, ret));
	}
	return false;
}

bool debug_type(struct debug *d, const char *name, Dwarf_Die *ret)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;

	while (!libdw.get_units(debug_dwarf(d), cu, &cu, NULL, NULL, &unit, NULL))
		if (in_unit(&unit, name, ret))
			return true;
	return false;
}

static void add_name(const Dwarf_Die *type, struct strbuf *out, int depth)
{
	Dwarf_Die at = *type, next;
	int tag = libdw.tag(&at);
	const char *name = libdw.diename(&at);
	bool more = depth < MAX_LINKS && follow(&at, &next);

	switch (tag) {
	case DW_TAG_pointer_type:
		if (more && libdw.tag(&next) == DW_TAG_subroutine_type) {
			strbuf_puts(out, "(*)()");
			break;
		}
		if (more)
			add_name(&next, out, depth + 1);
		else
			strbuf_puts(out, "void");
		strbuf_puts(out, "*");
		break;
	case DW_TAG_array_type:
		if (more)
			add_name(&next, out, depth + 1);
		strbuf_puts(out, "[]");
		break;
	case DW_TAG_const_type:
	case DW_TAG_volatile_type:
	case DW_TAG_restrict_type:
	case DW_TAG_atomic_type:
		if (more)
			add_name(&next, out, depth + 1);
		else
			strbuf_puts(out, "void");
		if (tag == DW_TAG_const_type)
			strbuf_puts(out, " const");
		if (tag == DW_TAG_volatile_type)
			strbuf_puts(out, " volatile");
		break;
	default:
		for (size_t i = 0; i < 4; i++)
			if (kinds[i].tag == tag)
				strbuf_puts(out, kinds[i].word);
		strbuf_puts(out, name ? name : "{...}");
		break;
	}
}

void debug_type_name(const Dwarf_Die *type, struct strbuf *out)
{
	add_name(type, out, 0);
}

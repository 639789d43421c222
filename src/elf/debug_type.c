/*
 * Debug information: types, their sizes, members and names.  Bit fields are refused.
 */
#include "elf/debug.h"

#include <dwarf.h>
#include <string.h>

#include "base/strbuf.h"

enum { MAX_LINKS = 64 };	/* typedefs of typedefs, structures in structures: damaged information may run in circles */

static bool follow(Dwarf_Die *die, Dwarf_Die *ret)
{
	Dwarf_Attribute attr;

	return dwarf_attr_integrate(die, DW_AT_type, &attr) && dwarf_formref_die(&attr, ret);
}

uint64_t debug_size(const Dwarf_Die *type)
{
	Dwarf_Word size;

	return dwarf_aggregate_size((Dwarf_Die *)type, &size) ? 0 : size;
}

static void base_shape(Dwarf_Die *type, struct debug_shape *ret)
{
	Dwarf_Attribute attr;
	Dwarf_Word encoding = 0;

	if (dwarf_attr_integrate(type, DW_AT_encoding, &attr))
		dwarf_formudata(&attr, &encoding);
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
		int tag = dwarf_tag(&at);

		if (tag != DW_TAG_typedef && tag != DW_TAG_const_type && tag != DW_TAG_volatile_type &&
		    tag != DW_TAG_restrict_type && tag != DW_TAG_atomic_type)
			break;
		if (!follow(&at, &next))
			break;
		at = next;
	}
	*bare = at;
	ret->size = debug_size(&at);
	switch (dwarf_tag(&at)) {
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

	if (dwarf_child((Dwarf_Die *)type, &child))
		return 0;
	do
		n += dwarf_tag(&child) == DW_TAG_subrange_type;
	while (!dwarf_siblingof(&child, &child));
	return n;
}

bool debug_target(const Dwarf_Die *type, Dwarf_Die *ret)
{
	return follow((Dwarf_Die *)type, ret);
}

static const char *find_member(const Dwarf_Die *type, const char *name, int depth, int64_t *off, Dwarf_Die *ret)
{
	static const char none[] = "it has no such member";
	Dwarf_Die member;

	if (depth > MAX_LINKS || dwarf_child((Dwarf_Die *)type, &member))
		return none;
	do {
		const char *its = dwarf_diename(&member), *why = none;
		Dwarf_Attribute attr;
		Dwarf_Word at = 0;
		Dwarf_Die inner;

		if (dwarf_tag(&member) != DW_TAG_member || !follow(&member, &inner) || (its && strcmp(its, name)))
			continue;
		if (dwarf_attr_integrate(&member, DW_AT_data_member_location, &attr) && dwarf_formudata(&attr, &at))
			return "the place of the member is not a number";
		if (its) {
			if (dwarf_hasattr(&member, DW_AT_bit_size))
				return "bit fields are not supported: read the number that contains it";
			*ret = inner;
			*off += (int64_t)at;
			return NULL;
		}
		/* The members of one without a name are the outer one's. */
		why = find_member(&inner, name, depth + 1, off, ret);
		if (why == none)
			continue;
		*off += (int64_t)at;
		return why;
	} while (!dwarf_siblingof(&member, &member));
	return none;
}

const char *debug_member(const Dwarf_Die *type, const char *name, int64_t *off, Dwarf_Die *ret)
{
	if (dwarf_hasattr((Dwarf_Die *)type, DW_AT_declaration))
		return "the structure is only declared here";
	*off = 0;
	return find_member(type, name, 0, off, ret);
}

void debug_each_member(const Dwarf_Die *type,
		       void (*fn)(void *ctx, const char *name, int64_t off, const Dwarf_Die *type, bool bits), void *ctx)
{
	Dwarf_Die member;

	if (dwarf_child((Dwarf_Die *)type, &member))
		return;
	do {
		Dwarf_Attribute attr;
		Dwarf_Word at = 0;
		Dwarf_Die inner;

		if (dwarf_tag(&member) != DW_TAG_member || !follow(&member, &inner) ||
		    (dwarf_attr_integrate(&member, DW_AT_data_member_location, &attr) && dwarf_formudata(&attr, &at)))
			continue;
		fn(ctx, dwarf_diename(&member), (int64_t)at, &inner, dwarf_hasattr(&member, DW_AT_bit_size));
	} while (!dwarf_siblingof(&member, &member));
}

uint64_t debug_count(const Dwarf_Die *type)
{
	uint64_t all = debug_size(type);
	Dwarf_Die inner;

	if (!follow((Dwarf_Die *)type, &inner) || !debug_size(&inner))
		return 0;
	return all / debug_size(&inner);
}

bool debug_is_char(const Dwarf_Die *type)
{
	struct debug_shape shape;
	Dwarf_Attribute attr;
	Dwarf_Word encoding = 0;
	Dwarf_Die bare;

	debug_shape(type, &bare, &shape);
	if (dwarf_tag(&bare) == DW_TAG_base_type && dwarf_attr_integrate(&bare, DW_AT_encoding, &attr))
		dwarf_formudata(&attr, &encoding);
	return encoding == DW_ATE_signed_char || encoding == DW_ATE_unsigned_char;
}

static bool is_named(Dwarf_Die *die, int tag, const char *name)
{
	const char *its = dwarf_tag(die) == tag ? dwarf_diename(die) : NULL;

	return its && !strcmp(its, name) && !dwarf_hasattr(die, DW_AT_declaration);
}

static const struct kind {
	const char *word;
	int tag;
} kinds[] = {
	{ "struct ", DW_TAG_structure_type }, { "union ", DW_TAG_union_type }, { "enum ", DW_TAG_enumeration_type },
	{ "class ", DW_TAG_class_type }, { "", DW_TAG_typedef }, { "", DW_TAG_base_type },
	{ "", DW_TAG_structure_type },
};

/* A first word alone tells the kind; what has none is a typedef, a base type, or a structure of C++. */
static bool in_unit(Dwarf_Die *unit, const char *name, Dwarf_Die *ret)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t len = strlen(kinds[i].word);

		if (strncmp(name, kinds[i].word, len) || dwarf_child(unit, ret))
			continue;
		do {
			if (is_named(ret, kinds[i].tag, name + len))
				return true;
		} while (!dwarf_siblingof(ret, ret));
	}
	return false;
}

bool debug_type(struct debug *d, const char *name, Dwarf_Die *ret)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;

	while (!dwarf_get_units(debug_dwarf(d), cu, &cu, NULL, NULL, &unit, NULL))
		if (in_unit(&unit, name, ret))
			return true;
	return false;
}

static void add_name(const Dwarf_Die *type, struct strbuf *out, int depth)
{
	Dwarf_Die at = *type, next;
	int tag = dwarf_tag(&at);
	const char *name = dwarf_diename(&at);
	bool more = depth < MAX_LINKS && follow(&at, &next);

	switch (tag) {
	case DW_TAG_pointer_type:
		if (more && dwarf_tag(&next) == DW_TAG_subroutine_type) {
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

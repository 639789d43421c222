/*
 * The traced program's C types for scripts, from its debug information: struct a.out`node.
 *
 * The types are marked as the program's: a pointer to one is an address in the traced process.
 */
#include "probe/types.h"

#include <stdlib.h>
#include <string.h>

#include <dwarf.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "elf/debug.h"
#include "elf/libdw.h"
#include "elf/obj.h"

enum { MAX_CHAIN = 64 };

/* A type that was created. */
struct made {
	struct made *next;
	Dwarf_Off off;			/* of its entry */
	Dwarf_Die die;
	const struct type *type;
};

struct program_types {
	struct type_source source;	/* of structures' members */
	struct arena *arena;
	struct obj *obj;
	struct made *made[256];		/* by off */
	struct made **sous;		/* by source_id */
	size_t nsous, cap;
};

static const struct type *make(struct program_types *p, struct types *ts, const Dwarf_Die *die, unsigned int depth);

static struct made *find_made(struct program_types *p, const Dwarf_Die *die)
{
	Dwarf_Off off = libdw.dieoffset((Dwarf_Die *)(uintptr_t)die);
	struct made **bucket = &p->made[off % 256], *m;

	for (m = *bucket; m; m = m->next)
		if (m->off == off)
			return m;
	m = arena_new_of(p->arena, struct made);
	m->off = off;
	m->die = *die;
	m->next = *bucket;
	*bucket = m;
	return m;
}

static const struct type *make_base(struct types *ts, const Dwarf_Die *die, const char *name)
{
	struct debug_shape shape;
	Dwarf_Die bare;

	debug_shape(die, &bare, &shape);
	if (shape.kind == DEBUG_FLOAT)
		return type_basic(ts, shape.size == 4 ? TYPE_B_FLOAT : shape.size == 8 ? TYPE_B_DOUBLE : TYPE_B_LDOUBLE);
	if (shape.size > 8 || !shape.size)
		return type_array(ts, type_basic(ts, TYPE_B_UCHAR), shape.size, true);
	if (name && (!strcmp(name, "_Bool") || !strcmp(name, "bool")))
		return type_basic(ts, TYPE_B_BOOL);
	if (name && !strcmp(name, "char"))
		return type_basic(ts, TYPE_B_CHAR);
	if (name && shape.size == 8 && strstr(name, "long long"))
		return type_basic(ts, shape.sign ? TYPE_B_LLONG : TYPE_B_ULLONG);
	if (shape.size != 1 && shape.size != 2 && shape.size != 4 && shape.size != 8)
		return type_array(ts, type_basic(ts, TYPE_B_UCHAR), shape.size, true);
	return type_int(ts, (unsigned int)shape.size, shape.sign);
}

static const struct type *make_enum(struct types *ts, const Dwarf_Die *die, const char *name)
{
	struct type *en = type_untabled(ts, TYPE_ENUM, name);
	uint64_t size = debug_size(die);
	Dwarf_Attribute attr;
	Dwarf_Die child;
	Dwarf_Sword v;

	if (!libdw.child((Dwarf_Die *)(uintptr_t)die, &child))
		do
			if (libdw.tag(&child) == DW_TAG_enumerator && libdw.diename(&child) &&
			    libdw.attr(&child, DW_AT_const_value, &attr) && !libdw.formsdata(&attr, &v))
				type_put_enumerator(ts, en, libdw.diename(&child), v);
		while (!libdw.siblingof(&child, &child));
	en->size = size;
	en->align = size ? (uint32_t)size : 1;
	en->complete = size == 1 || size == 2 || size == 4 || size == 8;
	return en;
}

static const struct type *make_array(struct program_types *p, struct types *ts, const Dwarf_Die *die, unsigned int depth)
{
	unsigned int dims = debug_dims(die);
	const struct type *t = type_basic(ts, TYPE_B_VOID);
	Dwarf_Die of;

	if (debug_target(die, &of))
		t = make(p, ts, &of, depth + 1);
	while (dims-- > 0)
		t = type_array(ts, t, debug_count(die, dims), debug_count(die, dims) != 0);
	return t;
}

static const struct type *make_sou(struct program_types *p, struct types *ts, struct made *m, const char *name, bool is_union)
{
	struct type *t = type_untabled(ts, is_union ? TYPE_UNION : TYPE_STRUCT, name);
	uint64_t size = debug_size(&m->die);

	t->size = size;
	t->align = size % 8 == 0 ? 8 : size % 4 == 0 ? 4 : size % 2 == 0 ? 2 : 1;
	t->complete = size != 0;
	if (t->complete) {
		t->source = &p->source;
		t->source_id = (uint32_t)p->nsous;
		p->sous = arena_grow(p->arena, p->sous, &p->cap, p->nsous, sizeof(*p->sous));
		p->sous[p->nsous++] = m;
	}
	return t;
}

static const struct type *make_of(struct program_types *p, struct types *ts, struct made *m, unsigned int depth)
{
	const char *name = libdw.diename(&m->die);
	const struct type *to = type_basic(ts, TYPE_B_VOID);
	int tag = libdw.tag(&m->die);
	Dwarf_Die next;

	switch (tag) {
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
		return make_sou(p, ts, m, name, tag == DW_TAG_union_type);
	case DW_TAG_base_type:
		return make_base(ts, &m->die, name);
	case DW_TAG_enumeration_type:
		return make_enum(ts, &m->die, name);
	case DW_TAG_array_type:
		return make_array(p, ts, &m->die, depth);
	case DW_TAG_subroutine_type:
		return type_func(ts, to, NULL, 0, true);
	}
	if (debug_target(&m->die, &next))
		to = make(p, ts, &next, depth + 1);
	switch (tag) {
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		return type_ptr(ts, to);
	case DW_TAG_typedef:
		return type_alias(ts, name ? name : "?", to);
	case DW_TAG_const_type:
		return type_qualify(ts, to, TYPE_CONST);
	case DW_TAG_volatile_type:
		return type_qualify(ts, to, TYPE_VOLATILE);
	default:
		return to;
	}
}

static const struct type *make(struct program_types *p, struct types *ts, const Dwarf_Die *die, unsigned int depth)
{
	struct made *m;

	if (depth > MAX_CHAIN)
		return type_basic(ts, TYPE_B_VOID);
	m = find_made(p, die);
	if (!m->type)
		m->type = make_of(p, ts, m, depth);
	return m->type;
}

struct adding {
	struct program_types *p;
	struct types *ts;
	struct type *sou;
};

static void add_member(void *ctx, const struct debug_member *m)
{
	struct adding *a = ctx;
	uint64_t at = (uint64_t)m->off * 8 + m->bit;

	if (!m->why && m->off >= 0)
		type_put_member(a->ts, a->sou, m->name, make(a->p, a->ts, &m->type, 0), at, m->bits);
}

static void members(const struct type_source *s, struct types *ts, struct type *sou)
{
	struct program_types *p = (struct program_types *)(uintptr_t)s;
	struct adding a = { p, ts, sou };

	debug_each_member(&p->sous[sou->source_id]->die, add_member, &a);
}

const struct type *program_types_find(struct program_types *p, struct types *ts, enum type_kind kind, const char *name)
{
	static const char *const words[] = { [TYPE_STRUCT] = "struct ", [TYPE_UNION] = "union ", [TYPE_ENUM] = "enum ",
					     [TYPE_TYPEDEF] = "" };
	struct debug *d = p->obj ? obj_debug(p->obj) : NULL;
	Dwarf_Die die;

	if (!d || !debug_type(d, arena_printf(p->arena, "%s%s", words[kind], name), &die))
		return NULL;
	return make(p, ts, &die, 0);
}

struct program_types *program_types_new(struct arena *a, const char *path)
{
	struct program_types *p = arena_new_of(a, struct program_types);

	p->source.members = members;
	p->arena = a;
	if (obj_open(path, &p->obj, NULL))
		p->obj = NULL;
	return p;
}

void program_types_close(struct program_types *p)
{
	if (p)
		obj_close(p->obj);
}

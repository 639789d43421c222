/*
 * The kernel's C types for scripts, from its type information (BTF), each created when first used.
 *
 * a.out is the target's program.  A name without a module is looked up in the kernel first, then there.  Modules that
 * name the kernel: vmlinux, kernel, and (for scripts of Solaris) genunix and unix.
 */
#include "probe/probe.h"

#include <stdlib.h>
#include <string.h>

#include <bpf/btf.h>

#include "base/arena.h"
#include "probe/ktypes.h"
#include "probe/provider.h"
#include "probe/types.h"
#include "type/type.h"

struct import {
	struct type_source source;
	struct probe_set *set;
	struct arena *arena;
	const struct btf *btf;		/* NULL until needed */
	const struct type **made;	/* by BTF's number */
	uint32_t n;
	struct program_types *program;	/* NULL until needed */
};

enum { MAX_CHAIN = 64 };		/* nesting of pointers, arrays and qualifiers */

static const struct type *make(struct import *im, struct types *ts, uint32_t id, unsigned int depth);

static const char *name_of(const struct import *im, const struct btf_type *t)
{
	const char *name = btf__name_by_offset(im->btf, t->name_off);

	return name && *name ? name : NULL;
}

static const struct type *make_int(const struct import *im, struct types *ts, const struct btf_type *t)
{
	const char *name = name_of(im, t);
	bool sign = btf_int_encoding(t) & BTF_INT_SIGNED;

	if (btf_int_encoding(t) & BTF_INT_BOOL)
		return type_basic(ts, TYPE_B_BOOL);
	if (name && t->size == 8 && !strncmp(name, "long long", 9))
		return type_basic(ts, sign ? TYPE_B_LLONG : TYPE_B_ULLONG);
	if (name && t->size == 1 && !strcmp(name, "char"))
		return type_basic(ts, TYPE_B_CHAR);
	if (t->size > 8)	/* __int128: bytes */
		return type_array(ts, type_basic(ts, TYPE_B_UCHAR), t->size, true);
	return type_int(ts, t->size, sign);
}

static const struct type *make_enum(const struct import *im, struct types *ts, const struct btf_type *t)
{
	struct type *en = type_untabled(ts, TYPE_ENUM, name_of(im, t));

	for (uint32_t i = 0; i < btf_vlen(t); i++) {
		if (btf_is_enum64(t))
			type_put_enumerator(ts, en, btf__name_by_offset(im->btf, btf_enum64(t)[i].name_off),
					    (int64_t)btf_enum64_value(&btf_enum64(t)[i]));
		else
			type_put_enumerator(ts, en, btf__name_by_offset(im->btf, btf_enum(t)[i].name_off),
					    btf_enum(t)[i].val);
	}
	en->size = en->align = t->size;
	en->complete = t->size == 1 || t->size == 2 || t->size == 4 || t->size == 8;
	return en;
}

static const struct type *make_func(struct import *im, struct types *ts, const struct btf_type *t, unsigned int depth)
{
	const struct btf_param *p = btf_params(t);
	const struct type *params[16];
	uint32_t n = btf_vlen(t) < 16 ? btf_vlen(t) : 16, i;
	bool varargs = btf_vlen(t) > 16;

	for (i = 0; i < n && p[i].type; i++)
		params[i] = make(im, ts, p[i].type, depth + 1);
	return type_func(ts, make(im, ts, t->type, depth + 1), params, i, varargs || i < n);
}

/* Members are created later: one structure refers to most of the kernel's. */
static const struct type *make_sou(struct import *im, struct types *ts, const struct btf_type *t, uint32_t id)
{
	struct type *sou = type_untabled(ts, btf_is_union(t) ? TYPE_UNION : TYPE_STRUCT, name_of(im, t));

	sou->size = t->size;
	sou->align = t->size % 8 == 0 ? 8 : t->size % 4 == 0 ? 4 : t->size % 2 == 0 ? 2 : 1;
	sou->complete = true;
	sou->source = &im->source;
	sou->source_id = id;
	return sou;
}

static const struct type *make(struct import *im, struct types *ts, uint32_t id, unsigned int depth)
{
	const struct type *to, *made = NULL;
	const struct btf_type *t = id && id < im->n ? btf__type_by_id(im->btf, id) : NULL;
	const char *name;

	if (!t || depth > MAX_CHAIN)
		return type_basic(ts, TYPE_B_VOID);
	if (im->made[id])
		return im->made[id];
	name = name_of(im, t);
	switch (btf_kind(t)) {
	case BTF_KIND_INT:
		made = make_int(im, ts, t);
		break;
	case BTF_KIND_FLOAT:
		made = type_basic(ts, t->size == 4 ? TYPE_B_FLOAT : TYPE_B_DOUBLE);
		break;
	case BTF_KIND_PTR:
		made = type_ptr(ts, make(im, ts, t->type, depth + 1));
		break;
	case BTF_KIND_ARRAY:
		to = make(im, ts, btf_array(t)->type, depth + 1);
		made = type_array(ts, to, btf_array(t)->nelems, btf_array(t)->nelems != 0);
		break;
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		made = make_sou(im, ts, t, id);
		break;
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
		made = make_enum(im, ts, t);
		break;
	case BTF_KIND_FWD:
		made = type_untabled(ts, btf_kflag(t) ? TYPE_UNION : TYPE_STRUCT, name);
		break;
	case BTF_KIND_TYPEDEF:
		made = type_alias(ts, name ? name : "?", make(im, ts, t->type, depth + 1));
		break;
	case BTF_KIND_CONST:
		made = type_qualify(ts, make(im, ts, t->type, depth + 1), TYPE_CONST);
		break;
	case BTF_KIND_VOLATILE:
		made = type_qualify(ts, make(im, ts, t->type, depth + 1), TYPE_VOLATILE);
		break;
	case BTF_KIND_RESTRICT:
		made = type_qualify(ts, make(im, ts, t->type, depth + 1), TYPE_RESTRICT);
		break;
	case BTF_KIND_TYPE_TAG:
		made = make(im, ts, t->type, depth + 1);
		break;
	case BTF_KIND_FUNC_PROTO:
		made = make_func(im, ts, t, depth);
		break;
	default:
		made = type_basic(ts, TYPE_B_VOID);
	}
	return im->made[id] = made;
}

static bool open_btf(struct import *im)
{
	struct ktypes *k;

	if (im->btf)
		return true;
	k = set_ktypes(im->set);
	if (!k)
		return false;
	im->btf = ktypes_btf(k);
	im->n = btf__type_cnt(im->btf);
	im->made = arena_alloc(im->arena, im->n * sizeof(*im->made));
	return true;
}

static bool is_kernel(const char *module)
{
	return !module || !*module || !strcmp(module, "vmlinux") || !strcmp(module, "kernel") ||
	       !strcmp(module, "genunix") || !strcmp(module, "unix");
}

static const struct type *find_in_program(struct import *im, struct types *ts, enum type_kind kind, const char *name)
{
	uint32_t pid = set_program(im->set);

	if (!pid)
		return NULL;
	if (!im->program) {
		im->program = program_types_new(im->arena, arena_printf(im->arena, "/proc/%u/exe", (unsigned int)pid));
		set_keep(im->set, im->program);
	}
	return program_types_find(im->program, ts, kind, name);
}

static const struct type *find(const struct type_source *s, struct types *ts, const char *module, enum type_kind kind,
			       const char *name)
{
	struct import *im = (struct import *)(uintptr_t)s;
	static const uint32_t kinds[] = { [TYPE_STRUCT] = BTF_KIND_STRUCT, [TYPE_UNION] = BTF_KIND_UNION,
					  [TYPE_ENUM] = BTF_KIND_ENUM, [TYPE_TYPEDEF] = BTF_KIND_TYPEDEF };
	int id;

	if (module && !strcmp(module, "a.out"))
		return find_in_program(im, ts, kind, name);
	if (!is_kernel(module) || !open_btf(im))
		return module && *module ? NULL : find_in_program(im, ts, kind, name);
	id = btf__find_by_name_kind(im->btf, name, kinds[kind]);
	if (id <= 0 && kind == TYPE_ENUM)
		id = btf__find_by_name_kind(im->btf, name, BTF_KIND_ENUM64);
	if (id > 0)
		return make(im, ts, (uint32_t)id, 0);
	return module && *module ? NULL : find_in_program(im, ts, kind, name);
}

static void members(const struct type_source *s, struct types *ts, struct type *sou)
{
	struct import *im = (struct import *)(uintptr_t)s;
	const struct btf_type *t = btf__type_by_id(im->btf, sou->source_id);

	for (uint32_t i = 0; i < btf_vlen(t); i++) {
		const struct btf_member *m = &btf_members(t)[i];
		const char *name = btf__name_by_offset(im->btf, m->name_off);

		type_put_member(ts, sou, name && *name ? name : NULL, make(im, ts, m->type, 0), btf_member_bit_offset(t, i),
				btf_member_bitfield_size(t, i));
	}
}

const struct type_source *probe_types(struct probe_set *set, struct arena *a)
{
	struct import *im = arena_new_of(a, struct import);

	im->source = (struct type_source){ find, members };
	im->set = set;
	im->arena = a;
	return &im->source;
}

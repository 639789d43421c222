/*
 * The set of types: tables of names, the basic types, derived types, questions about them.
 *
 * Layout follows the System V ABI of x86-64, which aarch64 shares.  Text is made in print.c.
 */
#include "type/type.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/arena.h"

/* A table from names to something; entries stay. */
struct entry {
	struct entry *next;
	const char *name;
	void *what;
};

struct table {
	struct entry **buckets;
	size_t n, nbuckets;	/* a power of two, or 0 */
};

struct types {
	struct arena *arena;
	struct table typedefs, structs, unions, enums, enumerators;
	struct table imports;		/* by "module`kind name": what the source has said, NULL included */
	const struct type_source *source;
	struct type basic[TYPE_B_MAX];
};

static const struct {
	enum type_kind kind;
	const char *name;
	uint8_t size;
	bool sign;
	enum type_rank rank;
} basics[TYPE_B_MAX] = {
	[TYPE_B_VOID]	 = { TYPE_VOID, "void", 0, false, 0 },
	[TYPE_B_BOOL]	 = { TYPE_INT, "_Bool", 1, false, RANK_BOOL },
	[TYPE_B_CHAR]	 = { TYPE_INT, "char", 1, true, RANK_CHAR },
	[TYPE_B_SCHAR]	 = { TYPE_INT, "signed char", 1, true, RANK_CHAR },
	[TYPE_B_UCHAR]	 = { TYPE_INT, "unsigned char", 1, false, RANK_CHAR },
	[TYPE_B_SHORT]	 = { TYPE_INT, "short", 2, true, RANK_SHORT },
	[TYPE_B_USHORT]	 = { TYPE_INT, "unsigned short", 2, false, RANK_SHORT },
	[TYPE_B_INT]	 = { TYPE_INT, "int", 4, true, RANK_INT },
	[TYPE_B_UINT]	 = { TYPE_INT, "unsigned int", 4, false, RANK_INT },
	[TYPE_B_LONG]	 = { TYPE_INT, "long", 8, true, RANK_LONG },
	[TYPE_B_ULONG]	 = { TYPE_INT, "unsigned long", 8, false, RANK_LONG },
	[TYPE_B_LLONG]	 = { TYPE_INT, "long long", 8, true, RANK_LLONG },
	[TYPE_B_ULLONG]	 = { TYPE_INT, "unsigned long long", 8, false, RANK_LLONG },
	[TYPE_B_FLOAT]	 = { TYPE_FLOAT, "float", 4, true, 0 },
	[TYPE_B_DOUBLE]	 = { TYPE_FLOAT, "double", 8, true, 0 },
	[TYPE_B_LDOUBLE] = { TYPE_FLOAT, "long double", 16, true, 0 },
	[TYPE_B_STRING]	 = { TYPE_STRING, "string", 0, false, 0 },
};

/* Names that D programs use without declaring them: DTrace's own and those of system headers. */
static const struct {
	const char *name;
	enum type_basic type;
} typedefs[] = {
	{ "int8_t", TYPE_B_SCHAR },	   { "uint8_t", TYPE_B_UCHAR },
	{ "int16_t", TYPE_B_SHORT },	   { "uint16_t", TYPE_B_USHORT },
	{ "int32_t", TYPE_B_INT },	   { "uint32_t", TYPE_B_UINT },
	{ "int64_t", TYPE_B_LONG },	   { "uint64_t", TYPE_B_ULONG },
	{ "pyobj", TYPE_B_ULONG },	   /* the address of an object of Python's */
	{ "intptr_t", TYPE_B_LONG },	   { "uintptr_t", TYPE_B_ULONG },
	{ "intmax_t", TYPE_B_LONG },	   { "uintmax_t", TYPE_B_ULONG },
	{ "size_t", TYPE_B_ULONG },	   { "ssize_t", TYPE_B_LONG },
	{ "ptrdiff_t", TYPE_B_LONG },	   { "off_t", TYPE_B_LONG },
	{ "uchar_t", TYPE_B_UCHAR },	   { "u_char", TYPE_B_UCHAR },
	{ "ushort_t", TYPE_B_USHORT },	   { "u_short", TYPE_B_USHORT },
	{ "uint_t", TYPE_B_UINT },	   { "u_int", TYPE_B_UINT },
	{ "ulong_t", TYPE_B_ULONG },	   { "u_long", TYPE_B_ULONG },
	{ "longlong_t", TYPE_B_LLONG },	   { "u_longlong_t", TYPE_B_ULLONG },
	{ "ushort", TYPE_B_USHORT },	   { "uint", TYPE_B_UINT },
	{ "ulong", TYPE_B_ULONG },	   { "bool", TYPE_B_BOOL },
	{ "__u8", TYPE_B_UCHAR },	   { "__s8", TYPE_B_SCHAR },
	{ "__u16", TYPE_B_USHORT },	   { "__s16", TYPE_B_SHORT },
	{ "__u32", TYPE_B_UINT },	   { "__s32", TYPE_B_INT },
	{ "__u64", TYPE_B_ULLONG },	   { "__s64", TYPE_B_LLONG },
	{ "ipaddr_t", TYPE_B_UINT },
	{ "pid_t", TYPE_B_INT },	   { "id_t", TYPE_B_UINT },
	{ "uid_t", TYPE_B_UINT },	   { "gid_t", TYPE_B_UINT },
	{ "zoneid_t", TYPE_B_INT },	   { "taskid_t", TYPE_B_INT },
	{ "projid_t", TYPE_B_INT },	   { "poolid_t", TYPE_B_INT },
	{ "processorid_t", TYPE_B_INT },   { "psetid_t", TYPE_B_INT },
	{ "chipid_t", TYPE_B_INT },	   { "lgrp_id_t", TYPE_B_INT },
	{ "cpuid_t", TYPE_B_INT },	   { "dev_t", TYPE_B_ULONG },
	{ "ino_t", TYPE_B_ULONG },	   { "mode_t", TYPE_B_UINT },
	{ "nlink_t", TYPE_B_ULONG },	   { "time_t", TYPE_B_LONG },
	{ "clock_t", TYPE_B_LONG },	   { "hrtime_t", TYPE_B_LLONG },
	{ "offset_t", TYPE_B_LLONG },	   { "boolean_t", TYPE_B_INT },
	{ "wchar_t", TYPE_B_INT },	   { "Py_ssize_t", TYPE_B_LONG },
	{ "_Bool", TYPE_B_BOOL },
	/* The values of stack() and similar actions: numbers for addresses. */
	{ "_stack", TYPE_B_ULONG },	   { "_addr", TYPE_B_ULONG },
	{ "_sym", TYPE_B_ULONG },	   { "_mod", TYPE_B_ULONG },
};

/* --- names ------------------------------------------------------------------------------------------- */

static size_t hash(const char *s)
{
	uint64_t h = 0xcbf29ce484222325;	/* FNV-1a */

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3;
	return (size_t)(h ^ (h >> 32));
}

static struct entry *find(const struct table *t, const char *name)
{
	struct entry *e;

	if (!t->nbuckets)
		return NULL;
	for (e = t->buckets[hash(name) & (t->nbuckets - 1)]; e; e = e->next)
		if (!strcmp(e->name, name))
			return e;
	return NULL;
}

static void grow(struct arena *a, struct table *t)
{
	size_t i, h, n = t->nbuckets ? t->nbuckets * 2 : 64;
	struct entry **buckets = arena_alloc(a, n * sizeof(*buckets));
	struct entry *e, *next;

	for (i = 0; i < t->nbuckets; i++) {
		for (e = t->buckets[i]; e; e = next) {
			next = e->next;
			h = hash(e->name) & (n - 1);
			e->next = buckets[h];
			buckets[h] = e;
		}
	}
	t->buckets = buckets;
	t->nbuckets = n;
}

static void add(struct arena *a, struct table *t, const char *name, void *what)
{
	struct entry *e = arena_new_of(a, struct entry);
	size_t h;

	if (t->n >= t->nbuckets)
		grow(a, t);
	h = hash(name) & (t->nbuckets - 1);
	e->name = name;
	e->what = what;
	e->next = t->buckets[h];
	t->buckets[h] = e;
	t->n++;
}

struct types *types_new(struct arena *a)
{
	struct types *ts = arena_new_of(a, struct types);
	size_t i;

	ts->arena = a;
	for (i = 0; i < TYPE_B_MAX; i++) {
		struct type *t = &ts->basic[i];

		t->kind = basics[i].kind;
		t->name = basics[i].name;
		t->size = basics[i].size;
		t->align = basics[i].size ? basics[i].size : 1;
		t->complete = t->kind != TYPE_VOID;
		t->integer.sign = basics[i].sign;
		t->integer.rank = basics[i].rank;
	}
	for (i = 0; i < sizeof(typedefs) / sizeof(typedefs[0]); i++)
		type_typedef(ts, typedefs[i].name, &ts->basic[typedefs[i].type]);
	type_typedef(ts, "caddr_t", type_ptr(ts, &ts->basic[TYPE_B_CHAR]));
	return ts;
}

const struct type *type_basic(const struct types *ts, enum type_basic b)
{
	return &ts->basic[b];
}

const struct type *type_int(const struct types *ts, unsigned int bytes, bool sign)
{
	switch (bytes) {
	case 1:
		return &ts->basic[sign ? TYPE_B_CHAR : TYPE_B_UCHAR];
	case 2:
		return &ts->basic[sign ? TYPE_B_SHORT : TYPE_B_USHORT];
	case 4:
		return &ts->basic[sign ? TYPE_B_INT : TYPE_B_UINT];
	default:
		return &ts->basic[sign ? TYPE_B_LONG : TYPE_B_ULONG];
	}
}

const struct type *type_find_typedef(const struct types *ts, const char *name)
{
	const struct entry *e = find(&ts->typedefs, name);

	return e ? e->what : NULL;
}

/* The tags of each kind have a space of their own, as in DTrace's CTF. */
static const struct table *tags(const struct types *ts, enum type_kind kind)
{
	return kind == TYPE_STRUCT ? &ts->structs : kind == TYPE_UNION ? &ts->unions : &ts->enums;
}

struct type *type_find_tag(const struct types *ts, enum type_kind kind, const char *tag)
{
	const struct entry *e = find(tags(ts, kind), tag);

	return e ? e->what : NULL;
}

const struct type_enumerator *type_find_enumerator(const struct types *ts, const char *name)
{
	const struct entry *e = find(&ts->enumerators, name);

	return e ? e->what : NULL;
}

/* --- sources ----------------------------------------------------------------------------------------- */

void types_set_source(struct types *ts, const struct type_source *s)
{
	ts->source = s;
}

const struct type *type_import(struct types *ts, const char *module, enum type_kind kind, const char *name)
{
	const struct type *t;
	struct entry *e;
	char *key;

	if (!ts->source)
		return NULL;
	key = arena_printf(ts->arena, "%s`%d %s", module ? module : "", (int)kind, name);
	e = find(&ts->imports, key);
	if (e)
		return e->what;
	t = ts->source->find(ts->source, ts, module, kind, name);
	add(ts->arena, &ts->imports, key, (void *)(uintptr_t)t);
	return t;
}

const struct type *type_load(const struct type *t)
{
	/* Which members it has does not depend on when they are asked for, so the type stays the same. */
	struct type *own = (struct type *)(uintptr_t)t;
	const struct type_source *s = t->source;

	if (!s)
		return t;
	own->source = NULL;
	s->members(s, own->types, own);
	return t;
}

struct type *type_untabled(struct types *ts, enum type_kind kind, const char *tag)
{
	struct type *t = arena_new_of(ts->arena, struct type);

	t->kind = kind;
	t->align = 1;
	t->types = ts;
	t->name = tag ? arena_strdup(ts->arena, tag) : NULL;
	return t;
}

void type_put_member(struct types *ts, struct type *sou, const char *name, const struct type *t, uint64_t bit_off,
		     unsigned int bits)
{
	struct type_member *m;

	sou->members = arena_grow(ts->arena, sou->members, &sou->members_cap, sou->nmembers, sizeof(*m));
	m = &sou->members[sou->nmembers++];
	m->name = name ? arena_strdup(ts->arena, name) : NULL;
	m->type = t;
	m->bit_off = bit_off;
	m->bits = bits;
}

void type_put_enumerator(struct types *ts, struct type *en, const char *name, int64_t value)
{
	struct type_enumerator *e = arena_new_of(ts->arena, struct type_enumerator);

	e->name = arena_strdup(ts->arena, name);
	e->value = value;
	e->type = en;
	en->values = arena_grow(ts->arena, en->values, &en->values_cap, en->nvalues, sizeof(*en->values));
	en->values[en->nvalues++] = e;
}

/* --- asking ------------------------------------------------------------------------------------------ */

const struct type *type_strip(const struct type *t)
{
	while (t->kind == TYPE_TYPEDEF || t->kind == TYPE_QUAL)
		t = t->to;
	return t;
}

/* The qualifiers at the top of @t, those behind typedefs included: enum type_quals. */
static unsigned int type_quals(const struct type *t)
{
	unsigned int quals = 0;

	for (; t->kind == TYPE_TYPEDEF || t->kind == TYPE_QUAL; t = t->to)
		if (t->kind == TYPE_QUAL)
			quals |= t->quals;
	return quals;
}

uint64_t type_size(const struct type *t)
{
	t = type_strip(t);
	return t->complete ? t->size : 0;
}

uint64_t type_stride(const struct type *t)
{
	return type_is_string(t) ? 256 : type_size(t);
}

uint32_t type_align(const struct type *t)
{
	t = type_strip(t);
	return t->align ? t->align : 1;
}

bool type_is_complete(const struct type *t)
{
	return type_strip(t)->complete;
}

bool type_is_user(const struct type *t)
{
	t = type_strip(t);
	return t->kind == TYPE_PTR && (type_quals(t->to) & TYPE_USER);
}

bool type_is_void(const struct type *t)
{
	return type_strip(t)->kind == TYPE_VOID;
}

bool type_is_float(const struct type *t)
{
	return type_strip(t)->kind == TYPE_FLOAT;
}

bool type_is_integer(const struct type *t)
{
	enum type_kind kind = type_strip(t)->kind;

	return kind == TYPE_INT || kind == TYPE_ENUM;
}

bool type_is_signed(const struct type *t)
{
	t = type_strip(t);
	return t->kind == TYPE_ENUM || (t->kind == TYPE_INT && t->integer.sign);
}

bool type_is_scalar(const struct type *t)
{
	return type_is_integer(t) || type_is_ptr(t);
}

bool type_is_ptr(const struct type *t)
{
	return type_strip(t)->kind == TYPE_PTR;
}

bool type_is_array(const struct type *t)
{
	return type_strip(t)->kind == TYPE_ARRAY;
}

bool type_is_sou(const struct type *t)
{
	enum type_kind kind = type_strip(t)->kind;

	return kind == TYPE_STRUCT || kind == TYPE_UNION;
}

bool type_is_string(const struct type *t)
{
	return type_strip(t)->kind == TYPE_STRING;
}

bool type_has_string(const struct type *t)
{
	t = type_strip(t);
	if (t->kind == TYPE_STRING)
		return true;
	if (t->kind == TYPE_ARRAY)
		return type_has_string(t->to);
	if (t->kind != TYPE_STRUCT && t->kind != TYPE_UNION)
		return false;
	type_load(t);
	for (size_t i = 0; i < t->nmembers; i++)
		if (type_has_string(t->members[i].type))
			return true;
	return false;
}

static bool is_char(const struct type *t)
{
	t = type_strip(t);
	return t->kind == TYPE_INT && t->integer.rank == RANK_CHAR;
}

bool type_is_char_array(const struct type *t)
{
	t = type_strip(t);
	return t->kind == TYPE_ARRAY && is_char(t->to);
}

bool type_is_char_ptr(const struct type *t)
{
	t = type_strip(t);
	return t->kind == TYPE_PTR && is_char(t->to);
}

const struct type *type_target(const struct type *t)
{
	t = type_strip(t);
	return t->kind == TYPE_PTR || t->kind == TYPE_ARRAY || t->kind == TYPE_FUNC ? t->to : NULL;
}

bool type_same(const struct type *a, const struct type *b)
{
	size_t i;

	for (;;) {
		a = type_strip(a);
		b = type_strip(b);
		if (a == b)
			return true;
		if (a->kind != b->kind)
			return false;
		switch (a->kind) {
		case TYPE_PTR:
			break;
		case TYPE_ARRAY:
			if (a->complete != b->complete || a->count != b->count)
				return false;
			break;
		case TYPE_FUNC:
			if (a->nparams != b->nparams || a->varargs != b->varargs)
				return false;
			for (i = 0; i < a->nparams; i++)
				if (!type_same(a->params[i], b->params[i]))
					return false;
			break;
		default:	/* basic and tagged types are the same only when they are one */
			return false;
		}
		a = a->to;
		b = b->to;
	}
}

/* --- conversions ------------------------------------------------------------------------------------- */

const struct type *type_promote(const struct types *ts, const struct type *t, unsigned int bits)
{
	const struct type *s = type_strip(t);

	if (s->kind == TYPE_ENUM)
		return &ts->basic[TYPE_B_INT];
	if (s->kind != TYPE_INT)
		return s;
	if (bits && bits < 32)
		return &ts->basic[TYPE_B_INT];
	if (bits == 32 && s->integer.rank <= RANK_INT)
		return &ts->basic[s->integer.sign ? TYPE_B_INT : TYPE_B_UINT];
	return s->integer.rank < RANK_INT ? &ts->basic[TYPE_B_INT] : s;
}

const struct type *type_arith(const struct types *ts, const struct type *a, const struct type *b)
{
	const struct type *hi, *lo, *uns;

	a = type_promote(ts, a, 0);
	b = type_promote(ts, b, 0);
	assert(a->kind == TYPE_INT && b->kind == TYPE_INT);
	hi = a->integer.rank >= b->integer.rank ? a : b;
	lo = hi == a ? b : a;
	if (hi->integer.sign == lo->integer.sign || !hi->integer.sign)
		return hi;
	if (hi->integer.rank == lo->integer.rank)
		return lo;
	if (hi->size > lo->size)
		return hi;	/* holds all values of the unsigned one */
	uns = hi;		/* long long and unsigned long: the unsigned one of the higher rank */
	return uns->integer.rank == RANK_LLONG ? &ts->basic[TYPE_B_ULLONG] : &ts->basic[TYPE_B_ULONG];
}

static unsigned int width(const struct type *t)
{
	return 2 * (unsigned int)t->size + !t->integer.sign;
}

const struct type *type_wider(const struct types *ts, const struct type *a, const struct type *b)
{
	a = type_strip(a);
	b = type_strip(b);
	if (a->kind != TYPE_INT)
		a = type_promote(ts, a, 0);
	if (b->kind != TYPE_INT)
		b = type_promote(ts, b, 0);
	if (width(a) != width(b))
		return width(a) > width(b) ? a : b;
	return a->integer.rank >= b->integer.rank ? a : b;
}

/* --- building ---------------------------------------------------------------------------------------- */

static struct type *derive(struct types *ts, enum type_kind kind, const struct type *to)
{
	struct type *t = arena_new_of(ts->arena, struct type);

	t->kind = kind;
	t->to = to;
	t->depth = to->depth + (kind != TYPE_TYPEDEF);
	t->align = 1;
	return t;
}

const struct type *type_ptr(struct types *ts, const struct type *to)
{
	struct type *t = derive(ts, TYPE_PTR, to);

	t->size = 8;
	t->align = 8;
	t->complete = true;
	return t;
}

const struct type *type_array(struct types *ts, const struct type *of, uint64_t count, bool counted)
{
	struct type *t = derive(ts, TYPE_ARRAY, of);

	t->count = count;
	t->complete = counted;
	t->align = type_align(of);
	if (__builtin_mul_overflow(count, type_stride(of), &t->size))
		t->size = UINT64_MAX;
	return t;
}

const struct type *type_qualify(struct types *ts, const struct type *t, unsigned int quals)
{
	struct type *q;

	if (!(quals & ~type_quals(t)))
		return t;
	q = derive(ts, TYPE_QUAL, t);
	q->quals = quals;
	return q;
}

const struct type *type_func(struct types *ts, const struct type *ret, const struct type *const *params,
			     size_t nparams, bool varargs)
{
	struct type *t = derive(ts, TYPE_FUNC, ret);
	size_t i;

	t->params = arena_alloc(ts->arena, (nparams ? nparams : 1) * sizeof(*t->params));
	t->nparams = nparams;
	t->varargs = varargs;
	for (i = 0; i < nparams; i++) {
		t->params[i] = params[i];
		if (params[i]->depth >= t->depth)
			t->depth = params[i]->depth + 1;
	}
	return t;
}

const struct type *type_typedef(struct types *ts, const char *name, const struct type *to)
{
	const struct type *old = type_find_typedef(ts, name);
	struct type *t;

	if (old)
		return type_same(old, to) ? old : NULL;
	t = derive(ts, TYPE_TYPEDEF, to);
	t->name = arena_strdup(ts->arena, name);
	add(ts->arena, &ts->typedefs, t->name, t);
	return t;
}

struct type *type_alias(struct types *ts, const char *name, const struct type *to)
{
	struct type *t = derive(ts, TYPE_TYPEDEF, to);

	t->name = arena_strdup(ts->arena, name);
	return t;
}

struct type *type_new_tagged(struct types *ts, enum type_kind kind, const char *tag)
{
	struct type *t = type_untabled(ts, kind, NULL);

	if (kind == TYPE_ENUM)
		t->size = t->align = 4;
	if (tag) {
		t->name = arena_strdup(ts->arena, tag);
		add(ts->arena, (struct table *)(uintptr_t)tags(ts, t->kind), t->name, t);
	}
	return t;
}

int type_add_enumerator(struct types *ts, struct type *en, const char *name, int64_t value)
{
	struct type_enumerator *e;

	if (find(&ts->enumerators, name))
		return -EEXIST;
	e = arena_new_of(ts->arena, struct type_enumerator);
	e->name = arena_strdup(ts->arena, name);
	e->value = value;
	e->type = en;
	en->values = arena_grow(ts->arena, en->values, &en->values_cap, en->nvalues, sizeof(*en->values));
	en->values[en->nvalues++] = e;
	add(ts->arena, &ts->enumerators, e->name, e);
	return 0;
}

int type_add_member(struct types *ts, struct type *sou, const char *name, const struct type *t, unsigned int bits)
{
	const uint64_t max = (uint64_t)1 << 40;
	uint64_t size = type_stride(t), unit = size * 8, at = sou->kind == TYPE_UNION ? 0 : sou->bits, end, dummy;
	struct type_member *m;
	uint32_t align = type_align(t);

	if (!type_is_complete(t) && !type_is_array(t))	/* an array without a count may end a struct */
		return -EINVAL;
	if (name && type_find_member(sou, name, &dummy))
		return -EEXIST;
	if (size > max)
		return -E2BIG;
	if (bits) {	/* System V ABI: a bit-field does not straddle units of its declared type */
		if (!type_is_integer(t) || bits > unit)
			return -ERANGE;
		if (at / unit != (at + bits - 1) / unit)
			at = (at / unit + 1) * unit;
		end = at + bits;
	} else {
		at = (at + align * 8 - 1) / (align * 8) * (align * 8);
		end = at + unit;
	}
	if (end > max * 8)
		return -E2BIG;
	if (end > sou->bits)
		sou->bits = end;
	if (bits && !name)
		return 0;	/* padding: neither member nor alignment */
	if (align > sou->align)
		sou->align = align;
	sou->members = arena_grow(ts->arena, sou->members, &sou->members_cap, sou->nmembers, sizeof(*m));
	m = &sou->members[sou->nmembers++];
	m->name = name ? arena_strdup(ts->arena, name) : NULL;
	m->type = t;
	m->bit_off = at;
	m->bits = bits;
	return 0;
}

void type_break_bits(struct type *sou, const struct type *t)
{
	uint64_t unit = type_size(t) * 8;

	if (unit && sou->kind == TYPE_STRUCT)
		sou->bits = (sou->bits + unit - 1) / unit * unit;
}

void type_finish(struct type *t)
{
	if (t->kind != TYPE_ENUM) {
		t->size = (t->bits + 7) / 8;
		t->size = (t->size + t->align - 1) / t->align * t->align;
	}
	t->open = false;
	t->complete = true;
}

const struct type_member *type_find_member(const struct type *t, const char *name, uint64_t *bit_off)
{
	const struct type_member *m;
	size_t i;

	t = type_strip(t);
	if (t->kind != TYPE_STRUCT && t->kind != TYPE_UNION)
		return NULL;
	type_load(t);
	for (i = 0; i < t->nmembers; i++) {
		if (t->members[i].name) {
			if (strcmp(t->members[i].name, name) != 0)
				continue;
			*bit_off = t->members[i].bit_off;
			return &t->members[i];
		}
		m = type_find_member(t->members[i].type, name, bit_off);
		if (m) {
			*bit_off += t->members[i].bit_off;
			return m;
		}
	}
	return NULL;
}

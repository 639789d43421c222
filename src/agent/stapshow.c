/* SPDX-License-Identifier: MIT */
/* Probe context: nothing is allocated, all loops are bounded. */
#include "agent/stapshow.h"

#include "agent/attribute.h"
#include "agent/show.h"
#include "agent/variable.h"
#include "vm/memory.h"

enum { DEPTH = 10, NODES = 4000 };

struct text {
	struct shm_run *run;
	char *dst;
	uint32_t used, size;
	bool full;
	unsigned nodes, depth;
};

static int put_object(struct text *t, uint64_t addr);

/* What does not fit is cut between two characters, and nothing follows it. */
static void put(struct text *t, const char *bytes, uint32_t n)
{
	uint32_t room = t->full ? 0 : t->size - 1 - t->used;

	if (n > room) {
		for (n = room; n && (bytes[n] & 0xc0) == 0x80; n--)
			;
		t->full = true;
	}
	memcpy(t->dst + t->used, bytes, n);
	t->used += n;
}

#define PUT(t, text) put(t, text, sizeof(text) - 1)

/* In the format %#x: 0 has no prefix. */
static void put_hex(struct text *t, uint64_t v)
{
	char digits[18];
	unsigned n = sizeof(digits);
	uint64_t rest = v;

	do
		digits[--n] = "0123456789abcdef"[rest & 15];
	while (rest >>= 4);
	if (v) {
		digits[--n] = 'x';
		digits[--n] = '0';
	}
	put(t, digits + n, sizeof(digits) - n);
}

static int put_str(struct text *t, const struct object *o)
{
	struct object_text s;
	int err = object_text(o, &s);
	int64_t n = err ? -err : object_put_text(t->run, &s, t->dst + t->used, t->size - t->used);

	if (n < 1)
		return n ? (int)-n : ABI_FAULT_BADADDR;
	t->used += (uint32_t)n - 1;
	return 0;
}

static int put_quoted(struct text *t, const struct object *o)
{
	int err;

	PUT(t, "\"");
	err = put_str(t, o);
	PUT(t, "\"");
	return err;
}

static int put_int(struct text *t, const struct object *o)
{
	int64_t value = 0;
	int err = object_int(o, &value);

	if (!err)
		put_hex(t, (uint64_t)value);
	return err;
}

static int put_items(struct text *t, const struct object *o, char open, char close)
{
	uint64_t items = 0, n = object_size(o), item;
	bool is_list = o->flags & TYPE_LIST;
	int err = is_list ? attribute_list(o, &items, &n) : 0;

	put(t, &open, 1);
	for (uint64_t k = 0; !err && k < n && !t->full; k++) {
		if (k)
			PUT(t, " ");
		if (!is_list)
			item = object_item(o, k);
		else if (memory_read(t->run, &item, sizeof(item), items + 8 * k))
			return ABI_FAULT_BADADDR;
		err = put_object(t, item);
	}
	put(t, &close, 1);
	return err;
}

static int put_dict(struct text *t, const struct object *o)
{
	struct attribute_table table;
	uint64_t key, value;
	bool first = true;
	int err = attribute_dict(o, &table);

	PUT(t, "{");
	for (uint64_t k = 0; !err && k < attribute_count(&table) && !t->full && t->nodes < NODES; k++) {
		t->nodes++;
		err = attribute_entry(&table, k, &key, &value);
		if (err == ABI_FAULT_VALUE_NONE) {
			err = 0;
			continue;
		}
		if (!err && !first)
			PUT(t, " ");
		first = false;
		if (!err)
			err = put_object(t, key);
		PUT(t, ":");
		if (!err)
			err = put_object(t, value);
	}
	PUT(t, "}");
	return err;
}

/* With the type's name as stored. */
static int put_other(struct text *t, const struct object *o)
{
	char name[OBJECT_NAME + 1];
	uint64_t at;

	if (!object_at->type_name)
		return ABI_FAULT_VALUE_UNKNOWN;
	if (memory_read(t->run, &at, sizeof(at), o->type + object_at->type_name) ||
	    memory_read_string(t->run, name, sizeof(name), at) < 1)
		return ABI_FAULT_BADADDR;
	PUT(t, "<");
	put(t, name, (uint32_t)strlen(name));
	PUT(t, " object at ");
	put_hex(t, o->addr);
	PUT(t, ">");
	return 0;
}

static int put_kind(struct text *t, const struct object *o)
{
	if (o->flags & TYPE_STR)
		return put_quoted(t, o);
	if (o->flags & TYPE_INT)
		return put_int(t, o);
	if (o->flags & TYPE_TUPLE)
		return put_items(t, o, '(', ')');
	if (o->flags & TYPE_LIST)
		return put_items(t, o, '[', ']');
	if (o->flags & TYPE_DICT)
		return put_dict(t, o);
	return put_other(t, o);
}

static int put_object(struct text *t, uint64_t addr)
{
	struct object o;
	int err;

	if (!addr) {
		PUT(t, "<NULL>");
		return 0;
	}
	if (t->depth == DEPTH || t->nodes++ >= NODES) {
		PUT(t, "...");
		return 0;
	}
	err = object_open(t->run, addr, &o);
	t->depth++;
	if (!err)
		err = put_kind(t, &o);
	t->depth--;
	return err;
}

static int64_t finish(struct text *t, int err)
{
	t->dst[t->used] = '\0';
	return err ? -(int64_t)err : (int64_t)t->used + 1;
}

int64_t stapshow_object(struct shm_run *r, uint64_t addr, char *dst, uint32_t size)
{
	struct text t = { .run = r, .dst = dst, .size = size };

	return finish(&t, put_object(&t, addr));
}

struct variables {
	struct text *text;
	bool as_repr;			/* values in the form of repr() */
};

static int put_repr(struct text *t, uint64_t addr)
{
	int64_t n;

	if (!addr)
		return put_object(t, 0);
	n = show_object(t->run, addr, t->dst + t->used, t->size - t->used);
	if (n > 0)
		t->used += (uint32_t)n - 1;
	return n < 0 ? (int)-n : 0;
}

static int put_variable(void *ctx, uint64_t name, uint64_t value)
{
	const struct variables *v = ctx;
	struct text *t = v->text;
	struct object o;
	int err;

	if (t->used)
		PUT(t, " ");
	object_open_alive(t->run, name, &o);
	err = put_str(t, &o);
	PUT(t, "=");
	if (err || t->full)
		return err;
	return v->as_repr ? put_repr(t, value) : put_object(t, value);
}

int64_t stapshow_variables(struct shm_run *r, uint64_t which, char *dst, uint32_t size)
{
	struct text t = { .run = r, .dst = dst, .size = size };
	struct variables v = { &t, which & ABI_VARIABLES_REPR };

	return finish(&t, variable_each(r, (unsigned)which, put_variable, &v));
}

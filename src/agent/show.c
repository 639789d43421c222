/* SPDX-License-Identifier: MIT */
/*
 *	int, float, bool, None, str, bytes, list, tuple, dict, set, frozenset, their subclasses, classes, functions,
 *	named tuples, enums and exceptions: as by repr()
 *	dataclasses: Name(field=value, ...), like their generated __repr__
 *	other instances of the program's classes: Name(attribute=value, ...), slots last
 *	anything else: <type object at 0x...>
 *
 * An object inside itself is [...], (...), {...} or Name(...).
 */
#include "agent/show.h"

#include "agent/agent.h"
#include "agent/attribute.h"
#include "agent/ccall.h"
#include "agent/digits.h"
#include "agent/opened.h"
#include "agent/variable.h"
#include "vm/memory.h"

enum { CALL_ARGS = 16 };
enum { DEPTH = 10, NODES = 4000, CHARS = 64, QUOTE_SCAN = 1 << 16 };
enum { SET_USED = 8, SET_MASK = 16, SET_TABLE = 24, SET_CHUNK = 8 };	/* from object_body() on; of entries */

struct show {
	struct shm_run *run;
	char *dst;
	uint32_t used, size;
	bool full;			/* the text ends here, with "..." */
	unsigned nodes;			/* number of objects and parts of tables read */
	uint64_t open[DEPTH];		/* the objects that contain the current one */
	unsigned depth;
};

static int show(struct show *w, uint64_t addr);

/* --- text --------------------------------------------------------------------------------------------- */

/* Writes all of @text or nothing, so that no character is cut. */
static void put(struct show *w, const char *text, uint32_t n)
{
	if (w->full || n > w->size - 1 - w->used) {
		w->full = true;
		return;
	}
	memcpy(w->dst + w->used, text, n);
	w->used += n;
}

#define PUT(w, text) put(w, text, sizeof(text) - 1)

static void put_hex(struct show *w, uint64_t v, unsigned digits)
{
	char text[16];

	for (unsigned k = digits; k--; v >>= 4)
		text[k] = "0123456789abcdef"[v & 15];
	put(w, text, digits);
}

static void put_address(struct show *w, uint64_t addr)
{
	unsigned digits = 1;

	while (digits < 16 && addr >> 4 * digits)
		digits++;
	PUT(w, "0x");
	put_hex(w, addr, digits);
}

/* End the text; if it is incomplete, with three dots in place of its last bytes. */
static uint32_t finish(struct show *w)
{
	if (w->full && w->size > 3) {
		while (w->used > w->size - 4 || (w->used && (w->dst[w->used] & 0xc0) == 0x80 && w->used < w->size - 1))
			w->used--;
		memcpy(w->dst + w->used, "...", 3);
		w->used += 3;
	}
	w->dst[w->used] = '\0';
	return w->used + 1;
}

/* Write the escape of @c that str and bytes literals have in common; false: there is none. */
static bool put_escape(struct show *w, uint32_t c, char quote)
{
	char two[2] = { '\\', c == '\n' ? 'n' : c == '\t' ? 't' : c == '\r' ? 'r' : (char)c };

	if (c == '\\' || c == (uint8_t)quote || c == '\n' || c == '\t' || c == '\r') {
		put(w, two, 2);
		return true;
	}
	if (c >= ' ' && c != 0x7f)
		return false;
	PUT(w, "\\x");
	put_hex(w, c, 2);
	return true;
}

static void put_char(struct show *w, uint32_t c, char quote)
{
	char utf8[4];

	if (put_escape(w, c, quote))
		return;
	if (c < 0x7f || (agent.py._PyUnicode_IsPrintable && agent.py._PyUnicode_IsPrintable(c))) {
		put(w, utf8, object_put_utf8(utf8, sizeof(utf8), c));
		return;
	}
	put(w, c < 0x100 ? "\\x" : c < 0x10000 ? "\\u" : "\\U", 2);
	put_hex(w, c, c < 0x100 ? 2 : c < 0x10000 ? 4 : 8);
}

static uint32_t char_of(const uint8_t *chars, uint64_t n, unsigned width)
{
	uint32_t c = 0;

	memcpy(&c, chars + n * width, width);
	return c;
}

/* The quote for a literal: " if it contains ' and no ". */
static int find_quote(struct show *w, const struct object_text *t, char *ret)
{
	uint8_t part[4 * CHARS];
	bool one = false, two = false;

	for (uint64_t done = 0; done < t->length && done < QUOTE_SCAN; done += CHARS) {
		uint64_t n = t->length - done < CHARS ? t->length - done : CHARS;

		if (!object_chars(w->run, t, done, n, part))
			return ABI_FAULT_BADADDR;
		for (uint64_t k = 0; k < n; k++) {
			one |= char_of(part, k, t->width) == '\'';
			two |= char_of(part, k, t->width) == '"';
		}
	}
	*ret = one && !two ? '"' : '\'';
	return 0;
}

static int show_chars(struct show *w, const struct object_text *t, bool bytes)
{
	uint8_t part[4 * CHARS];
	char quote;
	int err = find_quote(w, t, &quote);

	if (err)
		return err;
	put(w, &quote, 1);
	for (uint64_t done = 0; done < t->length && !w->full; done += CHARS) {
		uint64_t n = t->length - done < CHARS ? t->length - done : CHARS;

		if (!object_chars(w->run, t, done, n, part))
			return ABI_FAULT_BADADDR;
		for (uint64_t k = 0; k < n && !w->full; k++) {
			uint32_t c = char_of(part, k, t->width);

			if (!bytes)
				put_char(w, c, quote);
			else if (c >= 0x80) {
				PUT(w, "\\x");
				put_hex(w, c, 2);
			} else if (!put_escape(w, c, quote))
				put(w, (const char[]){ (char)c }, 1);
		}
	}
	put(w, &quote, 1);
	return 0;
}

static int show_str(struct show *w, const struct object *o)
{
	struct object_text t;
	int err = object_text(o, &t);

	return err ? err : show_chars(w, &t, false);
}

static int show_bytes(struct show *w, const struct object *o)
{
	struct object_text t = { .data = o->addr + object_at->bytes_data, .length = object_size(o), .width = 1 };

	if (!object_at->bytes_data)
		return ABI_FAULT_VALUE_UNKNOWN;
	PUT(w, "b");
	return show_chars(w, &t, true);
}

/* A str without quotes: a name. */
static int show_name(struct show *w, uint64_t addr)
{
	char name[OBJECT_NAME + 1];
	struct object_text t;
	struct object o;
	int64_t n;

	if (object_open(w->run, addr, &o))
		return ABI_FAULT_BADADDR;
	if (object_text(&o, &t))
		return ABI_FAULT_VALUE_KIND;
	n = object_put_text(w->run, &t, name, sizeof(name));
	if (n < 1)
		return ABI_FAULT_BADADDR;
	put(w, name, (uint32_t)n - 1);
	return 0;
}

/* --- numbers ------------------------------------------------------------------------------------------ */

static int show_int(struct show *w, const struct object *o)
{
	static uint32_t digits[DIGITS_INT_MOST];
	uint64_t size = object_word(o, object_at->size), n;
	bool below = object_at->int_tagged ? (size & 3) == 2 : (int64_t)size < 0;
	const char *text;
	uint32_t length;

	n = object_at->int_tagged ? size >> 3 : below ? -size : size;
	if (object_at->int_tagged && (size & 3) == 1)
		n = 0;
	if (n > DIGITS_INT_MOST) {
		w->full = true;
		return 0;
	}
	if (n && !object_read(o, digits, (uint32_t)(n * sizeof(*digits)), object_at->int_digits))
		return ABI_FAULT_BADADDR;
	length = digits_int(digits, (uint32_t)n, below, &text);
	if (length > w->size - 1 - w->used) {		/* only its first digits */
		length = w->size - 1 - w->used;
		put(w, text, length);
		w->full = true;
	}
	put(w, text, length);
	return 0;
}

static int show_float(struct show *w, const struct object *o)
{
	char text[DIGITS_FLOAT];
	double d;

	if (!object_at->float_value)
		return ABI_FAULT_VALUE_UNKNOWN;
	if (!object_read(o, &d, sizeof(d), object_at->float_value))
		return ABI_FAULT_BADADDR;
	put(w, text, digits_float(text, d));
	return 0;
}

/* --- types -------------------------------------------------------------------------------------------- */

/* @type's name, as by __name__ or, if @whole, as stored: with the module, for C types. */
static int show_type_name(struct show *w, uint64_t type, bool whole)
{
	char name[OBJECT_NAME + 1], *dot;
	uint64_t at;

	if (memory_read(w->run, &at, sizeof(at), type + object_at->type_name) ||
	    memory_read_string(w->run, name, sizeof(name), at) < 1)
		return ABI_FAULT_BADADDR;
	dot = whole ? NULL : strrchr(name, '.');
	dot = dot ? dot + 1 : name;
	put(w, dot, (uint32_t)strlen(dot));
	return 0;
}

static int flags_of_type(struct show *w, uint64_t type, uint64_t *flags)
{
	return memory_read(w->run, flags, sizeof(*flags), type + object_at->type_flags) ? ABI_FAULT_BADADDR : 0;
}

static int show_qualname(struct show *w, uint64_t type)
{
	uint64_t flags, name;
	int err = flags_of_type(w, type, &flags);

	if (err || !(flags & TYPE_HEAP))
		return err ? err : show_type_name(w, type, false);
	if (!object_at->type_qualname || memory_read(w->run, &name, sizeof(name), type + object_at->type_qualname))
		return ABI_FAULT_BADADDR;
	return show_name(w, name);
}

/* With the module, except for builtins. */
static int show_full_name(struct show *w, uint64_t type)
{
	struct attribute_key k;
	struct object module;
	uint64_t flags, value;
	int err = flags_of_type(w, type, &flags);

	if (err || !(flags & TYPE_HEAP))
		return err ? err : show_type_name(w, type, true);
	attribute_text_key(&k, "__module__", 10);
	if (!attribute_in_classes(w->run, type, &k, &value) && !object_open(w->run, value, &module) &&
	    module.flags & TYPE_STR && !object_is_text(&module, "builtins", 8)) {
		err = show_name(w, value);
		PUT(w, ".");
	}
	return err ? err : show_qualname(w, type);
}

static int show_class(struct show *w, const struct object *o)
{
	int err;

	PUT(w, "<class '");
	err = show_full_name(w, o->addr);
	PUT(w, "'>");
	return err;
}

static int show_other(struct show *w, const struct object *o)
{
	int err;

	PUT(w, "<");
	if (o->type == object_at->function_type && object_at->function_qualname) {
		PUT(w, "function ");
		err = show_name(w, object_word(o, object_at->function_qualname));
	} else {
		err = show_full_name(w, o->type);
		PUT(w, " object");
	}
	PUT(w, " at ");
	put_address(w, o->addr);
	PUT(w, ">");
	return err;
}

/* --- containers --------------------------------------------------------------------------------------- */

static void put_comma(struct show *w, uint64_t n)
{
	if (n)
		PUT(w, ", ");
}

static int show_tuple(struct show *w, const struct object *o)
{
	uint64_t n = object_size(o);
	int err = 0;

	PUT(w, "(");
	for (uint64_t k = 0; k < n && !err && !w->full; k++) {
		put_comma(w, k);
		err = show(w, object_item(o, k));
	}
	put(w, ",)", n == 1 ? 2 : 0);
	put(w, ")", n == 1 ? 0 : 1);
	return err;
}

static int show_list(struct show *w, const struct object *o)
{
	uint64_t items = 0, n = 0, item;
	int err = attribute_list(o, &items, &n);

	PUT(w, "[");
	for (uint64_t k = 0; k < n && !err && !w->full; k++) {
		put_comma(w, k);
		err = memory_read(w->run, &item, sizeof(item), items + 8 * k) ? ABI_FAULT_BADADDR : show(w, item);
	}
	PUT(w, "]");
	return err;
}

static int show_dict(struct show *w, const struct object *o)
{
	struct attribute_table t;
	uint64_t key, value, shown = 0;
	int err = attribute_dict(o, &t);

	PUT(w, "{");
	for (uint64_t k = 0; !err && k < attribute_count(&t) && !w->full; k++) {
		err = attribute_entry(&t, k, &key, &value);
		if (err == ABI_FAULT_VALUE_NONE) {
			w->full |= ++w->nodes > NODES;
			err = 0;
			continue;
		}
		put_comma(w, shown++);
		if (!err)
			err = show(w, key);
		PUT(w, ": ");
		if (!err && !w->full)
			err = show(w, value);
	}
	PUT(w, "}");
	return err;
}

static int show_elements(struct show *w, const struct object *o)
{
	struct { uint64_t key, hash; } part[SET_CHUNK];
	uint64_t mask = object_word(o, object_body() + SET_MASK), table = object_word(o, object_body() + SET_TABLE), shown = 0;
	int err = 0;

	PUT(w, "{");
	for (uint64_t k = 0; k <= mask && !err && !w->full; k += SET_CHUNK) {
		w->full |= ++w->nodes > NODES;
		if (memory_read(w->run, part, sizeof(part), table + k * sizeof(*part)))
			return ABI_FAULT_BADADDR;
		for (unsigned i = 0; i < SET_CHUNK && !err && !w->full; i++) {
			if (!part[i].key || part[i].hash == UINT64_MAX)	/* unused, or removed */
				continue;
			put_comma(w, shown++);
			err = show(w, part[i].key);
		}
	}
	PUT(w, "}");
	return err;
}

static int show_set(struct show *w, const struct object *o)
{
	uint64_t used = object_word(o, object_body() + SET_USED);
	bool plain = o->type == object_at->set_type && used;
	int err = 0;

	if (!object_at->has_sets || (object_word(o, object_body() + SET_MASK) & 7) != 7)
		return ABI_FAULT_VALUE_UNKNOWN;
	if (!plain)
		err = show_type_name(w, o->type, false);
	put(w, "(", !plain);
	if (used && !err)
		err = show_elements(w, o);
	put(w, ")", !plain);
	return err;
}

/* --- instances ---------------------------------------------------------------------------------------- */

/* Has the program made the class @type, by a class statement?  Types of C modules are on the heap as well. */
static bool is_of_program(struct shm_run *r, uint64_t type, uint64_t flags)
{
	uint64_t dealloc;

	if (!(flags & TYPE_HEAP) || !object_at->type_dealloc)
		return flags & TYPE_HEAP;
	return !memory_read(r, &dealloc, sizeof(dealloc), type + object_at->type_name + OBJECT_NAME_TO_DEALLOC) &&
	       dealloc == object_at->type_dealloc;
}

static int in_classes(const struct object *o, const char *name, uint64_t *value)
{
	struct attribute_key k;

	attribute_text_key(&k, name, (uint32_t)strlen(name));
	return attribute_in_classes(o->run, o->type, &k, value);
}

static int own(const struct object *o, const char *name, uint64_t *value)
{
	struct attribute_key k;
	struct attribute_table t;
	int err = attribute_instance(o, &t);

	attribute_text_key(&k, name, (uint32_t)strlen(name));
	return err ? err : attribute_lookup(&t, &k, value);
}

/* <Color.RED: 1> */
static int show_enum(struct show *w, const struct object *o)
{
	uint64_t name, value;
	int err = own(o, "_name_", &name);

	if (!err)
		err = own(o, "_value_", &value);
	PUT(w, "<");
	if (!err)
		err = show_type_name(w, o->type, false);
	if (!err && name != object_at->none) {
		PUT(w, ".");
		err = show_name(w, name);
	}
	PUT(w, ": ");
	if (!err)
		err = show(w, value);
	PUT(w, ">");
	return err;
}

/* Name('message', 2) */
static int show_exception(struct show *w, const struct object *o)
{
	uint64_t args = object_at->exception[0] ? object_word(o, object_at->exception[0]) : 0;
	struct object tuple;
	int err;

	if (object_open(w->run, args, &tuple) || !(tuple.flags & TYPE_TUPLE))
		return ABI_FAULT_VALUE_UNKNOWN;
	err = show_type_name(w, o->type, false);
	PUT(w, "(");
	for (uint64_t k = 0; k < object_size(&tuple) && !err && !w->full; k++) {
		put_comma(w, k);
		err = show(w, object_item(&tuple, k));
	}
	PUT(w, ")");
	return err;
}

static int show_field(struct show *w, uint64_t n, uint64_t name, uint64_t value)
{
	int err;

	put_comma(w, n);
	err = show_name(w, name);
	PUT(w, "=");
	return err || w->full ? err : show(w, value);
}

/* A named tuple; @fields has the names. */
static int show_named(struct show *w, const struct object *o, const struct object *fields)
{
	int err = show_type_name(w, o->type, false);

	PUT(w, "(");
	for (uint64_t k = 0; k < object_size(o) && !err && !w->full; k++)
		err = show_field(w, k, object_item(fields, k), object_item(o, k));
	PUT(w, ")");
	return err;
}

/* Is the dataclass's field a field of instances, with repr=True? */
static bool is_shown(struct show *w, uint64_t field)
{
	struct attribute_key k;
	struct object f, kind, name;
	uint64_t value;

	if (object_open(w->run, field, &f))
		return false;
	attribute_text_key(&k, "repr", 4);
	if (attribute_find(&f, &k, &value) || value == object_at->no)
		return false;
	attribute_text_key(&k, "_field_type", 11);
	if (attribute_find(&f, &k, &value) || object_open(w->run, value, &kind))
		return false;
	attribute_text_key(&k, "name", 4);
	return !attribute_find(&kind, &k, &value) && !object_open(w->run, value, &name) && object_is_text(&name, "_FIELD", 6);
}

/* @fields: __dataclass_fields__. */
static int show_dataclass(struct show *w, const struct object *o, const struct object *fields)
{
	struct attribute_table t;
	uint64_t name, field, value, shown = 0;
	int err = attribute_dict(fields, &t);

	for (uint64_t n = 0; !err && n < attribute_count(&t) && !w->full; n++) {
		char text[OBJECT_NAME + 1];
		struct attribute_key k;
		struct object_text chars;
		struct object key;
		int64_t length = 0;

		w->full |= ++w->nodes > NODES;
		if (attribute_entry(&t, n, &name, &field) || !is_shown(w, field))
			continue;
		if (object_open(w->run, name, &key) || object_text(&key, &chars))
			return ABI_FAULT_BADADDR;
		length = object_put_text(w->run, &chars, text, sizeof(text));
		if (length < 1)
			return ABI_FAULT_BADADDR;
		attribute_text_key(&k, text, (uint32_t)length - 1);
		err = attribute_find(o, &k, &value);
		if (!err)
			err = show_field(w, shown++, name, value);
		else if (err == ABI_FAULT_VALUE_NONE)	/* deleted, or not set yet */
			err = 0;
	}
	return err;
}

/* The slots of @o that the program's classes define. */
static int show_slots(struct show *w, const struct object *o, uint64_t *shown)
{
	uint64_t addr, name, member, value;
	struct attribute_table t;
	struct object mro, dict, d;
	int err = 0;

	if (memory_read(w->run, &addr, sizeof(addr), o->type + object_at->type_mro) || object_open(w->run, addr, &mro))
		return ABI_FAULT_BADADDR;
	for (uint64_t c = 0; c < object_size(&mro) && !w->full; c++) {
		uint64_t class = object_item(&mro, c), flags;

		if (flags_of_type(w, class, &flags))
			return ABI_FAULT_BADADDR;
		if (!is_of_program(w->run, class, flags))
			continue;
		if (memory_read(w->run, &addr, sizeof(addr), class + object_at->type_base + 8) || object_open(w->run, addr, &dict) ||
		    attribute_dict(&dict, &t))
			return ABI_FAULT_BADADDR;
		for (uint64_t n = 0; n < attribute_count(&t) && !err && !w->full; n++) {
			w->full |= ++w->nodes > NODES;
			if (attribute_entry(&t, n, &name, &member) || object_open(w->run, member, &d) ||
			    d.type != object_at->member_type || attribute_slot(o, &d, &value))
				continue;
			err = show_field(w, (*shown)++, name, value);
		}
	}
	return err;
}

static int show_attributes(struct show *w, const struct object *o)
{
	struct attribute_table t;
	uint64_t name, value, shown = 0;
	int err = attribute_instance(o, &t);

	for (uint64_t n = 0; !err && n < attribute_count(&t) && !w->full; n++) {
		int missing = attribute_entry(&t, n, &name, &value);

		w->full |= missing && ++w->nodes > NODES;
		if (!missing)
			err = show_field(w, shown++, name, value);
	}
	return err && err != ABI_FAULT_VALUE_NONE ? err : show_slots(w, o, &shown);
}

static int show_instance(struct show *w, const struct object *o)
{
	struct object fields;
	uint64_t value;
	bool dataclass = !in_classes(o, "__dataclass_fields__", &value) && !object_open(w->run, value, &fields) &&
			 fields.flags & TYPE_DICT;
	int err = show_qualname(w, o->type);

	PUT(w, "(");
	if (!err)
		err = dataclass ? show_dataclass(w, o, &fields) : show_attributes(w, o);
	PUT(w, ")");
	return err;
}

/* --- any ---------------------------------------------------------------------------------------------- */

typedef int shower(struct show *w, const struct object *o);

/* The form of an enum or a named tuple, or NULL. */
static shower *of_class(const struct object *o, struct object *fields)
{
	uint64_t value;

	if (!(o->flags & TYPE_HEAP))
		return NULL;
	if (!in_classes(o, "_member_map_", &value))
		return show_enum;
	if (o->flags & TYPE_TUPLE && !in_classes(o, "_fields", &value) && !object_open(o->run, value, fields) &&
	    fields->flags & TYPE_TUPLE && object_size(fields) == object_size(o))
		return show_tuple;
	return NULL;
}

static shower *by_kind(const struct object *o)
{
	static const struct { uint64_t flag; shower *show; } kinds[] = {
		{ TYPE_STR, show_str }, { TYPE_BYTES, show_bytes }, { TYPE_INT, show_int }, { TYPE_LIST, show_list },
		{ TYPE_TUPLE, show_tuple }, { TYPE_DICT, show_dict }, { TYPE_EXCEPTION, show_exception }, { TYPE_TYPE, show_class },
	};
	bool has_bases = o->type != object_at->function_type;

	for (unsigned k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
		if (o->flags & kinds[k].flag)
			return kinds[k].show;
	if (has_bases && attribute_is_a(o->run, o->type, object_at->float_type))
		return show_float;
	if (has_bases && (attribute_is_a(o->run, o->type, object_at->set_type) ||
			  attribute_is_a(o->run, o->type, object_at->frozenset_type)))
		return show_set;
	return has_bases && is_of_program(o->run, o->type, o->flags) ? show_instance : show_other;
}

/* An object inside itself. */
static int show_again(struct show *w, const struct object *o, shower *how)
{
	int err = 0;

	if (how == show_list)
		PUT(w, "[...]");
	else if (how == show_dict || how == show_set)
		PUT(w, "{...}");
	else if (how != show_tuple)
		err = show_qualname(w, o->type);
	if (how != show_list && how != show_dict && how != show_set)
		PUT(w, "(...)");
	return err;
}

static bool is_open(const struct show *w, uint64_t addr)
{
	for (unsigned k = 0; k < w->depth; k++)
		if (w->open[k] == addr)
			return true;
	return false;
}

static bool show_single(struct show *w, uint64_t addr)
{
	const struct { uint64_t addr; const char *text; } singles[] = {
		{ object_at->none, "None" }, { object_at->yes, "True" }, { object_at->no, "False" },
		{ object_at->ellipsis, "Ellipsis" }, { object_at->not_implemented, "NotImplemented" },
	};

	for (unsigned k = 0; k < sizeof(singles) / sizeof(*singles); k++)
		if (addr == singles[k].addr) {
			put(w, singles[k].text, (uint32_t)strlen(singles[k].text));
			return true;
		}
	return false;
}

static int show(struct show *w, uint64_t addr)
{
	struct object o, fields;
	shower *class, *how;
	int err;

	if (w->full || show_single(w, addr))
		return 0;
	if (++w->nodes > NODES) {
		w->full = true;
		return 0;
	}
	err = object_open(w->run, addr, &o);
	if (err)
		return err;
	class = of_class(&o, &fields);
	how = class ? class : by_kind(&o);
	if (is_open(w, addr))
		return show_again(w, &o, how);
	if (w->depth == DEPTH) {
		PUT(w, "...");
		return 0;
	}
	w->open[w->depth++] = addr;
	err = class == show_tuple ? show_named(w, &o, &fields) : how(w, &o);
	w->depth--;
	return err;
}

int64_t show_object(struct shm_run *r, uint64_t addr, char *dst, uint32_t size)
{
	struct show w = { .run = r, .dst = dst, .size = size };
	int err = object_at->keys_form && object_at->type_base ? show(&w, addr) : ABI_FAULT_VALUE_UNKNOWN;

	return err ? -(int64_t)err : finish(&w);
}

/* --- what never fails ---------------------------------------------------------------------------------- */

static void show_whatever(struct show *w, uint64_t addr)
{
	if (!addr || !object_at->keys_form || !object_at->type_base || show(w, addr))
		PUT(w, "?");
	w->depth = 0;
}

struct parameters {
	struct show w;
	unsigned int n;
};

/* In the form of object.__repr__, to keep the text short.  An error if the parameter is not called self. */
static int show_self(struct show *w, uint64_t name, uint64_t value)
{
	struct object o;

	object_open_alive(w->run, name, &o);
	if (!value || !object_is_text(&o, "self", 4) || object_open(w->run, value, &o))
		return ABI_FAULT_VALUE_NONE;
	return show_other(w, &o);
}

static int show_parameter(void *ctx, uint64_t name, uint64_t value)
{
	struct parameters *p = ctx;
	char text[OBJECT_NAME + 1];
	struct object_text t;
	struct object o;
	int64_t len;

	object_open_alive(p->w.run, name, &o);
	len = object_text(&o, &t) ? 0 : object_put_text(p->w.run, &t, text, sizeof(text));
	if (p->n)
		PUT(&p->w, ", ");
	put(&p->w, text, len > 0 ? (uint32_t)len - 1 : 0);
	PUT(&p->w, "=");
	if (p->n++ || show_self(&p->w, name, value))
		show_whatever(&p->w, value);
	return p->w.full;
}

int64_t show_parameters(struct shm_run *r, char *dst, uint32_t size)
{
	struct parameters p = { .w = { .run = r, .dst = dst, .size = size } };

	variable_each(r, ABI_VARIABLES_PARAMETERS, show_parameter, &p);
	return finish(&p.w);
}

/* An object that has a method, which may be anything. */
static void show_object_of(struct show *w, uint64_t addr)
{
	char text[OBJECT_NAME + 1];
	struct object o;
	uint32_t n;

	if (object_open(w->run, addr, &o) || !(is_of_program(w->run, o.type, o.flags) || by_kind(&o) == show_other)) {
		show_whatever(w, addr);
		return;
	}
	n = opened_text(&o, text, sizeof(text));
	if (!n) {
		if (show_other(w, &o))
			PUT(w, "?");
		return;
	}
	PUT(w, "<");
	if (show_full_name(w, o.type))
		PUT(w, "?");
	PUT(w, " ");
	put(w, text, n);
	PUT(w, ">");
}

int64_t show_call(struct shm_run *r, const struct ccall *call, char *dst, uint32_t size)
{
	struct show w = { .run = r, .dst = dst, .size = size };
	uint64_t values[CALL_ARGS] = { 0 };
	int n = ccall_arguments(r, call, values, CALL_ARGS);

	for (int k = 0; k < n || (n < 0 && !k && values[0]); k++) {
		if (k)
			PUT(&w, ", ");
		if (!k)
			show_object_of(&w, values[k]);
		else
			show_whatever(&w, values[k]);
	}
	if (n < 0) {
		if (values[0])
			PUT(&w, ", ");
		PUT(&w, "?");
	}
	return finish(&w);
}

int64_t show_if_any(struct shm_run *r, uint64_t addr, char *dst, uint32_t size)
{
	struct show w = { .run = r, .dst = dst, .size = size };

	if (addr)
		show_whatever(&w, addr);
	return finish(&w);
}

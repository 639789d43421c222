/*
 * Objects as bytes: what show_object() makes of random ones against text that is made beside them, lookups in tables against
 * the table's own list, and all of it in objects of which some bytes are wrong.  The objects are laid out here, as 3.9 and 3.13
 * do; nothing of them is alive to the agent, which therefore trusts none of their bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/agent.h"
#include "agent/attribute.h"
#include "agent/object.h"
#include "agent/show.h"

/* xorshift64*: the same numbers with each run. */
static uint64_t seed = 14;

static uint32_t any(uint32_t below)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return (uint32_t)((seed * 2685821657736338717u) >> 32) % below;
}

/* --- memory, which is given back all at once ---------------------------------------------------------- */

enum { PIECES = 20000, TEXT = 1 << 16 };
static struct { uint8_t *p; size_t size; } pieces[PIECES];
static unsigned npieces;

static void *piece(size_t size)
{
	uint8_t *p = calloc(1, size);

	assert_true(p && npieces < PIECES);
	pieces[npieces].size = size;
	pieces[npieces++].p = p;
	return p;
}

static void drop(unsigned kept)
{
	while (npieces > kept)
		free(pieces[--npieces].p);
}

/* --- the text beside it ------------------------------------------------------------------------------- */

static char text[TEXT];
static size_t used;

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	used += (size_t)vsnprintf(text + used, sizeof(text) - used, format, list);
	va_end(list);
	assert_true(used < sizeof(text));
}

/* --- objects ------------------------------------------------------------------------------------------ */

struct type {
	uint64_t refs, type, size, name, basic, item, dealloc, flags, base, dict, get, set, dictoffset, mro, qualname, keys;
};
struct var { uint64_t refs, type, size; };
struct list { struct var v; uint64_t items; };
struct str { uint64_t refs, type, length, hash; uint32_t state, pad; };
struct dict { uint64_t refs, type, used, version, keys, values; };
struct keys { uint64_t refs; uint8_t log2_size, log2_bytes, kind, pad; uint32_t version; uint64_t usable, n; };
struct old_keys { uint64_t refs, size, lookup, usable, n; };
struct set { uint64_t refs, type, fill, used, mask, table; };
struct instance { uint64_t refs, type, dict; };

static struct type type_type, none_type, int_type, bool_type, str_type, bytes_type, float_type, list_type, tuple_type, dict_type,
	set_type, frozenset_type, function_type, member_type;
static uint64_t none[2], yes[4], no[4], ellipsis[2], not_implemented[2];
static bool old;			/* the layouts of 3.9 */

static uint64_t at(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static void *object(struct type *type, size_t size)
{
	uint64_t *o = piece(size);

	o[0] = 1;
	o[1] = at(type);
	return o;
}

/* As CPython's str.isprintable(), near enough: some are not. */
static int is_printable(uint32_t c)
{
	return c < 0x80 ? c >= ' ' && c < 0x7f : c % 5 && (c < 0xd800 || c > 0xdfff);
}

static int64_t hash_of(const void *bytes, ssize_t size)
{
	const uint8_t *b = bytes;
	uint64_t h = 14695981039346656037u;

	while (size--)
		h = (h ^ *b++) * 1099511628211u;
	return (int64_t)h;
}

/* A str of characters of @width bytes, from ASCII if that is 0. */
static void *make_str(const uint32_t *chars, uint32_t n, unsigned width)
{
	unsigned bytes = width ? width : 1;
	size_t head = sizeof(struct str) + (width ? 24 : 0);
	struct str *s = object(&str_type, head + (size_t)(n + 1) * bytes);

	s->length = n;
	s->state = bytes << 2 | 1 << 5 | (uint32_t)!width << 6;
	for (uint32_t k = 0; k < n; k++)
		memcpy((char *)s + head + k * bytes, &chars[k], bytes);
	return s;
}

static void *ascii(const char *from)
{
	uint32_t chars[64], n = 0;

	for (; *from; from++)
		chars[n++] = (uint8_t)*from;
	return make_str(chars, n, 0);
}

/* A dictionary's table as CPython fills it: of n entries, or with more room; @hashes NULL: of strs alone. */
static void *make_keys(const uint64_t *keys, const uint64_t *values, const uint64_t *hashes, uint32_t n)
{
	uint32_t log2 = 3, width, words = hashes || old ? 3 : 2;
	size_t head = old ? sizeof(struct old_keys) : sizeof(struct keys), indices;
	uint8_t *t;

	while ((1u << log2) * 2 / 3 < n)
		log2++;
	width = log2 < 8 ? 1 : 2;
	indices = (size_t)width << log2;
	t = piece(head + indices + (size_t)8 * words * ((1u << log2) * 2 / 3));
	if (old)
		*(struct old_keys *)(void *)t = (struct old_keys){ 1, 1u << log2, 0, 0, n };
	else
		*(struct keys *)(void *)t = (struct keys){ 1, (uint8_t)log2, (uint8_t)(log2 + width - 1), !hashes, 0, 0, 0, n };
	memset(t + head, 0xff, indices);
	for (uint32_t k = 0; k < n; k++) {
		uint64_t *entry = (uint64_t *)(void *)(t + head + indices) + (size_t)k * words;
		uint64_t hash = hashes ? hashes[k] : 0, mask = (1u << log2) - 1, i = hash & mask, perturb = hash;

		if (words == 3)
			*entry++ = hash;
		entry[0] = keys[k];
		entry[1] = values[k];
		while (memcmp(t + head + i * width, "\xff\xff", width))
			i = (i * 5 + (perturb >>= 5) + 1) & mask;
		memcpy(t + head + i * width, &k, width);
	}
	return t;
}

static void *make_dict(const uint64_t *keys, const uint64_t *values, const uint64_t *hashes, uint32_t n)
{
	struct dict *d = object(&dict_type, sizeof(*d));

	d->used = n;
	d->keys = at(make_keys(keys, values, hashes, n));
	return d;
}

static void *make_tuple(uint32_t n)
{
	struct var *t = object(&tuple_type, sizeof(*t) + (size_t)n * 8);

	t->size = n;
	return t;
}

static uint64_t *items_of(void *tuple)
{
	return (uint64_t *)(void *)((struct var *)tuple + 1);
}

static void *make_int(__int128 v)
{
	uint32_t digits[5], n = 0;
	unsigned __int128 rest = v < 0 ? -(unsigned __int128)v : (unsigned __int128)v;
	struct var *o;

	for (; rest; rest >>= 30)
		digits[n++] = (uint32_t)rest & ((1u << 30) - 1);
	o = object(&int_type, sizeof(*o) + (n ? n : 1) * sizeof(*digits));
	o->size = old ? (v < 0 ? -(uint64_t)n : n) : (uint64_t)n << 3 | (v < 0 ? 2 : !n);
	memcpy(o + 1, digits, n * sizeof(*digits));
	return o;
}

static void make_type(struct type *t, const char *called, struct type *base, uint64_t flags)
{
	void *mro = make_tuple(base ? 2 : 1);

	*t = (struct type){ .refs = 1, .type = at(&type_type), .name = at(called), .basic = 16, .flags = flags, .base = at(base) };
	items_of(mro)[0] = at(t);
	if (base)
		items_of(mro)[1] = at(base);
	t->mro = at(mro);
	t->dict = at(make_dict(NULL, NULL, NULL, 0));
}

/* A class of the program. */
static struct type *make_class(const char *called)
{
	struct type *t = piece(sizeof(*t));

	make_type(t, called, NULL, TYPE_HEAP);
	t->dealloc = 4711;
	t->dictoffset = offsetof(struct instance, dict);
	t->qualname = at(ascii(called));
	return t;
}

/* --- random ones, with their text --------------------------------------------------------------------- */

enum { MOST_DEPTH = 10, MOST_ITEMS = 4 };

static uint64_t parents[MOST_DEPTH];
static const char *again[MOST_DEPTH];	/* one inside itself */

static void say_char(uint32_t c, char quote)
{
	if (c == '\\' || c == (uint32_t)quote)
		say("\\%c", c);
	else if (c == '\n' || c == '\r' || c == '\t')
		say("\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
	else if (!is_printable(c))
		say(c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
	else if (c < 0x80)
		say("%c", c);
	else if (c < 0x800)
		say("%c%c", 0xc0 | c >> 6, 0x80 | (c & 63));
	else if (c < 0x10000)
		say("%c%c%c", 0xe0 | c >> 12, 0x80 | (c >> 6 & 63), 0x80 | (c & 63));
	else
		say("%c%c%c%c", 0xf0 | c >> 18, 0x80 | (c >> 12 & 63), 0x80 | (c >> 6 & 63), 0x80 | (c & 63));
}

static char quote_of(const uint32_t *chars, uint32_t n)
{
	bool one = false, two = false;

	for (uint32_t k = 0; k < n; k++) {
		one |= chars[k] == '\'';
		two |= chars[k] == '"';
	}
	return one && !two ? '"' : '\'';
}

static uint64_t any_str(void)
{
	static const uint32_t below[] = { 0x80, 0x100, 0x10000, 0, 0x110000 };
	uint32_t chars[200], n = any(any(8) ? 12 : 200), width = any(5);
	char quote;

	width -= width == 3;
	for (uint32_t k = 0; k < n; k++) {
		chars[k] = 1 + any(any(3) ? 0x7f : below[width] - 1);
		if (!any(10))
			chars[k] = (uint32_t)"'\"\\\n"[any(4)];
	}
	quote = quote_of(chars, n);
	say("%c", quote);
	for (uint32_t k = 0; k < n; k++)
		say_char(chars[k], quote);
	say("%c", quote);
	return at(make_str(chars, n, width));
}

static uint64_t any_bytes(void)
{
	uint32_t chars[40], n = any(40);
	struct var *o = object(&bytes_type, sizeof(*o) + 8 + n + 1);
	char quote;

	o->size = n;
	for (uint32_t k = 0; k < n; k++) {
		chars[k] = any(2) ? any(256) : (uint32_t)"a'\"\\\n"[any(5)];
		((uint8_t *)(o + 1))[8 + k] = (uint8_t)chars[k];
	}
	quote = quote_of(chars, n);
	say("b%c", quote);
	for (uint32_t k = 0; k < n; k++)
		if (chars[k] < 0x80)
			say_char(chars[k], quote);
		else
			say("\\x%02x", chars[k]);
	say("%c", quote);
	return at(o);
}

static uint64_t any_int(void)
{
	__int128 v = (__int128)any(UINT32_MAX) << any(90);
	char digits[48], *p = digits + sizeof(digits) - 1;

	if (any(2))
		v = -v;
	if (!any(8))
		v = 0;
	*p = '\0';
	for (unsigned __int128 rest = v < 0 ? -(unsigned __int128)v : (unsigned __int128)v; rest || !*p; rest /= 10)
		*--p = (char)('0' + (unsigned)(rest % 10));
	say("%s%s", v < 0 ? "-" : "", p);
	return at(make_int(v));
}

static uint64_t any_float(void)
{
	static const struct { double v; const char *text; } some[] = { { 0.5, "0.5" }, { -2.25, "-2.25" }, { 1e100, "1e+100" }, { 3, "3.0" } };
	struct { uint64_t refs, type; double v; } *o = object(&float_type, sizeof(*o));
	unsigned k = any(4);

	o->v = some[k].v;
	say("%s", some[k].text);
	return at(o);
}

static uint64_t any_value(unsigned depth);

static uint64_t any_list(unsigned depth)
{
	uint32_t n = any(MOST_ITEMS);
	struct list *o = object(&list_type, sizeof(*o));
	uint64_t *items = piece(8 * (n + 1));

	o->v.size = n;
	o->items = at(items);
	parents[depth] = at(o);
	again[depth] = "[...]";
	say("[");
	for (uint32_t k = 0; k < n; k++) {
		say(k ? ", " : "");
		items[k] = any_value(depth + 1);
	}
	say("]");
	return at(o);
}

static uint64_t any_tuple(unsigned depth)
{
	uint32_t n = any(MOST_ITEMS);
	void *o = make_tuple(n);

	parents[depth] = at(o);
	again[depth] = "(...)";
	say("(");
	for (uint32_t k = 0; k < n; k++) {
		say(k ? ", " : "");
		items_of(o)[k] = any_value(depth + 1);
	}
	say(n == 1 ? ",)" : ")");
	return at(o);
}

/* A key or an element, which is at this depth. */
static uint64_t any_key(unsigned depth)
{
	size_t before = used;
	uint64_t o = any(2) ? any_int() : any_str();

	if (depth == MOST_DEPTH) {
		used = before;
		say("...");
	}
	return o;
}

/* Some entries have been removed. */
static uint64_t any_dict(unsigned depth)
{
	uint64_t keys[MOST_ITEMS], values[MOST_ITEMS], hashes[MOST_ITEMS];
	uint32_t n = any(MOST_ITEMS), shown = 0;
	struct dict *o = object(&dict_type, sizeof(*o));

	parents[depth] = at(o);
	again[depth] = "{...}";
	say("{");
	for (uint32_t k = 0; k < n; k++) {
		hashes[k] = any(1000);
		keys[k] = values[k] = 0;
		if (!any(4))
			continue;
		say(shown++ ? ", " : "");
		keys[k] = any_key(depth + 1);
		say(": ");
		values[k] = any_value(depth + 1);
	}
	say("}");
	o->keys = at(make_keys(keys, values, any(2) ? hashes : NULL, n));
	return at(o);
}

static uint64_t any_set(unsigned depth, bool frozen)
{
	struct set *o = object(frozen ? &frozenset_type : &set_type, sizeof(*o));
	uint32_t n = any(6);
	struct { uint64_t key, hash; } *table = piece(8 * sizeof(*table));

	o->table = at(table);
	o->mask = 7;
	o->used = n;
	say(frozen ? "frozenset(" : n ? "" : "set(");
	say(n ? "{" : "");
	for (uint32_t k = 0; k < n; k++) {
		say(k ? ", " : "");
		table[k + (k > 2)].key = any_key(depth + 1);
	}
	table[3].key = at(none);	/* removed */
	table[3].hash = UINT64_MAX;
	say(n ? "}" : "");
	say(frozen || !n ? ")" : "");
	return at(o);
}

static uint64_t any_instance(unsigned depth)
{
	uint64_t keys[MOST_ITEMS], values[MOST_ITEMS], hashes[MOST_ITEMS];
	uint32_t n = any(MOST_ITEMS), shown = 0;
	struct instance *o = object(make_class("Point"), sizeof(*o));

	parents[depth] = at(o);
	again[depth] = "Point(...)";
	say("Point(");
	for (uint32_t k = 0; k < n; k++) {
		char called[8];

		snprintf(called, sizeof(called), "a%u", k);
		keys[k] = at(ascii(called));
		hashes[k] = (uint64_t)hash_of(called, (ssize_t)strlen(called));
		values[k] = 0;
		if (!any(4))
			continue;
		say("%s%s=", shown++ ? ", " : "", called);
		values[k] = any_value(depth + 1);
	}
	say(")");
	o->dict = at(make_dict(keys, values, any(2) ? hashes : NULL, n));
	return at(o);
}

static uint64_t any_value(unsigned depth)
{
	static const struct { uint64_t *o; const char *text; } singles[] = { { none, "None" }, { yes, "True" }, { no, "False" },
		{ ellipsis, "Ellipsis" }, { not_implemented, "NotImplemented" } };
	size_t before = used;
	unsigned k = any(16);
	uint64_t o;

	if (k < 2) {
		k = any(5);
		say("%s", singles[k].text);
		return at(singles[k].o);
	}
	if (k == 2 && depth) {
		k = any(depth);
		say("%s", again[k]);
		return parents[k];
	}
	if (depth == MOST_DEPTH) {
		o = any(2) ? any_int() : any_str();
		used = before;
		say("...");
		return o;
	}
	switch (k) {
	case 3: case 4:
		return any_str();
	case 5:
		return any_bytes();
	case 6:
		return any_float();
	case 7: case 8:
		return any_list(depth);
	case 9: case 10:
		return any_tuple(depth);
	case 11: case 12:
		return any_dict(depth);
	case 13:
		parents[depth] = 0;	/* has none inside that could refer to it */
		return any_set(depth, any(2));
	case 14:
		return any_instance(depth);
	default:
		return any_int();
	}
}

/* --- tests -------------------------------------------------------------------------------------------- */

static char shown[TEXT + 8];

/* show_object(), which may not write beyond @size; its result is checked. */
static int64_t show(uint64_t addr, uint32_t size)
{
	int64_t n;

	memset(shown, 0x5a, size + 8);
	n = show_object(object_reader(), addr, shown, size);
	for (uint32_t k = size; k < size + 8; k++)
		assert_int_equal(shown[k], 0x5a);
	if (n > 0) {
		assert_true(n <= size);
		assert_int_equal(strlen(shown), n - 1);
	} else {
		assert_in_range(-n, 1, ABI_FAULT_MAX - 1);
	}
	return n;
}

static void shows(void **state)
{
	unsigned kept = npieces;

	(void)state;
	for (unsigned round = 0; round < 1500; round++) {
		uint64_t o;
		uint32_t size, same;

		used = 0;
		o = any_value(0);
		assert_int_equal(show(o, (uint32_t)used + 1), used + 1);
		assert_string_equal(shown, text);
		size = 1 + any((uint32_t)used + 1);
		assert_true(show(o, size) > 0);
		if (size <= used && size > 3) {
			same = (uint32_t)strlen(shown) - 3;
			assert_string_equal(shown + same, "...");
			assert_memory_equal(shown, text, same);
			assert_int_not_equal(text[same] & 0xc0, 0x80);	/* no part of a character */
		}
		drop(kept);
	}
}

enum { LOOKED_UP = 600 };	/* indices of one byte and of two */

/* Ints and strs as keys; what was removed, and what never was there, is not found. */
static void finds(void **state)
{
	static uint64_t keys[LOOKED_UP], values[LOOKED_UP], hashes[LOOKED_UP];
	unsigned kept = npieces;

	(void)state;
	for (unsigned round = 0; round < 60; round++) {
		uint32_t n = 1 + any(round < 50 ? 20 : LOOKED_UP - 1), step = 1 + any(300);
		struct attribute_key k;
		struct object dict;
		uint64_t value;

		for (uint32_t i = 0; i < n; i++) {
			char called[16];

			snprintf(called, sizeof(called), "k%u", i);
			attribute_number_key(&k, (int64_t)i * step - 7);
			hashes[i] = i % 2 ? k.hash : (uint64_t)hash_of(called, (ssize_t)strlen(called));
			keys[i] = at(i % 2 ? make_int((__int128)i * step - 7) : ascii(called));
			values[i] = i % 7 ? at(none) + i : 0;
		}
		assert_int_equal(object_open(object_reader(), at(make_dict(keys, values, hashes, n)), &dict), 0);
		for (uint32_t i = 0; i < n + 5; i++) {
			char called[16];

			snprintf(called, sizeof(called), "k%u", i);
			if (i % 2)
				attribute_number_key(&k, (int64_t)i * step - 7);
			else
				attribute_text_key(&k, called, (uint32_t)strlen(called));
			if (i < n && i % 7) {
				assert_int_equal(attribute_item(&dict, &k, &value), 0);
				assert_int_equal(value, at(none) + i);
			} else {
				assert_int_equal(attribute_item(&dict, &k, &value), ABI_FAULT_VALUE_NONE);
			}
		}
		drop(kept);
	}
}

/* Where the hash of texts is not known, all entries are looked at. */
static void finds_without_hash(void **state)
{
	agent.objects.hash = NULL;
	finds(state);
	agent.objects.hash = hash_of;
}

/* An index that is wider than a word would be read over what lies behind a variable. */
static void wide_index(void **state)
{
	unsigned kept = npieces;
	uint64_t key = at(ascii("k")), value = at(none), hash = (uint64_t)hash_of("k", 1);
	struct dict *o = make_dict(&key, &value, &hash, 1);
	struct keys *keys = (struct keys *)(uintptr_t)o->keys;
	struct attribute_key k;
	struct object dict;

	(void)state;
	if (old)
		return;
	attribute_text_key(&k, "k", 1);
	for (unsigned more = 0; more < 41; more++) {
		keys->log2_bytes = (uint8_t)(keys->log2_size + more);
		assert_int_equal(object_open(object_reader(), at(o), &dict), 0);
		if (more > 3)
			assert_int_equal(attribute_item(&dict, &k, &value), ABI_FAULT_BADADDR);
	}
	drop(kept);
}

/* A table of which nothing can be read ends an instance's text, and soon. */
static void endless(void **state)
{
	unsigned kept = npieces;
	struct instance *o = object(make_class("Point"), sizeof(*o));
	struct dict *d = make_dict(NULL, NULL, NULL, 0);

	(void)state;
	o->dict = at(d);
	if (old) {
		((struct old_keys *)(uintptr_t)d->keys)->size = (uint64_t)1 << 39;
		((struct old_keys *)(uintptr_t)d->keys)->n = ((uint64_t)1 << 39) - 1;
	} else {
		((struct keys *)(uintptr_t)d->keys)->log2_size = ((struct keys *)(uintptr_t)d->keys)->log2_bytes = 39;
		((struct keys *)(uintptr_t)d->keys)->n = ((uint64_t)1 << 39) - 1;
	}
	alarm(10);
	assert_true(show(at(o), 100) > 0);
	assert_string_equal(shown, "Point(...");
	alarm(0);
	drop(kept);
}

/* Python holds 2.0 ** 63 for another key than 2 ** 63 - 1. */
static void float_keys(void **state)
{
	unsigned kept = npieces;
	struct { uint64_t refs, type; double v; } *f = object(&float_type, sizeof(*f));
	static const struct { double v; int64_t key; bool same; } rows[] = {
		{ 2, 2, true }, { 2.5, 2, false }, { 0x1p53, (int64_t)1 << 53, true }, { 0x1p53, ((int64_t)1 << 53) + 1, false },
		{ 0x1p63, INT64_MAX, false }, { -0x1p63, INT64_MIN, true }, { 1e300, INT64_MAX, false }, { -0.0, 0, true },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint64_t key = at(f), given = at(none), value;
		struct attribute_key k;
		struct object dict;

		f->v = rows[i].v;
		attribute_number_key(&k, rows[i].key);
		assert_int_equal(object_open(object_reader(), at(make_dict(&key, &given, &k.hash, 1)), &dict), 0);
		assert_int_equal(attribute_item(&dict, &k, &value), rows[i].same ? 0 : ABI_FAULT_VALUE_NONE);
	}
	drop(kept);
}

static void list_ends(void **state)
{
	unsigned kept = npieces;
	struct list *l = object(&list_type, sizeof(*l));
	uint64_t items[3] = { 8, 16, 24 }, value;
	static const uint64_t sizes[] = { 3, 0, (uint64_t)1 << 63, UINT64_MAX, INT64_MAX };
	struct attribute_key k;
	struct object o;

	(void)state;
	l->items = at(items);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		l->v.size = sizes[i];
		assert_int_equal(object_open(object_reader(), at(l), &o), 0);
		for (int n = -4; n < 4; n++) {
			attribute_number_key(&k, n);
			if (sizes[i] == 3 && n >= -3 && n < 3) {
				assert_int_equal(attribute_item(&o, &k, &value), 0);
				assert_int_equal(value, 8 * (n < 0 ? n + 4 : n + 1));
			} else if (sizes[i] <= 3) {
				assert_int_equal(attribute_item(&o, &k, &value), ABI_FAULT_VALUE_NONE);
			} else {
				attribute_item(&o, &k, &value);
			}
		}
	}
	drop(kept);
}

/* The agent reads what it has been given, whatever that says; it ends, and writes where it may. */
static void corrupt(void **state)
{
	unsigned kept = npieces;

	(void)state;
	for (unsigned round = 0; round < 150; round++) {
		struct attribute_key k;
		uint64_t o, value;
		int64_t number;
		struct object open;

		used = 0;
		o = any_value(0);
		for (unsigned n = 0; n < 15 && npieces > kept; n++) {
			unsigned in = kept + any(npieces - kept);
			size_t off = any((uint32_t)pieces[in].size);
			uint8_t was = pieces[in].p[off];

			pieces[in].p[off] = any(2) ? (uint8_t)any(256) : was ^ (uint8_t)(1 << any(8));
			alarm(60);
			show(o, 1 + any(600));
			if (!object_open(object_reader(), o, &open)) {
				attribute_text_key(&k, "a1", 2);
				attribute_find(&open, &k, &value);
				attribute_item(&open, &k, &value);
				attribute_number_key(&k, -1);
				attribute_item(&open, &k, &value);
				object_int(&open, &number);
				object_is_text(&open, "a1", 2);
			}
			if (any(2))
				pieces[in].p[off] = was;
		}
		drop(kept);
	}
	alarm(0);
}

/* --- set-up ------------------------------------------------------------------------------------------- */

static void set_layout(void)
{
	agent.py.none = (struct pyobj *)(void *)none;
	agent.py.type_slot = 1;
	agent.py.minor = old ? 9 : 13;
	agent.py._PyUnicode_IsPrintable = is_printable;
	agent.objects = (struct object_state){
		.asked = true, .type_flags = offsetof(struct type, flags), .type_name = offsetof(struct type, name),
		.size = offsetof(struct var, size), .int_digits = sizeof(struct var), .int_tagged = !old,
		.str_length = offsetof(struct str, length), .str_state = offsetof(struct str, state), .str_ascii = sizeof(struct str),
		.str_other = sizeof(struct str) + 24, .str_kind = 2, .bytes_data = sizeof(struct var) + 8,
		.tuple_items = sizeof(struct var), .str_type = at(&str_type), .int_type = at(&int_type), .bool_type = at(&bool_type),
		.float_type = at(&float_type), .function_type = at(&function_type), .member_type = at(&member_type),
		.set_type = at(&set_type), .frozenset_type = at(&frozenset_type), .none = at(none), .yes = at(yes), .no = at(no),
		.ellipsis = at(ellipsis), .not_implemented = at(not_implemented), .float_value = 16,
		.list_items = offsetof(struct list, items), .type_mro = offsetof(struct type, mro), .type_base = offsetof(struct type, base),
		.type_qualname = offsetof(struct type, qualname), .type_keys = offsetof(struct type, keys), .type_dealloc = 4711,
		.keys_form = old ? OBJECT_KEYS_SIZE : OBJECT_KEYS_LOG2, .values_form = old ? OBJECT_VALUES_PLAIN : OBJECT_VALUES_BEHIND,
		.has_sets = true, .hash = hash_of,
	};
}

static int set_up(void **state)
{
	static const struct { struct type *type; const char *called; uint64_t flags; } rows[] = {
		{ &type_type, "type", TYPE_TYPE }, { &none_type, "NoneType", 0 }, { &int_type, "int", TYPE_INT },
		{ &bool_type, "bool", TYPE_INT }, { &str_type, "str", TYPE_STR }, { &bytes_type, "bytes", TYPE_BYTES },
		{ &float_type, "float", 0 }, { &list_type, "list", TYPE_LIST }, { &tuple_type, "tuple", TYPE_TUPLE },
		{ &dict_type, "dict", TYPE_DICT }, { &set_type, "set", 0 }, { &frozenset_type, "frozenset", 0 },
		{ &function_type, "function", 0 }, { &member_type, "member_descriptor", 0 },
	};

	(void)state;
	for (unsigned k = 0; k < sizeof(rows) / sizeof(*rows); k++)
		make_type(rows[k].type, rows[k].called, NULL, rows[k].flags);
	none[1] = at(&none_type);
	ellipsis[1] = not_implemented[1] = at(&none_type);
	yes[1] = no[1] = at(&bool_type);
	set_layout();
	return 0;
}

static int set_up_old(void **state)
{
	old = true;
	return set_up(state);
}

static int tear_down(void **state)
{
	(void)state;
	drop(0);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wide_index),
		cmocka_unit_test(endless),
		cmocka_unit_test(float_keys),
		cmocka_unit_test(list_ends),
		cmocka_unit_test(shows),
		cmocka_unit_test(finds),
		cmocka_unit_test(finds_without_hash),
		cmocka_unit_test(corrupt),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down) + cmocka_run_group_tests(tests, set_up_old, tear_down);
}

/* SPDX-License-Identifier: MIT */
#include "agent/attribute.h"

#include "agent/agent.h"
#include "agent/reads.h"
#include "vm/memory.h"

enum { TYPE_MANAGED = 1 << 4, TYPE_INLINE = 1 << 2 };	/* Py_TPFLAGS_MANAGED_DICT (3.11), _INLINE_VALUES (3.13) */
enum { DICT_KEYS = 16, DICT_VALUES = 24, TYPE_BASICSIZE = 16, TYPE_ITEMSIZE = 24 };	/* from object_body() on */
enum { ENTRY_GENERAL = 24, ENTRY_TEXT = 16 };		/* hash, key, value; key, value */
enum { KEYS_GENERAL = 0, KEYS_MAX = 3 };		/* kinds of tables */
enum { INDEX_LOG2_MAX = 3 };				/* an index has at most 8 bytes */
enum { EMPTY = -1 };
enum { PROBES = 1000, SCANNED = 4096, CLASSES = 64, SHARED_MAX = 64 };
enum { MEMBER_OBJECT = 6, MEMBER_OBJECT_EX = 16 };	/* PyMemberDef.type: a PyObject * */

static bool read_at(struct shm_run *r, uint64_t addr, void *dst, uint64_t size)
{
	return addr && !memory_read(r, dst, size, addr);
}

static uint64_t word_at(struct shm_run *r, uint64_t addr)
{
	uint64_t w;

	return read_at(r, addr, &w, sizeof(w)) ? w : 0;
}

/* --- keys --------------------------------------------------------------------------------------------- */

/* Decode one UTF-8 character at @s.  Its number of bytes; 0: invalid. */
static uint32_t take_char(const char *s, const char *end, uint32_t *c)
{
	uint32_t first = (uint8_t)*s, n = first < 0x80 ? 1 : first < 0xc0 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;

	if (!n || n > (uint64_t)(end - s))
		return 0;
	*c = n == 1 ? first : first & (0x7fu >> n);
	for (uint32_t k = 1; k < n; k++)
		*c = *c << 6 | ((uint8_t)s[k] & 0x3f);
	return n;
}

/* A str's hash is the hash of its characters, each stored in as many bytes as the widest needs. */
static bool hash_text(const char *text, uint32_t length, uint64_t *ret)
{
	uint32_t chars[OBJECT_NAME + 1], n = 0, most = 0, used;
	uint8_t packed[4 * (OBJECT_NAME + 1)];
	uint32_t width;

	if (!object_at->hash)
		return false;
	for (const char *s = text; s < text + length; s += used, n++) {
		used = take_char(s, text + length, &chars[n]);
		if (!used)
			return false;
		most = chars[n] > most ? chars[n] : most;
	}
	width = most < 0x100 ? 1 : most < 0x10000 ? 2 : 4;
	for (uint32_t k = 0; k < n; k++)
		memcpy(packed + k * width, &chars[k], width);
	*ret = (uint64_t)object_at->hash(packed, (ssize_t)(n * width));
	return true;
}

void attribute_text_key(struct attribute_key *ret, const char *text, uint32_t length)
{
	*ret = (struct attribute_key){ .text = text, .length = length };
	ret->no_hash = length > OBJECT_NAME || !hash_text(text, length, &ret->hash);
}

/* hash(int): modulo a prime; -1 is reserved for errors and becomes -2. */
void attribute_number_key(struct attribute_key *ret, int64_t number)
{
	const uint64_t prime = ((uint64_t)1 << 61) - 1;
	uint64_t rest = (number < 0 ? 0 - (uint64_t)number : (uint64_t)number) % prime;

	*ret = (struct attribute_key){ .number = number, .hash = number < 0 ? 0 - rest : rest };
	if (ret->hash == UINT64_MAX)
		ret->hash = UINT64_MAX - 1;
}

/*
 * Is the key @addr equal to @k?  @same_hash: their hashes are known to be equal.  0: yes; ABI_FAULT_VALUE_NONE: no;
 * ABI_FAULT_VALUE_COMPUTED: only its own __eq__ can tell.
 */
static int compare(struct shm_run *r, uint64_t addr, const struct attribute_key *k, bool same_hash)
{
	struct object o;
	int64_t number;
	double d;

	if (object_open(r, addr, &o))
		return ABI_FAULT_BADADDR;
	if (o.type == object_at->str_type)
		return k->text && object_is_text(&o, k->text, k->length) ? 0 : ABI_FAULT_VALUE_NONE;
	if (o.type == object_at->int_type || o.type == object_at->bool_type)
		return !k->text && !object_int(&o, &number) && number == k->number ? 0 : ABI_FAULT_VALUE_NONE;
	if (o.type == object_at->float_type)
		/* Below 2^63, which INT64_MAX becomes as a double, d is the number exactly if it also is that as an int64_t. */
		return !k->text && object_read(&o, &d, sizeof(d), object_at->float_value) && d == (double)k->number && d < 0x1p63 &&
			       (int64_t)d == k->number ? 0 : ABI_FAULT_VALUE_NONE;
	if (o.type == (uint64_t)(uintptr_t)agent_type(agent.py.none) || o.flags & (TYPE_TUPLE | TYPE_BYTES))
		return ABI_FAULT_VALUE_NONE;	/* equal to no text and no number */
	return same_hash ? ABI_FAULT_VALUE_COMPUTED : ABI_FAULT_VALUE_NONE;
}

/* --- tables ------------------------------------------------------------------------------------------- */

/* Open the keys of a dictionary, or those shared by the instances of a class. */
static int open_keys(struct shm_run *r, uint64_t keys, struct attribute_table *ret)
{
	struct { uint64_t refs; uint8_t log2_size, log2_bytes, kind, pad; uint32_t version; uint64_t usable, nentries; } now;
	struct { uint64_t refs, size, lookup, usable, nentries; } then;

	*ret = (struct attribute_table){ .run = r };
	if (object_at->keys_form == OBJECT_KEYS_LOG2) {
		if (!read_at(r, keys, &now, sizeof(now)))
			return ABI_FAULT_BADADDR;
		if (now.log2_size > 40 || now.log2_bytes < now.log2_size || now.log2_bytes - now.log2_size > INDEX_LOG2_MAX ||
		    now.kind >= KEYS_MAX)
			return ABI_FAULT_BADADDR;
		ret->indices = keys + sizeof(now);
		ret->log2_size = now.log2_size;
		ret->index_width = 1u << (now.log2_bytes - now.log2_size);
		ret->entries = ret->indices + ((uint64_t)1 << now.log2_bytes);
		ret->entry_size = now.kind == KEYS_GENERAL ? ENTRY_GENERAL : ENTRY_TEXT;
		ret->nentries = now.nentries;
	} else {
		if (!read_at(r, keys, &then, sizeof(then)))
			return ABI_FAULT_BADADDR;
		if (!then.size || then.size & (then.size - 1) || then.size >> 40)
			return ABI_FAULT_BADADDR;
		ret->indices = keys + sizeof(then);
		ret->log2_size = (uint32_t)__builtin_ctzll(then.size);
		ret->index_width = then.size <= 0xff ? 1 : then.size <= 0xffff ? 2 : then.size <= 0xffffffff ? 4 : 8;
		ret->entries = ret->indices + (then.size * ret->index_width < 8 ? 8 : then.size * ret->index_width);
		ret->entry_size = ENTRY_GENERAL;
		ret->nentries = then.nentries;
	}
	return ret->nentries >> ret->log2_size ? ABI_FAULT_BADADDR : 0;
}

/* Add the values at @values, which are separate from the keys. */
static int add_values(struct attribute_table *t, uint64_t values)
{
	struct { uint8_t capacity, size, embedded, valid; uint32_t pad; } head;
	uint8_t before[2];

	switch (object_at->values_form) {
	case OBJECT_VALUES_PLAIN:
		t->values = values;
		return 0;
	case OBJECT_VALUES_BEFORE:
		if (!read_at(t->run, values - 2, before, sizeof(before)))
			return ABI_FAULT_BADADDR;
		t->values = values;
		t->order = values - 3;
		t->order_step = -1;
		t->norder = before[0];
		return 0;
	default:
		if (!read_at(t->run, values, &head, sizeof(head)))
			return ABI_FAULT_BADADDR;
		t->values = values + sizeof(head);
		t->order = t->values + 8 * (uint64_t)head.capacity;
		t->order_step = 1;
		t->norder = head.size;
		if (t->nentries > head.capacity)
			t->nentries = head.capacity;
		return head.size <= head.capacity && head.capacity < SHARED_MAX ? 0 : ABI_FAULT_BADADDR;
	}
}

int attribute_dict(const struct object *dict, struct attribute_table *ret)
{
	uint64_t values;
	int err;

	if (!(dict->flags & TYPE_DICT))
		return ABI_FAULT_VALUE_KIND;
	if (!object_at->keys_form)
		return ABI_FAULT_VALUE_UNKNOWN;
	err = open_keys(dict->run, object_word(dict, object_body() + DICT_KEYS), ret);
	values = object_word(dict, object_body() + DICT_VALUES);
	return err || !values ? err : add_values(ret, values);
}

uint64_t attribute_count(const struct attribute_table *t)
{
	return t->order ? t->norder : t->nentries;
}

/* Read entry @ix of the table. */
static int read_entry(const struct attribute_table *t, uint64_t ix, uint64_t *hash, uint64_t *key, uint64_t *value)
{
	uint64_t words[3] = { 0 };
	bool general = t->entry_size == ENTRY_GENERAL;

	if (ix >= t->nentries)
		return ABI_FAULT_VALUE_NONE;
	if (!read_at(t->run, t->entries + ix * t->entry_size, words, t->entry_size))
		return ABI_FAULT_BADADDR;
	*hash = words[0];
	*key = words[general];
	*value = words[general + 1];
	if (t->values && !read_at(t->run, t->values + 8 * ix, value, sizeof(*value)))
		return ABI_FAULT_BADADDR;
	return *key && *value ? 0 : ABI_FAULT_VALUE_NONE;
}

int attribute_entry(const struct attribute_table *t, uint64_t n, uint64_t *key, uint64_t *value)
{
	uint64_t hash;
	uint8_t ix;

	if (!t->order)
		return read_entry(t, n, &hash, key, value);
	if (!read_at(t->run, t->order + (uint64_t)((int64_t)n * t->order_step), &ix, 1))
		return ABI_FAULT_BADADDR;
	return read_entry(t, ix, &hash, key, value);
}

static int try_entry(const struct attribute_table *t, uint64_t ix, const struct attribute_key *k, uint64_t *value)
{
	uint64_t hash, key;
	bool has_hash = t->entry_size == ENTRY_GENERAL && !k->no_hash;
	int err = read_entry(t, ix, &hash, &key, value);

	if (err)
		return err;
	return has_hash && hash != k->hash ? ABI_FAULT_VALUE_NONE : compare(t->run, key, k, has_hash);
}

static int scan(const struct attribute_table *t, const struct attribute_key *k, uint64_t *value)
{
	int err = ABI_FAULT_VALUE_NONE;

	for (uint64_t ix = 0; ix < t->nentries && err == ABI_FAULT_VALUE_NONE; ix++)
		err = ix < SCANNED ? try_entry(t, ix, k, value) : ABI_FAULT_VALUE_UNKNOWN;
	return err;
}

/* Probes the same sequence of indices as CPython for this hash (Objects/dictobject.c). */
int attribute_lookup(const struct attribute_table *t, const struct attribute_key *k, uint64_t *value)
{
	uint64_t mask = ((uint64_t)1 << t->log2_size) - 1, at = k->hash & mask, perturb = k->hash;

	if (k->no_hash)
		return scan(t, k, value);
	for (unsigned n = 0; n < PROBES; n++) {
		int64_t ix = 0;
		int err;

		if (!read_at(t->run, t->indices + at * t->index_width, &ix, t->index_width))
			return ABI_FAULT_BADADDR;
		ix = (int64_t)((uint64_t)ix << (64 - 8 * t->index_width)) >> (64 - 8 * t->index_width);
		if (ix == EMPTY)
			return ABI_FAULT_VALUE_NONE;
		err = ix < 0 ? ABI_FAULT_VALUE_NONE : try_entry(t, (uint64_t)ix, k, value);
		if (err != ABI_FAULT_VALUE_NONE)
			return err;
		perturb >>= 5;
		at = (at * 5 + perturb + 1) & mask;
	}
	return ABI_FAULT_VALUE_UNKNOWN;
}

/* --- instances ---------------------------------------------------------------------------------------- */

static int dict_at(struct shm_run *r, uint64_t addr, struct attribute_table *ret)
{
	uint64_t dict = word_at(r, addr);
	struct object d;

	if (!dict)
		return ABI_FAULT_VALUE_NONE;
	return object_open(r, dict, &d) ? ABI_FAULT_BADADDR : attribute_dict(&d, ret);
}

/* The values of @o, with the keys shared by its class. */
static int shared(const struct object *o, uint64_t values, struct attribute_table *ret)
{
	uint64_t keys = word_at(o->run, o->type + object_at->type_keys);
	int err = open_keys(o->run, keys, ret);

	return err ? err : add_values(ret, values);
}

/* Instances whose dictionary the interpreter manages, from 3.11 on. */
static int managed(const struct object *o, struct attribute_table *ret)
{
	uint64_t basic, word;
	uint8_t valid;

	switch (object_at->managed_form) {
	case OBJECT_MANAGED_TWO:
		word = word_at(o->run, o->addr - 32);
		return word ? shared(o, word, ret) : dict_at(o->run, o->addr - 24, ret);
	case OBJECT_MANAGED_TAGGED:
		word = word_at(o->run, o->addr - 24);
		return word & 1 ? shared(o, word + 1, ret) : dict_at(o->run, o->addr - 24, ret);
	case OBJECT_MANAGED_INLINE:
		/* Without a GIL: if there is a dictionary, its lock is that of the values, too. */
		if (agent.py.free_threaded && (word = word_at(o->run, o->addr - 8)))
			reads_open(o->run, word);
		basic = word_at(o->run, o->type + object_body() + TYPE_BASICSIZE);
		if (o->flags & TYPE_INLINE && read_at(o->run, o->addr + basic + 3, &valid, 1) && valid)
			return shared(o, o->addr + basic, ret);
		return dict_at(o->run, o->addr - (agent.py.free_threaded ? 8 : 24), ret);	/* there are no words for gc */
	default:
		return ABI_FAULT_VALUE_UNKNOWN;
	}
}

int attribute_instance(const struct object *o, struct attribute_table *ret)
{
	int64_t off, size, basic, item;

	if (!object_at->type_base)
		return ABI_FAULT_VALUE_UNKNOWN;
	if (o->flags & TYPE_MANAGED && object_at->managed_form)
		return managed(o, ret);
	off = (int64_t)word_at(o->run, o->type + object_at->type_base + 32);
	if (off >= 0)
		return off ? dict_at(o->run, o->addr + (uint64_t)off, ret) : ABI_FAULT_VALUE_NONE;
	/* Counted from the end of an object of variable size (3.9 to 3.11).  An int's size has the int's sign. */
	size = (int64_t)object_size(o);
	basic = (int64_t)word_at(o->run, o->type + object_body() + TYPE_BASICSIZE);
	item = (int64_t)word_at(o->run, o->type + object_body() + TYPE_ITEMSIZE);
	size = size < 0 ? -size : size;
	if (size >> 40 || basic < 16 || basic >> 20 || item < 0 || item >> 20)
		return ABI_FAULT_BADADDR;
	size = (basic + size * item + 7) & ~(int64_t)7;
	return dict_at(o->run, o->addr + (uint64_t)(size + off), ret);
}

/* --- classes ------------------------------------------------------------------------------------------ */

bool attribute_is_a(struct shm_run *r, uint64_t type, uint64_t base)
{
	for (unsigned n = 0; type && n < CLASSES; n++) {
		if (type == base)
			return true;
		type = object_at->type_base ? word_at(r, type + object_at->type_base) : 0;
	}
	return false;
}

uint64_t attribute_basic_size(struct shm_run *r, uint64_t type)
{
	return word_at(r, type + object_body() + TYPE_BASICSIZE);
}

/* From 3.12 on, the dictionaries of the interpreter's own types are not in the types. */
static uint64_t dict_of_type(struct shm_run *r, uint64_t type)
{
	uint64_t dict = word_at(r, type + object_at->type_base + 8);

	for (unsigned k = 0; !dict && k < object_at->nbuiltins; k++)
		if (object_at->builtins[k].type == type)
			dict = object_at->builtins[k].dict;
	return dict;
}

int attribute_in_classes(struct shm_run *r, uint64_t type, const struct attribute_key *k, uint64_t *value)
{
	struct object mro, dict;
	struct attribute_table t;
	uint64_t n;

	if (!object_at->type_mro || !object_at->type_base || !object_at->keys_form)
		return ABI_FAULT_VALUE_UNKNOWN;
	if (object_open(r, word_at(r, type + object_at->type_mro), &mro) || !(mro.flags & TYPE_TUPLE))
		return ABI_FAULT_BADADDR;
	n = object_size(&mro);
	for (uint64_t c = 0; c < n && c < CLASSES; c++) {
		uint64_t class = object_item(&mro, c);
		int err = class ? 0 : ABI_FAULT_BADADDR;

		if (!err)
			err = object_open(r, dict_of_type(r, class), &dict) ? ABI_FAULT_VALUE_UNKNOWN : attribute_dict(&dict, &t);
		if (!err)
			err = attribute_lookup(&t, k, value);
		if (err != ABI_FAULT_VALUE_NONE)
			return err;
	}
	return n > CLASSES ? ABI_FAULT_VALUE_UNKNOWN : ABI_FAULT_VALUE_NONE;
}

int attribute_slot(const struct object *o, const struct object *d, uint64_t *value)
{
	struct { uint64_t name; int32_t type, pad; int64_t off; } member;

	if (!read_at(o->run, object_word(d, object_at->descr_member), &member, sizeof(member)))
		return ABI_FAULT_BADADDR;
	if (member.type != MEMBER_OBJECT && member.type != MEMBER_OBJECT_EX)
		return ABI_FAULT_VALUE_COMPUTED;
	*value = word_at(o->run, o->addr + (uint64_t)member.off);
	return *value ? 0 : ABI_FAULT_VALUE_NONE;
}

enum descriptor { PLAIN, GETS, SETS };

static enum descriptor descriptor_of(struct shm_run *r, const struct object *d)
{
	if (word_at(r, d->type + object_at->type_base + 24))
		return SETS;
	return word_at(r, d->type + object_at->type_base + 16) ? GETS : PLAIN;
}

/*
 * Is the class attribute @value usable as it is?  A function is not bound, other descriptors would have to be called.
 */
static int plain_value(struct shm_run *r, uint64_t value)
{
	struct object d;

	if (object_open(r, value, &d))
		return ABI_FAULT_BADADDR;
	return d.type == object_at->function_type || descriptor_of(r, &d) == PLAIN ? 0 : ABI_FAULT_VALUE_COMPUTED;
}

/* An attribute of every exception, which the interpreter computes from these members. */
static int of_exception(const struct object *o, const struct attribute_key *k, uint64_t *value)
{
	for (unsigned n = 0; n < OBJECT_EXCEPTION; n++) {
		const char *name = object_exception_names[n];

		if (strlen(name) != k->length || memcmp(name, k->text, k->length) || !object_at->exception[n])
			continue;
		reads_loose();
		*value = object_word(o, object_at->exception[n]);
		if (!*value)
			*value = (uint64_t)(uintptr_t)agent.py.none;
		return 0;
	}
	return ABI_FAULT_VALUE_NONE;
}

/* For a missing attribute: would the program's __getattr__ be called? */
static int missing(struct shm_run *r, uint64_t type)
{
	struct attribute_key k;
	uint64_t value;

	attribute_text_key(&k, "__getattr__", 11);
	return attribute_in_classes(r, type, &k, &value) ? ABI_FAULT_VALUE_NONE : ABI_FAULT_VALUE_COMPUTED;
}

int attribute_find(const struct object *o, const struct attribute_key *k, uint64_t *value)
{
	uint64_t found, own;
	struct attribute_table t;
	struct object d;
	int err, err_own;

	if (o->flags & TYPE_EXCEPTION && !of_exception(o, k, value))
		return 0;
	err = attribute_in_classes(o->run, o->type, k, &found);
	if (err && err != ABI_FAULT_VALUE_NONE)
		return err;
	if (!err && object_open(o->run, found, &d))
		return ABI_FAULT_BADADDR;
	if (!err && descriptor_of(o->run, &d) == SETS)
		return d.type == object_at->member_type ? attribute_slot(o, &d, value) : ABI_FAULT_VALUE_COMPUTED;
	if (o->flags & TYPE_TYPE) {
		err_own = attribute_in_classes(o->run, o->addr, k, &own);
		if (!err_own)
			err_own = plain_value(o->run, own);
	} else {
		err_own = attribute_instance(o, &t);
		if (!err_own)
			err_own = attribute_lookup(&t, k, &own);
	}
	if (err_own != ABI_FAULT_VALUE_NONE) {
		*value = own;
		return err_own;
	}
	if (err)
		return missing(o->run, o->type);
	*value = found;
	return plain_value(o->run, found);
}

/* --- items -------------------------------------------------------------------------------------------- */

int attribute_list(const struct object *o, uint64_t *items, uint64_t *n)
{
	if (!(o->flags & TYPE_LIST))
		return ABI_FAULT_VALUE_KIND;
	if (!object_at->list_items)
		return ABI_FAULT_VALUE_UNKNOWN;
	*n = object_size(o);
	*items = object_word(o, object_at->list_items);
	return 0;
}

int attribute_item(const struct object *o, const struct attribute_key *k, uint64_t *value)
{
	struct attribute_table t;
	uint64_t items = 0, n = 0;
	uint64_t at = (uint64_t)k->number;
	int err;

	if (o->flags & TYPE_DICT) {
		err = attribute_dict(o, &t);
		return err ? err : attribute_lookup(&t, k, value);
	}
	if (k->text || !(o->flags & (TYPE_LIST | TYPE_TUPLE)))
		return ABI_FAULT_VALUE_KIND;
	err = o->flags & TYPE_LIST ? attribute_list(o, &items, &n) : 0;
	if (err)
		return err;
	if (o->flags & TYPE_TUPLE)
		n = object_size(o);
	at = k->number < 0 ? at + n : at;		/* of too small a number: more than n */
	if (at >= n)
		return ABI_FAULT_VALUE_NONE;
	*value = o->flags & TYPE_TUPLE ? object_item(o, at) : word_at(o->run, items + 8 * at);
	return *value ? 0 : ABI_FAULT_BADADDR;
}

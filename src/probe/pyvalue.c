#include "probe/pyvalue.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/python.h"
#include "base/now.h"
#include "base/strbuf.h"
#include "probe/pyoffsets.h"
#include "probe/remote.h"

enum {
	DEPTH = 6, NODES = 400,		/* of one value */
	CHARS = 1 << 10,		/* of a text */
	NAME_BYTES = 256,
	ITEMS_MAX = 1 << 24,
	SHARED_MAX = 64,		/* attributes whose names the instances of a class share */
	BASES_MAX = 32,
	INT_DIGITS = 4,			/* of 30 bits each */
};

/* Offsets behind an object's header. */
enum {
	SIZE = 0, LIST_ITEMS = 8, DIGITS = 8, FLOAT = 0, DICT_KEYS = 16, DICT_VALUES = 24,
	SET_USED = 8, SET_MASK = 16, SET_TABLE = 24, TYPE_NAME = 8, TYPE_BASIC = 16, TYPE_ITEM = 24, TYPE_FLAGS = 152,
	TYPE_BASE = 240, TYPE_DICT = 248, TYPE_DICT_OFFSET = 272, TYPE_MRO = 328,
	EXCEPTION_ARGS = 8,
};

/* In a class of the program: the keys that its instances share; before them is its qualified name. */
static uint32_t cached_keys(const struct pyvalues *v)
{
	uint32_t at = v->py->version < 0x030a ? 864 : v->py->version < 0x030c ? 872 : v->py->version < 0x030f ? 880 : 888;

	return at + v->head - 16;
}

enum {
	FLAG_INLINE = 1 << 2, FLAG_MANAGED = 1 << 4, FLAG_HEAP = 1 << 9, FLAG_INT = 1 << 24, FLAG_LIST = 1 << 25,
	FLAG_TUPLE = 1 << 26, FLAG_BYTES = 1 << 27, FLAG_STR = 1 << 28, FLAG_DICT = 1 << 29, FLAG_EXCEPTION = 1 << 30,
};
#define FLAG_TYPE (1ull << 31)

struct show {
	const struct pyvalues *v;
	struct strbuf *out;
	size_t begin, most;
	unsigned int nodes, depth;
	uint64_t open[DEPTH];		/* the objects that contain the current one */
	bool full;
};

/* --- objects ------------------------------------------------------------------------------------------- */

static uint64_t word(const struct pyvalues *v, uint64_t addr)
{
	return addr ? remote_word(v->mem, addr) : 0;
}

/* An object's type; 0: it is no object. */
static uint64_t type_of(const struct pyvalues *v, uint64_t obj)
{
	uint64_t type = obj && obj % 8 == 0 ? word(v, obj + v->py->type) : 0, meta;

	if (!type || type % 8)
		return 0;
	/* The type of a type is type, or derived from it. */
	meta = word(v, type + v->py->type);
	for (int i = 0; meta && meta % 8 == 0 && i < BASES_MAX; i++, meta = word(v, meta + v->head + TYPE_BASE))
		if (meta == v->metatype)
			return type;
	return 0;
}

static uint64_t flags_of_type(const struct pyvalues *v, uint64_t type)
{
	return type ? word(v, type + v->head + TYPE_FLAGS) : 0;
}

static bool type_name(const struct pyvalues *v, uint64_t type, char name[NAME_BYTES])
{
	uint64_t at = type ? word(v, type + v->head + TYPE_NAME) : 0;
	size_t n = 0, most = REMOTE_PAGE - at % REMOTE_PAGE;

	/* The name may be before memory that cannot be read. */
	most = most < NAME_BYTES ? most : NAME_BYTES - 1;
	if (at && remote_get(v->mem, at, name, most))
		n = strnlen(name, most);
	while (n == most && n + 1 < NAME_BYTES && remote_get(v->mem, at + n, name + n, 1) && name[n])
		most = ++n;
	name[n] = '\0';
	return n;
}

static bool is_derived(const struct pyvalues *v, uint64_t type, const char *base)
{
	char name[NAME_BYTES];

	for (int i = 0; type && type % 8 == 0 && i < BASES_MAX; i++, type = word(v, type + v->head + TYPE_BASE))
		if (!(flags_of_type(v, type) & FLAG_HEAP) && type_name(v, type, name) && !strcmp(name, base))
			return true;
	return false;
}

bool pyvalue_type_is(const struct pyvalues *v, uint64_t obj, const char *name)
{
	char text[NAME_BYTES];

	return type_name(v, type_of(v, obj), text) && !strcmp(text, name);
}

bool pyvalue_is_a(const struct pyvalues *v, uint64_t obj, const char *name, uint64_t *size)
{
	uint64_t type = type_of(v, obj);
	char text[NAME_BYTES];

	for (int i = 0; type && type % 8 == 0 && i < BASES_MAX; i++, type = word(v, type + v->head + TYPE_BASE))
		if (type_name(v, type, text) && !strcmp(text, name)) {
			*size = word(v, type + v->head + TYPE_BASIC);
			return true;
		}
	return false;
}

int pyvalue_init(struct pyvalues *v, const struct remote *mem, const struct abi_python *py)
{
	uint64_t mro;

	*v = (struct pyvalues){ .mem = mem, .py = py, .head = py->type + 8 };
	v->metatype = word(v, py->code_type + py->type);
	/* 3.14 has a hash before the items.  A type's method resolution order, a tuple, begins with the type itself. */
	mro = word(v, py->code_type + v->head + TYPE_MRO);
	for (v->tuple_items = v->head + 8; v->tuple_items <= v->head + 24; v->tuple_items += 8)
		if (mro && word(v, mro + v->tuple_items) == py->code_type)
			return 0;
	return -ENOENT;
}

uint64_t pyvalue_tuple_size(const struct pyvalues *v, uint64_t tuple)
{
	uint64_t n = flags_of_type(v, type_of(v, tuple)) & FLAG_TUPLE ? word(v, tuple + v->head + SIZE) : 0;

	return n <= ITEMS_MAX ? n : 0;
}

uint64_t pyvalue_tuple_item(const struct pyvalues *v, uint64_t tuple, uint64_t i)
{
	return i < pyvalue_tuple_size(v, tuple) ? word(v, tuple + v->tuple_items + 8 * i) : 0;
}

/* The characters of a str: where, how many, bytes of each. */
static bool find_text(const struct pyvalues *v, uint64_t str, uint64_t *at, uint64_t *n, uint32_t *width)
{
	enum { COMPACT = 0x20, ASCII = 0x40 };
	uint64_t state;

	if (!(flags_of_type(v, type_of(v, str)) & FLAG_STR))
		return false;
	state = word(v, str + v->py->state);
	*n = word(v, str + v->py->length);
	*width = state >> 2 & 7;
	/* An instance of a class derived from str has its characters elsewhere. */
	*at = !(state & COMPACT) ? word(v, str + v->py->other_data) : str + (state & ASCII ? v->py->ascii_data : v->py->other_data);
	return *at && (*width == 1 || *width == 2 || *width == 4) && *n <= 1ull << 40;
}

static void put_utf8(struct strbuf *to, uint32_t c)
{
	if (c < 0x80) {
		strbuf_putc(to, (char)c);
	} else if (c < 0x800) {
		strbuf_putc(to, (char)(0xc0 | c >> 6));
		strbuf_putc(to, (char)(0x80 | (c & 0x3f)));
	} else {
		strbuf_putc(to, (char)(c < 0x10000 ? 0xe0 | c >> 12 : 0xf0 | (c >> 18 & 7)));
		if (c >= 0x10000)
			strbuf_putc(to, (char)(0x80 | (c >> 12 & 0x3f)));
		strbuf_putc(to, (char)(0x80 | (c >> 6 & 0x3f)));
		strbuf_putc(to, (char)(0x80 | (c & 0x3f)));
	}
}

/* Is it a character that a name or text shows as it is? */
static bool is_shown(uint32_t c)
{
	return (c >= ' ' && c < 0x7f) || (c > 0xa0 && c != 0xad && (c < 0x2028 || c > 0x202e) && (c < 0xd800 || c > 0xdfff) &&
					  c != 0xfeff && c <= 0x10ffff);
}

static uint32_t char_at(const uint8_t *bytes, uint64_t i, uint32_t width)
{
	uint32_t c = 0;

	memcpy(&c, bytes + i * width, width);
	return c;
}

bool pyvalue_text(const struct pyvalues *v, uint64_t str, size_t most, struct strbuf *ret)
{
	uint8_t bytes[4 * CHARS];
	size_t begin = ret->len;
	uint32_t width;
	uint64_t at, n;

	if (!find_text(v, str, &at, &n, &width))
		return false;
	n = n > CHARS ? CHARS : n;
	if (n && !remote_get(v->mem, at, bytes, n * width))
		return false;
	for (uint64_t i = 0; i < n && ret->len - begin + 4 <= most; i++)
		put_utf8(ret, is_shown(char_at(bytes, i, width)) ? char_at(bytes, i, width) : '?');
	return true;
}

static bool text_is(const struct pyvalues *v, uint64_t str, const char *text)
{
	struct strbuf got = { 0 };
	bool ret = pyvalue_text(v, str, NAME_BYTES, &got) && !strcmp(strbuf_str(&got), text);

	strbuf_fini(&got);
	return ret;
}

/* --- dictionaries -------------------------------------------------------------------------------------- */

/* Entries of 24 bytes (hash, key, value) or of 16 without the hash; or the values apart from the keys. */
struct table {
	uint64_t at, n, size, key;
	uint64_t values, order;		/* order: bytes, the entries in the order in which values were set; 0: as they are */
	int step;
};

static bool open_keys(const struct pyvalues *v, uint64_t keys, struct table *t)
{
	enum { BEHIND_OLD = 40, BEHIND = 32, LOG2_MAX = 40 };
	uint64_t size, head;

	*t = (struct table){ .size = 24, .key = 8 };
	if (!keys)
		return false;
	if (v->py->version < 0x030b) {
		size = word(v, keys + 8);
		if (!size || size > ITEMS_MAX)
			return false;
		t->n = word(v, keys + 32);
		t->at = size * (size <= 0xff ? 1 : size <= 0xffff ? 2 : 4);
		t->at = keys + BEHIND_OLD + (t->at < 8 ? 8 : t->at);
	} else {
		head = word(v, keys + 8);
		if ((head & 0xff) > LOG2_MAX || (head >> 8 & 0xff) > LOG2_MAX + 3)
			return false;
		t->n = word(v, keys + 24);
		t->at = keys + BEHIND + (1ull << (head >> 8 & 0xff));
		if (head >> 16 & 0xff) {
			t->size = 16;
			t->key = 0;
		}
	}
	return t->n <= ITEMS_MAX;
}

static bool add_values(const struct pyvalues *v, uint64_t values, struct table *t)
{
	uint8_t head[4] = { 0 };		/* 3.13: capacity, size, embedded, valid */

	t->values = values;
	if (v->py->version < 0x030b)
		return true;
	if (v->py->version < 0x030d) {
		if (!remote_get(v->mem, values - 2, head, 2))
			return false;
		t->order = values - 3;
		t->step = -1;
		t->n = head[0];
		return t->n <= SHARED_MAX;
	}
	if (!remote_get(v->mem, values, head, sizeof(head)) || head[0] > SHARED_MAX || head[1] > head[0])
		return false;
	t->values = values + 8;
	t->order = t->values + 8ull * head[0];
	t->step = 1;
	t->n = head[1];
	return true;
}

static bool open_dict(const struct pyvalues *v, uint64_t dict, struct table *t)
{
	uint64_t values;

	if (!(flags_of_type(v, type_of(v, dict)) & FLAG_DICT) || !open_keys(v, word(v, dict + v->head + DICT_KEYS), t))
		return false;
	values = word(v, dict + v->head + DICT_VALUES);
	return !values || add_values(v, values, t);
}

static bool entry(const struct pyvalues *v, const struct table *t, uint64_t i, uint64_t *key, uint64_t *value)
{
	uint8_t at;

	if (t->order) {
		if (!remote_get(v->mem, t->order + (uint64_t)((int64_t)i * t->step), &at, 1) || at > SHARED_MAX)
			return false;
		i = at;
	}
	*key = word(v, t->at + i * t->size + t->key);
	*value = t->values ? word(v, t->values + 8 * i) : word(v, t->at + i * t->size + t->key + 8);
	return *key && *value;
}

/* The attributes of an instance (pycore_object.h, _PyObject_ComputedDictPointer). */
static bool open_instance(const struct pyvalues *v, uint64_t obj, struct table *t)
{
	enum { BEFORE = 24, BEFORE_VALUES = 32, BEFORE_FREE = 8 };
	uint64_t type = type_of(v, obj), flags = flags_of_type(v, type), at, keys = word(v, type + cached_keys(v));
	uint64_t basic = word(v, type + v->head + TYPE_BASIC);
	int64_t off = (int64_t)word(v, type + v->head + TYPE_DICT_OFFSET), n;
	uint8_t valid = 0;

	if (!type)
		return false;
	if (v->py->version >= 0x030b && flags & FLAG_MANAGED) {
		if (v->py->version >= 0x030d && flags & FLAG_INLINE && remote_get(v->mem, obj + basic + 3, &valid, 1) && valid)
			return open_keys(v, keys, t) && add_values(v, obj + basic, t);
		if (v->py->version == 0x030b && (at = word(v, obj - BEFORE_VALUES)))
			return open_keys(v, keys, t) && add_values(v, at, t);
		at = word(v, obj - (v->head > 16 ? BEFORE_FREE : BEFORE));
		if (v->py->version == 0x030c && at & 1)
			return open_keys(v, keys, t) && add_values(v, at + 1, t);
		return open_dict(v, at, t);
	}
	if (off < 0) {			/* from the end of an object of variable size */
		n = (int64_t)word(v, obj + v->head + SIZE);
		off += (int64_t)((basic + (uint64_t)(n < 0 ? -n : n) * word(v, type + v->head + TYPE_ITEM) + 7) & ~7ull);
	}
	return off > 0 && off < 1 << 20 && open_dict(v, word(v, obj + (uint64_t)off), t);
}

/* Asked at each item, the clock would take longer than many of them. */
static bool is_late(const struct pyvalues *v, uint64_t i)
{
	enum { EACH = 64 };

	return i % EACH == EACH - 1 && pyvalue_is_late(v);
}

static uint64_t find(const struct pyvalues *v, const struct table *t, const char *key)
{
	uint64_t k, value;

	for (uint64_t i = 0; i < t->n && !is_late(v, i); i++)
		if (entry(v, t, i, &k, &value) && word(v, k + v->py->length) == strlen(key) && text_is(v, k, key))
			return value;
	return 0;
}

uint64_t pyvalue_attribute(const struct pyvalues *v, uint64_t obj, const char *name)
{
	struct table t;

	return open_instance(v, obj, &t) ? find(v, &t, name) : 0;
}

uint64_t pyvalue_item(const struct pyvalues *v, uint64_t dict, const char *key)
{
	struct table t;

	return open_dict(v, dict, &t) ? find(v, &t, key) : 0;
}

bool pyvalue_each(const struct pyvalues *v, uint64_t set, bool (*each)(void *ctx, uint64_t element), void *ctx)
{
	uint64_t used = word(v, set + v->head + SET_USED), mask = word(v, set + v->head + SET_MASK);
	uint64_t table = word(v, set + v->head + SET_TABLE), n = 0;

	if (!pyvalue_type_is(v, set, "set"))
		return true;
	if (mask > ITEMS_MAX)
		return false;
	for (uint64_t i = 0; i <= mask && n < used; i++) {
		uint64_t key = word(v, table + 16 * i), hash = word(v, table + 16 * i + 8);

		if (is_late(v, i))
			return false;
		if (!key || hash == UINT64_MAX)		/* unused, or removed */
			continue;
		n++;
		if (!each(ctx, key))
			return false;
	}
	return true;
}

void pyvalue_type_name(const struct pyvalues *v, uint64_t obj, struct strbuf *ret)
{
	char name[NAME_BYTES];

	strbuf_puts(ret, type_name(v, type_of(v, obj), name) ? name : "?");
}

/* --- text ---------------------------------------------------------------------------------------------- */

static void show(struct show *w, uint64_t obj);

static void put(struct show *w, const char *text)
{
	if (w->full)
		return;
	if (w->out->len - w->begin + strlen(text) > w->most - 3) {
		w->full = true;
		text = "...";
	}
	strbuf_puts(w->out, text);
}

/* One more part of a table was looked at; it may be huge and empty. */
static void count_part(struct show *w)
{
	if (++w->nodes <= NODES || w->full)
		return;
	strbuf_puts(w->out, "...");
	w->full = true;
}

static void put_char(struct show *w, uint32_t c, char quote, bool is_bytes)
{
	struct strbuf one = { 0 };

	if (c == '\\' || c == (uint32_t)quote)
		strbuf_printf(&one, "\\%c", (char)c);
	else if (c == '\n' || c == '\t' || c == '\r')
		strbuf_printf(&one, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
	else if (is_shown(c) && !(is_bytes && c >= 0x80))
		put_utf8(&one, c);
	else
		strbuf_printf(&one, c < 0x100 ? "\\x%02" PRIx32 : c < 0x10000 ? "\\u%04" PRIx32 : "\\U%08" PRIx32, c);
	put(w, strbuf_str(&one));
	strbuf_fini(&one);
}

static void put_chars(struct show *w, uint64_t at, uint64_t n, uint32_t width, bool is_bytes)
{
	uint64_t count = n > CHARS ? CHARS : n;
	uint8_t bytes[4 * CHARS];
	bool one = false, two = false;
	char quote[2] = "'";

	if (count && !remote_get(w->v->mem, at, bytes, count * width)) {
		put(w, "?");
		return;
	}
	for (uint64_t i = 0; i < count; i++) {
		one |= char_at(bytes, i, width) == '\'';
		two |= char_at(bytes, i, width) == '"';
	}
	quote[0] = one && !two ? '"' : '\'';
	put(w, quote);
	for (uint64_t i = 0; i < count && !w->full; i++)
		put_char(w, char_at(bytes, i, width), quote[0], is_bytes);
	put(w, quote);
}

static void show_str(struct show *w, uint64_t obj)
{
	uint64_t at, n;
	uint32_t width;

	if (find_text(w->v, obj, &at, &n, &width))
		put_chars(w, at, n, width, false);
	else
		put(w, "?");
}

static void show_bytes(struct show *w, uint64_t obj)
{
	put(w, "b");
	put_chars(w, obj + w->v->py->bytes_data, word(w->v, obj + w->v->py->bytes_size), 1, true);
}

/* As pystacks.c has names of functions: with the classes that they are in, without the module. */
static void put_type(struct show *w, uint64_t type)
{
	struct strbuf qualname = { 0 };
	char name[NAME_BYTES];

	if (flags_of_type(w->v, type) & FLAG_HEAP && pyvalue_text(w->v, word(w->v, type + cached_keys(w->v) - 8), NAME_BYTES, &qualname))
		put(w, strbuf_str(&qualname));
	else if (type_name(w->v, type, name))
		put(w, name);
	else
		put(w, "?");
	strbuf_fini(&qualname);
}

static void show_other(struct show *w, uint64_t obj)
{
	char at[40];

	put(w, "<");
	put_type(w, type_of(w->v, obj));
	snprintf(at, sizeof(at), " object at 0x%" PRIx64 ">", obj);
	put(w, at);
}

static void show_class(struct show *w, uint64_t obj)
{
	put(w, "<class '");
	put_type(w, obj);
	put(w, "'>");
}

/* --- numbers ------------------------------------------------------------------------------------------- */

static void show_int(struct show *w, uint64_t obj)
{
	uint64_t size = word(w->v, obj + w->v->head + SIZE), n;
	bool tagged = w->v->py->version >= 0x030c, below = tagged ? (size & 3) == 2 : (int64_t)size < 0;
	uint32_t digits[INT_DIGITS];
	unsigned __int128 value = 0;
	char text[48], *p = text + sizeof(text) - 1;

	n = tagged ? (size & 3) == 1 ? 0 : size >> 3 : below ? -size : size;
	if (n > INT_DIGITS) {
		show_other(w, obj);
		return;
	}
	if (n && !remote_get(w->v->mem, obj + w->v->head + DIGITS, digits, n * sizeof(*digits))) {
		put(w, "?");
		return;
	}
	while (n--)
		value = value << 30 | (digits[n] & 0x3fffffff);
	*p = '\0';
	do
		*--p = (char)('0' + (int)(value % 10));
	while (value /= 10);
	if (below)
		*--p = '-';
	put(w, p);
}

/* The fewest digits that give the number again, as Python has it. */
static void show_float(struct show *w, uint64_t obj)
{
	char text[48], digits[48];
	int precision = 0, exponent;
	double d;

	if (!remote_get(w->v->mem, obj + w->v->head + FLOAT, &d, sizeof(d))) {
		put(w, "?");
		return;
	}
	if (isnan(d) || isinf(d)) {
		put(w, isnan(d) ? "nan" : d < 0 ? "-inf" : "inf");
		return;
	}
	do
		snprintf(digits, sizeof(digits), "%.*e", precision, d);
	while (strtod(digits, NULL) != d && ++precision < 17);
	exponent = atoi(strchr(digits, 'e') + 1);
	if (exponent < -4 || exponent >= 16)
		snprintf(text, sizeof(text), "%s", digits);
	else
		snprintf(text, sizeof(text), "%.*f", precision > exponent ? precision - exponent : 1, d);
	put(w, text);
}

/* --- containers ---------------------------------------------------------------------------------------- */

static void show_items(struct show *w, uint64_t items, uint64_t n)
{
	for (uint64_t i = 0; i < n && !w->full; i++) {
		if (i)
			put(w, ", ");
		show(w, word(w->v, items + 8 * i));
	}
}

static void show_tuple(struct show *w, uint64_t obj)
{
	uint64_t n = pyvalue_tuple_size(w->v, obj), type = type_of(w->v, obj);

	if (flags_of_type(w->v, type) & FLAG_HEAP)
		put_type(w, type);
	put(w, "(");
	show_items(w, obj + w->v->tuple_items, n);
	put(w, n == 1 ? ",)" : ")");
}

static void show_list(struct show *w, uint64_t obj)
{
	put(w, "[");
	show_items(w, word(w->v, obj + w->v->head + LIST_ITEMS), word(w->v, obj + w->v->head + SIZE));
	put(w, "]");
}

static void show_dict(struct show *w, uint64_t obj)
{
	uint64_t key, value, n = 0;
	struct table t;
	bool any = open_dict(w->v, obj, &t);

	put(w, "{");
	for (uint64_t i = 0; any && i < t.n && !w->full; i++) {
		if (!entry(w->v, &t, i, &key, &value)) {
			count_part(w);
			continue;
		}
		if (n++)
			put(w, ", ");
		show(w, key);
		put(w, ": ");
		show(w, value);
	}
	put(w, any ? "}" : "?}");
}

static void show_set(struct show *w, uint64_t obj)
{
	uint64_t type = type_of(w->v, obj), used = word(w->v, obj + w->v->head + SET_USED), n = 0;
	uint64_t mask = word(w->v, obj + w->v->head + SET_MASK), table = word(w->v, obj + w->v->head + SET_TABLE);
	char name[NAME_BYTES];
	bool plain = used && type_name(w->v, type, name) && !strcmp(name, "set");

	if (!plain) {
		put_type(w, type);
		put(w, "(");
	}
	if (used)
		put(w, "{");
	for (uint64_t i = 0; used && i <= mask && n < used && !w->full; i++) {
		uint64_t key = word(w->v, table + 16 * i), hash = word(w->v, table + 16 * i + 8);

		if (i % 8 == 0)
			count_part(w);
		if (!key || hash == UINT64_MAX)		/* unused, or removed */
			continue;
		if (n++)
			put(w, ", ");
		show(w, key);
	}
	if (used)
		put(w, "}");
	put(w, plain ? "" : ")");
}

/* --- instances ----------------------------------------------------------------------------------------- */

static void show_exception(struct show *w, uint64_t obj)
{
	uint64_t args = word(w->v, obj + w->v->head + EXCEPTION_ARGS);

	put_type(w, type_of(w->v, obj));
	put(w, "(");
	show_items(w, args + w->v->tuple_items, pyvalue_tuple_size(w->v, args));
	put(w, ")");
}

/* False: it is no enum's member. */
static bool show_enum(struct show *w, uint64_t obj)
{
	uint64_t name = pyvalue_attribute(w->v, obj, "_name_"), value = pyvalue_attribute(w->v, obj, "_value_");
	struct strbuf text = { 0 };
	bool is_enum = name && value && pyvalue_text(w->v, name, NAME_BYTES, &text);

	if (is_enum) {
		put(w, "<");
		put_type(w, type_of(w->v, obj));
		put(w, ".");
		put(w, strbuf_str(&text));
		put(w, ": ");
		show(w, value);
		put(w, ">");
	}
	strbuf_fini(&text);
	return is_enum;
}

static void show_field(struct show *w, uint64_t name, uint64_t value, uint64_t *n)
{
	struct strbuf text = { 0 };

	if (pyvalue_text(w->v, name, NAME_BYTES, &text)) {
		put(w, (*n)++ ? ", " : "");
		put(w, strbuf_str(&text));
		put(w, "=");
		show(w, value);
	}
	strbuf_fini(&text);
}

/* Slots that the program's classes define. */
static void show_slots(struct show *w, uint64_t obj, uint64_t *n)
{
	enum { DESCRIPTOR_MEMBER = 24, MEMBER_TYPE = 8, MEMBER_OFFSET = 16, OBJECT = 6, OBJECT_EX = 16, OFFSET_MAX = 1 << 20 };
	const struct pyvalues *v = w->v;
	uint64_t mro = word(v, type_of(v, obj) + v->head + TYPE_MRO), classes = pyvalue_tuple_size(v, mro), key, value;
	struct table t;

	for (uint64_t c = 0; c < classes && !w->full; c++) {
		uint64_t class = pyvalue_tuple_item(v, mro, c);

		count_part(w);
		if (!(flags_of_type(v, class) & FLAG_HEAP) || !open_dict(v, word(v, class + v->head + TYPE_DICT), &t))
			continue;
		for (uint64_t i = 0; i < t.n && !w->full; i++) {
			uint64_t member, off, kind;

			count_part(w);
			if (!entry(v, &t, i, &key, &value) || !pyvalue_type_is(v, value, "member_descriptor"))
				continue;
			member = word(v, value + v->head + DESCRIPTOR_MEMBER);
			kind = remote_int(v->mem, member + MEMBER_TYPE);
			off = word(v, member + MEMBER_OFFSET);
			value = (kind == OBJECT || kind == OBJECT_EX) && off < OFFSET_MAX ? word(v, obj + off) : 0;
			if (value)
				show_field(w, key, value, n);
		}
	}
}

static void show_instance(struct show *w, uint64_t obj)
{
	uint64_t name, value, n = 0, type = type_of(w->v, obj);
	bool may_have = flags_of_type(w->v, type) & FLAG_MANAGED || word(w->v, type + w->v->head + TYPE_DICT_OFFSET);
	size_t begin = w->out->len;
	struct table t;

	put_type(w, type);
	put(w, "(");
	if (open_instance(w->v, obj, &t))
		for (uint64_t i = 0; i < t.n && !w->full; i++) {
			if (entry(w->v, &t, i, &name, &value))
				show_field(w, name, value, &n);
			else
				count_part(w);
		}
	show_slots(w, obj, &n);
	if (!n && !may_have && !w->full) {	/* a class of C's */
		w->out->len = begin;
		show_other(w, obj);
	} else {
		put(w, ")");
	}
}

/* --- any ----------------------------------------------------------------------------------------------- */

static const struct {
	uint64_t flag;
	void (*show)(struct show *w, uint64_t obj);
} by_flag[] = {
	{ FLAG_STR, show_str }, { FLAG_BYTES, show_bytes }, { FLAG_INT, show_int }, { FLAG_LIST, show_list },
	{ FLAG_TUPLE, show_tuple }, { FLAG_DICT, show_dict }, { FLAG_EXCEPTION, show_exception }, { FLAG_TYPE, show_class },
};

static const struct {
	const char *type, *text;
} singles[] = { { "NoneType", "None" }, { "ellipsis", "Ellipsis" }, { "NotImplementedType", "NotImplemented" } };

static bool show_single(struct show *w, uint64_t obj, uint64_t type)
{
	char name[NAME_BYTES];

	if (flags_of_type(w->v, type) & FLAG_HEAP || !type_name(w->v, type, name))
		return false;
	if (!strcmp(name, "bool")) {
		uint32_t digit = remote_int(w->v->mem, obj + w->v->head + DIGITS);

		put(w, digit ? "True" : "False");
		return true;
	}
	for (size_t i = 0; i < sizeof(singles) / sizeof(singles[0]); i++)
		if (!strcmp(name, singles[i].type)) {
			put(w, singles[i].text);
			return true;
		}
	return false;
}

static void show_object(struct show *w, uint64_t obj, uint64_t type)
{
	uint64_t flags = flags_of_type(w->v, type);

	if (flags & FLAG_HEAP && show_enum(w, obj))
		return;
	for (size_t i = 0; i < sizeof(by_flag) / sizeof(by_flag[0]); i++)
		if (flags & by_flag[i].flag) {
			by_flag[i].show(w, obj);
			return;
		}
	if (is_derived(w->v, type, "float"))
		show_float(w, obj);
	else if (is_derived(w->v, type, "set") || is_derived(w->v, type, "frozenset"))
		show_set(w, obj);
	else if (flags & FLAG_HEAP)
		show_instance(w, obj);
	else
		show_other(w, obj);
}

/* An object inside itself. */
static void show_again(struct show *w, uint64_t type)
{
	uint64_t flags = flags_of_type(w->v, type);

	if (flags & FLAG_LIST)
		put(w, "[...]");
	else if (flags & FLAG_DICT)
		put(w, "{...}");
	else if (!(flags & FLAG_TUPLE))
		put_type(w, type);
	if (!(flags & (FLAG_LIST | FLAG_DICT)))
		put(w, "(...)");
}

static void show(struct show *w, uint64_t obj)
{
	uint64_t type;

	if (w->full)
		return;
	type = type_of(w->v, obj);
	if (!type || ++w->nodes > NODES || pyvalue_is_late(w->v)) {
		put(w, type ? "..." : "?");
		return;
	}
	if (show_single(w, obj, type))
		return;
	for (unsigned int i = 0; i < w->depth; i++)
		if (w->open[i] == obj) {
			show_again(w, type);
			return;
		}
	if (w->depth == DEPTH) {
		put(w, "...");
		return;
	}
	w->open[w->depth++] = obj;
	show_object(w, obj, type);
	w->depth--;
}

void pyvalue_show(const struct pyvalues *v, uint64_t obj, size_t most, struct strbuf *ret)
{
	struct show w = { .v = v, .out = ret, .begin = ret->len, .most = most };

	show(&w, obj);
}

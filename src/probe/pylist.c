#include "probe/pylist.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "abi/python.h"
#include "base/arena.h"
#include "base/bytemap.h"
#include "base/strbuf.h"
#include "lang/desc.h"
#include "probe/pycode.h"
#include "probe/pyoffsets.h"
#include "probe/remote.h"
#include "probe/symbols.h"
#include "probe/walks.h"

enum {
	INTERPS_MAX = 256,
	INTERP_BYTES = 1 << 16,		/* of an interpreter's state, searched for the modules */
	ITEMS_MAX = 1 << 20,		/* entries of a dictionary or tuple */
	TEXT_MAX = 1024,		/* bytes of a name */
	DEPTH_MAX = 32,			/* nesting of classes, functions and wrappers */
	FUNCTIONS_MAX = 1 << 20,
};

/*
 * Offsets that are the same in all versions: of an object, a type, a dictionary, a tuple, a module, and wrappers of
 * one or three functions.
 */
enum {
	OBJ_TYPE = 8,
	TYPE_NAME = 24, TYPE_FLAGS = 168, TYPE_DICT = 264, TYPE_DICT_OFFSET = 288, TYPE_MRO = 344,
	DICT_KEYS = 32, DICT_VALUES = 40,
	TUPLE_SIZE = 16,
	HELD = 16, CELL_VALUE = 16,
};

enum { FLAG_HEAP = 1 << 9, FLAG_TUPLE = 1 << 26, FLAG_STR = 1 << 28, FLAG_DICT = 1 << 29 };
#define FLAG_TYPE (1ull << 31)

enum { CODE_VARARGS = 4, CODE_KWARGS = 8, CODE_OPTIMIZED = 1, CODE_GENERATORS = 0x20 | 0x80 | 0x200 };

/* The interpreter's names of types that wrap functions. */
static const char *const held_types[] = { "staticmethod", "classmethod", "property" };

/* Offsets in functions and code objects, by version. */
struct shape {
	uint32_t globals, code, qualname, closure, dict;	/* of a function */
	uint32_t consts, flags, args, kwonly, names;		/* of a code object */
	bool has_qualname;
};

struct list {
	struct arena *arena;
	struct remote mem;
	struct abi_python py;
	struct shape at;
	uint64_t tuple_items;
	const char *module, *name;	/* patterns */
	struct bytemap seen;		/* classes, functions and wrappers that were visited */
	struct bytemap met;		/* code objects by module */
	struct pylist *ret;
	size_t cap;
};

/* --- objects ------------------------------------------------------------------------------------------ */

static uint64_t word(const struct list *l, uint64_t addr)
{
	return addr ? remote_word(&l->mem, addr) : 0;
}

static uint32_t number(const struct list *l, uint64_t addr)
{
	return remote_int(&l->mem, addr);
}

static uint64_t type_of(const struct list *l, uint64_t obj)
{
	return obj % 8 ? 0 : word(l, obj + OBJ_TYPE);
}

static uint64_t flags_of(const struct list *l, uint64_t obj)
{
	uint64_t type = type_of(l, obj);

	return type && type % 8 == 0 ? word(l, type + TYPE_FLAGS) : 0;
}

/* Is @obj of the interpreter's built-in type @name? */
static bool is_a(const struct list *l, uint64_t obj, const char *name)
{
	char text[32] = "";
	uint64_t type = type_of(l, obj);
	size_t n = strlen(name) + 1;

	return type && type % 8 == 0 && !(word(l, type + TYPE_FLAGS) & FLAG_HEAP) &&
	       remote_get(&l->mem, word(l, type + TYPE_NAME), text, n) && !strcmp(text, name);
}

static bool is_code(const struct list *l, uint64_t obj)
{
	return obj && type_of(l, obj) == l->py.code_type;
}

/* A str in UTF-8, or NULL. */
static const char *text_of(const struct list *l, uint64_t str)
{
	enum { COMPACT = 0x20, ASCII = 0x40 };
	uint8_t bytes[TEXT_MAX];
	uint64_t state, n;
	uint32_t kind;

	if (!(flags_of(l, str) & FLAG_STR))
		return NULL;
	state = word(l, str + l->py.state);
	n = word(l, str + l->py.length);
	kind = state >> 2 & 7;
	if (!(state & COMPACT) || !kind || kind > 4 || kind == 3 || n > TEXT_MAX / kind ||
	    !remote_get(&l->mem, str + (state & ASCII ? l->py.ascii_data : l->py.other_data), bytes, n * kind))
		return NULL;
	return n ? pycode_text(l->arena, bytes, n, kind) : "";
}

static uint64_t tuple_item(const struct list *l, uint64_t tuple, uint64_t i)
{
	return flags_of(l, tuple) & FLAG_TUPLE && i < word(l, tuple + TUPLE_SIZE) ? word(l, tuple + l->tuple_items + 8 * i) : 0;
}

/*
 * A dictionary's entries, of 24 bytes (hash, key, value) or of 16 without the hash.  Dictionaries with shared keys
 * are not read.
 */
struct entries {
	uint64_t at, n, size, key;
};

static struct entries entries_of(const struct list *l, uint64_t dict)
{
	enum { BEHIND_OLD = 40, BEHIND = 32 };
	struct entries e = { .size = 24, .key = 8 };
	uint64_t keys = flags_of(l, dict) & FLAG_DICT && !word(l, dict + DICT_VALUES) ? word(l, dict + DICT_KEYS) : 0, size, head;

	if (!keys)
		return e;
	if (l->py.version < 0x030b) {
		size = word(l, keys + 8);
		if (size > ITEMS_MAX)
			return e;
		e.n = word(l, keys + 32);
		e.at = keys + BEHIND_OLD + size * (size <= 0xff ? 1 : size <= 0xffff ? 2 : 4);
	} else {
		head = word(l, keys + 8);
		if ((head & 0xff) > 20 || (head >> 8 & 0xff) > 24)
			return e;
		e.n = word(l, keys + 24);
		e.at = keys + BEHIND + (1ull << (head >> 8 & 0xff));
		if (head >> 16 & 0xff) {
			e.size = 16;
			e.key = 0;
		}
	}
	if (e.n > ITEMS_MAX)
		e.n = 0;
	return e;
}

static uint64_t entry_value(const struct list *l, const struct entries *e, uint64_t i)
{
	return word(l, e->at + i * e->size + e->key + 8);
}

static uint64_t find(const struct list *l, uint64_t dict, const char *key)
{
	const struct entries e = entries_of(l, dict);

	for (uint64_t i = 0; i < e.n; i++) {
		uint64_t k = word(l, e.at + i * e.size + e.key), length = k ? word(l, k + l->py.length) : 0;
		const char *text = length == strlen(key) ? text_of(l, k) : NULL;

		if (text && !strcmp(text, key))
			return entry_value(l, &e, i);
	}
	return 0;
}

/* --- code --------------------------------------------------------------------------------------------- */

/* "n", "*rest": parameter @i, whose name is @i of the variables. */
static const char *param(const struct list *l, uint64_t names, uint32_t i, const char *stars)
{
	const char *name = text_of(l, tuple_item(l, names, i));

	return name ? arena_printf(l->arena, "%s%s", stars, name) : "?";
}

static void tell_params(struct list *l, uint64_t code, uint32_t flags, struct pylist_function *f)
{
	uint32_t n = number(l, code + l->at.args), all = n + number(l, code + l->at.kwonly), i;
	uint64_t names = word(l, code + l->at.names);
	const char **v;

	if (n > PYLIST_PARAMS - 2 || all > PYLIST_PARAMS - 2)
		return;
	f->params = v = arena_alloc(l->arena, (all + 2) * sizeof(*v) + 1);
	for (i = 0; i < all; i++)
		v[i] = param(l, names, i, "");
	if (flags & CODE_VARARGS)
		v[all++] = param(l, names, i++, "*");
	if (flags & CODE_KWARGS)
		v[all++] = param(l, names, i, "**");
	f->nparams = all;
}

static bool is_new(struct bytemap *m, const void *key, size_t size)
{
	static char mark;

	return !bytemap_get(m, key, size) && !bytemap_set(m, key, size, &mark);
}

static void add_code(struct list *l, uint64_t code, const char *module, const char *name, uint32_t flags)
{
	const char *met = arena_printf(l->arena, "%" PRIx64 " %s", code, module);
	struct pylist_function *f;

	if (!desc_glob(l->module, module) || !desc_glob(l->name, name) || l->ret->n >= FUNCTIONS_MAX ||
	    !is_new(&l->met, met, strlen(met)))
		return;
	l->ret->v = arena_grow(l->arena, l->ret->v, &l->cap, l->ret->n, sizeof(*l->ret->v));
	f = &l->ret->v[l->ret->n++];
	*f = (struct pylist_function){ .module = module, .name = name, .yields = flags & CODE_GENERATORS };
	tell_params(l, code, flags, f);
}

/* Add a function's code, called @name, and that of nested functions and classes. */
static void add_all_code(struct list *l, uint64_t code, const char *module, const char *name, int depth)
{
	uint32_t flags = number(l, code + l->at.flags);
	uint64_t consts = word(l, code + l->at.consts), n = flags_of(l, consts) & FLAG_TUPLE ? word(l, consts + TUPLE_SIZE) : 0;

	add_code(l, code, module, name, flags);
	for (uint64_t i = 0; i < n && n <= ITEMS_MAX && depth < DEPTH_MAX; i++) {
		uint64_t inner = word(l, consts + l->tuple_items + 8 * i);
		const char *own = is_code(l, inner) ? text_of(l, word(l, inner + l->py.name)) : NULL;

		if (!own)
			continue;
		/* Before 3.11 a code object has only its plain name. */
		if (!l->at.has_qualname)
			own = arena_printf(l->arena, "%s%s%s", name, flags & CODE_OPTIMIZED ? ".<locals>." : ".", own);
		add_all_code(l, inner, module, own, depth + 1);
	}
}

/* --- what has functions ------------------------------------------------------------------------------- */

static void add_object(struct list *l, uint64_t obj, int depth);

static void add_function(struct list *l, uint64_t fn, int depth)
{
	uint64_t code = word(l, fn + l->at.code), globals = word(l, fn + l->at.globals), closure, n;
	const char *module = text_of(l, find(l, globals, "__name__"));
	const char *name = text_of(l, l->at.has_qualname && is_code(l, code) ? word(l, code + l->py.name) : word(l, fn + l->at.qualname));

	if (is_code(l, code) && name)
		add_all_code(l, code, module ? module : "", name, 0);
	add_object(l, find(l, word(l, fn + l->at.dict), "__wrapped__"), depth + 1);
	closure = word(l, fn + l->at.closure);
	n = flags_of(l, closure) & FLAG_TUPLE ? word(l, closure + TUPLE_SIZE) : 0;
	for (uint64_t i = 0; i < n && n <= ITEMS_MAX; i++) {
		uint64_t cell = word(l, closure + l->tuple_items + 8 * i), value = is_a(l, cell, "cell") ? word(l, cell + CELL_VALUE) : 0;

		if (is_a(l, value, "function"))
			add_object(l, value, depth + 1);
	}
}

static void add_values(struct list *l, uint64_t dict, int depth)
{
	const struct entries e = entries_of(l, dict);

	for (uint64_t i = 0; i < e.n; i++)
		add_object(l, entry_value(l, &e, i), depth);
}

static bool holds_functions(const struct list *l, uint64_t obj)
{
	for (size_t i = 0; i < sizeof(held_types) / sizeof(held_types[0]); i++)
		if (is_a(l, obj, held_types[i]))
			return true;
	return false;
}

/* For other objects: follow __wrapped__, which functools.lru_cache() sets. */
static void add_wrapped(struct list *l, uint64_t obj, int depth)
{
	int64_t off = (int64_t)word(l, type_of(l, obj) + TYPE_DICT_OFFSET);

	if (off >= HELD && off < 1 << 12)
		add_object(l, find(l, word(l, obj + (uint64_t)off), "__wrapped__"), depth);
}

static void add_object(struct list *l, uint64_t obj, int depth)
{
	bool is_class, is_function;

	if (!obj || depth > DEPTH_MAX || !flags_of(l, obj))
		return;
	is_class = flags_of(l, obj) & FLAG_TYPE;
	is_function = !is_class && is_a(l, obj, "function");
	if (!is_class && !is_function && is_a(l, obj, "module"))
		return;
	if (!is_new(&l->seen, &obj, sizeof(obj)))
		return;
	if (is_class) {
		add_values(l, word(l, obj + TYPE_DICT), depth + 1);
	} else if (is_function) {
		add_function(l, obj, depth);
	} else if (holds_functions(l, obj)) {
		for (int i = 0; i < (is_a(l, obj, "property") ? 3 : 1); i++)
			add_object(l, word(l, obj + HELD + 8 * (uint64_t)i), depth + 1);
	} else {
		add_wrapped(l, obj, depth + 1);
	}
}

/* --- the process -------------------------------------------------------------------------------------- */

/*
 * Find sys.modules of the interpreter.  Its offset depends on the build; it is the dictionary that contains these two
 * modules.
 */
static uint64_t modules_of(const struct list *l, uint64_t interp)
{
	for (uint64_t off = 0; off < INTERP_BYTES; off += 8) {
		uint64_t dict = word(l, interp + off);

		if (dict >= REMOTE_PAGE && is_a(l, dict, "dict") && is_a(l, find(l, dict, "sys"), "module") &&
		    is_a(l, find(l, dict, "builtins"), "module"))
			return dict;
	}
	return 0;
}

static void find_shape(struct list *l)
{
	enum { NEW = 0x030b };
	const struct abi_python *py = &l->py;

	if (py->version < 0x030a)
		l->at = (struct shape){ .code = 16, .globals = 24, .closure = 48, .dict = 72, .qualname = 104 };
	else
		l->at = (struct shape){ .globals = 16, .qualname = 40, .code = 48, .closure = 72, .dict = 88 };
	l->at.has_qualname = py->version >= NEW;
	if (py->version < NEW) {
		l->at.args = 16;
		l->at.kwonly = 24;
		l->at.flags = 36;
		l->at.consts = 56;
		l->at.names = 72;
	} else {
		l->at.consts = 24;
		l->at.flags = 48;
		l->at.args = py->line - 16;
		l->at.kwonly = py->line - 8;
		l->at.names = py->file - 16;
	}
}

static int by_name(const void *a, const void *b)
{
	const struct pylist_function *x = a, *y = b;
	int order = strcmp(x->module, y->module);

	return order ? order : strcmp(x->name, y->name);
}

/* 3.14 has a hash before the items.  A type's method resolution order, a tuple, begins with the type itself. */
static int find_tuple_items(struct list *l)
{
	enum { FIRST = 24, LAST = 40 };
	uint64_t mro = word(l, l->py.code_type + TYPE_MRO);

	for (l->tuple_items = FIRST; l->tuple_items <= LAST; l->tuple_items += 8)
		if (word(l, mro + l->tuple_items) == l->py.code_type)
			return 0;
	return -ENOENT;
}

/*
 * Functions of classes and imported names are reached through several modules; a function belongs to the module of
 * its globals.
 */
static int read_modules(struct list *l)
{
	uint64_t interp = word(l, l->py.runtime + l->py.interp);
	bool any = false;

	for (int left = INTERPS_MAX; interp && left; left--, interp = word(l, interp + l->py.next_interp)) {
		uint64_t modules = modules_of(l, interp);
		const struct entries e = entries_of(l, modules);

		any |= modules != 0;
		for (uint64_t i = 0; i < e.n; i++) {
			uint64_t module = entry_value(l, &e, i);

			if (is_a(l, module, "module"))
				add_values(l, word(l, module + HELD), 0);
		}
	}
	if (l->ret->n)
		qsort(l->ret->v, l->ret->n, sizeof(*l->ret->v), by_name);
	return any ? 0 : -ENOENT;
}

static void say(struct strbuf *why, uint32_t pid, int err)
{
	strbuf_printf(why, "%sprocess %" PRIu32 "%s%s", why->len ? "; " : "", pid, err == -ENOENT ? "" : ": ",
		      err == -ENOENT ? " has no modules of Python yet: list the functions of one that runs" :
		      err == -EPERM || err == -EACCES ? "permission denied: its memory is for its own user, and for root" : strerror(-err));
}

int pylist_read(struct arena *a, uint32_t pid, const char *module, const char *name, struct pylist *ret, struct strbuf *why)
{
	struct list l = { .arena = a, .module = module, .name = name, .ret = ret };
	struct symbols *symbols = symbols_new();
	uint64_t first;
	int err;

	memset(ret, 0, sizeof(*ret));
	err = remote_init(&l.mem, pid);
	if (!err)
		err = symbols ? walks_python(symbols, pid, &l.py) : -ENOMEM;
	if (!err && pyoffsets_free_threaded(&l.py))
		err = -ENOTSUP;
	if (!err && !remote_get_now(&l.mem, l.py.runtime, &first, sizeof(first)))
		err = -errno;
	if (!err) {
		find_shape(&l);
		err = find_tuple_items(&l);
	}
	if (!err)
		err = read_modules(&l);
	if (!err && !remote_lives(&l.mem))
		err = -ESRCH;
	if (err)
		say(why, pid, err);
	bytemap_fini(&l.seen);
	bytemap_fini(&l.met);
	remote_fini(&l.mem);
	symbols_free(symbols);
	return err;
}

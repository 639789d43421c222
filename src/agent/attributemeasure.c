/* SPDX-License-Identifier: MIT */
/*
 * The layout of dictionaries, instances and classes in this version: each known form is tried on specimens until one
 * reads all of them like the API.
 */
#include "agent/agent.h"
#include "agent/attribute.h"
#include "agent/modules.h"

enum { FILE_INPUT = 257, TYPE_SIZE = 1200, OBJECT_SIZE = 200 };

static struct shm none;
static struct shm_run reader = { .shm = &none };

enum { SPECIMENS = 64, PAIRS = 160 };
static struct pyobj *specimens[SPECIMENS];	/* while measuring */
static unsigned nspecimens;
static struct { struct pyobj *object, *key; bool item; } pairs[PAIRS];
static unsigned npairs;

enum specimen {
	S_PLAIN, S_SUB, S_TRUE, S_FALSE, S_ELLIPSIS, S_NOT_IMPLEMENTED, S_FLOAT, S_LIST, S_SLOT, S_FUNCTION, S_PROPERTY,
	S_STATIC, S_SET, S_FROZEN, S_RAISED, S_INT, S_STR, S_TUPLE, S_TRACEBACK, S_INNER_TRACEBACK, S_MAX
};

static uint64_t address(const struct pyobj *o)
{
	return (uint64_t)(uintptr_t)o;
}

static uint64_t word_of(const struct pyobj *o, uint32_t off)
{
	uint64_t w;

	memcpy(&w, (const char *)o + off, sizeof(w));
	return w;
}

static struct pyobj *keep(struct pyobj *self, struct pyobj *const *args, ssize_t nargs)
{
	(void)self;
	for (ssize_t k = 0; k < nargs && nspecimens < SPECIMENS; k++) {
		agent.py.Py_IncRef(args[k]);
		specimens[nspecimens++] = args[k];
	}
	return agent_none();
}

static void pair(struct pyobj *const *args, bool item)
{
	if (npairs == PAIRS)
		return;
	agent.py.Py_IncRef(args[0]);
	agent.py.Py_IncRef(args[1]);
	pairs[npairs].object = args[0];
	pairs[npairs].key = args[1];
	pairs[npairs++].item = item;
}

static struct pyobj *attribute(struct pyobj *self, struct pyobj *const *args, ssize_t nargs)
{
	(void)self;
	if (nargs == 2)
		pair(args, false);
	return agent_none();
}

static struct pyobj *item(struct pyobj *self, struct pyobj *const *args, ssize_t nargs)
{
	(void)self;
	if (nargs == 2)
		pair(args, true);
	return agent_none();
}

static const char source[] =
	"class Plain:\n __qualname__ = 'not its name'\n shared = 'of the class'\n"
	" def __init__(self): self.first = 1.5; self.second = 'two'; self.third = (3,)\n"
	" def method(self): pass\n"
	"class Sub(Plain):\n pass\n"
	"class Slots:\n __slots__ = ('one', 'two')\n"
	"class Row(tuple): pass\n"
	"class Number(int): pass\n"
	"class Error(Exception): pass\n"
	"plain, sub, seen, gone, many, slots, row, number = Plain(), Sub(), Plain(), Plain(), Plain(), Slots(), Row((1, 2)), Number(7)\n"
	"seen.__dict__\n"
	"seen.fourth = 4.5\n"
	"del gone.second\n"
	"for k in range(40): setattr(many, 'name%d' % k, k + 1000)\n"
	"slots.two = 'slot'\n"
	"row.extra = 'row'\n"
	"number.extra = 'number'\n"
	"error = Error('message', 2)\n"
	"error.extra = 'error'\n"
	"try: raise error from KeyError('cause')\n"
	"except Error: pass\n"
	"def raises(): raise Error()\n"
	"try: raises()\n"
	"except Error as e: chain = e.__traceback__\n"
	"keep(Plain, Sub, True, False, ..., NotImplemented, 1.5, [1.5, 'two', 3], Slots.__dict__['two'], Plain.method,\n"
	" property(), staticmethod(Plain.method), {'a', 'b', 'c'}, frozenset('abcd'), error, 1, 'str', (1,),\n"
	" chain, chain.tb_next)\n"
	"for o in plain, sub, seen, many:\n"
	" for name in 'first', 'second', 'third', 'shared': attribute(o, name)\n"
	"attribute(gone, 'first'); attribute(gone, 'third'); attribute(seen, 'fourth')\n"
	"attribute(many, 'name0'); attribute(many, 'name39')\n"
	"attribute(slots, 'two'); attribute(row, 'extra'); attribute(number, 'extra'); attribute(error, 'extra')\n"
	"attribute(Plain, 'shared'); attribute(Sub, 'shared'); attribute(Sub, 'method'); attribute(builtins, 'len')\n"
	"words = {'one': 1.5, 'two': 2.5, 'three': 3.5}\n"
	"mixed = {'one': 1.5, 2: 'two', -1: 'below', 1 << 61: 'large', 3.0: 'three'}\n"
	"large = {k * 7: str(k) for k in range(1000)}\n"
	"for k in range(0, 1000, 3): del large[k * 7]\n"
	"names = {'name%d' % k: str(k) for k in range(300)}\n"
	"for k in words: item(words, k)\n"
	"for k in 'one', 2, -1, 1 << 61, 3: item(mixed, k)\n"
	"for k in 7, 14, 6979: item(large, k)\n"
	"for k in 'name0', 'name123', 'name299': item(names, k)\n"
	"for k in 'first', 'third': item(seen.__dict__, k)\n"
	"item([1.5, 2.5], 1); item((1.5, 2.5), -1)\n"
	"for t in list(vars(builtins).values()) + [type(None), type(...), type(keep), type(builtins), type(Plain.method)]:\n"
	" if isinstance(t, type): builtin(t, t.__dict__)\n";

/*
 * Note the dictionary of a type, from its mappingproxy, which stores the dictionary's address after its object header.
 */
static struct pyobj *builtin(struct pyobj *self, struct pyobj *const *args, ssize_t nargs)
{
	struct object_state *s = &agent.objects;
	unsigned n = s->nbuiltins;

	(void)self;
	if (nargs == 2 && n < OBJECT_BUILTINS) {
		s->builtins[n].type = address(args[0]);
		s->builtins[n].dict = word_of(args[1], object_body());
		s->nbuiltins++;
	}
	return agent_none();
}

/* The offset of a pointer to the value of @object's attribute @name; 0: not found. */
static uint32_t find_attribute(struct pyobj *object, const char *name, uint32_t limit)
{
	struct pyobj *value = agent.py.PyObject_GetAttrString(object, name);
	uint32_t ret = 0, bytes = object_bytes(object);

	if (limit > bytes)
		limit = bytes;
	for (uint32_t off = object_body(); value && !ret && off + 8 <= limit; off += 8)
		if (word_of(object, off) == address(value))
			ret = off;
	agent_release(value);
	agent.py.PyErr_Clear();
	return ret;
}

static bool is_descriptor(enum specimen which, bool gets, bool sets)
{
	struct pyobj *type = agent_type(specimens[which]);

	return (word_of(type, object_at->type_base + 16) != 0) == gets && (word_of(type, object_at->type_base + 24) != 0) == sets;
}

static void measure_types(void)
{
	struct object_state *s = &agent.objects;
	uint64_t dealloc;

	s->type_mro = find_attribute(specimens[S_SUB], "__mro__", TYPE_SIZE);
	s->type_base = find_attribute(specimens[S_SUB], "__base__", TYPE_SIZE);
	s->type_qualname = find_attribute(specimens[S_PLAIN], "__qualname__", TYPE_SIZE);
	s->type_keys = s->type_qualname + 8;
	dealloc = word_of(specimens[S_PLAIN], s->type_name + OBJECT_NAME_TO_DEALLOC);
	if (s->type_name && dealloc == word_of(specimens[S_SUB], s->type_name + OBJECT_NAME_TO_DEALLOC))
		s->type_dealloc = dealloc;
	s->function_qualname = find_attribute(specimens[S_FUNCTION], "__qualname__", OBJECT_SIZE);
	if (!s->type_base || !is_descriptor(S_FUNCTION, true, false) || !is_descriptor(S_PROPERTY, true, true) ||
	    !is_descriptor(S_SLOT, true, true) || !is_descriptor(S_STATIC, true, false) || !is_descriptor(S_INT, false, false) ||
	    !is_descriptor(S_STR, false, false))
		s->type_base = 0;
}

static uint64_t type_of(enum specimen which)
{
	return address(agent_type(specimens[which]));
}

static void measure_kinds(void)
{
	struct object_state *s = &agent.objects;
	const uint32_t body = object_body();
	double d;

	s->str_type = type_of(S_STR);
	s->int_type = type_of(S_INT);
	s->bool_type = type_of(S_TRUE);
	s->float_type = type_of(S_FLOAT);
	s->function_type = type_of(S_FUNCTION);
	s->member_type = type_of(S_SLOT);
	s->set_type = type_of(S_SET);
	s->frozenset_type = type_of(S_FROZEN);
	s->none = address(agent.py.none);
	s->yes = address(specimens[S_TRUE]);
	s->no = address(specimens[S_FALSE]);
	s->ellipsis = address(specimens[S_ELLIPSIS]);
	s->not_implemented = address(specimens[S_NOT_IMPLEMENTED]);
	memcpy(&d, (const char *)specimens[S_FLOAT] + body, sizeof(d));
	s->float_value = d == 1.5 ? body : 0;
	s->list_items = *(struct pyobj **)(uintptr_t)word_of(specimens[S_LIST], body + 8) == specimens[S_FLOAT] ? body + 8 : 0;
	s->descr_member = body + 24;	/* verified by the slots among the pairs */
	for (unsigned k = 0; k < OBJECT_EXCEPTION; k++)
		s->exception[k] = find_attribute(specimens[S_RAISED], object_exception_names[k], OBJECT_SIZE);
	for (uint32_t off = body; !s->traceback_next && off < body + 48; off += 8)
		if (word_of(specimens[S_TRACEBACK], off) == address(specimens[S_INNER_TRACEBACK]))
			s->traceback_next = off;
	/* fill, used, mask, table */
	s->has_sets = word_of(specimens[S_SET], body + 8) == 3 && word_of(specimens[S_SET], body + 16) == 7 &&
		      word_of(specimens[S_FROZEN], body + 8) == 4 && word_of(specimens[S_FROZEN], body + 16) == 7;
}

/* Does the function return the hash that a str used as a key stores after its length? */
static void measure_hash(void)
{
	struct object_state *s = &agent.objects;
	struct pyobj *key = NULL;

	s->hash = agent.py.Py_HashBuffer ? agent.py.Py_HashBuffer : agent.py._Py_HashBytes;
	for (unsigned k = 0; !key && k < npairs; k++)
		if (address(agent_type(pairs[k].key)) == s->str_type)
			key = pairs[k].key;
	if (!key || !s->hash || !s->str_ascii ||
	    (uint64_t)s->hash((const char *)key + s->str_ascii, (ssize_t)word_of(key, s->str_length)) !=
		    word_of(key, s->str_length + 8))
		s->hash = NULL;
}

static struct pyobj *by_api(unsigned n)
{
	if (pairs[n].item)
		return agent.py.PyObject_CallMethod(pairs[n].object, "__getitem__", "O", pairs[n].key);
	return agent.py.PyObject_GetAttrString(pairs[n].object, agent.py.PyUnicode_AsUTF8(pairs[n].key));
}

static bool is_alike(unsigned n, const struct pyobj *want)
{
	struct pyobj *key = pairs[n].key;
	struct attribute_key k;
	struct object o;
	uint64_t got = 0;

	if (address(agent_type(key)) == object_at->str_type) {
		const char *text = agent.py.PyUnicode_AsUTF8(key);

		attribute_text_key(&k, text, (uint32_t)strlen(text));
	} else {
		attribute_number_key(&k, agent.py.PyLong_AsLong(key));
	}
	return !object_open(&reader, address(pairs[n].object), &o) &&
	       !(pairs[n].item ? attribute_item(&o, &k, &got) : attribute_find(&o, &k, &got)) && got == address(want);
}

/* Are all pairs with @items (or the others) read like the API reads them? */
static bool all_alike(bool items)
{
	bool same = true;

	for (unsigned n = 0; n < npairs && same; n++) {
		struct pyobj *want = pairs[n].item == items ? by_api(n) : NULL;

		same = pairs[n].item != items || (want && is_alike(n, want));
		agent_release(want);
	}
	agent.py.PyErr_Clear();
	return same && npairs > S_MAX;
}

/* The forms belong to consecutive versions, so few combinations exist. */
static bool try_forms(void)
{
	static const struct { unsigned char keys, values, managed; } forms[] = {
		{ OBJECT_KEYS_LOG2, OBJECT_VALUES_BEHIND, OBJECT_MANAGED_INLINE },
		{ OBJECT_KEYS_LOG2, OBJECT_VALUES_BEFORE, OBJECT_MANAGED_TAGGED },
		{ OBJECT_KEYS_LOG2, OBJECT_VALUES_BEFORE, OBJECT_MANAGED_TWO },
		{ OBJECT_KEYS_SIZE, OBJECT_VALUES_PLAIN, 0 },
	};
	struct object_state *s = &agent.objects;

	for (unsigned k = 0; k < sizeof(forms) / sizeof(*forms); k++) {
		s->keys_form = forms[k].keys;
		s->values_form = forms[k].values;
		s->managed_form = forms[k].managed;
		if (all_alike(true) && all_alike(false))
			return true;
	}
	s->keys_form = 0;
	s->values_form = 0;
	s->managed_form = 0;
	return false;
}

static void measure(void)
{
	measure_types();
	measure_kinds();
	measure_hash();
	if (!try_forms())
		agent.objects.type_base = 0;
}

void attribute_measure(void)
{
	static struct capi_method methods[] = {
		{ "keep", keep, CAPI_FASTCALL, NULL }, { "attribute", attribute, CAPI_FASTCALL, NULL },
		{ "item", item, CAPI_FASTCALL, NULL }, { "builtin", builtin, CAPI_FASTCALL, NULL },
	};
	const struct capi *py = &agent.py;
	struct pyobj *globals = py->PyDict_New(), *code = py->Py_CompileString(source, "<dtap>", FILE_INPUT);
	struct pyobj *builtins = modules_get("builtins"), *result = NULL;
	bool good = globals && code && builtins && !py->PyDict_SetItemString(globals, "__builtins__", builtins) &&
		    !py->PyDict_SetItemString(globals, "builtins", builtins);

	for (unsigned k = 0; k < sizeof(methods) / sizeof(*methods) && good; k++) {
		struct pyobj *method = agent_callable(&methods[k]);

		good = method && !py->PyDict_SetItemString(globals, methods[k].name, method);
		agent_release(method);
	}
	if (good)
		result = py->PyEval_EvalCode(code, globals, globals);
	py->PyErr_Clear();
	if (result && nspecimens == S_MAX)
		measure();
	py->PyErr_Clear();
	while (nspecimens)
		agent_release(specimens[--nspecimens]);
	for (; npairs; npairs--) {
		agent_release(pairs[npairs - 1].object);
		agent_release(pairs[npairs - 1].key);
	}
	agent_release(result);
	agent_release(builtins);
	agent_release(code);
	agent_release(globals);
	py->PyErr_Clear();
}

/* SPDX-License-Identifier: MIT */
/*
 * Measuring the layout of objects on specimens.
 *
 * A known value is searched for in an object; the offset is used only if reading other objects of the kind there gives
 * the same results as the API.
 */
#include "agent/object.h"

#include "agent/agent.h"
#include "agent/attribute.h"
#include "agent/ccall.h"
#include "agent/modules.h"
#include "agent/opened.h"
#include "agent/pyframes.h"

enum { FILE_INPUT = 257 };
enum { FRAME_BYTES = 512, CODE_BYTES = 256, TYPE_SIZE = 256, TAG_BITS = 7 /* of a _PyStackRef (3.14) */ };

/* For reading this process's memory, outside of events. */
static struct shm none;
static struct shm_run reader = { .shm = &none };

static inline uint64_t word_of(const void *bytes, uint32_t off)
{
	uint64_t w;

	memcpy(&w, (const char *)bytes + off, sizeof(w));
	return w;
}

enum { SPECIMENS = 40 };
static struct pyobj *specimens[SPECIMENS];	/* while measuring */
static unsigned nspecimens;

/*
 * dtap_see(), called with the three arguments of its caller, of which the third is that function: find them in its
 * frame.
 */
static struct pyobj *see_frame(struct pyobj *self, struct pyobj *const *args, ssize_t nargs)
{
	const char *frame;
	uint64_t code;

	(void)self;
	if (nargs != 3 || !pyframes_top(&frame, &code))
		return agent_none();
	for (uint32_t off = 8; !object_at->frame_locals && off + 24 <= FRAME_BYTES; off += 8) {
		bool same = true;

		for (uint32_t k = 0; k < 3; k++)
			same &= (word_of(frame, off + 8 * k) & ~(uint64_t)TAG_BITS) == (uint64_t)(uintptr_t)args[k];
		if (same)
			object_at->frame_locals = off;
	}
	for (uint32_t off = 0; off < object_at->frame_locals; off += 8)
		if ((word_of(frame, off) & ~(uint64_t)TAG_BITS) == (uint64_t)(uintptr_t)args[2])
			object_at->frame_function = (int32_t)off;
	return agent_none();
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

enum specimen {
	S_INT, S_STR, S_BYTES, S_TUPLE, S_LIST, S_CELL, S_F0, S_F1, S_F2, S_OUTER, S_INNER, S_FUNCTION, S_ASCII, S_LATIN, S_WIDE, S_WIDER, S_STR_OF_CLASS,
	S_NUMBERS
};

static const char source[] =
	"def frame(a, b, c):\n see_frame(a, b, c)\n"
	"frame(1.5, 'two', frame)\n"
	"def f0(): pass\n"
	"def f1(a, b, c, *, d, e):\n x = y = z = 1\n"
	"def f2(a, b, c, d, e, f, g, *h, i, **j):\n pass\n"
	"def outer(first, second, *rest, third, **more):\n local = 1\n"
	" def inner(alpha):\n  beta = first, local\n  return beta\n return inner\n"
	"inner = outer(1, 2, third=3)\n"
	"keep(1, 'str', b'bytes of 17 bytes', (1, 2, 3), [1, 2, 3, 4, 5], (lambda x: lambda: x)(1).__closure__[0])\n"
	"keep(f0.__code__, f1.__code__, f2.__code__, outer.__code__, inner.__code__, inner)\n"
	"keep('plain ascii', '\\xe9t\\xe9 \\xff', '\\u0394elta', '\\U0001f600 so')\n"
	"keep(type('S', (str,), {})('of a class'))\n"
	"keep(0, 1, -1, 255, -256, 1 << 30, -(1 << 30) - 5, (1 << 59) + 7, -(1 << 62), (1 << 63) - 1, -(1 << 63))\n";

/* The number @call, whose reference is released; or 0. */
static uint32_t taken(struct pyobj *call)
{
	long n = call ? agent.py.PyLong_AsLong(call) : 0;

	agent_release(call);
	agent.py.PyErr_Clear();
	return n > 0 && n < UINT16_MAX ? (uint32_t)n : 0;
}

uint32_t object_bytes(struct pyobj *o)
{
	struct pyobj *type = agent_type(o);

	if (agent.py.PyType_GetFlags && agent.py.PyType_GetFlags(type) & (TYPE_STR | TYPE_BYTES | TYPE_TUPLE))
		return taken(agent.py.PyObject_CallMethod(type, "__sizeof__", "(O)", o));
	return taken(agent.py.PyObject_GetAttrString(type, "__basicsize__"));
}

/* The limit, at most @limit, for offsets at which each of the @n objects has @size bytes. */
static uint32_t room(struct pyobj *const *objects, unsigned n, uint32_t limit, uint32_t size)
{
	for (unsigned k = 0; k < n; k++) {
		uint32_t bytes = object_bytes(objects[k]);

		if (bytes + 1 < limit + size)
			limit = bytes < size ? 0 : bytes - size + 1;
	}
	return limit;
}

static const void *bytes_of(unsigned which)
{
	return specimens[which];
}

/* Find the offset at which the types of the first specimens have the results of PyType_GetFlags(); and tp_name. */
static void measure_types(void)
{
	for (uint32_t off = 24; !object_at->type_flags && off < TYPE_SIZE; off += 8) {	/* every type is larger */
		bool same = true;

		for (unsigned k = S_INT; k <= S_LIST; k++) {
			struct pyobj *type = agent_type(specimens[k]);

			same &= word_of(type, off) == (uint64_t)agent.py.PyType_GetFlags(type);
		}
		if (same)
			object_at->type_flags = off;
	}
	/* The word after ob_size in every version so far; verified on two types. */
	if (!strcmp((const char *)(uintptr_t)word_of(agent_type(specimens[S_STR]), object_body() + 8), "str") &&
	    !strcmp((const char *)(uintptr_t)word_of(agent_type(specimens[S_TUPLE]), object_body() + 8), "tuple"))
		object_at->type_name = object_body() + 8;
}

static void measure_sizes(void)
{
	uint32_t limit;

	for (uint32_t off = object_body(); off < object_body() + 16; off += 8)
		if (word_of(bytes_of(S_BYTES), off) == 17 && word_of(bytes_of(S_TUPLE), off) == 3 &&
		    word_of(bytes_of(S_LIST), off) == 5)
			object_at->size = off;
	limit = room(&specimens[S_BYTES], 1, OBJECT_HEAD, 17);
	for (uint32_t off = object_body(); !object_at->bytes_data && off < limit; off++)
		if (!memcmp((const char *)bytes_of(S_BYTES) + off, "bytes of 17 bytes", 17))
			object_at->bytes_data = off;
}

/* The offset of an int with the values @v in the code objects of f0, f1 and f2, or 0. */
static uint32_t find_count(const int v[3])
{
	uint32_t limit = room(&specimens[S_F0], 3, CODE_BYTES, sizeof(int));

	for (uint32_t off = object_body(); off < limit; off += 4) {
		bool same = true;

		for (unsigned k = 0; k < 3; k++)
			same &= !memcmp((const char *)bytes_of(S_F0 + k) + off, &v[k], sizeof(int));
		if (same)
			return off;
	}
	return 0;
}

/* The offset of a pointer to the value of the attribute @name in each of the @n objects; 0: not found. */
static uint32_t find_attribute(struct pyobj *const *objects, unsigned n, const char *name, uint32_t limit)
{
	uint64_t values[2];
	uint32_t ret = 0;

	for (unsigned k = 0; k < n; k++) {
		struct pyobj *value = agent.py.PyObject_GetAttrString(objects[k], name);

		values[k] = (uint64_t)(uintptr_t)value;
		agent_release(value);	/* if the object itself does not hold it, it is not found */
	}
	agent.py.PyErr_Clear();
	limit = room(objects, n, limit, sizeof(uint64_t));
	for (uint32_t off = object_body(); !ret && off < limit; off += 8) {
		ret = off;
		for (unsigned k = 0; k < n; k++)
			if (!values[k] || word_of(objects[k], off) != values[k])
				ret = 0;
	}
	return ret;
}

/* The same for the code objects of outer() and inner(). */
static uint32_t find_names(const char *name)
{
	return find_attribute(&specimens[S_OUTER], 2, name, CODE_BYTES);
}

static bool has_names(const struct object *tuple, const char *const *names, unsigned n)
{
	struct object o;

	for (unsigned k = 0; k < n; k++)
		if (object_open(&reader, object_item(tuple, k), &o) ||
		    !object_is_text(&o, names[k], (uint32_t)strlen(names[k])))
			return false;
	return object_size(tuple) == n;
}

/* Does the bytes object at @addr have the @n @kinds of variables: local, cell or free? */
static bool has_kinds(uint64_t addr, const uint8_t *kinds, unsigned n)
{
	struct object o;
	uint8_t kind;

	if (object_open(&reader, addr, &o) || !(o.flags & TYPE_BYTES) || object_size(&o) != n)
		return false;
	for (unsigned k = 0; k < n; k++)
		if (!object_read(&o, &kind, 1, object_at->bytes_data + k) || (kind & 0xe0) != kinds[k])
			return false;
	return true;
}

/* From 3.11 on one tuple has the names of all variables, and the word after it points to their kinds. */
static bool measure_all_names(void)
{
	static const char *const outer[] = { "first", "second", "third", "rest", "more", "inner", "local" };
	static const uint8_t outer_kinds[] = { 0x60, 0x20, 0x20, 0x20, 0x20, 0x20, 0x40 };
	static const char *const inner[] = { "alpha", "beta", "first", "local" };
	static const uint8_t inner_kinds[] = { 0x20, 0x20, 0x80, 0x80 };
	uint32_t limit = room(&specimens[S_OUTER], 2, CODE_BYTES, 2 * sizeof(uint64_t));
	struct object o, i;

	for (uint32_t off = object_body(); off < limit; off += 8) {
		if (object_open(&reader, word_of(bytes_of(S_OUTER), off), &o) || !(o.flags & TYPE_TUPLE) ||
		    object_open(&reader, word_of(bytes_of(S_INNER), off), &i) || !(i.flags & TYPE_TUPLE) ||
		    !has_names(&o, outer, 7) || !has_names(&i, inner, 4) ||
		    !has_kinds(word_of(bytes_of(S_OUTER), off + 8), outer_kinds, 7) ||
		    !has_kinds(word_of(bytes_of(S_INNER), off + 8), inner_kinds, 4))
			continue;
		object_at->code_names = off;
		object_at->code_kinds = off + 8;
		return true;
	}
	return false;
}

static bool measure_names(void)
{
	if (measure_all_names())
		return true;
	object_at->code_locals = find_names("co_varnames");
	object_at->code_cells = find_names("co_cellvars");
	object_at->code_frees = find_names("co_freevars");
	return object_at->code_locals && object_at->code_cells && object_at->code_frees;
}

static int flags_of(unsigned which)
{
	struct pyobj *flags = agent.py.PyObject_GetAttrString(specimens[which], "co_flags");
	int n = flags ? (int)agent.py.PyLong_AsLong(flags) : -1;

	agent_release(flags);
	return n;
}

static void measure_variables(void)
{
	object_at->code_args = find_count((const int[]){ 0, 3, 7 });
	object_at->code_kwargs = find_count((const int[]){ 0, 2, 1 });
	object_at->code_flags = find_count((const int[]){ flags_of(S_F0), flags_of(S_F1), flags_of(S_F2) });
	object_at->cell = (uint64_t)(uintptr_t)agent_type(specimens[S_CELL]);
	object_at->cell_value = find_attribute(&specimens[S_CELL], 1, "cell_contents", object_body() + 16);
	object_at->function_closure = find_attribute(&specimens[S_FUNCTION], 1, "__closure__", FRAME_BYTES);
	if (!object_at->function_closure)
		object_at->frame_function = -1;
	if (!object_at->code_args || !object_at->code_kwargs || !object_at->code_flags || !object_at->cell_value ||
	    !object_at->tuple_items || !measure_names())
		object_at->frame_locals = 0;
}

static void measure_tuples(void)
{
	struct pyobj *tuple = specimens[S_TUPLE];
	uint32_t limit = room(&tuple, 1, OBJECT_HEAD, 3 * sizeof(uint64_t));

	for (uint32_t off = object_at->size + 8; object_at->size && off < limit; off += 8) {
		bool same = true;

		for (unsigned k = 0; k < 3; k++)
			same &= word_of(tuple, off + 8 * k) == (uint64_t)(uintptr_t)agent.py.PyTuple_GetItem(tuple, (ssize_t)k);
		if (same) {
			object_at->tuple_items = off;
			return;
		}
	}
}

/* Find the length of strings, the word with their kind, and the first character. */
static void measure_text(void)
{
	static const unsigned lengths[] = { 11, 5, 5, 4, 10 }, widths[] = { 1, 1, 2, 4 };
	static const uint8_t latin[] = { 0xe9, 't', 0xe9, ' ', 0xff };
	uint32_t limit;

	for (uint32_t off = object_body(); !object_at->str_length && off < object_body() + 16; off += 8) {
		bool same = true;

		for (unsigned k = 0; k < 5; k++)
			same &= word_of(bytes_of(S_ASCII + k), off) == lengths[k];
		if (same)
			object_at->str_length = off;
	}
	limit = room(&specimens[S_ASCII], 1, OBJECT_HEAD, 11);
	for (uint32_t off = object_body(); !object_at->str_ascii && off < limit; off++)
		if (!memcmp((const char *)bytes_of(S_ASCII) + off, "plain ascii", 11))
			object_at->str_ascii = off;
	limit = room(&specimens[S_LATIN], 1, OBJECT_HEAD + 32, sizeof(latin));
	for (uint32_t off = 32; off < limit; off++)
		if (!memcmp((const char *)bytes_of(S_LATIN) + off, latin, sizeof(latin))) {
			object_at->str_other = off;
			break;
		}
	for (uint32_t off = object_at->str_length + 8; off < object_at->str_ascii; off += 4) {
		for (unsigned int shift = 0; shift <= 24; shift++) {
			bool same = true;

			for (unsigned k = 0; k < 5; k++) {
				uint64_t state = word_of(bytes_of(S_ASCII + k), off) & UINT32_MAX;

				same &= k == 4 || (state >> shift & 7) == widths[k];
				same &= (state >> (shift + 3) & 1) == (k < 4);
				same &= k == 4 || (state >> (shift + 4) & 1) == (k == 0);
			}
			if (!same)
				continue;
			object_at->str_state = off;
			object_at->str_kind = shift;
			return;
		}
	}
	object_at->str_other = 0;
}

/* Does reading the specimens of int give the same numbers as the API? */
static bool numbers_alike(void)
{
	for (unsigned k = S_NUMBERS; k < nspecimens; k++) {
		struct object o;
		int64_t got;

		if (object_open(&reader, (uint64_t)(uintptr_t)specimens[k], &o) || object_int(&o, &got) ||
		    got != agent.py.PyLong_AsLong(specimens[k]))
			return false;
	}
	return nspecimens > S_NUMBERS;
}

static void measure_ints(void)
{
	if (!object_at->size)
		return;
	object_at->int_digits = object_at->size + 8;
	object_at->int_tagged = true;
	if (numbers_alike())
		return;
	object_at->int_tagged = false;
	if (!numbers_alike())
		object_at->int_digits = 0;
}

static bool texts_alike(void)
{
	for (unsigned k = S_ASCII; k <= S_STR_OF_CLASS; k++) {
		const char *want = agent.py.PyUnicode_AsUTF8(specimens[k]);
		struct object_text t;
		struct object o;
		char got[64];

		if (!want || object_open(&reader, (uint64_t)(uintptr_t)specimens[k], &o) || object_text(&o, &t) ||
		    object_put_text(&reader, &t, got, sizeof(got)) < 1 || strcmp(got, want))
			return false;
	}
	return true;
}

static void measure(void)
{
	if (agent.py.PyType_GetFlags)
		measure_types();
	measure_sizes();
	measure_text();
	if (object_at->str_other && !texts_alike())
		object_at->str_other = 0;
	measure_ints();
	measure_tuples();
	measure_variables();
}

void object_measure(void)
{
	static struct capi_method methods[] = { { "dtap_see", see_frame, CAPI_FASTCALL, NULL },
						{ "dtap_keep", keep, CAPI_FASTCALL, NULL } };
	const struct capi *py = &agent.py;
	struct pyobj *globals, *code, *see, *kept, *builtins, *result = NULL;

	if (object_at->asked)
		return;
	object_at->asked = true;
	object_at->frame_function = -1;
	pyframes_measure();
	globals = py->PyDict_New();
	code = py->Py_CompileString(source, "<dtap>", FILE_INPUT);
	see = agent_callable(&methods[0]);
	kept = agent_callable(&methods[1]);
	builtins = modules_get("builtins");
	if (globals && code && see && kept && builtins && !py->PyDict_SetItemString(globals, "see_frame", see) &&
	    !py->PyDict_SetItemString(globals, "keep", kept) && !py->PyDict_SetItemString(globals, "__builtins__", builtins))
		result = py->PyEval_EvalCode(code, globals, globals);
	if (result && nspecimens > S_NUMBERS)
		measure();
	py->PyErr_Clear();
	while (nspecimens)
		agent_release(specimens[--nspecimens]);
	agent_release(result);
	agent_release(builtins);
	agent_release(kept);
	agent_release(see);
	agent_release(globals);
	agent_release(code);
	py->PyErr_Clear();
	if (object_at->size && object_at->str_other && object_at->int_digits && object_at->tuple_items)
		attribute_measure();
	ccall_measure();
	opened_measure();
}

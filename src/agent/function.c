/* SPDX-License-Identifier: MIT */
/*
 * Decisions about a code object are stored in its "extra" memory (PEP 523), which the interpreter frees with it.  Of
 * the program's objects, only names of modules are kept alive.
 *
 * Without a GIL decisions are read and written in turn (engine.c).  What may wait for another thread is done before: the
 * name of the module is looked up and held, and the texts are asked for, which the interpreter then has.  Names that are
 * kept are never released there, since that may wait, too.
 */
#include "agent/function.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/code.h"
#include "agent/engine.h"
#include "agent/object.h"
#include "agent/qualname.h"
#include "agent/span.h"
#include "vm/memory.h"

/*
 * Where in a dictionary an entry is: its keys, of which @shape tells the form and the size, and in them the key's address, behind
 * which the value is.  What stands there now is compared; so a place may be out of date, but nothing beyond a table is read.
 */
struct place {
	const char *keys;		/* NULL: not known */
	const struct pyobj *const *entry;
	uint64_t shape, index;
};

/* The programs' interest in a code object when it runs in one module. */
struct verdict {
	struct verdict *next;		/* for another module */
	unsigned epoch;			/* in the first of the list, for all of it */
	unsigned fits;			/* likewise: kinds of events with a matching function pattern; bits */
	struct pyobj *module;		/* its name, a str, held; NULL: it has none */
	/*
	 * The last globals with this name and their version: while both are the same, the name need not be looked up.
	 */
	const struct pyobj *globals;
	uint64_t tag;
	struct place place;		/* without versions: where the name is in the last globals */
	unsigned has;			/* kinds of events that are wanted; bits */
	unsigned n, first[ABI_FUNCTIONS + 1];
	struct engine_match matches[];		/* and as many struct span_element, if some of them learn */
};

static bool is_nothing(const void *kept)
{
	return (uintptr_t)kept & 1;
}

static void free_verdicts(void *kept)
{
	struct verdict *v = is_nothing(kept) ? NULL : kept, *next;

	for (; v; v = next) {
		next = v->next;
		if (!agent.py.free_threaded)
			agent_release(v->module);
		free(v);
	}
}

/*
 * Up to 3.11 a dictionary has a version number, unique among all dictionaries and renewed by each change (PEP 509);
 * from 3.12 on the word has other uses.
 */
static void measure_tag(void)
{
	enum { FIRST = 16, LAST = 48 };
	struct pyobj *dict = agent.py.minor < 12 ? agent.py.PyDict_New() : NULL;
	uint64_t before[LAST / 8], after[LAST / 8];
	long found = 0;

	if (dict && !agent.py.PyDict_SetItemString(dict, "dtap", agent.py.none)) {
		memcpy(before, dict, sizeof(before));
		if (!agent.py.PyDict_SetItemString(dict, "dtap", (struct pyobj *)agent.py.PyFrame_Type)) {
			memcpy(after, dict, sizeof(after));
			for (long off = FIRST; off < LAST; off += 8)
				if (before[off / 8] != after[off / 8])
					found = found || after[off / 8] <= before[off / 8] ? -1 : off;
		}
	}
	agent.function.tag_off = found > 0 ? found : 0;
	agent_release(dict);
	agent.py.PyErr_Clear();
}

static uint64_t tag_of(const struct pyobj *globals)
{
	uint64_t tag;

	if (!agent.function.tag_off)
		return 0;
	memcpy(&tag, (const char *)globals + agent.function.tag_off, sizeof(tag));
	return tag;
}

/*
 * From 3.12 on a dictionary's keys are counts and sizes, a table of indices, and the entries in the order of their insertion: a
 * key and its value each, if all keys are strs.
 */
enum { DICT_KEYS = 32, DICT_VALUES = 40, KEYS_SHAPE = 8, KEYS_COUNT = 24, KEYS_INDICES = 32, KEYS_TEXT = 1 };

static uint64_t word_of(const char *base, long off)
{
	uint64_t w;

	memcpy(&w, base + off, sizeof(w));
	return w;
}

static inline const char *keys_of(const struct pyobj *dict)
{
	const char *keys;

	memcpy(&keys, (const char *)dict + DICT_KEYS, sizeof(keys));
	return keys;
}

/* log2 of the number of indices and of their bytes; the form. */
static inline uint64_t shape_of(const char *keys)
{
	return word_of(keys, KEYS_SHAPE) & 0xffffff;
}

/* The place of @key, whose value is @value, if it is among the first entries; else one where nothing is. */
static struct place find_place(const struct pyobj *dict, const struct pyobj *key, const struct pyobj *value)
{
	enum { LOG2_MOST = 20, FIRST = 64 };
	const char *keys = keys_of(dict);
	uint64_t shape = shape_of(keys), n = word_of(keys, KEYS_COUNT), log2_size = shape & 0xff, log2_bytes = shape >> 8 & 0xff;
	const struct pyobj *const *entries;

	if (shape >> 16 == KEYS_TEXT && log2_size <= LOG2_MOST && log2_bytes <= LOG2_MOST + 2 && !(n >> log2_size) &&
	    !word_of((const char *)dict, DICT_VALUES)) {
		entries = (const struct pyobj *const *)(const void *)(keys + KEYS_INDICES + ((uint64_t)1 << log2_bytes));
		for (uint64_t k = 0; k < n && k < FIRST; k++)
			if (entries[2 * k] == key && entries[2 * k + 1] == value)
				return (struct place){ keys, entries + 2 * k, shape, k };
	}
	return (struct place){ keys, NULL, shape, UINT64_MAX };
}

/* Is it @value that @key has in the dictionary, as it was when @p was found?  False: not known. */
static inline bool is_at(const struct place *p, const struct pyobj *dict, const struct pyobj *key, const struct pyobj *value)
{
	const char *keys = keys_of(dict);

	return p->keys == keys && shape_of(keys) == p->shape && word_of(keys, KEYS_COUNT) > p->index && p->entry[0] == key &&
	       p->entry[1] == value;
}

/* Are dictionaries as they are expected?  They are read as memory that need not be there. */
static void measure_places(void)
{
	struct shm_run *r = object_reader();
	struct pyobj *key = agent.function.name_key;
	struct pyobj *dict = agent.py.minor >= 12 && !agent.py.free_threaded ? agent.py.PyDict_New() : NULL;
	uint64_t at = (uint64_t)(uintptr_t)dict, keys = 0, values = 1, shape = 0, n = 0, entries[4] = { 0 };

	if (dict && !agent.py.PyDict_SetItemString(dict, "dtap", agent.py.none) &&
	    !agent.py.PyDict_SetItemString(dict, "__name__", key) &&
	    !memory_read(r, &keys, sizeof(keys), at + DICT_KEYS) && !memory_read(r, &values, sizeof(values), at + DICT_VALUES) &&
	    !memory_read(r, &shape, sizeof(shape), keys + KEYS_SHAPE) && !memory_read(r, &n, sizeof(n), keys + KEYS_COUNT))
		shape &= 0xffffff;
	if (!values && n == 2 && shape >> 16 == KEYS_TEXT && (shape >> 8 & 0xff) < 8 &&
	    !memory_read(r, entries, sizeof(entries), keys + KEYS_INDICES + ((uint64_t)1 << (shape >> 8 & 0xff))))
		agent.function.places = entries[1] == (uint64_t)(uintptr_t)agent.py.none &&
					entries[2] == (uint64_t)(uintptr_t)key && entries[3] == entries[2];
	agent_release(dict);
	agent.py.PyErr_Clear();
}

/* Find the pointer to the extra memory in code objects, if it is unique: it is needed at each call. */
static void measure_extra(void)
{
	enum { BYTES = 320 };
	static char mark;
	struct pyobj *code = agent.py.PyCode_NewEmpty("<dtap's file>", "dtap", 1);
	char before[BYTES];
	size_t size = code ? code_size(code) : 0;
	long found = 0;
	void *extra;

	if (size > sizeof(before))
		size = sizeof(before);
	if (code)
		memcpy(before, code, size);
	if (size && !agent.function.set(code, agent.function.index, (void *)((uintptr_t)&mark | 1))) {
		for (size_t off = 0; off + sizeof(void *) <= size; off += sizeof(void *))
			if (memcmp(before + off, (char *)code + off, sizeof(void *)))
				found = found ? -1 : (long)off;
		if (found > 0) {
			memcpy(&extra, (char *)code + found, sizeof(extra));
			if (((void **)extra)[1 + agent.function.index] == (void *)((uintptr_t)&mark | 1))
				agent.function.extra_off = found;
		}
	}
	agent_release(code);
	agent.py.PyErr_Clear();
}

/* The number of more room beside this interpreter's code objects, from 0 on; negative: there is none. */
static ssize_t request_room(void (*release)(void *))
{
	const struct capi *py = &agent.py;
	ssize_t (*request)(void (*)(void *)) = py->PyUnstable_Eval_RequestCodeExtraIndex ?
		py->PyUnstable_Eval_RequestCodeExtraIndex : py->_PyEval_RequestCodeExtraIndex;

	return request ? request(release) : -1;
}

bool function_usable(void)
{
	const struct capi *py = &agent.py;

	if (!agent.function.asked) {
		agent.function.asked = true;
		agent.function.get = py->PyUnstable_Code_GetExtra ? py->PyUnstable_Code_GetExtra : py->_PyCode_GetExtra;
		agent.function.set = py->PyUnstable_Code_SetExtra ? py->PyUnstable_Code_SetExtra : py->_PyCode_SetExtra;
		agent.function.index = request_room(free_verdicts);
		agent.function.name_key = py->PyUnicode_InternFromString("__name__");
		agent.function.usable = agent.function.index >= 0 && agent.function.name_key && agent.function.get && agent.function.set && code_has_qualname();
		if (agent.function.usable)
			measure_extra();
		if (agent.function.usable)
			measure_tag();
		if (agent.function.usable)
			measure_places();
	}
	if (!agent.function.usable)
		agent_why("functions by name: this CPython does not tell qualified names, or has no room beside code objects");
	return agent.function.usable;
}

/* Request the room with number @index, unless another tool has it in this interpreter. */
static bool take_room(ssize_t index, void (*release)(void *))
{
	ssize_t given;

	do
		given = request_room(release);
	while (given >= 0 && given < index);
	return given == index;
}

bool function_usable_sub(void)
{
	const bool names = agent.code_qualname_off <= 0, first = names && agent.qualname.index < agent.function.index;

	return agent.function.usable && (!first || take_room(agent.qualname.index, qualname_release)) &&
	       take_room(agent.function.index, free_verdicts) &&
	       (!names || first || take_room(agent.qualname.index, qualname_release));
}

static bool keep(struct pyobj *code, void *kept)
{
	if (!agent.function.set(code, agent.function.index, kept))
		return true;
	agent.py.PyErr_Clear();
	free_verdicts(kept);
	return false;
}

/* The module's name, a str; borrowed, or NULL. */
static struct pyobj *module_of(struct pyobj *globals)
{
	return globals ? agent.py.PyDict_GetItem(globals, agent.function.name_key) : NULL;
}

static const char *text_of(struct pyobj *module)
{
	return module ? code_text(module) : "";
}

enum { SCRIPT = 256 };
enum { BEFORE_FIRST = -1 };	/* as an instruction: its line is the first one of the code */

/* The name of @code's file without folders and ".py". */
static bool script_of(struct pyobj *code, char name[static SCRIPT])
{
	const char *file = code_file(code), *slash = strrchr(file, '/');
	size_t n;

	file = slash ? slash + 1 : file;
	n = strlen(file);
	if (n > 3 && !strcmp(file + n - 3, ".py"))
		n -= 3;
	if (n >= SCRIPT)
		return false;
	memcpy(name, file, n);
	name[n] = '\0';
	return true;
}

/* All programs that probe @code in @module, sorted by kind of event.  NULL: no memory. */
static struct engine_match *match_all(struct pyobj *code, struct pyobj *module, unsigned first[ABI_FUNCTIONS + 1])
{
	char script[SCRIPT];
	bool has_script = !strcmp(text_of(module), "__main__") && script_of(code, script);
	const struct engine_function function = { text_of(module), has_script ? script : NULL, code_qualname(code), code_file(code),
						  (uint32_t)agent.py.PyCode_Addr2Line(code, BEFORE_FIRST) };
	struct engine_match *found;
	unsigned n, most = 16;

	for (;; most *= 2) {
		found = malloc(most * sizeof(*found));
		if (!found)
			return NULL;
		n = 0;
		for (unsigned k = 0; k < ABI_FUNCTIONS; k++) {
			first[k] = n;
			n += engine_match((enum abi_function)k, &function, found + n, most - n);
		}
		first[ABI_FUNCTIONS] = n;
		if (n < most)
			return found;
		free(found);
	}
}

static bool some_learn(const struct engine_match *m, unsigned n)
{
	for (unsigned k = 0; k < n; k++)
		if (m[k].learns)
			return true;
	return false;
}

/* A new verdict about @code in @module. */
static struct verdict *decide(struct pyobj *code, struct pyobj *module)
{
	unsigned n, first[ABI_FUNCTIONS + 1];
	struct engine_match *found = match_all(code, module, first);
	struct span_element *elements;
	struct verdict *v = NULL;

	n = found ? first[ABI_FUNCTIONS] : 0;
	if (found)
		v = calloc(1, sizeof(*v) + n * (sizeof(*found) + (some_learn(found, n) ? sizeof(*elements) : 0)));
	if (!v) {
		free(found);
		return NULL;
	}
	v->epoch = agent.engine.epoch;
	v->n = n;
	memcpy(v->first, first, sizeof(first));
	memcpy(v->matches, found, n * sizeof(*found));
	free(found);
	elements = (struct span_element *)(void *)(v->matches + n);
	for (unsigned k = 0; k < n; k++)
		v->matches[k].element = v->matches[k].learns ? &elements[k] : NULL;
	if (module)
		agent.py.Py_IncRef(module);
	v->module = module;
	for (unsigned k = 0; k < ABI_FUNCTIONS; k++)
		v->has |= (unsigned)(first[k + 1] > first[k]) << k;
	return v;
}

static bool same_module(const struct verdict *v, struct pyobj *module)
{
	return v->module == module || (v->module && module && !strcmp(code_text(v->module), code_text(module)));
}

static struct verdict *find(struct verdict *v, struct pyobj *module)
{
	while (v && !same_module(v, module))
		v = v->next;
	return v;
}

/* The verdicts of this epoch about @code; NULL: none. */
static struct verdict *known(struct pyobj *code)
{
	void *kept = function_kept(code);

	return kept && !is_nothing(kept) && ((struct verdict *)kept)->epoch == agent.engine.epoch ? kept : NULL;
}

/* The verdict that is known, without looking up the name, to be that for @globals; or NULL. */
static struct verdict *remembered(struct verdict *v, const struct pyobj *globals)
{
	uint64_t tag = globals ? tag_of(globals) : 0;

	while (v && tag && (v->globals != globals || v->tag != tag))
		v = v->next;
	return tag ? v : NULL;
}

static struct verdict *verdict_of(struct pyobj *code, struct pyobj *module);

static struct verdict *verdict_in(struct pyobj *code, struct pyobj *globals)
{
	struct verdict *v = remembered(known(code), globals);

	if (v)
		return v;
	v = verdict_of(code, module_of(globals));
	if (v && globals) {
		v->globals = globals;
		v->tag = tag_of(globals);
	}
	return v;
}

/* Is @v for the module of these globals?  Then it is noted where they have its name. */
static __attribute__((noinline)) bool is_module_of(struct verdict *v, struct pyobj *globals)
{
	if (v->module != module_of(globals))
		return false;
	if (agent.function.places && v->module && (v->globals != globals || v->place.keys != keys_of(globals))) {
		v->globals = globals;
		v->place = find_place(globals, agent.function.name_key, v->module);
	}
	return true;
}

/* verdict_in() if it is the first one of the code's, and nothing must be decided; else NULL. */
static inline __attribute__((always_inline)) const struct verdict *quick_verdict(struct pyobj *code, struct pyobj *globals)
{
	void *kept = function_kept(code);
	struct verdict *v = kept;

	if (!kept || is_nothing(kept) || v->epoch != agent.engine.epoch || !globals)
		return NULL;
	if (agent.function.tag_off)
		return v->globals == globals && v->tag && v->tag == tag_of(globals) ? v : NULL;
	if (v->globals == globals && v->place.keys && is_at(&v->place, globals, agent.function.name_key, v->module))
		return v;
	return is_module_of(v, globals) ? v : NULL;
}

/* Run the one program of @v for such an event.  False: there is not just one, or it does not go quickly. */
static inline bool fire_one(const struct verdict *v, enum abi_function what, struct pyobj *code, struct pyobj *result,
			    struct pyobj *exception)
{
	int *at, saved;
	bool ran;

	if (v->first[what + 1] - v->first[what] != 1)
		return false;
	at = agent_errno();
	saved = *at;
	if (result)
		agent_thread.result = result;
	if (exception)
		agent_thread.exception = exception;
	ran = engine_try_match(&v->matches[v->first[what]], code);
	if (result)
		agent_thread.result = NULL;
	if (exception)
		agent_thread.exception = NULL;
	*at = saved;
	return ran;
}

bool function_fire_quick(enum abi_function what, struct pyobj *code, struct pyobj *globals, struct pyobj *result,
			 struct pyobj *exception)
{
	const struct verdict *v = agent.engine.functions_quick ? quick_verdict(code, globals) : NULL;

	return v && fire_one(v, what, code, result, exception);
}

const struct verdict *function_verdict(struct pyobj *code, struct pyobj *globals, unsigned *wanted)
{
	const struct verdict *v = agent.engine.functions_quick ? quick_verdict(code, globals) : NULL;

	*wanted = v ? v->has : 0;
	return v;
}

bool function_fire_entry(const struct verdict *v, struct pyobj *code)
{
	return fire_one(v, ABI_FUNCTION_ENTRY, code, NULL, NULL);
}

unsigned function_wanted(struct pyobj *code, struct pyobj *globals)
{
	const struct verdict *v;

	if (agent.engine.functions_quick) {
		v = quick_verdict(code, globals);
		if (v)
			return v->has;
	}
	engine_look_at_forks();
	v = verdict_in(code, globals);
	return v ? v->has : 0;
}

/* The verdict about @code in @module, created if necessary.  NULL: no pattern matches, or no memory. */
static struct verdict *verdict_of(struct pyobj *code, struct pyobj *module)
{
	struct verdict *all = known(code), *v = find(all, module);
	unsigned fits;

	if (v)
		return v;
	if (!all) {
		fits = function_fits(code);
		if (!fits)
			return NULL;
		v = decide(code, module);
		if (!v)
			return NULL;
		v->fits = fits;
		return keep(code, v) ? v : NULL;
	}
	v = decide(code, module);
	if (v) {
		v->next = all->next;
		all->next = v;
	}
	return v;
}

unsigned function_fits(struct pyobj *code)
{
	struct verdict *all;
	unsigned fits;

	engine_look_at_forks();
	all = known(code);
	if (all || function_is_nothing(code))
		return all ? all->fits : 0;
	fits = engine_fits(code_qualname(code));
	if (!fits)
		keep(code, function_nothing(agent.engine.epoch));
	return fits;
}

/* Without a GIL: the module's name, held, or NULL; all texts exist that a decision needs. */
static struct pyobj *hold_module(struct pyobj *code, struct pyobj *globals)
{
	struct pyobj *module = NULL;

	if (globals && agent.py.PyDict_GetItemRef(globals, agent.function.name_key, &module) < 0)
		agent.py.PyErr_Clear();
	text_of(module);
	code_file(code);
	code_name(code);
	code_qualname(code);
	return module;
}

static __attribute__((noinline)) bool is_elsewhere_in_turn(struct pyobj *code, struct pyobj *globals)
{
	struct pyobj *module = hold_module(code, globals);
	unsigned how = engine_enter();
	struct verdict *all = agent.engine.functions ? known(code) : NULL;
	bool ret = all && !find(all, module);

	engine_leave(how);
	agent_release(module);
	return ret;
}

bool function_is_elsewhere(struct pyobj *code, struct pyobj *globals)
{
	struct verdict *all;

	if (agent.py.free_threaded)
		return is_elsewhere_in_turn(code, globals);
	all = known(code);
	return all && !find(all, module_of(globals));
}

/* Does any of these programs read argument 2, the line? */
static bool reads_line(const struct engine_match *m, unsigned n)
{
	for (unsigned k = 0; k < n; k++)
		if (m[k].uses & 4)
			return true;
	return false;
}

/* Has the code run in some module in which its events @what are wanted? */
static bool is_wanted_elsewhere(struct pyobj *code, enum abi_function what)
{
	for (const struct verdict *v = known(code); v; v = v->next)
		if (v->first[what + 1] > v->first[what])
			return true;
	return false;
}

/* Run the programs of @v for @event; the same result as function_fire(). */
static inline bool fire_by(const struct verdict *v, const struct function_event *event)
{
	struct pyobj *code = event->at.code;
	int line = event->line;
	const struct engine_match *m;
	unsigned n = v ? v->first[event->what + 1] - v->first[event->what] : 0;

	if (n) {
		m = v->matches + v->first[event->what];
		if (event->what != ABI_FUNCTION_LINE && reads_line(m, n))
			line = event->at.line(&event->at);
		agent_thread.result = event->result;
		agent_thread.exception = event->exception;
		engine_run_matches(m, n, code, line);
		agent_thread.result = agent_thread.exception = NULL;
	}
	return n || is_wanted_elsewhere(code, event->what);
}

static __attribute__((noinline)) bool fire_in_turn(const struct function_event *event)
{
	struct pyobj *module = hold_module(event->at.code, event->globals);
	unsigned how = engine_enter();
	/* Without such programs there are no turns. */
	bool ret = agent.engine.functions && fire_by(verdict_of(event->at.code, module), event);

	engine_leave(how);
	agent_release(module);
	return ret;
}

/* With a GIL: other interpreters may have one of their own. */
static bool fire_entered(const struct function_event *event)
{
	unsigned how = engine_enter();
	bool ret = agent.engine.functions && fire_by(verdict_in(event->at.code, event->globals), event);

	engine_leave(how);
	return ret;
}

bool function_fire(const struct function_event *event)
{
	int saved = errno;
	bool ret;

	engine_look_at_forks();
	ret = agent.py.free_threaded ? fire_in_turn(event) : fire_entered(event);
	errno = saved;
	return ret;
}

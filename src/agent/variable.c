/* SPDX-License-Identifier: MIT */
#include "agent/variable.h"

#include "agent/agent.h"
#include "agent/attribute.h"
#include "agent/object.h"
#include "agent/pyframes.h"
#include "agent/pyframes_priv.h"
#include "agent/reads.h"
#include "vm/memory.h"

enum { TAG_BITS = 7, TAGGED_INT = 3 };			/* of a _PyStackRef (3.14) */
enum { KIND_CELL = 0x40, KIND_FREE = 0x80 };		/* CO_FAST_..., from 3.11 on */
enum { HAS_ARGS = 4, HAS_KWARGS = 8 };			/* CO_VARARGS, CO_VARKEYWORDS */
enum { PARTS = 3 };

/* A function at an event: its frame, its code object, and the code object's names, by slot of the frame. */
struct function {
	struct shm_run *run;
	const char *frame;
	uint64_t code;
	struct { const uint64_t *names; uint32_t n; } parts[PARTS];
	uint32_t nslots;
	const uint8_t *kinds;		/* a byte a slot; NULL: the first part is locals, the others are cells */
};

static uint64_t word_at(uint64_t base, uint32_t off)
{
	uint64_t w;

	memcpy(&w, (const char *)(uintptr_t)base + off, sizeof(w));
	return w;
}

static uint32_t int_at(uint64_t base, uint32_t off)
{
	uint32_t n;

	memcpy(&n, (const char *)(uintptr_t)base + off, sizeof(n));
	return n;
}

static void add_part(struct function *f, unsigned k, uint32_t off)
{
	uint64_t tuple = word_at(f->code, off);

	f->parts[k].names = (const uint64_t *)(uintptr_t)(tuple + object_at->tuple_items);
	f->parts[k].n = (uint32_t)word_at(tuple, object_at->size);
	f->nslots += f->parts[k].n;
}

static int find_function(struct shm_run *r, struct function *f)
{
	const struct object_state *at = object_at;

	*f = (struct function){ .run = r };
	if (!at->frame_locals)
		return ABI_FAULT_VALUE_UNKNOWN;
	if (!pyframes_top(&f->frame, &f->code))
		return ABI_FAULT_VALUE_NONE;
	if (at->code_names) {
		add_part(f, 0, at->code_names);
		f->kinds = (const uint8_t *)(uintptr_t)(word_at(f->code, at->code_kinds) + at->bytes_data);
	} else {
		add_part(f, 0, at->code_locals);
		add_part(f, 1, at->code_cells);
		add_part(f, 2, at->code_frees);
	}
	return 0;
}

static uint64_t name_at(const struct function *f, uint32_t slot)
{
	unsigned k = 0;

	while (slot >= f->parts[k].n)
		slot -= f->parts[k++].n;
	return f->parts[k].names[slot];
}

static bool is_called(const struct function *f, uint32_t slot, const struct variable_name *name)
{
	struct object o;

	object_open_alive(f->run, name_at(f, slot), &o);
	return object_is_text(&o, name->text, name->length);
}

/* The contents of the cell @addr; 0: empty, or not a cell.  Without a GIL another thread may set it at any time. */
static uint64_t in_cell(struct shm_run *r, uint64_t addr)
{
	uint64_t w;

	if (agent.py.free_threaded && addr) {
		if (word_at(addr, agent.py.type_slot * 8) != object_at->cell)
			return 0;
		reads_open(r, addr);
		return memory_read(r, &w, sizeof(w), addr + object_at->cell_value) ? 0 : w;
	}
	return addr && word_at(addr, agent.py.type_slot * 8) == object_at->cell ? word_at(addr, object_at->cell_value) : 0;
}

/*
 * The value in a frame whose first instruction has not run (at the evaluator, 3.11): its arguments are not in cells
 * yet, and variables of enclosing functions are only in its function object.
 */
static uint64_t value_before(const struct function *f, uint32_t slot, uint64_t raw)
{
	uint32_t after = 0;
	uint64_t function, closure, n;

	if (!(f->kinds[slot] & KIND_FREE))
		return raw;
	if (object_at->frame_function < 0)
		return 0;
	function = word_at((uint64_t)(uintptr_t)f->frame, (uint32_t)object_at->frame_function);
	closure = function ? word_at(function, object_at->function_closure) : 0;
	n = closure ? word_at(closure, object_at->size) : 0;
	for (uint32_t k = slot; k < f->nslots; k++)
		after += (f->kinds[k] & KIND_FREE) != 0;
	return after <= n ? in_cell(f->run, word_at(closure, object_at->tuple_items + 8 * (uint32_t)(n - after))) : 0;
}

uint64_t variable_of_slot(uint64_t raw)
{
	return (raw & TAGGED_INT) == TAGGED_INT ? 0 : raw & ~(uint64_t)TAG_BITS;
}

bool variable_stack(struct shm_run *r, const uint64_t **ret)
{
	struct function f;

	if (find_function(r, &f))
		return false;
	*ret = (const uint64_t *)(uintptr_t)(f.frame + object_at->frame_locals) + f.nslots;
	return true;
}

/* The value in @slot of the frame, or 0. */
static uint64_t value_at(const struct function *f, uint32_t slot)
{
	uint64_t raw = word_at((uint64_t)(uintptr_t)f->frame, object_at->frame_locals + 8 * slot);
	bool in = f->kinds ? (f->kinds[slot] & (KIND_CELL | KIND_FREE)) != 0 : slot >= f->parts[0].n;

	raw = variable_of_slot(raw);
	if (!in) {
		if (raw && agent.py.free_threaded)
			object_lives(raw);
		return raw;
	}
	return f->kinds && !pyframes_begun(f->frame, f->code) ? value_before(f, slot, raw) : in_cell(f->run, raw);
}

/* Without a GIL only what stands in the frame itself is sure to be alive (value_at()). */
static int found(uint64_t value, uint64_t *ret)
{
	if (!value)
		return ABI_FAULT_VALUE_NONE;
	if (!agent.py.free_threaded)
		object_lives(value);
	*ret = value;
	return 0;
}

/* --- by name ------------------------------------------------------------------------------------------ */

static inline struct variable_hint *hint_of(uint64_t code, uint64_t id)
{
	return &agent.variables.hints[((code >> 5) ^ (id >> 3)) % VARIABLE_HINTS];
}

/* Where the names of the first slots of @code's frames are: a tuple of strs. */
static inline uint64_t names_of(uint64_t code)
{
	return word_at(code, object_at->code_names ? object_at->code_names : object_at->code_locals);
}

/*
 * The hint holds a reference to the tuple of names, so that a comparison of addresses is enough.  Tuples and strs run no
 * code of the program's when they are released.
 */
static void note_hint(const struct function *f, uint64_t id, uint32_t slot)
{
	struct variable_hint *h = hint_of(f->code, id);
	uint64_t names = agent.engine.turns || slot >= f->parts[0].n ? 0 : names_of(f->code), was = h->names;

	if (agent_thread.allocating)
		return;		/* the former names may be the program's no more: releasing them could change the interpreter */
	if (names)
		agent.py.Py_IncRef((struct pyobj *)(uintptr_t)names);
	*h = (struct variable_hint){ f->code, id, names, slot };
	agent_release((struct pyobj *)(uintptr_t)was);
}

void variable_forget(void)
{
	for (unsigned k = 0; k < VARIABLE_HINTS; k++) {
		uint64_t was = agent.variables.hints[k].names;

		agent.variables.hints[k] = (struct variable_hint){ 0 };
		agent_release((struct pyobj *)(uintptr_t)was);
	}
}

static uint32_t nparameters(uint64_t code)
{
	uint32_t flags = int_at(code, object_at->code_flags);

	return int_at(code, object_at->code_args) + int_at(code, object_at->code_kwargs) + !!(flags & HAS_ARGS) +
	       !!(flags & HAS_KWARGS);
}

/* The value in @slot of @frame, if it is not in a cell; or 0. */
static inline uint64_t plain_value(const char *frame, uint64_t code, uint32_t slot)
{
	uint64_t raw;

	if (object_at->code_names) {
		uint64_t kinds = word_at(code, object_at->code_kinds) + object_at->bytes_data;

		if (((const uint8_t *)(uintptr_t)kinds)[slot] & (KIND_CELL | KIND_FREE))
			return 0;
	}
	raw = word_at((uint64_t)(uintptr_t)frame, object_at->frame_locals + 8 * slot);
	return (raw & TAGGED_INT) == TAGGED_INT ? 0 : raw & ~(uint64_t)TAG_BITS;
}

/* The value of variable_hinted() in @frame, of @code; or 0. */
static inline __attribute__((always_inline)) uint64_t hinted_in(const char *frame, uint64_t code, uint64_t id, bool parameters)
{
	const struct variable_hint *h = hint_of(code, id);

	if (h->code != code || h->id != id || !h->names || h->names != names_of(code) ||
	    (parameters && h->slot >= int_at(code, object_at->code_args) && h->slot >= nparameters(code)))
		return 0;
	return plain_value(frame, code, h->slot);
}

bool variable_hinted(uint64_t id, bool parameters, uint64_t *ret)
{
	const char *frame;
	uint64_t code;

	if (!object_at->frame_locals || !pyframes_innermost(&frame, &code))
		return false;
	*ret = hinted_in(frame, code, id, parameters);
	if (!*ret)
		return false;
	object_lives(*ret);
	return true;
}

static inline __attribute__((always_inline)) uint64_t integer_in(const char *frame, uint64_t code, uint64_t dst, uint64_t what,
								   uint64_t number, uint64_t name)
{
	uint64_t value = 0, answer[2];
	int64_t integer;

	if (what == ABI_VALUE_NAMED)
		value = hinted_in(frame, code, name, true);
	else if (number < int_at(code, object_at->code_args))
		value = plain_value(frame, code, (uint32_t)number);
	if (!object_is_short_int_alive(value, &integer))
		return 1;
	object_lives(value);
	answer[0] = value;
	answer[1] = (uint64_t)integer;
	memcpy((void *)(uintptr_t)dst, &answer[0], 8);
	memcpy((void *)(uintptr_t)(dst + 8), &answer[1], 8);	/* word by word, as they are read */
	return 0;
}

/* Where no hook has linked the frame. */
static __attribute__((noinline)) uint64_t integer_at_top(uint64_t dst, uint64_t what, uint64_t number, uint64_t name)
{
	const char *frame;
	uint64_t code;

	return pyframes_innermost(&frame, &code) ? integer_in(frame, code, dst, what, number, name) : 1;
}

/* It calls nothing, so it saves no registers. */
uint64_t variable_integer(uint64_t dst, uint64_t size, uint64_t what, uint64_t number, uint64_t name, struct vm_thread *t)
{
	const char *frame = agent.pyframes.linked;

	(void)size, (void)t;
	if (__builtin_expect(!object_at->frame_locals || agent.py.free_threaded ||
			     (what != ABI_VALUE_NAMED && (agent_thread.arguments || agent_thread.call)), 0))
		return 1;
	/* An evaluator's frame, if one is linked, has a code object. */
	return frame ? integer_in(frame, pyframes_code_word(frame), dst, what, number, name) : integer_at_top(dst, what, number, name);
}

/* In 3.9 and 3.10, the name of a parameter used by an inner function occurs twice; its value is in the second slot. */
static uint64_t find_named(const struct function *f, const struct variable_name *name, uint32_t nslots)
{
	const struct variable_hint *h = hint_of(f->code, name->id);
	uint64_t value;

	if (h->code == f->code && h->id == name->id && h->slot < nslots && is_called(f, h->slot, name)) {
		value = value_at(f, h->slot);
		if (value)
			return value;
	}
	for (uint32_t slot = 0; slot < nslots; slot++) {
		value = is_called(f, slot, name) ? value_at(f, slot) : 0;
		if (value) {
			note_hint(f, name->id, slot);
			return value;
		}
	}
	return 0;
}

/* The value in the cell with the same name as the local in @slot. */
static uint64_t find_cell(const struct function *f, uint32_t slot)
{
	uint64_t name = name_at(f, slot);

	for (uint32_t k = f->parts[0].n; k < f->nslots; k++)
		if (name_at(f, k) == name)	/* variable names are interned */
			return value_at(f, k);
	return 0;
}

int variable_named(struct shm_run *r, const struct variable_name *name, bool parameters, uint64_t *ret)
{
	struct function f;
	uint32_t n;
	int err = find_function(r, &f);

	if (err)
		return err;
	if (!parameters)
		return found(find_named(&f, name, f.nslots), ret);
	n = nparameters(f.code);
	for (uint32_t slot = 0; !f.kinds && slot < n && slot < f.parts[0].n; slot++)
		if (!value_at(&f, slot) && is_called(&f, slot, name))
			return found(find_cell(&f, slot), ret);
	return found(find_named(&f, name, n < f.parts[0].n ? n : f.parts[0].n), ret);
}

int variable_parameter(struct shm_run *r, uint64_t n, uint64_t *ret)
{
	struct function f;
	const char *frame;
	uint64_t value, code;
	int err;

	if (object_at->frame_locals && pyframes_innermost(&frame, &code) && n < int_at(code, object_at->code_args)) {
		value = plain_value(frame, code, (uint32_t)n);
		if (value) {
			object_lives(value);
			return found(value, ret);
		}
	}
	err = find_function(r, &f);
	if (err)
		return err;
	if (n >= (uint64_t)int_at(f.code, object_at->code_args) + int_at(f.code, object_at->code_kwargs))
		return ABI_FAULT_VALUE_NONE;
	value = value_at(&f, (uint32_t)n);
	return found(value || f.kinds ? value : find_cell(&f, (uint32_t)n), ret);
}

/* Is the variable in @slot the function's own and not a parameter, nor the cell of one? */
static bool is_local(const struct function *f, uint32_t slot, uint32_t nparams)
{
	if (f->kinds)
		return slot >= nparams && !(f->kinds[slot] & KIND_FREE);
	if (slot < f->parts[0].n)
		return slot >= nparams;
	for (uint32_t k = 0; k < nparams && k < f->parts[0].n; k++)
		if (name_at(f, k) == name_at(f, slot))
			return false;
	return slot < f->parts[0].n + f->parts[1].n;
}

int variable_each(struct shm_run *r, unsigned which, int (*fn)(void *ctx, uint64_t name, uint64_t value), void *ctx)
{
	struct function f;
	uint32_t nparams;
	int err = find_function(r, &f);

	if (err)
		return err;
	nparams = nparameters(f.code);
	for (uint32_t slot = 0; slot < f.nslots && !err; slot++) {
		bool is_parameter = slot < nparams && slot < f.parts[0].n;
		uint64_t value;

		if (is_parameter ? !(which & ABI_VARIABLES_PARAMETERS) :
				   !(which & ABI_VARIABLES_LOCALS) || !is_local(&f, slot, nparams))
			continue;
		value = value_at(&f, slot);
		if (!value && is_parameter && !f.kinds)
			value = find_cell(&f, slot);
		if (value && !agent.py.free_threaded)
			object_lives(value);
		err = fn(ctx, name_at(&f, slot), value);
	}
	return err;
}

int variable_any(struct shm_run *r, const struct variable_name *name, uint64_t *ret)
{
	struct attribute_key k;
	struct pyobj *globals;
	struct object o;
	int err = variable_named(r, name, false, ret);

	if (err != ABI_FAULT_VALUE_NONE)
		return err;
	globals = agent.py.PyEval_GetGlobals();
	if (!globals)
		return err;
	object_open_alive(r, (uint64_t)(uintptr_t)globals, &o);
	attribute_text_key(&k, name->text, name->length);
	err = attribute_item(&o, &k, ret);
	return err ? err : found(*ret, ret);
}

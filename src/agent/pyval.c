/* SPDX-License-Identifier: MIT */
#include "agent/pyval.h"

#include "agent/agent.h"
#include "agent/attribute.h"
#include "agent/ccall.h"
#include "agent/object.h"
#include "agent/reads.h"
#include "agent/show.h"
#include "agent/stapshow.h"
#include "agent/task.h"
#include "agent/variable.h"
#include "vm/memory.h"

/* A question: about an object, or about something else; with a name. */
struct ask {
	struct shm_run *run;
	uint64_t object, name;		/* @name: the address of a text, or another parameter */
	void *dst;
	uint32_t size;
};

/* Returns what struct shm_values says. */
typedef int64_t answer(const struct ask *a);

static int64_t fault(int kind)
{
	return -(int64_t)kind;
}

static int64_t give(const struct ask *a, int err, uint64_t number)
{
	if (err)
		return fault(err);
	memcpy(a->dst, &number, sizeof(number));
	return 0;
}

/* Open the object of the question. */
static int open_it(const struct ask *a, struct object *o)
{
	return object_open(a->run, a->object, o);
}

/* --- where objects come from -------------------------------------------------------------------------- */

/* An object of the event itself. */
static int64_t give_own(const struct ask *a, uint64_t value)
{
	if (value)
		object_lives(value);
	return give(a, value ? 0 : ABI_FAULT_VALUE_NONE, value);
}

static int64_t ask_ret(const struct ask *a)
{
	return give_own(a, (uint64_t)(uintptr_t)agent_thread.result);
}

/* The result; None if an exception leaves the function, as for sys.settrace. */
static int64_t ask_result(const struct ask *a)
{
	return give_own(a, (uint64_t)(uintptr_t)(agent_thread.exception && !agent_thread.result ? agent.py.none : agent_thread.result));
}

static int64_t ask_exc(const struct ask *a)
{
	return give_own(a, (uint64_t)(uintptr_t)agent_thread.exception);
}

/*
 * Was the exception raised in the function of this event, or by a C function that it called?  Then its traceback ends
 * with this function, its first entry; else that is followed by the called functions.
 */
static int64_t ask_raised(const struct ask *a)
{
	static const char key[] = "__traceback__";
	uint64_t traceback = (uint64_t)(uintptr_t)agent_thread.traceback, exception = (uint64_t)(uintptr_t)agent_thread.exception;
	struct attribute_key k;
	struct object o;
	int err = 0;

	if (!object_at->traceback_next)
		return fault(ABI_FAULT_VALUE_UNKNOWN);
	if (!traceback && exception) {
		object_lives(exception);
		object_open_alive(a->run, exception, &o);
		attribute_text_key(&k, key, sizeof(key) - 1);
		err = attribute_find(&o, &k, &traceback);
	}
	if (err || !traceback || traceback == object_at->none)
		return fault(err ? err : ABI_FAULT_VALUE_NONE);
	if (!agent.py.free_threaded)	/* elsewhere another thread may give the exception another one */
		object_lives(traceback);
	if (object_open(a->run, traceback, &o))
		return fault(ABI_FAULT_BADADDR);
	return give(a, 0, !object_word(&o, object_at->traceback_next));
}

/* The main interpreter is 0. */
static int64_t ask_interp(const struct ask *a)
{
	return give(a, 0, (uint64_t)agent.py.PyInterpreterState_GetID(agent.py.PyInterpreterState_Get()));
}

static int64_t ask_arg(const struct ask *a)
{
	uint64_t value = 0;
	struct object o;
	int err;

	if (agent_thread.arguments) {
		object_open_alive(a->run, (uint64_t)(uintptr_t)agent_thread.arguments, &o);
		return give_own(a, o.flags & TYPE_TUPLE ? object_item(&o, a->object) : 0);
	}
	err = agent_thread.call ? ccall_argument(a->run, agent_thread.call, a->object, &value) :
				   variable_parameter(a->run, a->object, &value);
	return give(a, err, value);
}

enum scope { PARAMETERS, VARIABLES, GLOBALS };

static int64_t ask_by_name(const struct ask *a, enum scope scope)
{
	char text[OBJECT_NAME + 1];
	struct variable_name name = { text, 0, a->name };
	uint64_t value = 0;
	int64_t n;
	int err;

	if (__builtin_expect(variable_hinted(a->name, scope == PARAMETERS, &value), 1))
		return give(a, 0, value);
	n = memory_read_string(a->run, text, sizeof(text), a->name);
	if (n < 1)
		return fault(ABI_FAULT_BADADDR);
	name.length = (uint32_t)n - 1;
	err = scope == GLOBALS ? variable_any(a->run, &name, &value) : variable_named(a->run, &name, scope == PARAMETERS, &value);
	return give(a, err, value);
}

static int64_t ask_named(const struct ask *a)
{
	return ask_by_name(a, PARAMETERS);
}

static int64_t ask_local(const struct ask *a)
{
	return ask_by_name(a, VARIABLES);
}

static int64_t ask_var(const struct ask *a)
{
	return ask_by_name(a, GLOBALS);
}

/* --- what they have --------------------------------------------------------------------------------- */

typedef int finder(const struct object *o, const struct attribute_key *k, uint64_t *value);

static int64_t find_by_name(const struct ask *a, finder *find)
{
	char text[OBJECT_NAME + 1];
	int64_t n = memory_read_string(a->run, text, sizeof(text), a->name);
	struct attribute_key k;
	struct object o;
	uint64_t value = 0;
	int err = n < 1 ? ABI_FAULT_BADADDR : open_it(a, &o);

	if (!err) {
		attribute_text_key(&k, text, (uint32_t)n - 1);
		err = find(&o, &k, &value);
	}
	return give(a, err, value);
}

static int64_t ask_attr(const struct ask *a)
{
	return find_by_name(a, attribute_find);
}

static int64_t ask_key(const struct ask *a)
{
	return find_by_name(a, attribute_item);
}

static int64_t ask_item(const struct ask *a)
{
	struct attribute_key k;
	struct object o;
	uint64_t value = 0;
	int err = open_it(a, &o);

	if (!err) {
		attribute_number_key(&k, (int64_t)a->name);
		err = attribute_item(&o, &k, &value);
	}
	return give(a, err, value);
}

/* --- what they are ------------------------------------------------------------------------------------ */

static int64_t ask_int(const struct ask *a)
{
	struct object o;
	int64_t value = 0;
	int err = open_it(a, &o);

	if (!err)
		err = object_int(&o, &value);
	return give(a, err, (uint64_t)value);
}

static int64_t ask_len(const struct ask *a)
{
	struct object_text t;
	struct object o;
	int err = open_it(a, &o);

	if (err)
		return fault(err);
	if (o.flags & TYPE_STR) {
		err = object_text(&o, &t);
		return give(a, err, t.length);
	}
	if (!(o.flags & (TYPE_LIST | TYPE_TUPLE | TYPE_BYTES)))
		return fault(ABI_FAULT_VALUE_KIND);
	return give(a, object_at->size ? 0 : ABI_FAULT_VALUE_UNKNOWN, object_size(&o));
}

static int64_t put_bytes(const struct ask *a, const struct object *o)
{
	uint64_t n = object_size(o);
	char *dst = a->dst;

	if (!object_at->bytes_data)
		return fault(ABI_FAULT_VALUE_UNKNOWN);
	if (n > a->size - 1)
		n = a->size - 1;
	if (!object_read(o, dst, (uint32_t)n, object_at->bytes_data))
		return fault(ABI_FAULT_BADADDR);
	dst[n] = '\0';
	return (int64_t)strlen(dst) + 1;
}

static int64_t ask_str(const struct ask *a)
{
	struct object_text t;
	struct object o;
	int err = open_it(a, &o);

	if (!err && o.flags & TYPE_BYTES)
		return put_bytes(a, &o);
	if (!err)
		err = object_text(&o, &t);
	return err ? fault(err) : object_put_text(a->run, &t, a->dst, a->size);
}

/* As by type.__name__: without the module, which precedes the names of C types. */
static int64_t ask_type(const struct ask *a)
{
	struct object o;
	uint64_t name;
	int64_t n;
	char *dot;
	int err = open_it(a, &o);

	if (err)
		return fault(err);
	if (!object_at->type_name)
		return fault(ABI_FAULT_VALUE_UNKNOWN);
	if (memory_read(a->run, &name, sizeof(name), o.type + object_at->type_name))
		return fault(ABI_FAULT_BADADDR);
	n = memory_read_string(a->run, a->dst, a->size, name);
	if (n < 1)
		return fault(ABI_FAULT_BADADDR);
	dot = o.flags & TYPE_HEAP ? NULL : strrchr(a->dst, '.');
	if (dot) {
		n = (int64_t)strlen(dot + 1) + 1;
		memmove(a->dst, dot + 1, (size_t)n);
	}
	return n;
}

static int64_t ask_show(const struct ask *a)
{
	return show_object(a->run, a->object, a->dst, a->size);
}

static int64_t ask_text(const struct ask *a)
{
	return stapshow_object(a->run, a->object, a->dst, a->size);
}

static int64_t ask_vars(const struct ask *a)
{
	return stapshow_variables(a->run, a->object, a->dst, a->size);
}

static int64_t ask_args(const struct ask *a)
{
	return agent_thread.call ? show_call(a->run, agent_thread.call, a->dst, a->size) :
				   show_parameters(a->run, a->dst, a->size);
}

static int64_t ask_ended(const struct ask *a)
{
	const void *value = agent_thread.result ? agent_thread.result : agent_thread.exception;

	if (value)
		object_lives((uint64_t)(uintptr_t)value);
	return show_if_any(a->run, (uint64_t)(uintptr_t)value, a->dst, a->size);
}

static int64_t ask_task(const struct ask *a)
{
	return task_text(a->run, false, a->dst, a->size);
}

static int64_t ask_coro(const struct ask *a)
{
	return task_text(a->run, true, a->dst, a->size);
}

static int float_of(const struct object *o, double *ret)
{
	if (!object_at->float_value)
		return ABI_FAULT_VALUE_UNKNOWN;
	if (!attribute_is_a(o->run, o->type, object_at->float_type))
		return ABI_FAULT_VALUE_KIND;
	return object_read(o, ret, sizeof(*ret), object_at->float_value) ? 0 : ABI_FAULT_BADADDR;
}

/* The bits of a float. */
static int64_t ask_float(const struct ask *a)
{
	struct object o;
	uint64_t bits = 0;
	double value = 0;
	int err = open_it(a, &o);

	if (!err)
		err = float_of(&o, &value);
	memcpy(&bits, &value, sizeof(bits));
	return give(a, err, bits);
}

static int64_t ask_scale(const struct ask *a)
{
	int64_t times = (int64_t)a->name, whole = 0;
	struct object o;
	double value = 0;
	int err = open_it(a, &o);

	if (!err && o.flags & TYPE_INT) {
		err = object_int(&o, &whole);
		if (!err && __builtin_mul_overflow(whole, times, &whole))
			err = ABI_FAULT_VALUE_RANGE;
		return give(a, err, (uint64_t)whole);
	}
	if (!err)
		err = float_of(&o, &value);
	value *= (double)times;
	if (!err && !(value > -0x1p63 && value < 0x1p63))
		err = ABI_FAULT_VALUE_RANGE;
	if (!err) {	/* round halves away from zero; the remainder is exact */
		whole = (int64_t)value;
		value -= (double)whole;
		whole += value >= 0.5 ? 1 : value <= -0.5 ? -1 : 0;
	}
	return give(a, err, (uint64_t)whole);
}

/* --- by number ---------------------------------------------------------------------------------------- */

static const struct {
	answer *fn;
	uint32_t least;			/* minimum @size */
} answers[] = {
#define ABI_VALUE(NAME, FN, LEAST) [ABI_VALUE_##NAME] = { ask_##FN, LEAST },
#include "abi/values.def"
#undef ABI_VALUE
};

/* Without a GIL. */
static __attribute__((noinline)) int64_t ask_until_it_holds(const struct ask *a, answer *fn)
{
	for (unsigned n = 0; n < READS_TRIES; n++) {
		uint64_t given = 0;
		int64_t ret;

		memset(a->dst, 0, n ? a->size : 0);	/* keys are compared with their padding */
		reads_begin(a->run, a->object);
		ret = fn(a);
		if (!ret)
			memcpy(&given, a->dst, sizeof(given));
		if (reads_end(a->run, given))
			return ret;
	}
	return fault(ABI_FAULT_VALUE_CHANGES);
}

static __attribute__((noinline)) uint64_t any_value(uint64_t dst, uint64_t size, uint64_t what, uint64_t object, uint64_t name,
						     struct vm_thread *t)
{
	struct ask a = { t->user, object, name, (void *)(uintptr_t)dst, (uint32_t)size };
	int64_t ret = fault(ABI_FAULT_VALUE_UNKNOWN);

	if (what < sizeof(answers) / sizeof(*answers) && size >= answers[what].least)
		ret = __builtin_expect(agent.py.free_threaded, 0) ? ask_until_it_holds(&a, answers[what].fn) : answers[what].fn(&a);
	if (ret < 0)
		memset(a.dst, 0, size);
	return (uint64_t)ret;
}

/* The questions that are asked most have functions of their own, which save no registers, for their usual case. */
static __attribute__((noinline)) uint64_t named_value(uint64_t dst, uint64_t size, uint64_t what, uint64_t object,
						       uint64_t name, struct vm_thread *t)
{
	uint64_t found;

	if (__builtin_expect(!variable_hinted(name, true, &found), 0))
		return any_value(dst, size, what, object, name, t);
	memcpy((void *)(uintptr_t)dst, &found, sizeof(found));
	return 0;
}

static uint64_t value(uint64_t dst, uint64_t size, uint64_t what, uint64_t object, uint64_t name, struct vm_thread *t)
{
	int64_t number;

	if (what == ABI_VALUE_NAMED && size >= sizeof(uint64_t))
		return named_value(dst, size, what, object, name, t);
	if (what != ABI_VALUE_INT || size < sizeof(number) || !object_is_short_int(t->user, object, &number))
		return any_value(dst, size, what, object, name, t);
	memcpy((void *)(uintptr_t)dst, &number, sizeof(number));
	return 0;
}

const struct shm_values pyval_values = { value, variable_integer };

/* SPDX-License-Identifier: MIT */
/*
 * Who waits for a task is known by its callbacks, since what awaits a future lets itself be called by it:
 *
 *	await task		the step of the task that waits: task_wakeup() of C, or Task.__wakeup() of Python
 *	gather, shield, wait	a function of asyncio.tasks that has the future which it sets, or the task, in a cell
 *	wait_for (to 3.11)	functools.partial(_release_waiter, future)
 *	TaskGroup		TaskGroup._on_task_done() of a group, which knows its task
 *
 * Other callbacks, the program's own among them, say nothing about who waits.
 *
 * A task that waits is suspended: what each of its coroutines awaits is the uppermost value of its frame.  Nothing else in
 * the interpreter tells it without code being run.  The offsets of that are known by version; they are used if they gave
 * the same as cr_await does, for coroutines of our own.
 */
#include "agent/awaiters.h"

#include "agent/modules.h"
#include "agent/pyframes.h"
#include "agent/pyframes_priv.h"
#include "agent/task_priv.h"
#include "agent/typename.h"
#include "vm/memory.h"

enum {
	TASKS_MAX = 32,			/* that wait one for another */
	HOPS = 6,			/* futures between two tasks */
	CALLBACKS = 16,			/* of a future */
	CELLS = 16,
	FUTURE_BYTES = 256,
	STATE_BEFORE = 5,		/* gi_frame_state: bytes before the frame */
	YIELD_ARG = 3, YIELD_FROM = 2,	/* 3.11, 3.12: from the instruction at hand, RESUME's argument, and its value there */
	STACK_TOP = 64, STACK_TOP_309 = 72, STACK_DEPTH_310 = 80, STACK_VALUES_310 = 64,	/* in a frame */
	DEPTH_MAX = 1 << 12,
	TAG_BITS = 7,
};
enum { CODE_GENERATOR = 0x20 | 0x80 | 0x100 | 0x200 };	/* co_flags of generators and coroutines of all kinds */

/* --- reading ------------------------------------------------------------------------------------------ */

static uint64_t word(struct shm_run *r, uint64_t addr)
{
	uint64_t w;

	return addr && addr % 8 == 0 && !memory_read(r, &w, sizeof(w), addr) ? w : 0;
}

/* Word @n behind the object's header. */
static uint64_t member(const struct object *o, unsigned n)
{
	return object_word(o, object_body() + 8 * n);
}

static int named(const struct object *o, const char *name, uint64_t *ret)
{
	struct attribute_key k;

	attribute_text_key(&k, name, (uint32_t)strlen(name));
	return attribute_find(o, &k, ret);
}

static bool is_called(const struct object *o, const char *type)
{
	return o->type && !strcmp(typename_of((struct pyobj *)(uintptr_t)o->type), type);
}

/* --- coroutines --------------------------------------------------------------------------------------- */

struct suspended {
	const char *frame;
	uint64_t code, awaited;		/* @awaited: 0 if that is not known */
};

/* Has the interpreter stopped the coroutine's frame in an await (or a yield from)? */
static bool awaits(const char *frame, uint64_t coroutine_type)
{
	int8_t state = ((const int8_t *)frame)[-STATE_BEFORE];
	const uint8_t *at;

	if (agent.py.minor >= 13)
		return state == (agent.py.minor >= 15 ? 2 : -1);
	if (state != -1)
		return false;
	at = (const uint8_t *)(uintptr_t)pyframes_word(frame, pyframes_at->instr);
	return coroutine_type == agent.tasks.coro_type || at[YIELD_ARG] >= YIELD_FROM;
}

static uint64_t awaited_by(struct shm_run *r, const char *frame)
{
	uint64_t at = (uint64_t)(uintptr_t)frame, top = 0;
	uint32_t depth = 0;

	switch (agent.py.minor) {
	case 9:
		top = word(r, at + STACK_TOP_309);
		break;
	case 10:
		memcpy(&depth, frame + STACK_DEPTH_310, sizeof(depth));
		top = depth < DEPTH_MAX && depth ? word(r, at + STACK_VALUES_310) + 8 * (uint64_t)depth : 0;
		break;
	case 11: case 12: case 13:
		memcpy(&depth, frame + STACK_TOP, sizeof(depth));
		top = depth < DEPTH_MAX && depth ? at + object_at->frame_locals + 8 * (uint64_t)depth : 0;
		break;
	default:
		top = word(r, at + STACK_TOP);
	}
	if (!top)
		return 0;
	/* From 3.15 on a word without an object can be above it. */
	at = word(r, top - 8) & ~(uint64_t)(agent.py.minor >= 14 ? TAG_BITS : 0);
	return at || agent.py.minor < 15 ? at : word(r, top - 16) & ~(uint64_t)TAG_BITS;
}

/* The coroutine or generator behind the object that await works with. */
static uint64_t behind(struct shm_run *r, uint64_t addr)
{
	static const char *const wrappers[] = {
		"coroutine_wrapper", "async_generator_asend", "async_generator_athrow", "anext_awaitable",
	};
	struct object o;

	if (!addr)
		return 0;
	task_open(r, addr, &o);
	for (unsigned k = 0; k < sizeof(wrappers) / sizeof(*wrappers); k++)
		if (is_called(&o, wrappers[k]))
			return member(&o, 0);
	return addr;
}

/* False: it is none of CPython's, or not suspended. */
static bool open_suspended(struct shm_run *r, uint64_t addr, struct suspended *ret)
{
	const struct task_state *t = &agent.tasks;
	struct object o;
	int8_t state;
	bool waits;

	*ret = (struct suspended){ .code = 0 };
	if (!addr)
		return false;
	task_open(r, addr, &o);
	if (!task_is_coroutine(&o) && o.type != t->agen_type)
		return false;
	if (t->coro_has_frame) {
		ret->frame = (const char *)(uintptr_t)addr + t->coro_frame_off;
		state = ((const int8_t *)ret->frame)[-STATE_BEFORE];
		if (agent.py.minor >= 15 ? state < 0 || state > 2 : state >= 0)
			return false;
		waits = awaits(ret->frame, o.type);
	} else {
		ret->frame = (const char *)(uintptr_t)object_word(&o, (uint32_t)t->coro_frame_off);
		waits = true;
	}
	ret->code = ret->frame ? pyframes_code(ret->frame) : 0;
	if (!ret->code)
		return false;
	ret->awaited = waits && pyframes_begun(ret->frame, ret->code) ? behind(r, awaited_by(r, ret->frame)) : 0;
	/* What a generator of 3.9 and 3.10 has there may be what it loops over. */
	if (!t->coro_has_frame && o.type == t->gen_type && ret->awaited) {
		task_open(r, ret->awaited, &o);
		if (o.type == t->gen_type)
			ret->awaited = 0;
	}
	return true;
}

/* --- callbacks ---------------------------------------------------------------------------------------- */

static bool is_future(const struct object *o)
{
	uint64_t found;

	return o->type && (attribute_is_a(o->run, o->type, agent.tasks.future_type) || !named(o, "_asyncio_future_blocking", &found));
}

/* 0 if it is no task. */
static uint64_t coroutine_of_task(const struct object *o)
{
	uint64_t found;

	if (!is_future(o) || task_coroutine(o, attribute_is_a(o->run, o->type, agent.tasks.type), &found))
		return 0;
	return found;
}

/* Does the name of @code's file end in @end? */
static bool is_in_file(struct shm_run *r, uint64_t code, const char *end)
{
	char chars[32];
	size_t n = strlen(end);
	struct object_text text;
	struct object o;

	task_open(r, pyframes_word((const void *)(uintptr_t)code, pyframes_at->file), &o);
	return n < sizeof(chars) && !object_text(&o, &text) && text.width == 1 && text.length >= n &&
	       object_chars(r, &text, text.length - n, n, chars) && !memcmp(chars, end, n);
}

/* Is @code the function of asyncio that is called so, in a file whose name ends in @file? */
static bool is_function(struct shm_run *r, uint64_t code, const char *name, const char *file)
{
	const char *last = strrchr(name, '.');
	struct object o;

	if (agent.py.minor < 11 && last)		/* where code objects have no qualified names */
		name = last + 1;
	task_open(r, pyframes_word((const void *)(uintptr_t)code, pyframes_at->name), &o);
	return object_is_text(&o, name, (uint32_t)strlen(name)) && is_in_file(r, code, file);
}

/* A function's code object: one of its first words, which all are objects. */
static uint64_t code_of(const struct object *function)
{
	enum { WORDS = 8 };

	for (unsigned k = 0; k < WORDS; k++) {
		uint64_t w = member(function, k);
		struct object o;

		if (!w || w % 8)
			continue;
		task_open(function->run, w, &o);
		if (o.type == pyframes_at->code_type)
			return w;
	}
	return 0;
}

/* The first future in the cells of @function. */
static uint64_t future_in_cells(const struct object *function)
{
	struct object closure, o;

	task_open(function->run, object_word(function, object_at->function_closure), &closure);
	if (!closure.addr || !(closure.flags & TYPE_TUPLE))
		return 0;
	for (uint64_t k = 0; k < object_size(&closure) && k < CELLS; k++) {
		uint64_t held;

		task_open(function->run, object_item(&closure, k), &o);
		held = o.type == object_at->cell ? object_word(&o, object_at->cell_value) : 0;
		if (!held)
			continue;
		task_open(function->run, held, &o);
		if (is_future(&o))
			return held;
	}
	return 0;
}

static uint64_t called_by_function(const struct object *f)
{
	static const char *const setters[] = {
		"gather.<locals>._done_callback", "shield.<locals>._inner_done_callback", "_wait.<locals>._on_completion",
	};
	uint64_t code = code_of(f);

	for (unsigned k = 0; code && k < sizeof(setters) / sizeof(*setters); k++)
		if (is_function(f->run, code, setters[k], "/asyncio/tasks.py"))
			return future_in_cells(f);
	return 0;
}

/* functools.partial(_release_waiter, FUTURE) */
static uint64_t called_by_partial(const struct object *partial)
{
	struct object o;
	uint64_t code;

	task_open(partial->run, member(partial, 0), &o);
	code = o.type == object_at->function_type ? code_of(&o) : 0;
	if (!code || !is_function(partial->run, code, "_release_waiter", "/asyncio/tasks.py"))
		return 0;
	task_open(partial->run, member(partial, 1), &o);
	return o.flags & TYPE_TUPLE ? object_item(&o, 0) : 0;
}

static uint64_t called_by_method(const struct object *method)
{
	uint64_t self = member(method, 1), parent, code;
	struct object o;

	task_open(method->run, member(method, 0), &o);
	code = o.type == object_at->function_type ? code_of(&o) : 0;
	if (!code || !self)
		return 0;
	if (is_function(method->run, code, "Task.__wakeup", "/asyncio/tasks.py"))
		return self;
	if (!is_function(method->run, code, "TaskGroup._on_task_done", "/asyncio/taskgroups.py"))
		return 0;
	task_open(method->run, self, &o);
	return named(&o, "_parent_task", &parent) ? 0 : parent;
}

/* task_wakeup, a function of C with the task as its self: other methods of tasks do not say that these wait. */
static uint64_t called_by_c(const struct object *f)
{
	static const char wakeup[] = "task_wakeup";
	char name[sizeof(wakeup)] = "";
	uint64_t definition = member(f, 0);

	memory_read(object_reader(), name, sizeof(name), definition ? word(object_reader(), definition) : 0);
	return memcmp(name, wakeup, sizeof(wakeup)) ? 0 : member(f, 1);
}

/* The task or future that goes on when @callback is called; 0: none. */
static uint64_t called_by(struct shm_run *r, uint64_t callback)
{
	struct object o;

	if (!callback)
		return 0;
	task_open(r, callback, &o);
	if (o.type == agent.tasks.builtin_type)
		return called_by_c(&o);
	if (o.type == agent.tasks.method_type)
		return called_by_method(&o);
	if (o.type == object_at->function_type)
		return called_by_function(&o);
	if (is_called(&o, "partial"))
		return called_by_partial(&o);
	return is_called(&o, "TaskWakeupMethWrapper") ? member(&o, 0) : 0;
}

static uint64_t waiting_for(struct shm_run *r, uint64_t future, unsigned hops);

/* The task that waits for what @callback belongs to; 0: it does not tell. */
static uint64_t waiting_by(struct shm_run *r, uint64_t callback, unsigned hops)
{
	uint64_t next = called_by(r, callback);
	struct object o;

	if (!next)
		return 0;
	task_open(r, next, &o);
	if (!is_future(&o))
		return 0;
	return coroutine_of_task(&o) ? next : waiting_for(r, next, hops);
}

/* The list of pairs of a callback and its context at @list. */
static uint64_t waiting_in_list(struct shm_run *r, uint64_t list, unsigned hops)
{
	uint64_t items, n, found = 0;
	struct object o;

	if (!list || list == object_at->none)
		return 0;
	task_open(r, list, &o);
	if (attribute_list(&o, &items, &n))
		return 0;
	for (uint64_t k = 0; !found && k < n && k < CALLBACKS; k++) {
		uint64_t pair = word(r, items + 8 * k);

		if (!pair)
			break;
		task_open(r, pair, &o);
		found = o.flags & TYPE_TUPLE ? waiting_by(r, object_item(&o, 0), hops) : 0;
	}
	return found;
}

/* The first task that waits for the future; 0: none is known. */
static uint64_t waiting_for(struct shm_run *r, uint64_t future, unsigned hops)
{
	uint64_t list, found;
	struct object o;

	if (!hops)
		return 0;
	task_open(r, future, &o);
	if (!attribute_is_a(r, o.type, agent.tasks.future_type))
		return named(&o, "_callbacks", &list) ? 0 : waiting_in_list(r, list, hops - 1);
	found = waiting_by(r, object_word(&o, (uint32_t)agent.tasks.callback_off), hops - 1);
	return found ? found : waiting_in_list(r, object_word(&o, (uint32_t)agent.tasks.callback_off + 16), hops - 1);
}

/* --- the stack ---------------------------------------------------------------------------------------- */

struct stack {
	struct shm_run *run;
	uint32_t pid, n, most;
	bool lines;
	uint64_t *words;
	struct pyobj **codes;
};

static void put(struct stack *s, const char *frame, uint64_t code)
{
	if (s->n == s->most)
		return;
	pyframes_put(s->pid, s->lines, frame, code, s->words + 2 * s->n);
	s->codes[s->n++] = (struct pyobj *)(uintptr_t)code;
}

/* The frames of a task that waits, the innermost first. */
static void put_task(struct stack *s, uint64_t addr)
{
	static struct suspended chain[PYFRAMES_MAX];	/* with the GIL, or in turn */
	struct object task;
	uint64_t coroutine;
	uint32_t n = 0;

	task_open(s->run, addr, &task);
	coroutine = coroutine_of_task(&task);
	/* Of a longer chain than can be shown the innermost ones. */
	for (uint32_t k = 0; k < 16 * PYFRAMES_MAX && open_suspended(s->run, coroutine, &chain[n % PYFRAMES_MAX]); k++)
		coroutine = chain[n++ % PYFRAMES_MAX].awaited;
	for (uint32_t k = 0; k < n && k < PYFRAMES_MAX; k++) {
		const struct suspended *c = &chain[(n - 1 - k) % PYFRAMES_MAX];

		put(s, c->frame, c->code);
	}
}

/* The frames of those that wait for @task, one behind the other.  False: nobody does. */
static bool put_awaiters(struct stack *s, uint64_t task)
{
	uint64_t seen[TASKS_MAX];
	unsigned n = 0;

	while (n < TASKS_MAX && s->n < s->most) {
		seen[n++] = task;
		task = waiting_for(s->run, task, HOPS);
		for (unsigned k = 0; task && k < n; k++)
			if (seen[k] == task)
				task = 0;		/* they wait for each other */
		if (!task)
			break;
		put_task(s, task);
	}
	return n > 1;
}

static bool is_coroutines(uint64_t code)
{
	uint32_t flags;

	memcpy(&flags, (const char *)(uintptr_t)code + object_at->code_flags, sizeof(flags));
	return flags & CODE_GENERATOR;
}

/* Does another coroutine run @frame's function?  That is then the first step of an eager task. */
static bool is_in_coroutine(const char *frame)
{
	uint64_t code;

	for (unsigned k = 0; k < PYFRAMES_MAX && pyframes_caller(&frame, &code); k++)
		if (is_coroutines(code))
			return true;
	return false;
}

uint32_t awaiters_walk(struct shm_run *r, uint32_t pid, bool lines, uint32_t most, uint64_t *words, struct pyobj **codes)
{
	struct stack s = { object_reader_of_living(r), pid, 0, most, lines, words, codes };
	const char *frame;
	uint64_t code, task;
	bool ok;

	for (ok = pyframes_top(&frame, &code); ok && s.n < most; ok = pyframes_caller(&frame, &code)) {
		if (pyframes_is_hidden(code))
			continue;
		put(&s, frame, code);
		if (!agent.tasks.awaiters || !is_coroutines(code))
			continue;
		task = task_of_frame(r, frame);
		if (task && (put_awaiters(&s, task) || !is_in_coroutine(frame)))
			break;
	}
	return s.n;
}

/* --- measuring ---------------------------------------------------------------------------------------- */

static uint64_t attribute_of(struct pyobj *o, const char *name)
{
	struct pyobj *value = o ? agent.py.PyObject_GetAttrString(o, name) : NULL;

	agent.py.PyErr_Clear();
	agent_release(value);		/* @o has it, too */
	return (uint64_t)(uintptr_t)value;
}

/* Does the coroutine @o await what its attribute says? */
static bool is_alike(struct pyobj *o, const char *attribute)
{
	struct suspended s;
	uint64_t wanted = attribute_of(o, attribute);

	return o && open_suspended(object_reader(), (uint64_t)(uintptr_t)o, &s) && s.awaited == behind(object_reader(), wanted) &&
	       s.code && wanted;
}

static struct pyobj *in(struct pyobj *space, const char *name)
{
	return agent.py.PyDict_GetItemString(space, name);
}

static void measure_callbacks(struct task_state *t, struct pyobj *future, struct pyobj *first, struct pyobj *second)
{
	uint64_t base = (uint64_t)(uintptr_t)future, items, n;
	struct object o, pair;

	if (!future || !first || !second)
		return;
	for (uint32_t off = object_body(); off < FUTURE_BYTES; off += 8)
		if (word(object_reader(), base + off) == (uint64_t)(uintptr_t)first) {
			object_open(object_reader(), word(object_reader(), base + off + 16), &o);
			if (attribute_list(&o, &items, &n) || n != 1 ||
			    object_open(object_reader(), word(object_reader(), items), &pair) || !(pair.flags & TYPE_TUPLE) ||
			    object_item(&pair, 0) != (uint64_t)(uintptr_t)second)
				return;
			t->callback_off = off;
			return;
		}
}

/* What a coroutine awaits is found, through two of them and two generators, and nothing where one only yields. */
static bool finds_awaited(struct pyobj *space)
{
	struct pyobj *rest = in(space, "rest");
	struct suspended s;

	if (!is_alike(in(space, "outer"), "cr_await") || !is_alike(in(space, "inner"), "cr_await"))
		return false;
	return (!agent.tasks.coro_has_frame || is_alike(in(space, "waits"), "gi_yieldfrom")) && rest &&
	       open_suspended(object_reader(), (uint64_t)(uintptr_t)rest, &s) && !s.awaited;
}

void awaiters_measure(struct task_state *t, struct pyobj *module)
{
	static const char source[] =
		"class Loop:\n def get_debug(self): return False\n"
		"loop = Loop()\n"
		"method = loop.get_debug\n"
		"builtin = len\n"
		"future = Future(loop=loop)\n"
		"future.add_done_callback(builtin)\n"
		"future.add_done_callback(method)\n"
		"class Waits:\n"
		" def rest(self):\n  for k in (n for n in [1]): yield k\n"
		" def __await__(self): yield from self.rest()\n"
		"async def inner(a, b=1):\n c = [a, b]\n return [c, await Waits()]\n"
		"async def outer():\n return (1, 2, await inner(3))\n"
		"async def several(): yield 1\n"
		"several = several()\n"
		"outer = outer()\n"
		"outer.send(None)\n"
		"inner = outer.cr_await\n"
		"waits = inner.cr_await\n"
		"rest = waits.gi_yieldfrom\n";
	enum { FILE_INPUT = 257 };
	const struct capi *py = &agent.py;
	struct pyobj *code = py->Py_CompileString(source, "<dtap>", FILE_INPUT), *space = py->PyDict_New();
	struct pyobj *future = py->PyObject_GetAttrString(module, "Future"), *builtins = modules_get("builtins");
	struct pyobj *result = NULL;

	if (code && space && future && builtins && !py->PyDict_SetItemString(space, "Future", future) &&
	    !py->PyDict_SetItemString(space, "__builtins__", builtins))
		result = py->PyEval_EvalCode(code, space, space);
	if (result && agent.pyframes.known && t->coro_frame_off && object_at->function_closure && object_at->frame_locals) {
		py->Py_IncRef(future);
		t->future_type = (uint64_t)(uintptr_t)future;
		t->agen_type = (uint64_t)(uintptr_t)agent_type(in(space, "several"));
		t->method_type = (uint64_t)(uintptr_t)agent_type(in(space, "method"));
		t->builtin_type = (uint64_t)(uintptr_t)agent_type(in(space, "builtin"));
		measure_callbacks(t, in(space, "future"), in(space, "builtin"), in(space, "method"));
		t->awaiters = t->callback_off && finds_awaited(space);
	}
	agent_release(result);
	agent_release(builtins);
	agent_release(future);
	agent_release(space);
	agent_release(code);
	py->PyErr_Clear();
}

#include "probe/pytasks.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/ends.h"
#include "base/strbuf.h"
#include "probe/pycode.h"
#include "probe/pylocals.h"
#include "probe/pystacks_priv.h"

enum {
	TASKS_MAX = 2000,
	COROUTINES_MAX = 64,		/* nested awaits of a task */
	FRAME_WORDS = 12,		/* of a frame, up to its globals */
	OBJECT_WORDS = 48,		/* of a task or coroutine */
	STATE_WORDS = 1024,		/* of a thread's state, which 3.14 has the list of tasks in */
	NAME_MAX = 128,
	STACKREF_TAGS = 7,
};

/* Offsets behind an object's header. */
enum { MODULE_DICT = 0, WEAKREF_OBJECT = 0, HELD = 0, FRAME_OF_OLD = 0, FUTURE_LOOP = 0 };

struct tasks {
	struct pystacks_reader *r;
	const struct pyvalues *v;
	struct pystack *st;
	uint64_t loop;			/* of the thread; 0: unknown */
	size_t cap;
};

static uint64_t word(const struct tasks *t, uint64_t addr)
{
	return addr ? remote_word(&t->r->mem, addr) : 0;
}

static uint64_t held(const struct tasks *t, uint64_t obj, uint32_t off)
{
	return word(t, obj + t->v->head + off);
}

/* --- coroutines ---------------------------------------------------------------------------------------- */

static bool is_coroutine(const struct tasks *t, uint64_t obj)
{
	return pyvalue_type_is(t->v, obj, "coroutine") || pyvalue_type_is(t->v, obj, "generator") ||
	       pyvalue_type_is(t->v, obj, "async_generator");
}

/*
 * Where a coroutine stands.  From 3.11 on its frame is inside it, and the byte 5 before that says in which state it
 * is (pycore_frame.h, enum _framestate).
 */
struct suspended {
	uint64_t frame, code, instr;
	bool awaits;
};

static uint64_t instr_of(const struct tasks *t, uint64_t frame, uint64_t code)
{
	const struct abi_python *py = &t->r->py;

	if (py->lasti_scale)
		return (uint64_t)((int64_t)(int32_t)remote_int(&t->r->mem, frame + py->instr) * py->lasti_scale);
	return word(t, frame + py->instr) - code - py->first_instr;
}

static bool find_frame(const struct tasks *t, uint64_t coro, struct suspended *ret)
{
	enum { STATE_BEFORE = 5, NEW = 0x030b, NUMBERED = 0x030f, CODE_MAX = 1 << 24 };
	const struct abi_python *py = &t->r->py;
	uint8_t state;

	if (py->version < NEW) {
		ret->frame = held(t, coro, FRAME_OF_OLD);
		ret->code = pyvalue_type_is(t->v, ret->frame, "frame") ? word(t, ret->frame + py->code) : 0;
		ret->instr = instr_of(t, ret->frame, ret->code);
		ret->awaits = true;
		return ret->code && word(t, ret->code + py->type) == py->code_type;
	}
	for (uint64_t off = t->v->head; off < 8 * OBJECT_WORDS / 2; off += 8) {
		ret->frame = coro + off;
		ret->code = word(t, ret->frame + py->code) & ~(uint64_t)STACKREF_TAGS;
		if (!ret->code || ret->code % 8 || word(t, ret->code + py->type) != py->code_type)
			continue;
		ret->instr = instr_of(t, ret->frame, ret->code);
		if ((int64_t)ret->instr < -16 || (int64_t)ret->instr > CODE_MAX ||
		    !remote_get(&t->r->mem, ret->frame - STATE_BEFORE, &state, 1))
			continue;
		ret->awaits = state == (py->version < NUMBERED ? 0xff : 2);
		return py->version < NUMBERED ? (int8_t)state <= 0 : state < 5;
	}
	return false;
}

/* What a suspended coroutine awaits: the uppermost value of its stack. */
static uint64_t awaited(const struct tasks *t, const struct suspended *s)
{
	enum { TOP = 64, TOP_309 = 72, DEPTH_310 = 80, VALUES_310 = 64, DEPTH_MAX = 1 << 12 };
	uint16_t version = (uint16_t)t->r->py.version;
	uint32_t depth;
	uint64_t top;

	if (!s->awaits)
		return 0;
	if (version == 0x0309) {
		top = word(t, s->frame + TOP_309);
	} else if (version == 0x030a) {
		depth = remote_int(&t->r->mem, s->frame + DEPTH_310);
		top = depth && depth < DEPTH_MAX ? word(t, s->frame + VALUES_310) + 8ull * depth : 0;
	} else if (version < 0x030e) {
		depth = remote_int(&t->r->mem, s->frame + TOP);
		top = depth && depth < DEPTH_MAX ? s->frame + t->r->slots->first + 8ull * depth : 0;
	} else {
		top = word(t, s->frame + TOP);
	}
	if (top % 8)
		return 0;
	/* From 3.15 on a word without an object can be above it. */
	for (uint64_t off = 8; off <= 16; off += 8) {
		uint64_t obj = word(t, top - off) & ~(uint64_t)(t->r->slots->is_tagged ? STACKREF_TAGS : 0);

		if (obj || version < 0x030f)
			return obj;
	}
	return 0;
}

/* The coroutine, future or other object behind what await works with. */
static uint64_t behind(const struct tasks *t, uint64_t obj)
{
	static const char *const wrappers[] = {
		"async_generator_asend", "async_generator_athrow", "coroutine_wrapper", "_asyncio.FutureIter",
	};

	for (size_t i = 0; i < sizeof(wrappers) / sizeof(wrappers[0]); i++)
		if (pyvalue_type_is(t->v, obj, wrappers[i]))
			return held(t, obj, HELD);
	return obj;
}

/* --- a task -------------------------------------------------------------------------------------------- */

/* A task's coroutine; in a task of C's its name is the next member.  0: it is no task. */
static uint64_t coroutine_of(const struct tasks *t, uint64_t task, uint64_t *name)
{
	uint64_t size;

	if (pyvalue_is_a(t->v, task, "_asyncio.Task", &size)) {
		for (uint64_t off = 0; off + t->v->head + 16 <= size && off < 8 * OBJECT_WORDS; off += 8) {
			uint64_t obj = held(t, task, (uint32_t)off);

			*name = held(t, task, (uint32_t)off + 8);
			if (is_coroutine(t, obj) && (pyvalue_type_is(t->v, *name, "str") || pyvalue_type_is(t->v, *name, "int")))
				return obj;
		}
		return 0;
	}
	*name = pyvalue_is_a(t->v, task, "Task", &size) ? pyvalue_attribute(t->v, task, "_name") : 0;
	return *name ? pyvalue_attribute(t->v, task, "_coro") : 0;
}

/* A name is an int while nobody has asked for it: Task-N. */
static const char *name_of(const struct tasks *t, uint64_t name)
{
	struct strbuf text = { 0 };
	const char *ret;

	if (!pyvalue_text(t->v, name, NAME_MAX, &text)) {
		strbuf_puts(&text, "Task-");
		pyvalue_show(t->v, name, NAME_MAX, &text);
	}
	ret = arena_printf(t->r->arena, "%s", strbuf_str(&text));
	strbuf_fini(&text);
	return ret;
}

static bool is_in_stack(const struct pystack *st, uint64_t frame)
{
	for (size_t i = 0; i < st->n; i++)
		if (st->frames[i].at == frame)
			return true;
	return false;
}

static void wait_for(struct tasks *t, uint64_t obj, struct pystack_task *task)
{
	uint64_t name;

	struct strbuf text = { 0 };

	task->awaits = obj;
	if (!obj)
		return;
	if (coroutine_of(t, obj, &name)) {
		task->awaits_task = name_of(t, name);
	} else {
		pyvalue_type_name(t->v, obj, &text);
		task->awaits_type = arena_printf(t->r->arena, "%s", strbuf_str(&text));
	}
	strbuf_fini(&text);
}

/* Future.__await__(), as Python has it: it yields the future. */
static bool is_future_wait(const struct pystack_frame *f)
{
	return ends_with(f->code->name, "__await__") && ends_with(f->code->file, "/asyncio/futures.py");
}

static void add_task(struct tasks *t, uint64_t addr)
{
	struct pystack_frame frames[COROUTINES_MAX] = { 0 };
	struct pystack_task task = { .addr = addr };
	uint64_t name, coro = coroutine_of(t, addr, &name);
	uint64_t loop = coro ? pyvalue_attribute(t->v, addr, "_loop") : 0;
	struct suspended s;
	struct pystack *st = t->st;

	loop = loop ? loop : held(t, addr, FUTURE_LOOP);
	if (!coro || (t->loop && loop != t->loop))
		return;
	while (task.n < COROUTINES_MAX && is_coroutine(t, coro) && find_frame(t, coro, &s)) {
		const struct pycode *c = pystacks_code(t->r, s.code);

		if (!c)
			break;
		task.runs |= is_in_stack(st, s.frame);
		frames[task.n++] = (struct pystack_frame){ .code = c, .line = pycode_line(c, (int32_t)s.instr), .native = SIZE_MAX,
							   .at = s.frame, .code_at = s.code, .instr = s.instr };
		coro = behind(t, awaited(t, &s));
	}
	if (!task.n)			/* it has ended */
		return;
	if (!task.runs)
		wait_for(t, is_future_wait(&frames[task.n - 1]) ? pylocals_value(t->r, &frames[task.n - 1], 0) : coro, &task);
	task.name = name_of(t, name);
	task.frames = arena_alloc(t->r->arena, task.n * sizeof(*task.frames));
	for (size_t i = 0; i < task.n; i++)
		task.frames[i] = frames[task.n - 1 - i];
	st->tasks = arena_grow(t->r->arena, st->tasks, &t->cap, st->ntasks, sizeof(*st->tasks));
	st->tasks[st->ntasks++] = task;
}

/* --- all tasks ----------------------------------------------------------------------------------------- */

static bool is_late(const struct tasks *t)
{
	return pyvalue_is_late(t->v);
}

static bool is_enough(const struct tasks *t)
{
	return t->st->ntasks >= TASKS_MAX || is_late(t);
}

static bool add_weak(void *ctx, uint64_t ref)
{
	struct tasks *t = ctx;

	if (is_enough(t))
		return false;
	if (pyvalue_type_is(t->v, ref, "weakref.ReferenceType") || pyvalue_type_is(t->v, ref, "weakref") ||
		 pyvalue_type_is(t->v, ref, "KeyedRef"))
		add_task(t, held(t, ref, WEAKREF_OBJECT));
	else
		add_task(t, ref);
	return true;
}

/* The dictionary of the module asyncio.tasks, which the module of the frame @f has imported. */
static uint64_t find_module(const struct tasks *t, const struct pystack_frame *f)
{
	for (uint64_t i = 0; i < FRAME_WORDS; i++) {
		uint64_t dict = word(t, f->at + 8 * i), module;

		module = dict % 8 ? 0 : pyvalue_item(t->v, dict, "tasks");
		if (module && pyvalue_type_is(t->v, module, "module"))
			return held(t, module, MODULE_DICT);
	}
	return 0;
}

static void add_known(struct tasks *t, uint64_t module)
{
	static const char *const weak_sets[] = { "_all_tasks", "_scheduled_tasks" };

	bool all = true;

	for (size_t i = 0; i < sizeof(weak_sets) / sizeof(weak_sets[0]); i++)
		all = pyvalue_each(t->v, pyvalue_attribute(t->v, pyvalue_item(t->v, module, weak_sets[i]), "data"), add_weak, t) && all;
	all = pyvalue_each(t->v, pyvalue_item(t->v, module, "_eager_tasks"), add_weak, t) && all;
	t->st->tasks_cut |= !all || is_late(t);
}

/* The list from 3.14 on: a ring through the tasks and its head in the thread's state. */
static void add_listed(struct tasks *t)
{
	uint64_t head = 0, node = 0, task_off = 0;

	for (uint64_t i = 0; i < STATE_WORDS && !task_off; i++) {
		head = t->st->state + 8 * i;
		node = word(t, head);
		if (!node || node % 8 || node == head || word(t, node + 8) != head)
			continue;
		for (uint64_t off = t->v->head; off < 8 * OBJECT_WORDS && !task_off; off += 8)
			if (pyvalue_type_is(t->v, node - off, "_asyncio.Task"))
				task_off = off;
	}
	for (size_t i = 0; task_off && node && node != head; i++, node = word(t, node)) {
		if (i == TASKS_MAX || is_enough(t)) {
			t->st->tasks_cut = true;
			break;
		}
		if (pyvalue_type_is(t->v, node - task_off, "_asyncio.Task"))
			add_task(t, node - task_off);
	}
}

static bool is_asyncio(const struct pystack_frame *f)
{
	return ends_with(f->code->file, "/asyncio/base_events.py") || ends_with(f->code->file, "/asyncio/runners.py");
}

bool pytasks_has(const struct pystack *st)
{
	for (size_t i = 0; i < st->n; i++)
		if (is_asyncio(&st->frames[i]))
			return true;
	return false;
}

void pytasks_read(struct pystacks_reader *r, struct pystack *st)
{
	enum { LISTED = 0x030e };
	struct tasks t = { .r = r, .v = &r->values, .st = st };
	uint64_t module = 0;

	remote_forget(&r->mem);
	st->tasks = NULL;
	st->ntasks = 0;
	st->tasks_cut = false;
	for (size_t i = 0; i < st->n; i++) {
		const struct pystack_frame *f = &st->frames[i];

		if (!t.loop && is_asyncio(f) && (ends_with(f->code->name, "run_forever") || ends_with(f->code->name, "_run_once")))
			t.loop = pylocals_value(r, f, 0);
		if (!module && is_asyncio(f))
			module = find_module(&t, f);
	}
	if (!module)
		return;
	add_known(&t, module);
	if (r->py.version >= LISTED)
		add_listed(&t);
}

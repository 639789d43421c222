/* SPDX-License-Identifier: MIT */
/*
 * When a task of asyncio is made, told by what the interpreter does then, whoever makes it:
 *
 *	to 3.13		Task's __init__() puts the task into a set of asyncio.tasks, by a call of WeakSet.add()
 *	from 3.14 on	tasks of Python do; one of C lets its loop call its first step, by call_soon()
 *	from 3.12 on	an eager task begins at once, inside __init__(), and is put into the set afterwards, unless it ends
 *
 * So these functions' parameters are looked at, and the first step of a coroutine.  An eager task of Python, or up to 3.13
 * of C, is in a set of its own during that step.  One of C from 3.14 on is known by its caller, which is not the handle that
 * a loop keeps for a call: so where a loop is not asyncio's own (uvloop), a task of C is seen there when it begins.
 */
#include "agent/code.h"
#include "agent/pyframes.h"
#include "agent/pyframes_priv.h"
#include "agent/task_priv.h"
#include "agent/typename.h"
#include "agent/variable.h"
#include "vm/memory.h"

/* From object_body() on: a set; TaskStepMethWrapper: sw_task, sw_arg. */
enum { SET_MASK = 16, SET_TABLE = 24, SET_CHUNK = 8, SET_MOST = 4096 };
enum { STARTER_TASK = 0, STARTER_ARGUMENT = 8, STARTER_BYTES = 16 };
enum { TAG_BITS = 7 };							/* of a _PyStackRef */

static const char STARTER[] = "TaskStepMethWrapper", CALL_SOON[] = "BaseEventLoop.call_soon";

bool task_is_maker(struct pyobj *code)
{
	const char *name;

	if (agent.py.minor < 12)
		return code == agent.tasks.registrar;
	name = code_qualname(code);
	return !strcmp(name, "WeakSet.add") || (agent.py.minor >= 14 && !strcmp(name, CALL_SOON));
}

bool task_has_makers(void)
{
	const struct task_state *t = &agent.tasks;

	return !t->asked || (t->known && (agent.py.minor < 12 ? t->registrar != NULL : object_at->has_sets && t->created >= 0));
}

static bool is_of_c(const struct object *task)
{
	return attribute_is_a(task->run, task->type, agent.tasks.type);
}

/* Is @task, with Python's own coroutine, one whose coroutine has begun? */
static bool has_begun(const struct object *task, bool of_c)
{
	uint64_t coroutine;

	return agent.tasks.coro_has_frame && !task_coroutine(task, of_c, &coroutine) && coroutine &&
	       pyframes_instruction((const char *)(uintptr_t)coroutine + agent.tasks.coro_frame_off) != agent.tasks.created;
}

/* WeakSet.add(@set, @item) */
static uint64_t made_by_add(struct shm_run *r, uint64_t set, uint64_t item)
{
	struct object task;
	uint64_t tasks;
	bool of_c;

	if (task_global(r, agent.py.minor < 12 ? "_all_tasks" : "_scheduled_tasks", &tasks) || set != tasks)
		return 0;
	task_open(r, item, &task);
	of_c = is_of_c(&task);
	return agent.py.minor >= 12 && has_begun(&task, of_c) ? 0 : item;
}

/* The task of C whose step is called by @callable, or 0. */
static uint64_t task_started_by(struct shm_run *r, uint64_t callable)
{
	struct object o, task;
	uint64_t addr;

	task_open(r, callable, &o);
	if (agent.tasks.starter ? o.type != agent.tasks.starter :
				  strcmp(typename_of((struct pyobj *)(uintptr_t)o.type), STARTER) || attribute_basic_size(r, o.type) != object_body() + STARTER_BYTES)
		return 0;
	addr = object_word(&o, object_body() + STARTER_TASK);
	if (!addr || object_word(&o, object_body() + STARTER_ARGUMENT))
		return 0;
	task_open(r, addr, &task);
	if (!is_of_c(&task))
		return 0;
	if (!agent.tasks.starter) {
		agent.tasks.starter = o.type;
		agent.py.Py_IncRef((struct pyobj *)(uintptr_t)o.type);
	}
	return addr;
}

/* BaseEventLoop.call_soon(self, @callable, ...): during a step of a task it is for another step of that task. */
static uint64_t made_by_call(struct shm_run *r, uint64_t callable)
{
	uint64_t task = task_started_by(r, callable), running;

	return task && !task_current(r, &running) && running != task ? task : 0;
}

uint64_t task_made(struct shm_run *r, struct pyobj *code)
{
	uint64_t self, argument;

	if (!agent.tasks.known || variable_parameter(r, 0, &self) || variable_parameter(r, 1, &argument))
		return 0;
	r = object_reader_of_living(r);
	return agent.py.minor >= 14 && !strcmp(code_qualname(code), CALL_SOON) ? made_by_call(r, argument) :
										 made_by_add(r, self, argument);
}

/* --- eager tasks -------------------------------------------------------------------------------------- */

/* Is @item in the set at @addr?  Compared by address: no __hash__() is called. */
static bool set_has(struct shm_run *r, uint64_t addr, uint64_t item)
{
	struct { uint64_t key, hash; } part[SET_CHUNK];
	struct object o;
	uint64_t mask;

	task_open(r, addr, &o);
	mask = object_word(&o, object_body() + SET_MASK);
	if (o.type != object_at->set_type || (mask & 7) != 7 || mask >= SET_MOST)
		return false;
	for (uint64_t k = 0; k <= mask; k += SET_CHUNK) {
		if (memory_read(r, part, sizeof(part), object_word(&o, object_body() + SET_TABLE) + k * sizeof(*part)))
			return false;
		for (unsigned i = 0; i < SET_CHUNK; i++)
			if (part[i].key == item)
				return true;
	}
	return false;
}

/* Has a handle of the loop called the step, for which @frame is the coroutine's? */
static bool is_called_by_loop(struct shm_run *r, const char *frame, uint64_t task)
{
	uint64_t code, self, callable;
	struct attribute_key k;
	struct object o;

	if (!pyframes_caller(&frame, &code) || strcmp(code_qualname((struct pyobj *)(uintptr_t)code), "Handle._run"))
		return false;
	self = pyframes_word(frame, object_at->frame_locals) & ~(uint64_t)TAG_BITS;
	if (!self)
		return false;
	task_open(r, self, &o);
	attribute_text_key(&k, "_callback", sizeof("_callback") - 1);
	return !attribute_find(&o, &k, &callable) && callable && task_started_by(r, callable) == task;
}

bool task_is_eager(struct shm_run *r, uint64_t addr, const char *frame)
{
	struct object task;
	uint64_t set;

	if (agent.py.minor < 12)
		return false;
	r = object_reader_of_living(r);
	task_open(r, addr, &task);
	if (agent.py.minor >= 14 && is_of_c(&task))
		return !is_called_by_loop(r, frame, addr);
	return !task_global(r, "_eager_tasks", &set) && set && set_has(r, set, addr);
}

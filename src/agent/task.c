/* SPDX-License-Identifier: MIT */
/*
 * Where the running task is stored:
 *
 *	to 3.12	_asyncio._current_tasks has it by loop, and the thread's dictionary the loop, as it is or in an object
 *	3.13	the same dictionary; the loop is in the thread's state
 *	3.14	the thread's state has the task
 *
 * The offsets are measured with objects of our own, which are set as loop and task for a moment, in a thread that runs
 * no loop.  Only C functions of _asyncio are called for that.
 */
#include "agent/task_priv.h"

#include "agent/awaiters.h"
#include "agent/modules.h"
#include "agent/pyframes.h"
#include "agent/reads.h"
#include "vm/memory.h"

enum { THREAD_BYTES = 4096, TASK_BYTES = 512, COROUTINE_BYTES = 128, FRAME_BYTES = 48, LOOPS = 64, TRIES = 3 };

/* --- measuring ---------------------------------------------------------------------------------------- */

/* Drop a result; also clears an exception, which must not be set at the next call. */
static bool dropped(struct pyobj *result)
{
	agent_release(result);
	agent.py.PyErr_Clear();
	return result != NULL;
}

/* Words of an object or a thread's state, and of what is behind it, before something is stored in it. */
struct words {
	uint64_t v[THREAD_BYTES / sizeof(uint64_t)];
	long n;
};

static void read_words(struct words *before, const void *base, long size)
{
	for (before->n = 0; (before->n + 1) * (long)sizeof(uint64_t) <= size; before->n++)
		if (memory_read(object_reader(), &before->v[before->n], sizeof(uint64_t),
				(uint64_t)(uintptr_t)base + (uint64_t)before->n * sizeof(uint64_t)))
			break;
}

/*
 * The offset, from @from on, of the word at @base that has become @value; 0: none or several.  Memory that is not in use may
 * have had that value before: objects come to lie where others were.
 */
static long find_stored(const struct words *before, const void *base, long from, const void *value)
{
	uint64_t wanted = (uint64_t)(uintptr_t)value, w;
	long found = 0;

	for (long k = from / (long)sizeof(w); k < before->n; k++) {
		memcpy(&w, (const char *)base + k * (long)sizeof(w), sizeof(w));
		if (w == wanted && before->v[k] != wanted)
			found = found ? -1 : k * (long)sizeof(w);
	}
	return found > 0 ? found : 0;
}

/* The first offset, from @from on, of @value in the @size bytes at @base; 0: none. */
static long find_word(const void *base, long from, long size, const void *value)
{
	uint64_t w;

	for (long off = from; off + (long)sizeof(w) <= size; off += (long)sizeof(w)) {
		if (memory_read(object_reader(), &w, sizeof(w), (uint64_t)(uintptr_t)base + (uint64_t)off))
			break;
		if (w == (uint64_t)(uintptr_t)value)
			return off;
	}
	return 0;
}

/* sys.modules[@name], if that is a module; or NULL. */
static struct pyobj *module_called(const char *name)
{
	struct pyobj *modules = agent.py.PySys_GetObject("modules");
	struct pyobj *module = modules ? agent.py.PyDict_GetItemString(modules, name) : NULL;
	struct pyobj *builtins = modules ? agent.py.PyDict_GetItemString(modules, "builtins") : NULL;

	return module && builtins && agent_type(module) == agent_type(builtins) ? module : NULL;
}

static struct pyobj *find_module(void)
{
	return module_called("_asyncio");
}

/* Is the module initialised?  If not, it may be incomplete. */
static bool is_made(struct pyobj *module)
{
	struct pyobj *spec = agent.py.PyObject_GetAttrString(module, "__spec__"), *making = NULL;
	bool made;

	if (spec)
		making = agent.py.PyObject_GetAttrString(spec, "_initializing");
	made = !making || !agent.py.PyLong_AsLong(making);
	agent_release(making);
	agent_release(spec);
	agent.py.PyErr_Clear();
	return made;
}

static void measure_name(struct task_state *t, struct pyobj *task, struct pyobj *type, struct pyobj *name)
{
	struct pyobj *size = agent.py.PyObject_GetAttrString(type, "__basicsize__");
	long bytes = size ? agent.py.PyLong_AsLong(size) : 0;
	struct words before;

	if (bytes > TASK_BYTES)
		bytes = TASK_BYTES;
	read_words(&before, task, bytes);
	if (dropped(agent.py.PyObject_CallMethod(task, "set_name", "O", name)))
		t->name_off = find_stored(&before, task, object_body(), name);
	t->size = bytes;
	agent_release(size);
}

/*
 * Find the frame of the coroutine @c, which has not run: up to 3.10 it has a pointer to a frame object, later the frame is
 * in it, and the frame object that the attribute makes has a pointer there.
 */
static void measure_frame(struct task_state *t, struct pyobj *c)
{
	struct pyobj *frame = agent.py.PyObject_GetAttrString(c, "cr_frame");
	uint64_t w, start = (uint64_t)(uintptr_t)c;
	long found = 0;

	if (!frame)
		return;
	t->coro_frame_off = find_word(c, object_body(), COROUTINE_BYTES, frame);
	for (long off = object_body(); agent.py.minor > 10 && off < FRAME_BYTES; off += (long)sizeof(w)) {
		memcpy(&w, (const char *)frame + off, sizeof(w));
		if (w > start + object_body() && w < start + COROUTINE_BYTES)
			found = found ? -1 : (long)(w - start);
	}
	if (agent.py.minor > 10) {
		t->coro_has_frame = true;
		t->coro_frame_off = found > 0 ? found : 0;
	}
	if (t->coro_has_frame && t->coro_frame_off)
		t->created = pyframes_instruction((const char *)c + t->coro_frame_off);
	agent_release(frame);
}

/* Find the qualified name and the frame in a coroutine, and the types of coroutines and generators. */
static void measure_coroutine(struct task_state *t, struct pyobj *name)
{
	static const char source[] = "async def c(): pass\nc = c()\ng = (0 for _ in ())\n";
	enum { FILE_INPUT = 257 };
	struct pyobj *code = agent.py.Py_CompileString(source, "<dtap>", FILE_INPUT), *space = agent.py.PyDict_New();
	struct pyobj *c = NULL, *g = NULL, *result = NULL;
	struct words before;

	if (code && space)
		result = agent.py.PyEval_EvalCode(code, space, space);
	if (result) {
		c = agent.py.PyDict_GetItemString(space, "c");
		g = agent.py.PyDict_GetItemString(space, "g");
	}
	if (c)
		measure_frame(t, c);
	agent.py.PyErr_Clear();
	if (c)
		read_words(&before, c, COROUTINE_BYTES);
	if (c && g && dropped(agent.py.PyObject_CallMethod(c, "close", NULL)) && !agent.py.PyObject_SetAttrString(c, "__qualname__", name)) {
		t->coro_name_off = find_stored(&before, c, object_body(), name);
		t->coro_type = (uint64_t)(uintptr_t)agent_type(c);
		t->gen_type = (uint64_t)(uintptr_t)agent_type(g);
	}
	agent_release(result);
	agent_release(space);
	agent_release(code);
}

/* Find the thread's dictionary; from 3.13 on its loop, from 3.14 on its task. */
static void measure_thread(struct task_state *t, struct pyobj *module, struct pyobj *task, struct pyobj *loop)
{
	const struct capi *py = &agent.py;
	struct pythread *thread = py->PyThreadState_Get();
	struct pyobj *dict = py->PyThreadState_GetDict ? py->PyThreadState_GetDict() : NULL;
	struct words before;

	if (dict)
		t->dict_off = find_word(thread, 0, THREAD_BYTES, dict);
	if (py->minor < 13)
		return;
	read_words(&before, thread, THREAD_BYTES);
	if (!dropped(py->PyObject_CallMethod(module, "_set_running_loop", "O", loop)))
		return;
	t->loop_off = find_stored(&before, thread, 0, loop);
	if (!t->current && dropped(py->PyObject_CallMethod(module, "_swap_current_task", "OO", loop, task))) {
		t->task_off = find_stored(&before, thread, 0, task);
		dropped(py->PyObject_CallMethod(module, "_swap_current_task", "OO", loop, py->none));
	}
	dropped(py->PyObject_CallMethod(module, "_set_running_loop", "O", py->none));
}

/* Up to 3.11: WeakSet.add, of Python's own module. */
static void find_registrar(struct task_state *t)
{
	struct pyobj *module = agent.py.minor < 12 ? module_called("_weakrefset") : NULL, *class = NULL, *add = NULL;

	if (module)
		class = agent.py.PyObject_GetAttrString(module, "WeakSet");
	if (class)
		add = agent.py.PyObject_GetAttrString(class, "add");
	if (add)
		t->registrar = agent.py.PyObject_GetAttrString(add, "__code__");
	agent_release(add);
	agent_release(class);
	agent.py.PyErr_Clear();
}

/* With objects that are new. */
static void measure_objects(struct task_state *t, struct pyobj *module, struct pyobj *type)
{
	struct pyobj *name = agent.py.PyUnicode_FromString("dtap measures tasks");
	struct pyobj *task = name ? agent.py.PyObject_CallMethod(type, "__new__", "O", type) : NULL;

	if (task) {
		measure_name(t, task, type, name);
		agent.py.PyErr_Clear();
		measure_coroutine(t, name);
		agent.py.PyErr_Clear();
		measure_thread(t, module, task, name);
	}
	agent_release(task);
	agent_release(name);
	agent.py.PyErr_Clear();
}

/* False: not possible now, since this thread runs a loop. */
static bool measure(struct task_state *t, struct pyobj *module, struct pyobj *type)
{
	const struct capi *py = &agent.py;
	struct pyobj *running = py->PyObject_CallMethod(module, "_get_running_loop", NULL);

	if (running == py->none) {
		t->asked = true;
		pyframes_measure();
		t->current = py->PyObject_GetAttrString(module, "_current_tasks");	/* held; to 3.13 */
		py->PyErr_Clear();
		for (int k = 0; k < TRIES && !t->known; k++) {
			measure_objects(t, module, type);
			t->known = t->name_off && t->coro_name_off &&
				   ((t->task_off && t->loop_off) || (t->current && (t->loop_off || t->dict_off)));
		}
		t->type = (uint64_t)(uintptr_t)type;
		py->Py_IncRef(type);
		find_registrar(t);
		py->PyErr_Clear();
		awaiters_measure(t, module);
	}
	agent_release(running);
	py->PyErr_Clear();
	return t->asked;
}

static bool try(void)
{
	struct pyobj *module = find_module(), *type;
	bool was_busy = agent_thread.busy;

	if (!module)
		return false;
	agent_thread.busy = true;
	type = is_made(module) ? agent.py.PyObject_GetAttrString(module, "Task") : NULL;
	agent.py.PyErr_Clear();
	if (type)
		measure(&agent.tasks, module, type);
	agent_release(type);
	agent_thread.busy = was_busy;
	return agent.tasks.asked;
}

void task_want(void)
{
	struct pyobj *builtins;

	if (!agent.tasks.modules) {
		agent.tasks.modules = agent.py.PySys_GetObject("modules");
		if (agent.tasks.modules)
			agent.py.Py_IncRef(agent.tasks.modules);
		builtins = modules_get("builtins");
		agent.tasks.module_type = builtins ? (uint64_t)(uintptr_t)agent_type(builtins) : 0;
		agent_release(builtins);
	}
	if (!agent.tasks.asked)
		agent.tasks.waits = !try() && agent_audits();
}

void task_loaded(void)
{
	if (agent.tasks.waits && !agent.py.PyErr_Occurred())
		agent.tasks.waits = !try();
}

/* --- at an event -------------------------------------------------------------------------------------- */

static uint64_t thread_word(long off)
{
	uint64_t w;

	memcpy(&w, (const char *)agent.py.PyThreadState_Get() + off, sizeof(w));
	return w;
}

/* The thread dictionary's entry for the loop: the loop, an object that refers to it, or 0. */
static int loop_of_thread(struct shm_run *r, uint64_t *ret)
{
	static const char key[] = "__asyncio_running_event_loop__";
	uint64_t dict = thread_word(agent.tasks.dict_off);
	struct attribute_key k = { .text = key, .length = sizeof(key) - 1, .hash = agent.tasks.loop_hash };
	struct object o;
	int err;

	*ret = 0;
	if (!dict)
		return 0;
	task_open(r, dict, &o);
	if (!k.hash)
		attribute_text_key(&k, key, sizeof(key) - 1);
	agent.tasks.loop_hash = k.no_hash ? 0 : k.hash;
	err = attribute_item(&o, &k, ret);
	return err == ABI_FAULT_VALUE_NONE ? 0 : err;
}

/* Is the loop @key equal to that entry, or to one of the first words in it? */
static bool is_loop(struct shm_run *r, uint64_t key, uint64_t running)
{
	uint64_t words[2];
	struct object o;

	if (key == running || agent.tasks.loop_off)
		return key == running;
	return !object_open(r, running, &o) && attribute_basic_size(r, o.type) >= object_body() + sizeof(words) &&
	       !memory_read(r, words, sizeof(words), running + object_body()) && (key == words[0] || key == words[1]);
}

/* The value for the loop in the dictionary @tasks; 0: none. */
static int current_of_loop(struct shm_run *r, uint64_t tasks, uint64_t running, uint64_t *ret)
{
	struct attribute_table t;
	struct object o;
	uint64_t key, value;
	int err;

	task_open(r, tasks, &o);
	err = attribute_dict(&o, &t);
	for (uint64_t k = 0; !err && k < attribute_count(&t) && k < LOOPS; k++) {
		err = attribute_entry(&t, k, &key, &value);
		if (!err && is_loop(r, key, running)) {
			reads_forget();		/* other threads change the other entries; this one's stands in old tables, too */
			*ret = value;
			return 0;
		}
		if (err == ABI_FAULT_VALUE_NONE)
			err = 0;
	}
	return err;
}

int task_global(struct shm_run *r, const char *name, uint64_t *ret)
{
	static const char module[] = "asyncio.tasks";
	struct attribute_key k;
	struct object o;
	int err;

	*ret = 0;
	task_open(r, (uint64_t)(uintptr_t)agent.tasks.modules, &o);
	attribute_text_key(&k, module, sizeof(module) - 1);
	err = attribute_item(&o, &k, ret);
	if (!err) {
		task_open(r, *ret, &o);
		attribute_text_key(&k, name, (uint32_t)strlen(name));
		err = attribute_find(&o, &k, ret);
	}
	if (err)
		*ret = 0;
	return err == ABI_FAULT_VALUE_NONE ? 0 : err;
}

/* From 3.14 on tasks implemented in Python are in a separate dictionary. */
static int current_of_python(struct shm_run *r, uint64_t running, uint64_t *ret)
{
	uint64_t tasks;
	int err;

	*ret = 0;
	if (!running)
		return 0;
	err = task_global(r, "_current_tasks", &tasks);
	return err || !tasks ? err : current_of_loop(r, tasks, running, ret);
}

/* Is _asyncio there?  Without a GIL the dictionary of modules may be locked, and who waits for it lets others go on. */
static bool is_loaded(struct shm_run *r)
{
	static const char name[] = "_asyncio";
	struct attribute_key k;
	struct object o;
	uint64_t found;

	if (!agent.py.free_threaded)
		return find_module();
	if (!agent.tasks.modules)
		return false;
	task_open(r, (uint64_t)(uintptr_t)agent.tasks.modules, &o);
	attribute_text_key(&k, name, sizeof(name) - 1);
	if (attribute_item(&o, &k, &found))
		return false;
	task_open(r, found, &o);
	return o.type == agent.tasks.module_type;
}

int task_current(struct shm_run *r, uint64_t *ret)
{
	const struct task_state *t = &agent.tasks;
	uint64_t running;
	int err = 0;

	*ret = 0;
	if (!t->known)
		return t->asked || (!agent_thread.allocating && is_loaded(r)) ? ABI_FAULT_VALUE_UNKNOWN : 0;
	if (t->task_off) {
		*ret = thread_word(t->task_off);
		return *ret ? 0 : current_of_python(r, thread_word(t->loop_off), ret);
	}
	if (agent.py.PyInterpreterState_Get() != agent.py.PyInterpreterState_Main())
		return ABI_FAULT_VALUE_UNKNOWN;		/* another interpreter's _asyncio has its own */
	if (t->loop_off)
		running = thread_word(t->loop_off);
	else
		err = loop_of_thread(r, &running);
	return err || !running ? err : current_of_loop(r, (uint64_t)(uintptr_t)t->current, running, ret);
}

/* An attribute of a task implemented in Python. */
static int attribute(const struct object *task, const char *name, uint64_t *ret)
{
	struct attribute_key k;

	attribute_text_key(&k, name, (uint32_t)strlen(name));
	return attribute_find(task, &k, ret);
}

static int64_t put_str(struct shm_run *r, uint64_t str, char *dst, uint32_t size)
{
	struct object_text text;
	struct object o;
	int err;

	task_open(r, str, &o);
	err = object_text(&o, &text);
	return err ? -(int64_t)err : object_put_text(r, &text, dst, size);
}

/* A task's name is stored as a number until it is used. */
static int64_t put_number(int64_t n, char *dst, uint32_t size)
{
	static const char prefix[] = "Task-";
	char text[sizeof(prefix) + 20];
	unsigned at = sizeof(text);

	text[--at] = '\0';
	do
		text[--at] = (char)('0' + n % 10);
	while (n /= 10);
	at -= sizeof(prefix) - 1;
	memcpy(text + at, prefix, sizeof(prefix) - 1);
	if (size < sizeof(text) - at)
		return -(int64_t)ABI_FAULT_VALUE_RANGE;
	memcpy(dst, text + at, sizeof(text) - at);
	return (int64_t)(sizeof(text) - at);
}

static int64_t put_name(const struct object *task, bool of_c, char *dst, uint32_t size)
{
	struct object o;
	uint64_t name = 0;
	int64_t n = 0;
	int err = 0;

	if (of_c)
		name = object_word(task, (uint32_t)agent.tasks.name_off);
	else
		err = attribute(task, "_name", &name);
	if (err || !name)
		return -(int64_t)(err ? err : ABI_FAULT_VALUE_NONE);
	task_open(task->run, name, &o);
	if (!(o.flags & TYPE_INT))
		return put_str(task->run, name, dst, size);
	err = object_int(&o, &n);
	return err || n < 0 ? -(int64_t)ABI_FAULT_VALUE_RANGE : put_number(n, dst, size);
}

/* The first coroutine that a task implemented in C refers to; 0: none. */
static uint64_t coroutine_of(const struct object *task)
{
	struct object o;

	if (agent.tasks.coro_off) {
		uint64_t w = object_word(task, (uint32_t)agent.tasks.coro_off);

		if (w)
			task_open(task->run, w, &o);
		return w && task_is_coroutine(&o) ? w : 0;
	}
	/* Not all of its words are addresses. */
	for (long off = object_body(); off + 8 <= agent.tasks.size; off += 8) {
		uint64_t w = object_word(task, (uint32_t)off);

		if (w && w % 8 == 0 && !object_open(object_reader(), w, &o) && task_is_coroutine(&o))
			return w;
	}
	return 0;
}

int task_coroutine(const struct object *task, bool of_c, uint64_t *ret)
{
	struct object o;
	int err = 0;

	*ret = 0;
	if (of_c)
		*ret = coroutine_of(task);
	else
		err = attribute(task, "_coro", ret);
	if (err || !*ret)
		return err;
	task_open(task->run, *ret, &o);
	if (!task_is_coroutine(&o))
		*ret = 0;
	return 0;
}

static int64_t put_coroutine(const struct object *task, bool of_c, char *dst, uint32_t size)
{
	struct object o;
	uint64_t coroutine;
	int err = task_coroutine(task, of_c, &coroutine);

	if (err || !coroutine)
		return -(int64_t)(err ? err : ABI_FAULT_VALUE_KIND);	/* a coroutine of another compiler */
	task_open(task->run, coroutine, &o);
	return put_str(task->run, object_word(&o, (uint32_t)agent.tasks.coro_name_off), dst, size);
}

int64_t task_text_of(struct shm_run *r, uint64_t addr, bool coroutine, char *dst, uint32_t size)
{
	struct object task;
	bool of_c;

	r = object_reader_of_living(r);
	task_open(r, addr, &task);
	of_c = attribute_is_a(r, task.type, agent.tasks.type);
	return (coroutine ? put_coroutine : put_name)(&task, of_c, dst, size);
}

int64_t task_text(struct shm_run *r, bool coroutine, char *dst, uint32_t size)
{
	uint64_t addr;
	int err = task_current(object_reader_of_living(r), &addr);

	dst[0] = '\0';
	if (err || !addr)
		return err ? -(int64_t)err : 1;
	return task_text_of(r, addr, coroutine, dst, size);
}

/* --- steps -------------------------------------------------------------------------------------------- */

bool task_has_steps(void)
{
	return !agent.tasks.asked || (agent.tasks.known && agent.tasks.coro_frame_off);
}

/* Is @frame the frame of the coroutine or generator at @addr, if there is one? */
static bool is_frame_of(struct shm_run *r, uint64_t addr, const char *frame)
{
	const struct task_state *t = &agent.tasks;
	struct object o;
	uint64_t w;

	if (!addr || addr % 8)
		return false;
	if (t->coro_has_frame)
		return addr + (uint64_t)t->coro_frame_off == (uint64_t)(uintptr_t)frame;
	return !object_open(r, addr, &o) && task_is_coroutine(&o) && object_read(&o, &w, sizeof(w), (uint32_t)t->coro_frame_off) &&
	       w == (uint64_t)(uintptr_t)frame;
}

/* Does the task, implemented in C, run the coroutine of @frame?  Where a task has its coroutine shows at the first one. */
static bool runs_frame(const struct object *task, const char *frame)
{
	struct task_state *t = &agent.tasks;

	if (t->coro_off)
		return is_frame_of(task->run, object_word(task, (uint32_t)t->coro_off), frame);
	for (long off = object_body(); !t->coro_off && off + 8 <= t->size; off += 8)
		if (is_frame_of(object_reader(), object_word(task, (uint32_t)off), frame))
			t->coro_off = off;
	return t->coro_off;
}

/* Does the task at @addr run the coroutine of @frame? */
static bool is_task_of(struct shm_run *r, uint64_t addr, const char *frame)
{
	uint64_t coroutine;
	struct object task;

	if (!addr)
		return false;
	task_open(r, addr, &task);
	if (attribute_is_a(r, task.type, agent.tasks.type))
		return runs_frame(&task, frame);
	return !attribute(&task, "_coro", &coroutine) && is_frame_of(r, coroutine, frame);
}

uint64_t task_of_frame(struct shm_run *r, const char *frame)
{
	uint64_t addr;
	unsigned n = 0;
	int err;

	r = object_reader_of_living(r);
	if (!agent.tasks.known || !agent.tasks.coro_frame_off)
		return 0;
	do {
		reads_begin(r, 0);
		err = task_current(r, &addr);
	} while (!reads_end(r, 0) && ++n < READS_TRIES);
	if (err)
		return 0;
	if (is_task_of(r, addr, frame))
		return addr;
	/* From 3.14 on an eager task of Python does not displace the task of C that has made it. */
	if (!addr || !agent.tasks.task_off || current_of_python(r, thread_word(agent.tasks.loop_off), &addr))
		return 0;
	return is_task_of(r, addr, frame) ? addr : 0;
}

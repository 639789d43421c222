/* SPDX-License-Identifier: MIT */
/*
 * Slots of trace and profile functions.
 *
 * Their offsets in a thread state are measured.  A slot that the program uses is taken by changing only the function
 * pointer: the interpreter's counts and the program's object stay.  From 3.12 on, empty slots can be set only for all
 * threads at once, which overwrites the program's objects; they are restored afterwards.
 *
 * Several agents: those of other builds of dtap do the same in the same slots.  Each takes what it finds for the program's
 * function, so when one that is below comes on top once more, they call each other in a circle.  So ours remembers what it has
 * found, the last first: called again for an event that it is passing on, it passes that to the one before, which is what was
 * there when it was put below.  An agent that is removed while another one is on top stays below, and passes events on.
 *
 * sys.settrace() and sys.setprofile() are replaced in place to notice what the program sets.  C code that calls
 * PyEval_SetTrace() (coverage.py) is noticed only by its audit event.
 */
#include "agent/slot.h"

#include <string.h>

#include "agent/methods.h"

enum { THREAD_BYTES = 320 };

static const struct {
	const char *setters[SLOT_SETTERS], *getter;
} names[] = {
	[SLOT_TRACE] = { { "settrace", "_settraceallthreads" }, "gettrace" },
	[SLOT_PROFILE] = { { "setprofile", "_setprofileallthreads" }, "getprofile" },
};

static void set_own(const struct slot *slot, capi_tracefunc *fn, struct pyobj *obj)
{
	if (slot == &agent.slots[SLOT_TRACE])
		agent.py.PyEval_SetTrace(fn, obj);
	else
		agent.py.PyEval_SetProfile(fn, obj);
}

/* Up to 3.11. */
static void set_thread(const struct slot *slot, struct pythread *thread, capi_tracefunc *fn)
{
	if (slot == &agent.slots[SLOT_TRACE])
		agent.py._PyEval_SetTrace(thread, fn, NULL);
	else
		agent.py._PyEval_SetProfile(thread, fn, NULL);
}

/* From 3.12 on. */
static bool sets_all(void)
{
	return agent.py.PyEval_SetTraceAllThreads != NULL;
}

static void set_all(const struct slot *slot, capi_tracefunc *fn)
{
	if (slot == &agent.slots[SLOT_TRACE])
		agent.py.PyEval_SetTraceAllThreads(fn, NULL);
	else
		agent.py.PyEval_SetProfileAllThreads(fn, NULL);
}

static capi_tracefunc **fn_of(const struct slot *slot, struct pythread *thread)
{
	return (capi_tracefunc **)(void *)((char *)thread + slot->fn_off);
}

static struct pyobj **obj_of(const struct slot *slot, struct pythread *thread)
{
	return (struct pyobj **)(void *)((char *)thread + slot->obj_off);
}

static struct pythread *first_thread(void)
{
	return agent.py.PyInterpreterState_ThreadHead(agent.py.PyInterpreterState_Main());
}

#define for_each_thread(thread) \
	for (struct pythread *thread = first_thread(); thread; thread = agent.py.PyThreadState_Next(thread))

static struct slot_row *find_row(struct slot *slot, struct pythread *thread)
{
	for (unsigned i = 0; i < slot->n; i++)
		if (slot->rows[i].thread == thread && slot->rows[i].id == agent.py.PyThreadState_GetID(thread))
			return &slot->rows[i];
	return NULL;
}

static void drop_row(struct slot *slot, struct slot_row *row)
{
	if (row)
		*row = slot->rows[--slot->n];
}

static void drop_dead_rows(struct slot *slot)
{
	for (unsigned i = 0; i < slot->n;) {
		bool alive = false;

		for_each_thread(thread)
			alive |= thread == slot->rows[i].thread &&
				 agent.py.PyThreadState_GetID(thread) == slot->rows[i].id;
		if (alive)
			i++;
		else
			drop_row(slot, &slot->rows[i]);
	}
}

/*
 * @fn is found in the slot.  What was found before it can be reached if the function found last has led back to ours; of
 * one that has not, only that function itself; as long as there was no event, any of them.
 */
static void find_former(struct slot_row *row, capi_tracefunc *fn)
{
	unsigned kept = row->passed && !row->led_back ? 1 : row->n, from = row->led_back || kept == SLOT_FORMER ? 1 : 0;

	memmove(&row->former[1], &row->former[from], (kept - from) * sizeof(*row->former));
	row->former[0] = fn;
	row->n = kept - from + 1;
	row->passed = row->led_back = false;
}

/* Put our function into the slot.  If there are too many to remember, the program's function stays. */
static void take(struct slot *slot, struct pythread *thread)
{
	struct slot_row *row = find_row(slot, thread);

	if (!row && slot->n == SLOT_ROWS)
		drop_dead_rows(slot);
	if (!row && slot->n == SLOT_ROWS)
		return;
	if (!row) {
		row = &slot->rows[slot->n++];
		*row = (struct slot_row){ .thread = thread, .id = agent.py.PyThreadState_GetID(thread) };
	}
	find_former(row, *fn_of(slot, thread));
	*fn_of(slot, thread) = slot->ours;
}

/* Put back what was found last.  If that has led back to ours, it may do so again: the row stays. */
static void give_back(struct slot *slot, struct pythread *thread, struct slot_row *row)
{
	*fn_of(slot, thread) = row->former[0];
	if (row->n == 1 || (row->passed && !row->led_back)) {
		drop_row(slot, row);
		return;
	}
	row->n--;
	memmove(&row->former[0], &row->former[1], row->n * sizeof(*row->former));
	row->passed = row->led_back = false;
}

static void adopt(struct slot *slot)
{
	struct pythread *thread = agent.py.PyThreadState_Get();
	capi_tracefunc *fn = *fn_of(slot, thread);

	if (fn && fn != slot->ours) {
		take(slot, thread);
	} else if (!fn) {
		drop_row(slot, find_row(slot, thread));
		set_own(slot, slot->ours, NULL);
	}
}

static void set_unused(struct slot *slot)
{
	if (!sets_all()) {
		for_each_thread(thread)
			if (!*fn_of(slot, thread))
				set_thread(slot, thread, slot->ours);
		return;
	}
	for_each_thread(thread) {
		struct slot_row *row = find_row(slot, thread);

		if (row) {
			row->obj = *obj_of(slot, thread);
			if (row->obj)
				agent.py.Py_IncRef(row->obj);
		}
	}
	set_all(slot, slot->ours);
	for_each_thread(thread) {
		struct slot_row *row = find_row(slot, thread);

		if (!row || !row->obj)
			continue;
		if (*fn_of(slot, thread) == slot->ours && !*obj_of(slot, thread))
			*obj_of(slot, thread) = row->obj;	/* with its reference */
		else
			agent.py.Py_DecRef(row->obj);
		row->obj = NULL;
	}
}

static void put_everywhere(struct slot *slot)
{
	bool unused = false;

	drop_dead_rows(slot);
	for_each_thread(thread) {
		capi_tracefunc *fn = *fn_of(slot, thread);

		if (fn && fn != slot->ours)
			take(slot, thread);
		unused |= !fn;
	}
	if (unused)
		set_unused(slot);
}

static struct pyobj *program_sets(enum slot_kind kind, unsigned which, struct pyobj *self, struct pyobj *arg)
{
	struct slot *slot = &agent.slots[kind];
	bool was_busy = agent_thread.busy;
	struct pyobj *result;

	agent_thread.in_setter = true;
	result = slot->setters[which].former(self, arg);
	agent_thread.in_setter = false;
	if (!result || !slot->on || agent.py.PyInterpreterState_Get() != agent.py.PyInterpreterState_Main())
		return result;
	agent_thread.busy = true;
	if (which)
		put_everywhere(slot);
	else
		adopt(slot);
	agent.py.PyErr_Clear();
	agent_thread.busy = was_busy;
	return result;
}

#define SETTER(name, kind, which)							\
	static struct pyobj *name(struct pyobj *self, struct pyobj *arg)		\
	{										\
		return program_sets(kind, which, self, arg);				\
	}
SETTER(set_trace, SLOT_TRACE, 0)
SETTER(set_trace_all, SLOT_TRACE, 1)
SETTER(set_profile, SLOT_PROFILE, 0)
SETTER(set_profile_all, SLOT_PROFILE, 1)
#undef SETTER

static capi_varargs *const replacements[][SLOT_SETTERS] = {
	[SLOT_TRACE] = { set_trace, set_trace_all },
	[SLOT_PROFILE] = { set_profile, set_profile_all },
};

static void replace_setters(enum slot_kind kind, bool on)
{
	struct slot *slot = &agent.slots[kind];

	for (unsigned i = 0; i < SLOT_SETTERS; i++) {
		struct method_replaced *setter = &slot->setters[i];

		if (!setter->def) {
			struct capi_method *def = methods_find("sys", names[kind].setters[i]);

			setter->def = def && def->flags == CAPI_O ? def : NULL;
		}
		methods_replace(setter, replacements[kind][i], on);
	}
}

/* The offset in @thread of the pointer @value; 0: none or several. */
static long find_pointer(struct pythread *thread, const void *value)
{
	long found = 0;

	for (long off = sizeof(void *); off < THREAD_BYTES; off += sizeof(void *)) {
		if (*(void **)((char *)thread + off) != value)
			continue;
		if (found)
			return 0;
		found = off;
	}
	return found;
}

bool slot_measure(enum slot_kind kind, capi_tracefunc *fn)
{
	struct slot *slot = &agent.slots[kind];
	struct pythread *thread = agent.py.PyThreadState_Get();
	struct pyobj *sys, *set = NULL, *specimen;
	bool used = true;

	if (slot->fn_off)
		return true;
	sys = agent.py.PyImport_ImportModule("sys");
	if (sys)
		set = agent.py.PyObject_CallMethod(sys, names[kind].getter, NULL);
	if (set)
		used = set != agent.py.none;
	agent_release(set);
	agent_release(sys);
	specimen = agent.py.PyDict_New();
	if (!used && specimen) {
		set_own(slot, fn, specimen);
		slot->fn_off = find_pointer(thread, (void *)fn);
		slot->obj_off = find_pointer(thread, specimen);
		set_own(slot, NULL, NULL);
	}
	agent_release(specimen);
	agent.py.PyErr_Clear();
	if (slot->fn_off && slot->obj_off)
		return true;
	slot->fn_off = 0;
	agent_why("line: the place of trace functions in this CPython's threads cannot be told");
	return false;
}

bool slot_install(enum slot_kind kind, capi_tracefunc *fn)
{
	struct slot *slot = &agent.slots[kind];

	if (!slot_measure(kind, fn))
		return false;
	slot->ours = fn;
	slot->on = true;
	replace_setters(kind, true);
	put_everywhere(slot);
	return true;
}

void slot_remove(enum slot_kind kind)
{
	struct slot *slot = &agent.slots[kind];
	bool used = false;

	if (!slot->on)
		return;
	slot->on = false;
	replace_setters(kind, false);
	for_each_thread(thread) {
		struct slot_row *row = find_row(slot, thread);

		if (*fn_of(slot, thread) != slot->ours) {
			used |= *fn_of(slot, thread) != NULL;
		} else if (row) {
			give_back(slot, thread, row);
			used = true;
		} else if (!sets_all()) {
			set_thread(slot, thread, NULL);
		}
	}
	if (sets_all() && !used)
		set_all(slot, NULL);
}

void slot_adopt(enum slot_kind kind)
{
	if (agent.slots[kind].on)
		adopt(&agent.slots[kind]);
}

bool slot_displaced(const char *event)
{
	if (agent_thread.in_setter || strncmp(event, "sys.set", 7))
		return false;
	return (agent.slots[SLOT_TRACE].on && !strcmp(event + 4, names[SLOT_TRACE].setters[0])) ||
	       (agent.slots[SLOT_PROFILE].on && !strcmp(event + 4, names[SLOT_PROFILE].setters[0]));
}

bool slot_is_programs(enum slot_kind kind)
{
	return *obj_of(&agent.slots[kind], agent.py.PyThreadState_Get()) != NULL;
}

/* The program's function may have set another one, or none; it is also removed if it fails. */
static void adopt_again(struct slot *slot)
{
	struct pyobj *type, *value, *traceback;
	bool was_busy = agent_thread.busy;

	agent.py.PyErr_Fetch(&type, &value, &traceback);
	agent_thread.busy = true;
	adopt(slot);
	agent.py.PyErr_Clear();
	agent_thread.busy = was_busy;
	agent.py.PyErr_Restore(type, value, traceback);
}

/* Ours is removed, but this thread still calls it.  What it calls now; NULL: nothing. */
static capi_tracefunc *leave(struct slot *slot, struct pythread *thread, struct slot_row *row)
{
	capi_tracefunc *fn = row ? row->former[0] : NULL;

	if (row)
		give_back(slot, thread, row);
	else
		set_own(slot, NULL, NULL);
	return fn;
}

/* Call the function that was found before those that have led back to ours. */
static int pass(enum slot_kind kind, struct slot_row *row, struct pyobj *arg, struct pyobj *frame, int what, struct pyobj *value)
{
	struct slot_passing *at = &agent_thread.passing[kind], was = *at;
	unsigned depth = was.frame == frame ? was.depth + 1 : 0;
	int result;

	row->passed = true;
	row->led_back |= depth > 0;
	if (depth >= row->n)
		return 0;
	*at = (struct slot_passing){ frame, depth };
	result = row->former[depth](arg, frame, what, value);
	*at = was;
	return result;
}

int slot_pass(enum slot_kind kind, struct pyobj *arg, struct pyobj *frame, int what, struct pyobj *value)
{
	struct slot *slot = &agent.slots[kind];
	struct pythread *thread;
	struct slot_row *row;
	capi_tracefunc *was;
	int result;

	if (__builtin_expect(slot->on && !slot->n, 1))
		return 0;
	thread = agent.py.PyThreadState_Get();
	row = find_row(slot, thread);
	was = *fn_of(slot, thread);
	if (!slot->on && was == slot->ours) {
		was = leave(slot, thread, row);
		return was ? was(arg, frame, what, value) : 0;
	}
	if (!row)
		return 0;
	result = pass(kind, row, arg, frame, what, value);
	if (slot->on && *fn_of(slot, thread) != was && *fn_of(slot, thread) != slot->ours)
		adopt_again(slot);
	return result;
}

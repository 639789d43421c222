/* SPDX-License-Identifier: MIT */
/*
 * Slots of trace and profile functions.
 *
 * Their offsets in a thread state are measured.  A slot that the program uses is taken by changing only the function
 * pointer: the interpreter's counts and the program's object stay.  From 3.12 on, empty slots can be set only for all
 * threads at once, which overwrites the program's objects; they are restored afterwards.
 *
 * Several agents: those of other builds of dtap do the same in the same slots.  Their functions form a chain, the program's last:
 * each keeps, for each thread, what is below its own.  So that one can find its place in the chain, and leave it wherever that is,
 * all begin with the same link (SLOT_FUNCTION), whatever their version.  Who is in the chain already does not put itself on top.
 *
 * sys.settrace() and sys.setprofile() are replaced in place to notice what the program sets.  C code that calls
 * PyEval_SetTrace() (coverage.py) is noticed only by its audit event.
 */
#include "agent/slot.h"

#include <stdlib.h>
#include <string.h>

#include "agent/methods.h"
#include "agent/modules.h"
#include "agent/tool.h"

enum { THREAD_BYTES = 320, ROWS = 64, CHAIN = 64 };

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

/* Without a GIL another thread may be reading the old rows: they stay. */
static bool more_rows(struct slot *slot)
{
	unsigned room = slot->room ? slot->room * 2 : ROWS;
	struct slot_row *rows = calloc(room, sizeof(*rows));

	if (!rows)
		return false;
	if (slot->n)
		memcpy(rows, slot->rows, slot->n * sizeof(*rows));
	slot->rows = rows;
	slot->room = room;
	return true;
}

/* A thread's row, with nothing below if it is new.  NULL: no memory. */
static struct slot_row *row_of(struct slot *slot, struct pythread *thread)
{
	struct slot_row *row = find_row(slot, thread);

	if (row)
		return row;
	if (slot->n == slot->room)
		drop_dead_rows(slot);
	if (slot->n == slot->room && !more_rows(slot))
		return NULL;
	row = &slot->rows[slot->n++];
	*row = (struct slot_row){ .thread = thread, .id = agent.py.PyThreadState_GetID(thread) };
	return row;
}

/* What every version's functions begin with; where the last byte of @magic is another, the rest has another meaning. */
struct link {
	char magic[SLOT_LINK_AT_BELOW];
	int32_t below;		/* a below_fn, relative to this link */
	int32_t unused[3];
};
_Static_assert(sizeof(struct link) == SLOT_LINK_BYTES, "SLOT_FUNCTION");

/* Where an agent keeps the function that is below its own in a thread; NULL: nowhere, there is none. */
typedef capi_tracefunc **below_fn(struct pythread *thread);

static capi_tracefunc **below_in(enum slot_kind kind, struct pythread *thread)
{
	struct slot_row *row = find_row(&agent.slots[kind], thread);

	return row ? &row->below : NULL;
}

capi_tracefunc **slot_below_trace(struct pythread *thread)
{
	return below_in(SLOT_TRACE, thread);
}

capi_tracefunc **slot_below_profile(struct pythread *thread)
{
	return below_in(SLOT_PROFILE, thread);
}

/* NULL: @fn is not an agent's, or there is nothing below it.  A link is in the same 64 bytes as its function. */
static capi_tracefunc **below(capi_tracefunc *fn, struct pythread *thread)
{
	uintptr_t at = (uintptr_t)fn - SLOT_LINK_BYTES;
	const struct link *link = (const struct link *)at;

	if (at % (2 * SLOT_LINK_BYTES) || memcmp(link->magic, SLOT_LINK_MAGIC, sizeof(link->magic)))
		return NULL;
	return ((below_fn *)(at + (uintptr_t)(intptr_t)link->below))(thread);
}

/* Where our function is in @thread: the slot itself, or what another agent keeps; NULL: nowhere. */
static capi_tracefunc **place_of(const struct slot *slot, struct pythread *thread)
{
	capi_tracefunc **at = fn_of(slot, thread);

	for (unsigned n = 0; at && *at && n < CHAIN; n++) {
		if (*at == slot->ours)
			return at;
		at = below(*at, thread);
	}
	return NULL;
}

/* Put our function into the slot, which is in use, unless it is in the chain.  Without memory things stay as they are. */
static void take(struct slot *slot, struct pythread *thread)
{
	struct slot_row *row;

	if (place_of(slot, thread))
		return;
	row = row_of(slot, thread);
	if (!row)
		return;
	row->below = *fn_of(slot, thread);
	*fn_of(slot, thread) = slot->ours;
}

static void adopt(struct slot *slot)
{
	struct pythread *thread = agent.py.PyThreadState_Get();

	if (*fn_of(slot, thread)) {
		take(slot, thread);
	} else {
		drop_row(slot, find_row(slot, thread));
		set_own(slot, slot->ours, NULL);
	}
}

/* Save what is in the threads' slots.  False: no memory. */
static bool save(struct slot *slot)
{
	for_each_thread(thread) {
		capi_tracefunc *fn = *fn_of(slot, thread);
		struct slot_row *row = fn ? row_of(slot, thread) : NULL;

		if (fn && !row)
			return false;
		if (!row)
			continue;
		row->top = fn;
		row->obj = *obj_of(slot, thread);
		if (row->obj)
			agent.py.Py_IncRef(row->obj);
	}
	return true;
}

/* Put back what save() has found, where nothing else has come meanwhile. */
static void restore(struct slot *slot)
{
	for_each_thread(thread) {
		struct slot_row *row = find_row(slot, thread);

		if (!row)
			continue;
		if (row->top && *fn_of(slot, thread) == slot->ours && !*obj_of(slot, thread)) {
			*fn_of(slot, thread) = row->top;
			*obj_of(slot, thread) = row->obj;	/* with its reference */
		} else if (row->obj) {
			agent.py.Py_DecRef(row->obj);
		}
		row->top = NULL;
		row->obj = NULL;
	}
}

static void drop_empty_rows(struct slot *slot)
{
	for (unsigned i = 0; i < slot->n;)
		if (slot->rows[i].below)
			i++;
		else
			drop_row(slot, &slot->rows[i]);
}

static void set_unused(struct slot *slot)
{
	if (!sets_all()) {
		for_each_thread(thread)
			if (!*fn_of(slot, thread))
				set_thread(slot, thread, slot->ours);
		return;
	}
	if (save(slot))
		set_all(slot, slot->ours);
	restore(slot);
	drop_empty_rows(slot);
	tool_restart();
}

static void put_everywhere(struct slot *slot)
{
	bool unused = false;

	drop_dead_rows(slot);
	for_each_thread(thread)
		if (*fn_of(slot, thread))
			take(slot, thread);
		else
			unused = true;
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
	sys = modules_get("sys");
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

/* Leave a thread.  Is its slot used by others? */
static bool leave_thread(struct slot *slot, struct pythread *thread)
{
	capi_tracefunc **at = place_of(slot, thread), **top = fn_of(slot, thread);
	struct slot_row *row = find_row(slot, thread);
	capi_tracefunc *rest = row ? row->below : NULL;

	drop_row(slot, row);
	if (at && (rest || at != top))
		*at = rest;
	else if (at && !sets_all())
		set_thread(slot, thread, NULL);
	return *top && *top != slot->ours;
}

void slot_remove(enum slot_kind kind)
{
	struct slot *slot = &agent.slots[kind];
	bool used = false;

	if (!slot->on)
		return;
	slot->on = false;
	replace_setters(kind, false);
	for_each_thread(thread)
		used |= leave_thread(slot, thread);
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
	if (!slot->on && !row && was == slot->ours)
		set_own(slot, NULL, NULL);
	if (!row || !row->below)
		return 0;
	result = row->below(arg, frame, what, value);
	if (slot->on && *fn_of(slot, thread) != was)
		adopt_again(slot);
	return result;
}

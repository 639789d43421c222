#include "probe/pylocks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/ends.h"
#include "base/proc.h"
#include "base/strbuf.h"
#include "probe/provider.h"
#include "probe/pycode.h"
#include "probe/pystacks_priv.h"

enum {
	TRIES = 3,			/* attempts to find a thread waiting in one place */
	VARS_MAX = 1 << 12, STACK_MAX = 1 << 12,
	BLOCKS_MAX = 20,		/* CO_MAXBLOCKS */
	BASES_MAX = 16,
	PARTS_MAX = 8,
	LOCKS_MAX = 64,			/* of one frame */
	HANDLERS_MAX = 1 << 18,		/* bytes of a table of handlers */
	TYPES = 256,			/* types whose rows are kept */
	COND_BYTES = 48,		/* of a pthread_cond_t */
};

/* Offsets that are the same in all versions. */
enum {
	OBJ_TYPE = 8,
	TYPE_NAME = 24, TYPE_FLAGS = 168, TYPE_BASE = 256, FLAG_HEAP = 1 << 9,
	LOCK_AT = 16, OWNER_AT = 24,	/* in a lock: its semaphore or mutex; in an RLock: ident of its owner */
	BOUND_DEF = 16, BOUND_SELF = 24, DESCRIPTOR_DEF = 40, CELL_VALUE = 16, WEAKREF_OBJECT = 16,
	HANDLE_AT = 16, HANDLE_IDENT = 32, HANDLE_BYTES = 80,
	PARK_VERSION = 0x030d,		/* from here on threads are parked: at all locks since 3.14 */
	JOIN_VERSION = 0x030d,		/* from here on join() uses handles */
	ON_DELETE_BYTES = 128,		/* behind a thread state's thread_id, up to its on_delete_data at least */
	BYTES_SIZE = 16, BYTES_AT = 32,
	ENTRY_ADDR = -8,		/* struct wait_entry: what is waited for is before the semaphore */
	IS_PARKED = 2,			/* in a mutex: threads wait (pycore_lock.h) */
	STACKREF_TAGS = 7,
};

enum kind { NONE, LOCK, RLOCK, QUEUE, HANDLE, BOUND, METHOD, DESCRIPTOR, CELL, WEAKREF, PART };

static const struct row {
	enum kind kind;
	const char *name, *shown, *file;
} rows[] = {
	{ NONE, "", NULL, NULL },
#define TYPE(KIND, NAME, SHOWN, FILE) { KIND, NAME, SHOWN, FILE },
#include "probe/pylocks.def"
#undef TYPE
};

/* /proc/PID/task/TID/syscall of a thread that waits in futex(2): number, arguments, stack pointer, program counter. */
struct futex {
	uint64_t v[9];
};
enum { FUTEX_ADDR = 1, FUTEX_TIMEOUT = 4 };

/* The slots of a frame. */
struct slots {
	uint64_t at;
	size_t nvars, nstack;
	size_t nlive;			/* of the stack: those that the handlers of the current instruction keep */
};

struct locks {
	struct pystacks_reader *r;
	const struct pyoffsets_slots *at;
	struct pystacks *all;
	uint64_t metatype;		/* PyType_Type */
	uint64_t *waited;		/* the locks that threads wait for, sorted */
	size_t nwaited;
	uint64_t *released;		/* by thread: the lock that it releases at its end, or 0 */
	struct sleep {
		struct futex futex;
		uint64_t switches;
	} *sleeps;			/* by thread: what it waits in, from when on */
	struct inside {
		uint64_t lock;
		size_t thread;
	} *inside;			/* who is inside a `with` of what, by thread */
	size_t ninside, inside_cap;
	uint8_t *handlers;		/* HANDLERS_MAX bytes */
	struct {
		uint64_t type;
		const struct row *row;
	} types[TYPES];
};

/* --- objects ------------------------------------------------------------------------------------------- */

static uint64_t word(const struct locks *l, uint64_t addr)
{
	return remote_word(&l->r->mem, addr);
}

static bool has_text(const struct locks *l, uint64_t addr, const char *text)
{
	char buf[64];
	size_t n = strlen(text) + 1;

	return n <= sizeof(buf) && remote_get(&l->r->mem, addr, buf, n) && !memcmp(buf, text, n);
}

static const struct row *find_row(const struct locks *l, uint64_t type)
{
	for (int i = 0; i < BASES_MAX && type && type % 8 == 0; i++, type = word(l, type + TYPE_BASE)) {
		uint64_t name = word(l, type + TYPE_NAME);

		if (word(l, type + OBJ_TYPE) != l->metatype)
			break;
		for (size_t k = 1; k < sizeof(rows) / sizeof(rows[0]); k++)
			if (has_text(l, name, rows[k].name))
				return &rows[k];
	}
	return &rows[0];
}

/* The row of the type of the object at @obj, which may be any number. */
static const struct row *row_of(struct locks *l, uint64_t obj)
{
	uint64_t type = obj && obj % 8 == 0 ? word(l, obj + OBJ_TYPE) : 0;
	size_t i = type / 16 % TYPES;

	if (!type || type % 8)
		return &rows[0];
	if (l->types[i].type != type) {
		l->types[i].row = find_row(l, type);
		l->types[i].type = type;
	}
	return l->types[i].row;
}

static enum kind kind_of(struct locks *l, uint64_t obj)
{
	return row_of(l, obj)->kind;
}

/* Is it a lock, or an object with one? */
static bool is_lock(struct locks *l, uint64_t obj)
{
	enum kind kind = kind_of(l, obj);

	return kind >= LOCK && kind <= QUEUE;
}

/* --- frames -------------------------------------------------------------------------------------------- */

static uint32_t varint(const uint8_t **p, const uint8_t *end)
{
	uint32_t v = 0, b = 0x40;

	while (b & 0x40 && *p < end) {
		b = *(*p)++;
		v = v << 6 | (b & 0x3f);
	}
	return v;
}

/*
 * How many values of the stack the handler of the instruction at @instr keeps (CPython, InternalDocs/
 * exception_handling.md); 0: it has none.
 */
static size_t kept_by_handler(const struct locks *l, uint64_t code, uint64_t instr)
{
	uint64_t table = word(l, code + l->at->handlers), n = word(l, table + BYTES_SIZE);
	const uint8_t *p = l->handlers, *end;

	if (!table || n > HANDLERS_MAX || !remote_get(&l->r->mem, table + BYTES_AT, l->handlers, n))
		return 0;
	for (end = p + n; p < end;) {
		uint32_t start = varint(&p, end), size = varint(&p, end), depth;

		varint(&p, end);
		depth = varint(&p, end) >> 1;
		if (instr / 2 >= start && instr / 2 - start < size)
			return depth;
	}
	return 0;
}

/* The same before 3.11: the level of the innermost block. */
static size_t kept_by_block(const struct locks *l, uint64_t frame)
{
	uint32_t n = remote_int(&l->r->mem, frame + l->at->blocks);

	/* int f_iblock; char; PyTryBlock f_blockstack[], each { int type, handler, level } */
	return n && n <= BLOCKS_MAX ? remote_int(&l->r->mem, frame + l->at->blocks + 8 + 12 * (n - 1) + 8) : 0;
}

static bool find_slots(const struct locks *l, const struct pystack_frame *f, struct slots *ret)
{
	const struct pyoffsets_slots *at = l->at;
	uint64_t stack;

	ret->at = f->at + at->first;
	ret->nstack = remote_int(&l->r->mem, f->code_at + at->nstack);
	if (at->stack != ABI_PYTHON_NONE) {
		stack = word(l, f->at + at->stack);
		if (stack < ret->at || stack % 8)
			return false;
		ret->nvars = (stack - ret->at) / 8;
	} else {
		ret->nvars = remote_int(&l->r->mem, f->code_at + at->nvars);
	}
	if (ret->nvars > VARS_MAX || ret->nstack > STACK_MAX)
		return false;
	ret->nlive = at->handlers == ABI_PYTHON_NONE ? kept_by_block(l, f->at) : kept_by_handler(l, f->code_at, f->instr);
	if (ret->nlive > ret->nstack)
		ret->nlive = ret->nstack;
	return true;
}

/* The object in slot @i. */
static uint64_t slot(const struct locks *l, const struct slots *s, size_t i)
{
	uint64_t v = word(l, s->at + 8 * i);

	return l->at->is_tagged ? v & ~(uint64_t)STACKREF_TAGS : v;
}

/* What the object in a slot stands for: the object of a bound function, the value of a cell, or itself. */
static uint64_t meant(struct locks *l, uint64_t obj)
{
	switch (kind_of(l, obj)) {
	case BOUND:
	case METHOD:
		return word(l, obj + BOUND_SELF);
	case CELL:
		return word(l, obj + CELL_VALUE);
	default:
		return obj;
	}
}

/*
 * The row of the type of *self, the first variable of the frame.  Up to 3.10 an argument that inner functions use is moved
 * to its cell, which stands behind the variables (Python/ceval.c of 3.9, "co_cell2arg").
 */
static const struct row *row_of_self(struct locks *l, const struct pystack_frame *f, uint64_t *self)
{
	struct slots s;
	const struct row *row;

	*self = 0;
	if (!find_slots(l, f, &s) || !s.nvars)
		return &rows[0];
	*self = meant(l, slot(l, &s, 0));
	if (*self)
		return row_of(l, *self);
	for (size_t i = 1; i < s.nvars; i++) {
		uint64_t obj = slot(l, &s, i);

		*self = kind_of(l, obj) == CELL ? meant(l, obj) : 0;
		row = row_of(l, *self);
		if (row->kind == PART)
			return row;
	}
	*self = 0;
	return &rows[0];
}

/* --- what a thread waits for --------------------------------------------------------------------------- */

/* False: it does not wait in futex(2), or the kernel does not tell. */
static bool waits_in_futex(const struct locks *l, uint32_t tid, struct futex *ret)
{
	const size_t n = sizeof(ret->v) / sizeof(ret->v[0]);
	struct strbuf text = { 0 };
	const char *p, *name;
	char file[40], *end;
	size_t i = 0;

	snprintf(file, sizeof(file), "task/%" PRIu32 "/syscall", tid);
	p = tid && !proc_read((pid_t)l->r->mem.pid, file, &text) ? strbuf_str(&text) : "";
	for (; i < n; i++, p = end) {
		ret->v[i] = strtoull(p, &end, 0);
		if (end == p)
			break;
	}
	strbuf_fini(&text);
	name = i == n && ret->v[0] <= UINT32_MAX ? syscall_name((uint32_t)ret->v[0]) : NULL;
	return name && !strcmp(name, "futex");
}

/* How often the thread has gone to sleep; 0: the kernel does not tell. */
static uint64_t switches(const struct locks *l, uint32_t tid)
{
	struct strbuf text = { 0 };
	const char *number;
	uint64_t ret = 0;
	char file[40];

	snprintf(file, sizeof(file), "task/%" PRIu32 "/status", tid);
	if (!proc_read((pid_t)l->r->mem.pid, file, &text)) {
		number = proc_status_field(strbuf_str(&text), "voluntary_ctxt_switches");
		ret = number ? strtoull(number, NULL, 10) : 0;
	}
	strbuf_fini(&text);
	return ret;
}

/* Has the thread slept without a break since its wait was read? */
static bool sleeps_still(const struct locks *l, size_t i)
{
	const struct sleep *s = &l->sleeps[i];
	struct futex now;

	return s->switches && switches(l, l->all->v[i].tid) == s->switches && waits_in_futex(l, l->all->v[i].tid, &now) &&
	       !memcmp(&now, &s->futex, sizeof(now));
}

/* The object whose semaphore is at @sem, among those that the frame works with; 0: none. */
static uint64_t with_semaphore(struct locks *l, const struct pystack_frame *f, uint64_t sem)
{
	struct slots s;

	if (!find_slots(l, f, &s))
		return 0;
	for (size_t i = 0; i < s.nvars + s.nstack; i++) {
		uint64_t obj = meant(l, slot(l, &s, i));

		if (is_lock(l, obj) && word(l, obj + LOCK_AT) == sem)
			return obj;
	}
	return 0;
}

/* The object at which a thread is parked that waits for the semaphore at @sem; 0: none. */
static uint64_t parked_at(struct locks *l, uint64_t sem)
{
	uint64_t obj = word(l, sem + ENTRY_ADDR) - LOCK_AT;

	if (l->all->version < PARK_VERSION || !is_lock(l, obj))
		return 0;
	return kind_of(l, obj) == QUEUE || remote_int(&l->r->mem, obj + LOCK_AT) & IS_PARKED ? obj : 0;
}

static size_t thread_of(const struct pystacks *all, uint64_t ident)
{
	for (size_t i = 0; i < all->n && ident; i++)
		if (all->v[i].is_python && all->v[i].ident == ident)
			return i;
	return SIZE_MAX;
}

/* Does it wait in join(), for an event in the structure that a handle of the frame points to? */
static bool find_thread(struct locks *l, const struct pystack_frame *f, uint64_t sem, struct pystack_wait *ret)
{
	uint64_t event = word(l, sem + ENTRY_ADDR), handle, obj;
	struct slots s;

	if (l->all->version < JOIN_VERSION || !find_slots(l, f, &s))
		return false;
	for (size_t i = 0; i < s.nvars + s.nstack; i++) {
		obj = meant(l, slot(l, &s, i));
		handle = kind_of(l, obj) == HANDLE ? word(l, obj + HANDLE_AT) : 0;
		if (!handle || event - handle >= HANDLE_BYTES)
			continue;
		ret->owner = word(l, handle + HANDLE_IDENT);
		ret->owner_index = thread_of(l->all, ret->owner);
		return ret->owner_index != SIZE_MAX;
	}
	return false;
}

/* The Lock that the thread releases when it ends: its state has a weak reference to it (on_delete_data, before 3.13). */
static uint64_t released_by(struct locks *l, const struct pystack *st)
{
	for (uint64_t off = 0; off < ON_DELETE_BYTES && st->is_python && l->all->version < JOIN_VERSION; off += 8) {
		uint64_t ref = word(l, st->state + l->r->py.thread_id + off), obj;

		obj = kind_of(l, ref) == WEAKREF ? word(l, ref + WEAKREF_OBJECT) : 0;
		if (kind_of(l, obj) == LOCK)
			return obj;
	}
	return 0;
}

static size_t thread_that_releases(const struct locks *l, uint64_t lock)
{
	for (size_t i = 0; i < l->all->n && lock; i++)
		if (l->released[i] == lock)
			return i;
	return SIZE_MAX;
}

static void add_object(struct pystack_wait *w, const char *type, uint64_t addr)
{
	w->objects[w->nobjects++] = (struct pystack_object){ type, addr };
}

/* Thread.run() and those that call it: what waits there is the program's. */
static bool runs_target(const char *name)
{
	const char *dot = strrchr(name, '.');

	name = dot ? dot + 1 : name;
	return !strcmp(name, "run") || !strncmp(name, "_bootstrap", 10);
}

/* Add the Conditions, Events, Queues ... whose methods wait: the first variable of the inner frames. */
static void add_parts(struct locks *l, const struct pystack *st, struct pystack_wait *w)
{
	for (size_t i = 0; i < st->n && w->nobjects < PARTS_MAX; i++) {
		uint64_t self;
		const struct row *row = row_of_self(l, &st->frames[i], &self);

		if (row->kind != PART || !ends_with(st->frames[i].code->file, row->file) || runs_target(st->frames[i].code->name))
			return;
		if (!w->nobjects || w->objects[w->nobjects - 1].addr != self)
			add_object(w, row->shown, self);
	}
}

/* What a thread waits for that waits for the futex at @addr. */
static void find_object(struct locks *l, const struct pystack *st, uint64_t addr, struct pystack_wait *w)
{
	uint64_t obj = parked_at(l, addr);
	const struct row *row;
	size_t thread;

	if (!obj && st->n)
		obj = with_semaphore(l, st->frames, addr);
	row = row_of(l, obj);
	if (!row->shown)
		obj = 0;
	thread = thread_that_releases(l, obj);
	if (thread != SIZE_MAX) {
		w->what = PYSTACK_WAITS_THREAD;
		w->owner = l->all->v[thread].ident;
		w->owner_index = thread;
	} else if (obj) {
		w->what = PYSTACK_WAITS_LOCK;
		add_object(w, row->shown, obj);
		w->owner = row->kind == RLOCK ? word(l, obj + OWNER_AT) : 0;
		w->owner_index = thread_of(l->all, w->owner);
	} else if (st->n && find_thread(l, st->frames, addr, w)) {
		w->what = PYSTACK_WAITS_THREAD;
	} else {
		return;
	}
	add_parts(l, st, w);
}

/* Is the whole stack as it was read?  Frames whose code could not be read are not in it. */
static bool is_there_whole(const struct locks *l, const struct pystack *st)
{
	const struct pystacks_raw *raw = l->r->raw[0];
	size_t n, at = 0;
	bool whole;

	n = pystacks_walk(l->r, st->state, l->r->raw[0], &whole);
	for (size_t i = 0; i < n; i++)
		if (at < st->n && raw[i].addr == st->frames[at].at && raw[i].code == st->frames[at].code_at && raw[i].instr == st->frames[at].instr)
			at++;
		else if (pystacks_code(l->r, raw[i].code))
			return false;
	return whole && at == st->n;
}

/*
 * The stack was read before: the thread may have gone to sleep since, in another place.  Now that it sleeps its stack can
 * be read again.  What is told is of one sleep: the stack, the object, and the futex.
 */
static bool has_stack_of_now(struct locks *l, struct pystack *st)
{
	if (is_there_whole(l, st))
		return true;
	pystacks_read_again(l->r, st);
	return is_there_whole(l, st);
}

static void find_wait(struct locks *l, size_t thread)
{
	struct pystack_object objects[PARTS_MAX] = { 0 };
	struct pystack *st = &l->all->v[thread];
	struct futex f;

	for (int i = 0; i < TRIES && waits_in_futex(l, st->tid, &f); i++) {
		struct pystack_wait w = { .objects = objects, .owner_index = SIZE_MAX, .has_timeout = f.v[FUTEX_TIMEOUT] };
		bool for_gil = st->gil_cond && f.v[FUTEX_ADDR] - st->gil_cond < COND_BYTES;

		l->sleeps[thread] = (struct sleep){ f, switches(l, st->tid) };
		remote_forget(&l->r->mem);
		if (for_gil)
			w = (struct pystack_wait){ .what = PYSTACK_WAITS_GIL, .owner_index = SIZE_MAX };
		else if (has_stack_of_now(l, st))
			find_object(l, st, f.v[FUTEX_ADDR], &w);
		else
			continue;
		/* Who waits for the GIL wakes up all the time. */
		if (!for_gil && !sleeps_still(l, thread))
			continue;
		st->wait = w;
		st->wait.objects = memcpy(arena_alloc(l->r->arena, sizeof(objects)), objects, sizeof(objects));
		return;
	}
}

/* --- who has a lock ------------------------------------------------------------------------------------ */

static int by_addr(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static bool is_waited_for(const struct locks *l, uint64_t obj)
{
	return obj && bsearch(&obj, l->waited, l->nwaited, sizeof(obj), by_addr);
}

/* @obj is one that a thread waits for, by its address; the program may have made something else there since. */
static void add_lock(struct locks *l, struct pystack_frame *f, uint64_t obj, bool in_with)
{
	const struct row *row = row_of(l, obj);

	for (size_t i = 0; i < f->nlocks; i++)
		if (f->locks[i].lock.addr == obj)
			return;
	if (f->nlocks == LOCKS_MAX || !row->shown)
		return;
	if (!f->locks)
		f->locks = arena_alloc(l->r->arena, LOCKS_MAX * sizeof(*f->locks));
	f->locks[f->nlocks++] = (struct pystack_lock){ .lock = { row->shown, obj }, .in_with = in_with };
}

/*
 * The lock whose `with` has left its end at slot @i of the stack: up to 3.13 its bound __exit__, since then the
 * function and, behind it, the object.  0: it is something else.
 */
static uint64_t lock_of_with(struct locks *l, const struct slots *s, size_t i)
{
	uint64_t exit = slot(l, s, s->nvars + i), def, lock;

	switch (kind_of(l, exit)) {
	case BOUND:
		def = word(l, exit + BOUND_DEF);
		lock = word(l, exit + BOUND_SELF);
		break;
	case DESCRIPTOR:
		def = word(l, exit + DESCRIPTOR_DEF);
		lock = i + 1 < s->nlive ? slot(l, s, s->nvars + i + 1) : 0;
		break;
	default:
		return 0;
	}
	return has_text(l, word(l, def), "__exit__") ? lock : 0;
}

static void find_locks(struct locks *l, const struct pystack *st, struct pystack_frame *f)
{
	struct slots s;

	if (!find_slots(l, f, &s))
		return;
	for (size_t i = 0; i < s.nlive; i++) {
		uint64_t obj = lock_of_with(l, &s, i);

		if (is_waited_for(l, obj))
			add_lock(l, f, obj, true);
	}
	for (size_t i = 0; i < s.nvars; i++) {
		uint64_t obj = meant(l, slot(l, &s, i));

		/* That who waits for a lock knows it says nothing. */
		if (is_waited_for(l, obj) && (!st->wait.nobjects || st->wait.objects[0].addr != obj))
			add_lock(l, f, obj, false);
	}
}

/* Is the frame in the module of one of the classes that are built on locks? */
static bool is_library(const struct pystack_frame *f)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].file && ends_with(f->code->file, rows[i].file))
			return true;
	return false;
}

/* A method of Condition that releases its lock, or calls wait()? */
static bool is_condition_wait(struct locks *l, const struct pystack_frame *f)
{
	uint64_t self;

	return is_library(f) && strstr(f->code->name, "wait") && !strcmp(row_of_self(l, f, &self)->name, "Condition");
}

/*
 * Is frame @i that of Condition.wait() or wait_for(), called by the program?  Events, queues and such call it, too, but
 * the lock of their condition is their own.
 */
static bool releases(struct locks *l, const struct pystack *st, size_t i)
{
	return i + 1 < st->n && !is_library(&st->frames[i + 1]) && is_condition_wait(l, &st->frames[i]);
}

/* Find the locks of all frames of a thread; only frames that are there before and after are believed. */
static void find_held(struct locks *l, struct pystack *st)
{
	struct pystacks_raw *raw = l->r->raw[0];
	bool may_be_free = false, whole;
	size_t n;

	remote_forget(&l->r->mem);
	for (size_t i = 0; i < st->n; i++)
		find_locks(l, st, &st->frames[i]);
	n = pystacks_walk(l->r, st->state, raw, &whole);
	for (size_t i = st->n; i--;) {
		struct pystack_frame *f = &st->frames[i];

		while (n && raw[n - 1].addr != f->at)
			n--;
		if (!whole || !n || raw[n - 1].code != f->code_at || raw[n - 1].instr != f->instr)
			f->nlocks = 0;
	}
	for (size_t i = 0; i < st->n; i++) {
		for (size_t k = 0; k < st->frames[i].nlocks; k++)
			st->frames[i].locks[k].may_be_free = may_be_free && st->frames[i].locks[k].in_with;
		may_be_free |= releases(l, st, i);
	}
}

/* Note the locks of whose `with` the thread is inside, unless it is in a call that may have released them. */
static void note_inside(struct locks *l, size_t thread)
{
	const struct pystack *st = &l->all->v[thread];

	for (size_t i = 0; i < st->n; i++)
		for (size_t k = 0; k < st->frames[i].nlocks; k++) {
			const struct pystack_lock *lock = &st->frames[i].locks[k];

			if (!lock->in_with || lock->may_be_free)
				continue;
			l->inside = arena_grow(l->r->arena, l->inside, &l->inside_cap, l->ninside, sizeof(*l->inside));
			l->inside[l->ninside++] = (struct inside){ lock->lock.addr, thread };
		}
}

static void find_inside(struct locks *l, struct pystack_wait *w)
{
	size_t cap = 0;

	if (w->what != PYSTACK_WAITS_LOCK || w->owner)
		return;
	for (size_t i = 0; i < l->ninside; i++) {
		if (l->inside[i].lock != w->objects[0].addr || (w->ninside && w->inside[w->ninside - 1] == l->inside[i].thread))
			continue;
		w->inside = arena_grow(l->r->arena, w->inside, &cap, w->ninside, sizeof(*w->inside));
		w->inside[w->ninside++] = l->inside[i].thread;
	}
}

/* --- deadlocks ----------------------------------------------------------------------------------------- */

/* The threads that thread @i waits for.  A wait that ends by itself is none. */
static size_t next_of(const struct pystacks *all, size_t i, const size_t **v)
{
	const struct pystack_wait *w = &all->v[i].wait;
	bool has_owner = w->owner_index != SIZE_MAX;

	*v = has_owner ? &w->owner_index : w->inside;
	if ((w->what != PYSTACK_WAITS_LOCK && w->what != PYSTACK_WAITS_THREAD) || w->has_timeout)
		return 0;
	return has_owner ? 1 : w->ninside;
}

/*
 * Find the shortest circle through thread @start.  @from[i]: who waits for thread i, on the way from @start, as far
 * as seen[i] is @start + 1; @queue: the threads on the way.
 */
static void find_cycle(struct arena *a, struct pystacks *all, size_t start, size_t *from, size_t *seen, size_t *queue)
{
	struct pystack_wait *w = &all->v[start].wait;
	size_t done = 0, n = 0, next;
	const size_t *v;

	for (queue[n++] = start; done < n && seen[start] != start + 1; done++) {
		size_t count = next_of(all, queue[done], &v);

		for (size_t i = 0; i < count; i++) {
			if (seen[v[i]] == start + 1)
				continue;
			seen[v[i]] = start + 1;
			from[v[i]] = queue[done];
			if (v[i] != start)
				queue[n++] = v[i];
		}
	}
	if (seen[start] != start + 1)
		return;
	for (next = from[start], w->ncycle = 1; next != start; next = from[next])
		w->ncycle++;
	w->cycle = arena_alloc(a, w->ncycle * sizeof(*w->cycle));
	w->cycle_is_sure = true;
	next = start;
	for (size_t i = w->ncycle; i--; next = from[next]) {
		w->cycle[i] = next;
		w->cycle_is_sure &= all->v[from[next]].wait.owner_index != SIZE_MAX;
	}
}

/* --- the process --------------------------------------------------------------------------------------- */

/* A circle is only one if its threads have waited at the same time: all until now. */
static void find_cycles(struct locks *l)
{
	struct pystacks *all = l->all;
	struct arena *a = l->r->arena;
	size_t *from = arena_alloc(a, all->n * sizeof(*from) + 1), *seen = arena_alloc(a, all->n * sizeof(*seen) + 1);
	size_t *queue = arena_alloc(a, (all->n + 1) * sizeof(*queue));
	bool *moved = arena_alloc(a, all->n + 1);

	for (size_t i = 0; i < all->n; i++)
		find_cycle(a, all, i, from, seen, queue);
	for (size_t i = 0; i < all->n; i++)
		moved[i] = all->v[i].wait.ncycle && !sleeps_still(l, i);
	for (size_t i = 0; i < all->n; i++)
		for (size_t k = 0; k < all->v[i].wait.ncycle; k++)
			if (moved[all->v[i].wait.cycle[k]])
				all->v[i].wait.ncycle = 0;
}

void pylocks_read(struct pystacks_reader *r, const struct pyoffsets_slots *at, struct pystacks *ret)
{
	struct locks l = { .r = r, .at = at, .all = ret };

	l.metatype = remote_word(&r->mem, r->py.code_type + OBJ_TYPE);
	l.handlers = malloc(HANDLERS_MAX);
	l.waited = arena_alloc(r->arena, ret->n * sizeof(*l.waited) + 1);
	l.sleeps = arena_alloc(r->arena, ret->n * sizeof(*l.sleeps) + 1);
	l.released = arena_alloc(r->arena, ret->n * sizeof(*l.released) + 1);
	for (size_t i = 0; i < ret->n; i++)
		l.released[i] = released_by(&l, &ret->v[i]);
	for (size_t i = 0; i < ret->n && l.handlers; i++) {
		ret->v[i].wait.owner_index = SIZE_MAX;
		if (!ret->v[i].is_python)
			continue;
		find_wait(&l, i);
		if (ret->v[i].wait.what == PYSTACK_WAITS_LOCK)
			l.waited[l.nwaited++] = ret->v[i].wait.objects[0].addr;
	}
	if (l.nwaited)
		qsort(l.waited, l.nwaited, sizeof(*l.waited), by_addr);
	for (size_t i = 0; i < ret->n && l.nwaited; i++) {
		if (!ret->v[i].is_python)
			continue;
		find_held(&l, &ret->v[i]);
		note_inside(&l, i);
	}
	for (size_t i = 0; i < ret->n; i++)
		find_inside(&l, &ret->v[i].wait);
	find_cycles(&l);
	free(l.handlers);
}

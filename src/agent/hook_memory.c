/* SPDX-License-Identifier: MIT */
/*
 * memory-alloc and memory-free: wrappers around CPython's allocators of the domains "mem" and "obj" (C API, "Customize
 * Memory Allocators"), which call the former ones.
 *
 * An event is an allocation in the main interpreter, by a thread that has its GIL, and not by the agent itself, until
 * the interpreter begins to end.  A block that is reallocated is freed and allocated again, even at the same address:
 * so the sum of what is allocated and not freed is what is in use.
 *
 * An event may come while the interpreter is changing any of its structures, and with an exception set.  So nothing is
 * allocated from Python there, no object is released, and no exception is set or cleared (agent_thread.allocating).
 *
 * CPython does not lock its table of allocators against those who call them: in an interpreter with a GIL of its own a
 * thread may see a wrapper with the former context, or the reverse.  So both have the same context, and the wrappers use
 * agent.memory.former instead of theirs.
 *
 * Another tool may have wrapped the allocators before us (tracemalloc, a debug build) or after.  The wrappers are removed
 * only while they are on top; else they stay, and only pass calls on.
 */
#include "agent/agent.h"

#include <errno.h>
#include <string.h>

#include "agent/engine.h"
#include "agent/watch.h"

static struct hook_memory_state *const state = &agent.memory;

struct wrapper {
	const char *name;
	enum capi_domain domain;
	struct capi_allocator allocator;	/* without a context */
};

/* --- events ------------------------------------------------------------------------------------------- */

static const struct wrapper wrappers[MEMORY_DOMAINS];

/* Before 3.12 the thread state is that of any thread which has the GIL. */
static bool in_main_interpreter(void)
{
	const struct capi *py = &agent.py;
	struct pythread *thread = py->PyThreadState_GetUnchecked ? py->PyThreadState_GetUnchecked() :
								   py->_PyThreadState_UncheckedGet();

	return thread && (py->minor >= 12 || thread == py->PyGILState_GetThisThreadState()) &&
	       py->PyInterpreterState_Get() == state->main;
}

/* In a child of fork events begin again when agent_forked() has been called. */
static bool is_event(enum memory_domain domain)
{
	if (__builtin_expect(agent_thread.busy, 0)) {
		state->answered |= state->asked == wrappers[domain].domain;
		return false;
	}
	return __atomic_load_n(&state->wanted, __ATOMIC_RELAXED) && !agent_thread.allocating && !agent.engine.forked &&
	       !watch_closing() && in_main_interpreter() && !engine_is_inside();
}

static void fire_alloc(enum memory_domain domain, size_t size, void *address)
{
	const uint64_t words[ABI_MARKER_ARGS] = { (uint64_t)(uintptr_t)wrappers[domain].name, size, (uint64_t)(uintptr_t)address };

	if (marker_wanted(memory__alloc))
		marker_memory__alloc(wrappers[domain].name, (long)size, address);
	if (engine_wanted(memory__alloc))
		engine_fire(ABI_MARKER_memory__alloc, words, MARKER_TEXTS_memory__alloc);
}

static void fire_free(enum memory_domain domain, void *address)
{
	const uint64_t words[ABI_MARKER_ARGS] = { (uint64_t)(uintptr_t)wrappers[domain].name, (uint64_t)(uintptr_t)address };

	if (marker_wanted(memory__free))
		marker_memory__free(wrappers[domain].name, address);
	if (engine_wanted(memory__free))
		engine_fire(ABI_MARKER_memory__free, words, MARKER_TEXTS_memory__free);
}

/* The block at @was, if there was one, is now one of @size bytes at @is, if there is one. */
static __attribute__((noinline)) void fire(enum memory_domain domain, void *was, size_t size, void *is)
{
	int saved = errno;

	agent_thread.allocating = true;
	if (was)
		fire_free(domain, was);
	if (is)
		fire_alloc(domain, size, is);
	agent_thread.allocating = false;
	errno = saved;
}

/* --- the wrappers ------------------------------------------------------------------------------------- */

static inline const struct capi_allocator *former(enum memory_domain domain)
{
	return __atomic_load_n(&state->former[domain], __ATOMIC_ACQUIRE);
}

static inline void *allocate(enum memory_domain domain, size_t n, size_t size, bool clear)
{
	const struct capi_allocator *f = former(domain);
	void *at = clear ? f->calloc(f->ctx, n, size) : f->malloc(f->ctx, size);

	if (is_event(domain) && at)
		fire(domain, NULL, n * size, at);
	return at;
}

static inline void *reallocate(enum memory_domain domain, void *was, size_t size)
{
	const struct capi_allocator *f = former(domain);
	void *at = f->realloc(f->ctx, was, size);

	if (is_event(domain) && at)
		fire(domain, was, size, at);
	return at;
}

/* The event comes first: afterwards the address may be another block's. */
static inline void release(enum memory_domain domain, void *at)
{
	const struct capi_allocator *f = former(domain);

	if (at && is_event(domain))
		fire(domain, at, 0, NULL);
	f->free(f->ctx, at);
}

#define WRAPPERS(name, DOMAIN)											\
	static void *name##_malloc(void *ctx, size_t size)							\
	{													\
		(void)ctx;											\
		return allocate(DOMAIN, 1, size, false);							\
	}													\
	static void *name##_calloc(void *ctx, size_t n, size_t size)						\
	{													\
		(void)ctx;											\
		return allocate(DOMAIN, n, size, true);								\
	}													\
	static void *name##_realloc(void *ctx, void *at, size_t size)						\
	{													\
		(void)ctx;											\
		return reallocate(DOMAIN, at, size);								\
	}													\
	static void name##_free(void *ctx, void *at)								\
	{													\
		(void)ctx;											\
		release(DOMAIN, at);										\
	}
WRAPPERS(mem, MEMORY_MEM)
WRAPPERS(obj, MEMORY_OBJ)
#undef WRAPPERS

static const struct wrapper wrappers[MEMORY_DOMAINS] = {
	[MEMORY_MEM] = { "mem", CAPI_DOMAIN_MEM, { NULL, mem_malloc, mem_calloc, mem_realloc, mem_free } },
	[MEMORY_OBJ] = { "obj", CAPI_DOMAIN_OBJ, { NULL, obj_malloc, obj_calloc, obj_realloc, obj_free } },
};

/* --- installing --------------------------------------------------------------------------------------- */

static struct capi_allocator top(enum memory_domain domain)
{
	struct capi_allocator a;

	agent.py.PyMem_GetAllocator(wrappers[domain].domain, &a);
	return a;
}

static bool is_ours(enum memory_domain domain, const struct capi_allocator *a)
{
	const struct capi_allocator *w = &wrappers[domain].allocator;

	return a->malloc == w->malloc && a->calloc == w->calloc && a->realloc == w->realloc && a->free == w->free;
}

/* Does a call get to the wrapper, by whatever is on top of it? */
static bool is_reached(enum memory_domain domain)
{
	const struct capi *py = &agent.py;
	bool is_mem = domain == MEMORY_MEM;

	state->answered = false;
	state->asked = wrappers[domain].domain;
	(is_mem ? py->PyMem_Free : py->PyObject_Free)((is_mem ? py->PyMem_Malloc : py->PyObject_Malloc)(1));
	state->asked = CAPI_DOMAIN_RAW;
	return state->answered;
}

/* The row of @a; NULL: there is no room. */
static const struct capi_allocator *keep(enum memory_domain domain, const struct capi_allocator *a)
{
	unsigned k = 0;

	while (k < state->nformers[domain] && memcmp(&state->formers[domain][k], a, sizeof(*a)))
		k++;
	if (k == MEMORY_FORMERS)
		return NULL;
	if (k == state->nformers[domain])
		state->formers[domain][state->nformers[domain]++] = *a;
	return &state->formers[domain][k];
}

static void note_top(enum memory_domain domain)
{
	__atomic_store_n(&state->top[domain], (void *)top(domain).malloc, __ATOMIC_RELAXED);
}

static bool put_on(enum memory_domain domain)
{
	struct capi_allocator now = top(domain), ours = wrappers[domain].allocator;
	const struct capi_allocator *was;

	if (is_ours(domain, &now) || is_reached(domain))
		return true;
	was = keep(domain, &now);
	if (!was) {
		agent_why("memory: the program replaces Python's allocators again and again");
		return false;
	}
	ours.ctx = now.ctx;
	__atomic_store_n(&state->former[domain], was, __ATOMIC_RELEASE);
	agent.py.PyMem_SetAllocator(wrappers[domain].domain, &ours);
	return true;
}

static void take_off(enum memory_domain domain)
{
	struct capi_allocator now = top(domain);

	if (is_ours(domain, &now))
		agent.py.PyMem_SetAllocator(wrappers[domain].domain, former(domain));
}

static bool put_on_all(void)
{
	bool on = true;

	for (unsigned d = 0; d < MEMORY_DOMAINS; d++) {
		on = put_on((enum memory_domain)d) && on;
		note_top((enum memory_domain)d);
	}
	return on;
}

static bool usable(void)
{
	const struct capi *py = &agent.py;

	return py->PyMem_GetAllocator && py->PyMem_SetAllocator && py->PyMem_Malloc && py->PyMem_Free &&
	       py->PyObject_Malloc && py->PyObject_Free &&
	       (py->PyThreadState_GetUnchecked || (py->_PyThreadState_UncheckedGet && py->PyGILState_GetThisThreadState));
}

static unsigned update(unsigned wants)
{
	state->main = agent.py.PyInterpreterState_Main();
	if (wants && !put_on_all())
		wants = 0;
	__atomic_store_n(&state->wanted, wants, __ATOMIC_RELAXED);
	for (unsigned d = 0; !wants && d < MEMORY_DOMAINS; d++)
		take_off((enum memory_domain)d);
	return wants;
}

bool hook_memory_watched(void)
{
	return __atomic_load_n(&state->wanted, __ATOMIC_RELAXED);
}

bool hook_memory_displaced(void)
{
	for (unsigned d = 0; hook_memory_watched() && d < MEMORY_DOMAINS; d++)
		if ((void *)top((enum memory_domain)d).malloc != __atomic_load_n(&state->top[d], __ATOMIC_RELAXED))
			return true;
	return false;
}

void hook_memory_again(void)
{
	bool was_busy = agent_thread.busy;

	agent_thread.busy = true;
	if (state->wanted)
		put_on_all();
	agent_thread.busy = was_busy;
}

const struct hook hook_memory = {
	WANT_memory__alloc | WANT_memory__free, WANT_memory__alloc | WANT_memory__free, usable, update
};

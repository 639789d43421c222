/*
 * The tree of calling contexts against the stack itself: threads, generators that anybody resumes or throws into, frames at
 * addresses of earlier ones, frames that began before there were notes.  The interpreter is played, in each of its layouts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/agent.h"
#include "agent/context.h"

/* --- the interpreter ---------------------------------------------------------------------------------- */

enum { THREADS = 3, CODES = 12, FRAMES = 400, ROOM = 1 << 16, DEEPEST = 70, GENERATORS = 24 };
enum { OWNER_THREAD = 0, OWNER_GENERATOR = 1, OWNER_SHIM = 3 };

struct text { uint64_t state, length; char bytes[16]; };
struct code { int64_t refs; uint64_t type; const struct text *file, *name; };

/* As at offsets that the state is told; where 3.11 has a byte before the owner's, there is one. */
struct frame {
	struct frame *back;
	struct code *code;
	uint8_t owner[2];
	bool used;
};

/* A suspended one has the generator in @waits_for, if any, in a "yield from". */
struct generator {
	struct frame *frame;
	struct generator *waits_for;
	bool running;
};

struct thread { uint64_t pad; struct frame *top; };

static const struct text file = { 0x60 | 1 << 2, 4, "f.py" }, name = { 0x60 | 1 << 2, 4, "name" },
			 init = { 0x60 | 1 << 2, 8, "__init__" };
static struct code codes[CODES], hidden = { .refs = 1, .type = 77, .file = &init, .name = &init };
static struct thread threads[THREADS], *thread = threads;
static struct generator generators[GENERATORS];
static char *arena;
static struct frame *places[FRAMES];
static bool has_generators;		/* whose frames are linked without an event */

/* xorshift64*: the same numbers with each run. */
static uint64_t seed = 14;

static uint32_t any(uint32_t below)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return (uint32_t)((seed * 2685821657736338717u) >> 32) % below;
}

static struct pythread *this_thread(void)
{
	return (struct pythread *)(void *)thread;
}

static void take(struct pyobj *o)
{
	((struct code *)(void *)o)->refs++;
}

static void release(struct pyobj *o)
{
	((struct code *)(void *)o)->refs--;
}

static unsigned depth(void)
{
	unsigned n = 0;

	for (const struct frame *f = thread->top; f; f = f->back)
		n++;
	return n;
}

/* Mostly where a frame of this depth was before, as on a stack. */
static struct frame *new_frame(struct code *code, uint8_t owner)
{
	struct frame *f = places[((unsigned)(thread - threads) * 2 * DEEPEST + depth()) % FRAMES];

	while (f->used || !any(8))
		f = places[any(FRAMES)];
	*f = (struct frame){ .code = code, .used = true };
	f->owner[agent.pyframes.at.runs == ABI_PYTHON_MARKED] = owner;
	return f;
}

static void link_frame(struct frame *f)
{
	f->back = thread->top;
	thread->top = f;
}

static bool is_shim(const struct frame *f)
{
	return agent.pyframes.at.runs == ABI_PYTHON_SHIM && f->owner[0] == OWNER_SHIM;
}

/* --- events ------------------------------------------------------------------------------------------- */

static unsigned found, missing;

/* The node's codes must be those of the stack. */
static void check(struct code *code)
{
	const struct context_node *node = context_find();
	const struct frame *f = thread->top;
	unsigned n = 0;

	if (!node) {
		missing++;
		return;
	}
	found++;
	assert_ptr_equal((void *)(uintptr_t)node->code, code);
	for (;; node = &agent.context.nodes[node->parent], n++) {
		while (f && (is_shim(f) || f->code == &hidden))
			f = f->back;
		if (!f || !node->code)
			break;
		if (node->code != (uint64_t)(uintptr_t)f->code)
			fail_msg("frame %u is another's", n);
		f = f->back;
	}
	assert_null(f);
	assert_int_equal(node->code, 0);
}

static void event(bool entry)
{
	struct code *code = thread->top->code;

	context_begin((const struct pyobj *)(const void *)code, entry);
	if (any(4))
		check(code);
	context_end();
}

static void check_at_event(void)
{
	context_begin((const struct pyobj *)(const void *)thread->top->code, false);
	check(thread->top->code);
	context_end();
}

static void call(bool seen)
{
	if (agent.pyframes.at.runs == ABI_PYTHON_SHIM && !any(4))
		link_frame(new_frame(NULL, OWNER_SHIM));
	if (agent.pyframes.at.runs == ABI_PYTHON_SHIM && !any(8))
		link_frame(new_frame(&hidden, OWNER_THREAD));
	link_frame(new_frame(&codes[any(CODES)], OWNER_THREAD));
	if (seen)
		event(true);
}

static struct generator *generator_of(const struct frame *f)
{
	for (unsigned k = 0; k < GENERATORS; k++)
		if (f && generators[k].frame == f)
			return &generators[k];
	return NULL;
}

/* The innermost frame ends, or is suspended; then those of the interpreter's own that are behind it. */
static void leave(bool seen)
{
	struct frame *f = thread->top;
	struct generator *g = generator_of(f);

	if (!f)
		return;
	if (seen)
		event(false);
	thread->top = f->back;
	if (g && any(4)) {
		g->running = false;
		if (any(2))
			f->back = NULL;		/* versions differ */
	} else {
		f->used = false;
		if (g)
			*g = (struct generator){ NULL, NULL, false };
	}
	while (thread->top && (is_shim(thread->top) || thread->top->code == &hidden)) {
		thread->top->used = false;
		thread->top = thread->top->back;
	}
}

/* A generator is suspended in a "yield from" another, or goes on, by throw() perhaps: then only the innermost has an event. */
static void resume(struct generator *g, bool throws)
{
	struct generator *inner = g->waits_for;

	if (g->running)
		return;
	if (inner && (inner->running || !inner->frame))
		inner = NULL;
	link_frame(g->frame);
	g->running = true;
	if (!inner || !throws || !has_generators)
		event(true);
	if (inner)
		resume(inner, throws);
}

static void generate(void)
{
	struct generator *g = &generators[any(GENERATORS)], *other = &generators[any(GENERATORS)];

	if (g->frame) {
		if (!g->running)
			resume(g, any(2));
		return;
	}
	*g = (struct generator){ new_frame(&codes[any(CODES)], OWNER_GENERATOR), NULL, false };
	/* A chain has an end: an older one waits for a younger one. */
	if (other->frame && !other->running && other != g)
		other->waits_for = g;
}

static void step(void)
{
	switch (any(10)) {
	case 0:
		thread = &threads[any(THREADS)];
		break;
	case 1: case 2: case 3:
		if (depth() < DEEPEST)
			call(true);
		break;
	case 4: case 5: case 6:
		leave(true);
		break;
	case 7:
		if (thread->top)
			event(false);
		break;
	default:
		if (depth() < DEEPEST)
			generate();
	}
}

/* --- tests -------------------------------------------------------------------------------------------- */

static int clear(void **state)
{
	(void)state;
	memset(arena, 0, ROOM);
	memset(generators, 0, sizeof(generators));
	memset(threads, 0, sizeof(threads));
	thread = threads;
	has_generators = true;
	agent.pyframes.hidden = 0;
	agent.pyframes.known = true;
	agent.pyframes.at = (struct abi_python){
		.code_type = 77, .runs = ABI_PYTHON_SHIM, .cframe_frame = ABI_PYTHON_NONE,
		.frame = offsetof(struct thread, top), .back = offsetof(struct frame, back), .code = offsetof(struct frame, code),
		.owner = offsetof(struct frame, owner), .type = offsetof(struct code, type), .file = offsetof(struct code, file),
		.name = offsetof(struct code, name), .state = offsetof(struct text, state), .length = offsetof(struct text, length),
		.ascii_data = offsetof(struct text, bytes),
	};
	found = missing = 0;
	context_update(true);
	assert_true(agent.context.on);
	return 0;
}

static int nothing_held(void **state)
{
	(void)state;
	context_update(false);
	assert_false(agent.context.on);
	assert_null(agent.context.nodes);
	for (unsigned k = 0; k < CODES; k++)
		assert_int_equal(codes[k].refs, 1);
	return 0;
}

static void run(enum abi_python_runs runs)
{
	clear(NULL);
	agent.pyframes.at.runs = runs;
	has_generators = runs != ABI_PYTHON_EACH;
	for (unsigned k = 0; k < 60; k++)	/* these began before */
		call(false);
	for (unsigned k = 0; k < 150000; k++) {
		if (k % 15000 == 14999) {		/* the tree must not become full; and frames are older than notes */
			context_update(false);
			context_update(true);
		}
		step();
	}
	assert_true(found > 40000);
	assert_int_equal(missing, 0);
	nothing_held(NULL);
}

static void each(void **state)
{
	(void)state;
	run(ABI_PYTHON_EACH);
}

static void marked(void **state)
{
	(void)state;
	run(ABI_PYTHON_MARKED);
}

static void shims(void **state)
{
	(void)state;
	run(ABI_PYTHON_SHIM);
}

/*
 * Three generators, each waiting for the next, are thrown into from a frame where the one was that has resumed them before: of
 * the outer two nothing has changed, and they have no event.
 */
static void thrown_from_elsewhere(void **state)
{
	struct generator chain[3];
	struct frame *place = places[7];

	(void)state;
	place->used = true;
	for (unsigned k = 3; k--;)
		chain[k] = (struct generator){ new_frame(&codes[k], OWNER_GENERATOR), k < 2 ? &chain[k + 1] : NULL, false };
	for (unsigned again_by = 0; again_by < 2; again_by++) {
		if (again_by) {
			link_frame(new_frame(&codes[10], OWNER_THREAD));
			event(true);
		}
		*place = (struct frame){ .code = &codes[9], .used = true };
		link_frame(place);
		event(true);
		resume(&chain[0], again_by);
		check_at_event();
		for (unsigned k = 3; k--;) {
			event(false);
			chain[k].running = false;
			thread->top = thread->top->back;
		}
		while (thread->top)
			leave(true);
	}
	assert_int_equal(missing, 0);
}

/* A stack that is too deep to be walked has no node until its events have all been seen; a full tree has none for new contexts. */
static void limits(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 258; k++)
		link_frame(new_frame(&codes[0], OWNER_THREAD));
	link_frame(new_frame(&codes[1], OWNER_THREAD));
	event(false);
	event(false);
	assert_int_equal(found, 0);
	while (thread->top)
		leave(false);
	missing = 0;
	/* Of twelve codes there are more than CONTEXT_NODES stacks of five calls. */
	for (unsigned k = 0; k < 12 * 12 * 12 * 12 * 12; k += 2) {
		for (unsigned at = k, d = 0; d < 5; d++, at /= 12) {
			link_frame(new_frame(&codes[at % 12], OWNER_THREAD));
			context_begin((const struct pyobj *)(const void *)thread->top->code, true);
			if (d == 4)
				check(thread->top->code);
			context_end();
		}
		while (thread->top)
			leave(false);
	}
	assert_true(found > 30000 && missing > 30000);
	assert_int_equal(agent.context.nnodes, CONTEXT_NODES);
}

static void not_at_an_event(void **state)
{
	(void)state;
	call(true);
	assert_null(context_find());
	context_stop();
	event(true);
	assert_null(context_find());
}

static int set_up(void **state)
{
	(void)state;
	arena = aligned_alloc(64, ROOM);
	if (!arena)
		return -1;
	for (unsigned k = 0; k < FRAMES; k++)
		places[k] = (struct frame *)(void *)(arena + (size_t)k * (ROOM / FRAMES & ~31u));
	for (unsigned k = 0; k < CODES; k++)
		codes[k] = (struct code){ 1, 77, &file, &name };
	agent.py.PyThreadState_Get = this_thread;
	agent.py.Py_IncRef = take;
	agent.py.Py_DecRef = release;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	free(arena);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each),
		cmocka_unit_test(marked),
		cmocka_unit_test(shims),
		cmocka_unit_test_setup_teardown(thrown_from_elsewhere, clear, nothing_held),
		cmocka_unit_test_setup_teardown(limits, clear, nothing_held),
		cmocka_unit_test_setup_teardown(not_at_an_event, clear, nothing_held),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}

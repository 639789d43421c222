/* SPDX-License-Identifier: MIT */
#include "agent/context.h"

#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/pyframes.h"
#include "agent/pyframes_priv.h"

enum { ROOT = 1 };			/* index of the root, which has no frame; 0 is no node */
enum { DEEPEST = 256 };			/* maximum number of frames in a walk */
enum { OWNER_GENERATOR = 1 };		/* FRAME_OWNED_BY_GENERATOR */

static struct context_state *const state = &agent.context;

/* --- nodes -------------------------------------------------------------------------------------------- */

static inline uint64_t hash_of(uint32_t parent, uint64_t code)
{
	return (code ^ (uint64_t)parent << 40) * 0x9e3779b97f4a7c15;
}

static inline uint32_t tag_of(uint64_t code)
{
	return (uint32_t)(code >> 4);
}

/* The slot of the child of @parent with that code, or the free one where it would be: half of them are free. */
static uint32_t *slot_of(uint32_t parent, uint64_t code)
{
	uint64_t hash = hash_of(parent, code);
	uint32_t tag = (uint32_t)hash & 0xffff0000;

	for (uint64_t at = hash >> (64 - CONTEXT_SLOT_BITS);; at++) {
		uint32_t *slot = &state->slots[at & (CONTEXT_SLOTS - 1)];
		const struct context_node *node = &state->nodes[*slot & 0xffff];

		if (!*slot || ((*slot & 0xffff0000) == tag && node->code == code && node->parent == parent))
			return slot;
	}
}
_Static_assert(CONTEXT_NODES <= 1 << 16 && CONTEXT_SLOTS >= 2 * CONTEXT_NODES, "context_state.slots");

/* The child of @parent with that code, created if necessary.  0: no room. */
static __attribute__((noinline)) uint32_t other_child(uint32_t parent, uint64_t code)
{
	struct context_node *node = &state->nodes[parent];
	uint32_t *slot = slot_of(parent, code), n = *slot & 0xffff;

	if (!n) {
		if (state->nnodes == CONTEXT_NODES)
			return 0;
		n = state->nnodes++;
		state->nodes[n] = (struct context_node){ .code = code, .parent = parent,
							 .depth = (uint16_t)(node->depth + (node->depth < UINT16_MAX)) };
		agent.py.Py_IncRef((struct pyobj *)(uintptr_t)code);	/* so that its address is not reused */
		*slot = ((uint32_t)hash_of(parent, code) & 0xffff0000) | n;
	}
	node->codes[1] = node->codes[0];
	node->children[1] = node->children[0];
	node->codes[0] = tag_of(code);
	node->children[0] = n;
	return n;
}

static inline uint32_t child(uint32_t parent, uint64_t code)
{
	const struct context_node *node = &state->nodes[parent];
	uint32_t n = node->codes[0] == tag_of(code) ? node->children[0] : node->children[1];

	return __builtin_expect(n && state->nodes[n].code == code, 1) ? n : other_child(parent, code);
}

/* --- notes -------------------------------------------------------------------------------------------- */

static inline struct context_note *note_of(const char *frame)
{
	uintptr_t h = (uintptr_t)frame >> 4;

	return &state->notes[(h ^ h >> CONTEXT_NOTE_BITS) & (CONTEXT_NOTES - 1)];
}

static inline const char *back_of(const char *frame)
{
	return (const char *)(uintptr_t)pyframes_word(frame, pyframes_at->back);
}

/* The caller of a frame whose pointer to the previous frame is @back, if it is a Python function's; or NULL. */
static inline const char *called_by(const char *back)
{
	uint64_t code = 0;

	while (back && (pyframes_is_shim(back) || ((code = pyframes_code(back)) && pyframes_is_hidden(code))))
		back = back_of(back);
	return code ? back : NULL;
}

static inline bool is_generator(const char *frame)
{
	/* Before 3.11 throw() does not link a waiting generator. */
	return pyframes_at->runs != ABI_PYTHON_EACH &&
	       ((const uint8_t *)frame)[pyframes_at->owner + (pyframes_at->runs == ABI_PYTHON_MARKED)] == OWNER_GENERATOR;
}

/*
 * Does the note match @frame, without a look at its caller's note?  A node's code is alive, so what refers to the same
 * address is that code object.
 */
static inline bool is_alike(const struct context_note *note, const char *frame)
{
	return note->frame == frame && note->back == back_of(frame) &&
	       state->nodes[note->node].code == pyframes_code_word(frame);
}

static bool good_caller(const struct context_note *note);

static inline bool is_good(const struct context_note *note, const char *frame)
{
	return is_alike(note, frame) && __builtin_expect(!is_generator(frame) || good_caller(note), 1);
}

/*
 * Is the note that of a generator's frame with its present caller?  If that is a generator's, too, check it in the same
 * way.
 */
static __attribute__((noinline)) bool good_caller(const struct context_note *note)
{
	for (unsigned k = 0; k < DEEPEST; k++) {
		const char *caller = called_by(note->back);
		const struct context_note *of_caller;

		if (!caller)
			return !note->caller;
		of_caller = note_of(caller);
		if (of_caller->number != note->caller || !is_alike(of_caller, caller))
			return false;
		if (!is_generator(caller))
			return true;
		note = of_caller;
	}
	return false;
}

static inline void put(const char *frame, uint32_t node, uint64_t caller)
{
	*note_of(frame) = (struct context_note){ .frame = frame, .back = back_of(frame), .caller = caller, .node = node,
						.number = ++state->numbers };
}

/*
 * The number of @frame's note, with its node in *node.  Stores missing notes for it and its callers.  0: not possible.
 */
static __attribute__((noinline)) uint64_t note_all(const char *frame, uint32_t *node)
{
	const char *path[DEEPEST];
	uint64_t number = 0;
	unsigned n = 0;

	for (*node = ROOT; frame; frame = called_by(back_of(frame))) {
		const struct context_note *note = note_of(frame);

		if (is_good(note, frame)) {
			number = note->number;
			*node = note->node;
			break;
		}
		if (n == DEEPEST)
			return 0;
		path[n++] = frame;
	}
	while (n--) {
		*node = child(*node, pyframes_code(path[n]));
		if (!*node)
			return 0;
		put(path[n], *node, number);
		number = state->numbers;
	}
	return number;
}

/* The thread's innermost frame, which is that of the event's code object. */
static inline const char *innermost(void)
{
	const char *frame = *pyframes_top_of(agent.py.PyThreadState_Get());

	if (__builtin_expect(frame && !pyframes_is_shim(frame) && pyframes_code_word(frame) == state->code, 1))
		return frame;
	return called_by(frame);
}

/* The node of the frame that @back, a pointer to the previous frame, refers to; ROOT: there is none; 0: no room. */
static inline uint32_t caller_of(const char *back, uint64_t *number)
{
	const struct context_note *note;
	uint32_t node = 0;

	while (back && pyframes_is_shim(back))
		back = back_of(back);
	*number = 0;
	if (!back)
		return ROOT;
	note = note_of(back);
	if (__builtin_expect(is_good(note, back), 1)) {
		*number = note->number;
		return note->node;
	}
	back = called_by(back);
	if (!back)
		return ROOT;
	*number = note_all(back, &node);
	return *number ? node : 0;
}

void context_enter(void)
{
	const char *frame = innermost();
	uint64_t number;
	uint32_t node;

	if (!frame)
		return;
	node = caller_of(back_of(frame), &number);
	node = node ? child(node, pyframes_code_word(frame)) : 0;
	if (!node) {
		note_of(frame)->frame = NULL;	/* any note here belongs to another frame */
		return;
	}
	put(frame, node, number);
	state->entered = &state->nodes[node];
}

struct context_node *context_find(void)
{
	const struct context_note *note;
	const char *frame;
	uint32_t node;

	if (!state->at_event || state->entered)
		return state->at_event ? state->entered : NULL;
	frame = innermost();
	if (!frame)
		return NULL;
	note = note_of(frame);
	if (__builtin_expect(is_good(note, frame), 1))
		return &state->nodes[note->node];
	return note_all(frame, &node) ? &state->nodes[node] : NULL;
}

/* --- coming and going --------------------------------------------------------------------------------- */

static void forget(void)
{
	for (uint32_t n = ROOT + 1; state->nodes && n < state->nnodes; n++)
		agent_release((struct pyobj *)(uintptr_t)state->nodes[n].code);
	free(state->memory);
	free(state->slots);
	free(state->notes);
	state->memory = NULL;
	state->nodes = NULL;
	state->slots = NULL;
	state->notes = NULL;
}

void context_stop(void)
{
	state->on = state->at_event = false;
}

void context_update(bool wanted)
{
	state->wanted = wanted && pyframes_measured();
	if (!state->wanted) {
		context_stop();
		forget();
		return;
	}
	for (uint32_t n = 0; state->nodes && n < state->nnodes; n++)
		state->nodes[n].stacks = NULL;
	if (state->nodes)
		return;
	state->memory = calloc(CONTEXT_NODES + 1, sizeof(*state->nodes));
	state->slots = calloc(CONTEXT_SLOTS, sizeof(*state->slots));
	state->notes = calloc(CONTEXT_NOTES, sizeof(*state->notes));
	if (!state->memory || !state->slots || !state->notes) {
		forget();
		return;
	}
	state->nodes = (struct context_node *)(((uintptr_t)state->memory + sizeof(*state->nodes) - 1) &
					       ~(uintptr_t)(sizeof(*state->nodes) - 1));
	state->nnodes = ROOT + 1;
	state->on = true;
}

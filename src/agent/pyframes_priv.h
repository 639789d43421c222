/* SPDX-License-Identifier: MIT */
/* Reading the interpreter's frames; for pyframes.c, context.c and variable.c only. */
#ifndef AGENT_PYFRAMES_PRIV_H
#define AGENT_PYFRAMES_PRIV_H

#include "agent/agent.h"
#include "agent/pyframes.h"

/* The slow path of pyframes_is_hidden(), in pyframes.c. */
bool pyframes_learn_hidden(uint64_t code);

enum { PYFRAMES_SHIM_OWNER = 3 };	/* FRAME_OWNED_BY_CSTACK, FRAME_OWNED_BY_INTERPRETER and later ones */
enum { PYFRAMES_TAG_BITS = 7 };		/* of a _PyStackRef (3.14) */

/* Written only by pyframes.c, once. */
static struct abi_python *const pyframes_at = &agent.pyframes.at;

static inline uint64_t pyframes_word(const void *base, uint32_t off)
{
	return *(const uint64_t *)(const void *)((const char *)base + off);
}

/* The address of the thread's pointer to its innermost frame. */
static inline void **pyframes_top_of(struct pythread *thread)
{
	void **top = (void **)(void *)((char *)thread + pyframes_at->frame);

	return pyframes_at->cframe_frame == ABI_PYTHON_NONE ? top : (void **)(void *)((char *)*top + pyframes_at->cframe_frame);
}

/*
 * Is it not a Python function's frame, but the one that the interpreter puts below the frames run by one native call?
 */
static inline bool pyframes_is_shim(const char *frame)
{
	return pyframes_at->runs == ABI_PYTHON_SHIM && ((const uint8_t *)frame)[pyframes_at->owner] >= PYFRAMES_SHIM_OWNER;
}

/* Where @frame has the address of its code object. */
static inline uint64_t pyframes_code_word(const char *frame)
{
	return pyframes_word(frame, pyframes_at->code) & ~(uint64_t)PYFRAMES_TAG_BITS;
}

/* The code object of @frame, which is not a shim; 0: not a code object. */
static inline uint64_t pyframes_code(const char *frame)
{
	uint64_t code = pyframes_code_word(frame);

	return code && pyframes_word((const void *)(uintptr_t)code, pyframes_at->type) == pyframes_at->code_type ? code : 0;
}

/*
 * Is @code the code object that the interpreter puts, from 3.12 on, between the call of a class and its __init__()?  It
 * is not visible to the program and has no events.  There is only one, whose file and function names are the same
 * object.
 */
static inline bool pyframes_is_hidden(uint64_t code)
{
	const char *c = (const char *)(uintptr_t)code;

	if (pyframes_at->runs != ABI_PYTHON_SHIM)
		return false;
	if (agent.pyframes.hidden)
		return code == agent.pyframes.hidden;
	return __builtin_expect(pyframes_word(c, pyframes_at->file) == pyframes_word(c, pyframes_at->name), 0) &&
	       pyframes_learn_hidden(code);
}

/* pyframes_top() inline: the frame that a hook has linked, or the thread's. */
static inline bool pyframes_innermost(const char **frame, uint64_t *code)
{
	const char *top = agent.pyframes.linked;

	if (!top) {
		if (!agent.pyframes.known)
			return false;
		top = *pyframes_top_of(agent.py.PyThreadState_Get());
		if (!top || pyframes_is_shim(top))
			return pyframes_top(frame, code);
	}
	*frame = top;
	*code = pyframes_code(top);
	return *code != 0;
}

#endif

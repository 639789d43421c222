/* SPDX-License-Identifier: MIT */
/*
 * Python objects as bytes: where each kind stores its contents, and reading them without running any code.
 *
 * An address may come from a script, so everything is read by vm/memory.h, with one exception: objects of the event
 * itself (a variable of the frame, the result, the exception) are alive during the event, because the interpreter has
 * references to them and this thread has the GIL.  Such an object and its type are read directly.  Without a GIL only
 * those of them are that nobody can change: numbers, texts, tuples.  All else is locked, read by vm/memory.h, and noted (reads.h).
 *
 * Functions return 0 or enum abi_fault.  With the GIL, or in turn (engine.c).
 */
#ifndef AGENT_OBJECT_H
#define AGENT_OBJECT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "agent/state.h"
#include "vm/shm.h"

/* Py_TPFLAGS_..., which are the same in all versions. */
enum {
	TYPE_HEAP = 1 << 9, TYPE_INT = 1 << 24, TYPE_LIST = 1 << 25, TYPE_TUPLE = 1 << 26, TYPE_BYTES = 1 << 27,
	TYPE_STR = 1 << 28,
};
#define TYPE_TYPE (1ull << 31)

/* Written by objectmeasure.c and attributemeasure.c; the living objects by object.c. */
static struct object_state *const object_at = &agent.objects;

enum { OBJECT_HEAD = 64 };
enum { OBJECT_NAME_TO_DEALLOC = 24 };	/* from tp_name to tp_dealloc: tp_basicsize and tp_itemsize are between */

/* The offset of what follows an object's type: without a GIL objects have a thread, a lock and two counts before it. */
static inline uint32_t object_body(void)
{
	return (agent.py.type_slot + 1) * 8;
}

struct object {
	struct shm_run *run;
	uint64_t addr, type, flags;	/* the type's flags */
	const uint8_t *bytes;		/* @have of its bytes, readable directly */
	uint32_t have;
	uint8_t head[OBJECT_HEAD];
};

/* ABI_FAULT_BADADDR: there is no object. */
int object_open(struct shm_run *r, uint64_t addr, struct object *ret);

/* The same for an object that is known to be alive because a code object or a frame refers to it. */
void object_open_alive(struct shm_run *r, uint64_t addr, struct object *ret);

/* For reading where no program runs. */
struct shm_run *object_reader(void);

/*
 * In place of @r, to read objects that are reached by references, and only so, from objects that are alive: these are
 * alive, too, as long as this thread keeps the GIL, and so is the memory that they own.  Such objects are read directly.
 * Inside an allocator an object may be in the middle of a change, and another interpreter than the main one shares objects
 * with it that change at any time: there @r is returned, as it is without a GIL.
 */
struct shm_run *object_reader_of_living(struct shm_run *r);

/* Copy the @size bytes at offset @off of @o.  False: they cannot be read. */
bool object_read(const struct object *o, void *dst, uint32_t size, uint32_t off);

/* The word at @off, or 0. */
static inline uint64_t object_word(const struct object *o, uint32_t off)
{
	uint64_t w = 0;

	if (off + sizeof(w) <= o->have)
		memcpy(&w, o->bytes + off, sizeof(w));
	else if (!object_read(o, &w, sizeof(w), off))
		return 0;
	return w;
}

/* Mark the object as alive until the next event, which begins with object_forget(). */
static inline void object_lives(uint64_t addr)
{
	struct object_state *s = &agent.objects;

	if (s->nliving < OBJECT_LIVING)
		s->living[s->nliving++] = addr;
}

static inline void object_forget(void)
{
	agent.objects.nliving = 0;
	agent.reads.n = agent.reads.nanswers = 0;
}

/* The value of an int or bool.  ABI_FAULT_VALUE_RANGE: it has more than 64 bits. */
int object_int(const struct object *o, int64_t *ret);

/* Is the object, which is alive, an int of one digit that is not negative before 3.12? */
static inline bool object_is_short_int_alive(uint64_t addr, int64_t *ret)
{
	const struct object_state *s = &agent.objects;
	uint64_t type, flags, size;
	uint32_t digit;

	if (!addr || addr & 7 || !s->type_flags || !s->int_digits)
		return false;
	memcpy(&type, (const char *)(uintptr_t)addr + agent.py.type_slot * 8, sizeof(type));
	memcpy(&size, (const char *)(uintptr_t)addr + s->size, sizeof(size));
	memcpy(&flags, (const char *)(uintptr_t)type + s->type_flags, sizeof(flags));
	if (!(flags & TYPE_INT) || (s->int_tagged ? size >> 3 != 1 : size != 1))
		return false;
	memcpy(&digit, (const char *)(uintptr_t)addr + s->int_digits, sizeof(digit));
	*ret = s->int_tagged && (size & 3) == 2 ? -(int64_t)digit : (int64_t)digit;
	return true;
}

/* The same; false also if it is not known to be alive. */
static inline bool object_is_short_int(const struct shm_run *r, uint64_t addr, int64_t *ret)
{
	const struct object_state *s = &agent.objects;
	unsigned k = s->nliving;

	while (k && s->living[k - 1] != addr)	/* mostly the one that was found last */
		k--;
	return (k || r->is_alive) && object_is_short_int_alive(addr, ret);
}

/* The characters of a str. */
struct object_text {
	uint64_t data, length;		/* in characters */
	const uint8_t *bytes;		/* the same, if directly readable; or NULL */
	unsigned int width;		/* bytes per character */
	bool is_ascii;
};
int object_text(const struct object *o, struct object_text *ret);

/*
 * @t in UTF-8, NUL-terminated, cut between characters and at the first NUL character.  The number of bytes with the
 * NUL, or minus enum abi_fault.
 */
int64_t object_put_text(struct shm_run *r, const struct object_text *t, char *dst, uint32_t size);

/* Is @o a str equal to @text, @length bytes of UTF-8, at most OBJECT_NAME? */
enum { OBJECT_NAME = 255 };
bool object_is_text(const struct object *o, const char *text, uint32_t length);

/* Store the character @c in UTF-8.  Its number of bytes, or 0: they do not fit. */
uint32_t object_put_utf8(char *to, uint32_t room, uint32_t c);

/* The number of items of a tuple, or the size of another object of variable size; item @n of a tuple. */
static inline uint64_t object_size(const struct object *o)
{
	return object_at->size ? object_word(o, object_at->size) : 0;
}

static inline uint64_t object_item(const struct object *o, uint64_t n)
{
	return object_at->tuple_items && n < object_size(o) ? object_word(o, object_at->tuple_items + 8 * (uint32_t)n) : 0;
}

/* Names of the members that every exception has: "args" and others. */
extern const char *const object_exception_names[OBJECT_EXCEPTION];

/* Copy @n characters of @t, beginning with number @from. */
bool object_chars(struct shm_run *r, const struct object_text *t, uint64_t from, uint64_t n, void *dst);

/*
 * The number of bytes that @o certainly has, as a limit for searches: its type's __basicsize__; for a str, bytes or
 * tuple its whole size.  With the GIL, no exception set, not at an event; only for objects whose classes are not the
 * program's.
 */
uint32_t object_bytes(struct pyobj *o);

/* Measure all layouts, once; runs Python code.  With the GIL, no exception set, not at an event. */
void object_measure(void);

#endif

/*
 * Python values of another process as text like repr()'s, read from outside: no code of the process runs, so no
 * __repr__ of the program's is asked.
 *
 *	int, float, bool, None, str, bytes, list, tuple, dict, set, frozenset, their subclasses, and classes: as by repr()
 *	enums: <Color.RED: 1>; exceptions: Name(their arguments)
 *	other instances of the program's classes: Name(attribute=value, ...), slots last
 *	anything else, and int of more than 120 bits: <type object at 0x...>
 *
 * All data is untrusted, and may change while it is read: an object counts only if its type is one, and all loops are
 * limited.  What cannot be read is "?".
 */
#ifndef DTAP_PROBE_PYVALUE_H
#define DTAP_PROBE_PYVALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/now.h"

struct abi_python;
struct remote;
struct strbuf;

struct pyvalues {
	const struct remote *mem;
	const struct abi_python *py;
	uint64_t metatype;		/* PyType_Type */
	uint32_t head;			/* bytes of an object's header */
	uint32_t tuple_items;
	uint64_t until_ns;		/* of now_ns(): objects are "..." after it, and nothing is found; 0: no limit of time */
};

/* Is the time over for which there is a limit? */
static inline bool pyvalue_is_late(const struct pyvalues *v)
{
	return v->until_ns && now_ns() > v->until_ns;
}

/* -ENOENT: the layout of this Python is unknown. */
int pyvalue_init(struct pyvalues *v, const struct remote *mem, const struct abi_python *py);

/* Append the value of the object at @obj, at most @most bytes, of which the last are "..." if it is longer. */
void pyvalue_show(const struct pyvalues *v, uint64_t obj, size_t most, struct strbuf *ret);

/* Append a str's characters, at most @most bytes.  False: it is no str, or cannot be read. */
bool pyvalue_text(const struct pyvalues *v, uint64_t str, size_t most, struct strbuf *ret);

/* The number of items of a tuple, and item @i; 0: it is no tuple, or has no such item. */
uint64_t pyvalue_tuple_size(const struct pyvalues *v, uint64_t tuple);
uint64_t pyvalue_tuple_item(const struct pyvalues *v, uint64_t tuple, uint64_t i);

/* The type's name as the interpreter has it, "cell" or "_asyncio.Task"; false: @obj is no object. */
bool pyvalue_type_is(const struct pyvalues *v, uint64_t obj, const char *name);

/* Does the type of @obj, or one that it is derived from (by tp_base), have that name?  *size: bytes of such an object. */
bool pyvalue_is_a(const struct pyvalues *v, uint64_t obj, const char *name, uint64_t *size);

/* The attribute @name in the instance's own dictionary; 0: there is none. */
uint64_t pyvalue_attribute(const struct pyvalues *v, uint64_t obj, const char *name);

/* The value of a dictionary's key @key, a text; 0: there is none. */
uint64_t pyvalue_item(const struct pyvalues *v, uint64_t dict, const char *key);

/* Call @each for each element of a set, until it returns false.  False: not for all. */
bool pyvalue_each(const struct pyvalues *v, uint64_t set, bool (*each)(void *ctx, uint64_t element), void *ctx);

/* Append the name of an object's type, "?" for what is none. */
void pyvalue_type_name(const struct pyvalues *v, uint64_t obj, struct strbuf *ret);

#endif

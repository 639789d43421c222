/* SPDX-License-Identifier: MIT */
#include "agent/object.h"

#include "agent/agent.h"
#include "agent/reads.h"
#include "vm/memory.h"

enum { DIGIT_BITS = 30, DIGITS_MAX = 3 };
enum { TYPE_FIXED = TYPE_INT | TYPE_TUPLE | TYPE_BYTES | TYPE_STR };	/* what never changes as long as it lives */

const char *const object_exception_names[OBJECT_EXCEPTION] = { "args", "__cause__", "__context__", "__traceback__" };

/* --- objects ------------------------------------------------------------------------------------------ */

struct shm_run *object_reader(void)
{
	static struct shm none;
	static struct shm_run reader = { .shm = &none };

	return &reader;
}

struct shm_run *object_reader_of_living(struct shm_run *r)
{
	static struct shm none;
	static struct shm_run reader = { .shm = &none, .is_alive = true };

	if (agent_thread.allocating || agent.py.free_threaded || (agent.engine.turns &&
					agent.py.PyInterpreterState_Get() != agent.py.PyInterpreterState_Main()))
		return r;
	return &reader;
}

static bool is_living(uint64_t addr)
{
	for (unsigned k = 0; k < object_at->nliving; k++)
		if (object_at->living[k] == addr)
			return true;
	return false;
}

/* Read an object's first bytes, as many as are readable; returns their number. */
static uint32_t read_head(struct shm_run *r, uint64_t addr, uint8_t head[OBJECT_HEAD])
{
	static const uint32_t sizes[] = { OBJECT_HEAD, 32, 24, 16 };

	for (unsigned k = 0; k < sizeof(sizes) / sizeof(*sizes); k++)
		if (!memory_read(r, head, sizes[k], addr))
			return sizes[k];
	return 0;
}

void object_open_alive(struct shm_run *r, uint64_t addr, struct object *ret)
{
	ret->run = r;
	ret->addr = addr;
	ret->bytes = (const uint8_t *)(uintptr_t)addr;
	ret->have = UINT32_MAX;
	memcpy(&ret->type, ret->bytes + agent.py.type_slot * sizeof(void *), sizeof(ret->type));
	memcpy(&ret->flags, (const char *)(uintptr_t)ret->type + object_at->type_flags, sizeof(ret->flags));
	if (agent.py.free_threaded && !(ret->flags & TYPE_FIXED)) {
		ret->have = 0;
		reads_open(r, addr);
	}
}

/*
 * Is there a type at @type?  Its own type is the type of types, or a metaclass, whose type is ...  Without this any pointer behind an
 * address would do: characters would be an object if what follows them in memory looks like one.
 */
static bool is_type(struct shm_run *r, uint64_t type)
{
	enum { METACLASSES = 4 };
	const uint64_t top = (uintptr_t)agent_type(agent_type(agent.py.none));
	uint64_t flags;

	for (unsigned k = 0; k < METACLASSES && !(type & 7); k++) {
		if (memory_read(r, &type, sizeof(type), type + agent.py.type_slot * sizeof(void *)))
			return false;
		if (type == top)
			return true;
		if (memory_read(r, &flags, sizeof(flags), type + object_at->type_flags) || !(flags & TYPE_TYPE))
			return false;
	}
	return false;
}

/* Has the question met the type already?  Then it stands in the notes. */
static bool is_met(uint64_t type)
{
	struct reads_state *s = &agent.reads;

	for (unsigned k = 0; k < READS_TYPES; k++)
		if (s->types[k] == type)
			return true;
	s->types[s->ntypes++ % READS_TYPES] = type;
	return false;
}

/* Without a GIL: the object from its type on, since the counts before it change all the time. */
static int open_shared(struct shm_run *r, uint64_t addr, struct object *ret)
{
	const uint32_t head = agent.py.type_slot * sizeof(void *);

	*ret = (struct object){ .run = r, .addr = addr };
	ret->bytes = ret->head;
	if (memory_read(r, &ret->type, sizeof(ret->type), addr + head) || (!is_met(ret->type) && !is_type(r, ret->type)))
		return ABI_FAULT_BADADDR;
	if (memory_read(r, &ret->flags, sizeof(ret->flags), ret->type + object_at->type_flags))
		return ABI_FAULT_BADADDR;
	if (!(ret->flags & TYPE_FIXED))
		reads_open(r, addr);
	else if (!memory_read(r, ret->head + head, OBJECT_HEAD - head, addr + head))
		ret->have = OBJECT_HEAD;
	return 0;
}

int object_open(struct shm_run *r, uint64_t addr, struct object *ret)
{
	if (!addr || addr & 7 || !object_at->type_flags)
		return ABI_FAULT_BADADDR;
	if (r->is_alive || is_living(addr)) {
		object_open_alive(r, addr, ret);
		return 0;
	}
	if (agent.py.free_threaded)
		return open_shared(r, addr, ret);
	ret->run = r;
	ret->addr = addr;
	ret->bytes = ret->head;
	ret->have = read_head(r, addr, ret->head);
	if (!ret->have)
		return ABI_FAULT_BADADDR;
	memcpy(&ret->type, ret->head + agent.py.type_slot * sizeof(void *), sizeof(ret->type));
	if (!is_type(r, ret->type) || memory_read(r, &ret->flags, sizeof(ret->flags), ret->type + object_at->type_flags))
		return ABI_FAULT_BADADDR;
	return 0;
}

bool object_read(const struct object *o, void *dst, uint32_t size, uint32_t off)
{
	if (off <= o->have && size <= o->have - off) {
		memcpy(dst, o->bytes + off, size);
		return true;
	}
	return !memory_read(o->run, dst, size, o->addr + off);
}

/* --- int ---------------------------------------------------------------------------------------------- */

int object_int(const struct object *o, int64_t *ret)
{
	uint64_t size = object_word(o, object_at->size), n, value = 0;
	uint32_t digits[DIGITS_MAX];
	bool below = object_at->int_tagged ? (size & 3) == 2 : (int64_t)size < 0;

	if (!(o->flags & TYPE_INT))
		return ABI_FAULT_VALUE_KIND;
	if (!object_at->int_digits)
		return ABI_FAULT_VALUE_UNKNOWN;
	if (o->have == UINT32_MAX && (object_at->int_tagged ? size >> 3 == 1 : size + 1 == 2 || size + 1 == 0)) {	/* one digit */
		memcpy(digits, o->bytes + object_at->int_digits, sizeof(*digits));
		*ret = below ? -(int64_t)digits[0] : (int64_t)digits[0];
		return 0;
	}
	n = object_at->int_tagged ? size >> 3 : below ? -size : size;
	if (object_at->int_tagged && (size & 3) == 1)
		n = 0;
	if (n > DIGITS_MAX)
		return ABI_FAULT_VALUE_RANGE;
	if (!object_read(o, digits, (uint32_t)(n * sizeof(*digits)), object_at->int_digits))
		return ABI_FAULT_BADADDR;
	for (uint64_t k = n; k--;) {
		if (digits[k] >> DIGIT_BITS)
			return ABI_FAULT_BADADDR;
		if (value >> (64 - DIGIT_BITS))
			return ABI_FAULT_VALUE_RANGE;
		value = value << DIGIT_BITS | digits[k];
	}
	if (value > (uint64_t)INT64_MAX + below)
		return ABI_FAULT_VALUE_RANGE;
	*ret = (int64_t)(below ? 0 - value : value);
	return 0;
}

/* --- str ---------------------------------------------------------------------------------------------- */

int object_text(const struct object *o, struct object_text *ret)
{
	uint64_t state = object_word(o, object_at->str_state) & UINT32_MAX;
	bool compact = state >> (object_at->str_kind + 3) & 1;
	uint32_t data;

	if (!(o->flags & TYPE_STR))
		return ABI_FAULT_VALUE_KIND;
	if (!object_at->str_other)
		return ABI_FAULT_VALUE_UNKNOWN;
	ret->length = object_word(o, object_at->str_length);
	ret->width = state >> object_at->str_kind & 7;
	ret->is_ascii = state >> (object_at->str_kind + 4) & 1;
	data = ret->is_ascii ? object_at->str_ascii : object_at->str_other;
	ret->data = o->addr + data;
	ret->bytes = o->have == UINT32_MAX ? o->bytes + data : NULL;
	if (!compact) {
		if (!object_read(o, &ret->data, sizeof(ret->data), object_at->str_other))
			return ABI_FAULT_BADADDR;
		ret->bytes = NULL;		/* they are not in the object */
	}
	return ret->width == 1 || ret->width == 2 || ret->width == 4 ? 0 : ABI_FAULT_BADADDR;
}

uint32_t object_put_utf8(char *to, uint32_t room, uint32_t c)
{
	uint32_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	if (n > room || c > 0x10ffff)
		return 0;
	if (n == 1) {
		to[0] = (char)c;
		return 1;
	}
	for (uint32_t k = n; --k; c >>= 6)
		to[k] = (char)(0x80 | (c & 0x3f));
	to[0] = (char)((0xf00 >> n) | c);
	return n;
}

bool object_chars(struct shm_run *r, const struct object_text *t, uint64_t from, uint64_t n, void *dst)
{
	if (t->bytes) {
		memcpy(dst, t->bytes + from * t->width, n * t->width);
		return true;
	}
	return !memory_read(r, dst, n * t->width, t->data + from * t->width);
}

int64_t object_put_text(struct shm_run *r, const struct object_text *t, char *dst, uint32_t size)
{
	uint8_t part[256];
	uint32_t used = 0, n;
	uint64_t done = 0;

	while (done < t->length && used + 1 < size) {
		uint64_t chars = sizeof(part) / t->width < t->length - done ? sizeof(part) / t->width : t->length - done;

		if (!object_chars(r, t, done, chars, part))
			return -ABI_FAULT_BADADDR;
		for (uint64_t k = 0; k < chars; k++) {
			uint32_t c = 0;

			memcpy(&c, part + k * t->width, t->width);	/* little endian, like all machines of vm/ */
			n = c ? object_put_utf8(dst + used, size - 1 - used, c) : 0;
			if (!n)
				goto out;
			used += n;
		}
		done += chars;
	}
out:
	dst[used] = '\0';
	return used + 1;
}

bool object_is_text(const struct object *o, const char *text, uint32_t length)
{
	struct object_text t;
	char have[OBJECT_NAME + 2];

	if (length > OBJECT_NAME || object_text(o, &t) || t.length > length)
		return false;
	if (t.is_ascii && t.length != length)
		return false;
	if (t.is_ascii && t.bytes)
		return !memcmp(t.bytes, text, length);
	return object_put_text(o->run, &t, have, sizeof(have)) == (int64_t)length + 1 && !memcmp(have, text, length);
}

#include "probe/pycode.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "abi/python.h"
#include "base/arena.h"
#include "vm/record.h"

enum { TEXT_MAX = 4096, TABLE_MAX = 1 << 20 };

/* --- what a record has --------------------------------------------------------------------------------- */

/* Read @n bytes of a process's memory.  Returns the number read. */
static size_t read_memory(uint32_t pid, uint64_t addr, void *buf, size_t n)
{
	char path[64];
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/mem", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	got = pread(fd, buf, n, (off_t)addr);
	close(fd);
	return got < 0 ? 0 : (size_t)got;
}

static char *put_utf8(char *to, uint32_t c)
{
	if (c < 0x80) {
		*to++ = (char)c;
	} else if (c < 0x800) {
		*to++ = (char)(0xc0 | c >> 6);
		*to++ = (char)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		*to++ = (char)(0xe0 | c >> 12);
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
		*to++ = (char)(0x80 | (c & 0x3f));
	} else {
		*to++ = (char)(0xf0 | (c >> 18 & 7));
		*to++ = (char)(0x80 | (c >> 12 & 0x3f));
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
		*to++ = (char)(0x80 | (c & 0x3f));
	}
	return to;
}

const char *pycode_text(struct arena *a, const uint8_t *bytes, size_t n, uint32_t kind)
{
	char *s, *to;

	if (!n)
		return "?";
	s = to = arena_alloc(a, 4 * n + 1);
	for (size_t i = 0; i < n; i++) {
		uint32_t c = 0;

		memcpy(&c, bytes + i * kind, kind);
		if (!c)
			break;
		to = put_utf8(to, c);
	}
	*to = '\0';
	return s;
}

/*
 * The string of @length characters whose first @n bytes are at @bytes; more is read at @addr of process @pid, unless
 * that is 0.
 */
static const char *text(struct arena *a, uint32_t pid, uint64_t addr, uint32_t length, uint32_t kind,
			const uint8_t *bytes, size_t n)
{
	uint8_t more[TEXT_MAX];
	uint32_t unit = kind ? kind : 1;
	size_t got = 0;

	if (unit > 4 || unit == 3)
		return "?";
	if (pid && n / unit < length)
		got = read_memory(pid, addr, more, length > TEXT_MAX / unit ? TEXT_MAX : (size_t)length * unit);
	if (got > n) {
		bytes = more;
		n = got;
	}
	if (kind)
		return pycode_text(a, bytes, n / kind, kind);
	return n ? arena_strndup(a, (const char *)bytes, strnlen((const char *)bytes, n)) : "?";
}

/* Read the rest of the line table, if the record does not have all of it. */
static void complete_table(struct arena *a, struct pycode *c, const struct abi_code *r)
{
	uint64_t n = r->table.length;
	uint8_t *more;
	size_t got;

	/* If the record has nothing of it, read its length, which precedes it (PyBytesObject). */
	if (!n && read_memory(r->hdr.pid, r->table.addr - 16, &n, sizeof(n)) != sizeof(n))
		return;
	if (n <= c->ntable || n > TABLE_MAX)
		return;
	more = arena_alloc(a, n);
	got = read_memory(r->hdr.pid, r->table.addr, more, n);
	if (got <= c->ntable)
		return;
	c->table = more;
	c->ntable = got;
}

struct pycode *pycode_read(struct arena *a, const struct record *rec, bool look)
{
	const struct abi_code *r = (const struct abi_code *)(const void *)rec->hdr;
	size_t size = rec->size, table = size - offsetof(struct abi_code, table_bytes);
	uint32_t pid = look ? r->hdr.pid : 0;
	struct pycode *c;

	if (size < offsetof(struct abi_code, table_bytes) || r->file.bytes > ABI_CODE_FILE ||
	    r->name.bytes > ABI_CODE_NAME || r->table.bytes > table)
		return NULL;
	c = arena_new_of(a, struct pycode);
	c->version = (uint16_t)r->version;
	c->line = r->line;
	c->file = text(a, pid, r->file.addr, r->file.length, r->file.kind, r->file_text, r->file.bytes);
	c->name = text(a, pid, r->name.addr, r->name.length, r->name.kind, r->name_text, r->name.bytes);
	c->ntable = r->table.bytes;
	c->table = memcpy(arena_alloc(a, c->ntable + 1), r->table_bytes, c->ntable);
	if (look)
		complete_table(a, c, r);
	return c;
}

/* --- lines --------------------------------------------------------------------------------------------- */

/* Up to 3.9: pairs of bytes, how far to the next address and line; the line may go back (Objects/lnotab_notes.txt). */
static uint32_t line_of_lnotab(const struct pycode *c, int32_t instr)
{
	int64_t line = c->line;
	int32_t addr = 0;

	for (size_t i = 0; i + 1 < c->ntable; i += 2) {
		addr += c->table[i];
		if (addr > instr)
			break;
		line += (int8_t)c->table[i + 1];
	}
	return (uint32_t)line;
}

/* 3.10: pairs, how many bytes of code and how far the line moves before them; -128: they have none (PEP 626). */
static uint32_t line_of_ranges(const struct pycode *c, int32_t instr)
{
	int64_t line = c->line;
	int32_t addr = 0;

	for (size_t i = 0; i + 1 < c->ntable; i += 2) {
		int8_t delta = (int8_t)c->table[i + 1];

		addr += c->table[i];
		if (delta != INT8_MIN)
			line += delta;
		if (addr > instr)
			return delta == INT8_MIN ? c->line : (uint32_t)line;
	}
	return c->line;
}

/* Read a number with 6 bits per byte, the lowest first; false at the end of the table. */
static bool read_varint(const struct pycode *c, size_t *i, uint32_t *ret)
{
	unsigned int shift = 0;
	uint8_t b;

	*ret = 0;
	do {
		if (*i >= c->ntable || shift > 30)
			return false;
		b = c->table[(*i)++];
		*ret |= (uint32_t)(b & 0x3f) << shift;
		shift += 6;
	} while (b & 0x40);
	return true;
}

/* 3.11: entries begin with a byte with the top bit set, whose code tells what follows (Objects/locations.md). */
static uint32_t line_of_locations(const struct pycode *c, int32_t instr)
{
	enum { ONE_LINE = 10, NO_COLUMNS = 13, LONG = 14, NONE = 15 };
	int64_t line = c->line;
	int32_t addr = 0;
	size_t i = 0;

	while (i < c->ntable) {
		uint8_t b = c->table[i++], code = b >> 3 & 15;
		uint32_t v;

		if (code == LONG || code == NO_COLUMNS) {
			if (!read_varint(c, &i, &v))
				break;
			line += v & 1 ? -(int64_t)(v >> 1) : (int64_t)(v >> 1);
		} else if (code >= ONE_LINE && code < NO_COLUMNS) {
			line += code - ONE_LINE;
		}
		addr += 2 * ((b & 7) + 1);
		if (addr > instr)
			return code == NONE ? c->line : (uint32_t)line;
		while (i < c->ntable && !(c->table[i] & 0x80))
			i++;
	}
	return c->line;
}

uint32_t pycode_line(const struct pycode *c, int32_t instr)
{
	if (instr < 0)
		return c->line;
	if (c->version >= 0x030b)
		return line_of_locations(c, instr);
	return c->version == 0x030a ? line_of_ranges(c, instr) : line_of_lnotab(c, instr);
}

/*
 * Code objects of Python from programs' records (ABI_REC_CODE), and a frame's file, function and line from them.
 *
 * Programs send the names and the line table once for each code object; frames have its number.  So frames can be
 * named after the process has ended.  What a program could not read is read from the process's memory.
 */
#ifndef DTAP_PROBE_PYCODE_H
#define DTAP_PROBE_PYCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct record;

struct pycode {
	const char *file, *name;	/* UTF-8; "?": not known */
	uint16_t version;		/* of the CPython: 0x030b for 3.11 */
	uint32_t line;			/* the first */
	const uint8_t *table;
	size_t ntable;
};

/*
 * Make one from the record @rec, in @a; with @look missing parts are read from the process's memory.  NULL: a damaged
 * record.
 */
struct pycode *pycode_read(struct arena *a, const struct record *rec, bool look);

/*
 * The line of the instruction at offset @instr.  The code's first line if @instr is negative, or the table has none.
 */
uint32_t pycode_line(const struct pycode *c, int32_t instr);

/* @n characters of @kind bytes each, 1, 2 or 4, in UTF-8, up to the first NUL; "?" when there are none. */
const char *pycode_text(struct arena *a, const uint8_t *bytes, size_t n, uint32_t kind);

#endif

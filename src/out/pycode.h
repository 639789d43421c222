/*
 * Code objects of Python that programs told of (ABI_REC_CODE), and what they say of a frame: file, function and line.
 *
 * Programs send the names and the line table once for each code object; frames have its number.  So a frame has its
 * names also when the process has gone.  What a program could not read is looked for in the process's memory.
 */
#ifndef DTAP_OUT_PYCODE_H
#define DTAP_OUT_PYCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct abi_code;

struct pycode {
	const char *file, *name;	/* UTF-8; "?": not known */
	uint16_t version;		/* of the CPython: 0x030b for 3.11 */
	uint32_t line;			/* the first */
	const uint8_t *table;
	size_t ntable;
};

/*
 * From the record of @size bytes at @rec, in @a; what it lacks from the process's memory, if @look.  NULL: a damaged
 * record.
 */
struct pycode *pycode_read(struct arena *a, const void *rec, size_t size, bool look);

/*
 * The line of the instruction @instr bytes behind the first.  The first line when it is before that, or when the
 * table does not tell.
 */
uint32_t pycode_line(const struct pycode *c, int32_t instr);

#endif

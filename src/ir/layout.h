/*
 * The memory layout of values that programs and the tracer share: keys of maps and aggregations, and records
 * (abi/record.h has the header).
 *
 * A key has its integers first, 8 bytes each in the order of the key's parts (for self-> arrays the
 * thread is the first), then its strings back to back, each with its NUL, then zeros.  To make short keys cheap to
 * hash and compare, keys with strings have up to IR_KEY_CLASSES sizes, each with a map of its own: a key is stored in
 * the smallest class that it fits in.  Equal keys have equal bytes.
 */
#ifndef DTAP_IR_LAYOUT_H
#define DTAP_IR_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "ir/ir.h"

enum { IR_KEY_CLASSES = 3 };

/*
 * The sizes of the classes of a key of @n parts, ascending; the last one fits every key.  Returns how many.  @hidden:
 * number of hidden integers before the parts; @room: ir_str_room().  A key without any parts is 8 bytes, always 0.
 */
unsigned int ir_key_sizes(const struct ir_slot *parts, uint32_t n, uint32_t hidden, uint32_t room,
			  uint32_t sizes[IR_KEY_CLASSES]);

/* A decoded value: an integer, or a string, which points into the decoded bytes. */
struct ir_value {
	enum ir_type type;
	int64_t i;
	const char *s;		/* NUL-terminated */
};

/* Decode the key in the @size bytes at @key.  0, or -EINVAL for bytes that are not a key. */
int ir_key_decode(const struct ir_slot *parts, uint32_t n, uint32_t hidden, const void *key, size_t size,
		  struct ir_value *out);

/* Bytes of the largest record of @r's layout, header included. */
size_t ir_rec_max(const struct ir_rec *r, uint32_t strsize);

/* Decode the fields of the record of @size bytes (with header) at @rec.  0, or -EINVAL for a malformed record. */
int ir_rec_decode(const struct ir_rec *r, const void *rec, size_t size, struct ir_value *out);

/* The words (abi/stat.h) of the statistic in such a record, in place; @rec must be aligned to 8.  0 or -EINVAL. */
int ir_rec_stat(const struct ir_rec *r, const void *rec, size_t size, const uint64_t **words);

/* Bytes of an element of @m: in ordered maps with the header of abi/stat.h, else the value.  @room: ir_str_room(). */
uint32_t ir_map_value_size(const struct ir_map *m, uint32_t room);

#endif

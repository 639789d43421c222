/*
 * How values lie in memory where both the programs and the tracer see them: keys of maps and aggregations,
 * and records (abi/record.h has the header).
 *
 * A key holds its integers first, 8 bytes each in the order of the key's parts (for self-> arrays the
 * thread is the first), then its strings back to back, each with its NUL, then zeros.  So that a short key
 * costs little to hash and compare, keys with strings come in up to IR_KEY_CLASSES sizes, each in a map of
 * its own: a key lives in the smallest class it fits in.  Equal keys have equal bytes.
 */
#ifndef DTAP_IR_LAYOUT_H
#define DTAP_IR_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "ir/ir.h"

enum { IR_KEY_CLASSES = 3 };

/* Bytes of each class of a key of @n parts, ascending, the last fits every key; returns how many.  @hidden:
 * integers before the parts that nobody sees; @room: ir_str_room().  No parts and none hidden: one class of 8 bytes,
 * always 0. */
unsigned int ir_key_sizes(const struct ir_slot *parts, uint32_t n, uint32_t hidden, uint32_t room,
			  uint32_t sizes[IR_KEY_CLASSES]);

/* A value read back: an integer, or a string in the bytes it was read from. */
struct ir_value {
	enum ir_type type;
	int64_t i;
	const char *s;		/* NUL-terminated */
};

/* The parts of the key in the @size bytes at @key.  0, or -EINVAL for bytes that are no key. */
int ir_key_decode(const struct ir_slot *parts, uint32_t n, uint32_t hidden, const void *key, size_t size,
		  struct ir_value *out);

/* Bytes of the largest record of @r's layout, header included. */
size_t ir_rec_max(const struct ir_rec *r, uint32_t strsize);

/* The fields of the record of @size bytes (header included) at @rec.  0, or -EINVAL for bytes that are none. */
int ir_rec_decode(const struct ir_rec *r, const void *rec, size_t size, struct ir_value *out);

/* The words (abi/stat.h) of the statistic in such a record, in place, if @rec is aligned to 8.  0 or -EINVAL. */
int ir_rec_stat(const struct ir_rec *r, const void *rec, size_t size, const uint64_t **words);

/* Bytes of an element of @m, in a map: what abi/stat.h says for ordered ones, else the value alone; @room: ir_str_room(). */
uint32_t ir_map_value_size(const struct ir_map *m, uint32_t room);

#endif

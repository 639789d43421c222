#include "ir/layout.h"

#include <errno.h>
#include <string.h>

#include "abi/record.h"
#include "abi/stat.h"

/* Bytes per string in the first and the second class; most names fit in the first. */
enum { SHORT_STR = 32, MIDDLE_STR = 128 };

static uint32_t add_class(uint32_t *sizes, uint32_t n, uint64_t size)
{
	if (!n || sizes[n - 1] < size)
		sizes[n++] = (uint32_t)size;
	return n;
}

unsigned int ir_key_sizes(const struct ir_slot *parts, uint32_t n, uint32_t hidden, uint32_t room,
			  uint32_t sizes[IR_KEY_CLASSES])
{
	uint64_t ints = hidden, strs = 0;
	unsigned int classes = 0;

	for (uint32_t k = 0; k < n; k++) {
		if (parts[k].type == IR_STR)
			strs++;
		else
			ints++;
	}
	if (!strs) {
		sizes[0] = (uint32_t)(ints ? ints * 8 : 8);
		return 1;
	}
	if (room > SHORT_STR)
		classes = add_class(sizes, classes, ints * 8 + strs * SHORT_STR);
	if (room > MIDDLE_STR)
		classes = add_class(sizes, classes, ints * 8 + strs * MIDDLE_STR);
	return add_class(sizes, classes, ints * 8 + strs * room);
}

/* The integer of type @s in @raw. */
static int64_t widen(const struct ir_slot *s, int64_t raw)
{
	unsigned int shift;

	if (s->width == 0 || s->width >= 8)
		return raw;
	shift = 64 - 8u * s->width;
	return s->sign ? (int64_t)((uint64_t)raw << shift) >> shift
		       : (int64_t)((uint64_t)raw << shift >> shift);
}

int ir_key_decode(const struct ir_slot *parts, uint32_t n, uint32_t hidden, const void *key, size_t size,
		  struct ir_value *out)
{
	const char *p = key;
	size_t at = (size_t)hidden * 8;

	for (uint32_t k = 0; k < n; k++) {
		int64_t raw;

		if (parts[k].type == IR_STR)
			continue;
		if (at > size || size - at < 8)
			return -EINVAL;
		memcpy(&raw, p + at, 8);
		out[k] = (struct ir_value){ .type = IR_INT, .i = widen(&parts[k], raw) };
		at += 8;
	}
	for (uint32_t k = 0; k < n; k++) {
		size_t len;

		if (parts[k].type != IR_STR)
			continue;
		if (at >= size)
			return -EINVAL;
		len = strnlen(p + at, size - at);
		if (len == size - at)
			return -EINVAL;
		out[k] = (struct ir_value){ .type = IR_STR, .s = p + at };
		at += len + 1;
	}
	return 0;
}

size_t ir_rec_max(const struct ir_rec *r, uint32_t strsize)
{
	size_t size = sizeof(struct abi_record) + (size_t)r->nfields * 8;

	if (r->stat)
		size += 8 + ir_stat_words(r->stat) * 8;
	for (uint32_t k = 0; k < r->nfields; k++) {
		if (r->fields[k].type == IR_STR)
			size += strsize;
	}
	return (size + 7) & ~(size_t)7;
}

int ir_rec_decode(const struct ir_rec *r, const void *rec, size_t size, struct ir_value *out)
{
	const char *p = rec;
	size_t at = sizeof(struct abi_record);

	if (size < at || (size - at) / 8 < r->nfields)
		return -EINVAL;
	for (uint32_t k = 0; k < r->nfields; k++, at += 8) {
		uint64_t raw;
		uint32_t off, len;

		memcpy(&raw, p + at, 8);
		if (r->fields[k].type != IR_STR) {
			out[k] = (struct ir_value){ .type = IR_INT, .i = widen(&r->fields[k], (int64_t)raw) };
			continue;
		}
		off = (uint32_t)raw;
		len = (uint32_t)(raw >> 32);
		if (!len || off > size || len > size - off || p[off + len - 1] != '\0')
			return -EINVAL;
		out[k] = (struct ir_value){ .type = IR_STR, .s = p + off };
	}
	return 0;
}

int ir_rec_stat(const struct ir_rec *r, const void *rec, size_t size, const uint64_t **words)
{
	size_t slot = sizeof(struct abi_record) + (size_t)r->nfields * 8;
	uint64_t raw;
	uint32_t off;

	if (!r->stat || size < slot + 8)
		return -EINVAL;
	memcpy(&raw, (const char *)rec + slot, 8);
	off = (uint32_t)raw;
	if (raw >> 32 != ir_stat_words(r->stat) * 8 || off % 8 || off > size || raw >> 32 > size - off)
		return -EINVAL;
	*words = (const uint64_t *)(const void *)((const char *)rec + off);
	return 0;
}

uint32_t ir_map_value_size(const struct ir_map *m, uint32_t room)
{
	uint32_t value = m->stat ? ir_stat_words(m) * 8 : m->value.type == IR_STR ? room : 8;

	return value + (m->ordered ? ABI_ELEMENT_VALUE : 0);
}
